//! Whatever is seen of a machine, and whatever is said of a cluster.

use super::*;

/// What is seen of a machine, so that all of it can be counted; nothing where nobody looked.
const fn sight(fact: Option<&MachineFact>) -> usize {
    match fact {
        None => 0,
        Some(MachineFact::Absent) => 1,
        Some(MachineFact::Booting { .. }) => 2,
        Some(MachineFact::Running { .. }) => 3,
        Some(MachineFact::Unreachable { .. }) => 4,
    }
}

#[test]
fn whatever_is_seen_of_a_machine_it_comes_or_goes() {
    let mut met = BTreeSet::new();
    for name in ["c4", "c2", "w2", "s1"] {
        for marks in ["-", "x", ".", "~", "", "!", "/", "!/", "?", "?!", "?/"] {
            for version in ["1.34.0", "1.35.0"] {
                for stays in [true, false] {
                    let want = format!("c1 c3 c5 w1 {}", if stays { name } else { "" });
                    let have = format!("c1 c3 c5 w1 {name}{marks}");
                    let mut world = World::new(version, &want, &have);
                    let seen = &world.observed.machines[&machine(name).id];
                    met.insert(sight(seen.machine.as_ref().map(|(fact, _)| fact)));
                    let first = lived(&mut world);
                    let told = format!("{want}: {have} at {version}: {:?}", first.held);
                    assert!(arrived(&first) || !first.held.is_empty(), "{told}");
                    mend(&mut world);
                    let last = lived(&mut world);
                    assert!(arrived(&last), "{told}\nends with {last:#?}");
                }
            }
        }
    }
    assert_eq!(met, (0..5).collect(), "everything is seen once");
}

/// A world in this phase, where the planner says so and something is left to come.
fn in_phase(phase: Phase) -> Option<World> {
    let new = |want: &str, have: &str| Some(World::new("1.34.0", want, have));
    match phase {
        // The store says so until the first plan.
        Phase::Pending => None,
        Phase::Scheduled => new("c1 w1", "c1"),
        Phase::Error => new("c1 w1", "c1 w1?"),
        Phase::Deleting => new("", "c1 w1"),
        // There they stay until somebody wants something else.
        Phase::Done => new("c1", "c1"),
        Phase::Gone => new("", "c1x"),
    }
}

#[test]
fn every_phase_leads_to_the_end_that_is_wanted() {
    for phase in [
        Phase::Pending,
        Phase::Scheduled,
        Phase::Error,
        Phase::Deleting,
        Phase::Done,
        Phase::Gone,
    ] {
        let Some(mut world) = in_phase(phase) else {
            continue;
        };
        assert_eq!(plan(&world.view()).summary.phase, phase);
        let first = lived(&mut world);
        assert_eq!(arrived(&first), phase != Phase::Error, "{phase:?}");
        mend(&mut world);
        assert!(arrived(&lived(&mut world)), "{phase:?}");
    }
}

#[test]
fn a_member_that_was_drained_and_cannot_be_upgraded_serves_until_it_can() {
    let mut world = World::new("1.35.0", "c1", "c1/ c2");
    let first = plan(&world.view());
    let kinds: Vec<_> = first.tasks.iter().map(|task| task.action.kind()).collect();
    assert_eq!(kinds, [Kind::Uncordon]);
    assert!(arrived(&lived(&mut world)));
}
