//! What no field can tell alone: names used twice, references that lead nowhere.

use super::balancers::{self, Balancers};
use super::manifest::Declared;
use super::parts::{Names, Parts, Read};
use super::pools::{Kind, Made, Stock};
use super::providers::Lender;
use super::{idle, jump, networks};
use crate::balancer::API_PORT;
use crate::fault::{Code, Faults};
use crate::name::Name;
use std::collections::BTreeMap;

/// Checks what the parts say about each other.
pub(super) fn check(
    providers: &Parts<Lender>,
    groups: &Parts<Option<u32>>,
    pools: &Parts<Stock>,
    clusters: &Parts<Declared>,
    balancers: &Balancers,
    faults: &mut Faults,
) {
    providers.refuse_twins("provider", faults);
    groups.refuse_twins("group", faults);
    pools.refuse_twins("pool", faults);
    clusters.refuse_twins("cluster", faults);
    endpoints(pools, faults);
    jump::check(pools, faults);
    balancers::check(balancers, pools, clusters, faults);
    balancers::ports(balancers, pools, faults);
    entrances_stand(balancers, pools, faults);
    for Read { path, value, .. } in &clusters.all {
        value.control.refuse(pools, "pool", faults);
        value.compute.refuse(pools, "pool", faults);
        control_count(path, &value.control, pools, faults);
        control_stays(&value.control, pools, faults);
        control_is_counted(&value.control, pools, faults);
    }
    networks::check(clusters, balancers, pools, faults);
    idle::remark(providers, pools, clusters, balancers, faults);
    machine_names(clusters, balancers, faults);
    static_pools_once(clusters, balancers, pools, faults);
    machines_in_all(clusters, balancers, pools, faults);
    // A cluster or a load balancer that could not be read may use any pool.
    if !clusters.is_lost() && balancers.all() {
        let why = "which no cluster and no load balancer uses; remove it or name it in one";
        let lists: Vec<_> = lists(clusters, balancers).collect();
        pools.refuse_unused(&lists, why, faults);
    }
    if !pools.is_lost() {
        let why = "which no pool belongs to; remove it or name it in a pool";
        let lists: Vec<_> = pools.all.iter().map(|pool| &pool.value.group).collect();
        groups.refuse_unused(&lists, why, faults);
    }
}

/// Everything that clusters and load balancers say of pools.
fn lists<'a>(
    clusters: &'a Parts<Declared>,
    balancers: &'a Balancers,
) -> impl Iterator<Item = &'a Names> {
    let clusters = clusters.all.iter().map(|read| &read.value);
    let own = clusters.flat_map(|of| [&of.control, &of.compute]);
    own.chain(balancers.pools())
}

fn endpoints(pools: &Parts<Stock>, faults: &mut Faults) {
    let mut seen = BTreeMap::new();
    for pool in &pools.all {
        let Kind::Static(fixed) = &pool.value.kind else {
            continue;
        };
        for host in &fixed.hosts {
            let path = format!("{}.endpoint", host.node);
            if let Some(first) = seen.insert(host.endpoint, path.clone()) {
                faults.note(
                    path,
                    Code::Duplicate,
                    format!("found {} again; it is at {first}", host.endpoint),
                );
            }
        }
    }
}

/// What is known of machines that we make, where a name leads to such.
fn made<'a>(name: &Name, pools: &'a Parts<Stock>) -> Option<&'a Made> {
    match &pools.get(name)?.value.kind {
        Kind::Dynamic(made) => Some(made),
        Kind::Static(_) | Kind::Metal => None,
    }
}

/// A pool that is scaled, where one is named.
fn scaled(name: &Name, pools: &Parts<Stock>) -> bool {
    made(name, pools).is_some_and(|made| made.scaled)
}

/// Members of etcd come and go by the word of a person alone.
fn control_is_counted(control: &Names, pools: &Parts<Stock>, faults: &mut Faults) {
    for (path, name) in control.read.iter().filter(|(_, name)| scaled(name, pools)) {
        let message = format!(
            "found `{name}`, whose size changes (autoscaler), allowed: a pool with a count; \
             a control plane has 1, 3, 5 or 7 machines"
        );
        faults.note(path, Code::Reference, message);
    }
}

/// An even number of members survives no more losses than one less, and etcd stops at 7.
fn control_count(path: &str, control: &Names, pools: &Parts<Stock>, faults: &mut Faults) {
    let Some(Counted { known, unknown }) = machines([control], pools) else {
        return;
    };
    if control.iter().any(|name| scaled(name, pools)) {
        return;
    }
    // Pools whose size nobody knows may have any, and have one machine at least.
    let least = known.saturating_add(unknown);
    let possible = match unknown {
        0 => matches!(known, 1 | 3 | 5 | 7),
        _ => least <= 7,
    };
    if !possible {
        let found = if unknown == 0 { "" } else { "at least " };
        let message = format!("found {found}{least} control machines, allowed: 1, 3, 5 or 7");
        faults.note(format!("{path}.pools.control"), Code::Range, message);
    }
}

/// Machines that may be taken back at any time take etcd along.
fn control_stays(control: &Names, pools: &Parts<Stock>, faults: &mut Faults) {
    for (path, name) in &control.read {
        if made(name, pools).is_some_and(|made| made.spot) {
            let message = format!(
                "found `{name}`, whose machines may be taken back at any time (spot: true), \
                 allowed: a pool whose machines stay"
            );
            faults.note(path, Code::Reference, message);
        }
    }
}

/// How many machines some pools may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// Those of pools whose size is known.
    pub(super) known: u32,
    /// Pools that are named and whose size is not.
    pub(super) unknown: u32,
}

/// How many machines the named pools may have; `None` where nobody knows which pools those are.
pub(super) fn machines<'a>(
    lists: impl IntoIterator<Item = &'a Names>,
    pools: &Parts<Stock>,
) -> Option<Counted> {
    let mut counted = Counted {
        known: 0,
        unknown: 0,
    };
    for names in lists {
        let unread = u32::try_from(names.unread()?).unwrap_or(u32::MAX);
        counted.unknown = counted.unknown.saturating_add(unread);
        for name in names.distinct() {
            match pools.get(name).and_then(|pool| pool.value.size) {
                Some((_, most)) => counted.known = counted.known.saturating_add(most),
                None => counted.unknown = counted.unknown.saturating_add(1),
            }
        }
    }
    Some(counted)
}

/// A load balancer that the API is reached through, and that may have no machine: the cluster would
/// be shut.
fn entrances_stand(balancers: &Balancers, pools: &Parts<Stock>, faults: &mut Faults) {
    for (path, named) in balancers.entrances() {
        // One whose size nobody knows may have machines.
        let stands = |name| {
            let size = pools.get(name).and_then(|pool| pool.value.size);
            size.is_none_or(|(least, _)| least > 0)
        };
        if named.unread() == Some(0) && !named.iter().any(stands) {
            let message = format!(
                "found no machine that is always there, allowed: at least one where a role leads to port {API_PORT}"
            );
            faults.note(format!("{path}.pools"), Code::Range, message);
        }
    }
}

/// More machines than one manifest should hold: a typing error in a count, or several fleets.
fn machines_in_all(
    clusters: &Parts<Declared>,
    balancers: &Balancers,
    pools: &Parts<Stock>,
    faults: &mut Faults,
) {
    // Those that are not defined, or whose size is not known, count for nothing.
    let named = lists(clusters, balancers).flat_map(Names::distinct);
    let sizes = named.filter_map(|name| pools.get(name)?.value.size);
    let all = sizes.map(|(_, most)| most).fold(0, u32::saturating_add);
    if all > MACHINES_MAX {
        let message =
            format!("found {all} machines in all, allowed: at most {MACHINES_MAX} in one manifest");
        faults.note("spec.kubernetes.clusters", Code::Range, message);
    }
}

/// Machines of one manifest: ten times the largest fleets we have seen declared in one file, and
/// still planned within a second and a few dozen megabytes.
const MACHINES_MAX: u32 = 20_000;

fn static_pools_once(
    clusters: &Parts<Declared>,
    balancers: &Balancers,
    pools: &Parts<Stock>,
    faults: &mut Faults,
) {
    let fixed = |name: &Name| {
        let pool = pools.get(name);
        pool.is_some_and(|pool| matches!(pool.value.kind, Kind::Static(_)))
    };
    let mut seen: BTreeMap<&Name, (usize, &str)> = BTreeMap::new();
    for (list, names) in lists(clusters, balancers).enumerate() {
        for (path, name) in names.read.iter().filter(|(_, name)| fixed(name)) {
            let first = seen.insert(name, (list, path));
            // The same list twice was told already.
            if let Some((_, first)) = first.filter(|(other, _)| *other != list) {
                let message =
                    format!("found static pool `{name}` again; its machines are used at {first}");
                faults.note(path, Code::Duplicate, message);
            }
        }
    }
}

/// Machines of two owners that would have one name: `a` with a pool `b-c`, and `a-b` with a pool `c`.
fn machine_names(clusters: &Parts<Declared>, balancers: &Balancers, faults: &mut Faults) {
    let of_clusters = clusters.all.iter().flat_map(|read| {
        let lists = [&read.value.control, &read.value.compute];
        let pools = lists.into_iter().flat_map(Names::iter);
        pools.filter_map(|pool| Some((read.path.as_str(), read.name()?, pool)))
    });
    let mut seen: BTreeMap<String, (&Name, &Name)> = BTreeMap::new();
    for (path, owner, pool) in of_clusters.chain(balancers.owners()) {
        let stem = format!("{owner}-{pool}");
        let (first, its) = *seen.entry(stem).or_insert((owner, pool));
        if first != owner {
            let message = format!(
                "found `{owner}`, whose machines of pool `{pool}` would be called as those of `{first}` and its pool `{its}`"
            );
            faults.note(format!("{path}.name"), Code::Duplicate, message);
        }
    }
}
