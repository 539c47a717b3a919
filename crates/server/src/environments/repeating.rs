//! Requests that carry a key: what was answered to one is answered to its repeats.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use model::environment::EnvironmentName;
use model::name::Name;
use store::{Ask, EnvironmentError, Repeat};
use utoipa::IntoParams;

use super::view::accepted;
use crate::app::App;
use crate::extract;
use crate::problem::Problem;

/// How the contract shows the key.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only its documentation is read")]
pub(crate) struct KeyHeader {
    /// Makes a repeat of the request harmless.
    #[param(
        rename = "Idempotency-Key",
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]+$"
    )]
    key: Option<String>,
}

/// How the contract shows what a request is meant for.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only its documentation is read")]
pub(crate) struct MatchHeader {
    /// The generation it is meant for.
    #[param(rename = "If-Match")]
    generation: Option<u64>,
}

/// The head of a request that changes something: what it is meant for, and the key that makes a
/// repeat of it harmless.
pub(crate) struct Head {
    key: Option<String>,
    text: String,
    /// The generation that it is meant for, where it says so.
    pub(crate) expected: Option<u64>,
}

impl<S: Send + Sync> FromRequestParts<S> for Head {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let key = extract::idempotency_key(&parts.headers)?;
        let expected = extract::if_match(&parts.headers)?.map(|generation| generation.0);
        let meant = expected.map_or(String::new(), |generation| generation.to_string());
        let text = format!("{} {} {meant}", parts.method, parts.uri);
        Ok(Self {
            key,
            text,
            expected,
        })
    }
}

impl Head {
    /// What tells repeats of the request from others; its body comes without anything secret.
    pub(crate) fn repeat(self, body: &str) -> Option<Repeat> {
        let Self { key, text, .. } = self;
        let request = format!("{text}\n{body}");
        key.map(|key| Repeat { key, request })
    }
}

/// The answer that a request got before, if this is a repeat of it: before anything is judged, as
/// what was done since then would be in its own way.
pub(crate) async fn answered(
    app: &App,
    (project, name): (&Name, &EnvironmentName),
    repeat: Option<&Repeat>,
) -> Result<Option<Response>, Problem> {
    let Some(repeat) = repeat else {
        return Ok(None);
    };
    let answer = app.store().asked(project, repeat).await;
    let answer = answer.map_err(|error| Problem::environment(name, error))?;
    Ok(answer.map(|answer| accepted(project, answer).into_response()))
}

/// Has the store do what is asked, unless it has before.
pub(crate) async fn once(
    app: &App,
    project: &Name,
    ask: Ask,
    repeat: Option<&Repeat>,
) -> Result<Response, EnvironmentError> {
    let answer = app.store().ask(project, ask, repeat.cloned(), app.now());
    Ok(accepted(project, answer.await?).into_response())
}
