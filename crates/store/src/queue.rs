//! The queue: who works on what, until when, and how it ended.
//!
//! A claim is a lease with a fence. Ending an attempt consumes the claim, and the row is
//! changed only if it still bears the claim's fence: a worker that was given up for dead
//! cannot overwrite what its successor recorded.

mod claiming;
mod lanes;
mod recording;

use crate::Store;
use crate::body::{Row, Scope, Tx, first};
use crate::error::Error;
use crate::events::note;
use crate::{clusters, wish};
pub(crate) use lanes::{refresh, refresh_all};
use model::id::{ClusterId, TaskId};
use model::task::{OnLost, State, Task};
use model::time::Timestamp;
pub use recording::{Ended, RecordError, Recorded};
use std::collections::BTreeSet;
use std::time::Duration;

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
    begun: Timestamp,
}

impl Claim {
    /// Grows with every claim of the task; for systems that can compare it too.
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// When the attempt began.
    pub(crate) const fn begun(&self) -> Timestamp {
        self.begun
    }

    /// The same claim, for one that was refused and is made again.
    fn again(&self) -> Self {
        Self {
            task: self.task.clone(),
            attempt: self.attempt,
            lost: self.lost,
            fence: self.fence,
            worker: self.worker.clone(),
            begun: self.begun,
        }
    }
}

impl Store {
    /// Ends leases and wishes that ran out; answers which clusters that concerns.
    ///
    /// A task whose worker fell silent waits again, or for a person where its kind asks
    /// for one, and remembers that an attempt was lost.
    pub async fn expire(&self, now: Timestamp) -> Result<Vec<ClusterId>, Error> {
        let question = move |tx: &mut dyn Tx| {
            let rows = tx.query(
                "SELECT id, cluster, format, body FROM tasks WHERE state = 'running' AND lease_until <= $1 ORDER BY seq",
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
    pub async fn next_end(&self) -> Result<Option<Timestamp>, Error> {
        self.runner.read(end).await
    }
}

/// Ends every lease; answers how many there were.
fn void(tx: &mut dyn Tx, now: Timestamp) -> Result<u32, Error> {
    let rows = tx.query(
        "SELECT id, cluster, format, body FROM tasks WHERE state = 'running' ORDER BY seq",
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

/// Gives up on the attempts at these tasks.
fn lose(tx: &mut dyn Tx, rows: Vec<Row>, now: Timestamp) -> Result<BTreeSet<ClusterId>, Error> {
    let mut clusters = BTreeSet::new();
    for mut row in rows {
        let (id, cluster): (TaskId, ClusterId) = (row.take()?, row.take()?);
        let task: Task = match row.document() {
            Err(error) if error.is_unreadable() => {
                set_aside(tx, id, &error, now)?;
                clusters.insert(cluster);
                continue;
            }
            read => read?,
        };
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

/// How long a task that this program cannot read is left alone.
const ASIDE_FOR: Duration = Duration::from_mins(10);

/// Lets a task wait that another version of the program wrote, and says so: those of others go on.
fn set_aside(tx: &mut dyn Tx, task: TaskId, error: &Error, now: Timestamp) -> Result<(), Error> {
    let told = format!("{error} ({}); {}", error.code(), error.hint());
    tracing::error!(%task, error.code = error.code(), "{task} is set aside: {told}");
    tx.execute(
        "UPDATE tasks SET state = 'waiting', not_before = $2, error = $3, lost = 1,
                          lease_until = NULL, worker = NULL, updated_at = $4 WHERE id = $1",
        &[
            task.into(),
            now.plus(ASIDE_FOR).into(),
            told.into(),
            now.into(),
        ],
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
