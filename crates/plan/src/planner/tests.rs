//! Every test is one picture: a world on the left, the plan on the right.

use super::plan;
use crate::check::check as judge;
use crate::fixture::{World, machine, origin, picture};
use expect_test::{Expect, expect};
use model::id::TaskId;
use model::intent::Wish;
use model::task::{Action, Kind, State};

mod addons;
mod disruption;
mod exits;
mod gates;
mod hops;
mod hosts;
mod lost;
mod renewal;
mod snapshots;
mod strays;
mod under_way;

/// The only place that knows how to call the planner; every plan passes the checker.
#[track_caller]
fn drawn(world: &World, expected: &Expect) {
    let plan = plan(&world.view());
    assert_eq!(
        judge(&world.view(), &plan),
        Vec::new(),
        "the checker objects"
    );
    expected.assert_eq(&picture(&plan));
}

/// What the checker says of a plan that was made for another world.
#[track_caller]
fn judged(made: &World, now: &World, expected: &Expect) {
    let plan = plan(&made.view());
    assert_eq!(
        judge(&made.view(), &plan),
        Vec::new(),
        "else it proves nothing"
    );
    let notes = judge(&now.view(), &plan);
    let told: String = notes.iter().map(|note| format!("{note}\n")).collect();
    expected.assert_eq(&told);
}

/// What a node of that name carries whose cluster says nothing of it.
fn care(name: &str) -> model::care::Care {
    crate::care::care(&World::new("1.34.0", name, "").desired, &machine(name), &[])
}

#[track_caller]
fn check(want: &str, have: &str, expected: &Expect) {
    drawn(&World::new("1.34.0", want, have), expected);
}

#[track_caller]
fn check_upgrade(want: &str, have: &str, expected: &Expect) {
    drawn(&World::new("1.35.0", want, have), expected);
}

#[test]
fn nothing_to_do_is_an_empty_plan() {
    check(
        "c1 c2 c3 w1",
        "c1 c2 c3 w1",
        &expect![[r#"
        done
    "#]],
    );
}

#[test]
fn all_machines_are_made_at_once() {
    check(
        "c1 c2 c3 w1 s1",
        "c2.",
        &expect![[r#"
        create   c1
        create   c2
        create   c3
        create   w1
        prepare  s1
        scheduled
    "#]],
    );
}

#[test]
fn who_serves_stays_while_others_keep_what_the_next_one_needs() {
    let world = |version: &str, want: &str| {
        let mut world = World::new(version, want, "c1 w1 s1x");
        world.blocked = vec!["s1".parse().unwrap()];
        world
    };
    // Somebody else gives it back by themselves.
    drawn(
        &world("1.34.0", "c1 s1"),
        &expect![[r#"
        prepare  s1
        drain    w1
        scheduled
    "#]],
    );
    let mut kept = world("1.34.0", "c1 s1");
    kept.shut_out = kept.blocked.clone();
    drawn(
        &kept,
        &expect![[r#"
        prepare  s1
        held     drain w1: additions come first: 1 not ready yet (s1)
        scheduled
    "#]],
    );
    // Those that stay do not wait for one that may never come.
    let mut kept = world("1.35.0", "c1 s1 w1");
    kept.shut_out = kept.blocked.clone();
    drawn(
        &kept,
        &expect![[r#"
        prepare  s1
        drain    c1
        held     upgrade w1: one at a time, after c1
        scheduled
    "#]],
    );
}

#[test]
fn one_control_plane_is_started_and_the_others_wait() {
    check(
        "c1 c2 c3 w1",
        "c1. c2~ c3~ w1~",
        &expect![[r#"
        create   c1
        init     c2
        held     join c3: one at a time, after c2
        held     join w1: the control plane comes first (c1)
        scheduled
    "#]],
    );
}

#[test]
fn control_machines_join_one_after_the_other_and_workers_after_a_quorum() {
    check(
        "c1 c2 c3 w1 w2",
        "c1 c2~ c3~ w1~ w2~",
        &expect![[r#"
        join     c2
        held     join c3: one at a time, after c2
        held     join w1 and 1 more: the control plane comes first (c2)
        scheduled
    "#]],
    );
    check(
        "c1 c2 c3 w1 w2",
        "c1 c2 c3~ w1~ w2~",
        &expect![[r#"
        join     c3
        join     w1
        join     w2
        scheduled
    "#]],
    );
}

#[test]
fn who_vanished_leaves_its_cluster_and_is_made_again() {
    check(
        "c1 c2 c3 w1 w2",
        "c1 c2 c3 w1+ w2x",
        &expect![[r#"
        leave    w1
        create   w2
        scheduled
    "#]],
    );
    // Etcd counts on it until it has left.
    check(
        "c1 c2 c3 w1",
        "c1 c2+ c3 w1",
        &expect![[r#"
        leave    c2
        scheduled
    "#]],
    );
    check(
        "c1 c2 c3",
        "c1 c2+ c3 c4",
        &expect![[r#"
        leave    c2
        held     drain c4: additions come first: 1 not ready yet (c2)
        scheduled
    "#]],
    );
    check(
        "c1 c2 c3 c4 c5",
        "c1 c2+ c3 c4+ c5",
        &expect![[r#"
            leave    c2
            held     leave c4: one at a time, after c2
            scheduled
        "#]],
    );
}

#[test]
fn a_lost_control_plane_is_not_started_again() {
    check(
        "c1 w1",
        "* c1~ w1",
        &expect![[r#"
            held     join c1: every member of the control plane is gone
            error
        "#]],
    );
}

#[test]
fn surplus_nodes_leave_one_at_a_time() {
    check(
        "c1 w1",
        "c1 w1 w2 w3",
        &expect![[r#"
        drain    w2
        held     drain w3: one at a time, after w2
        scheduled
    "#]],
    );
    check(
        "c1 w1",
        "c1 w1 w2/ w3",
        &expect![[r#"
        leave    w2
        held     drain w3: one at a time, after w2
        scheduled
    "#]],
    );
    check(
        "c1 w1",
        "c1 w1 w2~ w3",
        &expect![[r#"
        delete   w2
        drain    w3
        scheduled
    "#]],
    );
}

#[test]
fn additions_come_before_deletions() {
    check(
        "c1 w1 w3",
        "c1 w1 w2",
        &expect![[r#"
        create   w3
        held     drain w2: additions come first: 1 not ready yet (w3)
        scheduled
    "#]],
    );
}

#[test]
fn an_unreachable_node_spends_the_budget() {
    check(
        "c1 w1 w2",
        "c1 w1? w2 w3",
        &expect![[r#"
        held     join w1: the machine does not answer
        held     drain w3: 1 of 1 already out of service (w1)
        error
    "#]],
    );
}

#[test]
fn a_machine_that_does_not_answer_while_it_is_made_is_no_trouble_yet() {
    let made = |state| {
        World::new("1.34.0", "c1 w1", "c1 w1~?").open("w1", Action::Create, state, Some("timeout"))
    };
    drawn(
        &made(State::Running),
        &expect![[r#"
        scheduled
    "#]],
    );
    drawn(
        &made(State::Waiting),
        &expect![[r#"
        withdraw 1
        held     join w1: the machine does not answer
        error
    "#]],
    );
}

#[test]
fn a_node_that_is_sick_already_may_leave_at_once() {
    check(
        "c1 w1",
        "c1 w1 w2? w3",
        &expect![[r#"
        leave    w2
        held     drain w3: one at a time, after w2
        scheduled
    "#]],
    );
}

#[test]
fn a_machine_that_never_joined_goes_without_ado() {
    check(
        "c1 w1",
        "c1 w1 w2. w3-",
        &expect![[r#"
        delete   w2
        delete   w3
        scheduled
    "#]],
    );
}

#[test]
fn a_control_machine_is_not_removed_at_the_price_of_the_quorum() {
    check(
        "c1 c2 c4",
        "c1 c2! c3 c4",
        &expect![[r#"
        held     join c2: the node is not ready
        held     drain c3: 1 of 1 already out of service (c2)
        scheduled
    "#]],
    );
    check(
        "c1",
        "c1 c2 c3",
        &expect![[r#"
        drain    c2
        held     drain c3: one at a time, after c2
        scheduled
    "#]],
    );
}

#[test]
fn an_upgrade_takes_the_control_plane_first_one_node_at_a_time() {
    check_upgrade(
        "c1 c2 c3 w1 w2",
        "c1 c2 c3 w1 w2",
        &expect![[r#"
        drain    c1
        held     upgrade c2 and 3 more: one at a time, after c1
        scheduled
    "#]],
    );
    check_upgrade(
        "c1 c2 c3 w1 w2",
        "c1/ c2 c3 w1 w2",
        &expect![[r#"
        upgrade  c1
        held     upgrade c2 and 3 more: one at a time, after c1
        scheduled
    "#]],
    );
    check_upgrade(
        "c1 c2 c3 w1 w2",
        "c1/@35 c2 c3 w1 w2",
        &expect![[r#"
        uncordon c1
        held     upgrade c2: 1 of 1 already out of service (c1)
        held     upgrade c3 and 2 more: one at a time, after c2
        scheduled
    "#]],
    );
    check_upgrade(
        "c1 c2 c3 w1 w2",
        "c1@35 c2@35 c3@35 w1/ w2",
        &expect![[r#"
        upgrade  w1
        held     upgrade w2: one at a time, after w1
        scheduled
    "#]],
    );
}

#[test]
fn an_upgrade_waits_for_a_stable_topology() {
    check_upgrade(
        "c1 w1 w2",
        "c1 w1",
        &expect![[r#"
        create   w2
        held     upgrade c1: additions come first: 1 not ready yet (w2)
        held     upgrade w1: one at a time, after c1
        scheduled
    "#]],
    );
    check_upgrade(
        "c1 w1",
        "c1 w1 w2",
        &expect![[r#"
        drain    w2
        held     upgrade c1: one at a time, after w2
        held     upgrade w1: one at a time, after c1
        scheduled
    "#]],
    );
}

#[test]
fn what_somebody_else_cordoned_stays_cordoned() {
    let mut world = World::new("1.34.0", "c1 w1", "c1 w1/");
    world.ledger.clear();
    drawn(
        &world,
        &expect![[r#"
        done
    "#]],
    );
}

#[test]
fn a_deleted_cluster_loses_its_workers_first() {
    check(
        "",
        "c1 c2 w1 w2. w3x",
        &expect![[r#"
        delete   w1
        delete   w2
        held     delete c1 and 1 more: one at a time, after w1
        deleting
    "#]],
    );
    check(
        "",
        "c1 c2 w1x",
        &expect![[r#"
        delete   c1
        delete   c2
        deleting
    "#]],
    );
    check(
        "",
        "c1x w1x",
        &expect![[r#"
        gone
    "#]],
    );
}

#[test]
fn a_given_machine_leaves_before_another_can_come_to_its_address() {
    let world = World::new("1.34.0", "c1 s2", "c1 s1");
    // Both stand at the same address: the host was moved to another pool.
    drawn(
        &world,
        &expect![[r#"
            drain    s1
            held     prepare s2: one at a time, after s1
            scheduled
        "#]],
    );
}

#[test]
fn a_plan_that_the_checker_stops_says_so() {
    let world = World::new("1.36.0", "c1", "c1/");
    let mut plan = plan(&world.view());
    let notes = judge(&world.view(), &plan);
    plan.stop(&notes);
    expect![[r#"
        error
    "#]]
    .assert_eq(&picture(&plan));
}

#[test]
fn a_machine_joins_with_the_version_of_the_control_plane() {
    let world = World::new("1.35.0", "c1 w1 w2", "c1 w1 w2~");
    let plan = plan(&world.view());
    assert_eq!(judge(&world.view(), &plan), Vec::new());
    let joins: Vec<_> = plan
        .tasks
        .iter()
        .map(|task| (task.action.kind(), task.action.version()))
        .collect();
    let version = "1.34.0".parse().unwrap();
    assert_eq!(joins, [(Kind::Join, Some(version))]);
}

#[test]
fn a_given_machine_that_is_lost_can_be_given_up() {
    let task = TaskId::derive(origin("s1", 9));
    let world = World::new("1.34.0", "", "c1 s1?").open(
        "s1",
        Action::Release,
        State::Waiting,
        Some("no route"),
    );
    drawn(
        &world,
        &expect![[r#"
        delete   c1
        held     release s1: tried 1×: no route
        deleting
    "#]],
    );
    let wish = Wish::Cancel {
        task,
        machine: machine("s1").id,
        kind: Kind::Release,
    };
    drawn(
        &world.wish(wish),
        &expect![[r#"
        delete   c1
        withdraw 1
        deleting
    "#]],
    );
}

#[test]
fn a_quorum_that_silence_has_broken_waits_for_a_person() {
    check(
        "c1 c4 c5",
        "c1 c2? c3? c4~ c5~",
        &expect![[r#"
        held     join c4: other control nodes ready: 1, needed: 2
        held     join c5: one at a time, after c4
        held     leave c2: other control nodes ready: 1, needed: 2
        held     drain c3: one at a time, after c2
        error
    "#]],
    );
}

#[test]
fn a_member_whose_etcd_is_sick_does_not_count_though_its_node_is_ready() {
    let upgraded = || World::new("1.35.0", "c1 c2 c3 w1", "c1 c2 c3 w1");
    drawn(
        &upgraded().etcd(&["c3"]),
        &expect![[r#"
        held     upgrade c1: other control nodes ready: 1, needed: 2
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    drawn(
        &upgraded().etcd(&[]),
        &expect![[r#"
        drain    c1
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    let mut left_out = upgraded().etcd(&[]);
    let (wellbeing, at) = left_out.observed.wellbeing.as_mut().unwrap();
    wellbeing.etcd.retain(|member| member.name != "c3");
    *at = at.plus(std::time::Duration::from_secs(1));
    drawn(
        &left_out,
        &expect![[r#"
        held     upgrade c1: other control nodes ready: 1, needed: 2
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    judged(
        &upgraded().etcd(&[]),
        &left_out,
        &expect![[r#"
        c1: etcd keeps its quorum
    "#]],
    );
    let growing = || World::new("1.34.0", "c1 c2 c3 w1", "c1 c2 c3~ w1~");
    drawn(
        &growing().etcd(&["c2"]),
        &expect![[r#"
        held     join c3 and 1 more: other control nodes ready: 1, needed: 2
        scheduled
    "#]],
    );
    judged(
        &upgraded().etcd(&[]),
        &upgraded().etcd(&["c3"]),
        &expect![[r#"
            c1: etcd keeps its quorum
        "#]],
    );
}

#[test]
fn a_node_that_is_not_ready_says_what_is_wrong_with_it() {
    let mut world = World::new("1.34.0", "c1 w1", "c1 w1!").etcd(&[]);
    let (wellbeing, _) = world.observed.wellbeing.as_mut().unwrap();
    let trouble = "not Ready (KubeletNotReady: cni plugin not initialized)".to_owned();
    wellbeing.troubles.insert("w1".to_owned(), trouble);
    drawn(
        &world,
        &expect![[r#"
            held     join w1: its node is not well: not Ready (KubeletNotReady: cni plugin not initialized) (KUBE-013)
            scheduled
        "#]],
    );
}

/// What opens the API comes of the task alone: nobody else would ask for it.
#[test]
fn a_start_that_was_seen_to_work_is_asked_for_what_came_of_it() {
    let init = || Action::Init {
        version: "1.34.0".parse().unwrap(),
        network: "10.8.0.0/16".parse().unwrap(),
        care: model::care::Care::default(),
    };
    let begun = |have: &str| {
        let world = World::new("1.34.0", "c1 w1", have);
        world.open("c1", init(), State::Waiting, Some("no answer"))
    };
    drawn(
        &begun("c1 w1~"),
        &expect![[r#"
        join     w1
        held     init c1: tried 1×: no answer
        scheduled
    "#]],
    );
    let mut unseen = begun("c1 w1~");
    unseen.observed.initialised = false;
    drawn(
        &unseen,
        &expect![[r#"
        join     w1
        held     init c1: tried 1×: no answer
        scheduled
    "#]],
    );
    drawn(
        &begun("c1? w1"),
        &expect![[r#"
            held     join c1: the machine does not answer
            error
        "#]],
    );
}
