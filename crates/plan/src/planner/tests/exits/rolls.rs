//! A pool on its way to machines of another kind, whatever becomes of those that come.

use super::*;

/// Work that may be under way on one that comes in place of another.
fn works() -> [Option<Action>; 6] {
    let version = "1.34.0".parse().unwrap();
    let care = || super::super::care("w2");
    [
        None,
        Some(Action::Create),
        Some(Action::Join {
            version,
            care: care(),
            gated: false,
        }),
        Some(Action::Tend { care: care() }),
        Some(Action::Drain),
        Some(Action::Uncordon),
    ]
}

#[test]
fn a_roll_comes_out_of_whatever_becomes_of_those_that_come() {
    for marks in ["", "-", "x", ".", "~", "!", "/", "!/", "?", "?!"] {
        for work in works() {
            for state in STATES.into_iter().filter(|state| is_left(*state)) {
                for minutes in [0, 10] {
                    let told = format!("w2{marks} for {minutes} min, {work:?} {state:?}");
                    comes_out(coming(marks, work.clone(), state, minutes), &told);
                }
            }
        }
    }
}

/// A pool that rolls, and one that comes: as it is seen, what is done to it, how that stands, and for
/// how long it has not served.
fn coming(marks: &str, work: Option<Action>, state: State, minutes: i64) -> World {
    let mut world = rolling("c1 w1 w2", &format!("c1 w1 w2{marks}"));
    if let Some(action) = work {
        // The row that was drawn for it is there as long as it is.
        let row = Slot::of(&machine("w2"), &world.desired.disruption);
        let drains = action == Action::Drain && world.ledger.is_empty();
        world.ledger.extend(drains.then_some(row));
        world = world.open("w2", action, state, Some("no luck"));
        world.open[0].origin = world.desired.rolls[0].origin.clone();
        world.open[0].attempts = 5;
    }
    if marks.contains(['!', '?']) {
        let since = Timestamp::from_millis(NOW.as_millis() - minutes * 60_000);
        world.observed.sick.insert(machine("w2").id, since);
    }
    world
}

#[track_caller]
fn comes_out(mut world: World, told: &str) {
    let first = lived(&mut world);
    assert!(arrived(&first) || !first.held.is_empty(), "{told}");
    mend(&mut world);
    corrected(&mut world);
    let last = lived(&mut world);
    let rolls = &world.desired.rolls;
    assert!(arrived(&last) && rolls.is_empty(), "{told}: {last:#?}");
    assert_eq!(world.desired.machines.len(), 2, "{told}");
}
