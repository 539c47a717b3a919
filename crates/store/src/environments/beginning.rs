//! What is begun with environments that are there.

use super::following::{GitStep, stepped};
use super::{
    Before, Effective, EnvironmentError, Known, Order, Rest, enter, following, known_by_name,
    let_go, note_action, note_change, sealed_entries, settings,
};
use crate::Store;
use crate::audit::Actor;
use crate::body::{FORMAT, Scope, Tx, encode, first};
use crate::error::Error;
use crate::sealed::{self, SealedRow, check_keys};
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::config::{Edit, Edits, Level};
use model::environment::git;
use model::environment::status::{Deed, Sleep};
use model::id::{ActionId, EnvironmentId, Origin};
use model::name::Name;
use model::sealed::Owner;
use model::time::Timestamp;
use plan::environment::{Cause, entered, lasts};
use std::collections::BTreeSet;

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
    /// Which one who asks has seen, in which of its lives, and its edits then; others are refused.
    pub seen: Option<(EnvironmentId, Edits)>,
    /// All edits from now on; none leaves them as they are.
    pub edits: Option<Edits>,
    /// The values of those that are secret and new, sealed for it.
    pub sealed: Vec<SealedRow>,
    /// Until when secret settings may have got their values; later ones are refused.
    pub sealed_until: Option<Timestamp>,
    /// What comes of defaults and edits.
    pub effective: Effective,
    /// Who asks.
    pub actor: Actor,
    /// Why, where nobody does.
    pub cause: Option<Cause>,
    /// Where it comes from from now on; none leaves that as it is.
    pub origin: Option<git::Origin>,
    /// What is made of a request by it, where it is done for one.
    pub step: Option<GitStep>,
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
    /// Begins something with an environment that is there.
    pub async fn begin_action(
        &self,
        draft: ActionDraft,
        now: Timestamp,
    ) -> Result<Begun, EnvironmentError> {
        let scope = scope(draft.deed);
        self.runner
            .write(scope, move |tx| begin(tx, &draft, now))
            .await
    }
}

/// How much a question has for itself that begins this: only what comes up is counted against a
/// limit.
pub(super) fn scope(deed: Deed) -> Scope {
    if deed == Deed::Restore {
        Scope::Whole
    } else {
        Scope::Rows
    }
}

/// Environments of a project that are up, but for one.
pub(super) const UP: &str =
    "SELECT COUNT(*) FROM environments WHERE project = $1 AND gone = 0 AND id <> $2
     AND status NOT IN ('archived', 'cleanup-failed')";

/// Refuses one more than there may be.
pub(super) fn within(
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

pub(super) fn begin(
    tx: &mut dyn Tx,
    draft: &ActionDraft,
    now: Timestamp,
) -> Result<Begun, EnvironmentError> {
    check_keys(tx, draft.sealed.iter().map(|row| row.sealed.key))?;
    let mut known = ready(tx, draft)?;
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
    if let Some(until) = draft.sealed_until {
        check_unchanged(tx, &draft.project, known.id, &edits, until)?;
    }
    let before = known.body.origin.clone();
    if let Some(origin) = &draft.origin {
        known.body.origin = Some(origin.clone());
    }
    check_lent(known.body.origin.as_ref(), &edits)?;
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
            origin: before,
            rest: Some(rest(&known, draft, now)),
        }),
        taken: false,
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
    if let Some(step) = &draft.step {
        stepped(tx, &draft.project, step, None)?;
    }
    let action = store_action(tx, &known, (draft.deed, &draft.actor), &order, now)?;
    let state = set_out(tx, &mut known, action, draft, now)?;
    Ok(Begun {
        environment: known.id,
        generation: known.generation,
        action,
        state,
    })
}

/// The environment that something is to be done to, if that may be done now.
pub(super) fn ready(tx: &mut dyn Tx, draft: &ActionDraft) -> Result<Known, EnvironmentError> {
    let known = known_by_name(tx, &draft.project, &draft.name)?;
    let known = known.ok_or_else(|| EnvironmentError::NotFound {
        name: draft.name.clone(),
    })?;
    if let Some(expected) = draft.generation.filter(|seen| *seen != known.generation) {
        let found = known.generation;
        return Err(EnvironmentError::Stale { expected, found });
    }
    let permitted = known.standing.permit(draft.deed, draft.force);
    permitted.map_err(EnvironmentError::Refused)?;
    match &draft.seen {
        Some((id, _)) if *id != known.id => Err(EnvironmentError::Elsewhere),
        Some((_, edits)) if *edits != known.body.edits => Err(EnvironmentError::Edited),
        Some(_) | None => Ok(known),
    }
}

/// How an environment rests again if this is called off before it begins. What nobody asked for is
/// not begun again for the same reason.
fn rest(known: &Known, draft: &ActionDraft, now: Timestamp) -> Rest {
    let slept = known.standing.asleep.map(|sleep| sleep.as_str().to_owned());
    let woken = draft.deed == Deed::Restore && draft.cause.is_some();
    let (woken, asleep) = if woken { (slept, None) } else { (None, slept) };
    Rest {
        asleep,
        woken,
        expires_at: known.expires_at,
        made: lasts(draft.deed, known.expires_at, known.given(), now),
    }
}

/// Has an environment enter what something that begins brings with it.
fn set_out(
    tx: &mut dyn Tx,
    known: &mut Known,
    action: ActionId,
    draft: &ActionDraft,
    now: Timestamp,
) -> Result<State, Error> {
    let deed = draft.deed;
    let because = match draft.cause {
        Some(cause) => format!("{deed} because {}", cause.as_str()),
        None => format!("{} asked for {deed}", draft.actor.name),
    };
    if deed == Deed::Delete {
        // Nothing of it is touched, so nothing is left to be done.
        done(tx, known, (action, deed), now)?;
        let_go(tx, known, &because, now)?;
        return Ok(State::Done);
    }
    if deed == Deed::Archive && known.standing.sleeps() {
        stay(tx, known, action, now)?;
        return Ok(State::Done);
    }
    let was = known.standing.status;
    let status = entered(deed).unwrap_or(was);
    let since = if status == was {
        known.standing.since
    } else {
        now
    };
    let expires_at = lasts(deed, known.expires_at, known.given(), now);
    let asleep = match deed {
        Deed::Archive => draft.cause.and_then(Cause::sleep),
        // What is never begun leaves it as it is.
        Deed::Cleanup => known.standing.asleep,
        Deed::Create | Deed::Update | Deed::Restore | Deed::Delete => None,
    };
    let asleep = asleep.map(Sleep::as_str);
    tx.execute(
        "UPDATE environments SET generation = $2, status = $3, status_since = $4, failed = 0, expires_at = $5,
             updated_at = $6, format = $7, body = $8, asleep = $9,
             used_at = CASE WHEN $10 = 1 THEN $6 ELSE used_at END WHERE id = $1",
        &[
            known.id.into(),
            known.generation.into(),
            status.into(),
            since.into(),
            expires_at.into(),
            now.into(),
            FORMAT.into(),
            encode(&known.body)?,
            asleep.into(),
            // Whoever wakes it, it is new to those who would use it.
            (draft.cause.is_none() || deed == Deed::Restore).into(),
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
    if deed == Deed::Restore {
        following::woken(tx, known.id, now)?;
    }
    Ok(State::Waiting)
}

/// Has one that sleeps stay where it is: nobody wakes it any more, and what it has stored is kept for
/// as long as that of others. It is at rest already, so no script is run.
fn stay(tx: &mut dyn Tx, known: &Known, action: ActionId, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE environments SET generation = $2, asleep = NULL, archived_at = $3, updated_at = $3
         WHERE id = $1",
        &[known.id.into(), known.generation.into(), now.into()],
    )?;
    done(tx, known, (action, Deed::Archive), now)
}

/// Says of an action that needs no script that it is done.
fn done(
    tx: &mut dyn Tx,
    known: &Known,
    (action, deed): (ActionId, Deed),
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE environment_actions SET state = 'done', started_at = $2, ended_at = $2 WHERE id = $1",
        &[action.into(), now.into()],
    )?;
    let of = (action, deed, &known.name);
    note_action(tx, &known.project, of, (State::Done, ""), now);
    Ok(())
}

pub(super) fn store_action(
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
pub(super) fn check_sealed(
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

/// Refuses secret settings that have got other values since then: those of then are not kept.
fn check_unchanged(
    tx: &mut dyn Tx,
    project: &Name,
    id: EnvironmentId,
    edits: &Edits,
    until: Timestamp,
) -> Result<(), EnvironmentError> {
    let rows = tx.query(
        "SELECT entry FROM sealed WHERE project = $1 AND owner = $2 AND updated_at > $3",
        &[
            project.into(),
            Owner::Environment(id).to_string().into(),
            until.into(),
        ],
    )?;
    let entries = rows.into_iter().map(|mut row| row.take::<String>());
    let later = entries.collect::<Result<BTreeSet<_>, _>>()?;
    let keys: Vec<_> = edits
        .secrets()
        .filter(|(level, key)| later.contains(Edits::entry(*level, key).as_str()))
        .map(|(_, key)| key.clone())
        .collect();
    if keys.is_empty() {
        return Ok(());
    }
    Err(EnvironmentError::SealedSince { keys })
}

/// Refuses secret settings where what is deployed comes from anybody.
pub(super) fn check_lent(
    origin: Option<&git::Origin>,
    edits: &Edits,
) -> Result<(), EnvironmentError> {
    let fork = origin.is_some_and(|origin| origin.fork);
    match edits.secrets().next() {
        Some((level, key)) if fork => {
            let key = key.clone();
            Err(EnvironmentError::Fork { level, key })
        }
        Some(_) | None => Ok(()),
    }
}

/// What was done to which settings, in the words of the audit; never to what.
pub(super) fn told(before: &Edits, after: &Edits, sealed: &[SealedRow]) -> String {
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
pub(super) const fn audited(deed: Deed) -> &'static str {
    match deed {
        Deed::Create => "environment.create",
        Deed::Update => "environment.update",
        Deed::Archive => "environment.archive",
        Deed::Restore => "environment.restore",
        Deed::Cleanup => "environment.cleanup",
        Deed::Delete => "environment.delete",
    }
}
