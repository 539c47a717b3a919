//! What was saved of the etcd of a cluster, and what was put back.

use model::id::{IntentId, TaskId};
use model::snapshot::{RestoredFact, Snapshot, SnapshotId, SnapshotsFact, Taking};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// How large a snapshot is: what a small cluster has.
const SIZE: u64 = 4 * 1024 * 1024;

/// The snapshots of a cluster.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Saved {
    /// Since when there could be any.
    pub(crate) since: Timestamp,
    /// Those that are kept, the oldest first.
    pub(crate) kept: Vec<Snapshot>,
    /// The task that took the last one.
    pub(crate) last: Option<TaskId>,
    /// The wish that the last one was taken for.
    pub(crate) answered: Option<IntentId>,
    /// The one that was last put back.
    pub(crate) restored: Option<RestoredFact>,
}

impl Saved {
    /// Keeps one more, and drops those that it outlives.
    pub(super) fn take(&mut self, task: TaskId, taking: &Taking, at: Timestamp) {
        // There is nothing in it that could have a digest.
        let digest = task.to_string().bytes().fold(0_u32, |digest, byte| {
            digest.wrapping_mul(31).wrapping_add(u32::from(byte))
        });
        let Ok(id) = SnapshotId::of(at, &format!("{digest:08x}")) else {
            return;
        };
        self.kept.push(Snapshot {
            id,
            size: SIZE,
            version: taking.version,
            before: taking.before,
        });
        let gone = taking.keep.outlived(&self.kept, taking.guard, at);
        self.kept.retain(|kept| !gone.contains(&kept.id));
        self.last = Some(task);
        self.answered = taking.wish;
    }

    pub(super) fn fact(&self) -> SnapshotsFact {
        SnapshotsFact {
            since: self.since,
            kept: self.kept.clone(),
            answered: self.answered,
        }
    }

    /// As it was observed elsewhere.
    pub(super) fn observed(fact: &SnapshotsFact) -> Self {
        Self {
            since: fact.since,
            kept: fact.kept.clone(),
            answered: fact.answered,
            ..Self::default()
        }
    }
}
