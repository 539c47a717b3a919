//! Retention: what nobody will ask for any more is cleared away, a little at a time.

use crate::Store;
use crate::body::{Row, Scope, Tx, Value};
use crate::error::Error;
use crate::{environments, paces};
use model::time::Timestamp;
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

/// Events are for following and for looking back over a week.
const EVENTS_KEPT: Duration = DAY.saturating_mul(7);

/// Changes of observations explain what events only mention, for as long.
const CHANGES_KEPT: Duration = DAY.saturating_mul(7);

/// Logs of tasks: the largest part, and read while the trouble is fresh.
const LOGS_KEPT: Duration = DAY.saturating_mul(14);

/// Finished tasks: last month's trouble is still somebody's question.
const TASKS_KEPT: Duration = DAY.saturating_mul(30);

/// Wishes that ended, as long as the tasks they led to.
const INTENTS_KEPT: Duration = DAY.saturating_mul(30);

/// A journey older than this describes another world.
const JOURNEYS_KEPT: Duration = DAY;

/// Nobody repeats a request a day later.
const KEYS_KEPT: Duration = DAY;

/// Rows of one kind per sweep, so that no writer waits long for it.
const ROWS_MAX: u32 = 10_000;

/// How many rows a sweep cleared away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Events.
    pub events: usize,
    /// Changes of observations.
    pub changes: usize,
    /// Finished tasks.
    pub tasks: usize,
    /// Logs of tasks.
    pub logs: usize,
    /// Wishes that ended.
    pub intents: usize,
    /// Journeys.
    pub journeys: usize,
    /// Idempotency keys.
    pub keys: usize,
    /// How long tasks took.
    pub paces: usize,
    /// What actions at environments printed.
    pub outputs: usize,
    /// Actions at environments that ended.
    pub actions: usize,
    /// Messages to somebody outside that ended.
    pub deliveries: usize,
    /// Whether there was more than one sweep clears away.
    pub more: bool,
}

impl Store {
    /// Clears away what is older than it is kept.
    pub async fn sweep(&self, now: Timestamp) -> Result<Swept, Error> {
        self.runner
            .write(Scope::Rows, move |tx| sweep(tx, now))
            .await
    }
}

fn sweep(tx: &mut dyn Tx, now: Timestamp) -> Result<Swept, Error> {
    let params = |kept: Duration| {
        let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
        [
            Value::Int(now.as_millis().saturating_sub(kept)),
            ROWS_MAX.into(),
        ]
    };
    // Ids grow with time, so the oldest rows tell without an index on age.
    let events = tx.execute(
        "DELETE FROM events WHERE id IN (SELECT id FROM (SELECT id, at FROM events ORDER BY id LIMIT $2) AS oldest
                                         WHERE at < $1)",
        &params(EVENTS_KEPT),
    )?;
    let changes = tx.execute(
        "DELETE FROM observation_changes WHERE id IN (
             SELECT id FROM (SELECT id, at FROM observation_changes ORDER BY id LIMIT $2) AS oldest WHERE at < $1)",
        &params(CHANGES_KEPT),
    )?;
    let tasks = sweep_tasks(tx, &params(TASKS_KEPT))?;
    let logs = tx.query(
        "SELECT task FROM task_log_lengths WHERE at < $1 ORDER BY at LIMIT $2",
        &params(LOGS_KEPT),
    )?;
    let logs = forget_logs(tx, logs)?;
    let intents = tx.execute(
        "DELETE FROM intents WHERE seq IN (SELECT seq FROM intents WHERE open = 0 AND updated_at < $1 LIMIT $2)",
        &params(INTENTS_KEPT),
    )?;
    let journeys = tx.execute(
        "DELETE FROM journeys WHERE (project, id) IN (SELECT project, id FROM journeys WHERE at < $1 LIMIT $2)",
        &params(JOURNEYS_KEPT),
    )?;
    let keys = tx.execute(
        "DELETE FROM idempotency_keys WHERE (project, idempotency_key) IN (
             SELECT project, idempotency_key FROM idempotency_keys WHERE at < $1 LIMIT $2)",
        &params(KEYS_KEPT),
    )?;
    let paces = paces::sweep(tx, ROWS_MAX)?;
    let (outputs, actions) = environments::sweep(tx, &params(LOGS_KEPT), &params(TASKS_KEPT))?;
    let deliveries = environments::sweep_deliveries(tx, &params(LOGS_KEPT))?;
    let full = usize::try_from(ROWS_MAX).unwrap_or(usize::MAX);
    let more = [
        events, changes, tasks, logs, intents, journeys, keys, paces, outputs, actions, deliveries,
    ]
    .iter()
    .any(|rows| *rows >= full);
    Ok(Swept {
        events,
        changes,
        tasks,
        logs,
        intents,
        journeys,
        keys,
        paces,
        outputs,
        actions,
        deliveries,
        more,
    })
}

fn sweep_tasks(tx: &mut dyn Tx, params: &[Value]) -> Result<usize, Error> {
    let rows = tx.query(
        "DELETE FROM tasks WHERE seq IN (
             SELECT seq FROM tasks WHERE state IN ('done', 'withdrawn') AND updated_at < $1 LIMIT $2)
         RETURNING id",
        params,
    )?;
    forget_logs(tx, rows)
}

/// Clears away the logs of these tasks; answers how many there are.
fn forget_logs(tx: &mut dyn Tx, tasks: Vec<Row>) -> Result<usize, Error> {
    let tasks = tasks
        .into_iter()
        .map(|mut row| Ok(vec![row.take::<String>()?.into()]))
        .collect::<Result<Vec<_>, Error>>()?;
    tx.batch("DELETE FROM task_logs WHERE task = $1", &tasks)?;
    tx.batch("DELETE FROM task_log_lengths WHERE task = $1", &tasks)?;
    Ok(tasks.len())
}
