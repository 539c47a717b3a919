//! Environments that come, each with its first action.

use super::beginning::{Begun, UP, audited, check_lent, check_sealed, store_action, told, within};
use super::following::{GitStep, stepped};
use super::{
    About, Body, Effective, EnvironmentError, Known, Order, enter, given, note_change, settings,
};
use crate::Store;
use crate::audit::Actor;
use crate::body::{FORMAT, Scope, Tx, Value, encode, first, insert};
use crate::error::Error;
use crate::projects;
use crate::sealed::{self, SealedRow, check_keys};
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::config::Edits;
use model::environment::git;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Status};
use model::id::{EnvironmentId, Origin};
use model::name::Name;
use model::time::Timestamp;
use plan::environment::{Standing, entered};

/// An environment on its way in.
#[derive(Debug, Clone)]
pub struct EnvironmentDraft {
    /// Who owns it.
    pub project: Name,
    /// What it is called.
    pub name: EnvironmentName,
    /// Who it will be: see [`Store::environment_to_be`].
    pub id: EnvironmentId,
    /// What people say of it.
    pub about: About,
    /// What somebody made of the defaults.
    pub edits: Edits,
    /// The values of those that are secret, sealed for it.
    pub sealed: Vec<SealedRow>,
    /// What comes of defaults and edits.
    pub effective: Effective,
    /// Who asks.
    pub actor: Actor,
    /// Which request it is of, or a copy of one that is.
    pub origin: Option<git::Origin>,
    /// What is made of that request by it; a copy is not made for one.
    pub step: Option<GitStep>,
}

impl Store {
    /// Who an environment of that name would be, were it created now: what is secret of it is
    /// sealed for that id alone.
    pub async fn environment_to_be(
        &self,
        project: &Name,
        name: &EnvironmentName,
    ) -> Result<EnvironmentId, Error> {
        let (project, name) = (project.clone(), name.clone());
        let question = move |tx: &mut dyn Tx| {
            let incarnation = lives(tx, &project, &name)?;
            Ok(identity(&project, &name, incarnation))
        };
        self.runner.read(question).await
    }

    /// Whether an environment of that name could be created now.
    pub async fn may_create_environment(
        &self,
        project: &Name,
        name: &EnvironmentName,
    ) -> Result<(), EnvironmentError> {
        let (project, name) = (project.clone(), name.clone());
        let question = move |tx: &mut dyn Tx| may_create(tx, &project, &name).map(drop);
        self.runner.read(question).await
    }

    /// Creates an environment, and has that begun.
    pub async fn create_environment(
        &self,
        draft: EnvironmentDraft,
        now: Timestamp,
    ) -> Result<Begun, EnvironmentError> {
        self.runner
            .write(Scope::Whole, move |tx| create(tx, &draft, now))
            .await
    }
}

/// How many bearers a name has had.
fn lives(tx: &mut dyn Tx, project: &Name, name: &EnvironmentName) -> Result<u64, Error> {
    let row = first(
        tx,
        "SELECT COUNT(*) FROM environments WHERE project = $1 AND name = $2",
        &[project.into(), name.into()],
    )?;
    row.map_or(Ok(0), |mut row| row.take())
}

pub(super) fn identity(project: &Name, name: &EnvironmentName, incarnation: u64) -> EnvironmentId {
    EnvironmentId::derive(Origin {
        parent: project.as_str(),
        name: name.as_str(),
        ordinal: 0,
        incarnation,
    })
}

pub(super) fn create(
    tx: &mut dyn Tx,
    draft: &EnvironmentDraft,
    now: Timestamp,
) -> Result<Begun, EnvironmentError> {
    let (project, name) = (&draft.project, &draft.name);
    check_keys(tx, draft.sealed.iter().map(|row| row.sealed.key))?;
    let settings = may_create(tx, project, name)?;
    let incarnation = lives(tx, project, name)?;
    if identity(project, name, incarnation) != draft.id {
        return Err(EnvironmentError::Elsewhere);
    }
    check_sealed(tx, project, draft.id, &draft.edits, &draft.sealed)?;
    check_lent(draft.origin.as_ref(), &draft.edits)?;
    let order = Order {
        settings,
        edits: draft.edits.clone(),
        application: draft.effective.application.clone(),
        deployment: draft.effective.deployment.clone(),
        forced: false,
        before: None,
        taken: false,
    };
    let known = store_new(tx, draft, incarnation, now)?;
    for row in &draft.sealed {
        sealed::store(tx, row, &draft.actor, now)?;
    }
    if let Some(step) = &draft.step {
        stepped(tx, project, step, Some(known.id))?;
    }
    let of = (known.id, project, name);
    let because = format!("{} asked for it", draft.actor.name);
    note_change(tx, of, (None, Some(known.standing.status)), &because, now)?;
    let detail = told(&Edits::default(), &draft.edits, &draft.sealed);
    let generations = (None, Some(known.generation));
    let by = (&draft.actor, audited(Deed::Create));
    enter(tx, (project, name), by, generations, detail, now);
    let action = store_action(tx, &known, (Deed::Create, &draft.actor), &order, now)?;
    Ok(Begun {
        environment: known.id,
        generation: known.generation,
        action,
        state: State::Waiting,
    })
}

/// Whether another environment may come, and what its project says of them.
fn may_create(
    tx: &mut dyn Tx,
    project: &Name,
    name: &EnvironmentName,
) -> Result<Settings, EnvironmentError> {
    let quota = projects::quota(tx, project)?.ok_or_else(|| EnvironmentError::NoProject {
        project: project.clone(),
    })?;
    let settings =
        settings::of_project(tx, project)?.ok_or_else(|| EnvironmentError::NoSettings {
            project: project.clone(),
        })?;
    let bearer = first(
        tx,
        "SELECT status FROM environments WHERE project = $1 AND name = $2 AND gone = 0",
        &[project.into(), name.into()],
    )?;
    if let Some(mut row) = bearer {
        return Err(EnvironmentError::Exists {
            name: name.clone(),
            status: row.take()?,
        });
    }
    let all = "SELECT COUNT(*) FROM environments WHERE project = $1 AND gone = 0 AND id <> $2";
    within(tx, all, (project, ""), "environments", quota.environments)?;
    within(
        tx,
        UP,
        (project, ""),
        "environments that are up",
        settings.up_max,
    )?;
    Ok(settings)
}

fn store_new(
    tx: &mut dyn Tx,
    draft: &EnvironmentDraft,
    incarnation: u64,
    now: Timestamp,
) -> Result<Known, Error> {
    let about = &draft.about;
    let body = Body {
        edits: draft.edits.clone(),
        notes: about.notes.clone(),
        labels: about.labels.clone(),
        links: Vec::new(),
        origin: draft.origin.clone(),
        given: given(about.expires_at, now),
        taken: None,
    };
    let status = entered(Deed::Create).unwrap_or(Status::CreatePending);
    tx.execute(
        "INSERT INTO environments (id, project, name, incarnation, generation, status, status_since, failed,
             protected, gone, owner, created_at, updated_at, archived_at, expires_at, used_at, asleep,
             format, body)
         VALUES ($1, $2, $3, $4, 1, $5, $6, 0, $7, 0, $8, $6, $6, NULL, $9, $6, NULL, $10, $11)",
        &[
            draft.id.into(),
            (&draft.project).into(),
            (&draft.name).into(),
            incarnation.into(),
            status.into(),
            now.into(),
            about.protected.into(),
            (&about.owner).into(),
            about.expires_at.into(),
            FORMAT.into(),
            encode(&body)?,
        ],
    )?;
    tx.execute(
        "INSERT INTO environment_checks (environment) VALUES ($1)",
        &[draft.id.into()],
    )?;
    store_labels(tx, &draft.project, draft.id, about)?;
    Ok(Known {
        id: draft.id,
        project: draft.project.clone(),
        name: draft.name.clone(),
        generation: 1,
        standing: Standing {
            status,
            since: now,
            busy: None,
            failed: false,
            protected: about.protected,
            asleep: None,
        },
        expires_at: about.expires_at,
        created_at: now,
        owner: about.owner.clone(),
        body,
    })
}

/// Has an environment found by its labels, and by no others.
pub(super) fn store_labels(
    tx: &mut dyn Tx,
    project: &Name,
    id: EnvironmentId,
    about: &About,
) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM environment_labels WHERE environment = $1",
        &[id.into()],
    )?;
    let labels: Vec<Vec<Value>> = about
        .labels
        .iter()
        .map(|(label, value)| vec![id.into(), label.into(), value.into(), project.into()])
        .collect();
    let into = "environment_labels (environment, label, value, project)";
    insert(tx, into, &labels, "").map(drop)
}
