//! What a manifest that was admitted cannot have all the same: of this project, or of the
//! cluster that is there.

use super::growing::endpoint;
use super::{Known, nodes, seen_to_run, versions};
use model::cluster::{Desired, Machine, Origin, Role};
use model::fault::{About, Code, Doubt, Faults};
use model::kubernetes::Kubernetes;
use model::manifest::{Cluster, Manifest, Pool};
use model::name::Name;
use std::net::Ipv4Addr;

/// What may not change in the life of a cluster.
pub(super) fn refuse_impossible(
    at: usize,
    cluster: &Cluster,
    known: Known<'_>,
    faults: &mut Faults,
) {
    let before = known.desired;
    let path = |field: &str| format!("spec.kubernetes.clusters[{at}].{field}");
    if cluster.network != before.network {
        faults.note(
            path("network"),
            Code::Immutable,
            format!(
                "found {}, allowed: {}, the network the cluster was made with",
                cluster.network, before.network
            ),
        );
    }
    unmoved(at, cluster, before, faults);
    // What nodes run counts, not what was declared: a wrong version can be taken back.
    let newest = versions(known).max();
    if let Some(newest) = newest.filter(|newest| cluster.version < *newest) {
        let run = seen_to_run(known).any(|version| version == newest);
        let who = if run {
            "which nodes run"
        } else {
            "to which a node is being brought"
        };
        faults.note(
            path("version"),
            Code::Immutable,
            format!(
                "found {}, allowed: {newest} or newer, {who}; Kubernetes cannot be downgraded",
                cluster.version
            ),
        );
    }
}

/// What is in every node and every pod of a cluster stays as it was made.
fn unmoved(at: usize, cluster: &Cluster, before: &Desired, faults: &mut Faults) {
    let (now, then) = (&cluster.kubernetes, &before.kubernetes);
    let words = |kubernetes: &Kubernetes| {
        [
            ("podNetwork", kubernetes.pods.to_string()),
            ("serviceNetwork", kubernetes.services.to_string()),
            ("cni", kubernetes.cni.as_str().to_owned()),
            ("kubeProxy", kubernetes.proxy.as_str().to_owned()),
        ]
    };
    for ((field, now), (_, then)) in words(now).into_iter().zip(words(then)) {
        if now != then {
            faults.note(
                format!("spec.kubernetes.clusters[{at}].{field}"),
                Code::Immutable,
                format!("found {now}, allowed: {then}, what the cluster was made with"),
            );
        }
    }
}

/// A cluster that somebody protected, and the manifest no longer declares.
pub(super) fn refuse_unprotected(gone: &Desired, faults: &mut Faults) {
    if gone.protected {
        let message = format!(
            "found no cluster {0}, which is protected, allowed: {0}; declare it once with \
             deletionProtection: false, then take it out",
            gone.name
        );
        faults.note("spec.kubernetes.clusters", Code::Immutable, message);
    }
}

/// What only clusters may have that live with it: they were made before the rule was.
/// What of those lives that are set aside cannot be told, and they are not touched.
pub(super) fn refuse_doubtful(
    manifest: &Manifest,
    known: &[Known<'_>],
    aside: &[Name],
    faults: &mut Faults,
) {
    let living = |name: &Name| known.iter().find(|known| known.desired.name == *name);
    let is_aside = |about: &About| match about {
        About::Apart => false,
        About::Made { cluster }
        | About::Pool { cluster, .. }
        | About::Endpoint { cluster, .. }
        | About::Room { cluster, .. } => aside.contains(cluster),
    };
    let lives_so = |about: &About| match about {
        // Judged below, of each two.
        About::Apart => true,
        About::Made { cluster } => living(cluster).is_some(),
        About::Pool { cluster, pool } => living(cluster).is_some_and(|known| {
            let mut machines = known.desired.all();
            machines.any(|machine| machine.pool == *pool)
        }),
        About::Endpoint { cluster, endpoint } => living(cluster).is_some_and(|known| {
            let mut machines = known.desired.all();
            machines.any(|machine| stands_at(machine, *endpoint))
        }),
        About::Room { cluster, machines } => living(cluster).is_some_and(|known| {
            let has = known.desired.machines.len();
            u32::try_from(has).is_ok_and(|has| has >= *machines)
        }),
    };
    let new = manifest.doubts.iter();
    let new = new.filter(|of| !is_aside(&of.about) && !lives_so(&of.about));
    for Doubt { fault, .. } in new {
        faults.note(fault.path.clone(), fault.code, fault.message.clone());
    }
    let apart = |of: &Doubt| of.about == About::Apart;
    if manifest.doubts.iter().any(apart) {
        let lives = |name: &Name| living(name).is_some() || aside.contains(name);
        refuse_overlaps(manifest, lives, faults);
    }
}

/// Whether a machine was given at this address, or is reached through it.
fn stands_at(machine: &Machine, address: Ipv4Addr) -> bool {
    match &machine.origin {
        Origin::Given { endpoint, jump, .. } => {
            *endpoint == address || jump.as_ref().is_some_and(|jump| jump.endpoint == address)
        }
        Origin::Made { .. } => false,
    }
}

/// Networks of two clusters that lie over one another, where not both live with it.
fn refuse_overlaps(manifest: &Manifest, lives: impl Fn(&Name) -> bool, faults: &mut Faults) {
    let clusters = || manifest.clusters.iter().enumerate();
    // Who comes is told, of the first that is in its way.
    for (at, cluster) in clusters().filter(|(_, cluster)| !lives(&cluster.name)) {
        let in_its_way = |(other_at, other): &(usize, &Cluster)| {
            other.network.overlaps(cluster.network)
                && (*other_at < at || *other_at > at && lives(&other.name))
        };
        if let Some((_, other)) = clusters().find(in_its_way) {
            let message = format!(
                "found {}, allowed: a network that does not overlap with {} of cluster `{}`",
                cluster.network, other.network, other.name
            );
            let path = format!("spec.kubernetes.clusters[{at}].network");
            faults.note(path, Code::Range, message);
        }
    }
}

/// What belongs to another project: the manifest itself, and secrets, which nobody else may use.
///
/// The files that people have name a namespace beside each. Ours is the project.
pub(super) fn refuse_foreign(project: &Name, manifest: &Manifest, faults: &mut Faults) {
    let namespace = manifest.namespace.as_ref();
    if let Some(namespace) = namespace.filter(|found| *found != project) {
        faults.note(
            "metadata.namespace",
            Code::Reference,
            format!(
                "found `{namespace}`, allowed: {project}, the project of the manifest, or nothing"
            ),
        );
    }
    let providers = manifest.providers.values();
    let accounts = providers.clone();
    let accounts = accounts.filter_map(|account| account.secret.as_ref());
    let modules = providers.filter_map(|account| account.templates_secret.as_ref());
    let given = manifest.pools.values().filter_map(|pool| match pool {
        Pool::Static(fixed) => Some(fixed),
        Pool::Dynamic(_) | Pool::Metal(_) => None,
    });
    let jumps = given.clone().filter_map(|pool| pool.jump.as_ref());
    let jumps = jumps.filter_map(|jump| jump.secret.as_ref());
    let hosts = given.flat_map(|pool| &pool.hosts);
    let hosts = hosts.filter_map(|host| host.secret.as_ref());
    let clusters = manifest.clusters.iter();
    let backups = clusters.filter_map(|cluster| cluster.backup_secret.as_ref());
    let machines = accounts.chain(modules).chain(hosts).chain(jumps);
    for named in machines.chain(backups) {
        if let Some(namespace) = named.namespace.as_ref().filter(|found| *found != project) {
            faults.note(
                format!("{}.namespace", named.path),
                Code::Reference,
                format!(
                    "found `{namespace}`, allowed: {project}, the project of the manifest, or \
                     nothing; a manifest uses the secrets of its own project",
                ),
            );
        }
    }
}

/// A control plane whose last member would have to go before another can come, because the
/// other stands at the same address.
pub(super) fn refuse_beheading(at: usize, grown: &Desired, known: Known<'_>, faults: &mut Faults) {
    let members = nodes(known.observed);
    let control = |machines: &[Machine]| -> Vec<Machine> {
        let role = |machine: &&Machine| machine.role == Role::Control;
        machines.iter().filter(role).cloned().collect()
    };
    let (stay, leave) = (control(&grown.machines), control(&grown.leaving));
    let left = leave.iter().any(|machine| members.contains(&machine.id));
    let kept = stay.iter().any(|machine| members.contains(&machine.id));
    let can_come = |machine: &Machine| {
        let place = endpoint(machine);
        place.is_none() || leave.iter().all(|other| endpoint(other) != place)
    };
    if left && !kept && !stay.iter().any(can_come) {
        faults.note(
            format!("spec.kubernetes.clusters[{at}].pools.control"),
            Code::Immutable,
            "the last control machine cannot move to another pool: nobody is left to take over; \
             keep its pool, or add another control machine first",
        );
    }
}

/// Machines for which the network has no address left.
///
/// Admission sees to it that the pools fit; machines on their way out and wishes to scale
/// come on top.
pub(super) fn refuse_homeless(at: usize, grown: &Desired, faults: &mut Faults) {
    let homeless = grown
        .machines
        .iter()
        .filter(|machine| machine.address.is_unspecified())
        .count();
    let path = format!("spec.kubernetes.clusters[{at}].network");
    // That the pools alone do not fit was told already.
    if homeless == 0 || faults.tells(&path) {
        return;
    }
    let room = match grown.leaving.len() {
        0 => format!("{} machines; ask for fewer", grown.machines.len()),
        leaving => format!(
            "{} machines and {leaving} that are leaving; wait until those are gone, or ask for fewer",
            grown.machines.len()
        ),
    };
    let (network, capacity) = (grown.network, grown.network.capacity());
    let message = format!("found {network} with {capacity} addresses, allowed: room for {room}");
    faults.note(path, Code::Range, message);
}
