//! Real machines: their key, what is on them, how they reach each other, what they pass on.

mod around;
mod balancers;
mod equip;
mod mesh;
mod metal;
mod moves;
mod names;
mod playbooks;
mod ports;
mod targets;
mod tending;

use super::{drawn, plan};
use crate::fixture::{World, host, picture};
use expect_test::{Expect, expect};
use model::host::{Fingerprint, Playbook, Proxy};
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
        care: crate::care::care(
            &World::hosts("c1").desired,
            &crate::fixture::host("c1"),
            &[],
        ),
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

fn playbook(name: &str, text: &str) -> Vec<Playbook> {
    vec![Playbook {
        name: name.parse().unwrap(),
        text: text.to_owned(),
    }]
}

#[test]
fn a_cluster_of_hosts_behind_a_load_balancer_is_built_in_order() {
    told(
        World::hosts("c1 w1 s1 b1"),
        &expect![[r#"
            1
            key      c1
            held     create w1 and 1 more: one at a time, after c1
            held     prepare s1: one at a time, after c1
            scheduled
            2
            create   c1
            create   w1
            prepare  s1
            create   b1
            scheduled
            3
            equip    c1
            equip    w1
            equip    s1
            equip    b1
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
            tend     w1 (api > 10.8.48.1)
            tend     s1 (api > 10.8.48.1)
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
            key      c1
            held     create w1 and 1 more: one at a time, after c1
            held     prepare s1: one at a time, after c1
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
            held     tend w1 and 1 more: one at a time, after b1
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
