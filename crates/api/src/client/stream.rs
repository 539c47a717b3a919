//! The live stream of events, resumed where it broke.
//!
//! Events mean "look soon": whoever listens refetches what it shows. So the stream does not
//! end when the server restarts; it says that it was lost, waits a little longer each time,
//! and goes on after the last event it saw.

use super::{Client, Error};
use crate::event::{self, EventView};
use crate::sse::{Item, Parser};
use reqwest::header::ACCEPT;
use reqwest::{Method, Response};
use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// The longest silence of a living stream: servers send a comment well within it.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// How long a server may take to begin the stream.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(15);

/// The first wait before connecting again; doubled each time.
const BACKOFF_MIN: Duration = Duration::from_millis(250);

/// The longest wait before connecting again: soon enough for somebody who watches.
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// What a stream has to say.
#[derive(Debug)]
pub enum Signal {
    /// The stream begins, or goes on after it was lost.
    Open,
    /// Something happened.
    Event(EventView),
    /// Something happened that this version cannot read.
    Unknown,
    /// The connection is gone; the next call waits and connects again.
    Lost(Error),
}

/// A live stream of events.
///
/// Dropping a call of [`Events::next`] before it ends loses nothing.
pub struct Events {
    client: Client,
    after: Option<u64>,
    state: State,
    backoff: Duration,
    begun: bool,
    parser: Parser,
    /// What was read and not handed out yet, each with the id to resume after.
    ready: VecDeque<(Option<u64>, Signal)>,
}

enum State {
    Waiting(Instant),
    Connecting(Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>>),
    Open(Response),
}

impl Events {
    pub(super) fn new(client: Client, after: Option<u64>) -> Self {
        Self {
            client,
            after,
            state: State::Waiting(Instant::now()),
            backoff: BACKOFF_MIN,
            begun: false,
            parser: Parser::default(),
            ready: VecDeque::new(),
        }
    }

    /// The id of the last event that was handed out.
    pub const fn after(&self) -> Option<u64> {
        self.after
    }

    /// Waits for the next signal.
    ///
    /// Fails when the stream could not even begin, and when the server refuses it: another
    /// try would end the same way.
    pub async fn next(&mut self) -> Result<Signal, Error> {
        loop {
            if let Some((id, signal)) = self.ready.pop_front() {
                self.after = id.or(self.after);
                return Ok(signal);
            }
            match &mut self.state {
                State::Waiting(until) => {
                    sleep_until(*until).await;
                    self.state =
                        State::Connecting(Box::pin(connect(self.client.clone(), self.after)));
                }
                State::Connecting(connecting) => match connecting.await {
                    Ok(response) => {
                        self.begun = true;
                        self.backoff = BACKOFF_MIN;
                        self.parser = Parser::default();
                        self.state = State::Open(response);
                        return Ok(Signal::Open);
                    }
                    Err(error) => return self.lost(error),
                },
                State::Open(response) => match timeout(SILENCE_MAX, response.chunk()).await {
                    Ok(Ok(Some(piece))) => {
                        self.ready
                            .extend(self.parser.push(&piece).into_iter().map(read));
                    }
                    Ok(Err(cause)) => {
                        let error = self.client.transport(cause);
                        return self.lost(error);
                    }
                    Ok(Ok(None)) | Err(_) => {
                        let server = self.client.server().to_owned();
                        return self.lost(Error::Ended { server });
                    }
                },
            }
        }
    }

    fn lost(&mut self, error: Error) -> Result<Signal, Error> {
        self.state = State::Waiting(Instant::now() + self.backoff);
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        if self.begun && error.passes() {
            Ok(Signal::Lost(error))
        } else {
            Err(error)
        }
    }
}

/// Asks for the stream and waits until it begins.
async fn connect(client: Client, after: Option<u64>) -> Result<Response, Error> {
    let mut request = client
        .endless(Method::GET, &["events"])
        .header(ACCEPT, event::MEDIA_TYPE);
    if let Some(after) = after {
        request = request.header("last-event-id", after.to_string());
    }
    let ended = || Error::Ended {
        server: client.server().to_owned(),
    };
    timeout(BEGIN_TIMEOUT, client.send(request))
        .await
        .map_err(|_| ended())?
}

fn read(item: Item) -> (Option<u64>, Signal) {
    match item {
        Item::Message { id, data } => {
            let signal = serde_json::from_str(&data).map_or(Signal::Unknown, Signal::Event);
            (id.and_then(|id| id.parse().ok()), signal)
        }
        Item::TooLong => (None, Signal::Unknown),
    }
}
