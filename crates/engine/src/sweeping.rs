//! Takes over what workers left behind, and clears away what is past its time.

use crate::Shared;
use driver::Driver;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The shortest time between two looks: a moment that nobody notices, and that keeps what is always over from
/// being looked at all the time.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Gives leases that ran out to others, and sweeps now and then.
pub(crate) async fn run<D: Driver>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut swept_at = shared.clock.now();
    loop {
        let pause = until_end(&shared).await;
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = shared.alarm.rings() => continue,
            () = tokio::time::sleep(pause) => {}
        }
        let now = shared.clock.now();
        match shared.store.expire(now).await {
            Ok(clusters) if clusters.is_empty() => {}
            Ok(clusters) => {
                tracing::warn!(
                    clusters = clusters.len(),
                    "leases or wishes have run out; their clusters are planned again"
                );
                shared.agenda.add(clusters);
                shared.bell.notify_one();
            }
            Err(error) => tracing::error!(%error, "could not take over silent work: {error}"),
        }
        if now.since(swept_at) >= shared.settings.sweep_every {
            match shared.store.sweep(now).await {
                // What is left is cleared away in the next round, not in one long transaction.
                Ok(swept) if swept.more => {}
                Ok(_) => swept_at = now,
                Err(error) => {
                    tracing::error!(%error, "could not clear away what is past its time: {error}");
                }
            }
        }
    }
}

/// How long until a lease or a wish ends, or a cluster is to be looked at; a lease at most, because others
/// may change that.
async fn until_end<D>(shared: &Shared<D>) -> Duration {
    let now = shared.clock.now();
    shared.alarm.clear();
    let lease = shared.settings.lease;
    let pause = match shared.store.next_end().await {
        // What has ended and is still there could not be taken over: soon enough is now and then.
        Ok(Some(end)) => end.since(now).max(AGAIN_AFTER).min(lease),
        Ok(None) => lease,
        Err(error) => {
            tracing::error!(%error, "could not read what ends next: {error}");
            lease
        }
    };
    shared.alarm.set(now.plus(pause));
    pause
}
