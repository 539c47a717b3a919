//! What is done to environments that are there: archived, restored, removed, called off.

use api::{CheckedView, EnvironmentAccepted, RedeployRequest};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::access::Role;
use model::environment::EnvironmentName;
use model::environment::status::{Deed, Look};
use model::id::ActionId;
use model::name::Name;
use plan::environment::as_deployed;
use serde::Deserialize;
use std::sync::Arc;
use store::{ActionDraft, Ask, Effective, Repeat};
use utoipa::IntoParams;

use super::reading::find_action;
use crate::access::Caller;
use crate::app::App;
use crate::environments::{self, Head, KeyHeader, MatchHeader};
use crate::extract::{self, NoBody, NoQuery, Query, Within};
use crate::problem::Problem;

/// How something is done.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ForceQuery {
    /// Whether to do it although something is lost by it; for operators.
    force: Option<bool>,
}

/// Something to be done.
struct Wish {
    project: Name,
    name: EnvironmentName,
    deed: Deed,
    force: bool,
}

/// Has an environment rest: nothing runs, and what it has stored is kept.
#[utoipa::path(
    post, path = "/environments/{name}/archive", operation_id = "archiveEnvironment", tag = "environments",
    params(ForceQuery, KeyHeader, MatchHeader),
    responses(
        (status = 202, description = "begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "it is busy, protected, or not possible now", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "a script told something that is no configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn archive(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    Query(query): Query<ForceQuery>,
    head: Head,
    _: NoBody,
) -> Result<Response, Problem> {
    let wish = wish(&caller, (project, name), Deed::Archive, &query)?;
    act(&app, caller, wish, head).await
}

/// Brings an environment back from the archive.
#[utoipa::path(
    post, path = "/environments/{name}/restore", operation_id = "restoreEnvironment", tag = "environments",
    params(KeyHeader, MatchHeader),
    responses(
        (status = 202, description = "begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "it is busy, or not possible now", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "settings have values that they cannot have, or the project's check does not take the configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn restore(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    head: Head,
    _: NoQuery,
    _: NoBody,
) -> Result<Response, Problem> {
    let wish = wish(
        &caller,
        (project, name),
        Deed::Restore,
        &ForceQuery { force: None },
    )?;
    act(&app, caller, wish, head).await
}

/// Removes an environment with all that it has stored.
#[utoipa::path(
    post, path = "/environments/{name}/cleanup", operation_id = "cleanupEnvironment", tag = "environments",
    params(ForceQuery, KeyHeader, MatchHeader),
    responses(
        (status = 202, description = "begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "it is busy, protected, or not possible now", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "a script told something that is no configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cleanup(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    Query(query): Query<ForceQuery>,
    head: Head,
    _: NoBody,
) -> Result<Response, Problem> {
    let wish = wish(&caller, (project, name), Deed::Cleanup, &query)?;
    act(&app, caller, wish, head).await
}

/// Forgets an environment and touches nothing of it: no script is run.
#[utoipa::path(
    delete, path = "/environments/{name}", operation_id = "deleteEnvironment", tag = "environments", params(ForceQuery, KeyHeader, MatchHeader),
    responses(
        (status = 202, description = "forgotten", body = EnvironmentAccepted, headers(("Location" = String, description = "the action"))),
        (status = 409, description = "it is busy, protected, or not possible now", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    Query(query): Query<ForceQuery>,
    head: Head,
) -> Result<Response, Problem> {
    let wish = wish(&caller, (project, name), Deed::Delete, &query)?;
    act(&app, caller, wish, head).await
}

/// What is wished, if whoever wishes may force it.
fn wish(
    caller: &Caller,
    (project, name): (Name, EnvironmentName),
    deed: Deed,
    query: &ForceQuery,
) -> Result<Wish, Problem> {
    let force = forced(caller, query)?;
    Ok(Wish {
        project,
        name,
        deed,
        force,
    })
}

/// Whether somebody forces something who may.
fn forced(caller: &Caller, query: &ForceQuery) -> Result<bool, Problem> {
    let force = query.force.unwrap_or(false);
    if force && caller.role < Role::Operator {
        return Err(Problem::role(Role::Operator, caller.role));
    }
    Ok(force)
}

async fn act(app: &App, caller: Caller, wish: Wish, head: Head) -> Result<Response, Problem> {
    let expected = head.expected;
    let Wish {
        project,
        name,
        deed,
        force,
    } = wish;
    let repeat = head.repeat("");
    if let Some(answer) = environments::answered(app, (&project, &name), repeat.as_ref()).await? {
        return Ok(answer);
    }
    let row = environments::find(app, &project, &name).await?;
    environments::current(&row, expected)?;
    environments::permitted(&row, deed, force)?;
    let settings = environments::settings(app, &project).await?;
    let effective = match deed {
        Deed::Delete => Effective::default(),
        _ if as_deployed(deed, &settings.deploy) => {
            environments::recorded(app, &row, &settings).await?
        }
        Deed::Archive | Deed::Cleanup | Deed::Create | Deed::Update | Deed::Restore => {
            environments::worked_out(app, &settings, &row.edits).await?
        }
    };
    if matches!(deed, Deed::Create | Deed::Update | Deed::Restore) {
        let nothing = Arc::default();
        let candidate = environments::subject(&row, &settings, &effective, &nothing, &caller.actor);
        environments::approved(environments::judged(app, &candidate).await?)?;
    }
    let draft = ActionDraft {
        project,
        name,
        deed,
        force,
        generation: expected,
        seen: None,
        edits: None,
        sealed: Vec::new(),
        sealed_until: None,
        effective,
        actor: caller.actor,
        cause: None,
        origin: None,
        step: None,
    };
    begin(app, draft, repeat.as_ref()).await
}

async fn begin(
    app: &App,
    draft: ActionDraft,
    repeat: Option<&Repeat>,
) -> Result<Response, Problem> {
    let (project, name) = (draft.project.clone(), draft.name.clone());
    let ask = Ask::Begin(Box::new(draft));
    let begun = environments::once(app, &project, ask, repeat).await;
    begun.map_err(|error| Problem::environment(&name, error))
}

/// Calls off what is being done to an environment.
///
/// What has not begun never will, and leaves everything as it was; a script that runs is ended. Where
/// the server that began it is silent, that happens when it is back, or not at all; by force it counts
/// as ended now, and a look judges what came of it.
#[utoipa::path(
    post, path = "/environments/{name}/cancel", operation_id = "cancelEnvironmentAction", tag = "environments", params(ForceQuery, KeyHeader, MatchHeader),
    responses(
        (status = 202, description = "called off", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "nothing is being done to it", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    Query(query): Query<ForceQuery>,
    head: Head,
    _: NoBody,
) -> Result<Response, Problem> {
    let force = forced(&caller, &query)?;
    let expected = head.expected;
    let repeat = head.repeat("");
    if let Some(answer) = environments::answered(&app, (&project, &name), repeat.as_ref()).await? {
        return Ok(answer);
    }
    let row = environments::find(&app, &project, &name).await?;
    environments::current(&row, expected)?;
    let ask = Ask::Cancel {
        busy: row.busy.ok_or_else(|| Problem::nothing_to_cancel(&name))?,
        name: row.name,
        force,
        actor: caller.actor,
    };
    let cancelled = environments::once(&app, &project, ask, repeat.as_ref()).await;
    cancelled.map_err(|error| Problem::environment(&name, error))
}

/// Has the configuration of an earlier action count again, exactly as it was then.
///
/// Nobody keeps old values of secret settings: where they have changed since, it is refused unless
/// those of now are wanted.
#[utoipa::path(
    post, path = "/environments/{name}/redeploy", operation_id = "redeployEnvironment", tag = "environments", params(KeyHeader, MatchHeader), request_body = RedeployRequest,
    responses(
        (status = 202, description = "begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "it is busy, not possible now, or secret settings have changed since", body = api::Problem, content_type = "application/problem+json"),
        (status = 412, description = "it has another generation", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "settings have values that they cannot have, or the project's check does not take the configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn redeploy(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    head: Head,
    _: NoQuery,
    extract::Json(request): extract::Json<RedeployRequest>,
) -> Result<Response, Problem> {
    let expected = head.expected;
    let as_now = request.secrets_as_now.unwrap_or(false);
    let repeat = head.repeat(&format!("{} {as_now}", request.action));
    if let Some(answer) = environments::answered(&app, (&project, &name), repeat.as_ref()).await? {
        return Ok(answer);
    }
    let id = request.action.parse::<ActionId>();
    let id = id.map_err(|error| Problem::parameter("action", error))?;
    let row = environments::find(&app, &project, &name).await?;
    environments::current(&row, expected)?;
    let action = find_action(&app, &project, &name, id).await?;
    // One of an earlier life of that name is none of this one.
    if action.environment != row.id {
        return Err(Problem::no_action(&name, id));
    }
    if action.taken {
        return Err(Problem::imported_action(&name, id));
    }
    environments::permitted(&row, Deed::Update, false)?;
    let settings = environments::settings(&app, &project).await?;
    let nothing = Arc::default();
    let actor = &caller.actor;
    let candidate = environments::subject(&row, &settings, &action.effective, &nothing, actor);
    environments::approved(environments::judged(&app, &candidate).await?)?;
    let draft = ActionDraft {
        project,
        name,
        deed: Deed::Update,
        force: false,
        generation: expected,
        seen: Some((row.id, row.edits.clone())),
        edits: Some(action.edits),
        sealed: Vec::new(),
        sealed_until: (!as_now).then_some(action.created_at),
        effective: action.effective,
        actor: caller.actor,
        cause: None,
        origin: None,
        step: None,
    };
    begin(&app, draft, repeat.as_ref()).await
}

/// Looks at an environment now; what was seen is answered, and changes nothing.
#[utoipa::path(
    post, path = "/environments/{name}/look", operation_id = "lookAtEnvironment", tag = "environments",
    responses(
        (status = 200, description = "what was seen", body = CheckedView),
        (status = 409, description = "the project has no settings for environments", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "a script told something that is no configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn look(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
) -> Result<Json<CheckedView>, Problem> {
    let row = environments::find(&app, &project, &name).await?;
    let settings = environments::settings(&app, &project).await?;
    let effective = environments::recorded(&app, &row, &settings).await?;
    let nothing = Arc::default();
    let candidate = environments::subject(&row, &settings, &effective, &nothing, &caller.actor);
    // Whoever asks while a script changes it wants to know whether it is up.
    let look = row.standing().look().unwrap_or(Look::Up);
    let seen = app.advise().look(&candidate, look).await;
    let seen = seen.map_err(Problem::unadvised)?;
    Ok(Json(CheckedView {
        at: app.now().into(),
        seen: Some(seen.seen.into()),
        unseen_since: None,
        said: seen.said,
    }))
}
