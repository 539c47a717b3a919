//! The rows of wishes: open until they are fulfilled, withdrawn or over.

use crate::Store;
use crate::body::{FORMAT, Row, Tx, encode, first, for_each};
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use crate::queue::title;
use crate::submit::Preview;
use model::cluster::Desired;
use model::id::{ClusterId, IntentId, MachineId, TaskId};
use model::intent::{Intent, Wish};
use model::manifest::{Manifest, Pool};
use model::name::Name;
use model::task::{Kind, Task};
use model::time::Timestamp;

impl Store {
    /// Wishes of a project that are neither fulfilled nor withdrawn, oldest first.
    pub async fn intents(&self, project: &Name, page: Page) -> Result<Listed<Intent>, Error> {
        let project = project.clone();
        self.runner.read(move |tx| list(tx, &project, &page)).await
    }
}

fn list(tx: &mut dyn Tx, project: &Name, page: &Page) -> Result<Listed<Intent>, Error> {
    let after = page.after_number("intents", 0)?;
    let rows = tx.query(
        "SELECT seq, format, body FROM intents WHERE project = $1 AND seq > $2 AND open = 1
         ORDER BY seq LIMIT $3",
        &[project.into(), after.into(), page.rows().into()],
    )?;
    // One that cannot be read keeps nobody from the others; its cluster says so.
    let read = |mut row: Row| Ok((row.take::<u64>()?, row.readable::<Intent>()?));
    let rows: Vec<_> = rows.into_iter().map(read).collect::<Result<_, Error>>()?;
    let Listed { items, next } = page.cut(rows, |(seq, _)| cursor("intents", &[seq]));
    Ok(Listed {
        items: items.into_iter().filter_map(|(_, intent)| intent).collect(),
        next,
    })
}

impl Store {
    /// What wishes are about, in the words that people use: machines by their names, tasks by what they do
    /// to which machine. Nothing where the wish says so itself, or nobody knows any more.
    pub async fn wishes_are_about(&self, wishes: Vec<Wish>) -> Result<Vec<Option<String>>, Error> {
        let question = move |tx: &mut dyn Tx| {
            let wishes = wishes.iter();
            wishes.map(|wish| about(tx, wish)).collect()
        };
        self.runner.read(question).await
    }
}

/// What a wish is about, where that is a machine or a task.
pub(crate) fn about(tx: &mut dyn Tx, wish: &Wish) -> Result<Option<String>, Error> {
    match wish {
        Wish::Replace { machine } | Wish::Retire { machine } => {
            let sql = "SELECT name FROM machines WHERE id = $1";
            let found = first(tx, sql, &[(*machine).into()])?;
            found.map(|mut row| row.take()).transpose()
        }
        Wish::Retry { task } | Wish::Cancel { task, .. } => {
            let sql = "SELECT format, body FROM tasks WHERE id = $1";
            let found = first(tx, sql, &[(*task).into()])?;
            let task = found.map(|mut row| row.readable::<Task>()).transpose()?;
            Ok(task.flatten().map(|task| title(&task)))
        }
        Wish::Scale { .. }
        | Wish::Pause
        | Wish::Snapshot
        | Wish::Restore { .. }
        | Wish::Update { .. } => Ok(None),
    }
}

/// Stores a new wish.
pub(crate) fn insert(tx: &mut dyn Tx, cluster: ClusterId, intent: &Intent) -> Result<(), Error> {
    let (task, machine) = match &intent.wish {
        Wish::Retry { task } => (Some(*task), None),
        Wish::Cancel { task, machine, .. } => (Some(*task), Some(*machine)),
        Wish::Replace { machine } | Wish::Retire { machine } => (None, Some(*machine)),
        Wish::Scale { .. }
        | Wish::Pause
        | Wish::Snapshot
        | Wish::Restore { .. }
        | Wish::Update { .. } => (None, None),
    };
    tx.execute(
        "INSERT INTO intents (id, project, cluster, task, machine, open, expires_at, updated_at, format, body)
         VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9)",
        &[
            intent.id.into(),
            (&intent.project).into(),
            cluster.into(),
            task.into(),
            machine.into(),
            intent.expires_at.into(),
            intent.created_at.into(),
            FORMAT.into(),
            encode(intent)?,
        ],
    )?;
    Ok(())
}

/// Ends wishes for another size of pools whose declared size has changed.
pub(crate) fn end_outdated_scales(
    tx: &mut dyn Tx,
    manifest: &Manifest,
    previews: &[Preview],
    now: Timestamp,
) -> Result<(), Error> {
    for intent in previews.iter().flat_map(|preview| &preview.known.intents) {
        let Wish::Scale { pool, was, .. } = &intent.wish else {
            continue;
        };
        let same = match manifest.pools.get(pool) {
            Some(Pool::Dynamic(pool)) => pool.declared() == *was,
            Some(Pool::Static(_) | Pool::Metal(_)) | None => false,
        };
        if !same {
            end(tx, intent.id, now)?;
        }
    }
    Ok(())
}

/// Ends wishes for newer modules of pools whose machines that stay are all made from them or on their
/// way, or of which none could be any more. What is noted goes on without the wish.
pub(crate) fn end_fulfilled_updates(
    tx: &mut dyn Tx,
    next: &Desired,
    intents: &[Intent],
    now: Timestamp,
) -> Result<(), Error> {
    for intent in intents {
        let Wish::Update { pool, commit } = &intent.wish else {
            continue;
        };
        let mut machines = next.machines.iter().filter(|of| of.pool == *pool);
        let behind = machines.any(|machine| {
            let pinned = machine.origin.pinned();
            let goes = next.rolls.iter().any(|roll| roll.holds(machine));
            pinned.is_some() && pinned != *commit && !goes
        });
        if !behind {
            end(tx, intent.id, now)?;
        }
    }
    Ok(())
}

/// Ends wishes for another attempt at a task that was withdrawn or made due.
///
/// A wish that cancels the task, which names its machine too, goes on: it is why the task
/// was withdrawn, and holds back the next one that would do the same.
pub(crate) fn fulfil_retry(tx: &mut dyn Tx, task: TaskId, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE intents SET open = 0, updated_at = $2 WHERE task = $1 AND machine IS NULL AND open = 1",
        &[task.into(), now.into()],
    )?;
    Ok(())
}

/// Ends all wishes about tasks that were done: there is nothing left to cancel either.
pub(crate) fn fulfil_tasks(tx: &mut dyn Tx) -> Result<(), Error> {
    let done = std::mem::take(&mut tx.outbox().done);
    if done.is_empty() {
        return Ok(());
    }
    let now = done.iter().map(|(_, now)| *now).max().unwrap_or_default();
    let tasks: Vec<_> = done.into_iter().map(|(task, _)| task.into()).collect();
    for_each(
        tx,
        "UPDATE intents SET open = 0, updated_at = $1 WHERE open = 1 AND task IN ({})",
        &[now.into()],
        &tasks,
    )?;
    Ok(())
}

/// Ends a wish of a cluster that was fulfilled.
pub(crate) fn fulfil(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    intent: IntentId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE intents SET open = 0, updated_at = $3 WHERE cluster = $1 AND id = $2 AND open = 1",
        &[cluster.into(), intent.into(), now.into()],
    )?;
    Ok(())
}

/// Ends wishes about a machine that is gone. That its names stay behind is wished for as long as
/// they do: without that they would be taken back for ever.
pub(crate) fn fulfil_machine(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    machine: MachineId,
    now: Timestamp,
) -> Result<(), Error> {
    let rows = tx.query(
        "SELECT format, body FROM intents WHERE cluster = $1 AND open = 1 ORDER BY seq",
        &[cluster.into()],
    )?;
    for mut row in rows {
        // What was seen is recorded, also where a wish cannot be read.
        let Some(intent) = row.readable::<Intent>()? else {
            continue;
        };
        let fulfilled = match intent.wish {
            Wish::Cancel {
                machine: of, kind, ..
            } => of == machine && kind != Kind::Name,
            Wish::Replace { machine: of } | Wish::Retire { machine: of } => of == machine,
            Wish::Scale { .. }
            | Wish::Retry { .. }
            | Wish::Pause
            | Wish::Snapshot
            | Wish::Restore { .. }
            | Wish::Update { .. } => false,
        };
        if fulfilled {
            end(tx, intent.id, now)?;
        }
    }
    Ok(())
}

/// Ends all wishes about a cluster that is gone.
pub(crate) fn end_all(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE intents SET open = 0, updated_at = $2 WHERE cluster = $1 AND open = 1",
        &[cluster.into(), now.into()],
    )?;
    Ok(())
}

/// Ends one wish.
pub(crate) fn end(tx: &mut dyn Tx, intent: IntentId, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE intents SET open = 0, updated_at = $2 WHERE id = $1",
        &[intent.into(), now.into()],
    )?;
    Ok(())
}

/// The open wishes about a cluster, oldest first.
pub(crate) fn of_cluster(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Vec<Intent>, Error> {
    let rows = tx.query(
        "SELECT format, body FROM intents WHERE cluster = $1 AND open = 1 ORDER BY seq",
        &[cluster.into()],
    )?;
    rows.into_iter().map(|mut row| row.document()).collect()
}
