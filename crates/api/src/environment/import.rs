//! Environments that are taken over from elsewhere, as they are.

use super::{ActionKind, EnvironmentStatus, KeyLevels, LinkView, ValueLevels};
use crate::time::Time;
use model::environment::config::{Edit, Edits, LevelEdits};
use model::environment::taken::{Taken, TakenAction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The most environments of one request.
pub const IMPORT_MAX: usize = 200;

/// Environments to be taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportRequest {
    /// They; at most 200. One whose log is too long for a request comes again in the next, with
    /// the rest of it.
    pub environments: Vec<ImportEnvironment>,
}

/// An environment as another system knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportEnvironment {
    /// What it is called.
    #[schema(pattern = "^[a-z][a-z0-9-]{0,14}[a-z0-9]$")]
    pub name: String,
    /// Which one it is there, in words that no other has: the same again changes nothing.
    pub origin: String,
    /// How it is.
    pub status: EnvironmentStatus,
    /// Since when.
    pub since: Time,
    /// When it came.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// Since when it rests; retention counts from there.
    #[serde(default)]
    pub archived_at: Option<Time>,
    /// Values that were set.
    #[serde(default)]
    pub set: ValueLevels,
    /// Settings that are left out, although there are defaults.
    #[serde(default)]
    pub remove: KeyLevels,
    /// Where it is reached.
    #[serde(default)]
    pub links: Vec<LinkView>,
    /// What was done to it, oldest first; what is not newer than what was taken before is passed
    /// over.
    #[serde(default)]
    pub actions: Vec<ImportAction>,
}

/// Something that was done to an environment elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportAction {
    /// Its number there; later ones have greater.
    pub number: u64,
    /// What was done.
    pub kind: ActionKind,
    /// Who asked.
    pub author: String,
    /// The status of its script.
    pub exit: i32,
    /// When it ended.
    pub ended_at: Time,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// Values that were set by then.
    #[serde(default)]
    pub set: ValueLevels,
    /// Settings that were left out by then.
    #[serde(default)]
    pub remove: KeyLevels,
    /// What it printed, at most 64 KiB.
    #[serde(default)]
    pub stdout: String,
    /// What it complained about, at most 64 KiB.
    #[serde(default)]
    pub stderr: String,
}

/// What became of an environment that was to be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImportOutcome {
    /// It is here now.
    Taken,
    /// It was taken before, and stays as it has become since.
    Known,
    /// There is another of that name.
    Exists,
    /// It was taken before, and was removed since.
    Gone,
    /// There would be more environments than the project may have.
    OverQuota,
}

impl ImportOutcome {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Known => "known",
            Self::Exists => "exists",
            Self::Gone => "gone",
            Self::OverQuota => "over-quota",
        }
    }
}

/// What became of one environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedView {
    /// What it is called.
    pub name: String,
    /// What became of it.
    pub outcome: ImportOutcome,
    /// How many actions of its log were taken now.
    pub actions: u32,
    /// Why it was not taken; null where it was.
    pub because: Option<String>,
}

/// What became of environments that were to be taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportView {
    /// Each, in the order of the request.
    pub environments: Vec<ImportedView>,
}

impl From<Taken> for ImportEnvironment {
    fn from(taken: Taken) -> Self {
        let Taken {
            name,
            origin,
            status,
            since,
            created_at,
            updated_at,
            archived_at,
            edits,
            links,
            actions,
        } = taken;
        let (set, remove) = levels(edits);
        Self {
            name: name.into(),
            origin,
            status: status.into(),
            since: since.into(),
            created_at: created_at.into(),
            updated_at: updated_at.into(),
            archived_at: archived_at.map(Into::into),
            set,
            remove,
            links: links.into_iter().map(Into::into).collect(),
            actions: actions.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<TakenAction> for ImportAction {
    fn from(taken: TakenAction) -> Self {
        let TakenAction {
            number,
            deed,
            author,
            exit,
            ended_at,
            took,
            edits,
            stdout,
            stderr,
        } = taken;
        let (set, remove) = levels(edits);
        Self {
            number,
            kind: deed.into(),
            author,
            exit,
            ended_at: ended_at.into(),
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            set,
            remove,
            stdout,
            stderr,
        }
    }
}

/// Edits as values that are set and settings that are left out; what is secret elsewhere is not
/// taken over.
fn levels(edits: Edits) -> (ValueLevels, KeyLevels) {
    let split = |edits: LevelEdits| {
        let (mut set, mut remove) = (BTreeMap::new(), Vec::new());
        for (key, edit) in edits {
            match edit {
                Edit::Set(value) => drop(set.insert(key.into(), value.into())),
                Edit::Removed => remove.push(key.into()),
                Edit::Secret => {}
            }
        }
        (set, remove)
    };
    let Edits {
        application,
        deployment,
    } = edits;
    let (application, without_application) = split(application);
    let (deployment, without_deployment) = split(deployment);
    let set = ValueLevels {
        application,
        deployment,
    };
    let remove = KeyLevels {
        application: without_application,
        deployment: without_deployment,
    };
    (set, remove)
}
