//! Asking web servers: bounded in time and size, going on where it was cut off.

use super::secure::Secure;
use super::trouble::Trouble;
use reqwest::{StatusCode, Url, header};
use std::time::Duration;

/// How long web servers may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// To accept a connection.
    pub connect: Duration,
    /// To say anything at all, at the beginning and between two pieces.
    pub silence: Duration,
    /// For the whole of one answer; one that drips is as useless as one that is silent.
    pub whole: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            whole: Duration::from_hours(1),
        }
    }
}

/// Asks web servers.
#[derive(Debug, Clone)]
pub(super) struct Web {
    client: reqwest::Client,
    patience: Patience,
}

/// The beginning of an answer.
pub(super) struct Answer {
    body: Body,
    /// The byte of the artifact that the body begins with.
    pub(super) from: u64,
    /// The bytes of the whole artifact, where it says so.
    pub(super) size: Option<u64>,
}

/// Where the rest of an answer comes from.
enum Body {
    Plain(reqwest::Response),
    Secure(Secure),
}

impl Web {
    /// Prepares to ask.
    pub(super) fn new(patience: Patience) -> Result<Self, crate::error::Error> {
        let client = reqwest::Client::builder()
            .connect_timeout(patience.connect)
            .read_timeout(patience.silence)
            .timeout(patience.whole)
            // A server may hang up between two requests, and one more connection costs little.
            .pool_max_idle_per_host(0)
            .build();
        let web = |client| Self { client, patience };
        client.map(web).map_err(|error| {
            let what = format!("could not prepare to ask web servers: {}", causes(&error));
            crate::error::Error::new(crate::error::Kind::SourceAway, what)
        })
    }

    /// Asks for a file from some byte on.
    pub(super) async fn get(&self, url: &Url, from: u64) -> Result<Answer, Trouble> {
        if url.scheme() == "https" {
            return Ok(Answer {
                body: Body::Secure(Secure::get(url, self.patience)?),
                from: 0,
                size: None,
            });
        }
        let mut response = self.ask(url, from).await?;
        if from > 0 && response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            // It has less than we have: one of us is wrong, so from the beginning.
            response = self.ask(url, 0).await?;
        }
        let status = response.status();
        if status == StatusCode::PARTIAL_CONTENT && from > 0 {
            let (start, size) = range(&response)
                .filter(|(start, _)| *start == from)
                .ok_or_else(|| Trouble::Away("it answers with another part".to_owned()))?;
            return Ok(Answer {
                body: Body::Plain(response),
                from: start,
                size,
            });
        }
        if status == StatusCode::OK {
            let size = response.content_length();
            return Ok(Answer {
                body: Body::Plain(response),
                from: 0,
                size,
            });
        }
        let why = format!("it answers {status}");
        // What asking again cannot change is as good as not there.
        let asked_wrongly = status.is_client_error()
            && status != StatusCode::TOO_MANY_REQUESTS
            && status != StatusCode::REQUEST_TIMEOUT;
        Err(if asked_wrongly {
            Trouble::Absent(why)
        } else {
            Trouble::Away(why)
        })
    }

    async fn ask(&self, url: &Url, from: u64) -> Result<reqwest::Response, Trouble> {
        let mut request = self.client.get(url.clone());
        request = request.header(header::ACCEPT_ENCODING, "identity");
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        request.send().await.map_err(|error| away(&error))
    }

    /// All of a small file.
    pub(super) async fn small(&self, url: &Url, most: usize) -> Result<Vec<u8>, Trouble> {
        let mut answer = self.get(url, 0).await?;
        let mut text = Vec::new();
        while let Some(piece) = answer.next().await? {
            text.extend_from_slice(&piece);
            if text.len() > most {
                return Err(Trouble::garbage(format!("it has more than {most} bytes")));
            }
        }
        Ok(text)
    }
}

impl Answer {
    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        match &mut self.body {
            Body::Plain(response) => match response.chunk().await {
                Ok(piece) => Ok(piece.map(Into::into)),
                Err(error) => Err(away(&error)),
            },
            Body::Secure(secure) => secure.next().await,
        }
    }
}

/// The first byte and the whole length of `Content-Range: bytes 5-9/10`.
fn range(response: &reqwest::Response) -> Option<(u64, Option<u64>)> {
    let text = response
        .headers()
        .get(header::CONTENT_RANGE)?
        .to_str()
        .ok()?;
    let (part, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = part.split_once('-')?;
    Some((start.parse().ok()?, whole.parse().ok()))
}

fn away(error: &reqwest::Error) -> Trouble {
    if error.is_redirect() {
        return Trouble::Absent(causes(error));
    }
    Trouble::Away(causes(error))
}

/// An error with its causes, without the address, which is told beside it.
fn causes(error: &reqwest::Error) -> String {
    let mut told = Vec::new();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = next {
        told.push(error.to_string());
        next = error.source();
    }
    told.dedup();
    if error.is_timeout() {
        "it does not answer in time".to_owned()
    } else if told.is_empty() {
        error.to_string()
    } else {
        told.join(": ")
    }
}
