//! What waits, counted for those who watch over the whole.

use crate::Store;
use crate::body::{Tx, first};
use crate::error::Error;
use model::time::Timestamp;
use plan::Held;
use std::collections::BTreeMap;

/// What waits, and for what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Tasks that could be under way and that no worker has claimed.
    pub due: u64,
    /// Machines whose next step is held, by the word of the reason.
    pub held: BTreeMap<&'static str, u64>,
}

impl Store {
    /// Counts what waits now.
    pub async fn backlog(&self, now: Timestamp) -> Result<Backlog, Error> {
        self.runner.read(move |tx| backlog(tx, now)).await
    }
}

fn backlog(tx: &mut dyn Tx, now: Timestamp) -> Result<Backlog, Error> {
    let mut backlog = Backlog::default();
    let due = "SELECT COUNT(*) FROM tasks WHERE state = 'waiting' AND not_before <= $1";
    if let Some(mut row) = first(tx, due, &[now.into()])? {
        backlog.due = row.take()?;
    }
    // Most clusters hold nothing, and are not read.
    let holding = "SELECT format, held FROM clusters WHERE phase <> 'gone' AND held <> '[]'";
    for mut row in tx.query(holding, &[])? {
        let held = row.readable::<Vec<Held>>()?.unwrap_or_default();
        for held in held {
            *backlog.held.entry(held.reason.word()).or_default() += u64::from(held.machines);
        }
    }
    Ok(backlog)
}
