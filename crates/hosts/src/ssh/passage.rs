//! Byte streams through the connection of a host, to what listens on its loopback address.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use russh::client::Msg;
use russh::{Channel, ChannelOpenFailure, ChannelStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::connection::{self, Connection};
use super::{Connections, Door, Keys, channel};
use crate::error::{Error, Kind};

/// Where it listens, as the host sees it.
const LOOPBACK: &str = "127.0.0.1";

/// A byte stream to what listens on a host. It ends when dropped, and its connection stays open
/// until then.
pub struct Stream {
    /// None when it was dropped.
    channel: Option<ChannelStream<Msg>>,
    connection: Arc<Connection>,
    runtime: Handle,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.touch();
        // The library tells the host from a task, which needs a runtime to be begun in.
        let _inside = self.runtime.enter();
        drop(self.channel.take());
    }
}

impl Stream {
    fn over(channel: Channel<Msg>, connection: Arc<Connection>) -> Self {
        Self {
            channel: Some(channel.into_stream()),
            connection,
            runtime: Handle::current(),
        }
    }

    fn channel(&mut self) -> io::Result<Pin<&mut ChannelStream<Msg>>> {
        let channel = self.channel.as_mut().map(Pin::new);
        channel.ok_or_else(|| io::Error::from(ErrorKind::NotConnected))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(self.channel()?.poll_read(cx, buf))?;
        // A connection that is lost must not look like an end that was wished.
        if buf.filled().len() == before && buf.remaining() > 0 && !self.connection.alive() {
            let lost = io::Error::new(ErrorKind::ConnectionReset, self.connection.why());
            return Poll::Ready(Err(lost));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.channel()?.poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.channel()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.channel()?.poll_shutdown(cx)
    }
}

/// Bytes both ways, over whatever.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Why there is no stream.
enum NoStream {
    /// The connection is of no use any more.
    Dead(String),
    /// The host says no.
    Told(Error),
}

impl Connections {
    /// A byte stream to a port on which something listens on a host, for its own programs alone.
    ///
    /// Many may go through one connection, and they take no place from programs.
    pub async fn passage(&self, door: &Door, keys: &dyn Keys, port: u16) -> Result<Stream, Error> {
        let inner = &self.inner;
        let mut again = true;
        loop {
            let connection = inner.connection(door, keys).await?;
            keys.waiting(true);
            match self.forwarded(&connection, door, port).await {
                Ok(stream) => return Ok(stream),
                Err(NoStream::Told(error)) => return Err(error),
                // It may have been dead for long, which nobody notices before using it.
                Err(NoStream::Dead(_)) if again => {
                    again = false;
                    inner.discard(keys.scope(door), door, &connection).await;
                }
                Err(NoStream::Dead(why)) => {
                    let what = format!("could not reach port {port} of {door}: {why}");
                    return Err(Error::new(Kind::Lost, what));
                }
            }
        }
    }

    /// A byte stream to the SSH server behind a door, for somebody who speaks with it themselves:
    /// nothing was said on it yet.
    pub async fn reach(&self, door: &Door, keys: &dyn Keys) -> Result<Box<dyn Wire>, Error> {
        let inner = &self.inner;
        let limit = inner.limits.connect;
        let via = match &door.jump {
            Some(jump) => Some(inner.passage(door, jump, keys).await?),
            None => None,
        };
        let reached = timeout(limit, async {
            let Some(via) = via else {
                let stream = connection::direct(door).await?;
                return Ok::<Box<dyn Wire>, Error>(Box::new(stream));
            };
            let channel = channel::tunnel(inner, &via, door).await?;
            Ok(Box::new(Stream::over(channel, via)))
        });
        let late = |_| connection::silent(door, limit, "did not answer within");
        reached.await.map_err(late)?
    }

    async fn forwarded(
        &self,
        connection: &Arc<Connection>,
        door: &Door,
        port: u16,
    ) -> Result<Stream, NoStream> {
        let opening = channel::forward(&self.inner, connection, LOOPBACK.to_owned(), port);
        let opened = timeout(self.inner.limits.authentication, opening).await;
        let channel = match opened {
            Ok(Ok(channel)) => channel,
            Ok(Err(russh::Error::ChannelOpenFailure(reason))) => {
                let why = connection.refusal();
                let kind = refused(&reason);
                let what = format!("could not reach port {port} of {door}: {reason:?} {why}");
                return Err(NoStream::Told(Error::new(kind, what.trim_end())));
            }
            Ok(Err(_)) => return Err(NoStream::Dead(connection.why())),
            Err(_) => return Err(NoStream::Dead("it does not answer".to_owned())),
        };
        Ok(Stream::over(channel, Arc::clone(connection)))
    }
}

/// What a host means that opens no way to one of its own ports.
fn refused(reason: &ChannelOpenFailure) -> Kind {
    match reason {
        ChannelOpenFailure::AdministrativelyProhibited => Kind::NoPassage,
        ChannelOpenFailure::ConnectFailed => Kind::NobodyListens,
        ChannelOpenFailure::UnknownChannelType
        | ChannelOpenFailure::ResourceShortage
        | ChannelOpenFailure::Other { .. } => Kind::Failed,
    }
}
