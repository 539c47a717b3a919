//! Environments that come, and what is begun with those that are there.

use super::{
    About, Before, Body, Effective, EnvironmentError, Known, Order, enter, known_by_name, let_go,
    note_action, note_change, sealed_entries, settings,
};
use crate::Store;
use crate::audit::Actor;
use crate::body::{FORMAT, Scope, Tx, Value, encode, first, insert};
use crate::error::Error;
use crate::projects;
use crate::sealed::{self, SealedRow, check_keys};
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::config::{Edit, Edits, Level};
use model::environment::settings::Settings;
use model::environment::status::{Deed, Status};
use model::id::{ActionId, EnvironmentId, Origin};
use model::name::Name;
use model::sealed::Owner;
use model::time::Timestamp;
use plan::environment::entered;
use std::collections::BTreeSet;

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
}

/// Something to be done to an environment, on its way in.
#[derive(Debug, Clone)]
pub struct ActionDraft {
    /// Whose environment.
    pub project: Name,
    /// Which.
    pub name: EnvironmentName,
    /// What is to be done.
    pub deed: Deed,
    /// Whether who asks takes what may be lost.
    pub force: bool,
    /// The generation that who asks has seen; another is refused.
    pub generation: Option<u64>,
    /// All edits from now on; none leaves them as they are.
    pub edits: Option<Edits>,
    /// The values of those that are secret and new, sealed for it.
    pub sealed: Vec<SealedRow>,
    /// What comes of defaults and edits.
    pub effective: Effective,
    /// Who asks.
    pub actor: Actor,
}

/// What was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// The environment.
    pub environment: EnvironmentId,
    /// Its generation.
    pub generation: u64,
    /// What is done to it.
    pub action: ActionId,
    /// How far that has come: what needs no script is done.
    pub state: State,
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

    /// Begins something with an environment that is there.
    pub async fn begin_action(
        &self,
        draft: ActionDraft,
        now: Timestamp,
    ) -> Result<Begun, EnvironmentError> {
        // Only what comes up is counted against a limit.
        let scope = if draft.deed == Deed::Restore {
            Scope::Whole
        } else {
            Scope::Rows
        };
        self.runner
            .write(scope, move |tx| begin(tx, &draft, now))
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

fn identity(project: &Name, name: &EnvironmentName, incarnation: u64) -> EnvironmentId {
    EnvironmentId::derive(Origin {
        parent: project.as_str(),
        name: name.as_str(),
        ordinal: 0,
        incarnation,
    })
}

fn create(
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
    let order = Order {
        settings,
        edits: draft.edits.clone(),
        application: draft.effective.application.clone(),
        deployment: draft.effective.deployment.clone(),
        forced: false,
        before: None,
    };
    let known = store_new(tx, draft, incarnation, now)?;
    for row in &draft.sealed {
        sealed::store(tx, row, &draft.actor, now)?;
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

/// Environments of a project that are up, but for one.
const UP: &str = "SELECT COUNT(*) FROM environments WHERE project = $1 AND gone = 0 AND id <> $2
     AND status NOT IN ('archived', 'cleanup-failed')";

/// Refuses one more than there may be.
fn within(
    tx: &mut dyn Tx,
    count: &str,
    (project, but): (&Name, &str),
    what: &'static str,
    limit: Option<u32>,
) -> Result<(), EnvironmentError> {
    let Some(limit) = limit else {
        return Ok(());
    };
    let row = first(tx, count, &[project.into(), but.into()])?;
    let used = row.map_or(Ok(0), |mut row| row.take::<u32>())?;
    if used < limit {
        return Ok(());
    }
    Err(EnvironmentError::Quota { what, used, limit })
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
    };
    let status = entered(Deed::Create).unwrap_or(Status::CreatePending);
    tx.execute(
        "INSERT INTO environments (id, project, name, incarnation, generation, status, status_since, failed,
             protected, gone, owner, created_at, updated_at, archived_at, expires_at, format, body)
         VALUES ($1, $2, $3, $4, 1, $5, $6, 0, $7, 0, $8, $6, $6, NULL, $9, $10, $11)",
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
        standing: plan::environment::Standing {
            status,
            since: now,
            busy: None,
            failed: false,
            protected: about.protected,
        },
        expires_at: about.expires_at,
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

pub(super) fn begin(
    tx: &mut dyn Tx,
    draft: &ActionDraft,
    now: Timestamp,
) -> Result<Begun, EnvironmentError> {
    check_keys(tx, draft.sealed.iter().map(|row| row.sealed.key))?;
    let mut known = known_by_name(tx, &draft.project, &draft.name)?.ok_or_else(|| {
        EnvironmentError::NotFound {
            name: draft.name.clone(),
        }
    })?;
    if let Some(expected) = draft.generation.filter(|seen| *seen != known.generation) {
        let found = known.generation;
        return Err(EnvironmentError::Stale { expected, found });
    }
    let permitted = known.standing.permit(draft.deed, draft.force);
    permitted.map_err(EnvironmentError::Refused)?;
    let settings = settings::of_project(tx, &draft.project)?;
    let settings = settings.ok_or_else(|| EnvironmentError::NoSettings {
        project: draft.project.clone(),
    })?;
    if draft.deed == Deed::Restore {
        let but = known.id.to_string();
        let what = "environments that are up";
        within(tx, UP, (&draft.project, &but), what, settings.up_max)?;
    }
    let edits = draft.edits.as_ref().unwrap_or(&known.body.edits).clone();
    check_sealed(tx, &draft.project, known.id, &edits, &draft.sealed)?;
    for row in &draft.sealed {
        sealed::store(tx, row, &draft.actor, now)?;
    }
    let order = Order {
        settings,
        edits: edits.clone(),
        application: draft.effective.application.clone(),
        deployment: draft.effective.deployment.clone(),
        forced: draft.force,
        before: Some(Before {
            status: known.standing.status,
            since: known.standing.since,
            failed: known.standing.failed,
            edits: known.body.edits.clone(),
        }),
    };
    let detail = told(&known.body.edits, &edits, &draft.sealed);
    let was = known.generation;
    known.generation += 1;
    let by = (&draft.actor, audited(draft.deed));
    let generations = (Some(was), Some(known.generation));
    let forced = if draft.force { "by force " } else { "" };
    let detail = format!("{forced}{detail}").trim_end().to_owned();
    enter(
        tx,
        (&draft.project, &draft.name),
        by,
        generations,
        detail,
        now,
    );
    known.body.edits = edits;
    let action = store_action(tx, &known, (draft.deed, &draft.actor), &order, now)?;
    let state = set_out(tx, &mut known, (draft.deed, action), &draft.actor, now)?;
    Ok(Begun {
        environment: known.id,
        generation: known.generation,
        action,
        state,
    })
}

/// Has an environment enter what something that begins brings with it.
fn set_out(
    tx: &mut dyn Tx,
    known: &mut Known,
    (deed, action): (Deed, ActionId),
    actor: &Actor,
    now: Timestamp,
) -> Result<State, Error> {
    let because = format!("{} asked for {deed}", actor.name);
    if deed == Deed::Delete {
        // Nothing of it is touched, so nothing is left to be done.
        tx.execute(
            "UPDATE environment_actions SET state = 'done', started_at = $2, ended_at = $2 WHERE id = $1",
            &[action.into(), now.into()],
        )?;
        let of = (action, deed, &known.name);
        note_action(tx, &known.project, of, (State::Done, ""), now);
        let_go(tx, known, &because, now)?;
        return Ok(State::Done);
    }
    let was = known.standing.status;
    let status = entered(deed).unwrap_or(was);
    let since = if status == was {
        known.standing.since
    } else {
        now
    };
    // What has come to its end before it is brought back would go again at once.
    let past = known.expires_at.is_some_and(|end| end <= now);
    let expires_at = known
        .expires_at
        .filter(|_| !(past && deed == Deed::Restore));
    tx.execute(
        "UPDATE environments SET generation = $2, status = $3, status_since = $4, failed = 0, expires_at = $5,
             updated_at = $6, format = $7, body = $8 WHERE id = $1",
        &[
            known.id.into(),
            known.generation.into(),
            status.into(),
            since.into(),
            expires_at.into(),
            now.into(),
            FORMAT.into(),
            encode(&known.body)?,
        ],
    )?;
    tx.execute(
        "UPDATE environment_checks SET due = NULL WHERE environment = $1",
        &[known.id.into()],
    )?;
    if status != was {
        let of = (known.id, &known.project, &known.name);
        note_change(tx, of, (Some(was), Some(status)), &because, now)?;
    }
    known.standing.status = status;
    Ok(State::Waiting)
}

fn store_action(
    tx: &mut dyn Tx,
    known: &Known,
    (deed, actor): (Deed, &Actor),
    order: &Order,
    now: Timestamp,
) -> Result<ActionId, Error> {
    let action = ActionId::derive(Origin {
        parent: &known.id.to_string(),
        name: deed.as_str(),
        ordinal: known.generation,
        incarnation: 0,
    });
    tx.execute(
        "INSERT INTO environment_actions (id, project, environment, name, deed, state, cancel, not_before,
             fence, author, created_at, format, body)
         VALUES ($1, $2, $3, $4, $5, 'waiting', 0, $6, 0, $7, $6, $8, $9)",
        &[
            action.into(),
            (&known.project).into(),
            known.id.into(),
            (&known.name).into(),
            deed.into(),
            now.into(),
            (&actor.name).into(),
            FORMAT.into(),
            encode(order)?,
        ],
    )?;
    if deed != Deed::Delete {
        let of = (action, deed, &known.name);
        note_action(tx, &known.project, of, (State::Waiting, ""), now);
    }
    Ok(action)
}

/// Refuses values that are sealed for somebody else, and secret settings without one.
fn check_sealed(
    tx: &mut dyn Tx,
    project: &Name,
    id: EnvironmentId,
    edits: &Edits,
    given: &[SealedRow],
) -> Result<(), EnvironmentError> {
    let here = |row: &SealedRow| {
        row.place.project == *project && row.place.owner == Owner::Environment(id)
    };
    if !given.iter().all(here) {
        return Err(EnvironmentError::Elsewhere);
    }
    if edits.secrets().next().is_none() {
        return Ok(());
    }
    let mut sealed: BTreeSet<_> = sealed_entries(tx, project, id)?.into_iter().collect();
    sealed.extend(given.iter().map(|row| row.place.entry.to_string()));
    for (level, key) in edits.secrets() {
        if !sealed.contains(Edits::entry(level, key).as_str()) {
            let key = key.clone();
            return Err(EnvironmentError::Unsealed { level, key });
        }
    }
    Ok(())
}

/// What was done to which settings, in the words of the audit; never to what.
fn told(before: &Edits, after: &Edits, sealed: &[SealedRow]) -> String {
    let entries: BTreeSet<_> = sealed.iter().map(|row| row.place.entry.as_str()).collect();
    let mut words = Vec::new();
    for level in Level::ALL {
        let (before, after) = (before.of(level), after.of(level));
        for (key, edit) in after {
            let changed = before.get(key) != Some(edit);
            let verb = match edit {
                Edit::Secret if changed || entries.contains(Edits::entry(level, key).as_str()) => {
                    "sealed"
                }
                Edit::Set(_) if changed => "set",
                Edit::Removed if changed => "removed",
                Edit::Set(_) | Edit::Secret | Edit::Removed => continue,
            };
            words.push(format!("{verb} {} {key}", level.as_str()));
        }
        let unset = before.keys().filter(|key| !after.contains_key(*key));
        words.extend(unset.map(|key| format!("unset {} {key}", level.as_str())));
    }
    words.join(", ")
}

/// The word of the audit.
const fn audited(deed: Deed) -> &'static str {
    match deed {
        Deed::Create => "environment.create",
        Deed::Update => "environment.update",
        Deed::Archive => "environment.archive",
        Deed::Restore => "environment.restore",
        Deed::Cleanup => "environment.cleanup",
        Deed::Delete => "environment.delete",
    }
}
