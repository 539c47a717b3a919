//! Networks that are too small, or over one another.

use super::balancers::Balancers;
use super::manifest::Declared;
use super::parts::{Names, Parts, Read};
use super::pools::{Kind, Stock};
use super::references::{Counted, machines};
use crate::fault::{About, Code, Faults};
use crate::manifest::{CLOUD_ADDRESSES, Dynamic};
use crate::name::Name;
use crate::network::Network;
use crate::provider::Provider;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Checks the networks of clusters, as far as they could be read.
pub(super) fn check(
    clusters: &Parts<Declared>,
    balancers: &Balancers,
    pools: &Parts<Stock>,
    faults: &mut Faults,
) {
    let placed: Vec<_> = clusters.all.iter().map(|read| Placed { read }).collect();
    for cluster in &placed {
        network_room(cluster, balancers, pools, faults);
        network_usable(cluster, faults);
        networks_beside_clouds(cluster, balancers, pools, faults);
        pool_room(cluster, balancers, pools, faults);
        pod_room(cluster, balancers, pools, faults);
        endpoints_outside(cluster, balancers, pools, faults);
    }
    networks_apart(&placed, faults);
}

/// A cluster with its place.
struct Placed<'a> {
    read: &'a Read<Declared>,
}

impl<'a> Placed<'a> {
    /// What it and its load balancers say of pools whose machines are in its network.
    fn lists(&self, balancers: &'a Balancers) -> impl Iterator<Item = &'a Names> {
        let Declared {
            control, compute, ..
        } = &self.read.value;
        let name = self.read.name().into_iter();
        let serving = name.flat_map(|name| balancers.pools_for(name));
        [control, compute].into_iter().chain(serving)
    }

    /// These pools, as far as there are such.
    fn pools(
        &self,
        balancers: &'a Balancers,
        pools: &'a Parts<Stock>,
    ) -> impl Iterator<Item = &'a Read<Stock>> {
        let named = self.lists(balancers).flat_map(Names::iter);
        named.filter_map(|name| pools.get(name))
    }

    /// Notes what is a fault unless the cluster lives with it. Nobody knows whether one lives whose name
    /// cannot be read; it is a fault until that is mended.
    fn doubt(
        &self,
        path: String,
        message: String,
        about: impl FnOnce(Name) -> About,
        faults: &mut Faults,
    ) {
        match self.read.name() {
            Some(name) => faults.doubt(path, Code::Range, message, about(name.clone())),
            None => faults.note(path, Code::Range, message),
        }
    }

    fn path(&self, field: &str) -> String {
        format!("{}.{field}", self.read.path)
    }
}

/// How many machines there must be room for, and the words for it.
fn room_for(counted: Counted) -> (u32, String) {
    let count = counted.known.saturating_add(counted.unknown);
    let least = if counted.unknown > 0 { "at least " } else { "" };
    (
        count,
        format!("room for {least}{count} machines and one replacement"),
    )
}

fn network_room(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    pools: &Parts<Stock>,
    faults: &mut Faults,
) {
    let counted = machines(cluster.lists(balancers), pools);
    let (Some(network), Some(counted)) = (cluster.read.value.network, counted) else {
        return;
    };
    let capacity = network.capacity();
    let (machines, room) = room_for(counted);
    // Every machine may have to be replaced, one after the other, by one that comes first.
    if machines.saturating_add(1) > capacity {
        let message = format!("found {network} with {capacity} addresses, allowed: {room}");
        let about = |cluster| About::Room { cluster, machines };
        cluster.doubt(cluster.path("network"), message, about, faults);
    }
}

/// Networks that no machine can have.
fn network_usable(cluster: &Placed<'_>, faults: &mut Faults) {
    let network = cluster.read.value.network;
    if let Some(network) = network.filter(|network| !network.usable()) {
        let message = format!(
            "found {network}, which machines cannot have; allowed: for example 10.10.0.0/24"
        );
        let about = |cluster| About::Made { cluster };
        cluster.doubt(cluster.path("network"), message, about, faults);
    }
}

/// A network of the cluster over that of machines at a cloud, which they have before they are told of it:
/// whoever looked for a pod or a service there would find a machine.
fn networks_beside_clouds(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    pools: &Parts<Stock>,
    faults: &mut Faults,
) {
    let cloud = |pool: &&Read<Stock>| match &pool.value.kind {
        Kind::Dynamic(made) => matches!(made.via, Some(Provider::Cloud(_))),
        Kind::Static(_) | Kind::Metal => false,
    };
    let at_clouds = Network::AT_CLOUDS;
    let Declared {
        network,
        kubernetes,
        ..
    } = &cluster.read.value;
    let networks = [
        ("network", *network),
        ("podNetwork", kubernetes.pods),
        ("serviceNetwork", kubernetes.services),
    ];
    let pool = cluster.pools(balancers, pools).find(cloud);
    let Some(pool) = pool.and_then(Read::name) else {
        return;
    };
    for (field, found) in networks {
        let Some(found) = found.filter(|found| found.overlaps(at_clouds)) else {
            continue;
        };
        let message = format!(
            "found {found}, allowed: a network that does not overlap with {at_clouds}, which machines of pool `{pool}` have at their provider"
        );
        let pool = pool.clone();
        let about = |cluster| About::Pool { cluster, pool };
        cluster.doubt(cluster.path(field), message, about, faults);
    }
}

/// Pools at clouds that are larger than the network that each has there: some of their machines would never
/// have an address.
fn pool_room(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    pools: &Parts<Stock>,
    faults: &mut Faults,
) {
    let mut judged = BTreeSet::new();
    for pool in cluster.pools(balancers, pools) {
        let (Kind::Dynamic(made), Some((_, machines))) = (&pool.value.kind, pool.value.size) else {
            continue;
        };
        let (Some(via), Some(name)) = (made.via, pool.name()) else {
            continue;
        };
        let max = Dynamic::count_max(via, made.replace);
        if machines <= max || !judged.insert(name) {
            continue;
        }
        let field = if made.scaled {
            "autoscaler.max"
        } else {
            "count"
        };
        let message = format!(
            "found {machines}, allowed: at most {max}, the {CLOUD_ADDRESSES} addresses that a pool has with a provider \
             of type {} less a surge of {}",
            via.as_str(),
            CLOUD_ADDRESSES - max
        );
        let pool_name = name.clone();
        let about = |cluster| About::Size {
            cluster,
            pool: pool_name,
            machines,
        };
        cluster.doubt(format!("{}.{field}", pool.path), message, about, faults);
    }
}

/// Networks that two clusters would share: whoever looked for a machine of the one could find that
/// of the other as soon as anything reaches both.
fn networks_apart(clusters: &[Placed<'_>], faults: &mut Faults) {
    for (at, cluster) in clusters.iter().enumerate() {
        let Some(network) = cluster.read.value.network else {
            continue;
        };
        let name = cluster.read.name();
        let mut before = clusters.iter().take(at).map(|other| other.read);
        let shared = before.find_map(|other| {
            let twin = name.is_some() && other.name() == name;
            let theirs = other.value.network.filter(|of| of.overlaps(network))?;
            (!twin).then_some((theirs, other))
        });
        if let Some((theirs, other)) = shared {
            let whose = match other.name() {
                Some(name) => format!("cluster `{name}`"),
                None => other.path.clone(),
            };
            let message = format!(
                "found {network}, allowed: a network that does not overlap with {theirs} of {whose}"
            );
            let about = |_| About::Apart;
            cluster.doubt(cluster.path("network"), message, about, faults);
        }
    }
}

/// Every host needs a part of the pods' network where the mesh carries it, and so does the one
/// that replaces it. Machines of the simulated world have no pods.
fn pod_room(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    pools: &Parts<Stock>,
    faults: &mut Faults,
) {
    let host = |pool: &Read<Stock>| match &pool.value.kind {
        Kind::Dynamic(made) => made.via.is_some_and(|via| via != Provider::Simulated),
        Kind::Static(fixed) => {
            let mut hosts = fixed.hosts.iter();
            hosts.any(|host| !host.endpoint.is_documentation())
        }
        Kind::Metal => true,
    };
    let counted = machines(cluster.lists(balancers), pools);
    let (Some((room, of)), Some(counted)) = (cluster.read.value.kubernetes.room(), counted) else {
        return;
    };
    let (machines, wanted) = room_for(counted);
    if machines >= room && cluster.pools(balancers, pools).any(host) {
        let message =
            format!("found {of} with room for the pods of {room} machines, allowed: {wanted}");
        let about = |cluster| About::Room { cluster, machines };
        cluster.doubt(cluster.path("podNetwork"), message, about, faults);
    }
}

/// Given machines whose own address is one of the cluster's networks: there would be two ways to
/// it, and whoever connects its machines, pods or services would take the one to itself.
fn endpoints_outside(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    pools: &Parts<Stock>,
    faults: &mut Faults,
) {
    let Declared {
        network,
        kubernetes,
        ..
    } = &cluster.read.value;
    let networks = [
        (*network, "the private network"),
        (kubernetes.pods, "the network of pods"),
        (kubernetes.services, "the network of services"),
    ];
    let whose = match cluster.read.name() {
        Some(name) => format!("cluster `{name}`"),
        None => cluster.read.path.clone(),
    };
    let mut judge = |path: String, endpoint: Ipv4Addr| {
        let inside = |of: Option<Network>| of.filter(|of| of.contains(endpoint));
        let found = networks
            .iter()
            .find_map(|(of, what)| Some((inside(*of)?, what)));
        if let Some((of, what)) = found {
            let message =
                format!("found {endpoint}, allowed: an address outside {of}, {what} of {whose}");
            let about = |cluster| About::Endpoint { cluster, endpoint };
            cluster.doubt(path, message, about, faults);
        }
    };
    for pool in cluster.pools(balancers, pools) {
        let Kind::Static(fixed) = &pool.value.kind else {
            continue;
        };
        for host in &fixed.hosts {
            judge(format!("{}.endpoint", host.node), host.endpoint);
        }
        let jump = fixed.jump.as_ref().and_then(|jump| jump.endpoint);
        if let Some(endpoint) = jump {
            judge(format!("{}.jumpHost.endpoint", pool.path), endpoint);
        }
    }
}
