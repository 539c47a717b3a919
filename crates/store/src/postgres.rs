//! PostgreSQL, the body for many processes: connections, transactions, and what its errors mean.
//!
//! Each session is a connection on a thread of its own; the client library is
//! asynchronous and is driven by that thread alone. Transactions read what is committed.
//! What must not change meanwhile is locked by scope, in one order for everybody, before
//! the first question of a transaction runs.
//!
//! **Invariant:** everything that is particular to PostgreSQL is here and in `migrations`.

use crate::body::{self, Access, Outbox, Row, Scope, Tx, Value, writes};
use crate::error::Error;
use crate::migrations;
use futures_util::future::join_all;
use model::secret::Secret;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket, Statement};

/// How long a server may take to accept us.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long what we sent may stay unacknowledged before the connection counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// How long an answer may take: longer than the server allows itself for any statement, so that
/// only a server that does nothing at all is given up.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// How often the newest event is asked for although nobody announced one: announcements
/// can be lost with a connection.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Where commits announce their newest event.
const CHANNEL: &str = "slipway_events";

/// A process that stops in the middle of a transaction gives back what it locked: nobody
/// waits longer than this for the dead.
const SETTINGS: &str = "SET idle_in_transaction_session_timeout = '15s'; SET statement_timeout = '30s';
     SET lock_timeout = '20s'; SET client_min_messages = 'warning'; SET application_name = 'slipway'";

/// A database on a server.
#[derive(Clone)]
pub(crate) struct Server {
    config: Config,
}

impl Server {
    /// Connects to a database and brings it up to date when it is empty.
    pub(crate) fn at(url: &str, password: Option<&Secret>) -> Result<Self, Error> {
        let server = Self::named(url, password)?;
        let mut session = server.session();
        let found = migrations::version_of(&mut session)?;
        if found == 0 {
            migrations::apply_to(&mut session)?;
        } else if found < migrations::KNOWN {
            return Err(Error::Older {
                found,
                needed: migrations::KNOWN,
            });
        }
        Ok(server)
    }

    /// Brings a database up to date; answers its format before.
    pub(crate) fn migrate(url: &str, password: Option<&Secret>) -> Result<u64, Error> {
        let server = Self::named(url, password)?;
        let mut session = server.session();
        let found = migrations::version_of(&mut session)?;
        migrations::apply_to(&mut session)?;
        Ok(found)
    }

    /// Reads an address; nobody is asked yet.
    pub(crate) fn named(url: &str, password: Option<&Secret>) -> Result<Self, Error> {
        // Anything else would be read as a list of words, and told back word by word.
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err(Error::Address {
                what: "it does not begin with postgres://".to_owned(),
            });
        }
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            // The address may contain a password, so it is not repeated.
            let cause = error.source().map(ToString::to_string);
            Error::Address {
                what: cause.unwrap_or_else(|| "it cannot be read".to_owned()),
            }
        })?;
        if let Some(password) = password {
            config.password(password.expose());
        }
        if config.get_dbname().is_none() {
            return Err(Error::Address {
                what: "it names no database".to_owned(),
            });
        }
        if config.get_hosts().is_empty() {
            return Err(Error::Address {
                what: "it names no host".to_owned(),
            });
        }
        if config.get_ssl_mode() == tokio_postgres::config::SslMode::Require {
            return Err(Error::Address {
                what: "sslmode=require is not supported: use a socket, loopback or a tunnel"
                    .to_owned(),
            });
        }
        config
            .connect_timeout(CONNECT_MAX)
            .tcp_user_timeout(SILENCE_MAX)
            .keepalives_idle(SILENCE_MAX);
        Ok(Self { config })
    }

    /// A connection, unless nobody lets us in before long.
    async fn reach(&self) -> Result<(Client, Connection<Socket, NoTlsStream>), Error> {
        // The client's own limit is for the way there, and not for who answers at its end.
        let reached = tokio::time::timeout(CONNECT_MAX, self.config.connect(NoTls));
        let reached = reached.await.map_err(|cause| Error::Unreachable {
            cause: Arc::new(cause),
        })?;
        reached.map_err(|error| {
            // The client finds this out alone, and has no code for it.
            let said = error.source().map(ToString::to_string);
            if said.as_deref() == Some("password missing") {
                return Error::Denied {
                    said: "it asks for a password and none was given".to_owned(),
                };
            }
            let error = meaning(error);
            if let Error::Other {
                cause: Some(cause), ..
            } = error
            {
                return Error::Unreachable { cause };
            }
            error
        })
    }

    /// A session that connects when it is first used.
    pub(crate) fn session(&self) -> Session {
        Session {
            server: self.clone(),
            link: None,
            outbox: Outbox::default(),
            begin: None,
        }
    }

    /// Tells of the newest event, whoever wrote it, until it is told to stop.
    pub(crate) fn listen(&self, stop: &watch::Sender<bool>, tell: impl Fn(u64)) {
        let mut stopped = stop.subscribe();
        let Ok(runtime) = runtime() else {
            tracing::error!("could not listen for events of other processes");
            return;
        };
        let listening = async {
            loop {
                if let Err(error) = self.hear(&tell).await {
                    tracing::warn!(
                        error.code = error.code(),
                        "cannot hear of other processes' events: {error}"
                    );
                }
                tokio::time::sleep(POLL_EVERY).await;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => {}
                () = listening => {}
            }
        });
    }

    /// Listens on one connection until it is lost.
    async fn hear(&self, tell: &impl Fn(u64)) -> Result<(), Error> {
        let (client, mut connection) = self.reach().await?;
        let news = tokio::sync::Notify::new();
        let driving = std::future::poll_fn(|cx| {
            loop {
                match connection.poll_message(cx) {
                    Poll::Ready(Some(Ok(AsyncMessage::Notification(_)))) => {
                        news.notify_one();
                    }
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(unreachable(error)),
                    Poll::Ready(None) => return Poll::Ready(lost()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        let asking = async {
            client
                .batch_execute(&format!("{SETTINGS}; LISTEN {CHANNEL}"))
                .await?;
            let newest = client.prepare("SELECT MAX(id) FROM events").await?;
            loop {
                let found: Option<i64> = client.query_one(&newest, &[]).await?.try_get(0)?;
                tell(found.and_then(|id| u64::try_from(id).ok()).unwrap_or(0));
                // Either somebody announced an event, or it is time to look unasked.
                tokio::select! {
                    () = news.notified() => {}
                    () = tokio::time::sleep(POLL_EVERY) => {}
                }
            }
        };
        let asking = async {
            let ended: Result<std::convert::Infallible, tokio_postgres::Error> = asking.await;
            match ended {
                Err(error) => error,
                Ok(never) => match never {},
            }
        };
        tokio::select! {
            error = driving => Err(error),
            failed = asking => Err(meaning(failed)),
        }
    }
}

/// An address as it may be shown, and whether it holds a password.
pub(crate) fn shown(url: &str) -> Result<(String, bool), Error> {
    let Server { config } = Server::named(url, None)?;
    let user = config
        .get_user()
        .map_or(String::new(), |user| format!("{user}@"));
    let hosts: Vec<_> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let port = config
        .get_ports()
        .first()
        .map_or(String::new(), |port| format!(":{port}"));
    let database = config.get_dbname().unwrap_or_default();
    let shown = format!("postgres://{user}{}{port}/{database}", hosts.join(","));
    Ok((shown, config.get_password().is_some()))
}

fn runtime() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Error::Other {
            attempted: "start a runtime for the database's client",
            cause: Some(Arc::new(cause)),
        })
}

/// One connection, made when it is needed and again when it was lost.
pub(crate) struct Session {
    server: Server,
    link: Option<Link>,
    outbox: Outbox,
    /// How the transaction begins, until its first statement takes that along.
    begin: Option<String>,
}

/// An open connection and the statements it has prepared.
struct Link {
    runtime: Runtime,
    client: Client,
    line: Line,
    statements: HashMap<String, Statement>,
    /// Whether a transaction is open.
    open: bool,
}

/// The connection itself, which works only while somebody waits for an answer.
struct Line {
    connection: Pin<Box<Connection<Socket, NoTlsStream>>>,
    /// Whether it was lost.
    ended: bool,
}

impl Link {
    fn connect(server: &Server) -> Result<Self, Error> {
        let runtime = runtime()?;
        let (client, connection) = runtime.block_on(server.reach())?;
        let mut link = Self {
            runtime,
            client,
            line: Line {
                connection: Box::pin(connection),
                ended: false,
            },
            statements: HashMap::new(),
            open: false,
        };
        link.control(SETTINGS)?;
        Ok(link)
    }

    /// Waits for an answer, and does the connection's own work meanwhile.
    fn wait<T>(
        runtime: &Runtime,
        line: &mut Line,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        let mut answer = std::pin::pin!(answer);
        let answered = std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(Some(answer));
            }
            if !line.ended {
                line.ended = line.connection.as_mut().poll(cx).is_ready();
            }
            match answer.as_mut().poll(cx) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                // Who would have answered is gone, and the client itself would wait on.
                Poll::Pending if line.ended => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        });
        // Within the runtime, whose clock it goes by.
        let answered = runtime.block_on(async { tokio::time::timeout(ANSWER_MAX, answered).await });
        let Ok(answered) = answered else {
            // A server that is stopped keeps its connections; this one is of no use any more.
            line.ended = true;
            return Err(lost());
        };
        answered.ok_or_else(lost)?.map_err(meaning)
    }

    fn control(&mut self, sql: &str) -> Result<(), Error> {
        Self::wait(
            &self.runtime,
            &mut self.line,
            self.client.batch_execute(sql),
        )
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = Self::wait(&self.runtime, &mut self.line, self.client.prepare(sql))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Session {
    /// The connection, with a transaction begun on it.
    fn begun(&mut self) -> Result<&mut Link, Error> {
        let link = self.link.as_mut().ok_or_else(lost)?;
        if let Some(begin) = self.begin.take() {
            // Also when a lock is not to be had in time: the transaction was begun before it.
            link.open = true;
            link.control(&begin)?;
        }
        if link.open { Ok(link) } else { Err(lost()) }
    }

    fn watched<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        run(self).inspect_err(|error| self.outbox.failed = Some(error.clone()))
    }

    fn connected(&mut self) -> Result<&mut Link, Error> {
        if self
            .link
            .as_ref()
            .is_some_and(|link| link.client.is_closed() || link.line.ended)
        {
            self.link = None;
        }
        if self.link.is_none() {
            self.link = Some(Link::connect(&self.server)?);
        }
        self.link.as_mut().ok_or_else(lost)
    }

    /// Runs statements as they are: for migrations, which also begin and end themselves.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), Error> {
        let link = self.connected()?;
        link.control(sql)?;
        link.open = sql != "COMMIT" && sql != "ROLLBACK";
        Ok(())
    }
}

impl Tx for Session {
    fn execute(&mut self, sql: &str, params: &[Value]) -> Result<usize, Error> {
        self.watched(|session| {
            session.outbox.wrote |= writes(sql);
            let link = session.begun()?;
            let statement = link.prepared(sql)?;
            let params = parameters(&statement, params);
            let changed = link.client.execute(&statement, &params);
            let changed = Link::wait(&link.runtime, &mut link.line, changed)?;
            Ok(usize::try_from(changed).unwrap_or(usize::MAX))
        })
    }

    fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>, Error> {
        self.watched(|session| {
            session.outbox.wrote |= writes(sql);
            let link = session.begun()?;
            let statement = link.prepared(sql)?;
            let params = parameters(&statement, params);
            let rows = link.client.query(&statement, &params);
            let rows = Link::wait(&link.runtime, &mut link.line, rows)?;
            rows.iter().map(read).collect()
        })
    }

    fn queries(&mut self, sql: &str, sets: &[Vec<Value>]) -> Result<Vec<Vec<Row>>, Error> {
        self.watched(|session| {
            session.outbox.wrote |= writes(sql);
            let link = session.begun()?;
            let statement = link.prepared(sql)?;
            let sets: Vec<_> = sets
                .iter()
                .map(|params| parameters(&statement, params))
                .collect();
            // All are on their way before the first is answered.
            let all = join_all(
                sets.iter()
                    .map(|params| link.client.query(&statement, params)),
            );
            let all = async { all.await.into_iter().collect::<Result<Vec<_>, _>>() };
            let found = Link::wait(&link.runtime, &mut link.line, all)?;
            found
                .iter()
                .map(|rows| rows.iter().map(read).collect())
                .collect()
        })
    }

    fn batch(&mut self, sql: &str, sets: &[Vec<Value>]) -> Result<Vec<usize>, Error> {
        self.watched(|session| {
            session.outbox.wrote |= writes(sql);
            let link = session.begun()?;
            let statement = link.prepared(sql)?;
            let sets: Vec<_> = sets
                .iter()
                .map(|params| parameters(&statement, params))
                .collect();
            // All are on their way before the first is answered.
            let all = join_all(
                sets.iter()
                    .map(|params| link.client.execute(&statement, params)),
            );
            let all = async { all.await.into_iter().collect::<Result<Vec<_>, _>>() };
            let changed = Link::wait(&link.runtime, &mut link.line, all)?;
            let counts = changed.into_iter();
            Ok(counts
                .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
                .collect())
        })
    }

    fn hold(&mut self, thing: &str) -> Result<(), Error> {
        self.query(
            "SELECT CAST(pg_advisory_xact_lock($1) AS TEXT)",
            &[Value::Int(key(thing))],
        )
        .map(drop)
    }

    fn numbered(&mut self, table: &str, column: &str) -> Result<u64, Error> {
        let sql = format!(
            "SELECT pg_sequence_last_value(CAST(pg_get_serial_sequence('{table}', '{column}') AS regclass))"
        );
        let last = body::first(self, &sql, &[])?.map(|mut row| row.take::<Option<u64>>());
        Ok(last.transpose()?.flatten().unwrap_or(0))
    }

    fn is_alone(&self) -> bool {
        false
    }

    fn renumber(&mut self, table: &str, column: &str, last: u64) -> Result<(), Error> {
        if last == 0 {
            // None was given yet, and a sequence cannot say so.
            return Ok(());
        }
        let sql = format!("SELECT setval(pg_get_serial_sequence('{table}', '{column}'), $1)");
        self.query(&sql, &[last.into()]).map(drop)
    }

    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

impl body::Session for Session {
    fn begin(&mut self, access: &Access) -> Result<(), Error> {
        self.connected()?;
        self.begin = Some(match access {
            Access::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY".to_owned(),
            Access::Write(scopes) => format!("BEGIN; {}", locks(scopes)),
        });
        Ok(())
    }

    fn commit(&mut self, newest: u64) -> Result<(), Error> {
        if self.begin.take().is_some() {
            // Nothing was asked, so nothing was begun.
            return Ok(());
        }
        let link = self.begun()?;
        if newest > 0 {
            link.control(&format!("NOTIFY {CHANNEL}, '{newest}'"))?;
        }
        link.open = false;
        link.control("COMMIT").map_err(|error| {
            if let Error::Unreachable { cause } = error {
                return Error::Unsure { cause };
            }
            error
        })
    }

    fn undo(&mut self) {
        self.outbox = Outbox::default();
        self.begin = None;
        let Some(link) = &mut self.link else { return };
        if std::mem::take(&mut link.open) && link.control("ROLLBACK").is_err() {
            // A new connection has no transaction that would have to be undone.
            self.link = None;
        }
    }
}

/// Statements that lock scopes: everybody takes the same locks in the same order.
fn locks(scopes: &BTreeSet<Scope>) -> String {
    let whole = key("whole");
    if scopes.contains(&Scope::Whole) {
        return format!("SELECT pg_advisory_xact_lock({whole})");
    }
    let clusters: BTreeSet<i64> = scopes
        .iter()
        .filter_map(|scope| match scope {
            Scope::Cluster(cluster) => Some(key(&cluster.to_string())),
            Scope::Whole | Scope::Rows => None,
        })
        .collect();
    if clusters.is_empty() {
        return String::new();
    }
    let mut sql = format!("SELECT pg_advisory_xact_lock_shared({whole})");
    for cluster in clusters {
        sql.push_str(&format!("; SELECT pg_advisory_xact_lock({cluster})"));
    }
    sql
}

/// The number of a lock: the same in every process and every version.
fn key(thing: &str) -> i64 {
    let digest = Sha256::digest(format!("slipway/{thing}"));
    let bytes = digest.iter().take(8);
    bytes.fold(0, |key, byte| (key << 8) | i64::from(*byte))
}

/// The values that a statement names; those beyond are not sent.
fn parameters<'a>(statement: &Statement, values: &'a [Value]) -> Vec<&'a (dyn ToSql + Sync)> {
    let values = values.iter().take(statement.params().len());
    values
        .map(|value| -> &(dyn ToSql + Sync) { value })
        .collect()
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *kind == Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
            Self::Int(number) => <i64 as ToSql>::to_sql_checked(number, kind, out),
            // The one character that PostgreSQL cannot keep.
            Self::Text(text) if text.contains('\0') => {
                text.replace('\0', "\u{fffd}").to_sql_checked(kind, out)
            }
            Self::Text(text) => <String as ToSql>::to_sql_checked(text, kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn read(row: &tokio_postgres::Row) -> Result<Row, Error> {
    let value = |at: usize, kind: &Type| {
        Ok::<_, tokio_postgres::Error>(match *kind {
            Type::INT8 => row.try_get::<_, Option<i64>>(at)?.into(),
            Type::INT4 => row.try_get::<_, Option<i32>>(at)?.map(i64::from).into(),
            _ => row.try_get::<_, Option<String>>(at)?.into(),
        })
    };
    let columns = row.columns().iter().enumerate();
    let values = columns.map(|(at, column)| value(at, column.type_()));
    values
        .collect::<Result<_, _>>()
        .map(Row::new)
        .map_err(meaning)
}

fn lost() -> Error {
    Error::Unreachable {
        cause: Arc::new(std::io::Error::from(std::io::ErrorKind::NotConnected)),
    }
}

fn unreachable(error: tokio_postgres::Error) -> Error {
    Error::Unreachable {
        cause: Arc::new(error),
    }
}

/// Says what an error of PostgreSQL means for us.
fn meaning(error: tokio_postgres::Error) -> Error {
    let Some(code) = error.code().cloned() else {
        let broken = error
            .source()
            .is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        return if error.is_closed() || broken {
            unreachable(error)
        } else {
            Error::Other {
                attempted: "read or write the database",
                cause: Some(Arc::new(error)),
            }
        };
    };
    let said = error.as_db_error().map(|error| error.message().to_owned());
    let class = code.code().get(..2).unwrap_or_default();
    if code == SqlState::DISK_FULL {
        Error::Full
    } else if code == SqlState::READ_ONLY_SQL_TRANSACTION {
        Error::ReadOnly
    } else if matches!(class, "08" | "57") && code != SqlState::QUERY_CANCELED
        || code == SqlState::TOO_MANY_CONNECTIONS
        || code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
    {
        unreachable(error)
    } else if class == "40"
        || code == SqlState::LOCK_NOT_AVAILABLE
        || code == SqlState::QUERY_CANCELED
    {
        Error::Contended {
            cause: Arc::new(error),
        }
    } else if matches!(class, "28" | "3D") || code == SqlState::INSUFFICIENT_PRIVILEGE {
        Error::Denied {
            said: said.unwrap_or_default(),
        }
    } else {
        Error::Other {
            attempted: "read or write the database",
            cause: Some(Arc::new(error)),
        }
    }
}
