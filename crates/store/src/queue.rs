//! The queue: who works on what, until when, and how it ended.
//!
//! A claim is a lease with a fence. Ending an attempt consumes the claim, and the row is
//! changed only if it still bears the claim's fence: a worker that was given up for dead
//! cannot overwrite what its successor recorded.

use crate::Store;
use crate::body::{Row, Scope, Tx, Value, first, for_each, insert};
use crate::error::Error;
use crate::events::note;
use crate::observations::{Of, take_in};
use crate::sealed::{SealError, SealedRow};
use crate::{Actor, claims, clusters, logs, sealed, wish};
use model::id::{ClusterId, TaskId};
use model::observed::Observation;
use model::sealed::KeyId;
use model::task::{Kind, OnLost, State, Task};
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

/// Changes of lanes that are caught up with at once.
const CHANGES_MAX: u32 = 1_000;

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
    /// The database is away, and nothing was recorded: the same claim is good until the lease
    /// ends.
    #[error("{error}")]
    Away {
        /// Why.
        error: Error,
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
        // What could not be recorded now may be recorded later, with the same claim.
        let kept = Box::new(claim.again());
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
            (SealError::KeyGone { key }, claim) => RecordError::KeyGone { key, claim },
            (SealError::Store(error), claim) if error.is_passing() => {
                RecordError::Away { error, claim }
            }
            (SealError::Store(error), _) => error.into(),
            (SealError::NoProject { .. } | SealError::TooMany { .. }, _) => {
                Error::unanswered().into()
            }
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
        self.runner
            .write(Scope::Whole, move |tx| void(tx, now))
            .await
    }

    /// When the next thing happens by itself: an attempt falls due, a lease or a wish ends.
    ///
    /// In the past when a task is due that its cluster has no room for; the record of
    /// another one then makes room.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        let question = |tx: &mut dyn Tx| {
            let due = earliest(tx, "SELECT MIN(due) FROM lanes WHERE due IS NOT NULL")?;
            let changed = earliest(
                tx,
                "SELECT MIN(not_before) FROM tasks
                 WHERE state = 'waiting' AND cluster IN (SELECT cluster FROM lane_changes)",
            )?;
            Ok(due.into_iter().chain(changed).chain(end(tx)?).min())
        };
        self.runner.read(question).await
    }

    /// When the next lease or wish ends, or a cluster is to be looked at.
    async fn next_end(&self) -> Result<Option<Timestamp>, Error> {
        self.runner.read(end).await
    }
}

/// Ends every lease; answers how many there were.
fn void(tx: &mut dyn Tx, now: Timestamp) -> Result<u32, Error> {
    let rows = tx.query(
        "SELECT format, body FROM tasks WHERE state = 'running' ORDER BY seq",
        &[],
    )?;
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    lose(tx, rows, now)?;
    Ok(count)
}

/// Doubts every task that is not finished: it may have been done by somebody who could not tell
/// us. Those that must not be done twice look first.
pub(crate) fn doubt(tx: &mut dyn Tx, now: Timestamp) -> Result<(), Error> {
    void(tx, now)?;
    tx.execute("UPDATE tasks SET lost = 1 WHERE state = 'waiting'", &[])?;
    Ok(())
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
    catch_up(tx)?;
    while claimed.len() < limit {
        let room = u32::try_from(limit - claimed.len()).unwrap_or(u32::MAX);
        let shares = shares(tx, per_cluster, room, now)?;
        let due = due(tx, &shares, now)?;
        if due.is_empty() {
            break;
        }
        for row in for_each(tx, BEGIN, &[now.into(), worker.into(), until.into()], &due)? {
            claimed.push(begun(tx, row, worker, now)?);
        }
        let served: Vec<_> = shares
            .iter()
            .map(|(cluster, _)| (*cluster).into())
            .collect();
        compute(tx, &served)?;
    }
    Ok(claimed)
}

/// Begins tasks; nobody else has their lanes meanwhile. The state is looked at in a way that no
/// index serves: whatever a database believes of its tables, it goes by the numbers.
const BEGIN: &str =
    "UPDATE tasks SET state = 'running', attempts = attempts + 1, fence = fence + 1,
                       worker = $2, lease_until = $3, updated_at = $1
     WHERE seq IN ({}) AND CASE state WHEN 'waiting' THEN 1 ELSE 0 END = 1
     RETURNING format, body, attempts, lost, fence";

/// Which clusters are served next, and how many tasks each may begin.
fn shares(
    tx: &mut dyn Tx,
    per_cluster: u32,
    room: u32,
    now: Timestamp,
) -> Result<Vec<(ClusterId, u32)>, Error> {
    let most = room.min(LANES_MAX);
    let rows = tx.query(LEAST_BUSY, &[per_cluster.into(), now.into(), most.into()])?;
    let mut lanes = Vec::with_capacity(rows.len());
    for mut row in rows {
        lanes.push((row.take()?, row.take()?));
    }
    let all = u32::try_from(lanes.len()).is_ok_and(|found| found < most);
    // Lanes that were not looked at are at least as busy as the last that was.
    let level = match lanes.last() {
        Some((_, running)) if !all => per_cluster.min(*running + 1),
        Some(_) | None => per_cluster,
    };
    Ok(share(lanes, room, level))
}

/// Shares room among clusters, given with how many tasks they run: as if each task went to
/// whoever runs the fewest then, up to a level.
fn share(lanes: Vec<(ClusterId, u32)>, room: u32, level: u32) -> Vec<(ClusterId, u32)> {
    let needed = |level: u32| -> u64 {
        let missing = |(_, running): &(ClusterId, u32)| u64::from(level.saturating_sub(*running));
        lanes.iter().map(missing).sum()
    };
    // The highest level that all can be filled to; what is left over goes to the first.
    let (mut full, mut over) = (0, level);
    while full < over {
        let middle = full + (over - full).div_ceil(2);
        if needed(middle) <= u64::from(room) {
            full = middle;
        } else {
            over = middle - 1;
        }
    }
    let mut left = u64::from(room).saturating_sub(needed(full));
    let mut shares = Vec::with_capacity(lanes.len());
    for (cluster, running) in lanes {
        let mut share = full.saturating_sub(running);
        if left > 0 && running <= full && running + share < level {
            share += 1;
            left -= 1;
        }
        if share > 0 {
            shares.push((cluster, share));
        }
    }
    shares
}

/// The first tasks that are due in each of these clusters, by their numbers.
fn due(tx: &mut dyn Tx, shares: &[(ClusterId, u32)], now: Timestamp) -> Result<Vec<Value>, Error> {
    let sets: Vec<_> = shares
        .iter()
        .map(|(cluster, share)| vec![(*cluster).into(), now.into(), (*share).into()])
        .collect();
    let found = tx.queries(
        "SELECT seq FROM tasks WHERE cluster = $1 AND state = 'waiting' AND not_before <= $2
         ORDER BY not_before, seq LIMIT $3",
        &sets,
    )?;
    let rows = found.into_iter().flatten();
    rows.map(|mut row| row.take::<u64>().map(Value::from))
        .collect()
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
    }
    // Nothing else sets free what a machine holds.
    if *ended == Ended::Done && matches!(task.action.kind(), Kind::Delete | Kind::Release) {
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

/// Sees to the lanes that may have changed.
///
/// Where several write at once, only those who claim have lanes for themselves: the others say
/// which have changed, and wait for nobody.
pub(crate) fn refresh_all(tx: &mut dyn Tx) -> Result<(), Error> {
    let lanes = std::mem::take(&mut tx.outbox().lanes);
    let lanes: Vec<Value> = lanes.into_iter().map(Value::from).collect();
    if tx.is_alone() {
        return compute(tx, &lanes);
    }
    let rows: Vec<_> = lanes.into_iter().map(|lane| vec![lane]).collect();
    insert(tx, "lane_changes (cluster)", &rows, "")?;
    Ok(())
}

/// Computes anew what others, and this transaction so far, have said to be changed.
fn catch_up(tx: &mut dyn Tx) -> Result<(), Error> {
    refresh_all(tx)?;
    if tx.is_alone() {
        return Ok(());
    }
    let rows = tx.query(
        "DELETE FROM lane_changes
         WHERE id IN (SELECT id FROM lane_changes ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING cluster",
        &[CHANGES_MAX.into()],
    )?;
    let changed = rows
        .into_iter()
        .map(|mut row| row.take())
        .collect::<Result<BTreeSet<ClusterId>, _>>()?;
    let changed: Vec<Value> = changed.into_iter().map(Value::from).collect();
    compute(tx, &changed)
}

/// Recomputes how busy clusters are and when their next tasks are due.
fn compute(tx: &mut dyn Tx, lanes: &[Value]) -> Result<(), Error> {
    // Who counts must have the lane first: otherwise what somebody else is about to commit
    // would be missing from the count that is written after it.
    let sql = "SELECT 1 FROM lanes WHERE cluster IN ({}) ORDER BY cluster FOR UPDATE";
    if for_each(tx, sql, &[], lanes)?.len() < lanes.len() {
        for_each(
            tx,
            "INSERT INTO lanes (cluster, running)
             SELECT id, 0 FROM clusters WHERE phase <> 'gone' AND id IN ({})
             ON CONFLICT (cluster) DO NOTHING",
            &[],
            lanes,
        )?;
    }
    for_each(
        tx,
        "UPDATE lanes SET
             running = (SELECT COUNT(*) FROM tasks WHERE tasks.cluster = lanes.cluster AND state = 'running'),
             due = (SELECT MIN(not_before) FROM tasks WHERE tasks.cluster = lanes.cluster AND state = 'waiting')
         WHERE cluster IN ({})",
        &[],
        lanes,
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

    /// Shares as the plain rule would: each task to whoever runs the fewest, first come first.
    fn one_by_one(
        mut lanes: Vec<(ClusterId, u32)>,
        room: u32,
        level: u32,
    ) -> Vec<(ClusterId, u32)> {
        let before = lanes.clone();
        for _ in 0..room {
            let next = lanes.iter_mut().filter(|(_, running)| *running < level);
            let Some((_, running)) = next.min_by_key(|(_, running)| *running) else {
                break;
            };
            *running += 1;
        }
        let given = lanes
            .iter()
            .zip(before)
            .map(|(after, before)| (after.0, after.1 - before.1));
        given.filter(|(_, share)| *share > 0).collect()
    }

    #[test]
    fn room_is_shared_as_if_task_by_task() {
        let id = |ordinal| {
            ClusterId::derive(model::id::Origin {
                parent: "p",
                name: "c",
                ordinal,
                incarnation: 0,
            })
        };
        for (running, room, level) in [
            (vec![0, 0, 0], 7, 256),
            (vec![0, 1, 5], 3, 256),
            (vec![0, 1, 5], 100, 6),
            (vec![2, 2, 3], 1, 4),
            (vec![4], 256, 256),
            (vec![], 5, 5),
            (vec![0, 0, 0, 0], 2, 1),
        ] {
            let lanes: Vec<_> = (0_u64..).map(id).zip(running.clone()).collect();
            assert_eq!(
                share(lanes.clone(), room, level),
                one_by_one(lanes, room, level),
                "{running:?}, room {room}, level {level}"
            );
        }
    }

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
