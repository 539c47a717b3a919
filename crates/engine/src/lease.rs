//! Keeps the leases of what is under way, and ends what has lost its own.

use crate::Shared;
use driver::Driver;
use model::id::TaskId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Attempts under way in this process, each under its task and its fence: a task that was given
/// back may be claimed again before its last attempt is forgotten.
#[derive(Default)]
pub(crate) struct Leases {
    running: Mutex<BTreeMap<(TaskId, u64), CancellationToken>>,
}

/// One attempt under way; dropping it says that it has ended, however it ended.
pub(crate) struct Lease<'a> {
    leases: &'a Leases,
    key: (TaskId, u64),
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut running = self.leases.lock();
        running.remove(&self.key);
        told(running.len());
    }
}

impl Leases {
    /// Notes a claim; the token is cancelled when its lease is lost or `stop` is.
    pub(crate) fn begin(
        &self,
        task: TaskId,
        fence: u64,
        stop: &CancellationToken,
    ) -> CancellationToken {
        let token = stop.child_token();
        let mut running = self.lock();
        running.insert((task, fence), token.clone());
        told(running.len());
        token
    }

    /// Keeps the claim in mind for as long as the answer lives.
    pub(crate) fn hold(&self, task: TaskId, fence: u64) -> Lease<'_> {
        Lease {
            leases: self,
            key: (task, fence),
        }
    }

    /// How many attempts are under way.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.lock().len()).unwrap_or(u32::MAX)
    }

    fn live(&self) -> BTreeSet<(TaskId, u64)> {
        self.lock().keys().copied().collect()
    }

    /// Ends an attempt, if it is still under way.
    fn cancel(&self, key: (TaskId, u64)) -> bool {
        let token = self.lock().get(&key).cloned();
        // One that was told so before, or is told to stop, is not lost once more.
        let token = token.filter(|token| !token.is_cancelled());
        let lost = token.inspect(CancellationToken::cancel).is_some();
        if lost {
            metrics::counter!("slipway_leases_lost_total").increment(1);
        }
        lost
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(TaskId, u64), CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells how many attempts are under way.
fn told(running: usize) {
    let running = u32::try_from(running).unwrap_or(u32::MAX);
    metrics::gauge!("slipway_attempts_running").set(running);
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
        let live = shared.leases.live();
        if live.is_empty() {
            extended_at = shared.clock.now();
            continue;
        }
        let now = shared.clock.now();
        let extended = shared
            .store
            .beat(&shared.settings.worker, live.clone(), lease, now);
        match extended.await {
            Ok(held) => {
                extended_at = now;
                // One that ended meanwhile has not lost anything.
                for (task, fence) in live.difference(&held) {
                    if shared.leases.cancel((*task, *fence)) {
                        tracing::warn!(task = %task, "the lease of {task} is lost; its attempt ends here");
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, "could not extend the leases: {error}");
                // Somebody else may hold them by now: nothing new may be begun under them.
                if now.since(extended_at) > lease {
                    for key in live {
                        shared.leases.cancel(key);
                    }
                }
            }
        }
    }
}
