//! Certificates that end soon: whose turn it is, and what they wait for.

use super::disruption::LATER;
use super::{drawn, judged};
use crate::fixture::{NOW, World, machine};
use crate::journey::journey;
use crate::planner::plan;
use expect_test::expect;
use model::observed::CertificatesFact;
use model::task::{Action, State};
use model::time::Timestamp;
use std::time::Duration;

fn days(days: u64) -> Timestamp {
    NOW.plus(Duration::from_hours(days * 24))
}

/// A world in which certificates end in so many days.
fn ending(mut world: World, ends: &[(&str, u64)]) -> World {
    for (name, left) in ends {
        let seen = world.observed.machines.get_mut(&machine(name).id).unwrap();
        seen.certificates = Some((CertificatesFact { end: days(*left) }, NOW));
    }
    world
}

fn three() -> World {
    World::new("1.34.0", "c1 c2 c3 w1", "c1 c2 c3 w1")
}

#[test]
fn certificates_are_renewed_thirty_days_before_they_end_one_member_at_a_time() {
    drawn(
        &ending(three(), &[("c1", 31), ("c2", 300), ("c3", 31)]),
        &expect![[r#"
            done
        "#]],
    );
    // The one that ends first goes first.
    drawn(
        &ending(three(), &[("c1", 30), ("c2", 300), ("c3", 20)]),
        &expect![[r#"
            renew    c3
            held     renew c1: 1 of 1 already out of service (c3)
            scheduled
        "#]],
    );
    let renewing = |state, error| {
        let world = ending(three(), &[("c1", 20), ("c2", 20), ("c3", 20)]);
        world.open("c2", Action::Renew { end: days(20) }, state, error)
    };
    drawn(
        &renewing(State::Running, None),
        &expect![[r#"
        held     renew c1 and 1 more: 1 of 1 already out of service (c2)
        scheduled
    "#]],
    );
    drawn(
        &renewing(State::Waiting, Some("timeout")),
        &expect![[r#"
            held     renew c2: tried 1×: timeout
            held     renew c1 and 1 more: 1 of 1 already out of service (c2)
            scheduled
        "#]],
    );
}

#[test]
fn the_only_member_is_renewed_in_place_and_keeps_its_workloads() {
    let world = World::new("1.34.0", "c1 w1", "c1 w1");
    drawn(
        &ending(world, &[("c1", 5)]),
        &expect![[r#"
        renew    c1
        scheduled
    "#]],
    );
}

#[test]
fn etcd_keeps_its_quorum_and_who_is_sick_is_renewed_all_the_same() {
    let one_away = || World::new("1.34.0", "c1 c2 c3", "c1 c2 c3?");
    drawn(
        &ending(one_away(), &[("c1", 20)]),
        &expect![[r#"
        held     join c3: the machine does not answer
        held     renew c1: 1 of 1 already out of service (c3)
        error
    "#]],
    );
    let sick = World::new("1.34.0", "c1 c2 c3", "c1! c2! c3!");
    drawn(
        &ending(sick, &[("c1", 0), ("c2", 0)]),
        &expect![[r#"
        renew    c1
        held     join c1 and 2 more: the node is not ready
        held     renew c2: one at a time, after c1
        scheduled
    "#]],
    );
    let all = || World::new("1.34.0", "c1 c2 c3", "c1 c2 c3");
    judged(
        &ending(all(), &[("c1", 20)]),
        &ending(one_away(), &[("c1", 20)]),
        &expect![[r#"
            c1: a cluster keeps to its budget
            c1: one member of the control plane is out of service at a time
            c1: etcd keeps its quorum
        "#]],
    );
}

#[test]
fn a_window_is_waited_for_unless_the_end_is_near() {
    let at = |left| ending(three(), &[("c1", left)]).allow(LATER);
    drawn(
        &at(8),
        &expect![[r#"
        held     renew c1: waits for its window, which opens Thu 1970-01-01 01:16 UTC
        scheduled
    "#]],
    );
    drawn(
        &at(7),
        &expect![[r#"
        renew    c1
        scheduled
    "#]],
    );
    judged(
        &at(7),
        &at(8),
        &expect![[r#"
        c1: machines are taken out of service only within a window
    "#]],
    );
}

#[test]
fn an_upgrade_renews_on_its_way_unless_the_end_is_near() {
    let outdated = |left| {
        let world = World::new("1.35.0", "c1 c2 c3", "c1 c2 c3");
        ending(world, &[("c2", left)])
    };
    drawn(
        &outdated(20),
        &expect![[r#"
        drain    c1
        held     upgrade c2 and 1 more: one at a time, after c1
        scheduled
    "#]],
    );
    drawn(
        &outdated(6),
        &expect![[r#"
        renew    c2
        held     upgrade c1: 1 of 1 already out of service (c2)
        held     upgrade c2 and 1 more: one at a time, after c1
        scheduled
    "#]],
    );
}

#[test]
fn it_is_looked_again_when_they_become_due_and_when_the_end_is_near() {
    let wake = |left| {
        let mut world = ending(three(), &[("c1", left)]);
        // Who is saved every day is looked at every day.
        world.desired.etcd_backup = None;
        plan(&world.view()).wake
    };
    assert_eq!(wake(100), Some(days(70)));
    assert_eq!(wake(20), Some(days(13)));
    assert_eq!(wake(3), None);
}

#[test]
fn a_journey_shows_one_after_the_other_and_ends() {
    let world = ending(three(), &[("c1", 20), ("c2", 20), ("c3", 20)]);
    let journey = journey(&world.view());
    expect![[r#"
        cluster edge
              1-3  3 of control, one at a time: renew                            in place      6 min
          disturbs  3 of control, one at a time
          ends ready after about 6 min, 3 machines touched
    "#]]
    .assert_eq(&journey.to_string());
}
