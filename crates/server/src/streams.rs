//! Live streams: events and logs as they happen, resumed where a client left off.
//!
//! What all of them share is here: how many there may be, how a client says where it was,
//! how server-sent events are framed, and how a silent stream shows that it lives.
//!
//! **Invariant:** what happens is read from the store once for all who follow it, however
//! many they are (`hub.rs`, `tests/http/streams.rs`).

mod hub;
pub(crate) mod lines;
mod told;

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::extract;
use crate::metrics;
use crate::problem::Problem;

pub(crate) use hub::{Follower, Hub};
pub(crate) use told::Told;

/// How often a silent stream shows that it lives, before proxies take it for dead.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The first words of a stream: how long to wait before coming back after it has ended.
const HELLO: Bytes = Bytes::from_static(b"retry: 2000\n\n");

/// A comment, which every reader skips.
const ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// What a stream tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Events, as server-sent events.
    Events,
    /// Events, over a WebSocket.
    Socket,
    /// Lines of a log.
    Log,
    /// Bytes to a machine and back.
    Relay,
}

impl Kind {
    /// The word in the metrics.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Socket => "websocket",
            Self::Log => "log",
            Self::Relay => "relay",
        }
    }
}

/// The right to follow something, given back when it goes.
pub(crate) struct Seat {
    kind: Kind,
    _permit: OwnedSemaphorePermit,
}

impl Seat {
    pub(crate) fn new(kind: Kind, permit: OwnedSemaphorePermit) -> Self {
        metrics::stream_began(kind.as_str());
        Self {
            kind,
            _permit: permit,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        metrics::stream_ended(self.kind.as_str());
    }
}

/// Something that has frames to send, one piece at a time.
pub(crate) trait Source: Send + 'static {
    /// The next frames; none when the stream has ended.
    ///
    /// A call that is dropped before it ends loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// An answer that goes on for as long as its source does.
pub(crate) fn answer(source: impl Source) -> Response {
    let frames = stream::unfold(source, |mut source| async {
        let piece = tokio::time::timeout(KEEP_ALIVE, source.next()).await;
        let piece = piece.unwrap_or(Some(ALIVE))?;
        Some((Ok::<_, Infallible>(piece), source))
    });
    let mut response = Response::new(Body::from_stream(stream::iter([Ok(HELLO)]).chain(frames)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(api::event::MEDIA_TYPE),
    );
    // Some proxies gather answers before they pass them on, unless they are told not to.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// Appends one frame; what has no id leaves the reader's place as it is.
pub(crate) fn frame(frames: &mut Vec<u8>, id: Option<u64>, event: &str, data: &impl Serialize) {
    let begun = frames.len();
    if let Some(id) = id {
        frames.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    frames.extend_from_slice(format!("event: {event}\ndata: ").as_bytes());
    // JSON of our own types has no line breaks, and cannot fail to be written to memory.
    if serde_json::to_writer(&mut *frames, data).is_err() {
        frames.truncate(begun);
        return;
    }
    frames.extend_from_slice(b"\n\n");
}

/// Whether a stream is asked for: by the query, or else by what the client accepts.
pub(crate) fn wanted(query: Option<bool>, headers: &HeaderMap) -> bool {
    query.unwrap_or_else(|| {
        let accepts = headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        accepts
            .split(',')
            .any(|kind| kind.trim().starts_with(api::event::MEDIA_TYPE))
    })
}

/// The place after which to begin, as the query has it.
pub(crate) fn place(text: Option<&str>) -> Result<Option<u64>, Problem> {
    text.map(|text| read_place("after", text)).transpose()
}

/// The place up to which a client has seen the stream, as it says when it comes back.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let name = HeaderName::from_static("last-event-id");
    extract::text_of(headers, &name, "Last-Event-ID")?
        .filter(|text| !text.is_empty())
        .map(|text| read_place("Last-Event-ID", text))
        .transpose()
}

fn read_place(parameter: &str, text: &str) -> Result<u64, Problem> {
    extract::number(text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Problem::place(
            parameter,
            format!(
                "`{}` is not a place, which is a whole number",
                shown.escape_debug()
            ),
        )
    })
}
