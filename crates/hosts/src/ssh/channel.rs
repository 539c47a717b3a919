//! Channels over an open connection: for a program, or to a host behind this one.

use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{Channel, ChannelOpenFailure};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::Door;
use super::connection::{Connection, SESSIONS};
use super::pool::Inner;
use crate::error::{Error, Kind};

/// How often to ask again a host that has no session to spare.
const AGAIN: Duration = Duration::from_millis(20);

pub(super) type Opened = Result<Channel<Msg>, russh::Error>;

/// Opens a channel to the end, also when nobody waits for it any more: one that the host opened
/// and nobody closes would take a place of the few there are.
async fn opened(
    inner: &Arc<Inner>,
    opening: impl Future<Output = Opened> + Send + 'static,
) -> Opened {
    let (give, take) = oneshot::channel();
    inner.background(async move {
        if let Err(Ok(unwanted)) = give.send(opening.await) {
            // Where it cannot be closed the connection is gone.
            drop(unwanted.close().await);
        }
    });
    take.await.unwrap_or(Err(russh::Error::Disconnect))
}

/// Why there is no channel for a program.
pub(super) enum NoChannel {
    /// The connection is of no use any more; nothing was sent.
    Dead(String),
    /// The host does not want to.
    Refused(String),
}

/// Opens a channel for a program, waiting for a place where the host has none.
pub(super) async fn session(
    inner: &Arc<Inner>,
    connection: &Arc<Connection>,
) -> Result<Channel<Msg>, NoChannel> {
    let patience = inner.limits.authentication;
    let mut until = Instant::now() + patience;
    loop {
        let over = Arc::clone(connection);
        let opening = opened(
            inner,
            async move { over.handle.channel_open_session().await },
        );
        match timeout(patience, opening).await {
            Ok(Ok(channel)) => return Ok(channel),
            Ok(Err(russh::Error::ChannelOpenFailure(reason))) => {
                // Others of ours hold places that they will give back, however long that takes.
                if connection.sessions.available_permits() + 1 < SESSIONS {
                    until = Instant::now() + patience;
                } else if Instant::now() >= until {
                    let why = connection.refusal();
                    return Err(NoChannel::Refused(format!("{reason:?} {why}")));
                }
                // Woken early when one ends, but others may end that we do not know of.
                drop(timeout(AGAIN, connection.freed.notified()).await);
            }
            Ok(Err(_)) => return Err(NoChannel::Dead(connection.why())),
            // Others may still get answers: it is not closed, only not used again.
            Err(_) => return Err(NoChannel::Dead("it does not answer".to_owned())),
        }
    }
}

/// Opens a channel to an address and port, as the host of the connection sees them.
pub(super) async fn forward(
    inner: &Arc<Inner>,
    connection: &Arc<Connection>,
    host: String,
    port: u16,
) -> Opened {
    let over = Arc::clone(connection);
    let opening = opened(inner, async move {
        let from = "127.0.0.1";
        over.handle
            .channel_open_direct_tcpip(host, u32::from(port), from, 0)
            .await
    });
    opening.await
}

/// Opens a channel to a host behind this one.
pub(super) async fn tunnel(
    inner: &Arc<Inner>,
    connection: &Arc<Connection>,
    door: &Door,
) -> Result<Channel<Msg>, Error> {
    let opening = forward(inner, connection, door.host.to_string(), door.port);
    opening.await.map_err(|error| {
        let why = connection.refusal();
        let away = ["timed out", "No route", "unreachable"];
        let russh::Error::ChannelOpenFailure(reason) = &error else {
            return Error::new(Kind::Lost, format!("could not connect to {door}: {error}"));
        };
        let kind = if *reason == ChannelOpenFailure::AdministrativelyProhibited {
            Kind::NoPassage
        } else if away.iter().any(|word| why.contains(word)) {
            Kind::Silent
        } else {
            Kind::Refused
        };
        let what = format!("could not connect to {door}: the jump host says: {reason:?} {why}");
        Error::new(kind, what)
    })
}
