//! Who gets which task, and for how long.

use super::lanes::{catch_up, compute, due, shares};
use super::{Claim, object, set_aside, title};
use crate::Store;
use crate::body::{Row, Scope, Tx, for_each};
use crate::error::Error;
use crate::events::note;
use model::id::TaskId;
use model::task::Task;
use model::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

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
            claimed.extend(begun(tx, row, worker, now)?);
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
     RETURNING id, format, body, attempts, lost, fence";

fn begun(
    tx: &mut dyn Tx,
    mut row: Row,
    worker: &str,
    now: Timestamp,
) -> Result<Option<Claim>, Error> {
    let id: TaskId = row.take()?;
    let task: Task = match row.document() {
        Err(error) if error.is_unreadable() => {
            set_aside(tx, id, &error, now)?;
            return Ok(None);
        }
        read => read?,
    };
    let (attempt, lost, fence) = (row.take()?, row.take()?, row.take()?);
    let message = format!("{}, attempt {attempt}", title(&task));
    note(
        tx,
        (&task.project, now),
        "task.started",
        object(task.id),
        message,
    );
    Ok(Some(Claim {
        task,
        attempt,
        lost,
        fence,
        worker: worker.to_owned(),
        begun: now,
    }))
}
