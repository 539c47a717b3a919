//! Who did what, from where, and what it changed: a chain that shows when it was touched.
//!
//! The rule that links entries is `model::audit`. Entries are written in the transaction of
//! the change they tell of: there is no change without its entry, and no entry of a change
//! that did not happen.

use crate::Store;
use crate::body::{Row, Scope, Tx, Value, first};
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use model::audit::{Audited, BEGINNING, Verified, Walk};
use model::name::Name;
use model::time::Timestamp;

/// Entries that are verified per question, so that no reader is kept for long.
const VERIFIED_AT_ONCE: u32 = 1_000;

/// Who asks for something, and from where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Actor {
    /// What they are called: the name of a token, a worker.
    pub name: String,
    /// Where they ask from: an address, a task.
    pub origin: String,
}

impl Actor {
    /// Somebody, somewhere.
    pub fn new(name: impl Into<String>, origin: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            origin: origin.into(),
        }
    }
}

impl From<&str> for Actor {
    /// Somebody of whom only the name is known.
    fn from(name: &str) -> Self {
        Self::new(name, "")
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// What somebody did, before it has its place in the chain.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) at: Timestamp,
    pub(crate) project: Option<Name>,
    pub(crate) actor: Actor,
    pub(crate) action: &'static str,
    pub(crate) object: String,
    /// The generation before and after, where the object has any.
    pub(crate) generations: (Option<u64>, Option<u64>),
    pub(crate) detail: String,
}

/// Remembers what somebody did; it gets its place in the chain with the commit.
pub(crate) fn enter(tx: &mut dyn Tx, entry: Entry) {
    tx.outbox().audit.push(entry);
}

/// Appends entries to the chain.
pub(crate) fn append(tx: &mut dyn Tx, entries: Vec<Entry>) -> Result<(), Error> {
    if entries.is_empty() {
        return Ok(());
    }
    let last = first(
        tx,
        "SELECT seq, digest FROM audit ORDER BY seq DESC LIMIT 1",
        &[],
    )?;
    let (mut seq, mut previous) = match last {
        Some(mut row) => (row.take()?, row.take()?),
        None => (0_u64, BEGINNING.to_owned()),
    };
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        seq += 1;
        let mut audited = Audited {
            seq,
            at: entry.at,
            project: entry.project.map(String::from),
            actor: kept(entry.actor.name),
            origin: kept(entry.actor.origin),
            action: entry.action.to_owned(),
            object: kept(entry.object),
            was: entry.generations.0,
            became: entry.generations.1,
            detail: kept(entry.detail),
            previous: previous.clone(),
            digest: String::new(),
        };
        audited.digest = audited.computed();
        previous.clone_from(&audited.digest);
        rows.push(columns(audited));
    }
    tx.batch(
        "INSERT INTO audit (seq, at, project, actor, origin, action, object, was, became, detail, previous, digest)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        &rows,
    )?;
    Ok(())
}

/// A text as every body keeps it: the digest must be of what will be read again.
pub(crate) fn kept(text: String) -> String {
    crate::logs::shortened(text).replace('\0', "\u{fffd}")
}

fn columns(entry: Audited) -> Vec<Value> {
    vec![
        entry.seq.into(),
        entry.at.into(),
        entry.project.into(),
        entry.actor.into(),
        entry.origin.into(),
        entry.action.into(),
        entry.object.into(),
        entry.was.into(),
        entry.became.into(),
        entry.detail.into(),
        entry.previous.into(),
        entry.digest.into(),
    ]
}

fn read(mut row: Row) -> Result<Audited, Error> {
    let seq = row.take()?;
    read_at(seq, row)
}

fn read_at(seq: u64, mut row: Row) -> Result<Audited, Error> {
    Ok(Audited {
        seq,
        at: row.take()?,
        project: row.take()?,
        actor: row.take()?,
        origin: row.take()?,
        action: row.take()?,
        object: row.take()?,
        was: row.take()?,
        became: row.take()?,
        detail: row.take()?,
        previous: row.take()?,
        digest: row.take()?,
    })
}

const COLUMNS: &str =
    "SELECT seq, at, project, actor, origin, action, object, was, became, detail, previous, digest
     FROM audit";

impl Store {
    /// Enters what somebody did that changes nothing here, and so has no transaction of its own
    /// to be entered in.
    pub async fn enter_audit(
        &self,
        project: Option<Name>,
        actor: Actor,
        action: &'static str,
        (object, detail): (&str, &str),
        now: Timestamp,
    ) -> Result<(), Error> {
        let entry = Entry {
            at: now,
            project,
            actor,
            action,
            object: object.to_owned(),
            generations: (None, None),
            detail: detail.to_owned(),
        };
        let question = move |tx: &mut dyn Tx| {
            enter(tx, entry.clone());
            Ok(())
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Entries of the chain, newest first, of one project or of all.
    pub async fn audit(
        &self,
        project: Option<&Name>,
        page: Page,
    ) -> Result<Listed<Audited>, Error> {
        let project = project.cloned();
        self.runner
            .read(move |tx| list(tx, project.as_ref(), &page))
            .await
    }

    /// Entries of the whole chain after that place, oldest first.
    pub async fn audit_after(&self, seq: u64, limit: u32) -> Result<Vec<Audited>, Error> {
        self.runner.read(move |tx| after(tx, seq, limit)).await
    }

    /// Walks along the whole chain and names the first entry that is not as it was written.
    pub async fn verify_audit(&self) -> Result<Verified, Error> {
        let mut walk = Walk::default();
        let mut seen = 0;
        loop {
            let entries: Vec<_> = self.runner.read(move |tx| judgeable(tx, seen)).await?;
            let Some((last, _)) = entries.last() else {
                return Ok(walk.end());
            };
            seen = *last;
            for (seq, entry) in &entries {
                let goes_on = entry.as_ref().is_some_and(|entry| walk.step(entry));
                if entry.is_none() {
                    walk.refuse(*seq, "it was changed to what no entry can be");
                }
                if !goes_on {
                    return Ok(walk.end());
                }
            }
        }
    }
}

fn after(tx: &mut dyn Tx, seq: u64, limit: u32) -> Result<Vec<Audited>, Error> {
    let rows = tx.query(
        &format!("{COLUMNS} WHERE seq > $1 ORDER BY seq LIMIT $2"),
        &[seq.into(), limit.into()],
    )?;
    rows.into_iter().map(read).collect()
}

/// Entries after that place, each where it can be read: one that cannot is found out, too.
fn judgeable(tx: &mut dyn Tx, seq: u64) -> Result<Vec<(u64, Option<Audited>)>, Error> {
    let rows = tx.query(
        &format!("{COLUMNS} WHERE seq > $1 ORDER BY seq LIMIT $2"),
        &[seq.into(), VERIFIED_AT_ONCE.into()],
    )?;
    let entry = |mut row: Row| {
        let seq = row.take()?;
        Ok((seq, read_at(seq, row).ok()))
    };
    rows.into_iter().map(entry).collect()
}

fn list(tx: &mut dyn Tx, project: Option<&Name>, page: &Page) -> Result<Listed<Audited>, Error> {
    let before = page.after_number("audit", u64::MAX)?;
    let rows = match project {
        Some(project) => tx.query(
            &format!("{COLUMNS} WHERE project = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3"),
            &[project.into(), before.into(), page.rows().into()],
        )?,
        None => tx.query(
            &format!("{COLUMNS} WHERE seq < $1 ORDER BY seq DESC LIMIT $2"),
            &[before.into(), page.rows().into()],
        )?,
    };
    let entries = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(page.cut(entries, |entry| cursor("audit", &[&entry.seq])))
}
