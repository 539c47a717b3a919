//! Upgrades over several minor releases: one at a time, and all nodes before the next.

use super::{drawn, judged};
use crate::advance::advance;
use crate::fixture::World;
use crate::planner::plan;
use expect_test::{Expect, expect};
use model::intent::Wish;
use model::kubernetes::Cni;
use model::task::{Action, State};

const GATED: &str =
    r#"{"gates":[{"name":"ceph","check":{"command":["ceph"]},"patience":{"secs":600,"nanos":0}}]}"#;

/// A cluster on its way to 1.36, by a stepping stone that etcd was saved for.
fn toward(stone: &str, have: &str) -> World {
    let want: Vec<_> = have.split_whitespace().map(|word| &word[..2]).collect();
    let mut world = World::new("1.36.3", &want.join(" "), have);
    world.desired.stone = Some(stone.parse().unwrap());
    world.saved(0, Some(stone.parse().unwrap()))
}

/// The versions that tasks of the next plan bring.
fn brought(world: &World) -> Vec<String> {
    let plan = plan(&world.view());
    let versions = plan.tasks.iter().filter_map(|task| task.action.version());
    versions.map(|version| version.to_string()).collect()
}

/// What becomes of desired state by itself.
#[track_caller]
fn moves(world: &World, expected: &Expect) {
    let step = advance(&world.view());
    let told = step.map_or("stays".to_owned(), |step| {
        assert_eq!(crate::check::check_advance(&world.view(), &step), []);
        step.because
    });
    expected.assert_eq(&told);
}

#[test]
fn every_node_comes_to_the_stone_before_any_goes_on() {
    let first = toward("1.34.4", "c1@33 c2@33 c3@33 w1@33");
    drawn(
        &first,
        &expect![[r#"
        drain    c1
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    let last = toward("1.34.4", "c1@34.4 c2@34.4 c3@34.4 w1/@33");
    drawn(
        &last,
        &expect![[r#"
        upgrade  w1
        scheduled
    "#]],
    );
    assert_eq!(brought(&last), ["v1.34.4"]);
    // One that has arrived and does not serve yet is not drained for what comes next.
    let back = toward("1.34.4", "c1@34.4 c2@34.4 c3@34.4 w1/@34.4");
    drawn(
        &back,
        &expect![[r#"
        uncordon w1
        scheduled
    "#]],
    );
    let alone = toward("1.34.4", "c1/@34.4");
    drawn(
        &alone,
        &expect![[r#"
        uncordon c1
        scheduled
    "#]],
    );
    for not_yet in [&first, &last, &back, &alone] {
        moves(not_yet, &expect!["stays"]);
    }
}

#[test]
fn a_cluster_that_has_come_to_a_stone_goes_on() {
    let there = toward("1.34.4", "c1@34.4 c2@34.4 c3@34.4 w1@34.4");
    moves(
        &there,
        &expect!["all nodes run v1.34.4 and go on to v1.35.8"],
    );
    let near = toward("1.35.8", "c1@35.8 w1@35.8");
    moves(
        &near,
        &expect!["all nodes run v1.35.8 and go on to v1.36.3"],
    );
    // Etcd is saved again before every hop.
    let mut next = there;
    next.desired = advance(&next.view()).unwrap().desired;
    drawn(
        &next,
        &expect![[r#"
        snapshot c1
        held     upgrade c1: a snapshot of etcd comes before v1.35.8
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    // Somebody comes who was made long ago.
    let join = Action::Join {
        version: "1.33.0".parse().unwrap(),
        care: model::care::Care::default(),
        gated: false,
    };
    let comes = toward("1.34.4", "c1@34.4 w1~").open("w1", join, State::Running, None);
    moves(&comes, &expect!["stays"]);
}

#[test]
fn a_gate_that_is_shut_keeps_the_cluster_on_its_stone() {
    let gates = toward("1.34.4", "c1").allow(GATED).desired.disruption.gates;
    let shut = |have: &str, at: &str| {
        let readmit = Action::Readmit {
            gates: gates.clone(),
        };
        let world = toward("1.34.4", have).allow(GATED);
        world.open(at, readmit, State::Stuck, Some("gate ceph"))
    };
    let worker = shut("c1@34.4 w1/@34.4", "w1");
    drawn(
        &worker,
        &expect![[r#"
        held     uncordon w1: stuck: gate ceph
        error
    "#]],
    );
    let member = shut("c1@34.4 c2@34.4 c3/@34.4", "c3");
    drawn(
        &member,
        &expect![[r#"
        held     uncordon c3: stuck: gate ceph
        error
    "#]],
    );
    moves(&worker, &expect!["stays"]);
    moves(&member, &expect!["stays"]);
}

#[test]
fn who_turns_up_late_is_waited_for() {
    let late = toward("1.35.8", "c1@35.8 c2/@34.4 c3@34.4 w1@34.4 w2@33");
    drawn(
        &late,
        &expect![[r#"
        uncordon c2
        held     upgrade w2: 1 of 1 already out of service (c2)
        scheduled
    "#]],
    );
    let drained = toward("1.35.8", "c1@35.8 c2@34.4 c3@34.4 w1@34.4 w2/@33");
    assert_eq!(brought(&drained), ["v1.34.4"]);
}

#[test]
fn a_worker_that_was_drained_serves_while_the_control_plane_goes_first() {
    drawn(
        &World::new("1.35.0", "c1 w1 w2", "c1 w1/ w2"),
        &expect![[r#"
            uncordon w1
            held     upgrade c1 and 1 more: one at a time, after w1
            scheduled
        "#]],
    );
    drawn(
        &World::new("1.35.0", "c1 w1 w2", "c1 w1!/ w2"),
        &expect![[r#"
            held     join w1: the node is not ready
            held     upgrade w1: one at a time, after c1
            held     upgrade c1 and 1 more: one at a time, after w1
            scheduled
        "#]],
    );
}

#[test]
fn an_upgrade_does_not_begin_on_a_machine_that_is_sick_whoever_is_the_first() {
    for have in [
        "c1? c2 c3 w1",
        "c1! c2 c3 w1",
        "c1 c2? c3 w1",
        "c1 c2 c3 w1?",
    ] {
        let world = World::new("1.35.0", "c1 c2 c3 w1", have);
        let plan = plan(&world.view());
        assert_eq!(plan.tasks, [], "{have}");
        assert_eq!(crate::check::check(&world.view(), &plan), [], "{have}");
    }
    drawn(
        &World::new("1.35.0", "c1 c2 c3 w1", "c1? c2 c3 w1"),
        &expect![[r#"
            held     join c1: the machine does not answer
            held     upgrade c1: the machine does not answer
            held     upgrade c2: 1 of 1 already out of service (c1)
            held     upgrade c3 and 1 more: one at a time, after c2
            error
        "#]],
    );
    drawn(
        &World::new("1.35.0", "c1 c2 c3 w1", "c1! c2 c3 w1"),
        &expect![[r#"
            held     join c1: the node is not ready
            held     upgrade c1: the node is not ready
            held     upgrade c2: 1 of 1 already out of service (c1)
            held     upgrade c3 and 1 more: one at a time, after c2
            scheduled
        "#]],
    );
    // Emptied, and not reached since.
    drawn(
        &World::new("1.35.0", "c1 c2 c3 w1", "c1?/ c2 c3 w1"),
        &expect![[r#"
            held     join c1: the machine does not answer
            held     upgrade c1: the machine does not answer
            held     upgrade c2 and 2 more: one at a time, after c1
            error
        "#]],
    );
    // What has been at work on it already mends it, perhaps.
    let upgrade = Action::Upgrade {
        version: "1.35.0".parse().unwrap(),
    };
    let halfway = World::new("1.35.0", "c1 c2 c3 w1", "c1!/ c2 c3 w1");
    drawn(
        &halfway.open("c1", upgrade, State::Waiting, Some("no answer")),
        &expect![[r#"
            held     upgrade c1: tried 1×: no answer
            held     upgrade c2 and 2 more: one at a time, after c1
            scheduled
        "#]],
    );
}

#[test]
fn the_checker_knows_on_whom_an_upgrade_begins() {
    judged(
        &World::new("1.35.0", "c1 c2 c3 w1", "c1 c2 c3 w1"),
        &World::new("1.35.0", "c1 c2 c3 w1", "c1? c2 c3 w1"),
        &expect![[r#"
            c1: an upgrade begins on nodes that serve
        "#]],
    );
}

#[test]
fn a_pause_holds_a_cluster_on_its_stone_and_says_so() {
    let paused = toward("1.34.4", "c1@34.4 w1@34.4").wish(Wish::Pause);
    moves(&paused, &expect!["stays"]);
    drawn(
        &paused,
        &expect![[r#"
        held     upgrade c1 and 1 more: paused by ann
        error
    "#]],
    );
}

#[test]
fn add_ons_come_when_the_version_that_they_are_meant_for_is_near() {
    let far = toward("1.34.4", "c1@34.4 c2@33 c3@33 w1@33");
    drawn(
        &far.addons(Cni::Routed, "node-exporter", ""),
        &expect![[r#"
            drain    c2
            held     upgrade c3 and 1 more: one at a time, after c2
            held     install c1: one at a time, after c1
            scheduled
        "#]],
    );
    let near = toward("1.36.3", "c1@35.8 c2@35.8 c3@35.8 w1@35.8");
    let mut near = near.addons(Cni::Routed, "node-exporter", "");
    near.desired.stone = None;
    drawn(
        &near,
        &expect![[r#"
            drain    c1
            install  c2 (+node-exporter v1.10.2)
            held     upgrade c2 and 2 more: one at a time, after c1
            scheduled
        "#]],
    );
}

#[test]
fn the_checker_knows_how_far_nodes_may_go() {
    let made = toward("1.35.8", "c1/@34.4 c2@34.4 c3@34.4 w1@34.4");
    judged(
        &made,
        &toward("1.35.8", "c1/@33 c2@34.4 c3@34.4 w1@34.4"),
        &expect![[r#"
            c1: an upgrade goes forward, one minor release at a time
        "#]],
    );
    judged(
        &made,
        &toward("1.35.8", "c1/@34.4 c2@34.4 c3@34.4 w1@33"),
        &expect![[r#"
            c1: nobody goes on before all nodes have come to the minor release before
        "#]],
    );
    let mut other = toward("1.35.8", "c1/@34.4 c2@34.4 c3@34.4 w1@34.4");
    other.desired.version = "1.35.0".parse().unwrap();
    judged(
        &made,
        &other,
        &expect![[r#"
        c1: an upgrade goes no further than declared
    "#]],
    );
    judged(
        &toward("1.35.8", "c1@35.8 w1/@34.4"),
        &toward("1.35.8", "c1@34.4 w1/@34.4"),
        &expect![[r#"
            w1: no node is ahead of the control plane
        "#]],
    );
}

#[test]
fn the_checker_knows_in_which_direction_a_cluster_moves() {
    let world = toward("1.34.4", "c1@34.4 w1@34.4");
    let mut step = advance(&world.view()).unwrap();
    step.desired.stone = Some("1.33.13".parse().unwrap());
    let notes = crate::check::check_advance(&world.view(), &step);
    let told: String = notes.iter().map(|note| format!("{note}\n")).collect();
    expect![[r#"
        edge: an upgrade goes on to what is declared
    "#]]
    .assert_eq(&told);
}
