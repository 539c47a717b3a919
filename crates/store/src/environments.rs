//! Environments: how each is, what is done to it, and what was seen of it.
//!
//! What may be done is decided by `plan::environment`, in the transaction that stores it. An
//! environment has one open action at most: a unique index is the lock, and it outlives us.
//!
//! **Invariant:** an environment that is busy is looked at by nobody, and what somebody saw before
//! it became busy, or was changed, is dropped.

mod amending;
mod asking;
mod beginning;
mod cancelling;
mod changing;
mod checking;
mod claiming;
mod configured;
mod creating;
mod delivering;
mod following;
mod history;
mod initialising;
mod listing;
mod living;
mod output;
mod posted;
mod recording;
mod reporting;
mod settings;
mod sweeping;
mod taking;
mod telling;

pub use amending::Amendment;
pub use asking::{Ask, EnvironmentAnswer, Undertaken};
pub use beginning::{ActionDraft, Begun};
pub use cancelling::Cancelled;
pub use checking::{DueCheck, DueChecks, LookPlaces, LookRecord, LookRoom, LooksRecorded};
pub(crate) use claiming::doubt;
pub use claiming::{ActionBeat, ActionClaim};
pub use creating::EnvironmentDraft;
pub(crate) use delivering::doubt_deliveries;
pub use delivering::{DeliveryClaim, DeliveryEnd};
pub(crate) use following::Request;
pub use following::{GitEnd, GitRequest, GitState, GitStep, TakenIn};
pub use history::{ActionRow, EnvironmentChange};
pub use initialising::InitRow;
pub use listing::{Busy, CalledOff, Checked, EnvironmentFilter, EnvironmentOrder, EnvironmentRow};
pub use living::Outlived;
pub use output::{HEAD as OUTPUT_HEAD, OutputLine, OutputStream, Printed, TAIL as OUTPUT_TAIL};
pub use posted::{DeliveryDraft, DeliveryError, DeliveryFilter, DeliveryRow};
pub use recording::{ActionEnd, ActionEnded};
pub use settings::SettingsRow;
pub(crate) use sweeping::{sweep, sweep_deliveries};
pub use taking::{TakeOutcome, TookOver};

use crate::audit::{self, Actor, Entry};
use crate::body::{FORMAT, Row, Tx, Value, encode, first};
use crate::error::Error;
use crate::events::note;
use crate::keys::Reused;
use crate::sealed::{self, SealError};
use model::environment::action::State;
use model::environment::config::{Edits, Key, Level, Setting};
use model::environment::git;
use model::environment::link::Link;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Sleep, Status};
use model::environment::{EnvironmentName, LABELS_MAX};
use model::id::{ActionId, EnvironmentId};
use model::name::Name;
use model::sealed::{KeyId, Owner};
use model::time::Timestamp;
use plan::environment::{Refusal, Standing};
use plan::notify::Happening;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use telling::{Happened, tell};

/// What people say of an environment that changes nothing of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Whose it is, in people's words.
    pub owner: String,
    /// What it is found by.
    pub labels: BTreeMap<String, String>,
    /// What else there is to know.
    pub notes: String,
    /// Whether it is to stay.
    pub protected: bool,
    /// Until when it may be up.
    pub expires_at: Option<Timestamp>,
}

/// The configuration of an environment as it counts in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effective {
    /// What the application is given.
    pub application: Vec<Setting>,
    /// How it is deployed.
    pub deployment: Vec<Setting>,
}

/// Why nothing was done to an environment.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// There is no such project.
    #[error("there is no project `{project}`")]
    NoProject {
        /// Which one.
        project: Name,
    },
    /// The project says nothing of environments, so nobody knows how to make one.
    #[error("project `{project}` has no settings for environments")]
    NoSettings {
        /// Which one.
        project: Name,
    },
    /// There is one of that name, which may rest in the archive.
    #[error("environment `{name}` exists already, and is {status}")]
    Exists {
        /// Its name.
        name: EnvironmentName,
        /// How it is.
        status: Status,
    },
    /// There is none of that name.
    #[error("there is no environment `{name}`")]
    NotFound {
        /// What was asked for.
        name: EnvironmentName,
    },
    /// It cannot be done to it now.
    #[error("{0}")]
    Refused(Refusal),
    /// There would be more than there may be.
    #[error("there are {used} of {limit} {what}")]
    Quota {
        /// Of what.
        what: &'static str,
        /// How many there are.
        used: u32,
        /// How many there may be.
        limit: u32,
    },
    /// Somebody has changed it since.
    #[error("it has generation {found}, and not {expected}")]
    Stale {
        /// What was expected.
        expected: u64,
        /// What it has.
        found: u64,
    },
    /// Somebody has changed its settings since: begin again.
    #[error("somebody has changed its settings meanwhile")]
    Edited,
    /// It would have more labels than it may.
    #[error("found {found} labels, allowed: at most {LABELS_MAX}")]
    Labels {
        /// How many it would have.
        found: usize,
    },
    /// What was seen or sealed is of another life of that name: begin again.
    #[error("it is another environment of that name")]
    Elsewhere,
    /// Something was told meanwhile of the request that it is done for.
    #[error("something later was told of the request")]
    Overtaken,
    /// A setting is said to be secret, and no value is sealed for it.
    #[error("the {} setting `{key}` is secret and has no value", level.as_str())]
    Unsealed {
        /// Of which configuration.
        level: Level,
        /// Which setting.
        key: Key,
    },
    /// Secret settings have other values than they had then, and those are not kept.
    #[error("secret settings have got other values since then: {}", named(keys))]
    SealedSince {
        /// Which settings.
        keys: Vec<Key>,
    },
    /// A setting is said to be secret, and what is deployed comes from anybody.
    #[error("the {} setting `{key}` is secret, and the environment is of a fork", level.as_str())]
    Fork {
        /// Of which configuration.
        level: Level,
        /// Which setting.
        key: Key,
    },
    /// The key that something was sealed with is not in use any more: seal again.
    #[error("the data key {key} is no longer in use")]
    KeyGone {
        /// Which key.
        key: KeyId,
    },
    /// There is no such action.
    #[error("there is no action {action}")]
    NoAction {
        /// Which one.
        action: ActionId,
    },
    /// It has ended already.
    #[error("action {action} has ended, it is {state}")]
    Ended {
        /// Which one.
        action: ActionId,
        /// How.
        state: State,
    },
    /// The key came with another request before.
    #[error("idempotency key `{key}` was used for another request")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<Reused> for EnvironmentError {
    fn from(Reused { key }: Reused) -> Self {
        Self::KeyReused { key }
    }
}

impl From<SealError> for EnvironmentError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::KeyGone { key } => Self::KeyGone { key },
            SealError::NoProject { project } => Self::NoProject { project },
            SealError::Store(error) => error.into(),
            // Only named secrets have entries to count.
            SealError::TooMany { .. } => Error::unanswered().into(),
        }
    }
}

/// What is kept of an environment as a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    edits: Edits,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    notes: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    links: Vec<Link>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<git::Origin>,
    /// How many seconds somebody gave it, who said until when it may be up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<u64>,
    /// Which one it was elsewhere, where it was taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken: Option<TakenFrom>,
}

/// Which one an environment was elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TakenFrom {
    /// In words that no other has.
    origin: String,
    /// The number of the last action that was taken over.
    upto: u64,
}

/// What is kept of an action as a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    settings: Settings,
    edits: Edits,
    application: Vec<Setting>,
    deployment: Vec<Setting>,
    #[serde(default)]
    forced: bool,
    /// How the environment was before; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Before>,
    /// Whether it was done elsewhere, and nobody here knows what came of defaults and edits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    taken: bool,
}

/// How an environment was before something was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    status: Status,
    since: Timestamp,
    failed: bool,
    edits: Edits,
    /// Where it came from; none, too, where an earlier version of the program wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<git::Origin>,
    /// None where an earlier version of the program wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rest: Option<Rest>,
}

/// How an environment rested, and until when it might be up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rest {
    /// What it falls back to.
    asleep: Option<String>,
    /// Why it slept, where it was woken though nobody asked: whoever calls that off has it rest from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    woken: Option<String>,
    expires_at: Option<Timestamp>,
    /// What was made of its end: who has said something else since then is not overruled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<Timestamp>,
}

/// An environment that a question has for itself.
struct Known {
    id: EnvironmentId,
    project: Name,
    name: EnvironmentName,
    generation: u64,
    standing: Standing,
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
    owner: String,
    body: Body,
}

impl Known {
    /// How long it was given when somebody last said until when it may be up.
    fn given(&self) -> Duration {
        let never_said = self.expires_at.map(|end| end.since(self.created_at));
        let said = self.body.given.map(Duration::from_secs);
        said.or(never_said).unwrap_or_default()
    }
}

/// Why one sleeps, as a column has it.
fn sleep_of(word: Option<String>) -> Option<Sleep> {
    let word = word?;
    Sleep::ALL.into_iter().find(|one| one.as_str() == word)
}

/// How long somebody gives who says until when.
fn given(expires_at: Option<Timestamp>, now: Timestamp) -> Option<u64> {
    expires_at.map(|end| end.since(now).as_secs())
}

const KNOWN: &str = "SELECT id, project, name, generation, status, status_since, failed, protected,
    expires_at, asleep, created_at, owner, format, body FROM environments";

/// The environment of that name, which nobody else changes until this transaction ends.
fn known_by_name(
    tx: &mut dyn Tx,
    project: &Name,
    name: &EnvironmentName,
) -> Result<Option<Known>, Error> {
    let sql = format!("{KNOWN} WHERE project = $1 AND name = $2 AND gone = 0 FOR UPDATE");
    let row = first(tx, &sql, &[project.into(), name.into()])?;
    row.map(|row| known(tx, row)).transpose()
}

/// The same by its id.
fn known_by_id(tx: &mut dyn Tx, id: EnvironmentId) -> Result<Option<Known>, Error> {
    let sql = format!("{KNOWN} WHERE id = $1 AND gone = 0 FOR UPDATE");
    let row = first(tx, &sql, &[id.into()])?;
    row.map(|row| known(tx, row)).transpose()
}

fn known(tx: &mut dyn Tx, mut row: Row) -> Result<Known, Error> {
    let id: EnvironmentId = row.take()?;
    let (project, name, generation) = (row.take()?, row.take()?, row.take()?);
    let (status, since) = (row.take()?, row.take()?);
    let (failed, protected) = (row.take()?, row.take()?);
    let (expires_at, asleep) = (row.take()?, sleep_of(row.take()?));
    let (created_at, owner) = (row.take()?, row.take()?);
    let body = row.document()?;
    // A statement of its own: whoever waited for the row above would not see otherwise what was
    // begun meanwhile.
    let open = first(
        tx,
        "SELECT deed FROM environment_actions WHERE environment = $1 AND state IN ('waiting', 'running')",
        &[id.into()],
    )?;
    let busy = open.map(|mut row| row.take::<Deed>()).transpose()?;
    Ok(Known {
        id,
        project,
        name,
        generation,
        standing: Standing {
            status,
            since,
            busy,
            failed,
            protected,
            asleep,
        },
        expires_at,
        created_at,
        owner,
        body,
    })
}

/// An environment as the object of an event.
fn object(name: &EnvironmentName) -> String {
    format!("environment/{name}")
}

/// An action as the object of an event.
fn action_object(action: ActionId) -> String {
    format!("action/{action}")
}

/// Enters what somebody did to an environment.
fn enter(
    tx: &mut dyn Tx,
    (project, name): (&Name, &EnvironmentName),
    (actor, action): (&Actor, &'static str),
    generations: (Option<u64>, Option<u64>),
    detail: String,
    now: Timestamp,
) {
    let entry = Entry {
        at: now,
        project: Some(project.clone()),
        actor: actor.clone(),
        action,
        object: object(name),
        generations,
        detail,
    };
    audit::enter(tx, entry);
}

/// Changes of status that are kept of one environment: a week of one that flaps every hour.
const CHANGES_KEPT: u32 = 200;

/// Notes that an environment became another, for people and for whoever follows.
fn note_change(
    tx: &mut dyn Tx,
    (id, project, name): (EnvironmentId, &Name, &EnvironmentName),
    (was, became): (Option<Status>, Option<Status>),
    because: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let word = |status: Option<Status>| status.map(Status::as_str);
    let row = first(
        tx,
        "INSERT INTO environment_changes (environment, at, was, became, because) VALUES ($1, $2, $3, $4, $5)
         RETURNING id",
        &[
            id.into(),
            now.into(),
            word(was).into(),
            word(became).unwrap_or("gone").into(),
            audit::kept(because.to_owned()).into(),
        ],
    )?;
    tx.execute(
        "DELETE FROM environment_changes WHERE environment = $1 AND id <= (
             SELECT id FROM environment_changes WHERE environment = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)",
        &[id.into(), CHANGES_KEPT.into()],
    )?;
    let (kind, message) = match (was, became) {
        (None, Some(became)) => ("environment.created", format!("{became}: {because}")),
        (Some(was), Some(became)) => (
            "environment.status",
            format!("{was} became {became}: {because}"),
        ),
        (_, None) => ("environment.gone", because.to_owned()),
    };
    let message = audit::kept(message);
    note(tx, (project, now), kind, object(name), message);
    let happened = Happened {
        id,
        project,
        name,
        what: Happening::Became { was, became },
        number: row.map_or(Ok(0), |mut row| row.take())?,
        because,
        action: None,
    };
    tell(tx, &happened, now)
}

/// Notes how far an action has come.
fn note_action(
    tx: &mut dyn Tx,
    project: &Name,
    (action, deed, name): (ActionId, Deed, &EnvironmentName),
    (state, more): (State, &str),
    now: Timestamp,
) {
    let kind = match state {
        State::Waiting => "action.waiting",
        State::Running => "action.running",
        State::Done => "action.done",
        State::Failed => "action.failed",
        State::Cancelled => "action.cancelled",
        State::Lost => "action.lost",
    };
    let colon = if more.is_empty() { "" } else { ": " };
    let message = audit::kept(format!("{deed} {name}{colon}{more}"));
    note(tx, (project, now), kind, action_object(action), message);
}

/// Stores the document of an environment.
fn store_body(tx: &mut dyn Tx, id: EnvironmentId, body: &Body) -> Result<(), Error> {
    tx.execute(
        "UPDATE environments SET format = $2, body = $3 WHERE id = $1",
        &[id.into(), FORMAT.into(), encode(body)?],
    )?;
    Ok(())
}

/// Says when somebody is to look at an environment.
fn look_next(tx: &mut dyn Tx, id: EnvironmentId, due: Option<Timestamp>) -> Result<(), Error> {
    tx.execute(
        "UPDATE environment_checks SET due = $2 WHERE environment = $1",
        &[id.into(), due.into()],
    )?;
    Ok(())
}

/// Forgets sealed values that no setting names any more.
fn forget_unnamed(tx: &mut dyn Tx, known: &Known, edits: &Edits) -> Result<(), Error> {
    let owner = Owner::Environment(known.id).to_string();
    let sealed = sealed_entries(tx, &known.project, known.id)?;
    let named: Vec<_> = edits
        .secrets()
        .map(|(level, key)| Edits::entry(level, key).to_string())
        .collect();
    let unnamed: Vec<Vec<Value>> = sealed
        .into_iter()
        .filter(|entry| !named.contains(entry))
        .map(|entry| vec![(&known.project).into(), (&owner).into(), entry.into()])
        .collect();
    tx.batch(
        "DELETE FROM sealed WHERE project = $1 AND owner = $2 AND entry = $3",
        &unnamed,
    )?;
    Ok(())
}

fn named(keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    names.join(", ")
}

/// The entries under which something is sealed for an environment.
fn sealed_entries(
    tx: &mut dyn Tx,
    project: &Name,
    id: EnvironmentId,
) -> Result<Vec<String>, Error> {
    let rows = tx.query(
        "SELECT entry FROM sealed WHERE project = $1 AND owner = $2",
        &[project.into(), Owner::Environment(id).to_string().into()],
    )?;
    rows.into_iter().map(|mut row| row.take()).collect()
}

/// Lets go of an environment: its name is free, and nothing is kept that it was configured with
/// in secret, nor what its scripts printed, but for the last, whose end somebody may still follow.
fn let_go(tx: &mut dyn Tx, known: &Known, because: &str, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE environments SET gone = 1, generation = generation + 1, updated_at = $2 WHERE id = $1",
        &[known.id.into(), now.into()],
    )?;
    for sql in [
        "DELETE FROM environment_checks WHERE environment = $1",
        "DELETE FROM environment_labels WHERE environment = $1",
        "DELETE FROM environment_ends_told WHERE environment = $1",
        "DELETE FROM environment_output WHERE action IN (SELECT id FROM environment_actions
             WHERE environment = $1
             AND seq < (SELECT MAX(seq) FROM environment_actions WHERE environment = $1 AND deed <> 'delete'))",
        "DELETE FROM environment_output_lengths WHERE action IN (SELECT id FROM environment_actions
             WHERE environment = $1
             AND seq < (SELECT MAX(seq) FROM environment_actions WHERE environment = $1 AND deed <> 'delete'))",
    ] {
        tx.execute(sql, &[known.id.into()])?;
    }
    sealed::forget(tx, &known.project, &Owner::Environment(known.id))?;
    let of = (known.id, &known.project, &known.name);
    note_change(tx, of, (Some(known.standing.status), None), because, now)
}
