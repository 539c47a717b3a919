//! Claim → apply → record.

use crate::Shared;
use crate::attempt;
use driver::Driver;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How many tasks are claimed in one question.
const CLAIMS_MAX: u32 = 256;

/// The longest sleep between two looks at the queue; everything that makes a task due
/// earlier rings the bell.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Claims what is due while there is room, and starts an attempt at each.
pub(crate) async fn run<D: Driver>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut attempts = JoinSet::new();
    let mut random = fastrand::Rng::with_seed(shared.settings.seed);
    loop {
        while attempts.try_join_next().is_some() {}
        let began = claim(&shared, &stop, &mut attempts, &mut random).await;
        if began > 0 && !stop.is_cancelled() {
            continue;
        }
        let pause = until_due(&shared).await;
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = shared.bell.notified() => {}
            Some(_) = attempts.join_next(), if full(&shared) => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    let all = async { while attempts.join_next().await.is_some() {} };
    if tokio::time::timeout(shared.settings.grace, all)
        .await
        .is_err()
    {
        tracing::warn!(
            "some attempts did not end in time; they are looked at again at the next start"
        );
    }
}

fn full<D>(shared: &Shared<D>) -> bool {
    shared.leases.count() >= shared.settings.running_max
}

async fn claim<D: Driver>(
    shared: &Arc<Shared<D>>,
    stop: &CancellationToken,
    attempts: &mut JoinSet<()>,
    random: &mut fastrand::Rng,
) -> usize {
    let settings = &shared.settings;
    let room = settings
        .running_max
        .saturating_sub(shared.leases.count())
        .min(CLAIMS_MAX);
    if room == 0 || stop.is_cancelled() {
        return 0;
    }
    let now = shared.clock.now();
    let claimed = shared
        .store
        .claim(
            &settings.worker,
            room,
            settings.per_cluster_max,
            settings.lease,
            now,
        )
        .await;
    match claimed {
        Ok(claims) => {
            let count = claims.len();
            for claim in claims {
                let token = shared.leases.begin(claim.task.id, claim.fence(), stop);
                let span = tracing::info_span!(
                    "task",
                    task = %claim.task.id,
                    kind = claim.task.action.kind().as_str(),
                    cluster = %claim.task.cluster_name,
                    attempt = claim.attempt,
                    worker = settings.worker,
                );
                let (shared, stop) = (shared.clone(), stop.clone());
                let attempt = attempt::run(shared, claim, token, random.fork(), stop);
                attempts.spawn(attempt.instrument(span));
            }
            count
        }
        Err(error) => {
            tracing::error!(%error, "could not claim tasks: {error}");
            0
        }
    }
}

/// How long until a waiting task is due.
async fn until_due<D>(shared: &Shared<D>) -> Duration {
    let now = shared.clock.now();
    match shared.store.next_due().await {
        // What is due already and was not claimed waits for room in its cluster, which an
        // ended attempt makes: a second is soon enough to look again.
        Ok(Some(due)) if due <= now => Duration::from_secs(1),
        Ok(Some(due)) => due.since(now).min(LOOK_EVERY),
        Ok(None) => LOOK_EVERY,
        Err(error) => {
            tracing::error!(%error, "could not read the queue: {error}");
            Duration::from_secs(5)
        }
    }
}
