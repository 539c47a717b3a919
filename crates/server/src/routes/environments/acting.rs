//! What is done to environments that are there: archived, restored, removed, called off.

use api::{CheckedView, EnvironmentAccepted, RedeployRequest};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use model::access::Role;
use model::environment::EnvironmentName;
use model::environment::action::State as Stand;
use model::environment::status::{Deed, Look};
use model::id::ActionId;
use model::name::Name;
use serde::Deserialize;
use std::sync::Arc;
use store::{ActionDraft, Begun, Cancelled, Effective, EnvironmentRow};
use utoipa::IntoParams;

use super::reading::find_action;
use crate::access::Caller;
use crate::app::App;
use crate::environments;
use crate::extract::{self, Query, Within};
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
    params(ForceQuery, ("If-Match" = Option<u64>, Header, description = "the generation it is meant for")),
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
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wish = wish(&caller, (project, name), Deed::Archive, &query)?;
    act(&app, caller, wish, &headers).await
}

/// Brings an environment back from the archive.
#[utoipa::path(
    post, path = "/environments/{name}/restore", operation_id = "restoreEnvironment", tag = "environments",
    params(("If-Match" = Option<u64>, Header, description = "the generation it is meant for")),
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
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wish = wish(
        &caller,
        (project, name),
        Deed::Restore,
        &ForceQuery { force: None },
    )?;
    act(&app, caller, wish, &headers).await
}

/// Removes an environment with all that it has stored.
#[utoipa::path(
    post, path = "/environments/{name}/cleanup", operation_id = "cleanupEnvironment", tag = "environments",
    params(ForceQuery, ("If-Match" = Option<u64>, Header, description = "the generation it is meant for")),
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
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wish = wish(&caller, (project, name), Deed::Cleanup, &query)?;
    act(&app, caller, wish, &headers).await
}

/// Forgets an environment and touches nothing of it: no script is run.
#[utoipa::path(
    delete, path = "/environments/{name}", operation_id = "deleteEnvironment", tag = "environments", params(ForceQuery),
    responses(
        (status = 202, description = "forgotten", body = EnvironmentAccepted, headers(("Location" = String, description = "the action"))),
        (status = 409, description = "it is busy, protected, or not possible now", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    Query(query): Query<ForceQuery>,
) -> Result<Response, Problem> {
    let wish = wish(&caller, (project, name), Deed::Delete, &query)?;
    act(&app, caller, wish, &HeaderMap::new()).await
}

/// What is wished, if whoever wishes may force it.
fn wish(
    caller: &Caller,
    (project, name): (Name, EnvironmentName),
    deed: Deed,
    query: &ForceQuery,
) -> Result<Wish, Problem> {
    let force = query.force.unwrap_or(false);
    if force && caller.role < Role::Operator {
        return Err(Problem::role(Role::Operator, caller.role));
    }
    Ok(Wish {
        project,
        name,
        deed,
        force,
    })
}

async fn act(
    app: &App,
    caller: Caller,
    wish: Wish,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let expected = environments::if_match(headers)?;
    let Wish {
        project,
        name,
        deed,
        force,
    } = wish;
    let row = environments::find(app, &project, &name).await?;
    environments::current(&row, expected)?;
    environments::permitted(&row, deed, force)?;
    let settings = environments::settings(app, &project).await?;
    let effective = match deed {
        Deed::Delete => Effective::default(),
        Deed::Archive | Deed::Cleanup => environments::recorded(app, &row, &settings).await?,
        Deed::Create | Deed::Update | Deed::Restore => {
            let effective = environments::worked_out(app, &settings, &row.edits).await?;
            let nothing = Arc::default();
            let candidate =
                environments::subject(&row, &settings, &effective, &nothing, &caller.actor);
            environments::approved(environments::judged(app, &candidate).await?)?;
            effective
        }
    };
    let draft = ActionDraft {
        project,
        name,
        deed,
        force,
        generation: expected,
        seen: None,
        edits: None,
        sealed: Vec::new(),
        effective,
        actor: caller.actor,
        cause: None,
        origin: None,
    };
    begin(app, &row, draft).await
}

async fn begin(app: &App, row: &EnvironmentRow, draft: ActionDraft) -> Result<Response, Problem> {
    let deed = draft.deed;
    let begun = app.store().begin_action(draft, app.now()).await;
    let begun = begun.map_err(|error| Problem::environment(&row.name, error))?;
    Ok(environments::accepted((&row.project, &row.name), deed, begun).into_response())
}

/// Calls off what is being done to an environment.
///
/// What has not begun never will, and leaves everything as it was; a script that runs is ended.
#[utoipa::path(
    post, path = "/environments/{name}/cancel", operation_id = "cancelEnvironmentAction", tag = "environments",
    responses(
        (status = 202, description = "called off", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "nothing is being done to it", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
) -> Result<Response, Problem> {
    let row = environments::find(&app, &project, &name).await?;
    let busy = row.busy.ok_or_else(|| Problem::nothing_to_cancel(&name))?;
    let cancelled = app
        .store()
        .cancel_action(&project, busy.action, caller.actor, app.now())
        .await
        .map_err(|error| Problem::environment(&name, error))?;
    let state = match cancelled {
        Cancelled::AtOnce => Stand::Cancelled,
        Cancelled::Asked => busy.state,
    };
    let begun = Begun {
        environment: row.id,
        generation: row.generation,
        action: busy.action,
        state,
    };
    let (status, follow, Json(mut view)) =
        environments::accepted((&project, &name), busy.deed, begun);
    let now = app.store().environment(&project, &name).await?;
    // One that was to be created never was.
    view.generation = now.map(|row| row.generation);
    Ok((status, follow, Json(view)).into_response())
}

/// Has the configuration of an earlier action count again, exactly as it was then.
///
/// Secret settings have the values that they have now: nobody keeps old ones.
#[utoipa::path(
    post, path = "/environments/{name}/redeploy", operation_id = "redeployEnvironment", tag = "environments", request_body = RedeployRequest,
    responses(
        (status = 202, description = "begun; the work follows", body = EnvironmentAccepted, headers(("Location" = String, description = "the action to follow"))),
        (status = 409, description = "it is busy, or not possible now", body = api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "settings have values that they cannot have, or the project's check does not take the configuration", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the scripts did not answer as they should", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn redeploy(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<EnvironmentName>,
    extract::Json(request): extract::Json<RedeployRequest>,
) -> Result<Response, Problem> {
    let id = request.action.parse::<ActionId>();
    let id = id.map_err(|error| Problem::parameter("action", error))?;
    let row = environments::find(&app, &project, &name).await?;
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
        generation: None,
        seen: Some((row.id, row.edits.clone())),
        edits: Some(action.edits),
        sealed: Vec::new(),
        effective: action.effective,
        actor: caller.actor,
        cause: None,
        origin: None,
    };
    begin(&app, &row, draft).await
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
    let effective = environments::worked_out(&app, &settings, &row.edits).await?;
    let nothing = Arc::default();
    let candidate = environments::subject(&row, &settings, &effective, &nothing, &caller.actor);
    // Whoever asks while a script changes it wants to know whether it is up.
    let look = row.standing().look().unwrap_or(Look::Up);
    let seen = app.advise().look(&candidate, look).await;
    let seen = seen.map_err(Problem::unadvised)?;
    Ok(Json(CheckedView {
        at: app.now().into(),
        seen: Some(seen.seen.into()),
        said: seen.said,
    }))
}
