//! A live stream, resumed where it broke.
//!
//! A stream does not end when the server restarts; it says that it was lost, waits a little
//! longer each time, and goes on after the last thing it handed out.

use super::{Client, Error};
use crate::event;
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

/// What comes over the wire.
#[derive(Debug)]
pub(super) enum Heard {
    /// The stream begins, or goes on after it was lost.
    Open,
    /// A message, or the knowledge that there was one.
    Item(Item),
    /// The connection is gone; the next call waits and connects again.
    Lost(Error),
}

/// One live stream.
pub(super) struct Wire {
    client: Client,
    path: Vec<String>,
    after: Option<u64>,
    state: State,
    backoff: Duration,
    begun: bool,
    parser: Parser,
    /// What was read and not handed out yet.
    ready: VecDeque<Item>,
}

enum State {
    Waiting(Instant),
    Connecting(Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>>),
    Open(Response),
}

impl Wire {
    pub(super) fn new(client: Client, path: &[&str], after: Option<u64>) -> Self {
        Self {
            client,
            path: path.iter().map(|segment| (*segment).to_owned()).collect(),
            after,
            state: State::Waiting(Instant::now()),
            backoff: BACKOFF_MIN,
            begun: false,
            parser: Parser::default(),
            ready: VecDeque::new(),
        }
    }

    /// The id of the last message that was handed out.
    pub(super) const fn after(&self) -> Option<u64> {
        self.after
    }

    /// Waits for the next thing; a call that is dropped before it ends loses nothing.
    ///
    /// Fails when the stream could not even begin, and when the server refuses it: another
    /// try would end the same way.
    pub(super) async fn next(&mut self) -> Result<Heard, Error> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.after = place(&item).or(self.after);
                return Ok(Heard::Item(item));
            }
            match &mut self.state {
                State::Waiting(until) => {
                    sleep_until(*until).await;
                    let connecting = connect(self.client.clone(), self.path.clone(), self.after);
                    self.state = State::Connecting(Box::pin(connecting));
                }
                State::Connecting(connecting) => match connecting.await {
                    Ok(response) => {
                        self.begun = true;
                        self.backoff = BACKOFF_MIN;
                        self.parser = Parser::default();
                        self.state = State::Open(response);
                        return Ok(Heard::Open);
                    }
                    Err(error) => return self.lost(error),
                },
                State::Open(response) => match timeout(SILENCE_MAX, response.chunk()).await {
                    Ok(Ok(Some(piece))) => self.ready.extend(self.parser.push(&piece)),
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

    fn lost(&mut self, error: Error) -> Result<Heard, Error> {
        self.state = State::Waiting(Instant::now() + self.backoff);
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        if self.begun && error.passes() {
            Ok(Heard::Lost(error))
        } else {
            Err(error)
        }
    }
}

/// Asks for the stream and waits until it begins.
async fn connect(client: Client, path: Vec<String>, after: Option<u64>) -> Result<Response, Error> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let mut request = client
        .endless(Method::GET, &path)
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

fn place(item: &Item) -> Option<u64> {
    match item {
        Item::Message { id, .. } => id.as_ref()?.parse().ok(),
        Item::TooLong => None,
    }
}
