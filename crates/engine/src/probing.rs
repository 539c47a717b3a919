//! Looks at every cluster now and then, independent of tasks.

use crate::Shared;
use crate::secrets::Opener;
use driver::{Context, Driver, Log, Target};
use model::id::ClusterId;
use model::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use store::Actor;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Clusters that are looked at side by side.
const SIDE_BY_SIDE: usize = 32;

/// The longest a probe may take; what it could not see by then is not seen.
pub(crate) const PROBE_MAX: Duration = Duration::from_secs(30);

/// The shortest sleep between two rounds: a thousand clusters that fall due one by one
/// are looked at in batches.
const ROUND_MIN: Duration = Duration::from_secs(1);

/// A probe writes no log: what it sees are observations.
struct Unread;

impl Log for Unread {
    fn line(&self, _: Timestamp, _: &str) {}
}

/// Looks at whatever was last looked at too long ago, then sleeps until the next is due.
pub(crate) async fn run<D: Driver>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let every = shared.settings.probe_every;
    loop {
        let pause = round(&shared, &stop)
            .await
            .min(every)
            .saturating_sub(ROUND_MIN);
        let due = async {
            tokio::select! {
                biased;
                () = shared.probe_bell.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            tokio::time::sleep(ROUND_MIN).await;
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = due => {}
        }
    }
}

/// One round; answers how long nothing is due.
async fn round<D: Driver>(shared: &Arc<Shared<D>>, stop: &CancellationToken) -> Duration {
    let every = shared.settings.probe_every;
    let live = match shared.store.live_clusters().await {
        Ok(live) => live,
        Err(error) => {
            tracing::error!(%error, "could not read the clusters: {error}");
            return every;
        }
    };
    let now = shared.clock.now();
    let mut pause = every;
    let mut probes = JoinSet::new();
    for cluster in live {
        let age = cluster.probed_at.map_or(every, |at| now.since(at));
        if age < every {
            pause = pause.min(every.saturating_sub(age));
            continue;
        }
        while probes.len() >= SIDE_BY_SIDE {
            probes.join_next().await;
        }
        if stop.is_cancelled() {
            break;
        }
        probes.spawn(probe(shared.clone(), cluster.id, stop.child_token()));
    }
    while probes.join_next().await.is_some() {}
    pause
}

async fn probe<D: Driver>(shared: Arc<Shared<D>>, cluster: ClusterId, stop: CancellationToken) {
    if !shared.settings.alone {
        let every = shared.settings.probe_every;
        match shared
            .store
            .begin_probe(cluster, every, shared.clock.now())
            .await
        {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::error!(%error, "could not begin to look at {cluster}: {error}");
                return;
            }
        }
    }
    let known = match shared.store.cluster_view(cluster).await {
        Ok(Some(known)) => known,
        Ok(None) => return,
        Err(error) => {
            tracing::error!(%error, "could not read {cluster}: {error}");
            return;
        }
    };
    let target = Target {
        cluster,
        machines: known
            .desired
            .all()
            .filter(|machine| !known.is_gone(machine))
            .cloned()
            .collect(),
    };
    let opener = Opener {
        vault: shared.vault.clone(),
        project: known.desired.project.clone(),
        actor: Actor::new(&shared.settings.worker, format!("cluster/{cluster}")),
    };
    let context = Context::new(shared.clock, Arc::new(Unread), Arc::new(opener), stop, 0);
    let looked = tokio::time::timeout(PROBE_MAX, shared.driver.probe(&context, &target)).await;
    let seen = looked.unwrap_or_else(|_| {
        tracing::warn!(%cluster, "a probe of {cluster} took too long");
        Vec::new()
    });
    match shared
        .store
        .observe(cluster, seen, shared.clock.now())
        .await
    {
        // Unchanged or not: a wish may have expired meanwhile, so the timer plans too.
        Ok(_) => shared.agenda.add([cluster]),
        Err(error) => {
            tracing::error!(%error, "could not store what was seen of {cluster}: {error}");
        }
    }
}
