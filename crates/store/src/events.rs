//! What happened, one sentence each, in the order in which it became true.
//!
//! An event says "look"; it carries nothing that could not be read elsewhere.

use crate::Store;
use crate::body::{Tx, first, insert};
use crate::error::Error;
use model::name::Name;
use model::time::Timestamp;
use tokio::sync::watch;

/// Events per answer at most.
const LIMIT_MAX: u32 = 1000;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Grows with every event; a reader resumes after the last one it has seen.
    pub id: u64,
    /// When.
    pub at: Timestamp,
    /// Whose.
    pub project: Name,
    /// What kind of thing: `manifest.submitted`, `task.done`.
    pub kind: String,
    /// What it happened to: `cluster/hello`, `task/task-…`.
    pub object: String,
    /// What happened, as a sentence.
    pub message: String,
}

impl Store {
    /// Events after the one with that id, oldest first, of one project or of all.
    pub async fn events(
        &self,
        project: Option<&Name>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, Error> {
        let project = project.cloned();
        let limit = limit.clamp(1, LIMIT_MAX);
        self.runner
            .read(move |tx| read(tx, project.as_ref(), after, limit))
            .await
    }

    /// Follows the id of the newest event; it changes after each commit that wrote one.
    ///
    /// A level, not an edge: whoever looks late sees the newest id and misses nothing.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.runner.subscribe()
    }
}

const COLUMNS: &str = "SELECT id, at, project, kind, object, message FROM events";

fn read(
    tx: &mut dyn Tx,
    project: Option<&Name>,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, Error> {
    let rows = match project {
        Some(project) => tx.query(
            &format!("{COLUMNS} WHERE project = $1 AND id > $2 ORDER BY id LIMIT $3"),
            &[project.into(), after.into(), limit.into()],
        )?,
        None => tx.query(
            &format!("{COLUMNS} WHERE id > $1 ORDER BY id LIMIT $2"),
            &[after.into(), limit.into()],
        )?,
    };
    rows.into_iter()
        .map(|mut row| {
            Ok(Event {
                id: row.take()?,
                at: row.take()?,
                project: row.take()?,
                kind: row.take()?,
                object: row.take()?,
                message: row.take()?,
            })
        })
        .collect()
}

/// One thing that happened, before it has its number.
#[derive(Debug)]
pub(crate) struct Noted {
    at: Timestamp,
    project: Name,
    kind: &'static str,
    object: String,
    message: String,
}

/// Remembers one event; it gets its number with the commit.
pub(crate) fn note(
    tx: &mut dyn Tx,
    (project, at): (&Name, Timestamp),
    kind: &'static str,
    object: String,
    message: String,
) {
    let project = project.clone();
    tx.outbox().events.push(Noted {
        at,
        project,
        kind,
        object,
        message,
    });
}

/// Writes events in the order in which they happened; answers the number of the newest.
pub(crate) fn append(tx: &mut dyn Tx, events: Vec<Noted>) -> Result<u64, Error> {
    if events.is_empty() {
        return Ok(0);
    }
    let rows: Vec<_> = events
        .into_iter()
        .map(|event| {
            vec![
                event.at.into(),
                (&event.project).into(),
                event.kind.into(),
                event.object.into(),
                event.message.into(),
            ]
        })
        .collect();
    insert(tx, "events (at, project, kind, object, message)", &rows, "")?;
    newest(tx)
}

/// The number of the newest event; zero when there is none.
pub(crate) fn newest(tx: &mut dyn Tx) -> Result<u64, Error> {
    let newest = first(tx, "SELECT MAX(id) FROM events", &[])?;
    let newest = newest
        .map(|mut row| row.take::<Option<u64>>())
        .transpose()?;
    Ok(newest.flatten().unwrap_or(0))
}

/// `1 task`, `2 tasks`.
pub(crate) fn count_of(count: usize, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}
