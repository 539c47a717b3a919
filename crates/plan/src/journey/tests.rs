//! Journeys as they are printed.

use super::{journey, journey_by};
use crate::claims::Claim;
use crate::fixture::World;
use crate::hands::{Hands, Unable};
use crate::pace::Paces;
use crate::price::Prices;
use expect_test::{Expect, expect};
use model::cluster::{Machine, Origin, Role};
use model::task::{Action, Kind, State};
use std::net::Ipv4Addr;

#[track_caller]
fn check(version: &str, want: &str, have: &str, expected: &Expect) {
    let world = World::new(version, want, have);
    expected.assert_eq(&journey(&world.view()).to_string());
}

#[test]
fn a_cluster_from_nothing() {
    check(
        "1.34.0",
        "c1 c2 c3 w1 w2 s1",
        "",
        &expect![[r#"
            cluster edge
                    1  create 3 of control + create 2 of compute + prepare s1        create        2 min
                    2  init c1                                                       create        3 min
                    3  join c2                                                       create        2 min
                    4  join c3 + join 2 of compute + join s1                         create        2 min
              ends ready after about 9 min, 6 machines touched
        "#]],
    );
}

#[test]
fn an_upgrade_repeats_itself_once_per_node() {
    check(
        "1.35.0",
        "c1 c2 c3 w1 w2 w3 w4",
        "c1 c2 c3 w1 w2 w3 w4",
        &expect![[r#"
            cluster edge
                  1-9  3 of control, one at a time: drain, upgrade, uncordon         disturb      18 min
                10-21  4 of compute, one at a time: drain, upgrade, uncordon         disturb      24 min
              disturbs  4 of compute, one at a time; 3 of control, one at a time
              ends ready after about 42 min, 7 machines touched
        "#]],
    );
}

#[test]
fn an_upgrade_over_several_minors_is_told_to_its_end() {
    let mut world = World::new(
        "1.36.3",
        "c1 c2 c3 w1 w2",
        "c1@33.13 c2@33.13 c3@33.13 w1@33.13 w2@33.13",
    );
    world.desired.stone = Some("1.34.4".parse().unwrap());
    expect![[r#"
        cluster edge
                   to v1.34.4
                1  snapshot c1                                                   create        1 min
             2-10  3 of control, one at a time: drain, upgrade, uncordon         disturb      18 min
            11-16  2 of compute, one at a time: drain, upgrade, uncordon         disturb      12 min
                   to v1.35.8
               17  snapshot c1                                                   create        1 min
            18-26  3 of control, one at a time: drain, upgrade, uncordon         disturb      18 min
            27-32  2 of compute, one at a time: drain, upgrade, uncordon         disturb      12 min
                   to v1.36.3
               33  snapshot c1                                                   create        1 min
            34-42  3 of control, one at a time: drain, upgrade, uncordon         disturb      18 min
            43-48  2 of compute, one at a time: drain, upgrade, uncordon         disturb      12 min
          disturbs  2 of compute, one at a time; 3 of control, one at a time
          ends ready after about 1 h 33 min, 5 machines touched
    "#]]
    .assert_eq(&journey(&world.view()).to_string());
    // The same done to one machine several times is not done to several.
    let mut alone = World::new("1.35.8", "c1", "c1@33.13");
    alone.desired.stone = Some("1.34.4".parse().unwrap());
    expect![[r#"
        cluster edge
                   to v1.34.4
                1  snapshot c1                                                   create        1 min
                2  drain c1                                                      disturb       2 min
                3  upgrade c1                                                    in place      3 min
                4  uncordon c1                                                   in place      1 min
                   to v1.35.8
                5  snapshot c1                                                   create        1 min
                6  drain c1                                                      disturb       2 min
                7  upgrade c1                                                    in place      3 min
                8  uncordon c1                                                   in place      1 min
          disturbs  1 of control
          ends ready after about 14 min, 1 machine touched
    "#]]
    .assert_eq(&journey(&alone.view()).to_string());
}

#[test]
fn a_worker_is_replaced_by_one_that_comes_first() {
    check(
        "1.34.0",
        "c1 w2",
        "c1 w1",
        &expect![[r#"
            cluster edge
                    1  create w2                                                     create        2 min
                    2  join w2                                                       create        2 min
                    3  drain w1                                                      disturb       2 min
                    4  leave w1                                                      disturb       1 min
                    5  delete w1                                                     data loss     1 min
              disturbs  1 of compute
              ends ready after about 8 min, 2 machines touched
        "#]],
    );
}

#[test]
fn a_cluster_is_torn_down() {
    check(
        "1.34.0",
        "",
        "c1 c2 c3 w1 w2",
        &expect![[r#"
            cluster edge
                    1  delete 2 of compute                                           data loss     1 min
                    2  delete 3 of control                                           data loss     1 min
              disturbs  2 of compute, all at once; 3 of control, all at once
              ends gone after about 2 min, 5 machines touched
        "#]],
    );
}

#[test]
fn nothing_to_do_is_said() {
    check(
        "1.34.0",
        "c1 w1",
        "c1 w1",
        &expect![[r#"
        cluster edge: nothing to do
    "#]],
    );
}

#[test]
fn a_journey_that_cannot_begin_says_what_it_waits_for() {
    check(
        "1.35.0",
        "c1 w1",
        "c1 w1?",
        &expect![[r#"
            cluster edge: nothing can be done now
              held  join w1: the machine does not answer
                    switch it on; or, if it is lost, take it out of the manifest where it was given, and run `slipway machine replace w1` where Slipway made it
              held  upgrade c1: 1 of 1 already out of service (w1)
                    continues when w1 is back in service
              held  upgrade w1: one at a time, after c1
                    continues after c1
        "#]],
    );
}

#[test]
fn a_thousand_nodes_are_one_line() {
    let names: Vec<_> = (1..=1_000).map(|n| format!("w{n}")).collect();
    let all = format!("c1 {}", names.join(" "));
    check(
        "1.35.0",
        &all,
        &all,
        &expect![[r#"
            cluster edge
                    1  drain c1                                                      disturb       2 min
                    2  upgrade c1                                                    in place      3 min
                    3  uncordon c1                                                   in place      1 min
               4-3003  1000 of compute, one at a time: drain, upgrade, uncordon      disturb       100 h
              disturbs  1000 of compute, one at a time; 1 of control
              ends ready after about 100 h 6 min, 1001 machines touched
        "#]],
    );
}

#[test]
fn what_is_stuck_and_wanted_no_more_is_withdrawn_once() {
    let world = World::new("1.34.0", "c1 w2", "c1 w1-").open(
        "w1",
        Action::Create,
        State::Stuck,
        Some("no such type"),
    );
    expect![[r#"
        cluster edge
                1  create w2 + delete w1                                         data loss     2 min
                2  join w2                                                       create        2 min
          ends ready after about 4 min, 2 machines touched
    "#]]
    .assert_eq(&journey(&world.view()).to_string());
}

#[test]
fn what_waits_for_a_worker_is_part_of_the_journey() {
    let world =
        World::new("1.34.0", "c1 w1", "c1").open("w1", Action::Create, State::Waiting, None);
    expect![[r#"
        cluster edge
                1  create w1                                                     create        2 min
                2  join w1                                                       create        2 min
          ends ready after about 4 min, 1 machine touched
    "#]]
    .assert_eq(&journey(&world.view()).to_string());
}

/// Nodes are changed on Saturdays, from 02:00 to 03:00; the tests' clock stands at Thursday.
const SATURDAYS: &str = r#""windows":[{"days":["sat"],"start":120,"minutes":60,"offset":0}]"#;

#[test]
fn several_workers_are_taken_at_once() {
    let all = "c1 w1 w2 w3 w4 w5";
    let world = World::new("1.35.0", all, all).allow(r#"{"unavailable":2}"#);
    expect![[r#"
        cluster edge
                1  drain c1                                                      disturb       2 min
                2  upgrade c1                                                    in place      3 min
                3  uncordon c1                                                   in place      1 min
              4-9  4 of compute, 2 at a time: drain, upgrade, uncordon           disturb      12 min
               10  drain w5                                                      disturb       2 min
               11  upgrade w5                                                    in place      3 min
               12  uncordon w5                                                   in place      1 min
          disturbs  5 of compute, 2 at a time; 1 of control
          ends ready after about 24 min, 6 machines touched
    "#]]
    .assert_eq(&journey(&world.view()).to_string());
}

#[test]
fn a_journey_waits_for_its_window() {
    let world = World::new("1.35.0", "c1 w1 w2", "c1 w1").allow(&format!("{{{SATURDAYS}}}"));
    let told = journey(&world.view());
    expect![[r#"
        cluster edge
                1  create w2                                                     create        2 min
                2  join w2                                                       create        2 min
                   wait for the window that opens Sat 1970-01-03 02:00 UTC                   2 d 1 h
                3  snapshot c1                                                   create        1 min
                4  drain c1                                                      disturb       2 min
                5  upgrade c1                                                    in place      3 min
                6  uncordon c1                                                   in place      1 min
             7-12  2 of compute, one at a time: drain, upgrade, uncordon         disturb      12 min
          disturbs  2 of compute, one at a time; 1 of control
          ends ready after about 2 d 2 h, 3 machines touched
    "#]]
    .assert_eq(&told.to_string());
    assert_eq!(told.minutes, 4 + (49 * 60 + 40) + 19);
}

#[test]
fn a_fleet_takes_many_windows_and_few_lines() {
    let names: Vec<_> = (1..=55).map(|n| format!("w{n}")).collect();
    let all = format!("c1 {}", names.join(" "));
    let seen = all.replace("c1", "c1@35");
    let budgets = format!(r#"{{"unavailable":2,{SATURDAYS}}}"#);
    let world = World::new("1.35.0", &all, &seen).allow(&budgets);
    expect![[r#"
        cluster edge
                   wait for the window that opens Sat 1970-01-03 02:00 UTC                   2 d 1 h
             1-30  20 of compute, 2 at a time: drain, upgrade, uncordon          disturb         1 h
            31-60  the same in the window that opens Sat 1970-01-10 02:00 UTC                    7 d
                   wait for the window that opens Sat 1970-01-17 02:00 UTC                  6 d 23 h
            61-81  14 of compute, 2 at a time: drain, upgrade, uncordon          disturb      42 min
               82  drain w55                                                     disturb       2 min
               83  upgrade w55                                                   in place      3 min
               84  uncordon w55                                                  in place      1 min
          disturbs  55 of compute, 2 at a time
          ends ready after about 16 d 2 h, 55 machines touched
    "#]]
    .assert_eq(&journey(&world.view()).to_string());
}

#[test]
fn a_journey_assumes_that_other_clusters_give_back_what_it_waits_for() {
    let world = World::new("1.35.0", "c1 w1", "c1@35 w1")
        .allow(r#"{"pools":{"compute":{"group":"rack"}},"groups":{"rack":1}}"#)
        .elsewhere("rack", "west-compute-07");
    expect![[r#"
        cluster edge
                   wait until west-compute-07 of cluster west is back in service
                1  drain w1                                                      disturb       2 min
                2  upgrade w1                                                    in place      3 min
                3  uncordon w1                                                   in place      1 min
          disturbs  1 of compute
          ends ready after about 6 min, 1 machine touched
    "#]]
    .assert_eq(&journey(&world.view()).to_string());
}

#[test]
fn a_wait_that_leads_nowhere_ends_with_its_reason() {
    let budgets = format!("{{{SATURDAYS}}}");
    let world = World::new("1.35.0", "c1 s1", "c1@35 s1")
        .secrets()
        .allow(&budgets);
    let sick = World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2?@35").allow(&budgets);
    expect![[r#"
        cluster edge: nothing can be done now
          held  drain s1: secret attic is not set
                run `slipway secret set attic KEY`, or name another in the manifest
    "#]]
    .assert_eq(&journey(&world.missing("attic").view()).to_string());
    expect![[r#"
        cluster edge: nothing can be done now
          held  join w2: the machine does not answer
                switch it on; or, if it is lost, take it out of the manifest where it was given, and run `slipway machine replace w2` where Slipway made it
          held  upgrade w1: 1 of 1 already out of service (w2)
                continues when w2 is back in service
    "#]]
    .assert_eq(&journey(&sick.view()).to_string());
}

#[test]
fn a_journey_that_was_kept_before_there_were_waits_is_still_read() {
    let kept = r#"{"rounds":[],"repeats":1}"#;
    let block: super::Block = serde_json::from_str(kept).unwrap();
    assert_eq!(block.wait, None);
    assert_eq!(serde_json::to_string(&block).unwrap(), kept);
}

#[test]
fn what_others_have_is_told_and_keeps_nobody_else_waiting() {
    let mut world = World::new("1.34.0", "c1 s1 s2", "");
    let s2 = world.desired.machines.last_mut().unwrap();
    let Origin::Given { endpoint, .. } = &mut s2.origin else {
        panic!("{s2:?} was not given");
    };
    *endpoint = Ipv4Addr::new(203, 0, 113, 9);
    world.claimed = vec![Claim {
        thing: Claim::address(*endpoint),
        by: "attic-01 of cluster west in project default".to_owned(),
        goes: false,
    }];
    expect![[r#"
        cluster edge
                1  create c1 + prepare s1                                        create        2 min
                2  init c1                                                       create        3 min
                3  join s1                                                       create        2 min
          held  prepare s2: address 203.0.113.9 is held by attic-01 of cluster west in project default
                continues when attic-01 of cluster west in project default gives it back; remove it from one of the manifests
          ends waiting after about 7 min, 2 machines touched
    "#]].assert_eq(&journey(&world.view()).to_string());
    world.claimed[0].goes = true;
    expect![[r#"
        cluster edge
                1  create c1 + prepare s1                                        create        2 min
                2  init c1                                                       create        3 min
                3  join s1                                                       create        2 min
                   wait until attic-01 of cluster west in project default is gone, which has address 203.0.113.9
                4  prepare s2                                                    create        1 min
                5  join s2                                                       create        2 min
          ends ready after about 10 min, 3 machines touched
    "#]].assert_eq(&journey(&world.view()).to_string());
}

#[test]
fn who_serves_stays_while_others_keep_the_address_of_the_next_one() {
    let mut world = World::new("1.34.0", "c1 s1", "c1 w1");
    world.claimed = vec![Claim {
        thing: Claim::address(Ipv4Addr::new(203, 0, 113, 5)),
        by: "attic-01 of cluster west in project default".to_owned(),
        goes: false,
    }];
    expect![[r#"
        cluster edge: nothing can be done now
          held  drain w1: additions come first: 1 not ready yet (s1)
                continues when s1 is ready
          held  prepare s1: address 203.0.113.5 is held by attic-01 of cluster west in project default
                continues when attic-01 of cluster west in project default gives it back; remove it from one of the manifests
    "#]].assert_eq(&journey(&world.view()).to_string());
    world.claimed[0].goes = true;
    expect![[r#"
        cluster edge
                1  drain w1                                                      disturb       2 min
                2  leave w1                                                      disturb       1 min
                3  delete w1                                                     data loss     1 min
                   wait until attic-01 of cluster west in project default is gone, which has address 203.0.113.5
                4  prepare s1                                                    create        1 min
                5  join s1                                                       create        2 min
          disturbs  1 of compute
          ends ready after about 7 min, 2 machines touched
    "#]].assert_eq(&journey(&world.view()).to_string());
}

#[test]
fn what_nobody_can_do_waits_for_a_person_and_its_cost_is_told() {
    let world = World::new("1.34.0", "c1 w1 w2", "");
    let hands = |machine: &Machine, kind: Kind| {
        (kind == Kind::Create && machine.role == Role::Compute).then(|| Unable {
            because: "nobody here makes such machines".to_owned(),
            next: "make them yourself".to_owned(),
        })
    };
    let told = journey_by(&world.view(), &Prices::usual(), &Paces::default(), &hands);
    expect![[r#"
        cluster edge
                1  create c1                                                     create        2 min
                2  init c1                                                       create        3 min
          held  create w1 and 1 more: nobody here makes such machines
                make them yourself
          ends waiting after about 5 min, 1 machine touched
    "#]]
    .assert_eq(&told.to_string());
    let able = journey(&world.view());
    assert_eq!((told.made, told.cost), (able.made, able.cost));
}

#[test]
fn who_has_to_set_secrets_hears_at_once_what_is_in_the_way_besides_and_what_it_costs() {
    let mut world = World::new("1.34.0", "c1 w1 w2", "")
        .at_cloud("c1 w1 w2")
        .secrets();
    for machine in &mut world.desired.machines {
        if let Origin::Made { server_type, .. } = &mut machine.origin {
            "cpx31".clone_into(server_type);
        }
    }
    let hands = |_: &Machine, kind: Kind| {
        (kind == Kind::Create).then(|| Unable {
            because: "nobody here makes such machines".to_owned(),
            next: "make them yourself".to_owned(),
        })
    };
    let world = world
        .missing("control/credentials")
        .missing("compute/credentials");
    let told = journey_by(&world.view(), &Prices::usual(), &Paces::default(), &hands);
    let text = told.to_string();
    for line in [
        "held  create c1: secret control/credentials is not set",
        "held  create w1 and 1 more: secret compute/credentials is not set",
        "held  create c1 and 2 more: nobody here makes such machines",
        "costs  $0.00 → $",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert_eq!(told.cost.before.cents, 0);
    assert!(told.cost.after.cents > 0 && told.cost.after.unknown.is_empty());
    assert_eq!(told.made.len(), 2, "what machines would be made of");
}

#[test]
fn what_somebody_agrees_to_is_the_same_however_tasks_stand() {
    let world = || {
        let mut world = World::new("1.34.0", "c1 w1 w2", "").at_cloud("c1 w1 w2");
        for machine in &mut world.desired.machines {
            if let Origin::Made { server_type, .. } = &mut machine.origin {
                "cpx31".clone_into(server_type);
            }
        }
        world
    };
    let unable = |machine: &Machine, kind: Kind| {
        (kind == Kind::Create && machine.role == Role::Compute).then(|| Unable {
            because: "nobody here makes such machines".to_owned(),
            next: "make them yourself".to_owned(),
        })
    };
    let able = |_: &Machine, _: Kind| None;
    let told = |world: &World, hands: Hands<'_>| {
        journey_by(&world.view(), &Prices::usual(), &Paces::default(), hands)
    };
    let fresh = told(&world(), &able);
    assert!(fresh.cost.after.cents > 0);
    let tasks: [fn(World) -> World; 3] = [
        |world| world.open("w1", Action::Create, State::Stuck, Some("nobody makes it")),
        |world| world.open("w1", Action::Create, State::Waiting, Some("out of stock")),
        |world| {
            let mut world = world.open("w1", Action::Create, State::Stuck, Some("nobody makes it"));
            world.open[0].corrected = true;
            world
        },
    ];
    for task in tasks {
        let both: [Hands<'_>; 2] = [&able, &unable];
        for hands in both {
            let now = told(&task(world()), hands);
            assert_eq!(
                (&now.made, &now.ports, &now.cost),
                (&fresh.made, &fresh.ports, &fresh.cost)
            );
        }
        // Nobody makes what nobody can make, whatever was begun.
        let now = told(&task(world()), &unable);
        assert_eq!(now.blocks, told(&world(), &unable).blocks);
        assert_eq!(now.held, told(&world(), &unable).held);
    }
}

#[test]
fn a_machine_and_its_successor_of_the_same_name_are_two() {
    let world = World::new("1.34.0", "c1 w1", "");
    let mut told = journey(&world.view());
    assert!(told.to_string().contains("2 machines touched"));
    let other = told.machines.values().next().unwrap().clone();
    let (_, last) = told.machines.iter_mut().next_back().unwrap();
    last.extend(other);
    assert!(told.to_string().contains("3 machines touched"));
}

#[test]
fn machines_of_one_pool_that_do_different_things_are_told_apart() {
    let mut world = World::new("1.34.0", "c1 w1 w2", "");
    for machine in &mut world.desired.machines {
        machine.pool = "all".parse().unwrap();
    }
    expect![[r#"
        cluster edge
                1  create c1 (control) + create 2 of all (compute)               create        2 min
                2  init c1 (control)                                             create        3 min
                3  join 2 of all (compute)                                       create        2 min
          ends ready after about 7 min, 3 machines touched
    "#]]
    .assert_eq(&journey(&world.view()).to_string());
}
