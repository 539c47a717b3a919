//! Rights to what clusters share: addresses of given machines, units of a project's quota.

use crate::body::{Row, Tx, first};
use crate::error::Error;
use crate::events::note;
use crate::{clusters, projects};
use model::cluster::Origin;
use model::id::ClusterId;
use model::name::Name;
use model::task::{Kind, Task};
use model::time::Timestamp;
use plan::{Held, Reason};
use std::collections::BTreeSet;

/// What every unit of a quota is a unit of.
const QUOTA: &str = "quota/";

/// Takes what a task needs for itself; answers why it cannot have it.
pub(crate) fn take(tx: &mut dyn Tx, task: &Task, now: Timestamp) -> Result<Option<Reason>, Error> {
    let full = quota(tx, task, now)?;
    if full.is_some() {
        return Ok(full);
    }
    let Some(thing) = needed(task) else {
        return Ok(None);
    };
    insert(tx, &thing, "", task, now)?;
    let other = first(
        tx,
        "SELECT project, cluster_name, machine_name FROM claims WHERE thing = $1 AND unit = '' AND machine <> $2",
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
    Ok(Some(Reason::Claimed {
        thing,
        by: format!("{machine} of cluster {cluster} in project {project}"),
    }))
}

fn insert(
    tx: &mut dyn Tx,
    thing: &str,
    unit: &str,
    task: &Task,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO claims (thing, unit, project, cluster, cluster_name, machine, machine_name, since)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (thing, unit) DO NOTHING",
        &[
            thing.into(),
            unit.into(),
            (&task.project).into(),
            task.cluster.into(),
            (&task.cluster_name).into(),
            task.machine.id.into(),
            (&task.machine.name).into(),
            now.into(),
        ],
    )?;
    Ok(())
}

/// The units of a project's quota of machines.
fn machines_of(project: &Name) -> String {
    format!("{QUOTA}machines/{project}")
}

/// Takes a unit of the project's quota for a machine that is about to be one of ours.
fn quota(tx: &mut dyn Tx, task: &Task, now: Timestamp) -> Result<Option<Reason>, Error> {
    if !matches!(task.action.kind(), Kind::Create | Kind::Prepare) {
        return Ok(None);
    }
    let thing = machines_of(&task.project);
    let limit = projects::quota(tx, &task.project)?.and_then(|quota| quota.machines);
    if let Some(limit) = limit {
        // Counted while nobody else counts: of two that want the last unit one gets it.
        tx.hold(&thing)?;
        let used = first(
            tx,
            "SELECT COUNT(*) FROM claims WHERE thing = $1 AND unit <> $2",
            &[(&thing).into(), task.machine.id.into()],
        )?;
        let used = used.map_or(Ok(0), |mut row| row.take::<u32>())?;
        if used >= limit {
            return Ok(Some(Reason::Quota {
                what: "machines".to_owned(),
                used,
                limit,
            }));
        }
    }
    insert(tx, &thing, &task.machine.id.to_string(), task, now)?;
    Ok(None)
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

/// Frees, at the end of the transaction, what machines held that should go, are seen to be
/// gone and have no task left.
pub(crate) fn settle(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) {
    tx.outbox().settle.insert(cluster, now);
}

/// Frees what is to be freed.
pub(crate) fn settle_all(tx: &mut dyn Tx) -> Result<(), Error> {
    for (cluster, now) in std::mem::take(&mut tx.outbox().settle) {
        settled(tx, cluster, now)?;
    }
    Ok(())
}

fn settled(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) -> Result<(), Error> {
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
    let quotas: BTreeSet<Name> = freed
        .iter()
        .filter(|thing| thing.starts_with(QUOTA))
        .filter_map(|thing| thing.rsplit('/').next()?.parse().ok())
        .collect();
    for project in &quotas {
        clusters::unplan_waiting_for(tx, project, None, "quota", now)?;
    }
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
        );
    }
    Ok(())
}
