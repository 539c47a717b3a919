//! Tokens: made once and told once, listed without what opens anything, ended for good.

use std::time::Duration;

use api::{Time, TokenMade, TokenRequest, TokenView};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use model::access::{Role, TokenId};
use model::name::Name;
use model::time::Timestamp;
use serde::Deserialize;
use store::{TokenDraft, TokenRow};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::auth;
use crate::extract::{self, One, Query};
use crate::problem::Problem;
use crate::view;

/// The longest name of a token: it stands in tables.
const NAME_LEN_MAX: usize = 100;

/// Which tokens, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many items at most.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Where the page begins: the `next` of the page before.
    cursor: Option<String>,
    /// Only those of this project.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    project: Option<String>,
}

/// The tokens that were made, those that ended included.
#[utoipa::path(
    get, path = "/api/v1/tokens", operation_id = "listTokens", tag = "tokens", params(ListQuery),
    responses((status = 200, description = "one page", body = api::Listed<TokenView>)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<api::Listed<TokenView>>, Problem> {
    let page = extract::page(query.limit, query.cursor)?;
    let project = caller.narrowed(extract::name_of("project", query.project.as_deref())?)?;
    let listed = app.store().tokens(project.as_ref(), page).await?;
    let now = app.now();
    Ok(Json(view::listed(listed, |row| view::token(row, now))))
}

/// Makes a token.
///
/// The answer is the only one that has it: of a token the server keeps a digest. Nobody can
/// give a role above their own, nor in a project that is not theirs.
#[utoipa::path(
    post, path = "/api/v1/tokens", operation_id = "createToken", tag = "tokens", request_body = TokenRequest,
    responses((status = 201, description = "made; the token is never told again", body = TokenMade, headers(("Location" = String, description = "where it is revoked")))),
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    extract::Json(request): extract::Json<TokenRequest>,
) -> Result<impl IntoResponse, Problem> {
    let TokenRequest {
        name,
        role,
        project,
        expires_in_seconds,
    } = request;
    check_name(&name)?;
    let project = extract::name_of("project", project.as_deref())?;
    let role = Role::from(role);
    may_give(&caller, role, project.as_ref())?;
    let now = app.now();
    let expires_at = match expires_in_seconds {
        Some(0) => {
            let wrong = "found 0, allowed: 1 or more";
            return Err(Problem::parameter("expiresInSeconds", wrong));
        }
        Some(seconds) => Some(now.plus(Duration::from_secs(seconds.into()))),
        None => None,
    };
    may_outlive(&caller, expires_at)?;
    if let Some(project) = &project
        && app.store().project(project).await?.is_none()
    {
        return Err(Problem::no_project(project));
    }
    let token = auth::draw().map_err(|error| Problem::busy(&error.to_string()))?;
    let digest = auth::digest(&token);
    let row = TokenRow {
        id: TokenId::of(&digest),
        name,
        project,
        role,
        created_by: caller.name.clone(),
        created_at: now,
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    let draft = TokenDraft {
        id: row.id,
        name: row.name.clone(),
        project: row.project.clone(),
        role,
        digest,
        expires_at,
    };
    app.store().add_token(draft, caller.actor, now).await?;
    let location = format!("/api/v1/tokens/{}", row.id);
    let view = view::token(row, now);
    let made = Json(TokenMade { token, view });
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], made))
}

/// Ends a token for good, at once.
#[utoipa::path(
    delete, path = "/api/v1/tokens/{id}", operation_id = "revokeToken", tag = "tokens",
    responses((status = 200, description = "revoked", body = TokenView)),
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    One(id): One<TokenId>,
) -> Result<Json<TokenView>, Problem> {
    let now = app.now();
    let revoked = app
        .store()
        .revoke_token(id, caller.project.as_ref(), caller.actor, now)
        .await;
    // Also when it is not known whether it was kept: to ask again does no harm.
    app.known().forget_tokens();
    let mut row = revoked?.ok_or_else(|| Problem::missing("token", id))?;
    row.revoked_at = row.revoked_at.or(Some(now));
    Ok(Json(view::token(row, now)))
}

/// Nobody gives more than they have.
fn may_give(caller: &Caller, role: Role, project: Option<&Name>) -> Result<(), Problem> {
    if role > caller.role {
        let (has, wanted) = (caller.role, role);
        let detail = format!("the token has the role {has} and cannot make one with {wanted}");
        return Err(Problem::beyond_own(detail));
    }
    match (&caller.project, project) {
        (None, _) => Ok(()),
        (Some(own), Some(project)) if own == project => Ok(()),
        (Some(_), Some(_)) => Err(Problem::other_project()),
        (Some(own), None) => Err(Problem::beyond_own(format!(
            "the token is good for project {own} and cannot make one for all projects"
        ))),
    }
}

/// What somebody has for a time they give for that time: else it would never end.
fn may_outlive(caller: &Caller, expires_at: Option<Timestamp>) -> Result<(), Problem> {
    match caller.expires_at {
        Some(own) if expires_at.is_none_or(|wanted| wanted > own) => {
            let detail = format!(
                "the token is good until {} and cannot make one that lasts longer",
                Time::from(own)
            );
            Err(Problem::beyond_own(detail))
        }
        Some(_) | None => Ok(()),
    }
}

/// Others read the name, on terminals too.
fn check_name(name: &str) -> Result<(), Problem> {
    let wrong = if name.trim().is_empty() {
        "found nothing; say who will hold it".to_owned()
    } else if name.chars().count() > NAME_LEN_MAX {
        format!("allowed are at most {NAME_LEN_MAX} characters")
    } else if name.chars().any(char::is_control) {
        "found control characters, allowed: one line of plain text".to_owned()
    } else {
        return Ok(());
    };
    Err(Problem::parameter("name", wrong))
}
