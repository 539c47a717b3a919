//! One session: a connection, the transaction on it, and the locks it begins with.

use super::meaning::{lost, meaning};
use super::values::{parameters, read};
use super::{CHANNEL, SETTINGS, Server, runtime};
use crate::body::{self, Access, Outbox, Row, Scope, Tx, Value, writes};
use crate::error::Error;
use futures_util::future::join_all;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, Connection, Socket, Statement};

/// How long an answer may take: longer than the server allows itself for any statement, so that
/// only a server that does nothing at all is given up.
const ANSWER_MAX: Duration = Duration::from_secs(40);

impl Server {
    /// A session that connects when it is first used.
    pub(crate) fn session(&self) -> Session {
        Session {
            server: self.clone(),
            link: None,
            outbox: Outbox::default(),
            begin: None,
        }
    }
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
