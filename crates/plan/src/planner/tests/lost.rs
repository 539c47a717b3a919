//! Machines that are gone before their nodes have left, and work that leads nowhere.

use super::{check, drawn, judge};
use crate::fixture::{NOW, World, machine, picture};
use crate::planner::plan;
use crate::vain::{VAIN_MAX, Vain};
use crate::why::why;
use expect_test::expect;
use model::intent::Wish;
use model::snapshot::SnapshotId;
use model::task::Action;
use std::time::Duration;

#[test]
fn a_control_plane_whose_machines_are_gone_is_lost_and_nothing_is_made_in_their_place() {
    check(
        "c1 c2 c3 w1",
        "c1 c2+ c3+ w1+",
        &expect![[r#"
        held     leave c2 and 2 more: the control plane is lost: control machines gone: 2, others ready: 1, needed: 2
        error
    "#]],
    );
    check(
        "c1 c2 c3 c4 c5",
        "c1 c2+ c3+ c4+ c5",
        &expect![[r#"
        held     leave c2 and 2 more: the control plane is lost: control machines gone: 3, others ready: 2, needed: 3
        error
    "#]],
    );
    check(
        "c1 w1",
        "c1+ w1",
        &expect![[r#"
        held     leave c1: every member of the control plane is gone
        error
    "#]],
    );
    // Whoever does not want them any more has them counted all the same, until somebody can list them.
    check(
        "c1",
        "c1 c2+ c3+",
        &expect![[r#"
        held     join c1: the control plane is lost: control machines gone: 2, others ready: 1, needed: 2
        error
    "#]],
    );
    check(
        "c1 c4 c5",
        "c1 c2+ c3+ c4~ c5x",
        &expect![[r#"
        create   c5
        held     join c4: the control plane is lost: control machines gone: 2, others ready: 1, needed: 2
        error
    "#]],
    );
}

#[test]
fn nodes_of_the_dead_are_counted_until_etcd_or_the_api_says_otherwise() {
    // Etcd was put back without them.
    let mut world = World::new("1.34.0", "c1 c2 c3 w1", "c1 c2+ c3+ w1").etcd(&[]);
    let (told, _) = world.observed.wellbeing.as_mut().unwrap();
    told.etcd.truncate(1);
    drawn(
        &world,
        &expect![[r#"
        leave    c2
        held     leave c3: one at a time, after c2
        scheduled
    "#]],
    );
    // The API lists nobody else.
    let world = World::new("1.34.0", "c1", "c1 c2+ c3+").strays("");
    drawn(
        &world,
        &expect![[r#"
        done
    "#]],
    );
}

#[test]
fn a_snapshot_is_put_back_on_the_members_that_are_left() {
    let snapshot = SnapshotId::of(NOW, "0a1b2c3d").unwrap();
    let wish = Wish::Restore { snapshot };
    let mut world = World::new("1.34.0", "c1 c2 c3 w1", "c1 c2+ c3+ w1").wish(wish);
    let mut told = String::new();
    for _ in 0..6 {
        let step = plan(&world.view());
        assert_eq!(judge(&world.view(), &step), Vec::new());
        told += &picture(&step);
        world.follow(&step);
    }
    expect![[r#"
        restore  c1
        scheduled
        leave    c2
        held     leave c3: one at a time, after c2
        scheduled
        create   c2
        leave    c3
        scheduled
        create   c3
        join     c2
        scheduled
        join     c3
        scheduled
        done
    "#]]
    .assert_eq(&told);
}

#[test]
fn nothing_is_put_back_where_no_member_is_left() {
    let snapshot = SnapshotId::of(NOW, "0a1b2c3d").unwrap();
    let wish = Wish::Restore { snapshot };
    let world = World::new("1.34.0", "c1 w1", "c1+ w1").wish(wish);
    drawn(
        &world,
        &expect![[r#"
            held     restore c1: every member of the control plane is gone
            error
        "#]],
    );
}

#[test]
fn that_the_control_plane_is_lost_is_the_first_cause_and_has_an_exit() {
    let told = |want: &str, have: &str| {
        let world = World::new("1.34.0", want, have);
        let causes = why(&world.view(), &plan(&world.view()));
        causes
            .iter()
            .map(|cause| format!("{cause}\n"))
            .collect::<String>()
    };
    expect![[r#"
        cluster edge is error at generation 7: 0 of 1 control and 1 of 1 compute nodes are ready
        leave c1: every member of the control plane is gone
          → delete the cluster and create it again (its snapshots of etcd cannot be opened after that)
    "#]].assert_eq(&told("c1 w1", "c1+ w1"));
    expect![[r#"
        cluster edge is error at generation 7: 1 of 3 control and 0 of 2 compute nodes are ready
        leave c2 and 1 more: the control plane is lost: control machines gone: 2, others ready: 1, needed: 2
          → put a snapshot back on the control machines that are left, with `slipway backup etcd restore`, and the others are made again; or delete the cluster and create it again (its snapshots of etcd cannot be opened after that)
        join w2: the machine does not answer
          → switch it on; or, if it is lost, take it out of the manifest where it was given, and run `slipway machine replace w2` where Slipway made it
        join w1: the control plane is lost: control machines gone: 2, others ready: 1, needed: 2
          → put a snapshot back on the control machines that are left, with `slipway backup etcd restore`, and the others are made again; or delete the cluster and create it again (its snapshots of etcd cannot be opened after that)
    "#]].assert_eq(&told("c1 c2 c3 w1 w2", "c1 c2+ c3+ w1~ w2?"));
    expect![[r#"
        cluster edge is error at generation 7: 1 of 3 control and 0 of 0 compute nodes are ready
        leave c2: control machines gone: 1, others ready: 1, needed: 2
          → switch on the control machines that do not answer: without a quorum nobody can join or leave; if they are lost, destroy them at their provider and put a snapshot back on the control machines that are left, with `slipway backup etcd restore`, and the others are made again; or delete the cluster and create it again (its snapshots of etcd cannot be opened after that)
        join c3: control machines gone: 1, others ready: 1, needed: 2
          → switch on the control machines that do not answer: without a quorum nobody can join or leave; if they are lost, destroy them at their provider and put a snapshot back on the control machines that are left, with `slipway backup etcd restore`, and the others are made again; or delete the cluster and create it again (its snapshots of etcd cannot be opened after that)
    "#]].assert_eq(&told("c1 c2 c3", "c1 c2+ c3?"));
}

#[test]
fn what_ends_well_and_changes_nothing_is_not_begun_for_ever() {
    let told = |times: u32, minutes: u64| {
        let mut world = World::new("1.34.0", "c1 w1 w2", "c1 w1x w2x");
        world.vain.push(Vain {
            machine: machine("w1").id,
            action: Action::Create,
            times,
            last: NOW,
        });
        world.now = NOW.plus(Duration::from_mins(minutes));
        picture(&plan(&world.view()))
    };
    expect![[r#"
        create   w2
        held     create w1: it ended well 5× and nothing has changed
        error
    "#]]
    .assert_eq(&told(VAIN_MAX, 0));
    assert_eq!(told(VAIN_MAX - 1, 0), told(0, 0));
    assert_eq!(told(VAIN_MAX, 60), told(0, 0));
}

#[test]
fn who_waits_for_a_quorum_names_nobody_who_has_no_work() {
    check(
        "c2 w1",
        "c1? c2~ w1",
        &expect![[r#"
        held     join c2: other control nodes ready: 0, needed: 1
        held     leave c1: other control nodes ready: 0, needed: 1
        error
    "#]],
    );
}
