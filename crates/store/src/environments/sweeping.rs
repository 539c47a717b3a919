//! Retention: what actions printed, and in the end the actions themselves.

use super::following;
use crate::body::{Tx, Value};
use crate::error::Error;

/// Clears away what actions printed before a point in time, and actions that ended before another;
/// at most so many of each. Answers how many. The newest action of an environment that is there
/// stays, and the newest that was begun: it says with what it was made. What was taken over has its
/// time from then on.
pub(crate) fn sweep(
    tx: &mut dyn Tx,
    output: &[Value],
    actions: &[Value],
) -> Result<(usize, usize), Error> {
    let rows = tx.query(
        "SELECT action FROM environment_output_lengths WHERE at < $1 AND action NOT IN (
             SELECT id FROM environment_actions WHERE state IN ('waiting', 'running'))
         ORDER BY at LIMIT $2",
        output,
    )?;
    let outputs = forget(tx, rows)?;
    let rows = tx.query(
        "DELETE FROM environment_actions WHERE seq IN (
             SELECT seq FROM environment_actions a WHERE ended_at < $1 AND not_before < $1 AND (
                 EXISTS (SELECT 1 FROM environment_actions newer
                         WHERE newer.environment = a.environment AND newer.seq > a.seq
                         AND (newer.begun_at IS NOT NULL OR a.begun_at IS NULL))
                 OR EXISTS (SELECT 1 FROM environments e WHERE e.id = a.environment AND e.gone = 1))
             ORDER BY ended_at LIMIT $2)
         RETURNING id",
        actions,
    )?;
    let swept = forget(tx, rows)?;
    tx.execute(
        "DELETE FROM environment_changes WHERE id IN (
             SELECT c.id FROM environment_changes c JOIN environments e ON e.id = c.environment
             WHERE e.gone = 1 AND c.at < $1 LIMIT $2)",
        actions,
    )?;
    following::sweep(tx, actions)?;
    Ok((outputs, swept))
}

/// Messages that have ended and are kept, at most, however young they are.
const ENDED_MAX: u32 = 100_000;

/// Clears away messages that ended before a point in time, and the oldest where there are very many.
pub(crate) fn sweep_deliveries(tx: &mut dyn Tx, ended: &[Value]) -> Result<usize, Error> {
    let swept = tx.execute(
        "DELETE FROM environment_deliveries WHERE seq IN (
             SELECT seq FROM environment_deliveries WHERE ended_at < $1 ORDER BY ended_at LIMIT $2)",
        ended,
    )?;
    let rows = ended.last().cloned().unwrap_or(Value::Int(0));
    let more = tx.execute(
        "DELETE FROM environment_deliveries WHERE seq IN (
             SELECT seq FROM environment_deliveries WHERE ended_at IS NOT NULL
             ORDER BY ended_at DESC LIMIT $2 OFFSET $1)",
        &[ENDED_MAX.into(), rows],
    )?;
    Ok(swept + more)
}

/// Clears away what these actions printed; answers how many there are.
fn forget(tx: &mut dyn Tx, actions: Vec<crate::body::Row>) -> Result<usize, Error> {
    let actions = actions
        .into_iter()
        .map(|mut row| Ok(vec![row.take::<String>()?.into()]))
        .collect::<Result<Vec<_>, Error>>()?;
    for sql in [
        "DELETE FROM environment_output WHERE action = $1",
        "DELETE FROM environment_output_lengths WHERE action = $1",
    ] {
        tx.batch(sql, &actions)?;
    }
    Ok(actions.len())
}
