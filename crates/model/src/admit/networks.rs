//! Networks that are too small, or over one another.

use super::balancers::Balancers;
use super::manifest::Read;
use super::providers::account;
use super::references::{Placed, Pools, machines};
use crate::fault::{About, Code, Faults};
use crate::manifest::{Account, Cluster, Pool};
use crate::name::Name;
use crate::network::Network;
use crate::provider::Provider;
use std::net::Ipv4Addr;

/// Checks the networks of clusters that could be read whole.
pub(super) fn check(
    clusters: &[Placed<'_>],
    balancers: &Balancers,
    (pools, providers): (&Pools<'_>, &[Read<Account>]),
    faults: &mut Faults,
) {
    for cluster in clusters {
        network_room(cluster, balancers, pools, faults);
        network_usable(cluster, faults);
        network_beside_clouds(cluster, balancers, (pools, providers), faults);
        pod_room(cluster, balancers, pools, providers, faults);
        endpoints_outside(cluster, balancers, pools, faults);
    }
    networks_apart(clusters, faults);
}

fn network_room(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    pools: &Pools<'_>,
    faults: &mut Faults,
) {
    let capacity = cluster.value.network.capacity();
    // Every machine may have to be replaced, one after the other, by one that comes first.
    if let Some(count) = machines(cluster.pools(balancers), pools)
        && count.saturating_add(1) > capacity
    {
        let message = format!(
            "found {} with {capacity} addresses, allowed: room for {count} machines and one replacement",
            cluster.value.network
        );
        let about = room_of(cluster, count);
        faults.doubt(
            format!("{}.network", cluster.path),
            Code::Range,
            message,
            about,
        );
    }
}

/// That a cluster has as many machines already.
fn room_of(cluster: &Placed<'_>, machines: u32) -> About {
    About::Room {
        cluster: cluster.value.name.clone(),
        machines,
    }
}

/// Networks that no machine can have.
fn network_usable(cluster: &Placed<'_>, faults: &mut Faults) {
    let network = cluster.value.network;
    if !network.usable() {
        let message = format!(
            "found {network}, which machines cannot have; allowed: for example 10.10.0.0/24"
        );
        let about = About::Made {
            cluster: cluster.value.name.clone(),
        };
        faults.doubt(
            format!("{}.network", cluster.path),
            Code::Range,
            message,
            about,
        );
    }
}

/// A private network over that of machines at a cloud, which they have before they are told of it.
fn network_beside_clouds(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    (pools, providers): (&Pools<'_>, &[Read<Account>]),
    faults: &mut Faults,
) {
    let lent = |name: &Name| {
        let account = account(providers, name);
        account.is_some_and(|account| matches!(account.via, Provider::Cloud(_)))
    };
    let cloud = |pool: &&Read<Pool>| match &pool.value {
        Some(Pool::Dynamic(pool)) => lent(&pool.provider),
        Some(Pool::Static(_) | Pool::Metal(_)) | None => false,
    };
    let mut named = cluster.pools(balancers).filter_map(|name| pools.get(name));
    let found = cluster.value.network;
    let at_clouds = Network::AT_CLOUDS;
    if found.overlaps(at_clouds)
        && let Some(pool) = named.find(|pool| cloud(pool))
    {
        let message = format!(
            "found {found}, allowed: a network that does not overlap with {at_clouds}, which machines of pool `{}` have at their provider",
            pool.name
        );
        let about = About::Pool {
            cluster: cluster.value.name.clone(),
            pool: pool.name.clone(),
        };
        faults.doubt(
            format!("{}.network", cluster.path),
            Code::Range,
            message,
            about,
        );
    }
}

/// Networks that two clusters would share: whoever looked for a machine of the one could find that
/// of the other as soon as anything reaches both.
fn networks_apart(clusters: &[Placed<'_>], faults: &mut Faults) {
    for (at, cluster) in clusters.iter().enumerate() {
        let network = cluster.value.network;
        let before = clusters.iter().take(at);
        let shared = before.clone().find(|other| {
            other.value.name != cluster.value.name && other.value.network.overlaps(network)
        });
        if let Some(other) = shared {
            let message = format!(
                "found {network}, allowed: a network that does not overlap with {} of cluster `{}`",
                other.value.network, other.value.name
            );
            let path = format!("{}.network", cluster.path);
            faults.doubt(path, Code::Range, message, About::Apart);
        }
    }
}

/// Every host needs a part of the pods' network where the mesh carries it, and so does the one
/// that replaces it. Machines of the simulated world have no pods.
fn pod_room(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    pools: &Pools<'_>,
    providers: &[Read<Account>],
    faults: &mut Faults,
) {
    let entered = |name: &Name| {
        let account = account(providers, name);
        account.is_some_and(|account| account.via != Provider::Simulated)
    };
    let host = |pool: &Pool| match pool {
        Pool::Dynamic(pool) => entered(&pool.provider),
        Pool::Static(pool) => pool
            .hosts
            .iter()
            .any(|host| !host.endpoint.is_documentation()),
        Pool::Metal(_) => true,
    };
    let named = || cluster.pools(balancers).filter_map(|name| pools.get(name));
    let real = named().filter_map(|pool| pool.value.as_ref()).any(host);
    let (room, count) = (
        cluster.value.kubernetes.room(),
        machines(cluster.pools(balancers), pools),
    );
    if let (true, Some(room), Some(count)) = (real, room, count)
        && count >= room
    {
        let message = format!(
            "found {} with room for the pods of {room} machines, allowed: room for {count} \
             machines and one replacement",
            cluster.value.kubernetes.pods
        );
        let about = room_of(cluster, count);
        faults.doubt(
            format!("{}.podNetwork", cluster.path),
            Code::Range,
            message,
            about,
        );
    }
}

/// Given machines whose own address is one of the cluster's networks: there would be two ways to
/// it, and whoever connects its machines, pods or services would take the one to itself.
fn endpoints_outside(
    cluster: &Placed<'_>,
    balancers: &Balancers,
    pools: &Pools<'_>,
    faults: &mut Faults,
) {
    let Cluster {
        name,
        network,
        kubernetes,
        ..
    } = cluster.value;
    let networks = [
        (*network, "the private network"),
        (kubernetes.pods, "the network of pods"),
        (kubernetes.services, "the network of services"),
    ];
    let mut judge = |path: String, endpoint: Ipv4Addr| {
        let inside = networks.iter().find(|(of, _)| of.contains(endpoint));
        if let Some((of, what)) = inside {
            let message = format!(
                "found {endpoint}, allowed: an address outside {of}, {what} of cluster `{name}`"
            );
            let about = About::Endpoint {
                cluster: name.clone(),
                endpoint,
            };
            faults.doubt(path, Code::Range, message, about);
        }
    };
    for pool in cluster.pools(balancers).filter_map(|name| pools.get(name)) {
        let Some(Pool::Static(fixed)) = &pool.value else {
            continue;
        };
        for (at, host) in fixed.hosts.iter().enumerate() {
            judge(format!("{}.nodes[{at}].endpoint", pool.path), host.endpoint);
        }
        if let Some(jump) = &fixed.jump {
            judge(format!("{}.jumpHost.endpoint", pool.path), jump.endpoint);
        }
    }
}
