//! Etcd is saved by schedule, before upgrades and on demand, and put back when somebody asks.

use super::{drawn, judged};
use crate::fixture::{NOW, World, secret};
use crate::planner::plan;
use expect_test::expect;
use model::id::IntentId;
use model::intent::Wish;
use model::snapshot::{Bucket, Destination, EtcdBackup, RestoredFact, SnapshotId};
use model::task::{Action, State};
use std::time::Duration;

const ALL: &str = "c1 c2 c3 w1";

fn id() -> SnapshotId {
    SnapshotId::of(NOW, "0a1b2c3d").unwrap()
}

fn settled(version: &str, have: &str) -> World {
    World::new(version, ALL, have).unsaved()
}

/// The one task that a world asks for.
#[track_caller]
fn asked(world: &World) -> (String, Action) {
    let plan = plan(&world.view());
    let [task] = &plan.tasks[..] else {
        panic!("{:?}", plan.tasks);
    };
    (task.machine.name.to_string(), task.action.clone())
}

fn restore() -> Wish {
    Wish::Restore { snapshot: id() }
}

#[test]
fn etcd_is_saved_once_a_day_by_one_member() {
    drawn(
        &settled("1.34.0", ALL),
        &expect![[r#"
        snapshot c1
        scheduled
    "#]],
    );
    drawn(
        &settled("1.34.0", ALL).saved(24, None),
        &expect![[r#"
        snapshot c1
        scheduled
    "#]],
    );
    let fresh = settled("1.34.0", ALL).saved(23, None);
    drawn(
        &fresh,
        &expect![[r#"
        done
    "#]],
    );
    let wake = plan(&fresh.view()).wake;
    assert_eq!(wake, Some(NOW.plus(Duration::from_hours(1))));
}

#[test]
fn who_switched_it_off_has_no_snapshots_not_even_before_an_upgrade() {
    let off = |mut world: World| {
        world.desired.etcd_backup = None;
        world
    };
    drawn(
        &off(settled("1.34.0", ALL)),
        &expect![[r#"
        done
    "#]],
    );
    drawn(
        &off(settled("1.35.0", ALL)),
        &expect![[r#"
        drain    c1
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    assert_eq!(plan(&off(settled("1.34.0", ALL)).view()).wake, None);
}

#[test]
fn a_member_that_can_is_asked() {
    drawn(
        &settled("1.34.0", "c1! c2 c3 w1"),
        &expect![[r#"
        snapshot c2
        held     join c1: the node is not ready
        scheduled
    "#]],
    );
    drawn(
        &settled("1.34.0", "c1? c2 c3 w1"),
        &expect![[r#"
        snapshot c2
        held     join c1: the machine does not answer
        error
    "#]],
    );
    drawn(
        &settled("1.34.0", "c1~ c2. c3. w1~"),
        &expect![[r#"
        create   c2
        create   c3
        init     c1
        held     join w1: the control plane comes first (c1)
        scheduled
    "#]],
    );
}

#[test]
fn the_member_that_was_asked_goes_on_and_a_failure_holds_up_nothing_else() {
    let (_, action) = asked(&settled("1.34.0", ALL));
    let open = |world: World, state, error| world.open("c2", action.clone(), state, error);
    drawn(
        &open(settled("1.34.0", ALL), State::Running, None),
        &expect![[r#"
        scheduled
    "#]],
    );
    let failed = Some("no room");
    drawn(
        &open(settled("1.34.0", ALL), State::Stuck, failed),
        &expect![[r#"
        held     snapshot c2: stuck: no room
        error
    "#]],
    );
    let other = World::new("1.34.0", "c1 c3 w1", "c1 c2 c3 w1").unsaved();
    drawn(
        &open(other, State::Waiting, failed),
        &expect![[r#"
        drain    c2
        snapshot c1
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn the_first_node_of_an_upgrade_waits_until_etcd_was_saved_for_it() {
    let world = settled("1.35.0", ALL).saved(1, None);
    drawn(
        &world,
        &expect![[r#"
        snapshot c1
        held     upgrade c1: a snapshot of etcd comes before v1.35.0
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    let (_, action) = asked(&world);
    let Action::Snapshot { taking } = &action else {
        panic!("{action:?}");
    };
    let told = (taking.version.to_string(), taking.before, taking.guard);
    let wanted = Some("1.35.0".parse().unwrap());
    assert_eq!(told, ("v1.34.0".to_owned(), wanted, wanted));
    drawn(
        &world.open("c1", action, State::Stuck, Some("no room")),
        &expect![[r#"
        held     snapshot c1: stuck: no room
        held     upgrade c1: a snapshot of etcd comes before v1.35.0
        held     upgrade c2 and 2 more: one at a time, after c1
        error
    "#]],
    );
}

#[test]
fn one_snapshot_is_enough_for_the_rest_of_an_upgrade() {
    drawn(
        &settled("1.35.0", "c1@35 c2 c3 w1").saved(1, None),
        &expect![[r#"
        drain    c2
        held     upgrade c3 and 1 more: one at a time, after c2
        scheduled
    "#]],
    );
    let before = Some("1.35.0".parse().unwrap());
    drawn(
        &settled("1.35.0", ALL).saved(1, before),
        &expect![[r#"
        drain    c1
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    let other = Some("1.34.0".parse().unwrap());
    drawn(
        &settled("1.35.0", ALL).saved(1, other),
        &expect![[r#"
        snapshot c1
        held     upgrade c1: a snapshot of etcd comes before v1.35.0
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
    drawn(
        &settled("1.35.0", "c1/ c2 c3 w1").saved(1, None),
        &expect![[r#"
        snapshot c1
        held     upgrade c1: a snapshot of etcd comes before v1.35.0
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
}

#[test]
fn the_only_member_is_saved_before_its_upgrade_too() {
    let one = World::new("1.35.0", "c1 w1", "c1 w1")
        .unsaved()
        .saved(1, None);
    drawn(
        &one,
        &expect![[r#"
        snapshot c1
        held     upgrade c1: a snapshot of etcd comes before v1.35.0
        held     upgrade w1: one at a time, after c1
        scheduled
    "#]],
    );
}

#[test]
fn an_upgrade_without_a_snapshot_is_stopped() {
    let saved = World::new("1.35.0", ALL, "c1/ c2 c3 w1");
    let lost = settled("1.35.0", "c1/ c2 c3 w1").saved(1, None);
    judged(
        &saved,
        &lost,
        &expect![[r#"
        c1: etcd is saved before the first of its members is upgraded
    "#]],
    );
}

#[test]
fn who_wishes_a_snapshot_has_one_now_whatever_the_schedule() {
    let saved = || settled("1.34.0", ALL).saved(1, None).wish(Wish::Snapshot);
    drawn(
        &saved(),
        &expect![[r#"
        snapshot c1
        scheduled
    "#]],
    );
    let mut off = saved();
    off.desired.etcd_backup = None;
    let (_, action) = asked(&off);
    let Action::Snapshot { taking } = action else {
        panic!("{action:?}");
    };
    assert_eq!(taking.keep, EtcdBackup::default().keep);
    assert!(taking.wish.is_some());
    let mut answered = saved();
    answered.observed.snapshots.as_mut().unwrap().0.answered = taking.wish;
    drawn(
        &answered,
        &expect![[r#"
        done
    "#]],
    );
}

#[test]
fn while_etcd_is_put_back_nothing_else_is_done() {
    let world = || World::new("1.35.0", "c1 c2 c3 w1 w2", "c1 c2 c3 w1 w2~").wish(restore());
    drawn(
        &world(),
        &expect![[r#"
        restore  c1
        scheduled
    "#]],
    );
    let (_, action) = asked(&world());
    let Action::Restore { restoring } = &action else {
        panic!("{action:?}");
    };
    let nodes: Vec<_> = restoring
        .nodes
        .iter()
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(nodes, ["c1", "c2", "c3", "w1"]);
    drawn(
        &world().open("c1", action.clone(), State::Running, None),
        &expect![[r#"
        scheduled
    "#]],
    );
    drawn(
        &world().open("w2", Action::Create, State::Running, None),
        &expect![[r#"
        held     restore c1: create is still running
        scheduled
    "#]],
    );
    drawn(
        &world().open("w2", Action::Create, State::Waiting, None),
        &expect![[r#"
        restore  c1
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn members_that_are_silent_must_answer_or_be_replaced_before() {
    let lost = World::new("1.34.0", "c1 c2 c3 w1", "c1 c2? c3 w1").wish(restore());
    drawn(
        &lost,
        &expect![[r#"
        held     restore c2: the machine does not answer
        error
    "#]],
    );
    let replaced = World::new("1.34.0", "c1 c3 c4 w1", "c1 c2? c3 c4~ w1").wish(restore());
    drawn(
        &replaced,
        &expect![[r#"
        restore  c1
        scheduled
    "#]],
    );
    let all = World::new("1.34.0", "c1 w1", "* c1~ w1!").wish(restore());
    drawn(
        &all,
        &expect![[r#"
        held     restore c1: every member of the control plane is gone
        error
    "#]],
    );
}

#[test]
fn what_was_put_back_is_not_put_back_again_and_what_was_begun_is_finished() {
    let world = World::new("1.34.0", ALL, ALL).wish(restore());
    let (_, action) = asked(&world);
    let begun = World::new("1.34.0", ALL, ALL).open("c1", action, State::Waiting, Some("cut off"));
    drawn(
        &begun,
        &expect![[r#"
        held     restore c1: tried 1×: cut off
        scheduled
    "#]],
    );
    let mut done = world;
    let wish: IntentId = done.intents[0].id;
    let restored = RestoredFact {
        snapshot: id(),
        wish,
    };
    done.observed.restored = Some((restored, NOW));
    drawn(
        &done,
        &expect![[r#"
        done
    "#]],
    );
}

#[test]
fn nobody_puts_etcd_back_unasked_nor_beside_something_else() {
    let wished = World::new("1.34.0", ALL, ALL).wish(restore());
    judged(
        &wished,
        &World::new("1.34.0", ALL, ALL),
        &expect![[r#"
        c1: etcd is put back only when somebody wishes it
    "#]],
    );
    let busy = World::new("1.34.0", ALL, ALL).wish(restore()).open(
        "w1",
        Action::Drain,
        State::Running,
        None,
    );
    judged(
        &wished,
        &busy,
        &expect![[r#"
        edge: nothing else is done to a cluster while its etcd is put back
    "#]],
    );
    let saving = settled("1.34.0", ALL);
    let restoring = plan(&wished.view()).tasks[0].action.clone();
    let beside = settled("1.34.0", ALL).open("c2", restoring, State::Running, None);
    judged(
        &saving,
        &beside,
        &expect![[r#"
        edge: nothing else is done to a cluster while its etcd is put back
    "#]],
    );
}

/// A world whose etcd is saved in a bucket.
fn in_bucket(mut world: World) -> World {
    let backup = world.desired.etcd_backup.as_mut().unwrap();
    backup.to = Destination::S3(Box::new(Bucket {
        endpoint: "https://s3.example.org".to_owned(),
        bucket: "etcd".to_owned(),
        region: "us-east-1".to_owned(),
        prefix: None,
        ca: None,
        access_key: secret("store/accessKeyId"),
        secret_key: secret("store/secretAccessKey"),
    }));
    world
}

#[test]
fn a_bucket_that_nobody_can_open_holds_up_snapshots_and_upgrades_alone() {
    let world = in_bucket(settled("1.34.0", ALL));
    let (by, action) = asked(&world);
    let needed: Vec<_> = action.secrets().map(ToString::to_string).collect();
    assert_eq!(
        (by.as_str(), needed),
        (
            "c1",
            vec![
                "store/accessKeyId".to_owned(),
                "store/secretAccessKey".to_owned()
            ]
        )
    );
    drawn(
        &world.missing("store/secretAccessKey"),
        &expect![[r#"
        held     snapshot c1: secret store/secretAccessKey is not set
        error
    "#]],
    );
    let upgrade = in_bucket(settled("1.35.0", ALL)).missing("store/accessKeyId");
    drawn(
        &upgrade,
        &expect![[r#"
            held     snapshot c1: secret store/accessKeyId is not set
            held     upgrade c1: a snapshot of etcd comes before v1.35.0
            held     upgrade c2 and 2 more: one at a time, after c1
            error
        "#]],
    );
    let grows = in_bucket(World::new("1.34.0", "c1 w1 w2", "c1 w1").unsaved());
    drawn(
        &grows.missing("store/accessKeyId"),
        &expect![[r#"
        create   w2
        held     snapshot c1: secret store/accessKeyId is not set
        error
    "#]],
    );
    let back = || in_bucket(settled("1.34.0", ALL).saved(1, None)).wish(restore());
    drawn(
        &back().missing("store/accessKeyId"),
        &expect![[r#"
        held     restore c1: secret store/accessKeyId is not set
        error
    "#]],
    );
    judged(
        &back(),
        &back().missing("store/secretAccessKey"),
        &expect![[r#"
            c1: nothing is begun without the secret that it needs
        "#]],
    );
}
