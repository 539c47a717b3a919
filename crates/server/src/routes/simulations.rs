//! Rehearsals: what would happen, faults included, to a twin of what is stored.

use std::sync::Arc;
use std::time::Duration;

use api::SimulationView;
use axum::Json;
use axum::extract::State;
use model::manifest::Manifest;
use model::name::Name;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::credentials;
use crate::extract::{Admitted, Project, Query, Text};
use crate::problem::Problem;
use crate::rehearse::{Rehearsal, Turn};
use crate::routes::plans;

/// The longest name of a profile that is worth looking up.
const FAULTS_LEN_MAX: usize = 64;

/// How long to wait while another rehearsal goes on; most are over much sooner.
const TURN_TIME_MAX: Duration = Duration::from_secs(30);

/// How a rehearsal goes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SimulateQuery {
    /// The same seed tells the same story.
    #[param(default = 1)]
    seed: Option<u64>,
    /// Which faults are let loose.
    #[param(default = "none", max_length = 64)]
    faults: Option<String>,
}

/// Rehearses a manifest in the simulated world; nothing real is touched or stored.
#[utoipa::path(
    post, path = "/simulations", operation_id = "simulateManifest", tag = "simulations", params(SimulateQuery),
    request_body(description = "the manifest, as YAML or JSON", content = String, content_type = "application/yaml"),
    responses(
        (status = 200, description = "what happened", body = SimulationView),
        (status = 422, description = "the manifest has faults, or cannot be rehearsed", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn simulate(
    State(app): State<App>,
    caller: Caller,
    Project(project): Project,
    Query(query): Query<SimulateQuery>,
    text: Text,
) -> Result<Json<SimulationView>, Problem> {
    let seed = query.seed.unwrap_or(1);
    let faults = query.faults.unwrap_or_else(|| "none".to_owned());
    if faults.len() > FAULTS_LEN_MAX {
        return Err(Problem::parameter(
            "faults",
            format!("allowed are at most {FAULTS_LEN_MAX} characters"),
        ));
    }
    let admitted = text.admitted(&app, &project, &caller.actor).await?;
    let Admitted {
        manifest, places, ..
    } = admitted;
    let opens = openable(&app, &project, &manifest, &caller).await;
    opens.map_err(|problem| places.order(problem))?;
    let turn = turn(&app).await?;
    let request = Rehearsal {
        project,
        manifest,
        seed,
        faults,
        turn,
    };
    let rehearsed = app.rehearse().rehearse(request).await;
    Ok(Json(rehearsed.map_err(Problem::rehearsal)?))
}

/// Refuses what begins something with an account that its secret cannot open, as a plan does: else
/// what went well here would be refused there.
async fn openable(
    app: &App,
    project: &Name,
    manifest: &Manifest,
    caller: &Caller,
) -> Result<(), Problem> {
    // What would happen is worth knowing, also when secrets stay closed.
    let Ok(shut) = credentials::shut(app, project, &manifest.providers, &caller.actor).await else {
        return Ok(());
    };
    if shut.is_empty() {
        return Ok(());
    }
    let preview = app
        .store()
        .preview(project, manifest, store::Allowed::EVERYTHING, app.now());
    match preview.await {
        Ok(previews) => {
            credentials::refuse_begun(shut, &previews.clusters).map(|_told_by_plans| ())
        }
        Err(error) => Err(plans::refused(error, shut)),
    }
}

/// Waits for the right to rehearse.
async fn turn(app: &App) -> Result<Turn, Problem> {
    let permit = Arc::clone(app.rehearsals()).acquire_owned();
    match tokio::time::timeout(TURN_TIME_MAX, permit).await {
        Ok(Ok(permit)) => Ok(Turn::new(permit)),
        Ok(Err(_)) => Err(Problem::busy("the server stops")),
        Err(_) => Err(Problem::busy("another rehearsal goes on")),
    }
}
