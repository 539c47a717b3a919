//! The mesh: who is told of whom, when, and by whom.

use super::{drawn, init, mesh, plan, told};
use crate::fixture::{World, host};
use expect_test::expect;
use model::host::Fingerprint;
use model::intent::Wish;
use model::task::{Action, Kind, State};

#[test]
fn the_mesh_waits_for_those_who_come_and_not_for_those_who_fail() {
    let grown = World::hosts("c1 w1").settled().want("c1 w1 w2 w3");
    drawn(
        &grown,
        &expect![[r#"
        create   w2
        create   w3
        scheduled
    "#]],
    );
    let one_ahead = World::hosts("c1 w1").settled().want("c1 w1 w2").after(2);
    drawn(
        &one_ahead,
        &expect![[r#"
        mesh     c1 (3 members, to c1 w1 w2)
        scheduled
    "#]],
    );
    let one_ahead = || one_ahead_of("w3");
    drawn(
        &one_ahead(),
        &expect![[r#"
        create   w3
        held     mesh c1: additions come first: 1 not ready yet (w3)
        scheduled
    "#]],
    );
    let slow = one_ahead().open("w3", Action::Create, State::Running, None);
    drawn(
        &slow,
        &expect![[r#"
        held     mesh c1: additions come first: 1 not ready yet (w3)
        scheduled
    "#]],
    );
    let failing = one_ahead().open("w3", Action::Create, State::Waiting, Some("no room"));
    drawn(
        &failing,
        &expect![[r#"
        mesh     c1 (3 members, to c1 w1 w2)
        held     create w3: tried 1×: no room
        scheduled
    "#]],
    );
    let stuck = one_ahead().open("w3", Action::Create, State::Stuck, Some("no such type"));
    drawn(
        &stuck,
        &expect![[r#"
        mesh     c1 (3 members, to c1 w1 w2)
        held     create w3: stuck: no such type
        error
    "#]],
    );
}

/// A cluster whose second worker has its key, while another has yet to be made.
fn one_ahead_of(other: &str) -> World {
    let world = World::hosts("c1 w1").settled().want("c1 w1 w2").after(2);
    world.want(&format!("c1 w1 w2 {other}"))
}

#[test]
fn one_mesh_task_stays_where_it_was_begun() {
    let world = World::hosts("c1 c2 c3 w1").after(3);
    drawn(
        &world,
        &expect![[r#"
        mesh     c1 (4 members, to c1 c2 c3 w1)
        scheduled
    "#]],
    );
    let begun = mesh(&world);
    let running = world.open("c2", begun.clone(), State::Running, None);
    drawn(
        &running,
        &expect![[r#"
        scheduled
    "#]],
    );
    // It is told what it was told; who came since is told by the next one.
    let grown = running.want("c1 c2 c3 w1 w2").after(2);
    drawn(
        &grown,
        &expect![[r#"
        held     mesh c2: mesh is still running
        scheduled
    "#]],
    );
    // One that waits is replaced by one that knows everybody.
    let world = World::hosts("c1 c2 c3 w1").after(3);
    let waiting = world
        .open("c2", begun, State::Waiting, None)
        .want("c1 c2 c3 w1 w2")
        .after(2);
    drawn(
        &waiting,
        &expect![[r#"
        mesh     c2 (5 members, to c1 c2 c3 w1 w2)
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn a_machine_that_was_told_does_not_wait_for_one_that_fails() {
    let world = World::hosts("c1 w1 w2").after(3);
    let begun = mesh(&world);
    // The first attempt reached all but one of them.
    let mut world = world
        .settled()
        .open("c1", begun, State::Waiting, Some("w2 hangs"));
    world.host("w2").mesh = None;
    drawn(
        &world,
        &expect![[r#"
        mesh     w2 (3 members, to w2)
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn one_that_is_to_leave_ends_its_mesh_first() {
    let world = World::hosts("c1 w1 w2").after(3);
    let begun = mesh(&world);
    let world = world.open("w2", begun, State::Running, None).want("c1 w1");
    drawn(
        &world,
        &expect![[r#"
        held     mesh c1: one at a time, after w2
        held     delete w2: mesh is still running
        scheduled
    "#]],
    );
}

#[test]
fn a_machine_that_does_not_answer_is_not_told_and_keeps_nobody_waiting() {
    let world = World::hosts("c1 w1 w2").settled().seen("w1", '?');
    // It stays a peer.
    drawn(
        &world,
        &expect![[r#"
        held     join w1: the machine does not answer
        error
    "#]],
    );
    let mut world = world;
    world.host("w2").mesh = None;
    drawn(
        &world,
        &expect![[r#"
        mesh     w2 (3 members, to w2)
        held     join w1: the machine does not answer
        error
    "#]],
    );
    // When it is back, it is told what it missed.
    let mut back = World::hosts("c1 w1 w2").settled();
    back.host("w1").mesh = None;
    drawn(
        &back,
        &expect![[r#"
        mesh     w1 (3 members, to w1)
        scheduled
    "#]],
    );
}

#[test]
fn a_machine_that_leaves_is_a_peer_until_it_is_gone() {
    told(
        World::hosts("c1 w1 w2").settled().want("c1 w1"),
        &expect![[r#"
        1
        drain    w2
        scheduled
        2
        leave    w2
        scheduled
        3
        delete   w2
        release 1
        scheduled
        4
        mesh     c1 (2 members, to c1 w1)
        scheduled
        5
        done
    "#]],
    );
}

#[test]
fn a_given_machine_that_was_given_up_is_no_peer_any_more() {
    let world = World::hosts("c1 w1 s1")
        .settled()
        .want("c1 w1")
        .seen("s1", '?')
        .after(1);
    drawn(
        &world,
        &expect![[r#"
        release  s1
        scheduled
    "#]],
    );
    let wish = Wish::Cancel {
        task: model::id::TaskId::derive(crate::fixture::origin("s1", 9)),
        machine: host("s1").id,
        kind: Kind::Release,
    };
    drawn(
        &world.wish(wish),
        &expect![[r#"
        mesh     c1 (2 members, to c1 w1)
        scheduled
    "#]],
    );
}

#[test]
fn a_machine_on_which_something_fails_is_told_of_its_peers_all_the_same() {
    let version = "1.34.0".parse().unwrap();
    let mut world = World::hosts("c1 w1").after(5);
    world.host("w1").mesh = None;
    let world = world.open(
        "w1",
        Action::Join {
            version,
            care: model::care::Care::default(),
            gated: false,
        },
        State::Stuck,
        Some("no route"),
    );
    drawn(
        &world,
        &expect![[r#"
        mesh     w1 (2 members, to w1)
        withdraw 1
        scheduled
    "#]],
    );
    // But a control plane that was begun is never forgotten.
    let mut world = World::hosts("c1 c2").after(4);
    world.host("c2").mesh = None;
    let world = world.open("c2", init(), State::Stuck, Some("no route"));
    drawn(
        &world,
        &expect![[r#"
        mesh     c1 (2 members, to c2)
        held     init c2: stuck: no route
        held     init c1: one at a time, after c2
        error
    "#]],
    );
    // Somebody else tells it, and always the same one.
    let begun = mesh(&world);
    let world = world.open("c1", begun, State::Waiting, Some("timeout"));
    drawn(
        &world,
        &expect![[r#"
        held     init c2: stuck: no route
        held     mesh c1: tried 1×: timeout
        held     init c1: one at a time, after c2
        error
    "#]],
    );
}

#[test]
fn who_cannot_be_entered_keeps_nobody_else_out_of_the_mesh() {
    let world = World::hosts("s1 c1 w1").secrets().settled();
    let mut world = world.want("s1 c1 w1").secrets().missing("attic");
    for name in ["c1", "w1", "s1"] {
        world.host(name).mesh = None;
    }
    drawn(
        &world,
        &expect![[r#"
        mesh     c1 (3 members, to c1 w1)
        held     mesh s1: secret attic is not set
        error
    "#]],
    );
}

#[test]
fn a_row_that_is_given_back_is_not_kept_for_the_mesh() {
    // The first worker serves again, the second one goes on: there is no room for two.
    let mut world = World::hosts("c1 w1 w2").settled();
    world.desired.version = "1.35.0".parse().unwrap();
    let mut world = world.after(6);
    world.host("w1").mesh = None;
    drawn(
        &world,
        &expect![[r#"
            mesh     w1 (3 members, to w1)
            drain    w2
            release 1
            scheduled
        "#]],
    );
}

/// `copy` tells the mesh key of another machine from now on.
fn copied(mut world: World, of: &str, copy: &str) -> World {
    let key = world.host(of).mesh_key.clone();
    world.host(copy).mesh_key = key;
    world
}

#[test]
fn a_copy_of_a_machine_is_left_out_and_the_others_go_on() {
    // It comes when the mesh is there; the one that the others know stays, whatever its name.
    let grown = || World::hosts("c1 w2").settled().want("c1 w1 w2 w3").after(2);
    let world = copied(grown(), "w2", "w1");
    drawn(
        &world,
        &expect![[r#"
        mesh     c1 (3 members, to c1 w2 w3)
        held     mesh w1: it tells the mesh key of w2, and is left out of the mesh
        error
    "#]],
    );
    let reasons = plan(&world.view()).held;
    expect!["run `slipway machine replace w1`; if w2 is the copy, have that one replaced"]
        .assert_eq(&reasons[0].next_action());
    // It joins nothing, and what was told stays told.
    told(
        world,
        &expect![[r#"
        1
        mesh     c1 (3 members, to c1 w2 w3)
        held     mesh w1: it tells the mesh key of w2, and is left out of the mesh
        error
        2
        join     w3
        held     mesh w1: it tells the mesh key of w2, and is left out of the mesh
        error
        3
        held     mesh w1: it tells the mesh key of w2, and is left out of the mesh
        error
    "#]],
    );
    // With a key of its own it comes like any other.
    drawn(
        &grown(),
        &expect![[r#"
        mesh     c1 (4 members, to c1 w1 w2 w3)
        scheduled
    "#]],
    );
}

#[test]
fn who_is_known_by_a_key_keeps_it_when_another_member_tells_it() {
    // All are members already, and one of them lies from now on, or was restored from a copy.
    for (known, liar) in [("w1", "w2"), ("w2", "w1"), ("c1", "w1"), ("w2", "c1")] {
        let mut world = copied(World::hosts("c1 w1 w2 w3").settled(), known, liar);
        // Its interface does not fit its key any more.
        world.host(liar).mesh.as_mut().unwrap().live = Fingerprint::of_text("");
        let Action::Mesh { mesh } = mesh(&world) else {
            unreachable!("it is one");
        };
        let members = mesh.members.iter().map(|member| &member.machine.id);
        assert!(
            members.clone().any(|id| *id == host(known).id),
            "{known} {liar}"
        );
        assert!(
            !members.clone().any(|id| *id == host(liar).id),
            "{known} {liar}"
        );
        assert_eq!(mesh.to.len(), 3, "all others are told");
        // Nobody changes their mind when that is done.
        let world = world.settled();
        let held = plan(&world.view()).held;
        let told: Vec<_> = held.iter().map(ToString::to_string).collect();
        let expected =
            format!("mesh {liar}: it tells the mesh key of {known}, and is left out of the mesh");
        assert_eq!(told, [expected]);
    }
}

#[test]
fn of_many_copies_the_first_is_a_member() {
    // All machines were made of one image that has a key in it.
    let mut world = World::hosts("c1 w1 w2 s1").after(3);
    for name in ["w1", "w2", "s1"] {
        world = copied(world, "c1", name);
    }
    drawn(
        &world,
        &expect![[r#"
        mesh     c1 (1 members, to c1)
        held     mesh w1 and 1 more: it tells the mesh key of c1, and is left out of the mesh
        held     mesh s1: it tells the mesh key of c1, and is left out of the mesh
        error
    "#]],
    );
    let held = plan(&world.view()).held;
    expect!["remove /etc/wireguard/slipway.key on s1, which then makes one of its own; if c1 is the copy, do so there"].assert_eq(&held[1].next_action());
}

#[test]
fn a_control_plane_is_not_begun_on_a_machine_that_is_left_out() {
    let mut world = World::hosts("c1 c2 c3").after(4);
    assert!(world.host("c2").mesh.is_some());
    // All have an end of the mesh, but nobody was told of what is there now.
    for name in ["c1", "c2", "c3"] {
        world.host(name).mesh.as_mut().unwrap().told = Fingerprint::of_text("");
    }
    let world = copied(world, "c1", "c2");
    told(
        world,
        &expect![[r#"
        1
        mesh     c1 (2 members, to c1 c3)
        held     mesh c2: it tells the mesh key of c1, and is left out of the mesh
        held     init c1: mesh is still running
        held     join c3: one at a time, after c1
        error
        2
        init     c1
        held     mesh c2: it tells the mesh key of c1, and is left out of the mesh
        held     join c3: one at a time, after c1
        error
        3
        join     c3
        held     mesh c2: it tells the mesh key of c1, and is left out of the mesh
        error
        4
        held     mesh c2: it tells the mesh key of c1, and is left out of the mesh
        error
    "#]],
    );
}
