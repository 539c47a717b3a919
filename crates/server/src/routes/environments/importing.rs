//! Environments that are taken over from elsewhere: they are there already, so nothing is run.

use api::{ImportRequest, ImportView};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::environments;
use crate::extract::{self, Project, Query};
use crate::problem::Problem;

/// Whether something is only tried.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TryQuery {
    /// Whether to answer what would become of each, and take nothing over.
    dry_run: Option<bool>,
}

/// Takes environments over from another system, with their status, their dates and their log.
///
/// No script is run: they are there already, and are looked at from then on. The same again changes
/// nothing, and one whose log came in part goes on with the rest. With `dryRun`, nothing is taken
/// over.
#[utoipa::path(
    post, path = "/environment-import", operation_id = "importEnvironments", tag = "environments",
    params(TryQuery), request_body = ImportRequest,
    responses(
        (status = 200, description = "what became of each", body = ImportView),
        (status = 409, description = "the project has no settings for environments", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn import(
    State(app): State<App>,
    caller: Caller,
    Project(project): Project,
    Query(query): Query<TryQuery>,
    extract::Json(request): extract::Json<ImportRequest>,
) -> Result<Json<ImportView>, Problem> {
    let now = app.now();
    let taken = environments::taken(request, now)?;
    let dry = query.dry_run.unwrap_or(false);
    let took = app
        .store()
        .take_environments(&project, taken, dry, caller.actor, now)
        .await
        .map_err(Problem::environments)?;
    let environments = took.into_iter().map(environments::took_over).collect();
    Ok(Json(ImportView { environments }))
}
