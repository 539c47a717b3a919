//! What clusters of worlds have besides Kubernetes, and should have.

use crate::NOW;
use crate::shape::World;
use model::addon::{AddonFact, AddonName, Named, decided};
use model::cluster::Desired;
use model::kubernetes::Cni;
use model::observed::Observed;
use model::version::Version;
use std::collections::BTreeMap;

fn named(name: AddonName) -> Named {
    Named {
        name,
        version: None,
        values: BTreeMap::new(),
    }
}

/// Lets some worlds wish add-ons, some have them already, and some have others; which of them do
/// follows from what else is so of them.
pub(crate) fn addons(world: &World, desired: &mut Desired, observed: &mut Observed) {
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
    lacking.map(ToString::to_string).or_else(more)
}
