//! What else is wrong with a manifest that has faults, in the eyes of who knows the project.
//!
//! What could be read is judged as if the rest were right. What only follows from what could not be read is
//! not told: a cluster whose pools are unknown is not said to lose its machines.

use super::growing::{Growing, Stand};
use super::refused::{refuse_doubtful, refuse_foreign, refuse_impossible, refuse_unprotected};
use super::{Expansion, Known, Of, compare, find, grown, living};
use model::cluster::{Machine, Role};
use model::fault::{Fault, Faults};
use model::manifest::{Dynamic, Glimpse, Partial, Pool};
use model::name::Name;
use model::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What was found of a manifest that has faults.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// What else is wrong with it.
    pub faults: Vec<Fault>,
    /// What its sound clusters would become, each with its place in the list.
    pub sound: Vec<(usize, Expansion)>,
}

/// Judges what could be read of a manifest, beside the living clusters of its name; of those that are set aside
/// nothing is known but their names.
pub fn judge(
    project: &Name,
    partial: &Partial,
    known: &[Known<'_>],
    aside: &[Name],
    now: Timestamp,
) -> Judged {
    let mut faults = Faults::default();
    let beside = partial.namespaces.iter();
    let beside = beside.map(|(path, found)| (path.clone(), found));
    refuse_foreign(project, partial.namespace.as_ref(), beside, &mut faults);
    let clusters = &partial.clusters;
    refuse_doubtful(&partial.doubts, clusters, known, aside, &mut faults);
    let told = |path: &str| partial.tells(path);
    let mut seen = BTreeSet::new();
    for (cluster, before) in living(clusters, known, aside) {
        // Of two with one name nobody knows which is meant.
        if seen.insert(before.desired.cluster) {
            refuse_impossible(cluster, before, told, &mut faults);
        }
    }
    let sound = of_sound(project, partial, known, aside, now, &mut faults);
    for (cluster, before) in living(clusters, known, aside) {
        if !sound.iter().any(|(at, _)| *at == cluster.position) {
            of_pools(partial, cluster, before, now, &mut faults);
        }
    }
    let declared = |gone: &Known<'_>| {
        let mut names = clusters.iter().filter_map(|of| of.name.as_ref());
        names.any(|name| *name == gone.desired.name)
    };
    if partial.is_all {
        for gone in known.iter().filter(|known| !declared(known)) {
            refuse_unprotected(gone.desired, &mut faults);
        }
    }
    Judged {
        faults: faults.into_vec(),
        sound,
    }
}

/// Clusters in which nothing is wrong are judged as if they were alone.
fn of_sound(
    project: &Name,
    partial: &Partial,
    known: &[Known<'_>],
    aside: &[Name],
    now: Timestamp,
    faults: &mut Faults,
) -> Vec<(usize, Expansion)> {
    let Some(manifest) = &partial.sound else {
        return Vec::new();
    };
    let of = Of {
        project,
        manifest,
        lives: &BTreeMap::new(),
        now,
    };
    let clusters = partial.places().into_iter().zip(&manifest.clusters);
    let clusters = clusters.filter(|(_, cluster)| !aside.contains(&cluster.name));
    let grown = clusters.map(|(at, cluster)| {
        let before = find(known, &cluster.name);
        let grown = grown(&of, (at, cluster), before, faults);
        (at, compare(grown, before.map(|known| known.desired)))
    });
    grown.collect()
}

/// Pools in which nothing is wrong may not change what machines are made of, whatever is wrong with the cluster.
fn of_pools(
    partial: &Partial,
    cluster: &Glimpse,
    before: Known<'_>,
    now: Timestamp,
    faults: &mut Faults,
) {
    let named = |machine: &Machine| match machine.role {
        Role::Control => cluster.control.contains(&machine.pool),
        Role::Compute => cluster.compute.contains(&machine.pool),
        Role::Balancer => partial.balancing.contains(&machine.pool),
    };
    let machines = before.desired.machines.iter();
    let stands: BTreeSet<_> = machines.filter(|of| named(of)).map(Stand::of).collect();
    for stand in stands {
        if let Some(Pool::Dynamic(pool)) = partial.pools.get(stand.pool) {
            let pool: &Dynamic = pool;
            let account = partial.providers.get(&pool.provider);
            let mut growing = Growing::from(before.desired, Some(before), now);
            growing.dynamic(account, stand, pool, faults);
        }
    }
}
