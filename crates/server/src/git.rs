//! Git services that tell of their requests: whether it is them, and what is decided.
//!
//! What they tell is written down and answered at once; the loops of environments do what is
//! decided. Whoever cannot prove to be a source of a project is told the same whatever is wrong,
//! so that nobody learns which projects and sources there are.

mod keys;
mod signature;

pub(crate) use keys::Keys;
pub(crate) use signature::{delivery, kind, proves};

use api::environment::{GitAnswer, GitDecision};
use model::environment::EnvironmentName;
use model::environment::git::Source;
use model::environment::settings::Settings;
use model::environment::status::Deed;
use plan::environment::git::{Decision, There, decide};
use store::{EnvironmentRow, GitRequest};

use crate::app::App;
use crate::problem::Problem;

/// What is decided about a request as things are now.
pub(crate) async fn decided(
    app: &App,
    settings: &Settings,
    request: &GitRequest,
) -> Result<GitAnswer, Problem> {
    let row = match request.environment {
        Some(id) => app.store().environment_by_id(id).await?,
        None => None,
    };
    let source = settings.source(&request.source);
    let there = row.as_ref().map(there);
    let decision = decide(source, &request.event, request.settled.as_ref(), there);
    let name = match (&row, source, decision) {
        (Some(row), _, _) => Some(row.name.clone()),
        (None, Some(source), Decision::Do(_)) => free(app, source, request).await?,
        (None, _, _) => None,
    };
    Ok(answer(decision, request, name))
}

fn there(row: &EnvironmentRow) -> There<'_> {
    There {
        standing: row.standing(),
        sha: row.origin.as_ref().map_or("", |origin| &origin.sha),
    }
}

/// The first name that nobody has.
async fn free(
    app: &App,
    source: &Source,
    request: &GitRequest,
) -> Result<Option<EnvironmentName>, Problem> {
    for name in source.environment.names(&source.name, &request.event) {
        let taken = app.store().environment(&request.project, &name).await?;
        if taken.is_none() {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn answer(decision: Decision, request: &GitRequest, name: Option<EnvironmentName>) -> GitAnswer {
    let (decision, reason) = match decision {
        Decision::Do(deed) => {
            let number = request.event.request;
            let reason = format!("request {number} is at {}", request.event.sha);
            match deed {
                Deed::Create => (GitDecision::Create, reason),
                Deed::Update => (GitDecision::Update, reason),
                Deed::Restore => (GitDecision::Restore, reason),
                Deed::Archive | Deed::Cleanup | Deed::Delete => {
                    let reason = format!("request {number} is not to have an environment");
                    (GitDecision::Archive, reason)
                }
            }
        }
        Decision::Nothing(idle) => (GitDecision::Ignore, idle.as_str().to_owned()),
        Decision::Held(rest) => (GitDecision::Later, rest.as_str().to_owned()),
        Decision::Later(deed) => (
            GitDecision::Later,
            format!("{deed} is under way, and is waited for"),
        ),
    };
    GitAnswer {
        decision,
        environment: name.map(Into::into),
        reason,
    }
}
