//! Keeps the leases of what is under way, learns what was called off, and takes over what others
//! left.

use super::Shared;
use driver::deploy::Deployer;
use model::id::ActionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The shortest pause between two heartbeats, however much happens.
const BEAT_MIN: Duration = Duration::from_secs(1);

/// What an action that is under way listens to.
#[derive(Clone)]
pub(super) struct Ears {
    /// Cancelled when the lease is lost or the program ends.
    pub(super) leave: CancellationToken,
    /// Cancelled when somebody called it off.
    pub(super) end: CancellationToken,
}

/// Actions under way in this process, each under its fence.
#[derive(Default)]
pub(super) struct Beats {
    running: Mutex<BTreeMap<(ActionId, u64), Ears>>,
}

/// One action under way; dropping it says that it is so no longer, for whatever reason.
pub(super) struct Beat<'a> {
    beats: &'a Beats,
    key: (ActionId, u64),
}

impl Drop for Beat<'_> {
    fn drop(&mut self) {
        self.beats.lock().remove(&self.key);
    }
}

impl Beats {
    /// Notes a claim.
    pub(super) fn begin(&self, key: (ActionId, u64), stop: &CancellationToken) -> Ears {
        let ears = Ears {
            leave: stop.child_token(),
            end: CancellationToken::new(),
        };
        self.lock().insert(key, ears.clone());
        ears
    }

    /// Keeps the claim in mind for as long as the answer lives.
    pub(super) fn hold(&self, key: (ActionId, u64)) -> Beat<'_> {
        Beat { beats: self, key }
    }

    /// How many actions are under way.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.lock().len()).unwrap_or(u32::MAX)
    }

    fn live(&self) -> BTreeSet<(ActionId, u64)> {
        self.lock().keys().copied().collect()
    }

    fn of(&self, key: (ActionId, u64)) -> Option<Ears> {
        self.lock().get(&key).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(ActionId, u64), Ears>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Extends the leases three times as often as they would run out, and soon after something
/// happened: it may be that somebody called something off.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let lease = shared.settings.lease;
    let mut news = shared.store.subscribe();
    let mut extended_at = shared.clock.now();
    let mut expired_at = extended_at;
    loop {
        let pause = async {
            tokio::time::sleep(BEAT_MIN).await;
            let rest = (lease / 3).saturating_sub(BEAT_MIN);
            tokio::select! {
                biased;
                _ = news.changed() => {}
                () = tokio::time::sleep(rest) => {}
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = pause => {}
        }
        let now = shared.clock.now();
        if beat(&shared, extended_at).await {
            extended_at = now;
        }
        if now.since(expired_at) >= lease / 3 {
            expired_at = now;
            expire(&shared).await;
        }
    }
}

/// Extends all leases; answers whether that was possible.
async fn beat<D>(shared: &Shared<D>, extended_at: model::time::Timestamp) -> bool {
    let (lease, live) = (shared.settings.lease, shared.beats.live());
    if live.is_empty() {
        return true;
    }
    let now = shared.clock.now();
    let worker = &shared.settings.worker;
    let beaten = shared.store.beat_actions(worker, live.clone(), lease, now);
    match beaten.await {
        Ok(beat) => {
            for key in live.difference(&beat.held) {
                // One that ended meanwhile has not lost anything.
                if let Some(ears) = shared.beats.of(*key) {
                    let action = key.0;
                    tracing::warn!(%action, "the lease of {action} is lost; somebody called it off, or follows it instead");
                    ears.leave.cancel();
                }
            }
            for ears in beat
                .cancelled
                .iter()
                .filter_map(|key| shared.beats.of(*key))
            {
                ears.end.cancel();
            }
            true
        }
        Err(error) => {
            tracing::error!(%error, "could not extend the leases of actions: {error}");
            // Somebody else may hold them by now.
            if now.since(extended_at) > lease {
                for ears in live.iter().filter_map(|key| shared.beats.of(*key)) {
                    ears.leave.cancel();
                }
            }
            false
        }
    }
}

/// Gives to others what workers left that fell silent.
async fn expire<D>(shared: &Shared<D>) {
    match shared.store.expire_actions(shared.clock.now()).await {
        Ok(0) => {}
        Ok(lost) => {
            tracing::warn!(
                actions = lost,
                "{lost} actions are taken over from workers that fell silent"
            );
            shared.bell.notify_one();
        }
        Err(error) => {
            tracing::error!(%error, "could not take over actions of silent workers: {error}");
        }
    }
}
