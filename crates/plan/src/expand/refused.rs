//! What a manifest that was admitted cannot have all the same: of this project, or of the
//! cluster that is there.

use super::growing::endpoint;
use super::{Known, nodes, versions};
use model::cluster::{Desired, Machine, Role};
use model::fault::{Code, Faults};
use model::kubernetes::Kubernetes;
use model::manifest::{Cluster, Manifest, Pool};
use model::name::Name;

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
        faults.note(
            path("version"),
            Code::Immutable,
            format!(
                "found {}, allowed: {newest} or newer, which nodes run; Kubernetes cannot be downgraded",
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
    let accounts = manifest.providers.values();
    let accounts = accounts.filter_map(|account| account.secret.as_ref());
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
    for named in accounts.chain(hosts).chain(jumps).chain(backups) {
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
    if homeless > 0 {
        faults.note(
            format!("spec.kubernetes.clusters[{at}].network"),
            Code::Range,
            format!(
                "found {} with {} addresses, allowed: room for {} machines and {} that are leaving; \
                 wait until those are gone, or ask for fewer",
                grown.network,
                grown.network.capacity(),
                grown.machines.len(),
                grown.leaving.len(),
            ),
        );
    }
}
