//! One request to somebody on the web, and what they say to it.

use bytes::Bytes;
use driver::deliver::Carried;
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use model::environment::delivery::Answer;
use model::environment::notify::Address;
use std::sync::Arc;
use std::time::Duration;

/// How much of an answer is read.
const ANSWER_MAX: usize = 16 * 1024;

/// How many characters of its first line are kept.
const SAID_MAX: usize = 200;

/// How long others may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// To accept a connection.
    pub connect: Duration,
    /// For all of it.
    pub whole: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            whole: Duration::from_secs(15),
        }
    }
}

/// Why nobody can be asked at all.
#[derive(Debug, thiserror::Error)]
#[error("could not prepare to speak TLS")]
pub struct Unprepared(#[source] rustls::Error);

/// Asks others. A clone is the same.
#[derive(Clone)]
pub struct Web {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    patience: Patience,
}

/// One request.
pub struct Post<'a> {
    /// To whom.
    pub url: &'a Address,
    /// What it has besides what every request has.
    pub headers: Vec<(&'static str, String)>,
    /// What it says, as JSON.
    pub body: String,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// They answered.
    Answered {
        /// With this status.
        status: StatusCode,
        /// When they want to be asked again, where they said so.
        retry_after: Option<Duration>,
        /// The first line of it.
        said: String,
    },
    /// They did not, and this is why.
    Silent(String),
}

impl Web {
    /// Prepares to ask, with the authorities that this machine trusts.
    pub fn new(patience: Patience) -> Result<Self, Unprepared> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusting = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(rustls_platform_verifier::BuilderVerifierExt::with_platform_verifier)
            .map_err(Unprepared)?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(patience.connect));
        connector.set_nodelay(true);
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(trusting.with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        // Others hang up between two requests, and one more connection costs little.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(https);
        Ok(Self { client, patience })
    }

    /// Sends one request. Nobody is followed who says that they have moved.
    pub async fn post(&self, post: Post<'_>) -> Reply {
        let Ok(uri) = post.url.as_str().parse::<Uri>() else {
            return Reply::Silent("its address cannot be read".to_owned());
        };
        let mut request = Request::post(uri)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "slipway");
        for (name, value) in post.headers {
            request = request.header(name, value);
        }
        let Ok(request) = request.body(Full::new(Bytes::from(post.body))) else {
            return Reply::Silent("the request cannot be written".to_owned());
        };
        let asked = tokio::time::timeout(self.patience.whole, self.asked(request)).await;
        asked.unwrap_or_else(|_| {
            let seconds = self.patience.whole.as_secs_f64();
            Reply::Silent(format!("it did not answer within {seconds} seconds"))
        })
    }

    async fn asked(&self, request: Request<Full<Bytes>>) -> Reply {
        let response = match self.client.request(request).await {
            Ok(response) => response,
            Err(error) => return Reply::Silent(causes(&error)),
        };
        let status = response.status();
        let retry_after = retry_after(response.headers());
        // Whoever says too much, or breaks off, has answered.
        let body = Limited::new(response.into_body(), ANSWER_MAX)
            .collect()
            .await;
        let body = body
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        Reply::Answered {
            status,
            retry_after,
            said: first_line(&body),
        }
    }
}

impl Reply {
    /// What that means for a message, without these texts that must not be seen.
    pub fn carried(self, secrets: &[&[u8]]) -> Carried {
        let (answer, said) = match self {
            Self::Silent(why) => (Answer::Later(None), why),
            Self::Answered {
                status,
                retry_after,
                said,
            } => {
                let colon = if said.is_empty() { "" } else { ": " };
                (
                    judged(status, retry_after),
                    format!("{status}{colon}{said}"),
                )
            }
        };
        let said = secrets
            .iter()
            .fold(said, |said, secret| match std::str::from_utf8(secret) {
                Ok(secret) if !secret.is_empty() => said.replace(secret, "***"),
                Ok(_) | Err(_) => said,
            });
        // Not before: a part of a secret would be left.
        let said = said.chars().take(SAID_MAX).collect();
        Carried { answer, said }
    }
}

/// What a status means.
fn judged(status: StatusCode, retry_after: Option<Duration>) -> Answer {
    match status {
        StatusCode::GONE => Answer::Never,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Answer::Later(retry_after),
        status if status.is_success() => Answer::Taken,
        status if status.is_server_error() => Answer::Later(retry_after),
        _ => Answer::Refused,
    }
}

/// When somebody wants to be asked again: in so many seconds, or at that time.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let date = headers.get(header::DATE)?.to_str().ok()?;
    // By their clock, which need not be ours.
    let now = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    Duration::try_from(at.duration_since(now)).ok()
}

/// The first line of an answer, as one may show it.
fn first_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or_default().chars();
    line.filter(|found| !found.is_control()).collect()
}

/// An error with all that led to it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(&format!(": {next}"));
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_it_is_worth_another_try() {
        let judged = |status| judged(StatusCode::from_u16(status).unwrap(), None);
        assert_eq!(judged(200), Answer::Taken);
        assert_eq!(judged(204), Answer::Taken);
        assert_eq!(judged(410), Answer::Never);
        for later in [408, 429, 500, 502, 503] {
            assert_eq!(judged(later), Answer::Later(None), "{later}");
        }
        for refused in [301, 302, 307, 400, 401, 403, 404, 422] {
            assert_eq!(judged(refused), Answer::Refused, "{refused}");
        }
    }

    #[test]
    fn a_time_to_come_back_is_a_number_or_a_date() {
        let of = |pairs: &[(header::HeaderName, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(name, value.parse().unwrap());
            }
            retry_after(&headers)
        };
        assert_eq!(
            of(&[(header::RETRY_AFTER, "7")]),
            Some(Duration::from_secs(7))
        );
        let date = [
            (header::DATE, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (header::RETRY_AFTER, "Sun, 06 Nov 1994 08:50:07 GMT"),
        ];
        assert_eq!(of(&date), Some(Duration::from_secs(30)));
        assert_eq!(of(&[(header::RETRY_AFTER, "soon")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn what_is_kept_of_an_answer_is_one_line_without_secrets() {
        assert_eq!(first_line(b"\n  no such\x07 hook \nmore"), "no such hook");
        assert_eq!(first_line(&[0xff; 4]).chars().count(), 4);
        let carried = |said: &str| {
            let reply = Reply::Answered {
                status: StatusCode::NOT_FOUND,
                retry_after: None,
                said: said.to_owned(),
            };
            reply.carried(&[b"T0/B0/xyz", b""]).said
        };
        assert_eq!(carried("no hook T0/B0/xyz"), "404 Not Found: no hook ***");
        assert_eq!(carried(&"x".repeat(999)).len(), SAID_MAX);
        let cut = carried(&format!("{}T0/B0/xyz", "x".repeat(180)));
        assert!(!cut.contains("T0"), "{cut}");
    }
}
