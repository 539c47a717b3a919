//! Whether a server is there, and what time it has.

use super::{ANSWER_TIMEOUT, Client, Error};
use crate::Time;
use reqwest::header::DATE;

/// What a server says of itself without being asked who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// What time it has, to the second.
    pub date: Option<Time>,
}

impl Client {
    /// Whether a server of ours runs there; another program's answer is [`Error::Foreign`].
    pub async fn health(&self) -> Result<Health, Error> {
        let mut url = self.server.clone();
        url.set_path("/healthz");
        let answer = self
            .send(self.http.get(url).timeout(ANSWER_TIMEOUT))
            .await?;
        let date = answer.headers().get(DATE).and_then(|date| {
            let date = jiff::fmt::rfc2822::parse(date.to_str().ok()?).ok()?;
            Some(Time::from(model::time::Timestamp::from_millis(
                date.timestamp().as_millisecond(),
            )))
        });
        let status = answer.status().as_u16();
        // Many programs have such a route; only ours numbers its answers and says just this.
        let ours = answer.headers().contains_key("x-request-id");
        if ours && self.body(answer).await? == b"ok\n" {
            return Ok(Health { date });
        }
        Err(Error::Foreign {
            server: self.server().to_owned(),
            status,
        })
    }
}
