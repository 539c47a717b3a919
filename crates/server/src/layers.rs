//! What every request passes: an id, a span, a stopwatch, a limit, and a net for panics.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use crate::metrics;
use crate::problem::Problem;

/// The header that carries a request's id, in both directions.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken over from a client.
const REQUEST_ID_LEN_MAX: usize = 64;

/// What a browser may do with our pages: load our own style, script and pictures, talk to
/// us, post forms to us, and nothing else.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// The id of one request, for whoever writes about it.
#[derive(Clone)]
struct RequestId(HeaderValue);

impl RequestId {
    /// Takes over the client's id where it is plain, else counts on from a random start.
    fn of(request: &Request) -> Self {
        static START: LazyLock<String> = LazyLock::new(|| {
            let mut bytes = [0; 4];
            if getrandom::fill(&mut bytes).is_err() {
                // The ids of two runs may meet then, which harms nobody.
                bytes = std::process::id().to_be_bytes();
            }
            crate::hex(&bytes)
        });
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let plain = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            (1..=REQUEST_ID_LEN_MAX).contains(&bytes.len())
                && bytes
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        };
        request
            .headers()
            .get(REQUEST_ID)
            .filter(plain)
            .cloned()
            .map_or_else(
                || {
                    let count = COUNT.fetch_add(1, Ordering::Relaxed);
                    let text = format!("{}-{count}", *START);
                    Self(
                        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("request")),
                    )
                },
                Self,
            )
    }

    fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Gives the request its id and its span, measures it, and catches what panics in it.
pub(crate) async fn observe(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = RequestId::of(&request);
    let method = request.method().clone();
    let path = matched(&request);
    let span = tracing::info_span!(
        "request",
        request.id = id.as_str(),
        http.method = %method,
        http.route = path.as_str(),
        http.status = tracing::field::Empty
    );
    let mut response = async {
        let response = AssertUnwindSafe(next.run(request))
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| fallen(&id, &*panic));
        answered(response.status(), begun.elapsed());
        response
    }
    .instrument(span)
    .await;
    metrics::request(&method, path, response.status(), begun.elapsed());
    response.headers_mut().insert(REQUEST_ID, id.0);
    response
}

/// Says in the log how a request ended: aloud only where the fault is ours.
fn answered(status: StatusCode, took: Duration) {
    tracing::Span::current().record("http.status", status.as_u16());
    let took = took.as_millis();
    if status.is_server_error() {
        tracing::warn!(took_ms = took, "request answered with {status}");
    } else {
        tracing::debug!(took_ms = took, "request answered with {status}");
    }
}

/// Headers that keep browsers from guessing, framing and remembering.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Gives up on a request that takes longer than `limit`; streams have begun long before.
pub(crate) async fn limit(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    tokio::time::timeout(limit, next.run(request))
        .await
        .unwrap_or_else(|_| Problem::slow(limit.as_secs()).into_response())
}

/// The answer to a path that nobody knows.
pub(crate) async fn no_route(request: Request) -> Problem {
    Problem::no_route(request.uri().path())
}

/// The answer to a method that the path does not know.
pub(crate) async fn no_method(request: Request) -> Problem {
    Problem::method(request.method().as_str(), request.uri().path())
}

/// The route as it was declared: few values, so that metrics stay small.
fn matched(request: &Request) -> String {
    let path = request.extensions().get::<MatchedPath>();
    path.map_or("unknown", MatchedPath::as_str).to_owned()
}

/// What is answered when a handler panicked: the sentence goes to the log, the id to both.
fn fallen(id: &RequestId, panic: &(dyn Any + Send)) -> Response {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(panic = said, "a request handler panicked");
    Problem::bug(id.as_str()).into_response()
}

/// Whether a request can change anything.
pub(crate) fn reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}
