//! Exclusive rights to what clusters share: so far, the addresses of given machines.

use crate::body::{Row, Tx, first};
use crate::clusters;
use crate::error::Error;
use crate::events::note;
use model::cluster::Origin;
use model::id::ClusterId;
use model::name::Name;
use model::task::{Kind, Task};
use model::time::Timestamp;
use plan::{Held, Reason};
use std::collections::BTreeSet;

/// Somebody else's claim.
#[derive(Debug)]
pub(crate) struct Taken {
    /// What is claimed.
    pub(crate) thing: String,
    /// Who holds it.
    pub(crate) by: String,
}

/// Takes what a task needs for itself; answers who has it already.
pub(crate) fn take(tx: &mut dyn Tx, task: &Task, now: Timestamp) -> Result<Option<Taken>, Error> {
    let Some(thing) = needed(task) else {
        return Ok(None);
    };
    tx.execute(
        "INSERT INTO claims (thing, project, cluster, cluster_name, machine, machine_name, since)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (thing) DO NOTHING",
        &[
            (&thing).into(),
            (&task.project).into(),
            task.cluster.into(),
            (&task.cluster_name).into(),
            task.machine.id.into(),
            (&task.machine.name).into(),
            now.into(),
        ],
    )?;
    let other = first(
        tx,
        "SELECT project, cluster_name, machine_name FROM claims WHERE thing = $1 AND machine <> $2",
        &[(&thing).into(), task.machine.id.into()],
    )?;
    let Some(mut row) = other else {
        return Ok(None);
    };
    let (project, cluster, machine) = (
        row.take::<String>()?,
        row.take::<String>()?,
        row.take::<String>()?,
    );
    Ok(Some(Taken {
        thing,
        by: format!("{machine} of cluster {cluster} in project {project}"),
    }))
}

/// What a task must have for itself.
///
/// A machine that we make has its own address; one that was given is named by it, and two
/// clusters that were given the same must not both install on it.
fn needed(task: &Task) -> Option<String> {
    match &task.machine.origin {
        Origin::Given { endpoint, .. } if task.action.kind() == Kind::Prepare => {
            Some(format!("address/{endpoint}"))
        }
        Origin::Given { .. } | Origin::Made { .. } => None,
    }
}

/// Frees what machines held that should go, are seen to be gone and have no task left.
pub(crate) fn settle(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) -> Result<(), Error> {
    let freed = tx.query(
        "DELETE FROM claims WHERE cluster = $1
           AND NOT EXISTS (SELECT 1 FROM machines m
                           WHERE m.id = claims.machine AND NOT (m.leaving = 1 AND m.absent = 1))
           AND NOT EXISTS (SELECT 1 FROM tasks t
                           WHERE t.cluster = claims.cluster AND t.state IN ('waiting', 'running', 'stuck')
                             AND t.machine = claims.machine)
         RETURNING thing",
        &[cluster.into()],
    )?;
    wake(tx, freed, now)
}

/// Frees all that a cluster held: for one that is gone.
pub(crate) fn free_all(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) -> Result<(), Error> {
    let freed = tx.query(
        "DELETE FROM claims WHERE cluster = $1 RETURNING thing",
        &[cluster.into()],
    )?;
    wake(tx, freed, now)
}

/// Lets clusters be planned at once that wait for what was freed.
///
/// Claims are rarely freed, so the clusters that wait are found by looking at all.
fn wake(tx: &mut dyn Tx, freed: Vec<Row>, now: Timestamp) -> Result<(), Error> {
    if freed.is_empty() {
        return Ok(());
    }
    let freed: BTreeSet<String> = freed
        .into_iter()
        .map(|mut row| row.take())
        .collect::<Result<_, _>>()?;
    let waiting = tx.query(
        r#"SELECT id, project, name, format, held FROM clusters
           WHERE phase <> 'gone' AND held LIKE '%"claimed":{%' ORDER BY id"#,
        &[],
    )?;
    for mut row in waiting {
        let (cluster, project, name): (ClusterId, Name, Name) =
            (row.take()?, row.take()?, row.take()?);
        let held: Vec<Held> = row.document()?;
        let thing = held.iter().find_map(|held| {
            if let Reason::Claimed { thing, .. } = &held.reason {
                freed.get(thing)
            } else {
                None
            }
        });
        let Some(thing) = thing else { continue };
        clusters::unplan(tx, cluster)?;
        // Also what wakes the planner: not everything that frees a claim is told.
        note(
            tx,
            (&project, now),
            "claim.freed",
            format!("cluster/{name}"),
            format!("{thing}, which it waits for, was given back"),
        )?;
    }
    Ok(())
}
