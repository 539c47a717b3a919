//! How long tasks took, so that plans can say how long the next ones will take.

use crate::Store;
use crate::body::{Tx, Value};
use crate::error::Error;
use crate::queue::Claim;
use model::task::Kind;
use model::time::Timestamp;
use plan::Paces;
use std::collections::BTreeSet;
use std::time::Duration;

/// Of each kind the newest are kept: machines and networks change, and last year's pace is not
/// today's.
const KEPT: u32 = 50;

/// Kinds of which one sweep clears away what is too old.
const KINDS_MAX: u32 = 1_000;

impl Store {
    /// What was learnt of tasks, by whose machines they were done to and what was done: see
    /// [`Paces::asked`].
    pub async fn paces(&self, asked: BTreeSet<(&'static str, Kind)>) -> Result<Paces, Error> {
        self.runner.read(move |tx| paces(tx, &asked)).await
    }
}

fn paces(tx: &mut dyn Tx, asked: &BTreeSet<(&'static str, Kind)>) -> Result<Paces, Error> {
    let sets: Vec<Vec<Value>> = asked
        .iter()
        .map(|(whose, kind)| vec![(*whose).into(), kind.as_str().into(), KEPT.into()])
        .collect();
    let answers = tx.queries(
        "SELECT millis FROM paces WHERE whose = $1 AND kind = $2 ORDER BY id DESC LIMIT $3",
        &sets,
    )?;
    let mut paces = Paces::default();
    for ((whose, kind), rows) in asked.iter().zip(answers) {
        let took = rows
            .into_iter()
            .map(|mut row| row.take().map(Duration::from_millis))
            .collect::<Result<Vec<_>, Error>>()?;
        paces.learn(whose, *kind, took);
    }
    Ok(paces)
}

/// Notes how long the attempt took that did it.
pub(crate) fn note(tx: &mut dyn Tx, claim: &Claim, now: Timestamp) -> Result<(), Error> {
    let kind = claim.task.action.kind();
    let took = now.since(claim.begun()).as_millis();
    tx.execute(
        "INSERT INTO paces (whose, kind, millis) VALUES ($1, $2, $3)",
        &[
            Paces::whose(&claim.task.machine, kind).into(),
            kind.as_str().into(),
            u64::try_from(took).unwrap_or(u64::MAX).into(),
        ],
    )?;
    Ok(())
}

/// Clears away all but the newest of each kind; answers how many rows.
pub(crate) fn sweep(tx: &mut dyn Tx, rows_max: u32) -> Result<usize, Error> {
    let kinds = tx.query(
        "SELECT whose, kind FROM paces GROUP BY whose, kind HAVING COUNT(*) > $1 LIMIT $2",
        &[KEPT.into(), KINDS_MAX.into()],
    )?;
    let mut swept = 0;
    for mut row in kinds {
        let (whose, kind): (String, String) = (row.take()?, row.take()?);
        swept += tx.execute(
            "DELETE FROM paces WHERE id IN (
                 SELECT id FROM paces WHERE whose = $1 AND kind = $2 AND id <= (
                     SELECT id FROM paces WHERE whose = $1 AND kind = $2 ORDER BY id DESC LIMIT 1 OFFSET $3)
                 ORDER BY id LIMIT $4)",
            &[whose.into(), kind.into(), KEPT.into(), rows_max.into()],
        )?;
    }
    Ok(swept)
}
