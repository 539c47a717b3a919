//! Keeps the leases of what is under way, and ends what has lost its own.

use crate::Shared;
use driver::Driver;
use model::id::TaskId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Attempts under way in this process.
#[derive(Default)]
pub(crate) struct Leases {
    running: Mutex<BTreeMap<TaskId, CancellationToken>>,
}

impl Leases {
    /// Notes an attempt; the token is cancelled when its lease is lost or `stop` is.
    pub(crate) fn begin(&self, task: TaskId, stop: &CancellationToken) -> CancellationToken {
        let token = stop.child_token();
        self.lock().insert(task, token.clone());
        token
    }

    /// Notes that an attempt has ended.
    pub(crate) fn end(&self, task: TaskId) {
        self.lock().remove(&task);
    }

    /// How many attempts are under way.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.lock().len()).unwrap_or(u32::MAX)
    }

    fn snapshot(&self) -> Vec<(TaskId, CancellationToken)> {
        self.lock()
            .iter()
            .map(|(task, token)| (*task, token.clone()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Extends the leases three times as often as they would run out.
pub(crate) async fn run<D: Driver>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let lease = shared.settings.lease;
    let mut extended_at = shared.clock.now();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(lease / 3) => {}
        }
        let before = shared.leases.snapshot();
        if before.is_empty() {
            extended_at = shared.clock.now();
            continue;
        }
        let now = shared.clock.now();
        match shared.store.beat(&shared.settings.worker, lease, now).await {
            Ok(held) => {
                extended_at = now;
                for (task, token) in before {
                    if !held.contains(&task) {
                        metrics::counter!("slipway_leases_lost_total").increment(1);
                        tracing::warn!(task = %task, "the lease of {task} is lost; its attempt ends here");
                        token.cancel();
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, "could not extend the leases: {error}");
                // Somebody else may hold them by now: nothing new may be begun under them.
                if now.since(extended_at) > lease {
                    for (_, token) in &before {
                        token.cancel();
                    }
                }
            }
        }
    }
}
