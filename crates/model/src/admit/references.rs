//! What no field can tell alone: names used twice, references that lead nowhere, networks
//! too small or shared.

use super::manifest::{Read, listed};
use crate::fault::{Code, Faults};
use crate::manifest::{Cluster, Pool, Provider};
use crate::name::Name;
use std::collections::{BTreeMap, BTreeSet};

type Pools<'a> = BTreeMap<&'a Name, &'a Read<Pool>>;

/// Checks what the parts say about each other.
pub(super) fn check(
    providers: &[Read<Provider>],
    pools: &[Read<Pool>],
    clusters: &[Read<Cluster>],
    faults: &mut Faults,
) {
    unique(providers, "provider", faults);
    unique(pools, "pool", faults);
    unique(clusters, "cluster", faults);
    endpoints(pools, faults);
    let by_name: Pools<'_> = pools.iter().map(|pool| (&pool.name, pool)).collect();
    let whole: Vec<_> = clusters.iter().filter_map(Placed::of).collect();
    for cluster in &whole {
        lists(cluster, &by_name, faults);
        control_count(cluster, &by_name, faults);
        network_room(cluster, &by_name, faults);
    }
    networks_apart(&whole, faults);
    static_pools_once(&whole, &by_name, faults);
    // A cluster with faults may use any pool.
    if whole.len() == clusters.len() {
        unused(pools, &whole, faults);
    }
}

/// A cluster that could be read whole, with its place.
struct Placed<'a> {
    path: &'a str,
    value: &'a Cluster,
}

impl<'a> Placed<'a> {
    fn of(read: &'a Read<Cluster>) -> Option<Self> {
        Some(Self {
            path: &read.path,
            value: read.value.as_ref()?,
        })
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

fn lists(cluster: &Placed<'_>, pools: &Pools<'_>, faults: &mut Faults) {
    let defined: Vec<_> = pools.keys().map(|name| name.as_str()).collect();
    for (field, names) in [
        ("control", &cluster.value.control),
        ("compute", &cluster.value.compute),
    ] {
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

/// An even number of members survives no more losses than one less, and etcd stops at 7.
fn control_count(cluster: &Placed<'_>, pools: &Pools<'_>, faults: &mut Faults) {
    let count = machines(&cluster.value.control, pools);
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

fn network_room(cluster: &Placed<'_>, pools: &Pools<'_>, faults: &mut Faults) {
    let names: Vec<_> = cluster
        .value
        .control
        .iter()
        .chain(&cluster.value.compute)
        .cloned()
        .collect();
    let capacity = cluster.value.network.capacity();
    // Every machine may have to be replaced, one after the other, by one that comes first.
    if let Some(count) = machines(&names, pools)
        && count.saturating_add(1) > capacity
    {
        faults.note(
            format!("{}.network", cluster.path),
            Code::Range,
            format!(
                "found {} with {capacity} addresses, allowed: room for {count} machines and one replacement",
                cluster.value.network
            ),
        );
    }
}

/// How many machines the named pools declare; `None` where one is not defined or has faults.
fn machines(names: &[Name], pools: &Pools<'_>) -> Option<u32> {
    names.iter().try_fold(0_u32, |sum, name| {
        Some(sum.saturating_add(pools.get(name)?.value.as_ref()?.count()))
    })
}

fn networks_apart(clusters: &[Placed<'_>], faults: &mut Faults) {
    for cluster in clusters {
        let reserved = RESERVED.iter().find(|(network, _)| {
            network
                .parse::<crate::network::Network>()
                .is_ok_and(|network| network.overlaps(cluster.value.network))
        });
        if let Some((network, what)) = reserved {
            faults.note(
                format!("{}.network", cluster.path),
                Code::Range,
                format!(
                    "found {}, which overlaps {network}, the network of {what}",
                    cluster.value.network
                ),
            );
        }
    }
}

/// Networks inside every cluster that its machines' network must not meet.
const RESERVED: [(&str, &str); 2] = [("10.244.0.0/16", "pods"), ("10.96.0.0/12", "services")];

fn static_pools_once(clusters: &[Placed<'_>], pools: &Pools<'_>, faults: &mut Faults) {
    let mut seen: BTreeMap<&Name, String> = BTreeMap::new();
    for cluster in clusters {
        for (field, names) in [
            ("control", &cluster.value.control),
            ("compute", &cluster.value.compute),
        ] {
            for (at, name) in names.iter().enumerate() {
                let fixed = pools
                    .get(name)
                    .is_some_and(|pool| matches!(pool.value, Some(Pool::Static(_))));
                let path = format!("{}.pools.{field}[{at}]", cluster.path);
                let first = if fixed {
                    seen.insert(name, path.clone())
                } else {
                    None
                };
                // The same list twice was told already.
                if let Some(first) = first
                    .filter(|first| !first.starts_with(&format!("{}.pools.{field}[", cluster.path)))
                {
                    let message = format!(
                        "found static pool `{name}` again; its machines are used at {first}"
                    );
                    faults.note(path, Code::Duplicate, message);
                }
            }
        }
    }
}

fn unused(pools: &[Read<Pool>], clusters: &[Placed<'_>], faults: &mut Faults) {
    let used: BTreeSet<_> = clusters
        .iter()
        .flat_map(|cluster| cluster.value.control.iter().chain(&cluster.value.compute))
        .collect();
    for pool in pools {
        if !used.contains(&pool.name) {
            let message = format!(
                "found `{}`, which no cluster uses; remove it or name it in a cluster",
                pool.name
            );
            faults.note(format!("{}.name", pool.path), Code::Unused, message);
        }
    }
}
