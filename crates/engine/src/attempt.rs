//! One attempt at one task, from the claim to the record.

use crate::Shared;
use crate::probing::PROBE_MAX;
use crate::secrets::{self, Opener};
use driver::{Context, Driver, Log, Outcome, Output, Target};
use futures_util::FutureExt;
use model::observed::{Fact, Observation, Observed};
use model::task::{Action, OnLost};
use model::time::Timestamp;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Actor, Claim, Ended, RecordError, Recorded};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a line may wait before people can read it.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// How long what came of a task waits to be sealed before that is tried again.
const SEAL_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// How long to wait before the end of an attempt is recorded again.
const RECORD_AGAIN_AFTER: Duration = Duration::from_secs(1);

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

    /// Puts back what could not be stored, in front of what was written since.
    fn put_back(&self, mut lines: Vec<(Timestamp, String)>) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        lines.append(&mut written);
        *written = lines;
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

/// How an attempt ended, and what there is to record of it.
struct Attempted {
    ended: Ended,
    seen: Vec<Observation>,
    outputs: Vec<Output>,
}

impl Attempted {
    fn of(ended: Ended, seen: Vec<Observation>) -> Self {
        Self {
            ended,
            seen,
            outputs: Vec::new(),
        }
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
    let opener = Opener {
        store: shared.store.clone(),
        vault: shared.vault.clone(),
        project: claim.task.project.clone(),
        actor: Actor::new(&shared.settings.worker, format!("task/{task}")),
    };
    let context = Context::new(
        shared.clock,
        lines.clone(),
        Arc::new(opener),
        token.clone(),
        claim.fence(),
    );
    let began = tokio::time::Instant::now();
    let attempted = attempt(&shared, &context, &claim, (&lines, &mut random, &stop)).await;
    let word = attempted.ended.word();
    let recorded = record(&shared, &context, claim, attempted, &lines).await;
    drop(lease);
    metrics::histogram!("slipway_task_seconds", "kind" => kind.as_str(), "ended" => word)
        .record(began.elapsed().as_secs_f64());
    match recorded {
        Ok(Recorded::Yes) => tracing::debug!(ended = word, "attempt ended"),
        Ok(Recorded::LeaseLost) => {
            tracing::warn!(task = %task, "an attempt at {task} ended after its lease; nothing of it was recorded");
        }
        Err(error) => tracing::error!(task = %task, %error, "could not record {task}: {error}"),
    }
    shared.agenda.add([cluster]);
    shared.bell.notify_one();
}

async fn attempt<D: Driver>(
    shared: &Shared<D>,
    context: &Context,
    claim: &Claim,
    (lines, random, stop): (&Lines, &mut fastrand::Rng, &CancellationToken),
) -> Attempted {
    if claim.lost && claim.task.action.kind().on_lost() == OnLost::Verify {
        context.log("the last attempt vanished; looking before anything is done again");
        let seen = look(shared, context, claim).await;
        if !left_outputs(claim, &seen) {
            return Attempted::of(Ended::Yield, seen);
        }
        context.log("it was done; what came of it is asked for again");
    }
    let before = before(shared, context, claim).await;
    let outcome = apply(shared, context, claim, lines).await;
    let attempted = settle(shared, outcome, claim, random, stop);
    if let Some(before) = before
        && attempted.ended == Ended::Done
    {
        let after = look(shared, context, claim).await;
        let after = [attempted.seen.clone(), after].concat();
        compare(context, claim, (&before, &after));
    }
    if !matches!(attempted.ended, Ended::Retry { .. } | Ended::Stuck { .. }) {
        return attempted;
    }
    // Who failed may have changed something on the way, or even everything: a plan made
    // from what was seen before the attempt could remove a node that has just joined.
    let seen = look(shared, context, claim).await;
    if left_outputs(claim, &seen) && !context.is_cancelled() {
        context.log("it was done all the same; what came of it is asked for again");
        let outcome = apply(shared, context, claim, lines).await;
        let again = settle(shared, outcome, claim, random, stop);
        if again.ended == Ended::Done {
            return again;
        }
    }
    Attempted { seen, ..attempted }
}

/// What is known before the task begins, what it touches looked at just now, where there is to be a
/// second look. Who begins again does not know how it was before.
async fn before<D: Driver>(
    shared: &Shared<D>,
    context: &Context,
    claim: &Claim,
) -> Option<Observed> {
    let first = claim.attempt == 1 && !claim.lost;
    if !shared.settings.second_look || !first {
        return None;
    }
    let known = shared.store.cluster_view(claim.task.cluster).await;
    let mut observed = known.ok()??.observed;
    for seen in look(shared, context, claim).await {
        observed.see(seen);
    }
    Some(observed)
}

/// Tells where a task that is done led elsewhere than plans say it leads.
fn compare(context: &Context, claim: &Claim, (before, after): (&Observed, &[Observation])) {
    let task = &claim.task;
    for told in plan::unforeseen(task, before, after, context.now()) {
        metrics::counter!("slipway_unforeseen_total").increment(1);
        let told = format!("{}: {told}", task.action.kind());
        context.log(&format!("not as foreseen: {told}"));
        tracing::warn!("not as foreseen: {told}");
    }
}

/// Whether an attempt of which nobody heard has done its work, and left something that nobody
/// else will ask for: a started control plane has keys, and is never started again.
fn left_outputs(claim: &Claim, seen: &[Observation]) -> bool {
    let started =
        |seen: &Observation| matches!(&seen.fact, Fact::ControlPlane(fact) if fact.initialised);
    matches!(claim.task.action, Action::Init { .. }) && seen.iter().any(started)
}

/// Records an attempt, with what came of it sealed.
///
/// While that cannot be sealed nothing is recorded: the lease goes on, and if the process
/// ends, the attempt was lost and the next one asks the driver again.
async fn record<D: Driver>(
    shared: &Shared<D>,
    context: &Context,
    mut claim: Claim,
    mut attempted: Attempted,
    lines: &Lines,
) -> Result<Recorded, RecordError> {
    let mut told = String::new();
    let mut stale = false;
    loop {
        let project = &claim.task.project;
        let sealed = secrets::seal(&shared.vault, project, &attempted.outputs, stale).await;
        let sealed = match sealed {
            Ok(sealed) => sealed,
            Err(error) if error.is_passing() => {
                let line = format!("could not seal what came of it: {error} ({})", error.code());
                if line != told {
                    tracing::error!(task = %claim.task.id, error.code = error.code(), "{line}");
                    context.log(&line);
                    told = line;
                }
                flush(shared, &claim, lines).await;
                tokio::select! {
                    biased;
                    () = context.cancelled() => return Ok(Recorded::LeaseLost),
                    () = tokio::time::sleep(SEAL_AGAIN_AFTER) => continue,
                }
            }
            Err(error) => {
                attempted.outputs.clear();
                attempted.ended = Ended::Stuck {
                    error: format!("could not seal what came of it: {error}; {}", error.hint()),
                };
                Vec::new()
            }
        };
        if !sealed.is_empty() {
            // The record may be refused, and made again.
            flush(shared, &claim, lines).await;
        }
        let (ended, seen) = (attempted.ended.clone(), attempted.seen.clone());
        let now = shared.clock.now();
        let log = lines.take();
        let recorded = shared
            .store
            .record(claim, ended, seen, sealed, log.clone(), now);
        match recorded.await {
            // What was done is not done again because the database is away for a moment: the
            // lease goes on, or ends and is lost.
            Err(RecordError::Away {
                error,
                claim: again,
            }) => {
                tracing::warn!(
                    error.code = error.code(),
                    "cannot record {}: {error}",
                    again.task.id
                );
                claim = *again;
                lines.put_back(log);
                tokio::select! {
                    biased;
                    () = context.cancelled() => return Ok(Recorded::LeaseLost),
                    () = tokio::time::sleep(RECORD_AGAIN_AFTER) => {}
                }
            }
            // Somebody has put another data key to use meanwhile.
            Err(RecordError::KeyGone { claim: again, .. }) => {
                claim = *again;
                stale = true;
            }
            recorded => return recorded,
        }
    }
}

/// Looks at the machines that the task touches; what cannot be seen in time is left out.
async fn look<D: Driver>(shared: &Shared<D>, context: &Context, claim: &Claim) -> Vec<Observation> {
    let target = Target {
        cluster: claim.task.cluster,
        machines: claim.task.touched(),
        whole: false,
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
            () = lines.due() => flush(shared, claim, lines).await,
        }
    }
}

/// Stores the lines that were written since.
async fn flush<D>(shared: &Shared<D>, claim: &Claim, lines: &Lines) {
    let new = lines.take();
    if !new.is_empty()
        && let Err(error) = shared.store.append_log(claim, new).await
    {
        tracing::error!(%error, "could not store lines of {}: {error}", claim.task.id);
    }
}

/// Turns what a driver says into what is recorded.
fn settle<D>(
    shared: &Shared<D>,
    outcome: Outcome,
    claim: &Claim,
    random: &mut fastrand::Rng,
    stop: &CancellationToken,
) -> Attempted {
    match outcome {
        Outcome::Done(seen, outputs) => Attempted {
            ended: Ended::Done,
            seen,
            outputs,
        },
        Outcome::Retry(_) if stop.is_cancelled() => Attempted::of(Ended::Yield, Vec::new()),
        Outcome::Retry(error) => {
            let pause = shared.settings.backoff(claim.attempt, random);
            let ended = Ended::Retry {
                error: error.to_string(),
                not_before: shared.clock.now().plus(pause),
            };
            Attempted::of(ended, Vec::new())
        }
        Outcome::Stuck(error) => {
            let error = error.to_string();
            Attempted::of(Ended::Stuck { error }, Vec::new())
        }
    }
}
