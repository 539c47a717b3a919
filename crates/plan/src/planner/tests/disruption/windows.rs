//! Windows: what waits for them, and what does not.

use super::{LATER, allowed};
use crate::fixture::{NOW, World};
use crate::ledger::Slot;
use crate::planner::plan;
use expect_test::expect;
use model::task::{Action, State};
use model::time::Timestamp;
use std::time::Duration;

#[test]
fn nothing_that_serves_is_taken_out_of_service_outside_a_window() {
    allowed(
        LATER,
        World::new("1.35.0", "c1 w1 w2", "c1 w1 w2"),
        &expect![[r#"
            held     upgrade c1 and 2 more: waits for its window, which opens Thu 1970-01-01 01:16 UTC
            scheduled
        "#]],
    );
    allowed(
        LATER,
        World::new("1.34.0", "c1 w1", "c1 w1 w2 w3"),
        &expect![[r#"
            held     drain w2 and 1 more: waits for its window, which opens Thu 1970-01-01 01:16 UTC
            scheduled
        "#]],
    );
    let plan = plan(&World::new("1.35.0", "c1 w1", "c1 w1").allow(LATER).view());
    assert_eq!(plan.wake, Some(NOW.plus(Duration::from_secs(3_600 - 40))));
}

#[test]
fn a_window_lets_it_begin_and_its_end_lets_it_finish() {
    let at = |world: World, minutes: u64| {
        let now = Timestamp::from_millis(0).plus(Duration::from_secs(minutes * 60));
        World { now, ..world }
    };
    let fresh = || World::new("1.35.0", "c1 w1", "c1@35 w1");
    allowed(
        LATER,
        at(fresh(), 75),
        &expect![[r#"
        held     upgrade w1: waits for its window, which opens Thu 1970-01-01 01:16 UTC
        scheduled
    "#]],
    );
    allowed(
        LATER,
        at(fresh(), 76),
        &expect![[r#"
        drain    w1
        scheduled
    "#]],
    );
    allowed(
        LATER,
        at(fresh(), 135),
        &expect![[r#"
        drain    w1
        scheduled
    "#]],
    );
    allowed(
        LATER,
        at(fresh(), 136),
        &expect![[r#"
        held     upgrade w1: waits for its window, which opens Thu 1970-01-08 01:16 UTC
        scheduled
    "#]],
    );
    // Drained within the window, upgraded and taken back behind its end.
    let drained = World::new("1.35.0", "c1 w1", "c1@35 w1/");
    allowed(
        LATER,
        at(drained, 136),
        &expect![[r#"
        upgrade  w1
        scheduled
    "#]],
    );
    let upgraded = World::new("1.35.0", "c1 w1", "c1@35 w1/@35");
    allowed(
        LATER,
        at(upgraded, 136),
        &expect![[r#"
        uncordon w1
        scheduled
    "#]],
    );
    // So is a drain that was begun and has not ended.
    let mut draining = fresh().open("w1", Action::Drain, State::Waiting, Some("timeout"));
    draining.ledger.push(Slot::of(
        &draining.desired.machines[1],
        &draining.desired.disruption,
    ));
    allowed(
        LATER,
        at(draining, 136),
        &expect![[r#"
        held     drain w1: tried 1×: timeout
        scheduled
    "#]],
    );
}

#[test]
fn what_disturbs_nobody_needs_no_window() {
    // A cluster is built.
    allowed(
        LATER,
        World::new("1.34.0", "c1 w1 w2", "c1 w1~"),
        &expect![[r#"
            create   w2
            join     w1
            scheduled
        "#]],
    );
    // The dead leave, and who never joined goes.
    allowed(
        LATER,
        World::new("1.34.0", "c1 w1", "c1 w1 w2? w3~"),
        &expect![[r#"
            leave    w2
            delete   w3
            scheduled
        "#]],
    );
    // A cluster that nobody wants is removed.
    allowed(
        LATER,
        World::new("1.34.0", "", "c1 w1"),
        &expect![[r#"
        delete   w1
        held     delete c1: one at a time, after w1
        deleting
    "#]],
    );
}
