//! Puts messages to git services: how the environment of a commit is.

use super::following::follows;
use super::posted::{DeliveryDraft, post};
use super::{Body, GitRequest, Known, settings};
use crate::body::Tx;
use crate::error::Error;
use model::environment::EnvironmentName;
use model::environment::git::report::{Reported, Verdict};
use model::environment::git::{self, Source};
use model::environment::settings::Settings;
use model::id::{DeliveryId, EnvironmentId, Origin};
use model::name::Name;
use model::time::Timestamp;
use plan::environment::git::{Last, called_off, report};
use plan::notify::Happening;

/// Something that happened to an environment, as its git service is told of it.
pub(super) struct About<'a> {
    pub(super) project: &'a Name,
    pub(super) environment: (EnvironmentId, &'a EnvironmentName),
    pub(super) what: Happening,
    /// How the last thing ended that was done to it.
    pub(super) last: Last,
    /// What tells it from all else that happened to it.
    pub(super) number: u64,
}

/// Whether somebody is to be told by this source.
fn tells(settings: &Settings, source: &Name) -> bool {
    let source = settings.source(source);
    source.is_some_and(|source: &Source| source.report.is_some())
}

/// The same, as far as this program can read what the project says.
fn is_told(tx: &mut dyn Tx, project: &Name, source: &Name) -> Result<bool, Error> {
    let settings = match settings::of_project(tx, project) {
        Err(error) if error.is_unreadable() => None,
        read => read?,
    };
    Ok(settings.is_some_and(|settings| tells(&settings, source)))
}

/// Puts a message for the service that an environment comes from, where it is to be told.
pub(super) fn report_on(
    tx: &mut dyn Tx,
    settings: &Settings,
    body: &Body,
    about: &About<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(origin) = &body.origin else {
        return Ok(());
    };
    let (id, name) = about.environment;
    let Some(reported) = report(origin, name, &body.links, about.what, about.last) else {
        return Ok(());
    };
    if !tells(settings, &origin.source) || !follows(tx, about.project, origin, id)? {
        return Ok(());
    }
    let draft = Draft {
        project: about.project,
        source: &origin.source,
        environment: Some((id, name.clone())),
        occasion: about.what.occasion().as_str(),
        parent: &id.to_string(),
        number: about.number,
    };
    put(tx, &draft, &reported, now)
}

/// Puts a message about a commit that an environment was to be given, until somebody called that off.
pub(super) fn report_called_off(
    tx: &mut dyn Tx,
    known: &Known,
    origin: &git::Origin,
    now: Timestamp,
) -> Result<(), Error> {
    if !is_told(tx, &known.project, &origin.source)?
        || !follows(tx, &known.project, origin, known.id)?
    {
        return Ok(());
    }
    let draft = Draft {
        project: &known.project,
        source: &origin.source,
        environment: Some((known.id, known.name.clone())),
        occasion: "git-called-off",
        parent: &known.id.to_string(),
        // Each action has a generation of its own.
        number: known.generation,
    };
    put(tx, &draft, &called_off(origin, &known.name), now)
}

/// Puts a message about a request of which nothing could be made.
pub(super) fn report_unable(
    tx: &mut dyn Tx,
    request: &GitRequest,
    said: &str,
    now: Timestamp,
) -> Result<(), Error> {
    if !is_told(tx, &request.project, &request.source)? {
        return Ok(());
    }
    let reported = Reported {
        repository: request.event.repository.clone(),
        sha: request.event.sha.clone(),
        verdict: Verdict::Failure,
        description: Reported::line(said),
        url: None,
    };
    let draft = Draft {
        project: &request.project,
        source: &request.source,
        environment: None,
        occasion: "git-failed",
        parent: &format!(
            "{}/{}/{}",
            request.project, request.source, request.event.request
        ),
        number: request.version,
    };
    put(tx, &draft, &reported, now)
}

/// Whom a message is for, and what tells it from others.
struct Draft<'a> {
    project: &'a Name,
    source: &'a Name,
    environment: Option<(EnvironmentId, EnvironmentName)>,
    occasion: &'a str,
    parent: &'a str,
    number: u64,
}

fn put(
    tx: &mut dyn Tx,
    draft: &Draft<'_>,
    reported: &Reported,
    now: Timestamp,
) -> Result<(), Error> {
    let document = serde_json::to_string(reported).map_err(|_| Error::unanswered())?;
    let draft = DeliveryDraft {
        id: DeliveryId::derive(Origin {
            parent: draft.parent,
            name: &format!("{}/{}/{}", Reported::KIND, draft.source, draft.occasion),
            ordinal: draft.number,
            incarnation: 0,
        }),
        project: draft.project.clone(),
        kind: Reported::KIND.to_owned(),
        target: draft.source.to_string(),
        environment: draft.environment.clone(),
        occasion: draft.occasion.to_owned(),
        document,
    };
    post(tx, &draft, now).map(drop)
}
