//! Who asks, and whether they may.
//!
//! A request passes two gates. The first turns the token that it shows into a [`Caller`]; the
//! second compares the caller with what the route declares to need. Routes are added with
//! their [`Need`] or not at all (`routes.rs`, `page.rs`), and a caller that no first gate has
//! seen does not pass the second.
//!
//! **Invariant:** a token that is good for one project learns nothing of another, not even
//! whether it exists (`tests/http/matrix.rs`).

mod failures;
mod known;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{ConnectInfo, FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use model::access::{Role, TokenId};
use model::name::Name;
use model::time::Timestamp;
use store::{Actor, TokenRow};

use crate::app::App;
use crate::auth;
use crate::layers;
use crate::problem::Problem;

pub(crate) use failures::Failures;
pub(crate) use known::Known;

/// How often a stream looks whether its token is still good: what another process revokes ends
/// it after that time.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What a route needs of whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing: it tells no secret.
    Nothing,
    /// This role or a higher one, by a token that is good for the project of the path.
    Within(Role),
    /// This role or a higher one. The path names no project: a token of one project is shown
    /// and may change what belongs to it, and nothing else.
    Narrowed(Role),
    /// This role or a higher one, by a token that is good for all projects.
    Everywhere(Role),
}

impl Need {
    /// The role, where one is needed.
    pub const fn role(self) -> Option<Role> {
        match self {
            Self::Nothing => None,
            Self::Within(role) | Self::Narrowed(role) | Self::Everywhere(role) => Some(role),
        }
    }
}

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// By which token.
    pub(crate) token: TokenId,
    /// What they are called.
    pub(crate) name: String,
    /// What they may do.
    pub(crate) role: Role,
    /// The project they may do it in; none means all.
    pub(crate) project: Option<Name>,
    /// Until when.
    pub(crate) expires_at: Option<Timestamp>,
    /// How history and audit name them.
    pub(crate) actor: Actor,
    digest: String,
}

impl Caller {
    fn new(row: TokenRow, digest: String, peer: Option<IpAddr>) -> Self {
        // Names are given freely and can be alike; the id tells two of them apart.
        let from = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
        let origin = format!("{from} with {}", row.id);
        Self {
            token: row.id,
            actor: Actor::new(row.name.clone(), origin),
            name: row.name,
            role: row.role,
            project: row.project,
            expires_at: row.expires_at,
            digest,
        }
    }

    /// Whether the caller may know anything of a project.
    pub(crate) fn sees(&self, project: &Name) -> bool {
        self.project.as_ref().is_none_or(|own| own == project)
    }

    /// The one project that a question is narrowed to: the caller's own, or the one asked for.
    pub(crate) fn narrowed(&self, asked: Option<Name>) -> Result<Option<Name>, Problem> {
        match asked {
            Some(asked) if self.sees(&asked) => Ok(Some(asked)),
            Some(_) => Err(Problem::other_project()),
            None => Ok(self.project.clone()),
        }
    }

    /// Completes when the caller's token is good no longer.
    pub(crate) async fn turned_out(self, app: App) {
        let mut revocations = app.known().revocations();
        loop {
            // Either is a reason to look; the sender lives as long as the app that we hold.
            drop(tokio::time::timeout(LOOK_EVERY, revocations.changed()).await);
            match standing(&app, &self.digest).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return,
                // While nobody can be asked nothing new is told either.
                Err(error) => {
                    tracing::debug!(%error, "could not look whether a token is still good");
                }
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    /// Who passed the first gate; on a route without one, nobody.
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(Problem::no_token)
    }
}

/// Why a token opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nobody ever made it.
    Unknown,
    /// Its time is over.
    Expired,
    /// Somebody ended it.
    Revoked,
}

/// How the token with that digest stands now.
async fn standing(app: &App, digest: &str) -> Result<Result<TokenRow, Refusal>, store::Error> {
    let now = app.now();
    let row = app.known().token(app.store(), digest, now).await?;
    Ok(match row {
        None => Err(Refusal::Unknown),
        Some(row) if row.revoked_at.is_some() => Err(Refusal::Revoked),
        Some(row) if row.expires_at.is_some_and(|end| end <= now) => Err(Refusal::Expired),
        Some(row) => Ok(row),
    })
}

/// Who shows this token; one that opens nothing is counted against where it comes from.
pub(crate) async fn identify(
    app: &App,
    token: &str,
    peer: Option<IpAddr>,
) -> Result<Caller, Problem> {
    let digest = auth::digest(token);
    match standing(app, &digest).await? {
        Ok(row) => Ok(Caller::new(row, digest, peer)),
        Err(refusal) => {
            crate::metrics::token_refused(refusal);
            Err(match app.failures().count(peer) {
                Some(wait) => Problem::too_many_failures(wait),
                None => Problem::token(refusal),
            })
        }
    }
}

/// Where a request comes from.
pub(crate) fn peer(extensions: &axum::http::Extensions) -> Option<IpAddr> {
    let connection = extensions.get::<ConnectInfo<SocketAddr>>();
    connection.map(|ConnectInfo(address)| address.ip().to_canonical())
}

/// The first gate of the API: a bearer, or, to read, the page's cookie.
pub(crate) async fn recognise(State(app): State<App>, request: Request, next: Next) -> Response {
    let reads = layers::reads(request.method());
    let token = shown(request.headers(), reads).map(str::to_owned);
    let Some(token) = token else {
        return Problem::no_token().into_response();
    };
    match identify(&app, &token, peer(request.extensions())).await {
        Ok(caller) => pass(app, caller, request, next).await,
        Err(problem) => problem.into_response(),
    }
}

/// The token that a request shows: as a bearer, or else as a cookie where one will do.
pub(crate) fn shown(headers: &HeaderMap, cookie: bool) -> Option<&str> {
    let from_cookie = || auth::shown_cookie(headers).filter(|_| cookie);
    auth::bearer(headers).or_else(from_cookie)
}

/// Lets a caller through the first gate; what it is told without end, it is told for as long
/// as its token is good.
pub(crate) async fn pass(app: App, caller: Caller, mut request: Request, next: Next) -> Response {
    tracing::debug!(caller.name, caller.token = %caller.token, "recognised");
    request.extensions_mut().insert(caller.clone());
    let response = next.run(request).await;
    let streams = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes() == api::event::MEDIA_TYPE.as_bytes());
    if !streams {
        return response;
    }
    let (parts, body) = response.into_parts();
    let told = body
        .into_data_stream()
        .take_until(Box::pin(caller.turned_out(app)));
    Response::from_parts(parts, axum::body::Body::from_stream(told))
}

/// The second gate: what the route needs.
pub(crate) async fn check(
    State(need): State<Need>,
    segments: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    match may(need, segments, request.extensions().get()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Whether the caller may do what the path names.
pub(crate) fn may(
    need: Need,
    segments: Result<RawPathParams, RawPathParamsRejection>,
    caller: Option<&Caller>,
) -> Result<(), Problem> {
    let Some(role) = need.role() else {
        return Ok(());
    };
    let segments =
        segments.map_err(|rejection| Problem::parameter("path", rejection.body_text()))?;
    let caller = caller.ok_or_else(Problem::no_token)?;
    let project = segments
        .iter()
        .find(|(place, _)| *place == "project")
        .map(|(_, text)| text.parse::<Name>())
        .transpose()
        .map_err(|error| Problem::parameter("project", error))?;
    // First of all: what a stranger may not do must not tell what there is. What concerns all
    // projects is refused below, whatever the path names.
    if !matches!(need, Need::Everywhere(_))
        && let Some(project) = &project
        && !caller.sees(project)
    {
        return Err(Problem::other_project());
    }
    if caller.role < role {
        return Err(Problem::role(role, caller.role));
    }
    let narrow = match need {
        Need::Nothing | Need::Narrowed(_) => false,
        Need::Within(_) => project.is_none(),
        Need::Everywhere(_) => true,
    };
    if narrow && caller.project.is_some() {
        return Err(Problem::all_projects());
    }
    Ok(())
}
