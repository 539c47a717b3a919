//! Plan → commit: one cluster at a time, many clusters side by side.

use crate::Shared;
use driver::Driver;
use futures_util::FutureExt as _;
use model::id::ClusterId;
use model::time::Timestamp;
use plan::Held;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use store::{ClusterView, CommitError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Clusters that are planned side by side: enough to share a commit, few enough to leave
/// the store's readers to others.
const SIDE_BY_SIDE: usize = 16;

/// Attempts at a plan that others overtake; the next look comes anyway.
const OVERTAKEN_MAX: usize = 5;

/// The longest that others are given to plan what they have changed.
const GIVE_WAY_MAX: Duration = Duration::from_millis(250);

/// How long a cluster whose plan could not be committed is left alone.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Plans what is on the agenda, beginning with everything there is.
pub(crate) async fn run<D: Driver>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    match shared.store.live_clusters().await {
        Ok(live) => shared
            .agenda
            .add(live.into_iter().map(|cluster| cluster.id)),
        Err(error) => tracing::error!(%error, "could not read the clusters: {error}"),
    }
    let mut passes = JoinSet::new();
    let mut postponed = JoinSet::new();
    loop {
        while postponed.try_join_next().is_some() {}
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = passes.join_next(), if !passes.is_empty() => {
                if let Ok(Err(Later(cluster))) = ended {
                    postponed.spawn(postpone(shared.clone(), cluster));
                }
            }
            cluster = shared.agenda.take(), if passes.len() < SIDE_BY_SIDE => {
                passes.spawn(planned(shared.clone(), cluster));
            }
        }
    }
    // A pass is short: those under way end by themselves.
    while passes.join_next().await.is_some() {}
}

/// Puts a cluster back on the agenda after a while, without keeping a place from others.
async fn postpone<D: Driver>(shared: Arc<Shared<D>>, cluster: ClusterId) {
    tokio::time::sleep(AGAIN_AFTER).await;
    shared.agenda.add([cluster]);
}

/// Puts on the agenda what others changed: submissions, wishes, work of other processes.
pub(crate) async fn listen<D: Driver>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut news = shared.store.subscribe();
    let mut random = fastrand::Rng::with_seed(shared.settings.seed);
    loop {
        if !shared.settings.alone {
            // Everybody hears the same news. Who recorded something plans what follows from it
            // at once; the others give them a moment, and mostly find it done.
            tokio::time::sleep(GIVE_WAY_MAX.mul_f64(random.f64())).await;
        }
        match shared.store.unplanned().await {
            Ok(clusters) if clusters.is_empty() => {}
            Ok(clusters) => {
                shared.agenda.add(clusters);
                // What is new was never looked at.
                shared.probe_bell.notify_one();
            }
            Err(error) => tracing::error!(%error, "could not read what is unplanned: {error}"),
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            changed = news.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

async fn planned<D: Driver>(shared: Arc<Shared<D>>, cluster: ClusterId) -> Result<(), Later> {
    // A pass that breaks down must not keep its cluster from being planned ever again.
    let passed = AssertUnwindSafe(pass(&shared, cluster))
        .catch_unwind()
        .await;
    shared.agenda.done(cluster);
    passed.unwrap_or_else(|_| {
        tracing::error!(%cluster, "planning {cluster} broke down; this is a defect of Slipway");
        Err(Later(cluster))
    })
}

/// What becomes of the desired state of a cluster.
enum Moved {
    /// It is another one now.
    On,
    /// It stays. The checker objects to the steps that are told here; else there is none to make.
    Not(Vec<Held>),
}

/// Has the desired state of a cluster move on, where what was seen gives a reason.
async fn moved_on<D: Driver>(
    shared: &Shared<D>,
    cluster: ClusterId,
    known: &ClusterView,
    now: Timestamp,
) -> Result<Moved, Later> {
    let view = known.view(now);
    let Some(step) = plan::advance(&view) else {
        return Ok(Moved::Not(Vec::new()));
    };
    let notes = plan::check_advance(&view, &step);
    if !notes.is_empty() {
        return Ok(Moved::Not(step.stopped(&notes)));
    }
    tracing::info!(because = step.because, "{cluster} moves on");
    match shared.store.advance(step, now).await {
        Ok(()) | Err(CommitError::Stale | CommitError::Refused { .. }) => Ok(Moved::On),
        Err(CommitError::Store(error)) => {
            tracing::error!(%error, "could not move {cluster} on: {error}");
            Err(Later(cluster))
        }
    }
}

/// The pass could not be finished; this cluster needs another.
struct Later(ClusterId);

/// A cluster could not be read: where another version stored it, people are told.
async fn unread<D: Driver>(shared: &Shared<D>, cluster: ClusterId, error: &store::Error) -> Later {
    tracing::error!(%error, "could not read {cluster}: {error}");
    if error.is_unreadable() {
        let now = shared.clock.now();
        let told = shared.store.tell_unreadable(cluster, error, now);
        if let Err(error) = told.await {
            tracing::error!(%error, "could not tell of {cluster}: {error}");
        }
    }
    Later(cluster)
}

#[tracing::instrument(name = "plan", skip_all, fields(cluster = %cluster))]
async fn pass<D: Driver>(shared: &Shared<D>, cluster: ClusterId) -> Result<(), Later> {
    for _ in 0..OVERTAKEN_MAX {
        let known = match shared.store.cluster_view(cluster).await {
            Ok(Some(known)) => known,
            Ok(None) => return Ok(()),
            Err(error) => return Err(unread(shared, cluster, &error).await),
        };
        if known.is_unseen() {
            // Whoever looks at it puts it on the agenda again.
            tracing::info!("{cluster} is looked at before it is planned");
            shared.probe_bell.notify_one();
            return Ok(());
        }
        let now = shared.clock.now();
        let stopped = match moved_on(shared, cluster, &known, now).await? {
            Moved::On => continue,
            Moved::Not(stopped) => stopped,
        };
        if plan::give_back(known.known(), now).is_some() {
            if let Err(error) = shared.store.give_back(cluster, now).await {
                tracing::error!(%error, "could not give back what cannot be made: {error}");
                return Err(Later(cluster));
            }
            continue;
        }
        let began = tokio::time::Instant::now();
        let mut plan = plan::plan(&known.view(now));
        metrics::histogram!("slipway_plan_seconds").record(began.elapsed().as_secs_f64());
        let notes = plan::check(&known.view(now), &plan);
        if let Some(note) = notes.first() {
            tracing::error!(%note, "a plan of {cluster} was stopped by the checker: {note}");
            plan.stop(&notes);
        }
        // What else there is to do goes on.
        for held in &stopped {
            plan.tell(held.clone());
        }
        let (tasks, held) = (plan.tasks.len(), plan.held.len());
        tracing::debug!(tasks, held, "planned");
        if known.is_told(&plan, now) {
            return Ok(());
        }
        for held in &stopped {
            tracing::error!("a step of {cluster} was stopped by the checker: {held}");
        }
        loop {
            match shared.store.commit(plan.clone(), now).await {
                Ok(()) => {
                    if let Some(wake) = plan.wake {
                        shared.alarm.ends(wake);
                    }
                    if !plan.tasks.is_empty() || !plan.reopen.is_empty() {
                        shared.bell.notify_one();
                    }
                    return Ok(());
                }
                Err(CommitError::Stale) => break,
                Err(CommitError::Refused { machine, reason }) => plan.hold_back(machine, &reason),
                Err(CommitError::Store(error)) => {
                    tracing::error!(%error, "could not commit a plan of {cluster}: {error}");
                    return Err(Later(cluster));
                }
            }
        }
    }
    Err(Later(cluster))
}
