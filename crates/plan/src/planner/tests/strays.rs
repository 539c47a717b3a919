//! Nodes that are left of machines: cleared, or told, and those of others left alone.

use super::{drawn, judged};
use crate::fixture::{NOW, World, machine};
use crate::journey::journey;
use crate::planner::plan;
use crate::why::why;
use expect_test::{Expect, expect};
use model::id::TaskId;
use model::intent::Wish;
use model::observed::{Member, Wellbeing};
use model::task::{Action, Kind, State};
use model::upkeep::Repair;

fn world(want: &str, have: &str, strays: &str) -> World {
    World::new("1.34.0", want, have).strays(strays)
}

#[track_caller]
fn check((want, have): (&str, &str), strays: &str, expected: &Expect) {
    drawn(&world(want, have, strays), expected);
}

const WELL: (&str, &str) = ("c1 c2 c3 w1", "c1 c2 c3 w1");

#[test]
fn what_is_left_of_a_machine_is_cleared_when_it_was_silent_for_long() {
    check(
        WELL,
        "w8! w9!",
        &expect![[r#"
            clear    c1 (w8 w9)
            scheduled
        "#]],
    );
    check(
        WELL,
        "w8! w9,",
        &expect![[r#"
            clear    c1 (w8)
            held     clear c1: node w9 is not ready, and left of machine-dpx6tej14f5g8, which is no machine of the cluster
            scheduled
        "#]],
    );
    let mut unrepaired = world("c1 w1", "c1 w1", "w9!");
    unrepaired.desired.repair = Repair { after: None };
    drawn(
        &unrepaired,
        &expect![[r#"
        held     clear c1: node w9 is not ready, and left of machine-dpx6tej14f5g8, which is no machine of the cluster
        error
    "#]],
    );
}

#[test]
fn what_is_left_of_a_machine_that_is_gone_is_cleared_at_once() {
    check(
        ("c1 w1", "c1 w1 w2x"),
        "w2,",
        &expect![[r#"
        clear    c1 (w2)
        scheduled
    "#]],
    );
    // Kubernetes takes a while to notice.
    check(
        ("c1 w1", "c1 w1 w2x"),
        "w2",
        &expect![[r#"
        held     clear c1: node w2 is still heard, and left of machine-hg75sqjnnwdps, which is no machine of the cluster
        scheduled
    "#]],
    );
}

#[test]
fn a_node_of_a_machine_that_is_to_stay_or_still_leaves_is_no_leftover() {
    check(
        ("c1 w1", "c1 w1~"),
        "w1!",
        &expect![[r#"
        join     w1
        scheduled
    "#]],
    );
    check(
        ("c1 w1", "c1 w1 w2?"),
        "w2!",
        &expect![[r#"
        leave    w2
        scheduled
    "#]],
    );
    let ends = world("c1 w1", "c1 w1 w2x", "w2!");
    let ends = ends.open("w2", Action::Delete, State::Running, None);
    drawn(
        &ends,
        &expect![[r#"
        scheduled
    "#]],
    );
}

#[test]
fn a_machine_that_somebody_gave_up_is_no_node_any_more() {
    let given_up = |marks: &str| {
        let world = World::new("1.34.0", "c1 w1", &format!("c1 w1 s1{marks}"));
        world.wish(Wish::Cancel {
            task: TaskId::derive(crate::fixture::origin("s1", 9)),
            machine: machine("s1").id,
            kind: Kind::Release,
        })
    };
    drawn(
        &given_up("?!"),
        &expect![[r#"
        clear    c1 (s1)
        scheduled
    "#]],
    );
    drawn(
        &given_up("?"),
        &expect![[r#"
            held     clear c1: node s1 is still heard, and left of machine-bu5fpnckvz2yp, which is no machine of the cluster
            error
        "#]],
    );
}

#[test]
fn what_is_ready_is_told_and_left_to_a_person() {
    check(
        WELL,
        "w9",
        &expect![[r#"
        held     clear c1: node w9 is still heard, and left of machine-dpx6tej14f5g8, which is no machine of the cluster
        error
    "#]],
    );
}

#[test]
fn nodes_of_others_are_left_alone_and_told() {
    let world = world("c1 w1", "c1 w1", "z8! z9");
    let plan = plan(&world.view());
    let told: String = why(&world.view(), &plan)
        .iter()
        .map(|cause| format!("{cause}\n"))
        .collect();
    expect![[r#"
        cluster edge is done at generation 7: 1 of 1 control and 1 of 1 compute nodes are ready
        everything was last seen as declared
        node z8 is none of Slipway's: somebody else has joined it
          → it is left alone; if nobody needs it, run `kubectl delete node z8`
        node z9 is none of Slipway's: somebody else has joined it
          → it is left alone; if nobody needs it, run `kubectl delete node z9`
    "#]]
    .assert_eq(&told);
    drawn(
        &world,
        &expect![[r#"
        done
    "#]],
    );
}

#[test]
fn a_member_of_etcd_goes_with_its_node_while_the_others_decide() {
    check(
        WELL,
        "c9!",
        &expect![[r#"
        clear    c1 (c9)
        scheduled
    "#]],
    );
    check(
        ("c1 c2 c3", "c1 c2 c3!"),
        "c9!",
        &expect![[r#"
        held     join c3: the node is not ready
        held     clear c1: other control nodes ready: 2, needed: 3
        scheduled
    "#]],
    );
    // One that only serves the API has no vote.
    let told = world("c1 c2 c3", "c1 c2 c3!", "c9!").etcd(&["c3"]);
    drawn(
        &told,
        &expect![[r#"
        clear    c1 (c9)
        held     join c3: the node is not ready
        scheduled
    "#]],
    );
}

/// What only a person may ever end says so. Joins wait for it meanwhile.
#[test]
fn a_vote_of_which_etcd_tells_nothing_is_a_persons_where_ours_cannot_outvote_it() {
    let alone = || world("c1 w1", "c1 w1~", "c9!");
    drawn(
        &alone(),
        &expect![[r#"
        held     join w1: other control nodes ready: 1, needed: 2
        held     clear c1: node c9 is not ready, and left of machine-392z9fub3snm8, which is no machine of the cluster; etcd does not tell whether it counts on it
        error
    "#]],
    );
    let plan = plan(&alone().view());
    let held = plan.held.iter().find(|held| held.kind == Kind::Clear);
    expect!["is cleared by itself when etcd tells of its members; if it never does, have its member removed with `etcdctl member remove`, where it has one, and run `kubectl delete node c9`"].assert_eq(&held.unwrap().next_action());
    // Etcd tells that it has no such member.
    drawn(
        &alone().etcd(&[]),
        &expect![[r#"
        join     w1
        clear    c1 (c9)
        scheduled
    "#]],
    );
    check(
        ("c1 c2", "c1 c2"),
        "c8! c9!",
        &expect![[r#"
        held     clear c1: node c8 is not ready, and left of machine-2nsc3tzncvgdr, which is no machine of the cluster; etcd does not tell whether it counts on it
        held     clear c1: node c9 is not ready, and left of machine-392z9fub3snm8, which is no machine of the cluster; etcd does not tell whether it counts on it
        error
    "#]],
    );
    // Etcd tells of a member that will never answer again.
    let mut told = alone();
    let (wellbeing, _) = told
        .observed
        .wellbeing
        .get_or_insert_with(|| (Wellbeing::default(), NOW));
    wellbeing.etcd = ["c1", "c9"]
        .map(|name| Member {
            name: name.to_owned(),
            healthy: name == "c1",
            learner: false,
        })
        .to_vec();
    drawn(
        &told,
        &expect![[r#"
        held     join w1: other control nodes ready: 1, needed: 2
        held     clear c1: other control nodes ready: 1, needed: 2
        error
    "#]],
    );
}

#[test]
fn a_member_of_etcd_waits_until_another_was_changed() {
    let drains = World::new("1.35.0", "c1 c2 c3 c4 c5", "c1/@35 c2 c3 c4 c5").strays("c9!");
    let drains = drains.open("c1", Action::Uncordon, State::Waiting, None);
    drawn(
        &drains,
        &expect![[r#"
        clear    c2 (c9)
        held     upgrade c2: 1 of 1 already out of service (c1)
        held     upgrade c3 and 2 more: one at a time, after c2
        scheduled
    "#]],
    );
    let leaves = world("c1 c2 c3 c4", "c1 c2 c3 c4 c5!", "c9!");
    let leaves = leaves.open("c5", Action::Leave, State::Running, None);
    drawn(
        &leaves,
        &expect![[r#"
        held     clear c1: one at a time, after c5
        scheduled
    "#]],
    );
}

#[test]
fn a_vote_that_is_left_counts_when_members_are_changed() {
    let upgrade = |strays: &str| World::new("1.35.0", "c1 c2 c3", "c1 c2 c3").strays(strays);
    drawn(
        &upgrade("c9,"),
        &expect![[r#"
        held     upgrade c1: other control nodes ready: 2, needed: 3
        held     upgrade c2 and 1 more: one at a time, after c1
        held     clear c1: node c9 is not ready, and left of machine-392z9fub3snm8, which is no machine of the cluster
        scheduled
    "#]],
    );
    drawn(
        &upgrade("c9"),
        &expect![[r#"
        drain    c1
        held     upgrade c2 and 1 more: one at a time, after c1
        held     clear c2: node c9 is still heard, and left of machine-392z9fub3snm8, which is no machine of the cluster
        error
    "#]],
    );
}

#[test]
fn who_has_the_name_of_a_node_that_is_left_joins_when_that_is_cleared() {
    check(
        ("c1 w1 w2", "c1 w1~ w2~"),
        "w1'!",
        &expect![[r#"
        join     w2
        clear    c1 (w1)
        held     join w1: a node of its name is left of machine-03bhx87ht6we6
        scheduled
    "#]],
    );
    check(
        ("c1 c2 c3 c4 c5", "c1 c2 c3 c4~ c5~"),
        "c4'!",
        &expect![[r#"
            clear    c1 (c4)
            held     join c4: a node of its name is left of machine-bj8bvu658nbdg
            held     join c5: one at a time, after c4
            scheduled
        "#]],
    );
}

#[test]
fn nothing_is_cleared_without_a_control_plane_or_when_the_cluster_goes() {
    check(
        ("c1 w1", "c1? w1"),
        "w9!",
        &expect![[r#"
        held     join c1: the machine does not answer
        error
    "#]],
    );
    check(
        ("", "c1 w1"),
        "w9!",
        &expect![[r#"
        delete   w1
        held     delete c1: one at a time, after w1
        deleting
    "#]],
    );
    drawn(
        &world("c1 w1", "c1 w1", "w9!").wish(Wish::Pause),
        &expect![[r#"
            held     clear c1: paused by ann
            error
        "#]],
    );
}

#[test]
fn the_journey_ends_when_all_is_cleared() {
    let world = world("c1 w1", "c1 w1", "w9!");
    expect![[r#"
        cluster edge
                1  clear c1                                                      in place      1 min
          ends ready after about 1 min, 1 machine touched
    "#]]
    .assert_eq(&journey(&world.view()).to_string());
}

#[test]
fn the_checker_refuses_to_clear_what_is_somebodys() {
    let made = world("c1 w1", "c1 w1", "w9!");
    // It is to stay after all.
    judged(
        &made,
        &world("c1 w1 w9", "c1 w1", "w9!"),
        &expect![[r#"
        c1: a node whose machine is to stay, or still on its way out, is not cleared
    "#]],
    );
    // It is still on its way out.
    judged(
        &made,
        &world("c1 w1", "c1 w1 w9?", "w9!"),
        &expect![[r#"
            c1: a node whose machine is to stay, or still on its way out, is not cleared
        "#]],
    );
    // It is heard again.
    judged(
        &made,
        &world("c1 w1", "c1 w1", "w9"),
        &expect![[r#"
        c1: only what was seen to be left of a machine, and is not heard, is cleared
        c1: who may come back is given the time that a machine of ours is given
    "#]],
    );
    // It was silent for a moment.
    judged(
        &made,
        &world("c1 w1", "c1 w1", "w9,"),
        &expect![[r#"
        c1: who may come back is given the time that a machine of ours is given
    "#]],
    );
    // It is of another machine.
    judged(
        &made,
        &world("c1 w1", "c1 w1", "w9'!"),
        &expect![[r#"
        c1: only what was seen to be left of a machine, and is not heard, is cleared
        c1: who may come back is given the time that a machine of ours is given
    "#]],
    );
    // Nobody has looked.
    judged(
        &made,
        &World::new("1.34.0", "c1 w1", "c1 w1"),
        &expect![[r#"
            c1: only what was seen to be left of a machine, and is not heard, is cleared
            c1: who may come back is given the time that a machine of ours is given
        "#]],
    );
    // The cluster goes.
    judged(
        &made,
        &world("", "c1 w1", "w9!"),
        &expect![[r#"
        c1: only what is to stay is built
        c1: a cluster that goes takes its nodes along
    "#]],
    );
}

#[test]
fn the_checker_refuses_to_take_a_vote_from_those_who_need_it() {
    let made = world("c1 c2 c3", "c1 c2 c3", "c9!");
    let quorum = world("c1 c2 c3", "c1 c2 c3!", "c9!");
    judged(
        &made,
        &quorum,
        &expect![[r#"
        c1: etcd keeps its quorum
    "#]],
    );
    let speaks = world("c1 c2 c3", "c1 c2 c3", "c9!");
    let changed = speaks.open("c2", Action::Drain, State::Running, None);
    judged(
        &made,
        &changed,
        &expect![[r#"
        c1: one member of the control plane is changed at a time
    "#]],
    );
}
