//! Gates: no node serves again before they let it, and no other one is taken out before that.

use super::{drawn, judged};
use crate::fixture::{World, machine};
use crate::journey::journey;
use expect_test::expect;
use model::gate::Gate;
use model::task::{Action, State};
use model::upkeep::Roll;

const GATED: &str = r#"{"unavailable":2,"gates":[{"name":"ceph","check":{"command":["ceph"]},"patience":{"secs":600,"nanos":0}}]}"#;

/// Workers in the middle of an upgrade: the first has its version, the second is on its way.
fn half() -> World {
    World::new("1.35.0", "c1 w1 w2 w3", "c1@35 w1/@35 w2 w3")
}

fn gates() -> Vec<Gate> {
    half().allow(GATED).desired.disruption.gates
}

fn asking(state: State, error: Option<&str>) -> World {
    let readmit = Action::Readmit { gates: gates() };
    half().open("w1", readmit, state, error).allow(GATED)
}

#[test]
fn no_other_node_is_upgraded_before_gates_have_let_one_back() {
    drawn(
        &half().allow(GATED),
        &expect![[r#"
            uncordon w1 (gates ceph)
            held     upgrade w2 and 1 more: one at a time, after w1
            scheduled
        "#]],
    );
    drawn(
        &asking(State::Running, None),
        &expect![[r#"
            held     upgrade w2 and 1 more: one at a time, after w1
            scheduled
        "#]],
    );
    drawn(
        &half(),
        &expect![[r#"
        uncordon w1
        held     upgrade w2: 1 of 1 already out of service (w1)
        held     upgrade w3: one at a time, after w2
        scheduled
    "#]],
    );
}

#[test]
fn a_gate_that_stays_shut_keeps_others_in_service() {
    drawn(
        &asking(State::Stuck, Some("gate ceph")),
        &expect![[r#"
        held     uncordon w1: stuck: gate ceph
        held     upgrade w2 and 1 more: one at a time, after w1
        error
    "#]],
    );
    drawn(
        &asking(State::Waiting, Some("no answer")),
        &expect![[r#"
        held     uncordon w1: tried 1×: no answer
        held     upgrade w2 and 1 more: one at a time, after w1
        scheduled
    "#]],
    );
    // Who is out already goes on.
    let mut world = World::new("1.35.0", "c1 w1 w2 w3", "c1@35 w1/@35 w2/ w3").allow(GATED);
    world.open = asking(State::Stuck, Some("gate ceph")).open;
    drawn(
        &world,
        &expect![[r#"
        upgrade  w2
        held     uncordon w1: stuck: gate ceph
        held     upgrade w3: one at a time, after w1
        error
    "#]],
    );
}

#[test]
fn a_gate_that_was_changed_is_asked_instead() {
    let other = GATED.replace("ceph", "disk");
    let shut = asking(State::Stuck, Some("gate ceph")).allow(&other);
    drawn(
        &shut,
        &expect![[r#"
        uncordon w1 (gates disk)
        withdraw 1
        held     upgrade w2 and 1 more: one at a time, after w1
        scheduled
    "#]],
    );
    let asked = asking(State::Running, None).allow(&other);
    drawn(
        &asked,
        &expect![[r#"
            held     uncordon w1: uncordon is still running
            held     upgrade w2 and 1 more: one at a time, after w1
            scheduled
        "#]],
    );
    let without = asking(State::Stuck, Some("gate ceph")).allow("{}");
    drawn(
        &without,
        &expect![[r#"
            uncordon w1
            withdraw 1
            held     upgrade w2: 1 of 1 already out of service (w1)
            held     upgrade w3: one at a time, after w2
            scheduled
        "#]],
    );
}

#[test]
fn a_journey_tells_what_nodes_must_pass() {
    let told = journey(&half().allow(GATED).view());
    expect![[r#"
        cluster edge
                1  uncordon w1                                                   in place      1 min
                2  drain 2 of compute                                            disturb       2 min
                3  upgrade 2 of compute                                          in place      3 min
                4  uncordon 2 of compute                                         in place      1 min
          gates  a node serves, and others are upgraded or go, when these let it pass: ceph
          disturbs  3 of compute, 2 at a time
          ends ready after about 7 min, 3 machines touched
    "#]]
    .assert_eq(&told.to_string());
    let new = World::new("1.35.0", "c1", "").allow(GATED);
    assert_eq!(journey(&new.view()).gates, []);
}

#[test]
fn the_checker_lets_nobody_pass_who_has_not_been_asked() {
    judged(
        &half(),
        &half().allow(GATED),
        &expect![[r#"
        w1: a node serves again when its gates have passed
    "#]],
    );
    judged(
        &half().allow(GATED),
        &half(),
        &expect![[r#"
            w1: a node serves again when its gates have passed
        "#]],
    );
}

#[test]
fn the_checker_lets_nobody_come_in_place_of_others_without_gates() {
    let comes = || {
        let mut world = World::new("1.34.0", "c1 w1 w2", "c1 w1 w2~").allow(GATED);
        let newcomer = machine("w2");
        world.desired.rolls.push(Roll {
            pool: newcomer.pool,
            role: newcomer.role,
            balancer: None,
            origin: newcomer.origin,
            surge: 1,
            coming: vec![newcomer.id],
            failed: None,
        });
        world
    };
    let mut another = comes();
    another.desired.rolls.clear();
    judged(
        &another,
        &comes(),
        &expect![[r#"
        w2: who comes in place of others, and nobody else, has gates to pass
    "#]],
    );
    judged(
        &comes(),
        &another,
        &expect![[r#"
        w2: who comes in place of others, and nobody else, has gates to pass
    "#]],
    );
}

#[test]
fn who_waits_at_its_gates_is_asked_and_missed_by_nobody() {
    // It is out of nobody's budget: another node is upgraded meanwhile.
    drawn(
        &World::new("1.35.0", "c1 w1 w2", "c1@35 w1|@35 w2").allow(GATED),
        &expect![[r#"
            uncordon w1 (gates ceph)
            drain    w2
            scheduled
        "#]],
    );
    drawn(
        &World::new("1.34.0", "c1 w1 w2", "c1 w1|! w2").allow(GATED),
        &expect![[r#"
            held     join w1: the node is not ready
            scheduled
        "#]],
    );
    // Nobody declares gates any more.
    drawn(
        &World::new("1.34.0", "c1 w1 w2", "c1 w1| w2"),
        &expect![[r#"
            uncordon w1
            scheduled
        "#]],
    );
}

#[test]
fn who_is_taken_back_from_its_gates_has_nothing_to_be_moved_off() {
    drawn(
        &World::new("1.34.0", "c1 w1", "c1 w1 w2| w3|").allow("{\"unavailable\":2}"),
        &expect![[r#"
            leave    w2
            leave    w3
            scheduled
        "#]],
    );
    drawn(
        &World::new("1.34.0", "c1 w1", "c1 w1 w2| w3|"),
        &expect![[r#"
            leave    w2
            held     drain w3: one at a time, after w2
            scheduled
        "#]],
    );
}
