//! What a manifest that was admitted cannot have all the same: of this project, or of the
//! cluster that is there.

use super::growing::endpoint;
use super::{Known, nodes, seen_to_run, versions};
use model::cluster::{Desired, Machine, Origin, Role};
use model::fault::{About, Code, Doubt, Faults};
use model::manifest::{Glimpse, Manifest, Pool};
use model::name::Name;
use model::network::Network;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// What may not change in the life of a cluster, as far as the cluster could be read. Where something else is
/// wrong with a field, that comes first.
pub(super) fn refuse_impossible(
    cluster: &Glimpse,
    known: Known<'_>,
    told: impl Fn(&str) -> bool,
    faults: &mut Faults,
) {
    let before = known.desired;
    let mut refuse = |field: &str, message: String| {
        let path = cluster.path(field);
        if !told(&path) {
            faults.note(path, Code::Immutable, message);
        }
    };
    if let Some(network) = cluster.network.filter(|of| *of != before.network) {
        let message = format!(
            "found {network}, allowed: {}, the network the cluster was made with",
            before.network
        );
        refuse("network", message);
    }
    for (field, now, then) in made_with(cluster, before) {
        if let Some(now) = now.filter(|now| *now != then) {
            let message = format!("found {now}, allowed: {then}, what the cluster was made with");
            refuse(field, message);
        }
    }
    // What nodes run counts, not what was declared: a wrong version can be taken back.
    let Some((newest, version)) = versions(known).max().zip(cluster.version) else {
        return;
    };
    if version < newest {
        let run = seen_to_run(known).any(|version| version == newest);
        let who = if run {
            "which nodes run"
        } else {
            "to which a node is being brought"
        };
        let message = format!(
            "found {version}, allowed: {newest} or newer, {who}; Kubernetes cannot be downgraded"
        );
        refuse("version", message);
    }
}

/// What is in every node and every pod of a cluster stays as it was made: each field, with what it says and what
/// it said.
fn made_with(now: &Glimpse, before: &Desired) -> [(&'static str, Option<String>, String); 4] {
    let then = &before.kubernetes;
    let network = |of: Option<Network>| of.map(|of| of.to_string());
    let cni = now.cni.map(|of| of.as_str().to_owned());
    let proxy = now.proxy.map(|of| of.as_str().to_owned());
    [
        ("podNetwork", network(now.pods), then.pods.to_string()),
        (
            "serviceNetwork",
            network(now.services),
            then.services.to_string(),
        ),
        ("cni", cni, then.cni.as_str().to_owned()),
        ("kubeProxy", proxy, then.proxy.as_str().to_owned()),
    ]
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
    doubts: &[Doubt],
    clusters: &[Glimpse],
    known: &[Known<'_>],
    aside: &[Name],
    faults: &mut Faults,
) {
    let living = |name: &Name| known.iter().find(|known| known.desired.name == *name);
    let is_aside = |about: &About| match about {
        About::Apart => false,
        About::Made { cluster }
        | About::Pool { cluster, .. }
        | About::Size { cluster, .. }
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
        About::Size {
            cluster,
            pool,
            machines,
        } => living(cluster).is_some_and(|known| is_so_large(known.desired, pool, *machines)),
        About::Endpoint { cluster, endpoint } => living(cluster).is_some_and(|known| {
            let mut machines = known.desired.all();
            machines.any(|machine| stands_at(machine, *endpoint))
        }),
        About::Room { cluster, machines } => living(cluster).is_some_and(|known| {
            let has = known.desired.machines.len();
            u32::try_from(has).is_ok_and(|has| has >= *machines)
        }),
    };
    let new = doubts.iter();
    let new = new.filter(|of| !is_aside(&of.about) && !lives_so(&of.about));
    // A pool that several clusters use is one mistake.
    let mut noted = BTreeSet::new();
    let new = new.filter(|of| noted.insert((&of.fault.path, &of.fault.message)));
    for Doubt { fault, .. } in new {
        faults.note(fault.path.clone(), fault.code, fault.message.clone());
    }
    let apart = |of: &Doubt| of.about == About::Apart;
    if doubts.iter().any(apart) {
        let lives = |name: &Name| living(name).is_some() || aside.contains(name);
        refuse_overlaps(clusters, lives, faults);
    }
}

/// Whether a pool has so many machines, or may be scaled to so many.
fn is_so_large(desired: &Desired, pool: &Name, machines: u32) -> bool {
    let range = desired.autoscalers.get(pool);
    let has = desired.machines.iter().filter(|of| of.pool == *pool);
    range.is_some_and(|range| range.max >= machines)
        || u32::try_from(has.count()).is_ok_and(|has| has >= machines)
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

/// Networks of two clusters that lie over one another, where not both live with it. Of one whose name cannot
/// be read that was told, and nobody knows whether it lives.
fn refuse_overlaps(clusters: &[Glimpse], lives: impl Fn(&Name) -> bool, faults: &mut Faults) {
    let lives = |of: &Glimpse| of.name.as_ref().is_some_and(&lives);
    let new = clusters.iter().filter(|of| of.name.is_some() && !lives(of));
    // Who comes is told, of the first that is in its way.
    for cluster in new {
        let Some(network) = cluster.network else {
            continue;
        };
        let in_its_way = |other: &&Glimpse| {
            let first = other.position < cluster.position;
            let later = other.position > cluster.position;
            let twin = other.name == cluster.name;
            let overlaps = other.network.is_some_and(|of| of.overlaps(network));
            overlaps && !twin && (first || later && lives(other))
        };
        let other = clusters.iter().find(in_its_way);
        if let Some((theirs, other)) = other.and_then(|other| Some((other.network?, other))) {
            let whose = match &other.name {
                Some(name) => format!("cluster `{name}`"),
                None => format!("spec.kubernetes.clusters[{}]", other.position),
            };
            let message = format!(
                "found {network}, allowed: a network that does not overlap with {theirs} of {whose}"
            );
            faults.note(cluster.path("network"), Code::Range, message);
        }
    }
}

/// What belongs to another project: the manifest itself, and secrets, which nobody else may use.
///
/// The files that people have name a namespace beside each. Ours is the project.
pub(super) fn refuse_foreign<'a>(
    project: &Name,
    namespace: Option<&Name>,
    beside: impl Iterator<Item = (String, &'a Name)>,
    faults: &mut Faults,
) {
    if let Some(namespace) = namespace.filter(|found| *found != project) {
        faults.note(
            "metadata.namespace",
            Code::Reference,
            format!(
                "found `{namespace}`, allowed: {project}, the project of the manifest, or nothing"
            ),
        );
    }
    for (path, namespace) in beside.filter(|(_, found)| *found != project) {
        faults.note(
            path,
            Code::Reference,
            format!(
                "found `{namespace}`, allowed: {project}, the project of the manifest, or \
                 nothing; a manifest uses the secrets of its own project",
            ),
        );
    }
}

/// The namespaces that were written beside the secrets of a manifest, each with its place.
pub(super) fn beside(manifest: &Manifest) -> impl Iterator<Item = (String, &Name)> {
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
    let named = machines.chain(backups);
    named.filter_map(|named| {
        let namespace = named.namespace.as_ref()?;
        Some((format!("{}.namespace", named.path), namespace))
    })
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
