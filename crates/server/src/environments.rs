//! Environments between the wire and the store: what is asked becomes edits, what comes of them
//! with the defaults of scripts is judged, and what is secret is sealed.
//!
//! **Invariant:** a secret value is in a request and in what is sealed, and in no answer, problem
//! or event: what is wrong with one is told by its place alone.

mod configured;
mod repeating;
mod sealing;
mod taken;
mod view;
mod wanted;

pub(crate) use configured::{approved, judged, recorded, settings, subject, tried, worked_out};
pub(crate) use repeating::{Head, KeyHeader, MatchHeader, answered, once};
pub(crate) use sealing::{copied, sealed};
pub(crate) use taken::taken;
pub(crate) use view::{
    action, action_detail, configuration, environment, line, status_change, took_over,
};
pub(crate) use wanted::{About, Wanted, about, expiry};

use model::environment::EnvironmentName;
use model::environment::config::Edits;
use model::environment::git::Origin;
use model::environment::status::Deed;
use model::name::Name;
use store::EnvironmentRow;

use crate::app::App;
use crate::problem::Problem;

/// How often something is tried again because others were quicker.
pub(crate) const TRIES_MAX: u32 = 4;

/// The environment of that name, or the problem that there is none.
pub(crate) async fn find(
    app: &App,
    project: &Name,
    name: &EnvironmentName,
) -> Result<EnvironmentRow, Problem> {
    let row = app.store().environment(project, name).await?;
    row.ok_or_else(|| Problem::no_environment(name))
}

/// Refuses secret settings where what is deployed comes from anybody, before scripts are given any.
pub(crate) fn lent(
    name: &EnvironmentName,
    origin: Option<&Origin>,
    edits: &Edits,
) -> Result<(), Problem> {
    match edits.secrets().next() {
        Some((level, key)) if origin.is_some_and(|origin| origin.fork) => {
            let level = level.as_str();
            let detail = format!("the {level} setting `{key}` is secret, and it is of a fork");
            Err(Problem::git_fork(name, &detail))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses what cannot be done now, and tells what can.
pub(crate) fn permitted(row: &EnvironmentRow, deed: Deed, force: bool) -> Result<(), Problem> {
    let standing = row.standing();
    standing
        .permit(deed, force)
        .map_err(|refusal| Problem::environment_refused(&row.name, &refusal, &standing.exits()))
}

/// Refuses a request that was made for another generation.
pub(crate) fn current(row: &EnvironmentRow, expected: Option<u64>) -> Result<(), Problem> {
    match expected {
        Some(expected) if expected != row.generation => {
            Err(Problem::environment_stale(expected, row.generation))
        }
        Some(_) | None => Ok(()),
    }
}
