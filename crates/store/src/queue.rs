//! The queue: who works on what, until when, and how it ended.
//!
//! A claim is a lease with a fence. Ending an attempt consumes the claim, and the row is
//! changed only if it still bears the claim's fence: a worker that was given up for dead
//! cannot overwrite what its successor recorded.

use crate::Store;
use crate::body::{Row, Tx, first};
use crate::error::Error;
use crate::events::note;
use crate::observations::{Of, take_in};
use crate::{claims, intents, logs, wish};
use model::id::{ClusterId, TaskId};
use model::observed::Observation;
use model::task::{OnLost, State, Task};
use model::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a lost attempt rests when nobody could see what it left behind.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The cluster that comes next; its index has that order, so the first row found is it.
const LEAST_BUSY: &str = "SELECT cluster FROM lanes WHERE running < $1 AND due <= $2
     ORDER BY running, due, cluster LIMIT 1";

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
            .write(move |tx| claim(tx, &worker, (limit, per_cluster), until, now))
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
            let mut held = BTreeSet::new();
            for (task, fence) in attempts {
                let extended = tx.execute(
                    "UPDATE tasks SET lease_until = $4
                     WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'running'",
                    &[
                        task.into(),
                        fence.into(),
                        (&worker).into(),
                        now.plus(lease).into(),
                    ],
                )?;
                if extended > 0 {
                    held.insert((task, fence));
                }
            }
            Ok(held)
        };
        self.runner.write(question).await
    }

    /// Records how an attempt ended, with what was seen and written on the way.
    pub async fn record(
        &self,
        claim: Claim,
        ended: Ended,
        observations: Vec<Observation>,
        log: Vec<(Timestamp, String)>,
        now: Timestamp,
    ) -> Result<Recorded, Error> {
        self.runner
            .write(move |tx| record(tx, &claim, &ended, observations, log, now))
            .await
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
                "SELECT 1 FROM tasks WHERE id = $1 AND fence = $2 AND state = 'running'",
                &[task.into(), fence.into()],
            )?;
            if held.is_none() {
                return Ok(Recorded::LeaseLost);
            }
            logs::append(tx, task, attempt, lines)?;
            Ok(Recorded::Yes)
        };
        self.runner.write(question).await
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
            let mut clusters = lose(tx, rows, now)?;
            clusters.extend(wish::expire(tx, now)?);
            Ok(clusters.into_iter().collect())
        };
        self.runner.write(question).await
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
        self.runner.write(question).await
    }

    /// When the next thing happens by itself: an attempt falls due, a lease or a wish ends.
    ///
    /// In the past when a task is due that its cluster has no room for; the record of
    /// another one then makes room.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        let question = |tx: &mut dyn Tx| {
            let mut next: Option<Timestamp> = None;
            for sql in [
                "SELECT MIN(due) FROM lanes WHERE due IS NOT NULL",
                "SELECT MIN(lease_until) FROM tasks WHERE state = 'running'",
                "SELECT MIN(expires_at) FROM intents WHERE open = 1",
            ] {
                let at = first(tx, sql, &[])?
                    .map(|mut row| row.take::<Option<Timestamp>>())
                    .transpose()?
                    .flatten();
                next = next.into_iter().chain(at).min();
            }
            Ok(next)
        };
        self.runner.read(question).await
    }
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
    // A cluster that gets a task moves up by one, so the clusters at each number of running
    // tasks are served before any that has more.
    while claimed.len() < limit {
        let lane = first(tx, LEAST_BUSY, &[per_cluster.into(), now.into()])?;
        let Some(mut lane) = lane else { break };
        let cluster: ClusterId = lane.take()?;
        let row = first(
            tx,
            "UPDATE tasks SET state = 'running', attempts = attempts + 1, fence = fence + 1,
                              worker = $3, lease_until = $4, updated_at = $2
             WHERE seq = (SELECT seq FROM tasks WHERE cluster = $1 AND state = 'waiting' AND not_before <= $2
                          ORDER BY not_before, seq LIMIT 1)
             RETURNING format, body, attempts, lost, fence",
            &[cluster.into(), now.into(), worker.into(), until.into()],
        )?;
        refresh(tx, cluster)?;
        claimed.extend(row.map(|row| begun(tx, row, worker, now)).transpose()?);
    }
    Ok(claimed)
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
    )?;
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
    observations: Vec<Observation>,
    log: Vec<(Timestamp, String)>,
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
    refresh(tx, task.cluster)?;
    logs::append(tx, task.id, claim.attempt, log)?;
    let of = Of {
        cluster: task.cluster,
        project: &task.project,
        name: &task.cluster_name,
    };
    take_in(tx, of, observations, now)?;
    if *ended == Ended::Done {
        intents::fulfil_task(tx, task.id, now)?;
        claims::settle(tx, task.cluster, now)?;
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
    )?;
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
        )?;
        clusters.insert(task.cluster);
    }
    for cluster in &clusters {
        refresh(tx, *cluster)?;
    }
    Ok(clusters)
}

/// Recomputes how busy a cluster is and when its next task is due.
pub(crate) fn refresh(tx: &mut dyn Tx, cluster: ClusterId) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO lanes (cluster, running, due)
         VALUES ($1, (SELECT COUNT(*) FROM tasks WHERE cluster = $1 AND state = 'running'),
                     (SELECT MIN(not_before) FROM tasks WHERE cluster = $1 AND state = 'waiting'))
         ON CONFLICT (cluster) DO UPDATE SET running = excluded.running, due = excluded.due",
        &[cluster.into()],
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
        let connection = crate::sqlite::in_memory()?;
        let mut tx = crate::sqlite::Transaction::on(&connection);
        let explain = format!("EXPLAIN QUERY PLAN {LEAST_BUSY}");
        let steps = tx.query(&explain, &[1_u32.into(), Timestamp::default().into()])?;
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
