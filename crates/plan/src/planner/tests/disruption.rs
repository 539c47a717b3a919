//! Budgets, windows and secrets: what they let happen, and what they hold.

use super::{drawn, judged};
use crate::check::check as judge;
use crate::fixture::{NOW, World, picture, secret};
use crate::held::{Owner, Reason};
use crate::ledger::Slot;
use crate::planner::plan;
use crate::why::why;
use expect_test::{Expect, expect};
use model::cluster::{Generation, Jump, Origin};
use model::id::TaskId;
use model::intent::Wish;
use model::task::{Action, State};
use model::time::Timestamp;
use std::time::Duration;

/// Two workers at once.
const TWO: &str = r#"{"unavailable":2}"#;

/// As many as there are, but of pool `compute` and of group `rack` only so many.
fn pool_and_group(pool: u32, group: u32) -> String {
    format!(
        r#"{{"unavailable":9,"pools":{{"compute":{{"unavailable":{pool},"group":"rack"}},"attic":{{"group":"rack"}}}},"groups":{{"rack":{group}}}}}"#
    )
}

/// One window an hour after the tests' clock, which stands at Thu 1970-01-01 00:16.
const LATER: &str = r#"{"windows":[{"days":["thu"],"start":76,"minutes":60,"offset":0}]}"#;

#[track_caller]
fn allowed(budgets: &str, world: World, expected: &Expect) {
    drawn(&world.allow(budgets), expected);
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
            drain    w2
            held     join w2: the machine does not answer
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

#[test]
fn nothing_is_begun_without_its_secret() {
    let world = World::new("1.34.0", "c1 w1 s1", "c1").secrets();
    drawn(
        &world.missing("compute").missing("attic"),
        &expect![[r#"
        held     create w1: secret compute is not set
        held     prepare s1: secret attic is not set
        error
    "#]],
    );
    // Between its making and its end a machine that we make needs nobody's account.
    let upgrade = World::new("1.35.0", "c1 w1 s1", "c1@35 w1 s1").secrets();
    drawn(
        &upgrade.missing("compute").missing("attic"),
        &expect![[r#"
        drain    w1
        held     upgrade s1: one at a time, after w1
        scheduled
    "#]],
    );
    let given = World::new("1.35.0", "c1 s1", "c1@35 s1").secrets();
    drawn(
        &given.missing("attic"),
        &expect![[r#"
        held     drain s1: secret attic is not set
        error
    "#]],
    );
    let back = World::new("1.35.0", "c1 s1", "c1@35 s1/@35").secrets();
    drawn(
        &back.missing("attic"),
        &expect![[r#"
        uncordon s1
        scheduled
    "#]],
    );
}

/// A given machine behind a jump host that is entered as somebody.
fn behind(mut world: World, username: &str) -> World {
    for machine in &mut world.desired.machines {
        if let Origin::Given { jump, .. } = &mut machine.origin {
            *jump = Some(Jump {
                endpoint: "203.0.113.1".parse().unwrap(),
                ssh_port: 22,
                username: username.to_owned(),
                secret: Some(secret("front")),
                since: Generation(1),
            });
        }
    }
    world
}

#[test]
fn nothing_is_begun_without_the_key_of_the_jump_host() {
    let world = behind(World::new("1.34.0", "c1 s1", "c1").secrets(), "root");
    drawn(
        &world.missing("front"),
        &expect![[r#"
        held     prepare s1: secret front is not set
        error
    "#]],
    );
}

#[test]
fn a_corrected_way_to_a_machine_is_another_task() {
    let with = |username: &str, state: State| {
        let world = behind(World::new("1.34.0", "c1 s1", "c1"), "root");
        let way = behind(World::new("1.34.0", "c1 s1", "c1"), username);
        let error = (state == State::Stuck).then_some("it refuses the key");
        let mut world = world.open("s1", Action::Prepare, state, error);
        let begun = way.desired.machine_named("s1").unwrap();
        world.open[0].origin = begun.origin.clone();
        world
    };
    drawn(
        &with("root", State::Stuck),
        &expect![[r#"
        held     prepare s1: stuck: it refuses the key
        error
    "#]],
    );
    drawn(
        &with("typo", State::Stuck),
        &expect![[r#"
        prepare  s1
        withdraw 1
        scheduled
    "#]],
    );
    drawn(
        &with("typo", State::Running),
        &expect![[r#"
        scheduled
    "#]],
    );
    // The machine's own way was corrected.
    let mut renamed = with("root", State::Stuck);
    if let Origin::Given { username, .. } = &mut renamed.open[0].origin {
        "typo".clone_into(username);
    }
    drawn(
        &renamed,
        &expect![[r#"
        prepare  s1
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn a_corrected_secret_is_another_task() {
    let with = |name: Option<&str>, state: State| {
        let error = (state == State::Stuck).then_some("unauthorised");
        let mut world =
            World::new("1.34.0", "c1 w1", "c1")
                .secrets()
                .open("w1", Action::Create, state, error);
        let begun = world.open[0].origin.clone();
        world.open[0].origin = begun.with_secret(name.map(secret));
        world
    };
    drawn(
        &with(Some("compute"), State::Stuck),
        &expect![[r#"
        held     create w1: stuck: unauthorised
        error
    "#]],
    );
    drawn(
        &with(Some("typo"), State::Stuck),
        &expect![[r#"
        create   w1
        withdraw 1
        scheduled
    "#]],
    );
    drawn(
        &with(None, State::Running),
        &expect![[r#"
        scheduled
    "#]],
    );
}

#[test]
fn a_pause_and_a_window_are_told_apart() {
    let world = World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2").wish(Wish::Pause);
    allowed(
        TWO,
        world,
        &expect![[r#"
        held     drain w1 and 1 more: paused by ann
        error
    "#]],
    );
}

#[test]
fn what_the_commit_refuses_is_told_like_what_the_planner_holds() {
    let world = World::new("1.35.0", "c1 w1", "c1@35 w1").allow(&pool_and_group(9, 1));
    let mut refused = plan(&world.view());
    let busy = world.elsewhere("rack", "west-w1");
    let slot = refused.disturbs[0].clone();
    let reason = crate::spent(&refused.budgets, &[], &busy.elsewhere, &slot).unwrap();
    refused.hold_back(slot.machine, &reason);
    assert_eq!(refused.disturbs, []);
    expect![[r#"
        held     drain w1: 1 of 1 of group rack already out of service (west-w1 of cluster west)
        scheduled
    "#]]
    .assert_eq(&picture(&refused));

    let mut full = plan(&World::new("1.34.0", "c1 w1", "c1").view());
    let reason = Reason::Quota {
        what: "machines".to_owned(),
        used: 40,
        limit: 40,
    };
    let machine = full.tasks[0].machine.id;
    full.hold_back(machine, &reason);
    expect![[r#"
        held     create w1: the project has 40 of at most 40 machines
        error
    "#]]
    .assert_eq(&picture(&full));
}

#[test]
fn every_wait_has_an_owner_and_a_next_action() {
    let worlds = [
        World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2").allow(LATER),
        World::new("1.35.0", "c1 w1", "c1@35 w1")
            .allow(&pool_and_group(9, 1))
            .elsewhere("rack", "west-w1"),
        World::new("1.34.0", "c1 w1", "c1")
            .secrets()
            .missing("compute"),
    ];
    let mut told = String::new();
    for world in worlds {
        let plan = plan(&world.view());
        for cause in why(&world.view(), &plan) {
            told += &format!("{cause}\n");
        }
    }
    let quota = Reason::Quota {
        what: "machines".to_owned(),
        used: 40,
        limit: 40,
    };
    assert_eq!(quota.owner(), Owner::Person);
    expect![[r#"
        cluster edge is scheduled at generation 7: 1 of 1 control and 2 of 2 compute nodes are ready
        upgrade w1 and 1 more: waits for its window, which opens Thu 1970-01-01 01:16 UTC
          → begins by itself when the window opens, Thu 1970-01-01 01:16 UTC
        cluster edge is scheduled at generation 7: 1 of 1 control and 1 of 1 compute nodes are ready
        upgrade w1: 1 of 1 of group rack already out of service (west-w1 of cluster west)
          → continues when west-w1 of cluster west is back in service
        cluster edge is error at generation 7: 1 of 1 control and 0 of 1 compute nodes are ready
        create w1: secret compute is not set
          → run `slipway secret set compute KEY`, or name another in the manifest
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_reason_stored_before_there_were_several_budgets_is_still_read() {
    let stored = r#"{"budget":{"by":"w1","unavailable":1,"budget":1}}"#;
    let reason: Reason = serde_json::from_str(stored).unwrap();
    assert_eq!(reason.to_string(), "1 of 1 already out of service (w1)");
}

#[test]
fn the_checker_knows_budgets_windows_and_secrets() {
    let upgrade = || World::new("1.35.0", "c1 w1 w2 s1", "c1@35 w1 w2 s1");
    let free = || upgrade().allow(&pool_and_group(9, 9));
    judged(
        &free(),
        &upgrade().allow(TWO),
        &expect![[r#"
        w1: a cluster keeps to its budget
        w2: a cluster keeps to its budget
        s1: a cluster keeps to its budget
    "#]],
    );
    judged(
        &free(),
        &upgrade().allow(&pool_and_group(1, 9)),
        &expect![[r#"
        w1: a pool keeps to its budget
        w2: a pool keeps to its budget
    "#]],
    );
    judged(
        &free(),
        &upgrade().allow(&pool_and_group(9, 2)),
        &expect![[r#"
        w1: a group keeps to its budget
        w2: a group keeps to its budget
        s1: a group keeps to its budget
    "#]],
    );
    let busy = upgrade()
        .allow(&pool_and_group(9, 3))
        .elsewhere("rack", "west-w1");
    judged(
        &free(),
        &busy,
        &expect![[r#"
        w1: a group keeps to its budget
        w2: a group keeps to its budget
        s1: a group keeps to its budget
    "#]],
    );
    let later = LATER.replace("{\"windows\"", "{\"unavailable\":9,\"windows\"");
    judged(
        &free(),
        &upgrade().allow(&later),
        &expect![[r#"
        w1: machines are taken out of service only within a window
        w2: machines are taken out of service only within a window
        s1: machines are taken out of service only within a window
    "#]],
    );

    let members = || World::new("1.35.0", "c1 c2 c3 c4 c5", "c1 c2 c3 c4 c5").allow(TWO);
    let sick = World::new("1.35.0", "c1 c2 c3 c4 c5", "c1 c2 c3 c4 c5!").allow(TWO);
    judged(
        &members(),
        &sick,
        &expect![[r#"
        c1: one member of the control plane is out of service at a time
    "#]],
    );

    let create = || World::new("1.34.0", "c1 w1", "c1").secrets();
    judged(
        &create(),
        &create().missing("compute"),
        &expect![[r#"
        w1: nothing is begun without the secret that it needs
    "#]],
    );
}

#[test]
fn the_checker_wants_a_row_for_whoever_is_out_of_service() {
    let world = World::new("1.35.0", "c1 w1", "c1@35 w1");
    let mut plan = plan(&world.view());
    plan.disturbs.clear();
    let notes = judge(&world.view(), &plan);
    let told: Vec<_> = notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["w1: who is out of service because of us has a row in the ledger"]
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
