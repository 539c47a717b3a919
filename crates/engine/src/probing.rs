//! Looks at every cluster now and then, independent of tasks.

use crate::Shared;
use crate::secrets::Opener;
use driver::{Context, Driver, Log, Target};
use model::id::ClusterId;
use model::observed::Observation;
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

/// How long a probe that was called off may take to hand over what it saw.
const GRACE: Duration = Duration::from_secs(5);

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
        whole: true,
    };
    let opener = Opener {
        store: shared.store.clone(),
        vault: shared.vault.clone(),
        project: known.desired.project.clone(),
        actor: Actor::new(&shared.settings.worker, format!("cluster/{cluster}")),
    };
    let secrets = Arc::new(opener);
    let context = Context::new(shared.clock, Arc::new(Unread), secrets, stop.clone(), 0);
    let seen = look(&*shared.driver, &context, &target, &stop).await;
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

/// Looks, within bounds: a probe that takes too long is called off, and what it saw is kept.
async fn look<D: Driver>(
    driver: &D,
    context: &Context,
    target: &Target,
    stop: &CancellationToken,
) -> Vec<Observation> {
    let looking = driver.probe(context, target);
    tokio::pin!(looking);
    if let Ok(seen) = tokio::time::timeout(PROBE_MAX, &mut looking).await {
        return seen;
    }
    let cluster = target.cluster;
    tracing::warn!(%cluster, "a probe of {cluster} took too long");
    stop.cancel();
    let rest = tokio::time::timeout(GRACE, looking).await;
    rest.unwrap_or_else(|_| {
        tracing::error!(%cluster, "a probe of {cluster} did not end when it was told to");
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::{Clock, NoSecrets, Outcome};
    use model::id::{MachineId, Origin};
    use model::observed::{Fact, MachineFact};
    use model::task::Task;

    const ORIGIN: Origin<'_> = Origin {
        parent: "a",
        name: "b",
        ordinal: 1,
        incarnation: 0,
    };

    /// Sees one machine at once, and waits for another one for ever.
    struct Waits {
        listens: bool,
    }

    impl Driver for Waits {
        async fn apply(&self, _: &Context, _: &Task) -> Outcome {
            Outcome::Done(Vec::new(), Vec::new())
        }

        async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
            let fact = Fact::Machine(MachineId::derive(ORIGIN), MachineFact::Absent);
            let (cluster, at) = (target.cluster, cx.now());
            if !self.listens {
                std::future::pending::<()>().await;
            }
            cx.cancelled().await;
            vec![Observation { cluster, fact, at }]
        }
    }

    async fn seen_by(driver: Waits) -> usize {
        let stop = CancellationToken::new();
        let clock = Clock::starting_at(Timestamp::from_millis(0));
        let (log, secrets) = (Arc::new(Unread), Arc::new(NoSecrets));
        let context = Context::new(clock, log, secrets, stop.clone(), 0);
        let target = Target {
            cluster: ClusterId::derive(ORIGIN),
            machines: Vec::new(),
            whole: true,
        };
        let looked = look(&driver, &context, &target, &stop);
        let bound = PROBE_MAX + GRACE + Duration::from_secs(1);
        let seen = tokio::time::timeout(bound, looked).await;
        seen.map_or(usize::MAX, |seen| seen.len())
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_survives_a_machine_that_takes_too_long() {
        assert_eq!(seen_by(Waits { listens: true }).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_does_not_listen_is_left() {
        assert_eq!(seen_by(Waits { listens: false }).await, 0);
    }
}
