//! Claim → act → record.

use super::Shared;
use super::acting::{self, WAITS_FOR_INIT};
use driver::deploy::Deployer;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The longest sleep between two looks at the queue; whatever makes an action due earlier is news.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The pause after something is due that nobody here can take up: there is no room, or it was
/// begun elsewhere.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Claims what is due while there is room, and has it done.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut acts = JoinSet::new();
    let mut news = shared.store.subscribe();
    // Before that nobody knows what is to be left to others.
    tokio::select! {
        biased;
        () = stop.cancelled() => return,
        () = shared.inits.looked() => {}
    }
    loop {
        while acts.try_join_next().is_some() {}
        news.mark_unchanged();
        if claim(&shared, &stop, &mut acts).await > 0 && !stop.is_cancelled() {
            continue;
        }
        let pause = until_due(&shared).await;
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = shared.bell.notified() => {}
            _ = news.changed() => {}
            Some(_) = acts.join_next(), if !acts.is_empty() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    let all = async { while acts.join_next().await.is_some() {} };
    if tokio::time::timeout(shared.settings.grace, all)
        .await
        .is_err()
    {
        tracing::warn!(
            "some actions could not be let go in time; they are found at the next start"
        );
    }
}

async fn claim<D: Deployer>(
    shared: &Arc<Shared<D>>,
    stop: &CancellationToken,
    acts: &mut JoinSet<()>,
) -> usize {
    let settings = &shared.settings;
    let room = settings.running_max.saturating_sub(shared.beats.count());
    let now = shared.clock.now();
    // A question that writes keeps others waiting, so it is asked only where it may be of use.
    let due = matches!(shared.store.next_action().await, Ok(Some(due)) if due <= now);
    if room == 0 || !due || stop.is_cancelled() {
        return 0;
    }
    let by = (settings.worker.as_str(), shared.deployer.place());
    // Others may have come further with what is to be run before everything else.
    let early = if settings.alone {
        BTreeSet::new()
    } else {
        shared.inits.early()
    };
    let claimed =
        shared
            .store
            .claim_actions_but((early, WAITS_FOR_INIT), by, room, settings.lease, now);
    match claimed.await {
        Ok(claims) => {
            let count = claims.len();
            for claim in claims {
                let ears = shared.beats.begin((claim.action, claim.fence()), stop);
                let span = tracing::info_span!(
                    "action",
                    action = %claim.action,
                    deed = claim.deed.as_str(),
                    environment = %claim.name,
                    project = %claim.project,
                    worker = settings.worker,
                );
                acts.spawn(acting::run(shared.clone(), claim, ears).instrument(span));
            }
            count
        }
        Err(error) => {
            tracing::error!(%error, "could not claim actions: {error}");
            0
        }
    }
}

/// How long until an action that waits is due.
async fn until_due<D>(shared: &Shared<D>) -> Duration {
    let now = shared.clock.now();
    match shared.store.next_action().await {
        Ok(Some(due)) if due <= now => LOOK_AGAIN_AFTER,
        Ok(Some(due)) => due.since(now).min(LOOK_EVERY),
        Ok(None) => LOOK_EVERY,
        Err(error) => {
            tracing::error!(%error, "could not read the queue of actions: {error}");
            LOOK_AGAIN_AFTER
        }
    }
}
