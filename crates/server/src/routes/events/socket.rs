//! Events over a WebSocket: the same stream for clients that prefer one.
//!
//! The server speaks and the client listens. A browser sends its cookie with every
//! WebSocket, whoever's page opens it, and no rule of browsers keeps that page from
//! reading along; so a request without a bearer must come from our own pages.

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::SinkExt as _;
use tokio::time::{Instant, sleep_until, timeout};

use crate::problem::Problem;
use crate::streams::{Follower, KEEP_ALIVE, Seat, Told};

/// The longest message that is read: a client has nothing to say but goodbye.
const MESSAGE_BYTES_MAX: usize = 1 << 10;

/// What is read at once; the default of 128 KiB for each of a thousand clients that say
/// nothing would be most of the memory of the server.
const READ_BYTES: usize = 1 << 10;

/// How much is gathered before it is written; a batch of a busy moment fits.
const WRITE_BYTES: usize = 64 << 10;

/// How long a client may take to read what was written, and how long it may be silent:
/// it answers every ping.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// How long a client may take to take leave of us.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

/// Whether a WebSocket is asked for.
pub(super) fn wanted(headers: &HeaderMap) -> bool {
    headers.get_all(header::UPGRADE).iter().any(|value| {
        let value = String::from_utf8_lossy(value.as_bytes());
        value
            .split(',')
            .any(|protocol| protocol.trim().eq_ignore_ascii_case("websocket"))
    })
}

/// Lets pass what is a whole handshake from somebody who may read along.
pub(super) fn admit(
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    headers: &HeaderMap,
) -> Result<WebSocketUpgrade, Problem> {
    if !shows_bearer(headers) && !from_here(headers) {
        let origin = headers
            .get(header::ORIGIN)
            .map(|origin| String::from_utf8_lossy(origin.as_bytes()))
            .map(|origin| origin.chars().take(100).collect::<String>())
            .map_or_else(
                || "a place that does not say which".to_owned(),
                |origin| format!("`{}`", origin.escape_debug()),
            );
        return Err(Problem::other_site(&origin));
    }
    upgrade.map_err(|rejection| Problem::parameter("Upgrade", rejection.body_text()))
}

/// Whether the request shows a token by itself; a browser cannot be made to do so by a page
/// of another site. What it can be made to send is `Basic`.
fn shows_bearer(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|value| {
        let scheme = value.as_bytes().get(..7).unwrap_or_default();
        scheme.eq_ignore_ascii_case(b"bearer ")
    })
}

/// Whether the page that asks is one of ours: its origin names the host that it asks.
fn from_here(headers: &HeaderMap) -> bool {
    let only = |name| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    };
    let (Some(origin), Some(host)) = (only(header::ORIGIN), only(header::HOST)) else {
        return false;
    };
    // Whether it was http or https is known to the proxy in front of us, if there is one.
    let authority = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// Switches to the WebSocket and tells it what happens, until somebody may not know any more.
pub(super) fn answer(
    upgrade: WebSocketUpgrade,
    follower: Follower,
    seat: Seat,
    until: impl Future<Output = ()> + Send + 'static,
) -> Response {
    upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .on_failed_upgrade(|error| tracing::debug!(%error, "a WebSocket did not come about"))
        .on_upgrade(async |mut socket| {
            let code = tokio::select! {
                code = tell(&mut socket, follower) => code,
                () = until => Some((close_code::POLICY, "the token is good no longer")),
            };
            if let Some((code, reason)) = code {
                drop(timeout(GOODBYE_MAX, goodbye(&mut socket, code, reason)).await);
            }
            drop(seat);
        })
}

/// Why the server ends a WebSocket, when it is the one who does.
type End = Option<(u16, &'static str)>;

/// Tells what happens until one side ends it.
async fn tell(socket: &mut WebSocket, mut follower: Follower) -> End {
    let mut heard = Instant::now();
    let mut ping = heard + KEEP_ALIVE;
    loop {
        tokio::select! {
            told = follower.next() => {
                let Some(told) = told else {
                    return Some((close_code::AWAY, "the server stops; come back with the last id"));
                };
                // A client that does not read holds up nobody but itself, and not for ever.
                timeout(SILENCE_MAX, write(socket, &told)).await.ok()?.ok()?;
            }
            said = socket.recv() => match said {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => heard = Instant::now(),
                Some(Ok(Message::Text(_) | Message::Binary(_))) => {
                    return Some((close_code::UNSUPPORTED, "there is nothing to say here"));
                }
                // Also what is too long: what follows it could not be told from it.
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            },
            () = sleep_until(ping) => {
                if heard.elapsed() > SILENCE_MAX {
                    return None;
                }
                ping = Instant::now() + KEEP_ALIVE;
                let sent = socket.send(Message::Ping(Bytes::new()));
                timeout(SILENCE_MAX, sent).await.ok()?.ok()?;
            }
        }
    }
}

/// Writes a batch at once: one message per event, one flush.
async fn write(socket: &mut WebSocket, told: &Told) -> Result<(), axum::Error> {
    for text in told.texts() {
        socket.feed(Message::Text(text)).await?;
    }
    socket.flush().await
}

/// Says why it ends, and waits for the client to say that it understood.
async fn goodbye(socket: &mut WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame {
        code,
        reason: Utf8Bytes::from_static(reason),
    };
    if socket.send(Message::Close(Some(frame))).await.is_ok() {
        while let Some(Ok(_)) = socket.recv().await {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (name.clone(), value)
        });
        pairs.collect()
    }

    #[test]
    fn only_our_own_pages_are_from_here() {
        let from =
            |origin, host| from_here(&headers(&[(header::ORIGIN, origin), (header::HOST, host)]));
        assert!(from("http://127.0.0.1:7077", "127.0.0.1:7077"));
        assert!(from("https://Slipway.example", "slipway.example"));
        for (origin, host) in [
            ("http://127.0.0.1:3000", "127.0.0.1:7077"),
            ("http://evil.example", "slipway.example"),
            ("http://slipway.example.evil", "slipway.example"),
            ("ftp://slipway.example", "slipway.example"),
            ("slipway.example", "slipway.example"),
            ("null", "slipway.example"),
        ] {
            assert!(!from(origin, host), "{origin} {host}");
        }
        assert!(!from_here(&headers(&[(header::HOST, "here")])));
        assert!(!from_here(&headers(&[(header::ORIGIN, "http://here")])));
    }

    #[test]
    fn what_a_foreign_page_can_make_a_browser_send_is_no_bearer() {
        let shows = |value| shows_bearer(&headers(&[(header::AUTHORIZATION, value)]));
        assert!(shows("Bearer slipway_a") && shows("bearer slipway_a"));
        assert!(!shows("Basic YTpi") && !shows("Bearer") && !shows(""));
    }
}
