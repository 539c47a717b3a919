//! The queue: who works on what, until when, and how it ended.
//!
//! A claim is a lease with a fence. Ending an attempt consumes the claim, and the row is
//! changed only if it still bears the claim's fence: a worker that was given up for dead
//! cannot overwrite what its successor recorded.

use crate::Store;
use crate::body::{Row, Scope, Tx, Value, first};
use crate::error::Error;
use crate::events::note;
use crate::observations::{Of, take_in};
use crate::sealed::{SealError, SealedRow};
use crate::{Actor, claims, clusters, logs, sealed, wish};
use model::id::{ClusterId, TaskId};
use model::observed::Observation;
use model::sealed::KeyId;
use model::task::{OnLost, State, Task};
use model::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a lost attempt rests when nobody could see what it left behind.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The clusters that come next; their index has that order, so the first rows found are
/// they. Those that another worker has its hands on are passed over.
const LEAST_BUSY: &str = "SELECT cluster, running FROM lanes WHERE running < $1 AND due <= $2
     ORDER BY running, due, cluster LIMIT $3 FOR UPDATE SKIP LOCKED";

/// Clusters that are served in one statement.
const LANES_MAX: u32 = 64;

/// The right to work on one task until the lease runs out.
///
/// There is no other way to end an attempt, and ending it consumes the claim.
#[derive(Debug)]
#[must_use = "a claim dropped unrecorded blocks its task until the lease runs out"]
pub struct Claim {
    /// What to do.
    pub task: Task,
    /// Which attempt this is, counted from 1.
    pub attempt: u32,
    /// Whether the attempt before this one vanished: nobody knows how far it came.
    pub lost: bool,
    fence: u64,
    worker: String,
}

impl Claim {
    /// Grows with every claim of the task; for systems that can compare it too.
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// The same claim, for one that was refused and is made again.
    fn again(&self) -> Self {
        Self {
            task: self.task.clone(),
            attempt: self.attempt,
            lost: self.lost,
            fence: self.fence,
            worker: self.worker.clone(),
        }
    }
}

/// Why an attempt was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Something was sealed with a key that is not in use any more: seal it again with the
    /// current one, and record again.
    #[error("the data key {key} is no longer in use")]
    KeyGone {
        /// Which key.
        key: KeyId,
        /// The claim, for the next time.
        claim: Box<Claim>,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The world is as the task asked.
    Done,
    /// It may work later.
    Retry {
        /// How it ended.
        error: String,
        /// When the next attempt is due.
        not_before: Timestamp,
    },
    /// It will not work until something changes.
    Stuck {
        /// How it ended, with what it waits for.
        error: String,
    },
    /// The worker gives the task back unfinished; it is due at once.
    Yield,
}

impl Ended {
    /// A word for metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retry { .. } => "retry",
            Self::Stuck { .. } => "stuck",
            Self::Yield => "yield",
        }
    }
}

/// Whether an attempt could still be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "after a lost lease somebody else may be at work"]
pub enum Recorded {
    /// It was.
    Yes,
    /// The lease was lost before; nothing was recorded.
    LeaseLost,
}

impl Store {
    /// Claims tasks that are due, at most `limit`, fairly: the cluster with the fewest
    /// running tasks comes first, and none gets more than `per_cluster` at a time.
    pub async fn claim(
        &self,
        worker: &str,
        limit: u32,
        per_cluster: u32,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<Claim>, Error> {
        let worker = worker.to_owned();
        let until = now.plus(lease);
        self.runner
            .write(Scope::Rows, move |tx| {
                claim(tx, &worker, (limit, per_cluster), until, now)
            })
            .await
    }

    /// Extends the leases of attempts, each a task and its fence; answers which still hold.
    ///
    /// What the worker does not name is not extended: nobody works on it any more.
    pub async fn beat(
        &self,
        worker: &str,
        attempts: BTreeSet<(TaskId, u64)>,
        lease: Duration,
        now: Timestamp,
    ) -> Result<BTreeSet<(TaskId, u64)>, Error> {
        let worker = worker.to_owned();
        let question = move |tx: &mut dyn Tx| {
            let until = now.plus(lease);
            let sets: Vec<_> = attempts
                .iter()
                .map(|(task, fence)| {
                    vec![
                        (*task).into(),
                        (*fence).into(),
                        (&worker).into(),
                        until.into(),
                    ]
                })
                .collect();
            let extended = tx.batch(
                "UPDATE tasks SET lease_until = $4
                 WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'running'",
                &sets,
            )?;
            let held = attempts.iter().zip(extended).filter(|(_, rows)| *rows > 0);
            Ok(held.map(|(attempt, _)| *attempt).collect())
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Records how an attempt ended, with what was seen, sealed and written on the way: all
    /// of it, or nothing.
    pub async fn record(
        &self,
        claim: Claim,
        ended: Ended,
        observations: Vec<Observation>,
        sealed: Vec<SealedRow>,
        log: Vec<(Timestamp, String)>,
        now: Timestamp,
    ) -> Result<Recorded, RecordError> {
        let scope = Scope::Cluster(claim.task.cluster);
        // Only what was sealed can be refused, and then the claim is needed once more.
        let kept = (!sealed.is_empty()).then(|| Box::new(claim.again()));
        let question = move |tx: &mut dyn Tx| {
            sealed::check_keys(tx, sealed.iter().map(|row| row.sealed.key))?;
            let recorded = record(tx, &claim, &ended, &observations, &log, now)?;
            if recorded == Recorded::Yes {
                let task = object(claim.task.id);
                let actor = Actor::new(&claim.worker, task);
                sealed::store_outputs(tx, &sealed, &actor, now)?;
            }
            Ok(recorded)
        };
        let recorded = self.runner.write(scope, question).await;
        recorded.map_err(|error| match (error, kept) {
            (SealError::KeyGone { key }, Some(claim)) => RecordError::KeyGone { key, claim },
            (SealError::Store(error), _) => error.into(),
            (
                SealError::KeyGone { .. } | SealError::NoProject { .. } | SealError::TooMany { .. },
                _,
            ) => Error::unanswered().into(),
        })
    }

    /// Adds lines to the log of an attempt that goes on.
    pub async fn append_log(
        &self,
        claim: &Claim,
        lines: Vec<(Timestamp, String)>,
    ) -> Result<Recorded, Error> {
        let (task, attempt, fence) = (claim.task.id, claim.attempt, claim.fence);
        let question = move |tx: &mut dyn Tx| {
            let held = first(
                tx,
                "SELECT 1 FROM tasks WHERE id = $1 AND fence = $2 AND state = 'running' FOR UPDATE",
                &[task.into(), fence.into()],
            )?;
            if held.is_none() {
                return Ok(Recorded::LeaseLost);
            }
            logs::append(tx, task, attempt, &lines)?;
            Ok(Recorded::Yes)
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Ends leases and wishes that ran out; answers which clusters that concerns.
    ///
    /// A task whose worker fell silent waits again, or for a person where its kind asks
    /// for one, and remembers that an attempt was lost.
    pub async fn expire(&self, now: Timestamp) -> Result<Vec<ClusterId>, Error> {
        let question = move |tx: &mut dyn Tx| {
            let rows = tx.query(
                "SELECT format, body FROM tasks WHERE state = 'running' AND lease_until <= $1 ORDER BY seq",
                &[now.into()],
            )?;
            let lost = u64::try_from(rows.len()).unwrap_or(u64::MAX);
            let mut clusters = lose(tx, rows, now)?;
            clusters.extend(wish::expire(tx, now)?);
            clusters.extend(clusters::wake(tx, now)?);
            Ok::<_, Error>((clusters.into_iter().collect(), lost))
        };
        // Several processes look now and then; only who finds something keeps others waiting.
        if self.next_end().await?.is_none_or(|end| end > now) {
            return Ok(Vec::new());
        }
        let (clusters, lost) = self.runner.write(Scope::Whole, question).await?;
        metrics::counter!("slipway_leases_expired_total").increment(lost);
        Ok(clusters)
    }

    /// Ends every lease: for the start of a process that knows to be the only one.
    pub async fn void_leases(&self, now: Timestamp) -> Result<u32, Error> {
        let question = move |tx: &mut dyn Tx| {
            let rows = tx.query(
                "SELECT format, body FROM tasks WHERE state = 'running' ORDER BY seq",
                &[],
            )?;
            let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            lose(tx, rows, now)?;
            Ok(count)
        };
        self.runner.write(Scope::Whole, question).await
    }

    /// When the next thing happens by itself: an attempt falls due, a lease or a wish ends.
    ///
    /// In the past when a task is due that its cluster has no room for; the record of
    /// another one then makes room.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        let question = |tx: &mut dyn Tx| {
            let due = earliest(tx, "SELECT MIN(due) FROM lanes WHERE due IS NOT NULL")?;
            Ok(due.into_iter().chain(end(tx)?).min())
        };
        self.runner.read(question).await
    }

    /// When the next lease or wish ends, or a cluster is to be looked at.
    async fn next_end(&self) -> Result<Option<Timestamp>, Error> {
        self.runner.read(end).await
    }
}

fn end(tx: &mut dyn Tx) -> Result<Option<Timestamp>, Error> {
    let mut next = None;
    for sql in [
        "SELECT MIN(lease_until) FROM tasks WHERE state = 'running'",
        "SELECT MIN(expires_at) FROM intents WHERE open = 1",
        "SELECT MIN(wake_at) FROM clusters WHERE wake_at IS NOT NULL",
    ] {
        next = next.into_iter().chain(earliest(tx, sql)?).min();
    }
    Ok(next)
}

fn earliest(tx: &mut dyn Tx, sql: &str) -> Result<Option<Timestamp>, Error> {
    let found = first(tx, sql, &[])?.map(|mut row| row.take::<Option<Timestamp>>());
    Ok(found.transpose()?.flatten())
}

fn claim(
    tx: &mut dyn Tx,
    worker: &str,
    (limit, per_cluster): (u32, u32),
    until: Timestamp,
    now: Timestamp,
) -> Result<Vec<Claim>, Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut claimed = Vec::new();
    refresh_all(tx)?;
    // A cluster that gets a task moves up by one, so the clusters at each number of running
    // tasks are served before any that has more.
    while claimed.len() < limit {
        let room = u32::try_from(limit - claimed.len()).unwrap_or(u32::MAX);
        let lanes = least_busy(tx, per_cluster, room.min(LANES_MAX), now)?;
        if lanes.is_empty() {
            break;
        }
        for row in take_first(tx, &lanes, worker, until, now)? {
            claimed.push(begun(tx, row, worker, now)?);
        }
        for lane in lanes {
            refresh(tx, lane);
        }
        refresh_all(tx)?;
    }
    Ok(claimed)
}

/// Clusters that are served next: those with the fewest running tasks.
fn least_busy(
    tx: &mut dyn Tx,
    per_cluster: u32,
    room: u32,
    now: Timestamp,
) -> Result<Vec<ClusterId>, Error> {
    let rows = tx.query(LEAST_BUSY, &[per_cluster.into(), now.into(), room.into()])?;
    let mut fewest: Option<u64> = None;
    let mut lanes = Vec::with_capacity(rows.len());
    for mut row in rows {
        let (cluster, running) = (row.take()?, row.take()?);
        if *fewest.get_or_insert(running) == running {
            lanes.push(cluster);
        }
    }
    Ok(lanes)
}

/// Begins the first task that is due in each of these clusters.
///
/// In two statements, because each then goes by an index whatever the database believes of
/// its tables; nobody else has these lanes meanwhile.
fn take_first(
    tx: &mut dyn Tx,
    lanes: &[ClusterId],
    worker: &str,
    until: Timestamp,
    now: Timestamp,
) -> Result<Vec<Row>, Error> {
    let clusters = lanes.iter().map(|cluster| Value::from(*cluster));
    let (places, params) = places(vec![now.into()], clusters, &"".into());
    let rows = tx.query(
        &format!(
            "SELECT (SELECT seq FROM tasks AS due
                     WHERE due.cluster = lanes.cluster AND due.state = 'waiting' AND due.not_before <= $1
                     ORDER BY due.not_before, due.seq LIMIT 1)
             FROM lanes WHERE cluster IN ({places})"
        ),
        &params,
    )?;
    let mut due = Vec::with_capacity(rows.len());
    for mut row in rows {
        due.extend(row.take::<Option<u64>>()?.map(Value::from));
    }
    let given = vec![now.into(), worker.into(), until.into()];
    let (places, params) = self::places(given, due.into_iter(), &Value::Int(-1));
    tx.query(
        &format!(
            "UPDATE tasks SET state = 'running', attempts = attempts + 1, fence = fence + 1,
                              worker = $2, lease_until = $3, updated_at = $1
             WHERE seq IN ({places}) AND state = 'waiting'
             RETURNING format, body, attempts, lost, fence"
        ),
        &params,
    )
}

/// Places for a list of values after those that are given, filled up so that there are few
/// different statements to prepare.
fn places(
    mut given: Vec<Value>,
    values: impl Iterator<Item = Value>,
    filling: &Value,
) -> (String, Vec<Value>) {
    let first = given.len() + 1;
    given.extend(values);
    let full = usize::try_from(LANES_MAX).unwrap_or(usize::MAX);
    let size = if given.len() <= first { 1 } else { full };
    given.resize(first - 1 + size, filling.clone());
    let places: Vec<_> = (first..first + size)
        .map(|place| format!("${place}"))
        .collect();
    (places.join(", "), given)
}

fn begun(tx: &mut dyn Tx, mut row: Row, worker: &str, now: Timestamp) -> Result<Claim, Error> {
    let task: Task = row.document()?;
    let (attempt, lost, fence) = (row.take()?, row.take()?, row.take()?);
    let message = format!("{}, attempt {attempt}", title(&task));
    note(
        tx,
        (&task.project, now),
        "task.started",
        object(task.id),
        message,
    );
    Ok(Claim {
        task,
        attempt,
        lost,
        fence,
        worker: worker.to_owned(),
    })
}

fn record(
    tx: &mut dyn Tx,
    claim: &Claim,
    ended: &Ended,
    observations: &[Observation],
    log: &[(Timestamp, String)],
    now: Timestamp,
) -> Result<Recorded, Error> {
    // Who gives a task back without having seen anything knows no more than before of what
    // a lost attempt left behind; looking again at once would see nothing again.
    let blind = claim.lost && *ended == Ended::Yield && observations.is_empty();
    let (state, not_before, error) = match ended {
        Ended::Done => (State::Done, now, None),
        Ended::Retry { error, not_before } => (State::Waiting, *not_before, Some(error)),
        Ended::Stuck { error } => (State::Stuck, now, Some(error)),
        Ended::Yield if blind => (State::Waiting, now.plus(LOOK_AGAIN_AFTER), None),
        Ended::Yield => (State::Waiting, now, None),
    };
    let changed = tx.execute(
        "UPDATE tasks SET state = $4, not_before = $5, error = $6, lease_until = NULL, worker = NULL,
                          lost = $7, updated_at = $8
         WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'running'",
        &[
            claim.task.id.into(),
            claim.fence.into(),
            (&claim.worker).into(),
            state.as_str().into(),
            not_before.into(),
            error.map(|error| logs::shortened(error.clone())).into(),
            blind.into(),
            now.into(),
        ],
    )?;
    if changed == 0 {
        return Ok(Recorded::LeaseLost);
    }
    let task = &claim.task;
    refresh(tx, task.cluster);
    logs::append(tx, task.id, claim.attempt, log)?;
    let of = Of {
        cluster: task.cluster,
        project: &task.project,
        name: &task.cluster_name,
    };
    take_in(tx, of, observations, now)?;
    if *ended == Ended::Done {
        tx.outbox().done.push((task.id, now));
        claims::settle(tx, task.cluster, now);
    }
    let (kind, message) = match ended {
        Ended::Done => ("task.done", title(task)),
        Ended::Retry { error, .. } => ("task.retry", format!("{} failed: {error}", title(task))),
        Ended::Stuck { error } => ("task.stuck", format!("{} is stuck: {error}", title(task))),
        Ended::Yield => ("task.yielded", format!("{} was given back", title(task))),
    };
    note(
        tx,
        (&task.project, now),
        kind,
        object(task.id),
        logs::shortened(message),
    );
    Ok(Recorded::Yes)
}

/// Gives up on the attempts at these tasks.
fn lose(tx: &mut dyn Tx, rows: Vec<Row>, now: Timestamp) -> Result<BTreeSet<ClusterId>, Error> {
    let mut clusters = BTreeSet::new();
    for mut row in rows {
        let task: Task = row.document()?;
        let (state, error) = match task.action.kind().on_lost() {
            OnLost::Rerun | OnLost::Verify => (State::Waiting, None),
            OnLost::Ask => (
                State::Stuck,
                Some(
                    "the worker vanished in the middle of an attempt; look what it left, then retry",
                ),
            ),
        };
        tx.execute(
            "UPDATE tasks SET state = $2, not_before = $3, error = COALESCE($4, error), lost = 1,
                              lease_until = NULL, worker = NULL, updated_at = $3 WHERE id = $1",
            &[
                task.id.into(),
                state.as_str().into(),
                now.into(),
                error.into(),
            ],
        )?;
        let message = format!("{}: the worker fell silent", title(&task));
        note(
            tx,
            (&task.project, now),
            "task.lost",
            object(task.id),
            message,
        );
        clusters.insert(task.cluster);
    }
    for cluster in &clusters {
        refresh(tx, *cluster);
    }
    Ok(clusters)
}

/// Has it recomputed, at the end of the transaction, how busy a cluster is and when its next
/// task is due.
pub(crate) fn refresh(tx: &mut dyn Tx, cluster: ClusterId) {
    tx.outbox().lanes.insert(cluster);
}

/// Recomputes the lanes that may have changed.
pub(crate) fn refresh_all(tx: &mut dyn Tx) -> Result<(), Error> {
    let lanes = std::mem::take(&mut tx.outbox().lanes);
    if lanes.is_empty() {
        return Ok(());
    }
    let sets: Vec<_> = lanes
        .into_iter()
        .map(|cluster| vec![cluster.into()])
        .collect();
    // Who counts must have the lane first: otherwise what somebody else is about to commit
    // would be missing from the count that is written after it.
    tx.batch("SELECT 1 FROM lanes WHERE cluster = $1 FOR UPDATE", &sets)?;
    tx.batch(
        "INSERT INTO lanes (cluster, running, due)
         VALUES ($1, (SELECT COUNT(*) FROM tasks WHERE cluster = $1 AND state = 'running'),
                     (SELECT MIN(not_before) FROM tasks WHERE cluster = $1 AND state = 'waiting'))
         ON CONFLICT (cluster) DO UPDATE SET running = excluded.running, due = excluded.due",
        &sets,
    )?;
    Ok(())
}

/// A task in the words of an event: `create hello-control-01`.
pub(crate) fn title(task: &Task) -> String {
    format!("{} {}", task.action.kind(), task.machine.name)
}

/// A task as the object of an event.
pub(crate) fn object(task: TaskId) -> String {
    format!("task/{task}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Value;

    #[test]
    fn the_next_cluster_is_found_without_sorting() -> Result<(), Error> {
        let mut tx = crate::sqlite::in_memory()?;
        let explain = format!("EXPLAIN QUERY PLAN {LEAST_BUSY}");
        let steps = tx.query(
            &explain,
            &[1_u32.into(), Timestamp::default().into(), 1_u32.into()],
        )?;
        let steps: Vec<_> = steps.into_iter().map(Row::rest).collect();
        let [step] = steps.as_slice() else {
            return Err(Error::Other {
                attempted: "find the next cluster in one step",
                cause: None,
            });
        };
        let expected = "SEARCH lanes USING COVERING INDEX lanes_by_load (running<?)";
        assert_eq!(step.last(), Some(&Value::from(expected)));
        Ok(())
    }
}
