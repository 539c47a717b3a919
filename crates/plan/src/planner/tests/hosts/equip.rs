//! Hosts that are equipped again: never many that serve at once.

use super::super::judged;
use super::{drawn, equip, init, plan, proxy, told};
use crate::fixture::{World, host};
use expect_test::expect;
use model::intent::Wish;
use model::task::{Action, Kind, State};

#[test]
fn another_proxy_is_put_in_place_before_an_upgrade_and_never_beside_it() {
    let mut world = World::hosts("c1 w1 b1").settled();
    world.desired.version = "1.35.0".parse().unwrap();
    world.desired.proxy = Some(proxy());
    told(
        world,
        &expect![[r#"
            1
            equip    c1
            equip    b1
            held     equip w1: 1 of 1 already out of service (c1)
            held     drain c1: equip is still running
            held     upgrade w1: one at a time, after c1
            scheduled
            2
            equip    w1
            release 1
            held     upgrade c1: 1 of 1 already out of service (w1)
            held     upgrade w1: one at a time, after c1
            scheduled
            3
            drain    c1
            release 1
            held     upgrade w1: one at a time, after c1
            scheduled
            4
            upgrade  c1
            held     upgrade w1: one at a time, after c1
            scheduled
            5
            uncordon c1
            held     upgrade w1: 1 of 1 already out of service (c1)
            scheduled
            6
            drain    w1
            release 1
            scheduled
            7
            upgrade  w1
            scheduled
            8
            uncordon w1
            scheduled
            9
            release 1
            done
        "#]],
    );
}

#[test]
fn another_proxy_disturbs_no_drain_and_keeps_no_node_out_of_service() {
    let mut world = World::hosts("c1 w1").settled();
    world.desired.version = "1.35.0".parse().unwrap();
    let mut world = world.after(1);
    world.desired.proxy = Some(proxy());
    let draining = world.open("c1", Action::Drain, State::Running, None);
    drawn(
        &draining,
        &expect![[r#"
            held     equip c1: drain is still running
            held     equip w1: 1 of 1 already out of service (c1)
            held     upgrade w1: one at a time, after c1
            scheduled
        "#]],
    );
    let mut back = World::hosts("c1 w1").settled();
    back.desired.version = "1.35.0".parse().unwrap();
    let mut back = back.after(2);
    back.desired.proxy = Some(proxy());
    drawn(
        &back,
        &expect![[r#"
            equip    c1
            held     equip w1: 1 of 1 already out of service (c1)
            held     uncordon c1: equip is still running
            held     upgrade w1: 1 of 1 already out of service (c1)
            scheduled
        "#]],
    );
    // But where it fails, the node comes back into service first.
    let action = equip(&back, "c1");
    let mut back = back.open("c1", action, State::Stuck, Some("no proxy there"));
    drawn(
        &back,
        &expect![[r#"
            uncordon c1
            withdraw 1
            held     equip w1: 1 of 1 already out of service (c1)
            held     upgrade w1: 1 of 1 already out of service (c1)
            scheduled
        "#]],
    );
    let next = plan(&back.view());
    back.follow(&next);
    drawn(
        &back,
        &expect![[r#"
            equip    c1
            held     equip w1: 1 of 1 already out of service (c1)
            held     upgrade w1: 1 of 1 already out of service (c1)
            scheduled
        "#]],
    );
}

#[test]
fn a_starting_control_plane_is_not_forgotten_for_another_proxy() {
    let mut world =
        World::hosts("c1 c2")
            .after(4)
            .open("c2", init(), State::Waiting, Some("timeout"));
    world.desired.proxy = Some(proxy());
    drawn(
        &world,
        &expect![[r#"
        equip    c1
        held     init c2: tried 1×: timeout
        held     join c1: one at a time, after c2
        scheduled
    "#]],
    );
    let mut alone = World::hosts("c1")
        .after(4)
        .open("c1", init(), State::Stuck, Some("no route"));
    alone.desired.proxy = Some(proxy());
    drawn(
        &alone,
        &expect![[r#"
        equip    c1
        withdraw 1
        held     init c1: equip is still running
        scheduled
    "#]],
    );
}

/// A cluster whose hosts have to be equipped again.
fn outdated(want: &str) -> World {
    let mut world = World::hosts(want).settled();
    world.desired.proxy = Some(proxy());
    world
}

#[test]
fn hosts_that_serve_are_equipped_again_within_the_budgets() {
    told(
        outdated("c1 c2 c3 w1 w2"),
        &expect![[r#"
        1
        equip    c1
        held     equip c2 and 3 more: 1 of 1 already out of service (c1)
        scheduled
        2
        equip    c2
        release 1
        held     equip c3 and 2 more: 1 of 1 already out of service (c2)
        scheduled
        3
        equip    c3
        release 1
        held     equip w1 and 1 more: 1 of 1 already out of service (c3)
        scheduled
        4
        equip    w1
        release 1
        held     equip w2: 1 of 1 already out of service (w1)
        scheduled
        5
        equip    w2
        release 1
        scheduled
        6
        release 1
        done
    "#]],
    );
    let two = r#"{"unavailable":3,"pools":{"compute":{"unavailable":2}}}"#;
    drawn(
        &outdated("c1 c2 c3 w1 w2 w3").allow(two),
        &expect![[r#"
        equip    c1
        equip    w1
        equip    w2
        held     equip c2 and 1 more: 1 of 1 of the control plane already out of service (c1)
        held     equip w3: 3 of 3 already out of service (c1)
        scheduled
    "#]],
    );
    let rack = r#"{"unavailable":3,"pools":{"compute":{"group":"rack"}},"groups":{"rack":1}}"#;
    drawn(
        &outdated("c1 w1 w2").allow(rack).elsewhere("rack", "w9"),
        &expect![[r#"
            equip    c1
            held     equip w1 and 1 more: 1 of 1 of group rack already out of service (w9 of cluster west)
            scheduled
        "#]],
    );
}

#[test]
fn hosts_that_serve_are_equipped_again_within_a_window() {
    let night = r#"{"windows":[{"days":["mon","tue","wed","thu","fri","sat","sun"],"start":120,"minutes":60,"offset":0}]}"#;
    drawn(
        &outdated("c1 w1").want("c1 w1 w2").allow(night),
        &expect![[r#"
            create   w2
            held     equip c1 and 1 more: waits for its window, which opens Thu 1970-01-01 02:00 UTC
            scheduled
        "#]],
    );
    // What was begun is finished.
    let begun = outdated("c1 w1").after(1).allow(night);
    let action = equip(&begun, "c1");
    let mut begun = begun.open("c1", action, State::Waiting, Some("timeout"));
    begun.host("c1").equipped = None;
    drawn(
        &begun,
        &expect![[r#"
        held     equip c1: tried 1×: timeout
        held     equip w1: waits for its window, which opens Thu 1970-01-01 02:00 UTC
        scheduled
    "#]],
    );
}

#[test]
fn where_it_fails_the_others_stay_as_they_are() {
    let failing = || {
        let world = outdated("c1 w1 w2");
        let action = equip(&world, "c1");
        let mut failing = world
            .after(1)
            .open("c1", action, State::Stuck, Some("no proxy there"));
        failing.host("c1").equipped = None;
        failing
    };
    drawn(
        &failing(),
        &expect![[r#"
        held     equip c1: stuck: no proxy there
        held     equip w1 and 1 more: 1 of 1 already out of service (c1)
        error
    "#]],
    );
    // Who gives it up lets the others go on, and so does who corrects it.
    let wish = Wish::Cancel {
        task: model::id::TaskId::derive(crate::fixture::origin("c1", 9)),
        machine: host("c1").id,
        kind: Kind::Equip,
    };
    drawn(
        &failing().wish(wish),
        &expect![[r#"
        equip    w1
        withdraw 1
        release 1
        held     equip c1: cancelled by ann
        held     equip w2: 1 of 1 already out of service (w1)
        error
    "#]],
    );
    let mut taken_back = failing();
    taken_back.desired.proxy = None;
    taken_back.host("c1").equipped =
        Some(taken_back.desired.recipe(&host("c1"), true).fingerprint());
    taken_back.host("w1").equipped = None;
    drawn(
        &taken_back,
        &expect![[r#"
        equip    w1
        withdraw 1
        release 1
        scheduled
    "#]],
    );
}

#[test]
fn what_does_not_serve_is_equipped_at_once() {
    let mut sick = outdated("c1 w1 w2");
    sick.not_ready("w2");
    drawn(
        &sick,
        &expect![[r#"
        equip    w2
        held     equip c1 and 1 more: 1 of 1 already out of service (w2)
        held     join w2: the node is not ready
        scheduled
    "#]],
    );
}

#[test]
fn members_of_the_control_plane_are_equipped_or_changed_one_at_a_time() {
    let nine = r#"{"unavailable":9}"#;
    let world = outdated("c1 c2 c3 w1").allow(nine);
    let action = equip(&world, "c2");
    let mut world = world.open("c2", action, State::Running, None);
    world.desired.version = "1.35.0".parse().unwrap();
    drawn(
        &world,
        &expect![[r#"
        equip    w1
        held     equip c1 and 1 more: 1 of 1 of the control plane already out of service (c2)
        held     upgrade c1: 1 of 1 of the control plane already out of service (c2)
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
}

#[test]
fn the_checker_knows_that_who_is_equipped_again_may_not_serve() {
    let nine = r#"{"unavailable":9}"#;
    let many = || outdated("c1 c2 w1").allow(nine);
    judged(
        &many(),
        &outdated("c1 c2 w1"),
        &expect![[r#"
        c1: a cluster keeps to its budget
        w1: a cluster keeps to its budget
    "#]],
    );
    let action = equip(&many(), "c2");
    let running = many().open("c2", action, State::Running, None);
    judged(
        &many(),
        &running,
        &expect![[r#"
        c1: one member of the control plane is changed at a time
    "#]],
    );
    let mut without = plan(&many().view());
    without.disturbs.clear();
    let notes = crate::check::check(&many().view(), &without);
    let told: Vec<_> = notes.iter().map(ToString::to_string).collect();
    let row = "who is out of service because of us has a row in the ledger";
    assert_eq!(told, [format!("c1: {row}"), format!("w1: {row}")]);
}

#[test]
fn who_plans_sees_that_hosts_are_equipped_one_after_the_other() {
    let told = crate::journey(&outdated("c1 c2 c3 w1 w2 b1 b2").view());
    let text = told.to_string();
    expect![[r#"
        cluster edge
              1-2  2 times 1 of control + 1 of door: equip                       in place      4 min
                3  equip c3                                                      in place      2 min
              4-5  2 of compute, one at a time: equip                            in place      4 min
          disturbs  2 of compute, one at a time; 3 of control, one at a time
          ends ready after about 10 min, 7 machines touched
    "#]]
    .assert_eq(&text);
}
