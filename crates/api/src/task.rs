//! Tasks and their logs on the wire.

use crate::time::Time;
use model::task;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The name of a live event that carries a [`LogLine`].
pub const LINE: &str = "line";

/// The name of the live event that carries a [`LogEnd`].
pub const END: &str = "end";

/// What a task does to its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "each is the word of the same name in the glossary"
)]
pub enum TaskKind {
    Key,
    Create,
    Prepare,
    Equip,
    Mesh,
    Balance,
    Name,
    Expose,
    Shut,
    Init,
    Join,
    Install,
    Tend,
    Drain,
    Upgrade,
    Renew,
    Uncordon,
    Leave,
    Clear,
    Snapshot,
    Restore,
    Delete,
    Release,
}

impl From<task::Kind> for TaskKind {
    fn from(kind: task::Kind) -> Self {
        match kind {
            task::Kind::Key => Self::Key,
            task::Kind::Create => Self::Create,
            task::Kind::Prepare => Self::Prepare,
            task::Kind::Equip => Self::Equip,
            task::Kind::Mesh => Self::Mesh,
            task::Kind::Balance => Self::Balance,
            task::Kind::Name => Self::Name,
            task::Kind::Expose => Self::Expose,
            task::Kind::Shut => Self::Shut,
            task::Kind::Init => Self::Init,
            task::Kind::Join => Self::Join,
            task::Kind::Install => Self::Install,
            task::Kind::Tend => Self::Tend,
            task::Kind::Drain => Self::Drain,
            task::Kind::Upgrade => Self::Upgrade,
            task::Kind::Renew => Self::Renew,
            task::Kind::Uncordon => Self::Uncordon,
            task::Kind::Leave => Self::Leave,
            task::Kind::Clear => Self::Clear,
            task::Kind::Snapshot => Self::Snapshot,
            task::Kind::Restore => Self::Restore,
            task::Kind::Delete => Self::Delete,
            task::Kind::Release => Self::Release,
        }
    }
}

impl TaskKind {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Create => "create",
            Self::Prepare => "prepare",
            Self::Equip => "equip",
            Self::Mesh => "mesh",
            Self::Balance => "balance",
            Self::Name => "name",
            Self::Expose => "expose",
            Self::Shut => "shut",
            Self::Init => "init",
            Self::Join => "join",
            Self::Install => "install",
            Self::Tend => "tend",
            Self::Drain => "drain",
            Self::Upgrade => "upgrade",
            Self::Renew => "renew",
            Self::Uncordon => "uncordon",
            Self::Leave => "leave",
            Self::Clear => "clear",
            Self::Snapshot => "snapshot",
            Self::Restore => "restore",
            Self::Delete => "delete",
            Self::Release => "release",
        }
    }
}

impl std::fmt::Display for TaskKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a task means for what runs on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Something new comes; nothing that runs is touched.
    Create,
    /// A running node changes and keeps its machine and its disk.
    InPlace,
    /// Workloads move elsewhere.
    Disturb,
    /// The machine and what its disk holds are gone for good.
    DataLoss,
}

impl From<task::Effect> for Effect {
    fn from(effect: task::Effect) -> Self {
        match effect {
            task::Effect::Create => Self::Create,
            task::Effect::InPlace => Self::InPlace,
            task::Effect::Disturb => Self::Disturb,
            task::Effect::DataLoss => Self::DataLoss,
        }
    }
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Waits for a worker, or for its next attempt to be due.
    Waiting,
    /// A worker holds its lease.
    Running,
    /// Will not work until something changes.
    Stuck,
    /// The world is as it asked.
    Done,
    /// Nobody wants it any more.
    Withdrawn,
}

impl From<task::State> for TaskState {
    fn from(state: task::State) -> Self {
        match state {
            task::State::Waiting => Self::Waiting,
            task::State::Running => Self::Running,
            task::State::Stuck => Self::Stuck,
            task::State::Done => Self::Done,
            task::State::Withdrawn => Self::Withdrawn,
        }
    }
}

impl TaskState {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Stuck => "stuck",
            Self::Done => "done",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether nothing more will come of the task.
    pub const fn ended(self) -> bool {
        match self {
            Self::Waiting | Self::Running | Self::Stuck => false,
            Self::Done | Self::Withdrawn => true,
        }
    }
}

impl std::fmt::Display for TaskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One piece of work and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// Which task.
    pub id: String,
    /// The cluster it works for.
    pub cluster: String,
    /// The desired state it leads to.
    pub generation: u64,
    /// The machine it touches.
    pub machine: String,
    /// What it does to it.
    pub kind: TaskKind,
    /// What that means for what runs there.
    pub effect: Effect,
    /// Where it stands.
    pub state: TaskState,
    /// How many attempts were begun.
    pub attempts: u32,
    /// When the next attempt is due; null unless it waits.
    pub due_at: Option<Time>,
    /// Until when its worker may hold it; null unless it runs.
    pub lease_until: Option<Time>,
    /// Who works on it; null unless it runs.
    pub worker: Option<String>,
    /// How the last attempt ended, when it did not end well.
    pub error: Option<String>,
    /// When it was planned.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
}

/// A piece of a task's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogView {
    /// The lines, oldest first.
    pub lines: Vec<LogLine>,
    /// What to give as `?after=` to read on, now or when there is more.
    pub next: u64,
}

/// One line of a task's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// Its place in the log, growing, not always by one.
    pub seq: u64,
    /// The attempt that wrote it.
    pub attempt: u32,
    /// When.
    pub at: Time,
    /// What was written; where lines are missing, how many, in words.
    pub text: String,
    /// How many lines are missing here, this place being the last of them: of a long log the
    /// beginning and the end are kept. Absent from a line that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
}

/// The last word of a followed log: the task has ended, and no line will be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEnd {
    /// How the task ended: done or withdrawn.
    pub state: TaskState,
    /// The place of the last line.
    pub next: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_on_the_wire_are_the_words_of_the_model() {
        for kind in task::Kind::ALL {
            let wire = TaskKind::from(kind);
            assert_eq!(wire.as_str(), kind.as_str());
            assert_eq!(serde_json::to_value(wire).unwrap(), kind.as_str());
        }
    }
}
