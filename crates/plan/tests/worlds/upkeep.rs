//! What must be so while pools become machines of another kind and sick machines are replaced.

use crate::NOW;
use crate::shape::World;
use model::cluster::{Desired, Machine, Origin, Role};
use model::id::MachineId;
use model::manifest::{Manifest, Pool};
use model::name::Name;
use model::observed::{MachineFact, NodeFact, Observed};
use model::templates::Commit;
use model::time::Timestamp;
use plan::View;
use std::collections::{BTreeMap, BTreeSet};

/// Since when those do not serve that do not, in a world that has lived before.
pub(crate) fn sick(world: &World, observed: &Observed) -> BTreeMap<MachineId, Timestamp> {
    let Some(past) = &world.more.past else {
        return BTreeMap::new();
    };
    let since = past
        .sick
        .iter()
        .cycle()
        .map(|minutes| Timestamp::from_millis(NOW.as_millis() - i64::from(*minutes) * 60_000));
    observed.machines.keys().copied().zip(since).collect()
}

/// Somebody looks where the branches lead that machines are made from.
pub(crate) fn lead(desired: &Desired, observed: &mut Observed, digit: &str, now: Timestamp) {
    let references = desired
        .all()
        .filter_map(|machine| machine.origin.reference());
    let commit: Commit = digit.repeat(40).parse().unwrap();
    for reference in references.collect::<BTreeSet<_>>() {
        let followed = observed.followed.entry(reference).or_default();
        followed.commit = Some((commit.clone(), now));
    }
}

/// Where a machine stands: its pool, what it does there, and for which load balancer.
type Stand<'a> = (&'a Name, Role, Option<&'a Name>);

fn stand(machine: &Machine) -> Stand<'_> {
    (&machine.pool, machine.role, machine.balancer.as_ref())
}

/// Whether a machine does what it is there for.
fn serves(observed: &Observed, machine: &Machine) -> bool {
    let Some(seen) = observed.machines.get(&machine.id) else {
        return false;
    };
    let runs = matches!(seen.machine, Some((MachineFact::Running { .. }, _)));
    let node = matches!(
        seen.node,
        Some((
            NodeFact::Joined {
                ready: true,
                cordoned: false,
                ..
            },
            _
        ))
    );
    let balances = || matches!(&seen.host, Some((host, _)) if host.balance.is_some());
    runs && if machine.role.is_node() {
        node
    } else {
        balances()
    }
}

/// A pool of which fewer serve after a step than before, and than it should have.
pub(crate) fn fewer(view: &View<'_>, next: &Desired) -> Option<String> {
    let stands: BTreeSet<_> = view.desired.machines.iter().map(stand).collect();
    let comes = |machine: &Machine| {
        let mut rolls = view.desired.rolls.iter();
        rolls.any(|roll| roll.coming.contains(&machine.id))
    };
    let lacking = stands.into_iter().find(|of| {
        let serving = |desired: &Desired| {
            let machines = desired
                .machines
                .iter()
                .filter(|machine| stand(machine) == *of);
            let serving = machines.filter(|machine| serves(view.observed, machine));
            serving.count()
        };
        let machines = view.desired.machines.iter();
        let size = machines.filter(|machine| stand(machine) == *of && !comes(machine));
        serving(next) < serving(view.desired).min(size.count())
    });
    lacking.map(|(pool, ..)| format!("fewer of {pool} serve"))
}

/// A pool that is not of the size and kind that was declared and wished.
pub(crate) fn misdeclared(
    desired: &Desired,
    manifest: &Manifest,
    wished: Option<u32>,
) -> Option<String> {
    if desired.tombstone {
        return None;
    }
    if let Some(roll) = desired.rolls.first() {
        return Some(format!("pool {} still rolls", roll.pool));
    }
    let wrong = |name: &&str| {
        let name: Name = name.parse().unwrap();
        let Some(Pool::Dynamic(pool)) = manifest.pools.get(&name) else {
            return false;
        };
        let machines: Vec<_> = desired
            .machines
            .iter()
            .filter(|of| of.pool == name)
            .collect();
        let size = match pool.autoscaler {
            Some(range) => wished.map_or(range.min..=range.max, |wished| wished..=wished),
            None => pool.count..=pool.count,
        };
        let other = |machine: &&Machine| !matches!(&machine.origin, Origin::Made { server_type, .. } if *server_type == pool.server_type);
        let count = u32::try_from(machines.len()).unwrap();
        !size.contains(&count) || machines.iter().any(other)
    };
    let wrong = ["brain", "muscle", "door"].iter().find(|name| wrong(name));
    wrong.map(|name| format!("pool {name} is not as declared"))
}
