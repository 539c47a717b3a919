//! How much a change would take away at once.

use model::cluster::{Desired, Machine, Role};
use model::observed::{Observed, Seen};
use std::collections::BTreeSet;

/// The largest shares that a change may remove unasked.
///
/// A quarter of a fleet and a third of a cluster survive most mistakes and all typing
/// errors in a pool's count; more than that must be said aloud. One machine is always
/// allowed: in the smallest fleets it is a large share and still a small step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Per cent of all machines.
    pub fleet: u8,
    /// Per cent of one cluster's machines.
    pub cluster: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fleet: 25,
            cluster: 34,
        }
    }
}

impl Limits {
    /// The limits after somebody allowed `percent` of either.
    #[must_use]
    pub fn allowing(self, percent: Option<u8>) -> Self {
        let raise = |limit: u8| limit.max(percent.unwrap_or(0));
        Self {
            fleet: raise(self.fleet),
            cluster: raise(self.cluster),
        }
    }

    /// Whether removing `blast` is within the limit for one cluster.
    pub fn allow_cluster(self, blast: Blast) -> bool {
        blast.within(self.cluster)
    }

    /// Whether a cluster may be removed as a whole: all its data goes along, also where it is but one
    /// machine, so that must be said aloud.
    pub const fn allow_end(self, blast: Blast) -> bool {
        blast.removed == 0 || self.cluster >= 100
    }

    /// Whether removing `blast` is within the limit for the fleet.
    pub fn allow_fleet(self, blast: Blast) -> bool {
        blast.within(self.fleet)
    }
}

/// How many machines would go, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blast {
    /// Machines that a change would newly remove.
    pub removed: u32,
    /// Machines there are.
    pub of: u32,
}

impl Blast {
    /// What `next` newly removes of the cluster that `previous` describes.
    pub fn between(previous: &Desired, next: &Desired) -> Self {
        Self::among(previous, next, |_| true)
    }

    /// The same of machines of one role.
    pub(crate) fn of_role(previous: &Desired, next: &Desired, role: Role) -> Self {
        Self::among(previous, next, |machine| machine.role == role)
    }

    fn among(previous: &Desired, next: &Desired, counts: impl Fn(&Machine) -> bool) -> Self {
        let stays: BTreeSet<_> = next.machines.iter().map(|machine| machine.id).collect();
        let all = || previous.machines.iter().filter(|machine| counts(machine));
        let removed = all().filter(|machine| !stays.contains(&machine.id));
        Self {
            removed: count(removed),
            of: count(all()),
        }
    }

    /// The same with machines that earlier changes removed and that have not gone yet: many small steps
    /// are one large one until the first has been taken.
    #[must_use]
    pub fn beside(self, going: u32) -> Self {
        Self {
            removed: self.removed.saturating_add(going),
            of: self.of.saturating_add(going),
        }
    }

    /// The share in per cent, rounded up.
    pub fn percent(self) -> u32 {
        if self.of == 0 {
            0
        } else {
            (self.removed.saturating_mul(100)).div_ceil(self.of)
        }
    }

    fn within(self, percent: u8) -> bool {
        self.removed <= 1
            || u64::from(self.removed) * 100 <= u64::from(percent) * u64::from(self.of)
    }
}

/// Machines that are leaving a cluster that shrinks again and are still nodes of it. Where others come in
/// their place nothing is taken away.
pub fn going(previous: &Desired, observed: &Observed, next: &Desired) -> u32 {
    let shrinks = next.machines.len() < previous.machines.len();
    let still = previous.leaving.iter().filter(|machine| {
        let seen = observed.machines.get(&machine.id);
        seen.is_some_and(Seen::is_node)
    });
    if shrinks { count(still) } else { 0 }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;

    #[test]
    fn small_steps_are_a_large_one_until_the_first_is_taken() {
        let world = World::new("1.34.0", "c1 w1 w2 w3", "c1 w1 w2 w3 w4 w5 w6/ w7x");
        let next = World::new("1.34.0", "c1 w1 w2", "").desired;
        let going = going(&world.desired, &world.observed, &next);
        let blast = Blast::between(&world.desired, &next).beside(going);
        assert_eq!((blast.removed, blast.of), (4, 7));
        assert!(!Limits::default().allow_cluster(blast));
        let taken = World::new("1.34.0", "c1 w1 w2 w3", "c1 w1 w2 w3 w4x w5x w6~");
        assert_eq!(super::going(&taken.desired, &taken.observed, &next), 0);
        // One comes for each that goes.
        let replaced = World::new("1.34.0", "c1 w1 w2 w8", "").desired;
        assert_eq!(super::going(&world.desired, &world.observed, &replaced), 0);
    }

    #[test]
    fn one_machine_may_always_go() {
        assert!(Limits::default().allow_cluster(Blast { removed: 1, of: 1 }));
    }

    #[test]
    fn a_cluster_of_one_machine_goes_only_when_that_is_said() {
        let only = Blast { removed: 1, of: 1 };
        assert!(!Limits::default().allow_end(only));
        assert!(!Limits::default().allowing(Some(99)).allow_end(only));
        assert!(Limits::default().allowing(Some(100)).allow_end(only));
        // Nothing of it was ever made.
        assert!(Limits::default().allow_end(Blast::default()));
    }

    #[test]
    fn a_third_of_a_cluster_may_go_and_half_may_not() {
        let limits = Limits::default();
        assert!(limits.allow_cluster(Blast { removed: 2, of: 6 }));
        assert!(!limits.allow_cluster(Blast { removed: 3, of: 6 }));
        assert!(
            limits
                .allowing(Some(50))
                .allow_cluster(Blast { removed: 3, of: 6 })
        );
    }
}
