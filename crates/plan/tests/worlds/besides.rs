//! What clusters of worlds have besides Kubernetes, and should have; what etcd tells; and who else
//! is there.

use crate::NOW;
use crate::shape::{Voice, World};
use model::addon::{AddonFact, AddonName, Named, decided};
use model::cluster::{Desired, Role};
use model::id::{MachineId, Origin};
use model::kubernetes::Cni;
use model::observed::{MachineFact, Member, Observed, Seen, Wellbeing};
use model::stray::Stray;
use model::time::Timestamp;
use model::version::Version;
use std::collections::BTreeMap;
use std::time::Duration;

fn named(name: AddonName) -> Named {
    Named {
        name,
        version: None,
        values: BTreeMap::new(),
    }
}

/// All of it.
pub(crate) fn beside(world: &World, desired: &mut Desired, observed: &mut Observed) {
    addons(world, desired, observed);
    etcd(world, desired, observed);
    strangers(world, observed);
    strays(world, desired, observed);
}

/// Lets some worlds wish add-ons, some have them already, and some have others; which of them do
/// follows from what else is so of them.
fn addons(world: &World, desired: &mut Desired, observed: &mut Observed) {
    let (before, after) = (world.compute.0, world.compute.1);
    let cni = match world.control.0 {
        5 => Cni::Calico,
        _ => Cni::Routed,
    };
    let wished = [AddonName::NodeExporter, AddonName::Prometheus].map(named);
    let wished = &wished[..usize::try_from(after).unwrap_or(0) % 3];
    desired.addons = decided(cni, wished, desired.version);
    let old = Version {
        minor: 34,
        patch: 0,
    };
    let there = [
        AddonName::NodeExporter,
        AddonName::Dashboard,
        AddonName::Calico,
    ];
    let there = there
        .into_iter()
        .take(usize::try_from(before).unwrap_or(0) % 4);
    let there = there.filter(|name| !name.connects() || cni == Cni::Calico);
    let there = there.map(|name| {
        let fact = AddonFact {
            whole: before % 2 == 0,
            ..named(name).decided(old).installed()
        };
        (name, fact)
    });
    observed.addons = observed.initialised.then(|| (there.collect(), NOW));
}

/// An add-on that is not as it should be, though all is said to be done.
pub(crate) fn lacking(desired: &Desired, observed: &Observed) -> Option<String> {
    // They go with the cluster.
    if desired.tombstone {
        return None;
    }
    let seen = observed.addons.as_ref().map(|(seen, _)| seen);
    let there = seen.map_or(0, BTreeMap::len);
    let is = |name| seen.and_then(|seen| seen.get(&name));
    let mut wished = desired.addons.iter();
    let lacking = wished.find(|addon| !is(addon.name).is_some_and(|fact| fact.is(addon)));
    let more = || (there > desired.addons.len()).then(|| "one that nobody wishes".to_owned());
    let left = || {
        let mut strays = observed.strays();
        let left = strays.find(|(_, stray)| stray.machine.is_some());
        left.map(|(node, _)| format!("node {node} is left"))
    };
    let lacking = lacking.map(ToString::to_string);
    lacking.or_else(more).or_else(left)
}

/// What etcd tells of its members, where it was asked.
fn etcd(world: &World, desired: &Desired, observed: &mut Observed) {
    let Some((after, voices)) = world.more.etcd.as_ref().filter(|_| observed.initialised) else {
        return;
    };
    let control = desired
        .all()
        .filter(|machine| machine.role == Role::Control);
    let placed = control.zip(voices.iter().cycle());
    let told = placed.filter(|(_, voice)| **voice != Voice::Missing);
    let members = told.map(|(machine, voice)| Member {
        name: machine.name.to_string(),
        healthy: *voice != Voice::Sick,
        learner: *voice == Voice::Learns,
    });
    let told = Wellbeing {
        etcd: members.collect(),
        ..Wellbeing::default()
    };
    let later = Duration::from_millis(u64::from(*after));
    observed.wellbeing = Some((told, NOW.plus(later)));
}

/// A machine that nobody declared: not ours, whatever it is.
pub(crate) fn stranger() -> MachineId {
    MachineId::derive(Origin {
        parent: "somebody else",
        name: "vm",
        ordinal: 1,
        incarnation: 0,
    })
}

/// A machine of ours that nobody declares any more, and of which a node is left.
pub(crate) fn left() -> MachineId {
    MachineId::derive(Origin {
        parent: "ours",
        name: "left",
        ordinal: 1,
        incarnation: 0,
    })
}

/// Lets some worlds show a machine that is none of ours.
fn strangers(world: &World, observed: &mut Observed) {
    let there = MachineFact::Booting {
        reference: "vm-of-somebody".to_owned(),
    };
    let seen = Seen {
        machine: Some((there, NOW)),
        ..Seen::default()
    };
    let strangers = world.more.strangers.then(|| (stranger(), seen));
    observed.machines.extend(strangers);
}

/// Lets what is left in some worlds be a member of the control plane of which etcd tells nothing: where
/// ours cannot outvote it, it takes a person to go on.
pub(crate) fn untold(world: &World, observed: &mut Observed) {
    let strays = observed.strays.iter_mut();
    for stray in strays.flat_map(|(nodes, _)| nodes.values_mut()) {
        let ours = stray.machine.is_some() && world.more.etcd.is_none();
        stray.control |= ours && world.compute.0 == 1;
    }
}

/// Lets some worlds have a node that is left of a machine nobody declares any more, and one that
/// somebody else has joined; in some it is a member of the control plane, which etcd does not know.
fn strays(world: &World, desired: &Desired, observed: &mut Observed) {
    let repairs = desired.repair.after.is_some();
    if !world.more.strangers || !observed.initialised || !repairs {
        return;
    }
    let node = Stray {
        machine: Some(left()),
        control: world.more.etcd.is_some(),
        unready_since: Some(Timestamp::from_millis(-86_400_000)),
    };
    let nodes = [("left", node), ("theirs", Stray::default())];
    let nodes = nodes.map(|(name, stray)| (name.to_owned(), stray));
    observed.strays = Some((nodes.into(), NOW));
}
