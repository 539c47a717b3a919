//! What no field can tell alone: names used twice, references that lead nowhere.

use super::balancers::{self, Balancers};
use super::manifest::{Declared, Read, listed};
use super::{jump, networks};
use crate::balancer::API_PORT;
use crate::fault::{Code, Faults};
use crate::manifest::{Account, Cluster, Pool};
use crate::name::Name;
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Pools<'a> = BTreeMap<&'a Name, &'a Read<Pool>>;

/// Checks what the parts say about each other.
pub(super) fn check(
    providers: &[Read<Account>],
    groups: &[Read<u32>],
    pools: &[Read<Pool>],
    (clusters, all): (&[Read<Declared>], bool),
    balancers: &Balancers,
    faults: &mut Faults,
) {
    unique(providers, "provider", faults);
    unique(groups, "group", faults);
    unique(pools, "pool", faults);
    unique(clusters, "cluster", faults);
    endpoints(pools, faults);
    jump::check(pools, faults);
    let by_name: Pools<'_> = pools.iter().map(|pool| (&pool.name, pool)).collect();
    balancers::check(
        balancers,
        &by_name.keys().copied().collect(),
        clusters,
        faults,
    );
    balancers::ports(balancers, pools, faults);
    entrances_stand(balancers, &by_name, faults);
    let listed: Vec<_> = clusters.iter().filter_map(Listed::of).collect();
    let whole: Vec<_> = clusters.iter().filter_map(Placed::of).collect();
    for cluster in &listed {
        lists(cluster, &by_name, faults);
        control_count(cluster, &by_name, faults);
        control_stays(cluster, &by_name, faults);
        control_is_counted(cluster, &by_name, faults);
    }
    networks::check(&whole, balancers, (&by_name, providers), faults);
    machine_names(clusters, balancers, faults);
    static_pools_once(&listed, balancers, &by_name, faults);
    machines_in_all(&listed, balancers, &by_name, faults);
    // A cluster or a load balancer that could not be read may use any pool.
    let read = |cluster: &Listed<'_>| cluster.read;
    if all && listed.len() == clusters.len() && listed.iter().all(read) && balancers.read() {
        unused(pools, &listed, balancers, faults);
    }
    unused_groups(groups, pools, faults);
}

/// What a cluster says of pools, with its place.
struct Listed<'a> {
    path: &'a str,
    control: &'a [Name],
    compute: &'a [Name],
    /// Whether it says no more than that.
    read: bool,
}

impl<'a> Listed<'a> {
    fn of(read: &'a Read<Declared>) -> Option<Self> {
        let Declared {
            control,
            compute,
            read: all,
            whole: _,
        } = read.value.as_ref()?;
        Some(Self {
            path: &read.path,
            control,
            compute,
            read: *all,
        })
    }

    /// The two lists with the names of their fields.
    fn both(&self) -> [(&'static str, &'a [Name]); 2] {
        [("control", self.control), ("compute", self.compute)]
    }
}

/// A cluster that could be read whole, with its place.
pub(super) struct Placed<'a> {
    pub(super) path: &'a str,
    pub(super) value: &'a Cluster,
}

impl<'a> Placed<'a> {
    fn of(read: &'a Read<Declared>) -> Option<Self> {
        Some(Self {
            path: &read.path,
            value: read.value.as_ref()?.whole.as_ref()?,
        })
    }

    /// Every pool whose machines are in its network, those of its load balancers too.
    pub(super) fn pools<'s>(&'s self, balancers: &'s Balancers) -> impl Iterator<Item = &'s Name> {
        let own = self.value.control.iter().chain(&self.value.compute);
        own.chain(balancers.pools_for(&self.value.name))
    }
}

fn unique<T>(entries: &[Read<T>], what: &str, faults: &mut Faults) {
    let mut seen: BTreeMap<&Name, &str> = BTreeMap::new();
    for entry in entries {
        if let Some(first) = seen.insert(&entry.name, &entry.path) {
            let message = format!(
                "found `{}` again; the {what} at {first} has this name",
                entry.name
            );
            faults.note(format!("{}.name", entry.path), Code::Duplicate, message);
        }
    }
}

fn endpoints(pools: &[Read<Pool>], faults: &mut Faults) {
    let mut seen = BTreeMap::new();
    for pool in pools {
        let Some(Pool::Static(fixed)) = &pool.value else {
            continue;
        };
        for (at, host) in fixed.hosts.iter().enumerate() {
            let path = format!("{}.nodes[{at}].endpoint", pool.path);
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

fn lists(cluster: &Listed<'_>, pools: &Pools<'_>, faults: &mut Faults) {
    let defined: Vec<_> = pools.keys().map(|name| name.as_str()).collect();
    for (field, names) in cluster.both() {
        let mut seen = BTreeSet::new();
        for (at, name) in names.iter().enumerate() {
            let path = || format!("{}.pools.{field}[{at}]", cluster.path);
            if !pools.contains_key(name) {
                let message = format!(
                    "found `{name}`, allowed: a pool of this manifest ({})",
                    listed(&defined)
                );
                faults.note(path(), Code::Reference, message);
            }
            if !seen.insert(name) {
                faults.note(
                    path(),
                    Code::Duplicate,
                    format!("found `{name}` twice in one list"),
                );
            }
        }
    }
}

/// A pool that is scaled, where one is named.
fn scaled(name: &Name, pools: &Pools<'_>) -> bool {
    let pool = pools.get(name).and_then(|read| read.value.as_ref());
    matches!(pool, Some(Pool::Dynamic(pool)) if pool.autoscaler.is_some())
}

/// Members of etcd come and go by the word of a person alone.
fn control_is_counted(cluster: &Listed<'_>, pools: &Pools<'_>, faults: &mut Faults) {
    let named = cluster.control.iter().enumerate();
    for (at, name) in named.filter(|(_, name)| scaled(name, pools)) {
        let message = format!(
            "found `{name}`, whose size changes (autoscaler), allowed: a pool with a count; \
             a control plane has 1, 3, 5 or 7 machines"
        );
        let path = format!("{}.pools.control[{at}]", cluster.path);
        faults.note(path, Code::Reference, message);
    }
}

/// An even number of members survives no more losses than one less, and etcd stops at 7.
fn control_count(cluster: &Listed<'_>, pools: &Pools<'_>, faults: &mut Faults) {
    if !cluster.read || cluster.control.iter().any(|name| scaled(name, pools)) {
        return;
    }
    let count = machines(cluster.control.iter(), pools);
    if !matches!(count, Some(1 | 3 | 5 | 7))
        && let Some(count) = count
    {
        faults.note(
            format!("{}.pools.control", cluster.path),
            Code::Range,
            format!("found {count} control machines, allowed: 1, 3, 5 or 7"),
        );
    }
}

/// Machines that may be taken back at any time take etcd along.
fn control_stays(cluster: &Listed<'_>, pools: &Pools<'_>, faults: &mut Faults) {
    for (at, name) in cluster.control.iter().enumerate() {
        let pool = pools.get(name).and_then(|read| read.value.as_ref());
        if let Some(Pool::Dynamic(pool)) = pool
            && pool.hardware.spot
        {
            let message = format!(
                "found `{name}`, whose machines may be taken back at any time (spot: true), \
                 allowed: a pool whose machines stay"
            );
            let path = format!("{}.pools.control[{at}]", cluster.path);
            faults.note(path, Code::Reference, message);
        }
    }
}

/// How many machines the named pools may have; `None` where one is not defined or has faults.
pub(super) fn machines<'a>(
    mut names: impl Iterator<Item = &'a Name>,
    pools: &Pools<'_>,
) -> Option<u32> {
    names.try_fold(0_u32, |sum, name| {
        Some(sum.saturating_add(pools.get(name)?.value.as_ref()?.most()))
    })
}

/// A load balancer that the API is reached through, and that may have no machine: the cluster would
/// be shut.
fn entrances_stand(balancers: &Balancers, pools: &Pools<'_>, faults: &mut Faults) {
    for (path, mut named) in balancers.entrances() {
        let least = named.try_fold(0_u32, |sum, name| {
            Some(sum.saturating_add(pools.get(name)?.value.as_ref()?.least()))
        });
        if least == Some(0) {
            let message = format!(
                "found no machine that is always there, allowed: at least one where a role leads to port {API_PORT}"
            );
            faults.note(format!("{path}.pools"), Code::Range, message);
        }
    }
}

/// More machines than one manifest should hold: a typing error in a count, or several fleets.
fn machines_in_all(
    clusters: &[Listed<'_>],
    balancers: &Balancers,
    pools: &Pools<'_>,
    faults: &mut Faults,
) {
    let named = clusters.iter().flat_map(Listed::both);
    let named = named.flat_map(|(_, names)| names);
    let named = named.chain(balancers.pools().map(|(_, pool)| pool));
    // Those that are not defined, or have faults, count for nothing.
    let of = |pool| machines(std::iter::once(pool), pools).unwrap_or(0);
    let all = named.map(of).fold(0, u32::saturating_add);
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
    clusters: &[Listed<'_>],
    balancers: &Balancers,
    pools: &Pools<'_>,
    faults: &mut Faults,
) {
    let fixed = |name: &Name| {
        let pool = pools.get(name);
        pool.is_some_and(|pool| matches!(pool.value, Some(Pool::Static(_))))
    };
    let mut seen: BTreeMap<&Name, String> = BTreeMap::new();
    let mut uses: Vec<(String, &Name)> = Vec::new();
    for cluster in clusters {
        for (field, names) in cluster.both() {
            let place = |at| format!("{}.pools.{field}[{at}]", cluster.path);
            let names = names.iter().enumerate();
            uses.extend(names.map(|(at, name)| (place(at), name)));
        }
    }
    let serving = balancers.pools();
    uses.extend(serving.map(|(path, name)| (path.to_owned(), name)));
    for (path, name) in uses.into_iter().filter(|(_, name)| fixed(name)) {
        let list = |path: &str| path.rsplit_once('[').map(|(list, _)| list.to_owned());
        let first = seen.insert(name, path.clone());
        // The same list twice was told already.
        if let Some(first) = first.filter(|first| list(first) != list(&path)) {
            let message =
                format!("found static pool `{name}` again; its machines are used at {first}");
            faults.note(path, Code::Duplicate, message);
        }
    }
}

/// Machines of two owners that would have one name: `a` with a pool `b-c`, and `a-b` with a pool `c`.
fn machine_names(clusters: &[Read<Declared>], balancers: &Balancers, faults: &mut Faults) {
    let of_clusters = clusters.iter().flat_map(|read| {
        let lists = read.value.iter().flat_map(|of| [&of.control, &of.compute]);
        lists
            .flatten()
            .map(|pool| (read.path.as_str(), &read.name, pool))
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

fn unused(
    pools: &[Read<Pool>],
    clusters: &[Listed<'_>],
    balancers: &Balancers,
    faults: &mut Faults,
) {
    let used: BTreeSet<_> = clusters
        .iter()
        .flat_map(|cluster| cluster.control.iter().chain(cluster.compute))
        .chain(balancers.pools().map(|(_, pool)| pool))
        .collect();
    for pool in pools {
        if !used.contains(&pool.name) {
            let message = format!(
                "found `{}`, which no cluster and no load balancer uses; remove it or name it in one",
                pool.name
            );
            faults.note(format!("{}.name", pool.path), Code::Unused, message);
        }
    }
}

fn unused_groups(groups: &[Read<u32>], pools: &[Read<Pool>], faults: &mut Faults) {
    // A pool that could not be read may belong to any group.
    let Some(pools) = pools
        .iter()
        .map(|pool| pool.value.as_ref())
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let used: BTreeSet<_> = pools
        .iter()
        .filter_map(|pool| pool.budget().group.as_ref())
        .collect();
    for group in groups.iter().filter(|group| !used.contains(&group.name)) {
        let message = format!(
            "found `{}`, which no pool belongs to; remove it or name it in a pool",
            group.name
        );
        faults.note(format!("{}.name", group.path), Code::Unused, message);
    }
}
