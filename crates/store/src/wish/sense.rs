//! Whether a wish makes sense for the cluster as it is.

use super::{WishError, manifest_of, refused, shapes};
use crate::body::{Tx, first};
use crate::clusters::ClusterView;
use model::cluster::{Machine, Origin};
use model::id::{MachineId, TaskId};
use model::intent::Wish;
use model::manifest::{Dynamic, Manifest, POOL_COUNT_MAX, Pool};
use model::name::Name;
use model::snapshot::SnapshotId;
use model::task::Task;
use model::templates::Commit;

/// The wish with what it repeats of other documents, if it makes sense for the cluster.
pub(super) fn checked(tx: &mut dyn Tx, view: &ClusterView, wish: Wish) -> Result<Wish, WishError> {
    if view.desired.tombstone && shapes(&wish) {
        return Err(refused(format!(
            "cluster {} is being removed",
            view.desired.name
        )));
    }
    match wish {
        Wish::Scale {
            pool,
            count,
            was: _,
        } => {
            let manifest = manifest_of(tx, &view.desired)?;
            let declared = declared(&manifest, view, &pool)?;
            sized(&manifest, (&pool, declared), count)?;
            let was = declared.declared();
            Ok(Wish::Scale { pool, count, was })
        }
        Wish::Replace { machine } => {
            let found = staying(view, machine)?;
            match found.origin {
                Origin::Made { .. } => Ok(Wish::Replace { machine }),
                Origin::Given { .. } => Err(refused(format!(
                    "machine {} was given and cannot be made again",
                    found.name
                ))),
            }
        }
        Wish::Retire { machine } => {
            let found = staying(view, machine)?;
            let manifest = manifest_of(tx, &view.desired)?;
            let declared = declared(&manifest, view, &found.pool)?;
            spared(view, found, declared)?;
            Ok(Wish::Retire { machine })
        }
        Wish::Retry { task } => unfinished(tx, view, task).map(|_| Wish::Retry { task }),
        Wish::Cancel { task, .. } => {
            let found = unfinished(tx, view, task)?;
            Ok(Wish::Cancel {
                task,
                machine: found.machine.id,
                kind: found.action.kind(),
            })
        }
        Wish::Pause => Ok(Wish::Pause),
        Wish::Snapshot => started(view).map(|()| Wish::Snapshot),
        Wish::Restore { snapshot } => {
            started(view)?;
            kept(view, &snapshot)?;
            Ok(Wish::Restore { snapshot })
        }
        Wish::Update { pool, commit: _ } => {
            let manifest = manifest_of(tx, &view.desired)?;
            declared(&manifest, view, &pool)?;
            let commit = newest(view, &pool)?;
            Ok(Wish::Update {
                pool,
                commit: Some(commit),
            })
        }
    }
}

/// The commit that is offered to a pool whose machines are made from another.
fn newest(view: &ClusterView, pool: &Name) -> Result<Commit, WishError> {
    let desired = &view.desired;
    if desired.tombstone {
        let name = &desired.name;
        return Err(refused(format!("cluster {name} is being removed")));
    }
    let machines = || desired.machines.iter().filter(|of| of.pool == *pool);
    let reference = machines().find_map(|machine| machine.origin.reference());
    let reference = reference.ok_or_else(|| {
        refused(format!(
            "pool {pool} is made from modules that no branch leads to; name others in the manifest"
        ))
    })?;
    let commit = view.observed.commit_of(&reference);
    let commit = commit.ok_or_else(|| {
        refused(format!(
            "nobody has seen yet to which commit {reference} leads"
        ))
    })?;
    let behind = |machine: &Machine| machine.origin.pinned().is_some_and(|has| has != *commit);
    if machines().any(behind) {
        Ok(commit.clone())
    } else {
        Err(refused(format!(
            "pool {pool} is made from {}, to which {reference} leads",
            commit.short()
        )))
    }
}

/// Whether the cluster is there to be saved, and to stay.
fn started(view: &ClusterView) -> Result<(), WishError> {
    let name = &view.desired.name;
    if view.desired.tombstone {
        Err(refused(format!("cluster {name} is being removed")))
    } else if view.observed.initialised {
        Ok(())
    } else {
        Err(refused(format!("cluster {name} has no control plane yet")))
    }
}

/// Whether a snapshot of the cluster is kept.
fn kept(view: &ClusterView, snapshot: &SnapshotId) -> Result<(), WishError> {
    let known = view.observed.snapshots.as_ref();
    let mut kept = known.into_iter().flat_map(|(known, _)| &known.kept);
    if kept.any(|kept| kept.id == *snapshot) {
        return Ok(());
    }
    Err(WishError::NotFound {
        what: "snapshot",
        name: snapshot.to_string(),
    })
}

/// The machine of that id, which is not on its way out.
fn staying(view: &ClusterView, machine: MachineId) -> Result<&Machine, WishError> {
    let desired = &view.desired;
    let found = desired.all().find(|found| found.id == machine);
    let found = found.ok_or_else(|| WishError::NotFound {
        what: "machine",
        name: machine.to_string(),
    })?;
    if desired.leaving.iter().any(|leaving| leaving.id == machine) {
        return Err(refused(format!(
            "machine {} is on its way out already",
            found.name
        )));
    }
    Ok(found)
}

/// Whether a pool may have so many machines. What it declares was admitted.
fn sized(
    manifest: &Manifest,
    (pool, declared): (&Name, &Dynamic),
    count: u32,
) -> Result<(), WishError> {
    let account = manifest.providers.get(&declared.provider);
    let max = account.map_or(POOL_COUNT_MAX, |account| {
        Dynamic::count_max(account.via, declared.replace)
    });
    let max = max.max(declared.count);
    match declared.autoscaler {
        Some(range) if !range.allows(count) => Err(refused(format!(
            "found {count} machines, allowed: {range}, what autoscaler of pool {pool} says"
        ))),
        None if !(1..=max).contains(&count) => Err(refused(format!(
            "found {count} machines, allowed: 1 to {max}"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Whether a pool can do without one of its machines, and without another in its place.
fn spared(view: &ClusterView, machine: &Machine, declared: &Dynamic) -> Result<(), WishError> {
    let (name, pool) = (&machine.name, &machine.pool);
    let Some(range) = declared.autoscaler else {
        return Err(refused(format!(
            "pool {pool} has a count, and would get another machine in place of {name}; lower \
             the count, or have it replaced with `slipway machine replace {name}`"
        )));
    };
    let beside = |other: &&Machine| {
        other.pool == *pool && other.role == machine.role && other.balancer == machine.balancer
    };
    let there = view.desired.machines.iter().filter(beside).count();
    let left = u32::try_from(there).unwrap_or(u32::MAX).saturating_sub(1);
    if left < range.min {
        return Err(refused(format!(
            "pool {pool} would be left with {left} machines, allowed: {range}, what its autoscaler says"
        )));
    }
    Ok(())
}

/// What the manifest declares of a dynamic pool of the cluster or of its load balancers.
fn declared<'m>(
    manifest: &'m Manifest,
    view: &ClusterView,
    pool: &Name,
) -> Result<&'m Dynamic, WishError> {
    let cluster = manifest.clusters.first();
    let balancers = manifest.balancers.iter();
    let mut serving = balancers.filter(|balancer| balancer.cluster == view.desired.name);
    let used = cluster
        .is_some_and(|cluster| cluster.control.contains(pool) || cluster.compute.contains(pool))
        || serving.any(|balancer| balancer.pools.contains(pool));
    match manifest.pools.get(pool).filter(|_| used) {
        Some(Pool::Dynamic(dynamic)) => Ok(dynamic),
        Some(Pool::Static(_)) => Err(refused(format!(
            "pool {pool} has given machines; add or remove them in the manifest"
        ))),
        Some(Pool::Metal(_)) => Err(refused(format!(
            "pool {pool} takes machines that were discovered; change its count in the manifest"
        ))),
        None => Err(WishError::NotFound {
            what: "pool",
            name: pool.to_string(),
        }),
    }
}

fn unfinished(tx: &mut dyn Tx, view: &ClusterView, task: TaskId) -> Result<Task, WishError> {
    let row = first(
        tx,
        "SELECT format, body FROM tasks WHERE id = $1 AND cluster = $2",
        &[task.into(), view.desired.cluster.into()],
    )?;
    let Some(mut row) = row else {
        return Err(WishError::NotFound {
            what: "task",
            name: task.to_string(),
        });
    };
    if !view.open.iter().any(|open| open.id == task) {
        return Err(refused(format!("task {task} is finished")));
    }
    Ok(row.document()?)
}
