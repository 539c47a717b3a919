//! Which clusters somebody should look at soon.

use model::id::ClusterId;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Clusters to be planned, each at most once at a time.
///
/// A cluster that is added while it is being planned is planned once more afterwards.
#[derive(Default)]
pub(crate) struct Agenda {
    state: Mutex<State>,
    bell: Notify,
}

#[derive(Default)]
struct State {
    waiting: BTreeSet<ClusterId>,
    planning: BTreeSet<ClusterId>,
}

impl Agenda {
    /// Asks that the clusters be looked at soon.
    pub(crate) fn add(&self, clusters: impl IntoIterator<Item = ClusterId>) {
        let mut state = self.lock();
        let before = state.waiting.len();
        state.waiting.extend(clusters);
        if state.waiting.len() > before {
            self.bell.notify_one();
        }
    }

    /// Waits for a cluster that nobody is planning, and takes it.
    pub(crate) async fn take(&self) -> ClusterId {
        loop {
            if let Some(cluster) = self.next() {
                return cluster;
            }
            self.bell.notified().await;
        }
    }

    fn next(&self) -> Option<ClusterId> {
        let mut state = self.lock();
        let next = state
            .waiting
            .iter()
            .find(|id| !state.planning.contains(*id))
            .copied()?;
        state.waiting.remove(&next);
        state.planning.insert(next);
        Some(next)
    }

    /// Says that a cluster that was taken is planned.
    pub(crate) fn done(&self, cluster: ClusterId) {
        let mut state = self.lock();
        state.planning.remove(&cluster);
        if state.waiting.contains(&cluster) {
            self.bell.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
