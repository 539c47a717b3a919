//! Wishes outside the manifest. They are read by `expand` and `plan`, never executed.

use crate::id::{IntentId, MachineId, TaskId};
use crate::name::Name;
use crate::snapshot::SnapshotId;
use crate::task::Kind;
use crate::templates::Commit;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One wish, with its author, its reason and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// Which wish.
    pub id: IntentId,
    /// Who owns what it is about.
    pub project: Name,
    /// The cluster it is about.
    pub cluster: Name,
    /// What is wished.
    pub wish: Wish,
    /// Who wishes it.
    pub author: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when; absent means until it is fulfilled or withdrawn.
    pub expires_at: Option<Timestamp>,
}

/// What is wished of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Wish {
    /// Another size for a dynamic pool, for as long as the manifest declares `was`.
    Scale {
        /// Which pool.
        pool: Name,
        /// How many machines.
        count: u32,
        /// What the manifest declared when the wish was made; another number there ends it. It is
        /// 0 where the manifest names no number, but from where to where the pool is scaled.
        was: u32,
    },
    /// A new machine in place of this one.
    Replace {
        /// Which machine, in which of its lives.
        machine: MachineId,
    },
    /// This machine goes, and its pool, which is one that is scaled, becomes one smaller.
    Retire {
        /// Which machine, in which of its lives.
        machine: MachineId,
    },
    /// Another attempt at a stuck or waiting task, now.
    Retry {
        /// Which task.
        task: TaskId,
    },
    /// No further attempt at what this task does to its machine.
    Cancel {
        /// Which task.
        task: TaskId,
        /// The machine it touches.
        machine: MachineId,
        /// What it would do to it.
        kind: Kind,
    },
    /// Nothing new is begun on the cluster.
    Pause,
    /// A snapshot of the cluster's etcd, now.
    Snapshot,
    /// The cluster's etcd as it was when this snapshot was taken.
    Restore {
        /// Which snapshot.
        snapshot: SnapshotId,
    },
    /// The machines of a pool are made from newer modules, one after the other.
    Update {
        /// Which pool.
        pool: Name,
        /// The commit that was offered when the wish was made; whatever else its branch leads to
        /// since then was not wished. Nothing before that is filled in.
        commit: Option<Commit>,
    },
}

impl Wish {
    /// The word of the public contract.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Scale { .. } => "scale",
            Self::Replace { .. } => "replace",
            Self::Retire { .. } => "retire",
            Self::Retry { .. } => "retry",
            Self::Cancel { .. } => "cancel",
            Self::Pause => "pause",
            Self::Snapshot => "snapshot",
            Self::Restore { .. } => "restore",
            Self::Update { .. } => "update",
        }
    }
}

impl Intent {
    /// Whether the wish still counts at `now`.
    pub fn counts(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}
