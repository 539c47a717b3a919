//! One program on one host: its text goes in, its lines come out, its end is judged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::channel::{self, NoChannel};
use super::connection::Connection;
use super::copy::Feed;
use super::frame::{self, Input};
use super::output::Output;
use super::pool::Inner;
use super::verdict::{self, Ended};
use super::{Connections, Door, Keys, Log};
use crate::error::{Error, Kind};
use crate::program::{Program, Report};

/// How long to wait for more output of a program that ended: what it left running may hold its
/// output open for ever.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// What is asked of a host.
pub(super) struct Order<'a> {
    pub door: &'a Door,
    pub keys: &'a dyn Keys,
    pub program: &'a Program,
    /// What the program reads, if it reads.
    pub feed: Option<Feed<'a>>,
}

impl Connections {
    /// Runs a program on a host as root; its lines for people go to the log as they come.
    ///
    /// It ends with an error when the program does not end well or in time, and soon after
    /// `cancel` completes; then nothing of the program is left running. Dropping it does the
    /// same, without waiting for it.
    pub async fn run(
        &self,
        door: &Door,
        keys: &dyn Keys,
        program: &Program,
        log: Log<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<Report, Error> {
        let order = Order {
            door,
            keys,
            program,
            feed: None,
        };
        self.order(order, log, cancel).await
    }

    pub(super) async fn order(
        &self,
        order: Order<'_>,
        log: Log<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<Report, Error> {
        tokio::pin!(cancel);
        let (door, title) = (order.door, order.program.title.as_str());
        let mut talk = tokio::select! {
            biased;
            () = &mut cancel => return Err(verdict::called_off(door, title)),
            talk = self.talk(door, order.keys, title) => talk?,
        };
        let mut output = Output::new(log);
        let ended = tokio::select! {
            biased;
            () = &mut cancel => None,
            () = sleep(order.program.limit) => Some(Err(Kind::Hung)),
            ended = talk.drive(&order, &mut output) => Some(Ok(ended)),
        };
        let ended = match ended {
            Some(Ok(ended)) => ended?,
            unwanted => {
                let gone = talk.end(&mut output).await;
                drop(output.finish());
                return Err(if unwanted.is_some() {
                    verdict::hung(door, order.program, gone)
                } else {
                    verdict::called_off(door, title)
                });
            }
        };
        let why = talk.connection.why();
        verdict::judge(door, title, &ended, output.finish(), &why)
    }

    /// A channel of its own for a program, when it is its turn.
    pub(super) async fn talk(
        &self,
        door: &Door,
        keys: &dyn Keys,
        title: &str,
    ) -> Result<Talk, Error> {
        let inner = &self.inner;
        let mut again = true;
        loop {
            let connection = inner.connection(door, keys).await?;
            keys.waiting(false);
            let session = turn(&connection.sessions).await?;
            // The host's turn first: who waits for a busy host must not hold up others.
            let program = turn(&inner.programs).await?;
            keys.waiting(true);
            match channel::session(inner, &connection).await {
                Ok(channel) => {
                    let (read, write) = channel.split();
                    return Ok(Talk {
                        read,
                        write: Some(write),
                        connection,
                        inner: Arc::clone(inner),
                        _turns: [session, program],
                    });
                }
                // It may have been dead for long, which nobody notices before using it.
                Err(NoChannel::Dead(_)) if again => {
                    again = false;
                    inner.discard(keys.scope(door), door, &connection).await;
                }
                Err(NoChannel::Dead(why)) => {
                    return Err(Error::new(
                        Kind::Lost,
                        format!("could not begin `{title}` on {door}: {why}"),
                    ));
                }
                Err(NoChannel::Refused(why)) => {
                    return Err(Error::new(
                        Kind::Failed,
                        format!("could not begin `{title}` on {door}: it opens no session: {why}"),
                    ));
                }
            }
        }
    }
}

async fn turn(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    let turn = Arc::clone(of).acquire_owned().await;
    turn.map_err(|_| Error::new(Kind::Lost, "all connections are closed"))
}

/// A program that is being run. When dropped before its end it is ended on the host.
pub(super) struct Talk {
    pub read: ChannelReadHalf,
    /// None when there is nothing to be closed any more.
    write: Option<ChannelWriteHalf<Msg>>,
    pub connection: Arc<Connection>,
    inner: Arc<Inner>,
    _turns: [OwnedSemaphorePermit; 2],
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.connection.touch();
        self.connection.freed.notify_one();
        if let Some(write) = self.write.take() {
            // Where it cannot be closed the connection is gone, and with it the program.
            self.inner
                .background(async move { drop(write.close().await) });
        }
    }
}

impl Talk {
    /// Has the host begin a program. That it cannot be sent is told by the other side, too.
    pub(super) async fn begin(&self, command: &str, text: Bytes) {
        if let Some(write) = &self.write
            && write.exec(true, command).await.is_ok()
        {
            drop(write.data_bytes(text).await);
        }
    }

    /// Has the program read something.
    pub(super) async fn say(&self, bytes: Bytes) {
        if let Some(write) = &self.write {
            drop(write.data_bytes(bytes).await);
        }
    }

    /// Has the program run to its end.
    async fn drive(&mut self, order: &Order<'_>, output: &mut Output<'_>) -> Result<Ended, Error> {
        let Some(write) = &self.write else {
            return Ok(Ended::Lost);
        };
        let (ended, closed) = converse(&mut self.read, write, order, output).await?;
        if closed {
            self.write = None;
        }
        Ok(ended)
    }

    /// Tells the host that nobody waits any more, and whether it was seen to obey.
    async fn end(&mut self, output: &mut Output<'_>) -> bool {
        let limit = self.inner.limits.ending;
        let Some(write) = &self.write else {
            return true;
        };
        let gone = timeout(limit, async {
            if write.eof().await.is_err() {
                return false;
            }
            loop {
                match self.read.wait().await {
                    Some(ChannelMsg::Close) => return true,
                    Some(told) => drop(heard(told, output)),
                    None => return false,
                }
            }
        });
        let gone = gone.await.unwrap_or(false);
        if gone {
            self.write = None;
        }
        gone
    }
}

/// Sends and reads at once, so that neither side waits for the other; tells how the program
/// ended, and whether the channel did.
async fn converse(
    read: &mut ChannelReadHalf,
    write: &ChannelWriteHalf<Msg>,
    order: &Order<'_>,
    output: &mut Output<'_>,
) -> Result<(Ended, bool), Error> {
    let ready = Notify::new();
    let sending = send(write, order, &ready);
    tokio::pin!(sending);
    let mut sent = false;
    let mut ended = None;
    loop {
        tokio::select! {
            told = next(read, ended.is_some()) => match told {
                Some(ChannelMsg::Close) => return Ok((ended.unwrap_or(Ended::Lost), true)),
                Some(ChannelMsg::Failure) => return Ok((Ended::Refused, false)),
                Some(told) => ended = heard(told, output).or(ended),
                // What holds the output of an ended program open loses it with the channel.
                None => return Ok((ended.unwrap_or(Ended::Lost), false)),
            },
            done = &mut sending, if !sent => {
                sent = true;
                done?;
            }
        }
        if output.ready() {
            ready.notify_one();
        }
    }
}

/// The next message; none when there will be no more.
async fn next(read: &mut ChannelReadHalf, over: bool) -> Option<ChannelMsg> {
    if over {
        timeout(AFTERWARDS, read.wait()).await.ok().flatten()
    } else {
        read.wait().await
    }
}

/// Takes a message; tells where it is about the end.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's, and open: what is not for us is left out"
)]
pub(super) fn heard(told: ChannelMsg, output: &mut Output<'_>) -> Option<Ended> {
    match told {
        ChannelMsg::Data { data } => output.stdout(&data),
        ChannelMsg::ExtendedData { data, .. } => output.stderr(&data),
        ChannelMsg::ExitStatus { exit_status } => return Some(Ended::Status(exit_status)),
        ChannelMsg::ExitSignal { signal_name, .. } => {
            return Some(Ended::Signal(format!("{signal_name:?}")));
        }
        _ => {}
    }
    None
}

/// Sends the text and then, when the program is ready for it, what it reads.
async fn send(
    write: &ChannelWriteHalf<Msg>,
    order: &Order<'_>,
    ready: &Notify,
) -> Result<(), Error> {
    let input = match &order.feed {
        None => Input::Watched,
        Some(_) => Input::Fed,
    };
    let text = Bytes::from_owner(frame::framed(&order.program.text, input));
    let command = frame::command(&order.door.user);
    if write.exec(true, command).await.is_err() || write.data_bytes(text).await.is_err() {
        return Ok(());
    }
    if let Some(feed) = &order.feed {
        ready.notified().await;
        feed.send(write).await?;
    }
    Ok(())
}
