//! Whether an API server is well, and which one it is.

use std::time::Duration;

use kube_client::client::Body;

use super::{Door, answer};
use crate::error::{Error, Kind};

/// What an API server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// All its checks pass.
    Ready,
    /// It answers, and these of its checks fail.
    Failing(Vec<String>),
}

/// How much of a report we read.
const REPORT_MAX: usize = 64 * 1024;

impl Door {
    /// Asks the API server whether it is ready; no answer within `limit` is an error.
    pub async fn health(&self, limit: Duration) -> Result<Health, Error> {
        let asked = tokio::time::timeout(limit, self.report()).await;
        let Ok(report) = asked else {
            return Err(Error::new(
                Kind::Unreachable,
                format!(
                    "could not ask the API server whether it is ready, no answer within {} ms",
                    limit.as_millis()
                ),
            ));
        };
        let (status, text) = report?;
        let failed: Vec<String> = text.lines().filter_map(failed_check).collect();
        match status.as_u16() {
            200..=299 => Ok(Health::Ready),
            500 if !failed.is_empty() => Ok(Health::Failing(failed)),
            code => Err(answer::refused(
                "ask the API server whether it is ready",
                &kube_client::core::Status {
                    code,
                    message: text.lines().last().unwrap_or_default().to_owned(),
                    ..kube_client::core::Status::default()
                },
            )),
        }
    }

    /// The version of the API server, such as `v1.34.4`.
    pub async fn version(&self) -> Result<String, Error> {
        let info = self
            .ask("ask the API server for its version", {
                self.client.apiserver_version()
            })
            .await?;
        Ok(info.git_version)
    }

    async fn report(&self) -> Result<(http::StatusCode, String), Error> {
        let what = "ask the API server whether it is ready";
        let request = http::Request::get("/readyz?verbose")
            .body(Body::empty())
            .map_err(|error| answer::told(what, &kube_client::Error::HttpError(error)))?;
        self.ask(what, async {
            let answer = self.client.send(request).await?;
            let status = answer.status();
            let bytes = answer.into_body().collect_bytes().await?;
            let read = bytes.get(..REPORT_MAX).unwrap_or(&bytes);
            Ok((status, String::from_utf8_lossy(read).into_owned()))
        })
        .await
    }
}

/// The check that a line of a report says has failed.
fn failed_check(line: &str) -> Option<String> {
    let rest = line.strip_prefix("[-]")?;
    Some(rest.split(' ').next().unwrap_or(rest).to_owned())
}
