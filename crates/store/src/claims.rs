//! Rights to what clusters share: addresses of given machines, names of load balancers, units of a
//! project's quota.

use crate::body::{Row, Tx, Value, first, insert};
use crate::error::Error;
use crate::events::note;
use crate::{clusters, observations, projects};
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::task::{Kind, Task};
use model::time::Timestamp;
use plan::{Claim, Held, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// What every unit of a quota is a unit of.
const QUOTA: &str = "quota/";

/// Takes what tasks of one cluster need for themselves; answers for which machine that
/// cannot be had, and why.
pub(crate) fn take(
    tx: &mut dyn Tx,
    tasks: &[Task],
    now: Timestamp,
) -> Result<Option<(MachineId, Reason)>, Error> {
    let full = quota(tx, tasks, now)?;
    if full.is_some() {
        return Ok(full);
    }
    let mut names = BTreeMap::new();
    for task in tasks {
        for thing in Claim::needed(&task.machine, &task.action) {
            if Claim::is_name(&thing) {
                names.insert((thing, task.machine.id), task);
                continue;
            }
            claim(tx, &[row(&thing, "", task, now)])?;
            if let Some(Holder { machine, by, goes }) = held(tx, &thing, &task.project)?
                && machine != task.machine.id
            {
                let reason = Reason::Claimed { thing, by, goes };
                return Ok(Some((task.machine.id, reason)));
            }
        }
    }
    take_names(tx, names, now)
}

/// Of things that a cluster asks for, those that other clusters have. Whoever is among those that go
/// gives it back.
pub(crate) fn elsewhere(
    tx: &mut dyn Tx,
    things: BTreeSet<String>,
    (project, cluster): (&Name, ClusterId),
    going: &BTreeSet<MachineId>,
) -> Result<Vec<Claim>, Error> {
    let mut claimed = Vec::new();
    for thing in things {
        if let Some(Holder { machine, by, goes }) = named(tx, &thing, (project, cluster))? {
            let goes = goes || going.contains(&machine);
            claimed.push(Claim { thing, by, goes });
        }
    }
    Ok(claimed)
}

/// Who holds a thing, as a cluster that wants it sees it.
pub(crate) fn holder(
    tx: &mut dyn Tx,
    thing: &str,
    cluster: ClusterId,
) -> Result<Option<String>, Error> {
    let project = first(
        tx,
        "SELECT project FROM clusters WHERE id = $1",
        &[cluster.into()],
    )?;
    let Some(mut project) = project else {
        return Ok(None);
    };
    let project = project.take()?;
    let held = if Claim::is_name(thing) {
        named(tx, thing, (&project, cluster))?
    } else {
        held(tx, thing, &project)?
    };
    Ok(held.map(|holder| holder.by))
}

/// Takes the names that load balancers should have. All machines of a cluster share them.
fn take_names(
    tx: &mut dyn Tx,
    wanted: BTreeMap<(String, MachineId), &Task>,
    now: Timestamp,
) -> Result<Option<(MachineId, Reason)>, Error> {
    for ((thing, machine), task) in wanted {
        // Looked at while nobody else takes it: of two that want it one gets it.
        tx.hold(&thing)?;
        let own = (&task.project, task.cluster);
        if let Some(Holder { by, goes, .. }) = named(tx, &thing, own)? {
            return Ok(Some((machine, Reason::Claimed { thing, by, goes })));
        }
        claim(tx, &[row(&thing, &machine.to_string(), task, now)])?;
    }
    Ok(None)
}

/// Who holds a thing.
struct Holder {
    machine: MachineId,
    /// The same for people of the project that asks. Those of another learn that it is none of theirs, and no names.
    by: String,
    /// Whether it is on its way out, and gives the thing back by itself.
    goes: bool,
}

/// Who holds a thing, other than the machines of this cluster, as its project may know it.
fn named(
    tx: &mut dyn Tx,
    thing: &str,
    (asks, but): (&Name, ClusterId),
) -> Result<Option<Holder>, Error> {
    let row = first(
        tx,
        "SELECT machine, project, cluster_name, machine_name,
                COALESCE((SELECT m.leaving FROM machines m WHERE m.id = claims.machine), 1)
         FROM claims WHERE thing = $1 AND cluster <> $2 ORDER BY since, unit LIMIT 1",
        &[thing.into(), but.into()],
    )?;
    row.map(|row| holding(row, asks)).transpose()
}

/// Who holds a thing, as a project may know it.
fn held(tx: &mut dyn Tx, thing: &str, asks: &Name) -> Result<Option<Holder>, Error> {
    let row = first(
        tx,
        "SELECT machine, project, cluster_name, machine_name,
                COALESCE((SELECT m.leaving FROM machines m WHERE m.id = claims.machine), 1)
         FROM claims WHERE thing = $1 AND unit = ''",
        &[thing.into()],
    )?;
    row.map(|row| holding(row, asks)).transpose()
}

fn holding(mut row: Row, asks: &Name) -> Result<Holder, Error> {
    let machine_id = row.take()?;
    let (project, cluster, machine) = (
        row.take::<String>()?,
        row.take::<String>()?,
        row.take::<String>()?,
    );
    let by = if project == asks.as_str() {
        format!("{machine} of cluster {cluster} in project {project}")
    } else {
        Claim::ELSEWHERE.to_owned()
    };
    Ok(Holder {
        machine: machine_id,
        by,
        goes: row.take()?,
    })
}

/// Whether a project has all the machines that it may have; nobody gets another meanwhile.
pub(crate) fn is_full(tx: &mut dyn Tx, project: &Name) -> Result<bool, Error> {
    let thing = machines_of(project);
    tx.hold(&thing)?;
    let limit = projects::quota(tx, project)?.and_then(|quota| quota.machines);
    let used = units(tx, &thing)?;
    Ok(limit.is_some_and(|limit| used >= limit))
}

/// How many units of something are claimed.
fn units(tx: &mut dyn Tx, thing: &str) -> Result<u32, Error> {
    let count = first(
        tx,
        "SELECT COUNT(*) FROM claims WHERE thing = $1",
        &[thing.into()],
    )?;
    count.map_or(Ok(0), |mut row| row.take())
}

/// The units of a project's quota of machines.
fn machines_of(project: &Name) -> String {
    format!("{QUOTA}machines/{project}")
}

fn row(thing: &str, unit: &str, task: &Task, now: Timestamp) -> Vec<Value> {
    vec![
        thing.into(),
        unit.into(),
        (&task.project).into(),
        task.cluster.into(),
        (&task.cluster_name).into(),
        task.machine.id.into(),
        (&task.machine.name).into(),
        now.into(),
    ]
}

fn claim(tx: &mut dyn Tx, rows: &[Vec<Value>]) -> Result<(), Error> {
    insert(
        tx,
        "claims (thing, unit, project, cluster, cluster_name, machine, machine_name, since)",
        rows,
        "ON CONFLICT (thing, unit) DO NOTHING",
    )?;
    Ok(())
}

/// Takes a unit of the project's quota for each machine that is about to be one of ours.
fn quota(
    tx: &mut dyn Tx,
    tasks: &[Task],
    now: Timestamp,
) -> Result<Option<(MachineId, Reason)>, Error> {
    let begun = |task: &&Task| matches!(task.action.kind(), Kind::Create | Kind::Prepare);
    let tasks: Vec<_> = tasks.iter().filter(begun).collect();
    let Some(project) = tasks.first().map(|task| &task.project) else {
        return Ok(None);
    };
    let thing = machines_of(project);
    let unit = |task: &&Task| row(&thing, &task.machine.id.to_string(), task, now);
    let wanted = |tasks: &[&Task]| tasks.iter().map(unit).collect::<Vec<_>>();
    let limit = projects::quota(tx, project)?.and_then(|quota| quota.machines);
    let Some(limit) = limit else {
        claim(tx, &wanted(&tasks))?;
        return Ok(None);
    };
    // Counted while nobody else counts: of two that want the last unit one gets it.
    tx.hold(&thing)?;
    let before = units(tx, &thing)?;
    claim(tx, &wanted(&tasks))?;
    let after = units(tx, &thing)?;
    // The last ones go without.
    let refused = tasks.last().filter(|_| after > limit);
    Ok(refused.map(|task| {
        let reason = Reason::Quota {
            what: "machines".to_owned(),
            used: before.max(limit),
            limit,
        };
        (task.machine.id, reason)
    }))
}

/// Frees, at the end of the transaction, what machines held that should go, are seen to be
/// gone and have no task left; and names that lead to them no more.
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
    let mut freed = tx.query(
        "DELETE FROM claims WHERE cluster = $1 AND thing NOT LIKE 'dns/%'
           AND NOT EXISTS (SELECT 1 FROM machines m
                           WHERE m.id = claims.machine AND NOT (m.leaving = 1 AND m.absent = 1))
           AND NOT EXISTS (SELECT 1 FROM tasks t
                           WHERE t.cluster = claims.cluster AND t.state IN ('waiting', 'running', 'stuck')
                             AND t.machine = claims.machine)
         RETURNING thing",
        &[cluster.into()],
    )?;
    for (thing, unit) in taken_back(tx, cluster)? {
        freed.extend(tx.query(
            "DELETE FROM claims WHERE thing = $1 AND unit = $2 RETURNING thing",
            &[thing.into(), unit.into()],
        )?);
    }
    wake(tx, freed, now)
}

/// Names that lead no more to the machine for which they were taken, and that has no task left.
fn taken_back(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Vec<(String, String)>, Error> {
    let rows = tx.query(
        "SELECT thing, unit, machine FROM claims WHERE cluster = $1 AND thing LIKE 'dns/%'
           AND NOT EXISTS (SELECT 1 FROM tasks t
                           WHERE t.cluster = claims.cluster AND t.state IN ('waiting', 'running', 'stuck')
                             AND t.machine = claims.machine)",
        &[cluster.into()],
    )?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let observed = observations::of_cluster(tx, cluster)?;
    let mut back = Vec::new();
    for mut row in rows {
        let (thing, unit, machine): (String, String, MachineId) =
            (row.take()?, row.take()?, row.take()?);
        let seen = observed.machines.get(&machine);
        let names = seen.and_then(|seen| seen.names.as_ref());
        let leads = names.is_some_and(|(fact, _)| {
            let mut names = fact.names.iter();
            names.any(|of| thing == Claim::name(&of.name))
        });
        if !leads {
            back.push((thing, unit));
        }
    }
    Ok(back)
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
    for thing in &freed {
        // Whoever is about to say that it waits for this has said so before we look, or is
        // told that it need not.
        tx.hold(thing)?;
    }
    let quotas: BTreeSet<Name> = freed
        .iter()
        .filter(|thing| thing.starts_with(QUOTA))
        .filter_map(|thing| thing.rsplit('/').next()?.parse().ok())
        .collect();
    for project in &quotas {
        clusters::unplan_waiting_for(tx, project, None, &[projects::QUOTA_CHANGED], now)?;
    }
    let waiting = tx.query(
        r#"SELECT id, project, name, format, held FROM clusters
           WHERE phase <> 'gone' AND held LIKE '%"claimed":{%' ORDER BY id"#,
        &[],
    )?;
    for mut row in waiting {
        let (cluster, project, name): (ClusterId, Name, Name) =
            (row.take()?, row.take()?, row.take()?);
        let held: Vec<Held> = row.readable()?.unwrap_or_default();
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
