//! Exclusive rights to what clusters share: so far, the addresses of given machines.

use crate::body::{Tx, first};
use crate::error::Error;
use model::cluster::Origin;
use model::id::ClusterId;
use model::task::{Kind, Task};
use model::time::Timestamp;

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
pub(crate) fn settle(tx: &mut dyn Tx, cluster: ClusterId) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM claims WHERE cluster = $1
           AND NOT EXISTS (SELECT 1 FROM machines m
                           WHERE m.id = claims.machine AND NOT (m.leaving = 1 AND m.absent = 1))
           AND NOT EXISTS (SELECT 1 FROM tasks t
                           WHERE t.cluster = claims.cluster AND t.state IN ('waiting', 'running', 'stuck')
                             AND t.machine = claims.machine)",
        &[cluster.into()],
    )?;
    Ok(())
}
