//! What an environment would be configured with, and what its project's check says to that.

use axum::http::StatusCode;
use model::environment::config::{Edits, effective};
use model::environment::settings::Settings;
use model::name::Name;
use model::secret::{EntryName, Secret};
use std::sync::Arc;
use store::{Actor, Effective, EnvironmentRow};

use super::view;
use crate::advise::{Candidate, Of, Verdict};
use crate::app::App;
use crate::problem::Problem;

/// What the project says of environments, which has to be something.
pub(crate) async fn settings(app: &App, project: &Name) -> Result<Settings, Problem> {
    let row = app.store().environment_settings(project).await?;
    let none = || Problem::no_environment_settings(project, StatusCode::CONFLICT);
    Ok(row.ok_or_else(none)?.settings)
}

/// What comes of edits and defaults: first how it is deployed, on which the rest depends.
pub(crate) async fn worked_out(
    app: &App,
    settings: &Settings,
    edits: &Edits,
) -> Result<Effective, Problem> {
    let advise = app.advise();
    let told = advise.defaults(settings, Of::Deployment).await;
    let deployment = effective(&told.map_err(Problem::unadvised)?, &edits.deployment);
    let told = advise
        .defaults(settings, Of::Application(&deployment))
        .await;
    let application = effective(&told.map_err(Problem::unadvised)?, &edits.application);
    Ok(Effective {
        application,
        deployment,
    })
}

/// What an environment was last deployed with. What is to go, or is looked at, is told what it was
/// made with, whatever would be the defaults now; of what was done elsewhere nobody knows.
pub(crate) async fn recorded(
    app: &App,
    row: &EnvironmentRow,
    settings: &Settings,
) -> Result<Effective, Problem> {
    match app.store().deployed_with(row.id, &row.edits).await? {
        Some(effective) => Ok(effective),
        None => worked_out(app, settings, &row.edits).await,
    }
}

/// An environment as scripts are told of it.
pub(crate) fn subject(
    row: &EnvironmentRow,
    settings: &Settings,
    effective: &Effective,
    fresh: &Arc<Vec<(EntryName, Secret)>>,
    actor: &Actor,
) -> Candidate {
    Candidate {
        project: row.project.clone(),
        name: row.name.clone(),
        id: row.id,
        settings: settings.clone(),
        application: effective.application.clone(),
        deployment: effective.deployment.clone(),
        fresh: Arc::clone(fresh),
        actor: actor.clone(),
    }
}

/// What the project's check says against a configuration. Values that settings cannot have are
/// refused at once, also of what is only tried: no check needs to be asked.
pub(crate) async fn judged(app: &App, candidate: &Candidate) -> Result<Option<String>, Problem> {
    let judged = app.advise().judge(candidate).await;
    match judged.map_err(Problem::unadvised)? {
        Verdict::Good => Ok(None),
        Verdict::Bad(said) => Ok(Some(said)),
        Verdict::Wrong(faults) => Err(Problem::environment_wrong(faults)),
    }
}

/// Refuses what the check says something against.
pub(crate) fn approved(said: Option<String>) -> Result<(), Problem> {
    said.map_or(Ok(()), |said| Err(Problem::environment_judged(&said)))
}

/// What would come of something that is only tried.
pub(crate) fn tried(effective: Effective, said: Option<String>) -> api::TrialView {
    api::TrialView {
        configuration: view::configuration(effective),
        accepted: said.is_none(),
        said,
    }
}
