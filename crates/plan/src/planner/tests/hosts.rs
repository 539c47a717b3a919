//! Real machines: their key, what is on them, how they reach each other, what they pass on.

use super::{drawn, plan};
use crate::fixture::{World, host, picture};
use expect_test::{Expect, expect};
use model::host::{Fingerprint, Playbook, Proxy};
use model::intent::Wish;
use model::task::{Action, Kind, State};

/// One round after the other, each as it is drawn, until nothing is left.
#[track_caller]
fn told(mut world: World, expected: &Expect) {
    let mut rounds = String::new();
    for round in 1..20 {
        let next = plan(&world.view());
        let notes = crate::check::check(&world.view(), &next);
        assert_eq!(notes, Vec::new(), "the checker objects");
        rounds += &format!("{round}\n{}", picture(&next));
        if next.tasks.is_empty() {
            break;
        }
        world.follow(&next);
    }
    expected.assert_eq(&rounds);
}

/// The mesh task that the next plan would begin.
fn mesh(world: &World) -> Action {
    let next = plan(&world.view());
    let mut tasks = next.tasks.into_iter().map(|task| task.action);
    tasks.find(|action| action.kind() == Kind::Mesh).unwrap()
}

fn init() -> Action {
    Action::Init {
        version: "1.34.0".parse().unwrap(),
        network: "10.8.0.0/16".parse().unwrap(),
    }
}

fn proxy() -> Proxy {
    Proxy {
        endpoint: "http://proxy.example.org:3128".to_owned(),
        except: Vec::new(),
    }
}

fn equip(world: &World, name: &str) -> Action {
    Action::Equip {
        recipe: world.desired.recipe(&host(name), true),
    }
}

#[test]
fn a_cluster_of_hosts_behind_a_load_balancer_is_built_in_order() {
    told(
        World::hosts("c1 w1 s1 b1"),
        &expect![[r#"
            1
            prepare  s1
            key      c1
            held     create w1 and 1 more: one at a time, after c1
            scheduled
            2
            create   c1
            create   w1
            create   b1
            equip    s1
            scheduled
            3
            equip    c1
            equip    w1
            equip    b1
            held     mesh s1: additions come first: 3 not ready yet (c1)
            scheduled
            4
            mesh     c1 (4 members, to c1 w1 s1 b1)
            scheduled
            5
            init     c1
            held     join w1 and 1 more: the control plane comes first (c1)
            held     balance b1: additions come first: 2 not ready yet (w1)
            scheduled
            6
            join     w1
            join     s1
            balance  b1 (443 > ) (6443 > 10.8.0.1)
            scheduled
            7
            balance  b1 (443 > 10.8.16.1 10.8.32.1) (6443 > 10.8.0.1)
            scheduled
            8
            done
        "#]],
    );
}

#[test]
fn one_key_is_made_and_the_machines_wait_for_it() {
    let world = World::hosts("c1 w1 w2 s1");
    drawn(
        &world,
        &expect![[r#"
        prepare  s1
        key      c1
        held     create w1 and 1 more: one at a time, after c1
        scheduled
    "#]],
    );
    // Whoever was asked first goes on, also when somebody comes before it.
    let world = World::hosts("c1 w1 w2").open("w1", Action::Key, State::Running, None);
    drawn(
        &world,
        &expect![[r#"
        held     create c1 and 1 more: one at a time, after w1
        scheduled
    "#]],
    );
    // Nor is a second one made while one that is to leave makes the first.
    let world = World::hosts("c1 w1 w2")
        .open("w1", Action::Key, State::Running, None)
        .want("c1 w2");
    drawn(
        &world,
        &expect![[r#"
        held     create c1 and 1 more: one at a time, after w1
        held     delete w1: key is still running
        scheduled
    "#]],
    );
}

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
fn what_drifted_from_what_it_was_told_is_told_again() {
    let mut lost = World::hosts("c1 w1 w2 b1").settled();
    lost.host("w1").mesh.as_mut().unwrap().live = Fingerprint::of_text("");
    drawn(
        &lost,
        &expect![[r#"
        mesh     w1 (4 members, to w1)
        scheduled
    "#]],
    );
    let mut other = World::hosts("c1 w1 w2 b1").settled();
    other.host("b1").mesh.as_mut().unwrap().told = Fingerprint::of_text("");
    drawn(
        &other,
        &expect![[r#"
        mesh     b1 (4 members, to b1)
        scheduled
    "#]],
    );
    let mut born_again = World::hosts("c1 w1 w2 b1").settled();
    born_again.host("w2").mesh_key = Some(format!("{:A<43}=", "x").parse().unwrap());
    drawn(
        &born_again,
        &expect![[r#"
        mesh     c1 (4 members, to c1 w1 b1)
        scheduled
    "#]],
    );
    let mut passing = World::hosts("c1 w1 w2 b1").settled();
    passing.host("b1").balance = None;
    drawn(
        &passing,
        &expect![[r#"
        balance  b1 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
        scheduled
    "#]],
    );
    let mut bare = World::hosts("c1 w1 w2 b1").settled();
    bare.host("w2").equipped = None;
    drawn(
        &bare,
        &expect![[r#"
        equip    w2
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
        Action::Join { version },
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
fn a_load_balancer_sends_to_the_nodes_that_stay() {
    let world = World::hosts("c1 w1 b1 b2").settled();
    told(
        world.want("c1 w2 b1 b2"),
        &expect![[r#"
            1
            create   w2
            held     drain w1: additions come first: 1 not ready yet (w2)
            scheduled
            2
            equip    w2
            held     drain w1: additions come first: 1 not ready yet (w2)
            scheduled
            3
            mesh     c1 (5 members, to c1 w2 b1 b2 w1)
            held     drain w1: additions come first: 1 not ready yet (w2)
            scheduled
            4
            join     w2
            held     drain w1: additions come first: 1 not ready yet (w2)
            scheduled
            5
            drain    w1
            balance  b1 (443 > 10.8.16.2) (6443 > 10.8.0.1)
            balance  b2 (443 > 10.8.16.2) (6443 > 10.8.0.1)
            scheduled
            6
            leave    w1
            scheduled
            7
            delete   w1
            release 1
            scheduled
            8
            mesh     c1 (4 members, to c1 w2 b1 b2)
            scheduled
            9
            done
        "#]],
    );
}

#[test]
fn a_load_balancer_is_no_node() {
    // It is neither drained nor upgraded, nobody waits for it, and it goes directly.
    let mut world = World::hosts("c1 w1 b1 b2")
        .settled()
        .want("c1 w1 b2 b3")
        .seen("b2", '?');
    drawn(
        &world,
        &expect![[r#"
            create   b3
            held     balance b2: the machine does not answer
            held     delete b1: additions come first: 2 not ready yet (b2)
            error
        "#]],
    );
    world.desired.version = "1.35.0".parse().unwrap();
    drawn(
        &world,
        &expect![[r#"
            create   b3
            drain    c1
            held     balance b2: the machine does not answer
            held     delete b1: additions come first: 2 not ready yet (b2)
            held     upgrade w1: one at a time, after c1
            error
        "#]],
    );
}

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

#[test]
fn a_load_balancer_that_cannot_be_equipped_is_still_told_its_targets() {
    let mut world = World::hosts("c1 w1 b1").settled();
    world.desired.proxy = Some(proxy());
    world.host("c1").equipped = Some(world.desired.recipe(&host("c1"), true).fingerprint());
    world.host("w1").equipped = Some(world.desired.recipe(&host("w1"), true).fingerprint());
    let action = equip(&world, "b1");
    let mut world = world.open("b1", action, State::Stuck, Some("no proxy there"));
    drawn(
        &world,
        &expect![[r#"
        held     equip b1: stuck: no proxy there
        error
    "#]],
    );
    world.host("b1").balance = None;
    drawn(
        &world,
        &expect![[r#"
        balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        withdraw 1
        scheduled
    "#]],
    );
    // And what is told is not given up for what fails.
    let next = plan(&world.view()).tasks.remove(0).action;
    world.open.clear();
    drawn(
        &world.open("b1", next, State::Waiting, Some("timeout")),
        &expect![[r#"
        held     balance b1: tried 1×: timeout
        scheduled
    "#]],
    );
}

fn playbook(name: &str, text: &str) -> Vec<Playbook> {
    vec![Playbook {
        name: name.parse().unwrap(),
        text: text.to_owned(),
    }]
}

#[test]
fn playbooks_are_played_before_a_machine_joins_and_when_it_has() {
    let mut world = World::hosts("c1 w1 b1").settled().want("c1 w1 w2 b1");
    world.desired.playbooks.before_joining = playbook("tune", "- {hosts: all}");
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    told(
        world,
        &expect![[r#"
            1
            create   w2
            equip    c1
            held     equip w1: 1 of 1 already out of service (c1)
            scheduled
            2
            equip    w1
            equip    w2
            release 1
            scheduled
            3
            mesh     c1 (4 members, to c1 w1 w2 b1)
            release 1
            scheduled
            4
            join     w2
            scheduled
            5
            equip    w2
            balance  b1 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
            scheduled
            6
            done
        "#]],
    );
}

#[test]
fn nobody_joins_before_its_playbooks_were_played() {
    let mut world = World::hosts("c1 w1").settled().want("c1 w1 w2");
    world.desired.playbooks.before_joining = playbook("tune", "- {hosts: none}");
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    let mut world = world.after(3);
    // It is a part of the mesh, and its playbook fails.
    world.host("w2").equipped = None;
    let equip = Action::Equip {
        recipe: world.desired.recipe(&host("w2"), false),
    };
    let stuck = world.open("w2", equip, State::Stuck, Some("no such host pattern"));
    drawn(
        &stuck,
        &expect![[r#"
            held     equip w2: stuck: no such host pattern
            held     join w2: equip is still running
            error
        "#]],
    );
    let mut corrected = stuck;
    corrected.desired.playbooks.before_joining = playbook("tune", "- {hosts: all}");
    drawn(
        &corrected,
        &expect![[r#"
            equip    c1
            equip    w2
            withdraw 1
            held     equip w1: 1 of 1 already out of service (c1)
            held     join w2: equip is still running
            scheduled
        "#]],
    );
}

#[test]
fn a_playbook_that_fails_when_a_node_has_joined_keeps_nobody_from_joining() {
    let mut world = World::hosts("c1 w1").settled().want("c1 w1 w2").after(3);
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    let failing = equip(&world, "w1");
    let world = world.open("w1", failing, State::Stuck, Some("no such label"));
    drawn(
        &world,
        &expect![[r#"
        equip    c1
        join     w2
        held     equip w1: stuck: no such label
        error
    "#]],
    );
    // One that was taken out of service comes back first.
    let mut cordoned = World::hosts("c1 w1").settled();
    cordoned.desired.version = "1.35.0".parse().unwrap();
    let mut cordoned = cordoned.after(5);
    cordoned.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    cordoned.host("c1").equipped = Some(cordoned.desired.recipe(&host("c1"), true).fingerprint());
    let failing = equip(&cordoned, "w1");
    let cordoned = cordoned.open("w1", failing, State::Stuck, Some("no such label"));
    drawn(
        &cordoned,
        &expect![[r#"
        uncordon w1
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn a_starting_control_plane_is_not_forgotten_for_a_playbook() {
    let mut world =
        World::hosts("c1 c2")
            .after(4)
            .open("c2", init(), State::Waiting, Some("timeout"));
    world.desired.playbooks.before_joining = playbook("tune", "- {hosts: all}");
    drawn(
        &world,
        &expect![[r#"
        equip    c1
        held     init c2: tried 1×: timeout
        held     join c1: one at a time, after c2
        scheduled
    "#]],
    );
}

#[test]
fn a_playbook_that_changed_is_played_again_and_load_balancers_have_none() {
    let mut world = World::hosts("c1 w1 b1").settled();
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    let mut world = world.settled();
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: control}");
    told(
        world,
        &expect![[r#"
            1
            equip    c1
            held     equip w1: 1 of 1 already out of service (c1)
            scheduled
            2
            equip    w1
            release 1
            scheduled
            3
            release 1
            done
        "#]],
    );
}

#[test]
fn everything_is_torn_down() {
    told(
        World::hosts("c1 w1 s1 b1").settled().want(""),
        &expect![[r#"
        1
        delete   w1
        release  s1
        delete   b1
        held     delete c1: one at a time, after w1
        deleting
        2
        delete   c1
        deleting
        3
        gone
    "#]],
    );
}
