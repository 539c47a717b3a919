//! Takes over what workers left behind, and clears away what is past its time.

use crate::Shared;
use driver::Driver;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Gives leases that ran out to others, and sweeps now and then.
pub(crate) async fn run<D: Driver>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut swept_at = shared.clock.now();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(shared.settings.lease) => {}
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
