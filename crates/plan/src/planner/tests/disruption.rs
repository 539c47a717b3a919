//! Budgets, windows and secrets: what they let happen, and what they hold.

mod checked;
mod secrets;
mod told;
mod windows;

use super::{drawn, judged};
use crate::fixture::World;
use expect_test::{Expect, expect};
use model::id::TaskId;
use model::intent::Wish;
use model::task::{Action, State};

/// Two workers at once.
const TWO: &str = r#"{"unavailable":2}"#;

/// As many as there are, but of pool `compute` and of group `rack` only so many.
fn pool_and_group(pool: u32, group: u32) -> String {
    format!(
        r#"{{"unavailable":9,"pools":{{"compute":{{"unavailable":{pool},"group":"rack"}},"attic":{{"group":"rack"}}}},"groups":{{"rack":{group}}}}}"#
    )
}

/// One window an hour after the tests' clock, which stands at Thu 1970-01-01 00:16.
pub(super) const LATER: &str =
    r#"{"windows":[{"days":["thu"],"start":76,"minutes":60,"offset":0}]}"#;

#[track_caller]
fn allowed(budgets: &str, world: World, expected: &Expect) {
    drawn(&world.allow(budgets), expected);
}

#[test]
fn a_locked_node_is_left_alone_and_others_go_on() {
    let upgrade = World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2");
    drawn(
        &upgrade.locked(&["w1"]),
        &expect![[r#"
        drain    w2
        held     upgrade w1: the node is locked by its label slipway.dev/upgrade-lock
        error
    "#]],
    );
    let members = World::new("1.35.0", "c1 c2 c3 w1", "c1 c2 c3 w1");
    drawn(
        &members.locked(&["c1"]),
        &expect![[r#"
        drain    c2
        held     upgrade c1: the node is locked by its label slipway.dev/upgrade-lock
        held     upgrade c3 and 1 more: one at a time, after c2
        error
    "#]],
    );
    let shrink = World::new("1.34.0", "c1 w1", "c1 w1 w2");
    drawn(
        &shrink.locked(&["w2"]),
        &expect![[r#"
        held     drain w2: the node is locked by its label slipway.dev/upgrade-lock
        error
    "#]],
    );
    // Who is dead already is not disturbed.
    let dead = World::new("1.34.0", "c1 w1", "c1 w1 w2?");
    drawn(
        &dead.locked(&["w2"]),
        &expect![[r#"
        leave    w2
        scheduled
    "#]],
    );
    let before = World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2");
    let now = World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2").locked(&["w1"]);
    judged(
        &before,
        &now,
        &expect![[r#"
        w1: a locked node is left alone
    "#]],
    );
}

#[test]
fn a_locked_node_that_is_only_not_ready_may_still_run_its_pods() {
    for sick in ["w2!", "w2/"] {
        let sick = World::new("1.34.0", "c1 w1", &format!("c1 w1 {sick}"));
        drawn(
            &sick.locked(&["w2"]),
            &expect![[r#"
            held     leave w2: the node is locked by its label slipway.dev/upgrade-lock
            error
        "#]],
        );
    }
    // What was begun before is not left half done.
    let begun = World::new("1.34.0", "c1 w1", "c1 w1 w2!");
    let begun = begun.open("w2", Action::Drain, State::Waiting, Some("locked"));
    drawn(
        &begun.locked(&["w2"]),
        &expect![[r#"
            leave    w2
            withdraw 1
            scheduled
        "#]],
    );
    let before = World::new("1.34.0", "c1 w1", "c1 w1 w2!");
    let now = World::new("1.34.0", "c1 w1", "c1 w1 w2!").locked(&["w2"]);
    judged(
        &before,
        &now,
        &expect![[r#"
        w2: a locked node is left alone
    "#]],
    );
}

#[test]
fn workers_are_upgraded_as_many_at_once_as_may_be() {
    allowed(
        TWO,
        World::new("1.35.0", "c1 w1 w2 w3 w4", "c1@35 w1 w2 w3 w4"),
        &expect![[r#"
            drain    w1
            drain    w2
            held     upgrade w3 and 1 more: 2 of 2 already out of service (w1)
            scheduled
        "#]],
    );
    // One is back, the next may go.
    allowed(
        TWO,
        World::new("1.35.0", "c1 w1 w2 w3 w4", "c1@35 w1/ w2@35 w3 w4"),
        &expect![[r#"
            upgrade  w1
            drain    w3
            held     upgrade w4: 2 of 2 already out of service (w1)
            scheduled
        "#]],
    );
}

#[test]
fn surplus_workers_leave_as_many_at_once_as_may_be() {
    allowed(
        TWO,
        World::new("1.34.0", "c1 w1", "c1 w1 w2 w3 w4"),
        &expect![[r#"
            drain    w2
            drain    w3
            held     drain w4: 2 of 2 already out of service (w2)
            scheduled
        "#]],
    );
}

#[test]
fn the_control_plane_goes_one_at_a_time_whatever_the_budget() {
    allowed(
        TWO,
        World::new("1.35.0", "c1 c2 c3 c4 c5 w1", "c1 c2 c3 c4 c5 w1"),
        &expect![[r#"
            drain    c1
            held     upgrade c2 and 4 more: one at a time, after c1
            scheduled
        "#]],
    );
    allowed(
        TWO,
        World::new("1.34.0", "c1", "c1 c2 c3 w1 w2"),
        &expect![[r#"
            drain    c2
            drain    w1
            held     drain c3: one at a time, after c2
            held     drain w2: 2 of 2 already out of service (c2)
            scheduled
        "#]],
    );
    // One that is sick counts, though etcd could do without two.
    allowed(
        r#"{"unavailable":3}"#,
        World::new("1.35.0", "c1 c2 c3 c4 c5", "c1 c2 c3 c4 c5!"),
        &expect![[r#"
            held     join c5: the node is not ready
            held     upgrade c1: 1 of 1 of the control plane already out of service (c5)
            held     upgrade c2 and 3 more: one at a time, after c1
            scheduled
        "#]],
    );
}

#[test]
fn what_is_sick_spends_a_larger_budget_too() {
    allowed(
        TWO,
        World::new("1.35.0", "c1 w1 w2 w3", "c1@35 w1 w2? w3"),
        &expect![[r#"
            drain    w1
            held     join w2: the machine does not answer
            held     upgrade w2: the machine does not answer
            held     upgrade w3: 2 of 2 already out of service (w2)
            error
        "#]],
    );
}

#[test]
fn a_pool_has_a_budget_of_its_own() {
    allowed(
        &pool_and_group(1, 9),
        World::new("1.35.0", "c1 w1 w2 s1", "c1@35 w1 w2 s1"),
        &expect![[r#"
            drain    w1
            drain    s1
            held     upgrade w2: 1 of 1 of pool compute already out of service (w1)
            scheduled
        "#]],
    );
}

#[test]
fn a_group_has_one_budget_for_all_its_pools() {
    allowed(
        &pool_and_group(9, 2),
        World::new("1.35.0", "c1 w1 w2 s1", "c1@35 w1 w2 s1"),
        &expect![[r#"
            drain    w1
            drain    w2
            held     upgrade s1: 2 of 2 of group rack already out of service (w1)
            scheduled
        "#]],
    );
}

#[test]
fn a_group_is_shared_with_other_clusters() {
    let world =
        || World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2").elsewhere("rack", "west-compute-07");
    allowed(
        &pool_and_group(9, 1),
        world(),
        &expect![[r#"
        held     upgrade w1 and 1 more: 1 of 1 of group rack already out of service (west-compute-07 of cluster west)
        scheduled
    "#]],
    );
    allowed(
        &pool_and_group(9, 2),
        world(),
        &expect![[r#"
        drain    w1
        held     upgrade w2: 2 of 2 of group rack already out of service (w1)
        scheduled
    "#]],
    );
    let other = World::new("1.35.0", "c1 w1", "c1@35 w1").elsewhere("row", "west-compute-07");
    allowed(
        &pool_and_group(9, 1),
        other,
        &expect![[r#"
        drain    w1
        scheduled
    "#]],
    );
}

#[test]
fn workers_wait_for_a_member_of_the_control_plane_that_its_group_holds() {
    let budgets = r#"{"pools":{"control":{"group":"rack"}},"groups":{"rack":1}}"#;
    allowed(
        budgets,
        World::new("1.35.0", "c1 w1", "c1 w1").elsewhere("rack", "west-c1"),
        &expect![[r#"
            held     upgrade c1: 1 of 1 of group rack already out of service (west-c1 of cluster west)
            held     upgrade w1: one at a time, after c1
            scheduled
        "#]],
    );
}

#[test]
fn what_was_begun_is_finished_when_the_budget_shrinks() {
    let world = World::new("1.35.0", "c1 w1 w2 w3", "c1@35 w1/ w2/ w3");
    allowed(
        r#"{"unavailable":1}"#,
        world,
        &expect![[r#"
        upgrade  w1
        upgrade  w2
        held     upgrade w3: one at a time, after w1
        scheduled
    "#]],
    );
}

#[test]
fn a_cancelled_drain_leaves_the_budget_to_others() {
    let world = World::new("1.35.0", "c1 w1 w2 w3", "c1@35 w1 w2 w3");
    let wish = Wish::Cancel {
        task: TaskId::derive(crate::fixture::origin("w1", 9)),
        machine: crate::fixture::machine("w1").id,
        kind: model::task::Kind::Drain,
    };
    allowed(
        TWO,
        world.wish(wish),
        &expect![[r#"
        drain    w2
        drain    w3
        held     drain w1: cancelled by ann
        error
    "#]],
    );
}

#[test]
fn members_of_the_control_plane_are_changed_one_at_a_time_however_they_came_to_it() {
    // Two hold rows: the budget was larger once, or somebody cordoned the second one.
    allowed(
        TWO,
        World::new("1.35.0", "c1 c2 c3", "c1/ c2/ c3"),
        &expect![[r#"
            upgrade  c1
            held     upgrade c2 and 1 more: one at a time, after c1
            scheduled
        "#]],
    );
    // One is being upgraded while another, which is sick, is to leave.
    let version = "1.35.0".parse().unwrap();
    let upgrading = World::new("1.35.0", "c1 c2 c3 c4", "c1/ c2 c3 c4 c5?").open(
        "c1",
        Action::Upgrade { version },
        State::Running,
        None,
    );
    allowed(
        TWO,
        upgrading,
        &expect![[r#"
        held     leave c5: one at a time, after c1
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
}
