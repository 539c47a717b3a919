//! What the world will look like when a task has gone well.
//!
//! The happy path and nothing else; the simulator shows the others.

use model::addon::{Addon, AddonName};
use model::balancer::{Balance, BalanceFact};
use model::care::Care;
use model::cluster::{Machine, Origin, Role};
use model::mesh::{Mesh, MeshKey};
use model::observed::{
    CertificatesFact, HostFact, MachineFact, Member, NodeFact, Observed, PortFact, Seen, Wellbeing,
};
use model::snapshot::{RestoredFact, Snapshot, SnapshotId, SnapshotsFact, Taking};
use model::task::{Action, Kind};
use model::time::Timestamp;
use model::version::Version;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Whether nobody does this without the API of the cluster.
fn asks_the_api(action: &Action) -> bool {
    let kind = action.kind();
    let on_hosts = matches!(kind, Kind::Renew | Kind::Snapshot | Kind::Restore);
    kind.of_kubernetes() && !on_hosts
}

/// Changes `observed` to what will be seen after `action` on `machine` has gone well.
pub fn predict(observed: &mut Observed, machine: &Machine, action: &Action, now: Timestamp) {
    of_cluster(observed, action, now);
    if asks_the_api(action) {
        observed.silence = None;
    }
    let seen = observed.machines.entry(machine.id).or_default();
    match action {
        Action::Create | Action::CreateExposed | Action::Prepare => {
            let open = *action == Action::CreateExposed;
            seen.port = machine.has_firewall().then_some((PortFact { open }, now));
            let (reference, address) = (machine.name.to_string(), entered(machine));
            seen.machine = Some((MachineFact::Running { reference, address }, now));
            seen.host = machine.origin.is_host().then(|| (bare(address), now));
        }
        Action::Equip { recipe } => {
            let (host, _) = seen.host.get_or_insert_with(|| (HostFact::default(), now));
            host.equipped = Some(recipe.fingerprint());
            host.mesh_key = host.mesh_key.take().or_else(|| key_to_come(machine));
        }
        Action::Balance { balance } => {
            let (host, _) = seen.host.get_or_insert_with(|| (HostFact::default(), now));
            host.balance = Some(all_answer(balance));
        }
        Action::Name { naming } => seen.names = Some((naming.fact(), now)),
        Action::Expose => seen.port = Some((PortFact { open: true }, now)),
        Action::Shut => seen.port = Some((PortFact { open: false }, now)),
        Action::Key
        | Action::Mesh { .. }
        | Action::Install { .. }
        | Action::Clear { .. }
        | Action::Snapshot { .. }
        | Action::Restore { .. } => {}
        Action::Init { version, care, .. } => comes(seen, machine, (*version, care, false), now),
        Action::Join {
            version,
            care,
            gated,
        } => comes(seen, machine, (*version, care, *gated), now),
        Action::Tend { care: told } => {
            if let Some((NodeFact::Joined { care, asks, .. }, _)) = &mut seen.node {
                *asks = false;
                *care = Some(told.fingerprint());
            }
        }
        Action::Drain => serves(seen, false),
        Action::Uncordon | Action::Readmit { .. } => serves(seen, true),
        Action::Upgrade { version } => {
            // Whoever was left half done before is ready again.
            change(seen, |ready, runs| (*ready, *runs) = (true, *version));
            // kubeadm renews certificates on its way.
            renewed(seen, now);
        }
        Action::Renew { .. } => {
            change(seen, |ready, _| *ready = true);
            renewed(seen, now);
        }
        Action::Leave => seen.node = Some((NodeFact::Absent, now)),
        Action::Delete | Action::Release => {
            seen.machine = Some((MachineFact::Absent, now));
            seen.port = None;
            // Who did not leave before is still known, and not ready any more.
            if let Some((NodeFact::Joined { ready, .. }, _)) = &mut seen.node {
                *ready = false;
            }
        }
    }
}

/// What will be seen of the cluster as a whole.
fn of_cluster(observed: &mut Observed, action: &Action, now: Timestamp) {
    match action {
        Action::Init { .. } => {
            observed.initialised = true;
            let none = || (SnapshotsFact::none_since(now), now);
            observed.snapshots.get_or_insert_with(none);
        }
        // There is something to join.
        Action::Join { .. } => observed.initialised = true,
        Action::Key => observed.access = Some("a key to come".to_owned()),
        Action::Mesh { mesh } => connect(observed, mesh, now),
        Action::Install { addons, remove } => install(observed, addons, remove, now),
        Action::Clear { leftovers } => {
            for leftover in leftovers {
                let seen = observed.machines.entry(leftover.machine).or_default();
                seen.node = Some((NodeFact::Absent, now));
            }
        }
        Action::Snapshot { taking } => save(observed, taking, now),
        Action::Restore { restoring } => {
            let restored = RestoredFact {
                snapshot: restoring.snapshot.clone(),
                wish: restoring.wish,
            };
            observed.restored = Some((restored, now));
            // It has those members, and no others.
            let none = || (Wellbeing::default(), now);
            let (told, at) = observed.wellbeing.get_or_insert_with(none);
            let members = restoring.members().map(|machine| Member {
                name: machine.name.to_string(),
                healthy: true,
                learner: false,
            });
            (told.etcd, *at) = (members.collect(), now);
        }
        Action::Create
        | Action::CreateExposed
        | Action::Prepare
        | Action::Equip { .. }
        | Action::Balance { .. }
        | Action::Name { .. }
        | Action::Expose
        | Action::Shut
        | Action::Tend { .. }
        | Action::Drain
        | Action::Upgrade { .. }
        | Action::Renew { .. }
        | Action::Uncordon
        | Action::Readmit { .. }
        | Action::Leave
        | Action::Delete
        | Action::Release => {}
    }
}

/// One more snapshot is kept, and those are gone that it outlives.
fn save(observed: &mut Observed, taking: &Taking, now: Timestamp) {
    let none = || (SnapshotsFact::none_since(now), now);
    let (fact, at) = observed.snapshots.get_or_insert_with(none);
    // Nobody knows its digest yet.
    let Ok(id) = SnapshotId::of(now, "00000000") else {
        return;
    };
    fact.kept.push(Snapshot {
        id,
        size: 0,
        version: taking.version,
        before: taking.before,
    });
    let gone = taking.keep.outlived(&fact.kept, taking.guard, now);
    fact.kept.retain(|kept| !gone.contains(&kept.id));
    fact.answered = taking.wish;
    *at = now;
}

/// Where a machine will answer: where it was given to us, else, as far as anybody knows before,
/// where its cluster has it.
const fn entered(machine: &Machine) -> IpAddr {
    IpAddr::V4(match &machine.origin {
        Origin::Given { endpoint, .. } => *endpoint,
        Origin::Made { .. } => machine.address,
    })
}

/// A host before anything was done to it.
fn bare(address: IpAddr) -> HostFact {
    HostFact {
        at: Some(address),
        ..HostFact::default()
    }
}

/// Stands for the key that will be born on the host: nobody knows it yet, and no two are alike.
fn key_to_come(machine: &Machine) -> Option<MeshKey> {
    let digits: String = machine.id.to_string().replace('-', "/");
    format!("{digits:A<43}=").parse().ok()
}

/// What is installed is there and well, and what is removed is gone.
fn install(observed: &mut Observed, addons: &[Addon], remove: &[AddonName], now: Timestamp) {
    let (seen, at) = observed
        .addons
        .get_or_insert_with(|| (BTreeMap::new(), now));
    *at = now;
    seen.retain(|name, _| !remove.contains(name));
    seen.extend(addons.iter().map(|addon| (addon.name, addon.installed())));
}

/// Every machine that is told of its peers has them.
fn connect(observed: &mut Observed, mesh: &Mesh, now: Timestamp) {
    let wishes = mesh.wishes();
    for id in &mesh.to {
        let seen = observed.machines.entry(*id).or_default();
        let (host, _) = seen.host.get_or_insert_with(|| (HostFact::default(), now));
        host.mesh = wishes.met(*id);
    }
}

fn all_answer(balance: &Balance) -> BalanceFact {
    let healthy = balance.listeners.iter().map(|listener| {
        let all = u32::try_from(listener.targets.len()).unwrap_or(u32::MAX);
        (listener.role.clone(), all)
    });
    BalanceFact {
        told: balance.fingerprint(),
        healthy: healthy.collect(),
    }
}

/// Certificates are good for a year.
fn certified(now: Timestamp) -> CertificatesFact {
    CertificatesFact {
        end: now.plus(Duration::from_hours(365 * 24)),
    }
}

/// There are new certificates, where there were any.
fn renewed(seen: &mut Seen, now: Timestamp) {
    if let Some((certificates, _)) = &mut seen.certificates {
        *certificates = certified(now);
    }
}

/// A machine is a node from now on.
fn comes(
    seen: &mut Seen,
    machine: &Machine,
    (version, care, gated): (Version, &Care, bool),
    now: Timestamp,
) {
    let node = NodeFact::Joined {
        ready: true,
        cordoned: gated,
        version,
        care: Some(care.fingerprint()),
        asks: false,
        gated,
    };
    seen.node = Some((node, now));
    if machine.role == Role::Control {
        seen.certificates = Some((certified(now), now));
    }
}

/// Takes a node out of service, or lets it serve. Whoever does so has made an end of its coming.
fn serves(seen: &mut Seen, does: bool) {
    if let Some((
        NodeFact::Joined {
            cordoned, gated, ..
        },
        _,
    )) = &mut seen.node
    {
        (*cordoned, *gated) = (!does, false);
    }
}

/// Changes whether a node is ready, and what it runs, where it is one.
fn change(seen: &mut Seen, edit: impl FnOnce(&mut bool, &mut Version)) {
    if let Some((NodeFact::Joined { ready, version, .. }, _)) = &mut seen.node {
        edit(ready, version);
    }
}
