//! PostgreSQL, the body for many processes: connections, transactions, and what its errors mean.
//!
//! Each session is a connection on a thread of its own; the client library is
//! asynchronous and is driven by that thread alone. Transactions read what is committed.
//! What must not change meanwhile is locked by scope, in one order for everybody, before
//! the first question of a transaction runs.
//!
//! **Invariant:** everything that is particular to PostgreSQL is here and in `migrations`.

mod meaning;
mod octopod;
mod session;
mod values;

use crate::error::Error;
use crate::migrations;
use meaning::{lost, meaning, unreachable};
use model::secret::Secret;
pub use octopod::{Octopod, OctopodError};
pub(crate) use session::Session;
use std::error::Error as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_postgres::config::Host;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};

/// How long a server may take to accept us.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long what we sent may stay unacknowledged before the connection counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(15);

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
        } else if found < migrations::FORMAT {
            return Err(Error::Older {
                found,
                needed: migrations::FORMAT,
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

/// Host, port, database and user of an address.
pub(crate) fn parts(url: &str) -> Option<[String; 4]> {
    let Server { config } = Server::named(url, None).ok()?;
    let host = match config.get_hosts().first()? {
        Host::Tcp(name) => name.clone(),
        // What is reached through a socket is this machine.
        Host::Unix(_) => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let (database, user) = (config.get_dbname()?, config.get_user().unwrap_or_default());
    Some([host, port.to_string(), database.to_owned(), user.to_owned()])
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
