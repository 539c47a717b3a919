//! What a cluster has besides Kubernetes: when it comes, when it waits, and when it goes.

use super::{drawn, judged};
use crate::fixture::World;
use crate::journey::journey;
use expect_test::{Expect, expect};
use model::addon::AddonName;
use model::kubernetes::Cni;
use model::task::{Action, State};

fn world(want: &str, have: &str, wished: &str, seen: &str) -> World {
    World::new("1.34.0", want, have).addons(Cni::Routed, wished, seen)
}

#[track_caller]
fn check((want, have): (&str, &str), (wished, seen): (&str, &str), expected: &Expect) {
    drawn(&world(want, have, wished, seen), expected);
}

#[test]
fn add_ons_come_when_there_is_a_node_to_run_them() {
    let wished = ("metrics-server node-exporter", "");
    check(
        ("c1 w1", "c1 w1~"),
        wished,
        &expect![[r#"
            join     w1
            scheduled
        "#]],
    );
    check(
        ("c1 w1 w2", "c1 w1 w2~"),
        wished,
        &expect![[r#"
            join     w2
            install  c1 (+metrics-server v0.8.0, +node-exporter v1.9.1)
            scheduled
        "#]],
    );
    // Where nobody else is to run them, the control plane does.
    check(
        ("c1", "c1"),
        wished,
        &expect![[r#"
            install  c1 (+metrics-server v0.8.0, +node-exporter v1.9.1)
            scheduled
        "#]],
    );
    check(
        ("c1 w1", "c1 w1"),
        ("metrics-server", "metrics-server"),
        &expect![[r#"
            done
        "#]],
    );
}

#[test]
fn a_control_plane_that_is_not_ready_installs_nothing() {
    check(
        ("c1 w1", "c1! w1"),
        ("metrics-server", ""),
        &expect![[r#"
            held     join c1: the node is not ready
            scheduled
        "#]],
    );
    check(
        ("c1 c2 c3 w1", "c1? c2 c3 w1"),
        ("metrics-server", ""),
        &expect![[r#"
            install  c2 (+metrics-server v0.8.0)
            held     join c1: the machine does not answer
            error
        "#]],
    );
}

#[test]
fn who_connects_pods_comes_before_any_node_is_ready() {
    let flannel = |have, seen| {
        World::new("1.34.0", "c1 w1", have).addons(Cni::Flannel, "node-exporter", seen)
    };
    drawn(
        &flannel("c1! w1~", ""),
        &expect![[r#"
            install  c1 (+flannel v0.27.4)
            held     join w1: other control nodes ready: 0, needed: 1
            held     join c1: the node is not ready
            scheduled
        "#]],
    );
    drawn(
        &flannel("c1 w1~", "flannel"),
        &expect![[r#"
            join     w1
            scheduled
        "#]],
    );
    drawn(
        &flannel("c1 w1", "flannel"),
        &expect![[r#"
            install  c1 (+node-exporter v1.9.1)
            scheduled
        "#]],
    );
    drawn(
        &flannel("c1 w1", "flannel~ node-exporter"),
        &expect![[r#"
            install  c1 (+flannel v0.27.4)
            scheduled
        "#]],
    );
}

#[test]
fn what_changed_is_half_there_or_is_not_named_any_more_is_one_task() {
    check(
        ("c1 w1", "c1 w1"),
        (
            "node-exporter=v1.10.2 metrics-server prometheus",
            "node-exporter metrics-server~ dashboard prometheus",
        ),
        &expect![[r#"
            install  c1 (+node-exporter v1.10.2, +metrics-server v0.8.0, -dashboard)
            scheduled
        "#]],
    );
    check(
        ("c1 w1", "c1 w1"),
        ("", "dashboard"),
        &expect![[r#"
            install  c1 (-dashboard)
            scheduled
        "#]],
    );
}

#[test]
fn one_that_does_its_work_no_more_is_told_and_holds_up_nothing() {
    check(
        ("c1 w1 w2", "c1 w1 w2~"),
        ("node-exporter", "node-exporter!"),
        &expect![[r#"
            join     w2
            held     install c1: node-exporter is not well: 0 of 1 pods serve
            scheduled
        "#]],
    );
}

#[test]
fn an_upgrade_comes_first_and_takes_add_ons_along() {
    let upgrade = |have| {
        let seen = "node-exporter=v1.9.1";
        World::new("1.35.0", "c1 w1", have).addons(Cni::Routed, "node-exporter dashboard", seen)
    };
    drawn(
        &upgrade("c1@35 w1"),
        &expect![[r#"
            drain    w1
            install  c1 (+dashboard v2.7.0)
            held     install c1: one at a time, after w1
            scheduled
        "#]],
    );
    drawn(
        &upgrade("c1@35 w1@35"),
        &expect![[r#"
            install  c1 (+node-exporter v1.10.2, +dashboard v2.7.0)
            scheduled
        "#]],
    );
}

#[test]
fn one_that_fails_keeps_nobody_from_anything() {
    let install = Action::Install {
        addons: world("c1", "c1", "node-exporter", "").desired.addons,
        remove: Vec::new(),
    };
    let failing = |version, want, have| {
        World::new(version, want, have)
            .addons(Cni::Routed, "node-exporter=v1.9.1", "")
            .open("c1", install.clone(), State::Waiting, Some("no image"))
    };
    drawn(
        &failing("1.34.0", "c1 w1 w2", "c1 w1 w2~"),
        &expect![[r#"
            join     w2
            held     install c1: tried 1×: no image
            scheduled
        "#]],
    );
    drawn(
        &failing("1.35.0", "c1 w1", "c1 w1"),
        &expect![[r#"
            drain    c1
            withdraw 1
            held     upgrade w1: one at a time, after c1
            held     install c1: drain is still running
            scheduled
        "#]],
    );
}

#[test]
fn one_that_is_at_work_elsewhere_is_waited_for() {
    let install = Action::Install {
        addons: Vec::new(),
        remove: vec![AddonName::Dashboard],
    };
    let silent = world("c1 c2 c3", "c1? c2 c3", "node-exporter", "dashboard");
    drawn(
        &silent.open("c1", install, State::Running, None),
        &expect![[r#"
            held     join c1: the machine does not answer
            held     install c2: one at a time, after c1
            error
        "#]],
    );
}

#[test]
fn a_cluster_that_goes_takes_its_add_ons_along() {
    check(
        ("", "c1 w1"),
        ("", "node-exporter"),
        &expect![[r#"
            delete   w1
            held     delete c1: one at a time, after w1
            deleting
        "#]],
    );
}

#[test]
fn the_checker_knows_what_may_be_installed() {
    let wished = || world("c1 w1", "c1 w1", "node-exporter", "dashboard");
    judged(
        &wished(),
        &world("c1 w1", "c1 w1", "dashboard", ""),
        &expect![[r#"
            c1: only add-ons that are wished are installed
            c1: only add-ons that are there and not wished are removed
        "#]],
    );
    let mut before = wished();
    before.observed.initialised = false;
    judged(
        &wished(),
        &before,
        &expect![[r#"
            c1: add-ons come when there is a control plane
        "#]],
    );
    let two = || world("c1 c2 c3 w1", "c1 c2 c3 w1", "node-exporter", "");
    let other = Action::Install {
        addons: Vec::new(),
        remove: vec![AddonName::Dashboard],
    };
    judged(
        &two(),
        &two().open("c2", other, State::Running, None),
        &expect![[r#"
            c1: add-ons are changed by one task at a time
        "#]],
    );
}

#[test]
fn a_journey_shows_them() {
    let world = World::new("1.34.0", "c1 w1", "").addons(Cni::Calico, "prometheus", "");
    let expected = expect![[r#"
        cluster edge
                1  create c1 + create w1                                         create        2 min
                2  init c1                                                       create        3 min
                3  join w1 + install c1                                          in place      2 min
                4  install c1                                                    in place      2 min
          ends ready after about 9 min, 2 machines touched
    "#]];
    expected.assert_eq(&journey(&world.view()).to_string());
}
