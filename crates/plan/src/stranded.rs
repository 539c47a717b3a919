//! Whether a change leaves a cluster without what it cannot do without.

use crate::blast::Blast;
use model::cluster::{Desired, Role};

/// What would be left too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranded {
    /// Whose machines go: of the control plane, or all those that take workloads.
    pub role: Role,
    /// How many of them, of how many.
    pub blast: Blast,
}

/// What `next` strands of a cluster whose machines are these: a control plane of which fewer stay than
/// decide now, or workloads that have nowhere to go. A pool that is scaled may be empty, and a
/// cluster that goes as a whole was asked for.
pub fn stranded(there: &Desired, next: &Desired) -> Option<Stranded> {
    if next.tombstone {
        return None;
    }
    let control = Blast::of_role(there, next, Role::Control);
    let members = size(next, Role::Control);
    if control.of > 0 && members < control.of / 2 + 1 {
        let role = Role::Control;
        return Some(Stranded {
            role,
            blast: control,
        });
    }
    let compute = Blast::of_role(there, next, Role::Compute);
    let none = size(next, Role::Compute) == 0 && next.autoscalers.is_empty();
    (compute.removed > 0 && none).then_some(Stranded {
        role: Role::Compute,
        blast: compute,
    })
}

/// How many machines of a role there should be, discovered or not.
fn size(desired: &Desired, role: Role) -> u32 {
    let made = desired.machines.iter().filter(|of| of.role == role).count();
    let metal = desired.metal.iter().filter(|of| of.role == role);
    let metal: u32 = metal.map(|of| of.count).sum();
    u32::try_from(made)
        .unwrap_or(u32::MAX)
        .saturating_add(metal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;

    /// What is stranded when these machines become those.
    fn check(before: &str, after: &str) -> Option<(Role, u32)> {
        let world = |want| World::new("1.34.0", want, "").desired;
        let found = stranded(&world(before), &world(after));
        found.map(|found| (found.role, found.blast.percent()))
    }

    #[test]
    fn a_control_plane_does_not_shrink_below_those_that_decide() {
        assert_eq!(check("c1 c2 c3 w1", "c1 w1"), Some((Role::Control, 67)));
        assert_eq!(check("c1 c2 c3 c4 c5", "c1 c2 c3"), None);
        assert_eq!(check("c1 c2 c3 c4 c5", "c1"), Some((Role::Control, 80)));
        // Others come in their place.
        assert_eq!(check("c1 w1", "c2 w1"), None);
    }

    #[test]
    fn the_last_machine_for_workloads_goes_only_when_that_is_said() {
        assert_eq!(check("c1 w1", "c1"), Some((Role::Compute, 100)));
        assert_eq!(check("c1 w1 w2", "c1 w1"), None);
        assert_eq!(check("c1 w1", "c1 w2"), None);
        assert_eq!(check("c1", "c1"), None);
        // The whole cluster goes.
        assert_eq!(check("c1 w1", ""), None);
    }
}
