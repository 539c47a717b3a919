//! One attempt at one task, from the claim to the record.

use crate::Shared;
use crate::probing::PROBE_MAX;
use driver::{Context, Driver, Log, Outcome, Target};
use futures_util::FutureExt;
use model::observed::Observation;
use model::task::OnLost;
use model::time::Timestamp;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Claim, Ended, Recorded};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a line may wait before people can read it.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Lines of an attempt that are not stored yet.
#[derive(Default)]
struct Lines {
    written: Mutex<Vec<(Timestamp, String)>>,
    bell: Notify,
}

impl Lines {
    fn take(&self) -> Vec<(Timestamp, String)> {
        std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there is something to store. An attempt that writes nothing, as most do
    /// for minutes, wakes nobody.
    async fn due(&self) {
        self.bell.notified().await;
        tokio::time::sleep(FLUSH_EVERY).await;
    }
}

impl Log for Lines {
    fn line(&self, at: Timestamp, text: &str) {
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((at, text.to_owned()));
        self.bell.notify_one();
    }
}

/// Makes one attempt and records how it ended.
pub(crate) async fn run<D: Driver>(
    shared: Arc<Shared<D>>,
    claim: Claim,
    token: CancellationToken,
    mut random: fastrand::Rng,
    stop: CancellationToken,
) {
    let (task, cluster, kind) = (claim.task.id, claim.task.cluster, claim.task.action.kind());
    let lease = shared.leases.hold(task, claim.fence());
    let lines = Arc::new(Lines::default());
    let context = Context::new(shared.clock, lines.clone(), token.clone(), claim.fence());
    let began = tokio::time::Instant::now();

    let (ended, observations) = if claim.lost && kind.on_lost() == OnLost::Verify {
        context.log("the last attempt vanished; looking before anything is done again");
        (Ended::Yield, look(&shared, &context, &claim).await)
    } else {
        let outcome = apply(&shared, &context, &claim, &lines).await;
        let (ended, mut seen) = settle(&shared, outcome, &claim, &mut random, &stop);
        // Who failed may have changed something on the way, or even everything: a plan made
        // from what was seen before the attempt could remove a node that has just joined.
        if matches!(ended, Ended::Retry { .. } | Ended::Stuck { .. }) {
            seen = look(&shared, &context, &claim).await;
        }
        (ended, seen)
    };

    let word = ended.word();
    let recorded = shared
        .store
        .record(claim, ended, observations, lines.take(), shared.clock.now())
        .await;
    drop(lease);
    metrics::histogram!("slipway_task_seconds", "kind" => kind.as_str(), "ended" => word)
        .record(began.elapsed().as_secs_f64());
    match recorded {
        Ok(Recorded::Yes) => {}
        Ok(Recorded::LeaseLost) => {
            tracing::warn!(task = %task, "an attempt at {task} ended after its lease; nothing of it was recorded");
        }
        Err(error) => tracing::error!(task = %task, %error, "could not record {task}: {error}"),
    }
    shared.agenda.add([cluster]);
    shared.bell.notify_one();
}

/// Looks at the machine of the task; what cannot be seen in time is left out.
async fn look<D: Driver>(shared: &Shared<D>, context: &Context, claim: &Claim) -> Vec<Observation> {
    let target = Target {
        cluster: claim.task.cluster,
        machines: vec![claim.task.machine.clone()],
    };
    let looked = AssertUnwindSafe(shared.driver.probe(context, &target)).catch_unwind();
    match tokio::time::timeout(PROBE_MAX, looked).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

/// Lets the driver work, within bounds, while its lines are stored for people to read.
async fn apply<D: Driver>(
    shared: &Shared<D>,
    context: &Context,
    claim: &Claim,
    lines: &Lines,
) -> Outcome {
    let work = AssertUnwindSafe(shared.driver.apply(context, &claim.task)).catch_unwind();
    let work = tokio::time::timeout(shared.settings.attempt_max, work);
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            ended = &mut work => return match ended {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Outcome::Stuck(driver::Error {
                    attempted: "the driver broke down".to_owned(),
                    hint: "this is a defect of Slipway: keep the server's log and report it".to_owned(),
                }),
                Err(_) => Outcome::Retry(driver::Error {
                    attempted: format!("gave up after {} minutes", shared.settings.attempt_max.as_secs() / 60),
                    hint: "tries again by itself".to_owned(),
                }),
            },
            () = lines.due() => {
                let new = lines.take();
                if !new.is_empty()
                    && let Err(error) = shared.store.append_log(claim, new).await
                {
                    tracing::error!(%error, "could not store lines of {}: {error}", claim.task.id);
                }
            }
        }
    }
}

/// Turns what a driver says into what is recorded.
fn settle<D>(
    shared: &Shared<D>,
    outcome: Outcome,
    claim: &Claim,
    random: &mut fastrand::Rng,
    stop: &CancellationToken,
) -> (Ended, Vec<Observation>) {
    match outcome {
        Outcome::Done(observations) => (Ended::Done, observations),
        Outcome::Retry(_) if stop.is_cancelled() => (Ended::Yield, Vec::new()),
        Outcome::Retry(error) => {
            let pause = shared.settings.backoff(claim.attempt, random);
            let not_before = shared.clock.now().plus(pause);
            (
                Ended::Retry {
                    error: error.to_string(),
                    not_before,
                },
                Vec::new(),
            )
        }
        Outcome::Stuck(error) => (
            Ended::Stuck {
                error: error.to_string(),
            },
            Vec::new(),
        ),
    }
}
