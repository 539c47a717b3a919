//! A cluster whose newest generation cannot be read, made of an older one and of the machines that are
//! known one by one.
//!
//! No machine is lost and none is made on the way: what the rows name stays or leaves as they say, and
//! what they do not name any more is gone. Everything else is as it was then, until the manifest is
//! expanded again.

use model::cluster::{Desired, Generation, Machine, Role};
use model::manifest::POOL_COUNT_MAX;
use model::name::Name;
use model::version::Version;
use std::collections::BTreeMap;

/// What is known of the newest generation without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Which generation it is.
    pub generation: Generation,
    /// Which Kubernetes its nodes should run.
    pub version: Version,
    /// Whether the whole cluster is to be removed.
    pub tombstone: bool,
    /// Its machines, each with whether it is to leave.
    pub machines: Vec<(Machine, bool)>,
    /// The pools that its manifest declares.
    pub pools: Vec<Name>,
}

/// The generation after one that cannot be read, from an older one that can.
pub fn recovered(older: &Desired, known: Remembered) -> Desired {
    let Remembered {
        generation,
        version,
        tombstone,
        machines,
        pools,
    } = known;
    let mut next = older.clone();
    let lost = generation.0.saturating_sub(older.generation.0);
    next.generation = generation.next();
    next.version = version;
    // Where nodes are on their way is seen, and noted again; so are pools on theirs.
    next.stone = None;
    next.rolls.clear();
    next.tombstone = tombstone;
    (next.machines, next.leaving) = (Vec::new(), Vec::new());
    for pool in pools {
        next.made.entry(pool).or_default();
    }
    made(&mut next.made, lost, &machines);
    for (machine, leaves) in machines {
        if leaves || tombstone {
            next.leaving.push(machine);
        } else {
            next.machines.push(machine);
        }
    }
    let place = |machine: &Machine| {
        let role = match machine.role {
            Role::Control => 0,
            Role::Compute => 1,
            Role::Balancer => 2,
        };
        (role, machine.pool.clone(), machine.ordinal)
    };
    next.machines.sort_by_key(place);
    next
}

/// How many machines were made per pool at most. A generation makes no more than a pool can have, twice
/// over where all of them are replaced: so no id comes again, also of machines that came and went
/// in generations that nobody can read.
fn made(made: &mut BTreeMap<Name, u32>, lost: u64, machines: &[(Machine, bool)]) {
    for (machine, _) in machines {
        let known = made.entry(machine.pool.clone()).or_default();
        *known = (*known).max(machine.incarnation.saturating_add(1));
    }
    let lost = u32::try_from(lost).unwrap_or(u32::MAX);
    let unseen = POOL_COUNT_MAX.saturating_mul(2).saturating_mul(lost);
    for count in made.values_mut() {
        *count = count.saturating_add(unseen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;

    fn words(machines: &[Machine]) -> Vec<&str> {
        let words = machines.iter().map(|machine| machine.name.as_str());
        words.collect()
    }

    #[test]
    fn machines_are_as_the_rows_have_them_and_no_id_comes_again() {
        let older = World::new("v1.34.0", "c1 w1 w2 w3", "").desired;
        let mut came = older.machines.last().unwrap().clone();
        came.ordinal += 1;
        came.incarnation += 1;
        came.name = "edge-muscle-09".parse().unwrap();
        let gone = older.machines.last().unwrap().name.clone();
        let stay = older.machines.iter().filter(|machine| machine.name != gone);
        let mut machines: Vec<_> = stay.map(|machine| (machine.clone(), false)).collect();
        let leaver = machines.last().unwrap().0.name.clone();
        machines.last_mut().unwrap().1 = true;
        machines.insert(0, (came.clone(), false));
        let known = Remembered {
            generation: Generation(older.generation.0 + 3),
            version: "v1.35.0".parse().unwrap(),
            tombstone: false,
            machines,
            pools: vec!["spare".parse().unwrap()],
        };
        let next = recovered(&older, known.clone());
        assert_eq!(next.generation, Generation(older.generation.0 + 4));
        assert_eq!(next.version, known.version);
        assert_eq!(words(&next.machines).last(), Some(&came.name.as_str()));
        assert_eq!(words(&next.leaving), [leaver.as_str()]);
        assert!(!words(&next.machines).contains(&gone.as_str()));
        assert!(next.made[&came.pool] > came.incarnation + 3 * POOL_COUNT_MAX);
        assert!(next.made[&"spare".parse::<Name>().unwrap()] >= 3 * POOL_COUNT_MAX);

        let all = known.machines.len();
        let going = Remembered {
            tombstone: true,
            ..known
        };
        let next = recovered(&older, going);
        assert!(next.tombstone && next.machines.is_empty());
        assert_eq!(next.leaving.len(), all);
    }
}
