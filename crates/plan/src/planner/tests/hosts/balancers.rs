//! Load balancers: whom they send to, and how their machines are replaced.

use super::super::judged;
use super::{drawn, equip, plan, proxy, told};
use crate::fixture::{World, host};
use expect_test::expect;
use model::cluster::Origin;
use model::intent::Wish;
use model::task::{Action, Kind, State};
use std::net::Ipv4Addr;

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
            balance  b1 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
            balance  b2 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
            held     drain w1: one at a time, after b1
            scheduled
            6
            drain    w1
            balance  b1 (443 > 10.8.16.2) (6443 > 10.8.0.1)
            balance  b2 (443 > 10.8.16.2) (6443 > 10.8.0.1)
            scheduled
            7
            leave    w1
            scheduled
            8
            delete   w1
            release 1
            scheduled
            9
            mesh     c1 (4 members, to c1 w2 b1 b2)
            scheduled
            10
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

/// A worker is drained, and what its load balancer was told last counts it among the targets.
fn drained_but_targeted() -> World {
    let mut world = World::hosts("c1 w1 w2 b1").settled();
    let told = world.host("b1").balance.clone();
    let mut world = world.want("c1 w1 b1").after(1);
    world.host("b1").balance = told;
    world
}

#[test]
fn a_node_is_a_target_until_it_is_taken_out_of_service() {
    let world = World::hosts("c1 w1 w2 b1").settled().want("c1 w3 w4 b1");
    told(
        world.after(4),
        &expect![[r#"
            1
            balance  b1 (443 > 10.8.16.1 10.8.16.2 10.8.16.3 10.8.16.4) (6443 > 10.8.0.1)
            held     drain w1: one at a time, after b1
            held     drain w2: one at a time, after w1
            scheduled
            2
            drain    w1
            balance  b1 (443 > 10.8.16.2 10.8.16.3 10.8.16.4) (6443 > 10.8.0.1)
            held     drain w2: one at a time, after w1
            scheduled
            3
            leave    w1
            held     drain w2: one at a time, after w1
            scheduled
            4
            delete   w1
            drain    w2
            balance  b1 (443 > 10.8.16.3 10.8.16.4) (6443 > 10.8.0.1)
            release 1
            scheduled
            5
            mesh     c1 (5 members, to c1 w3 w4 b1)
            leave    w2
            scheduled
            6
            delete   w2
            release 1
            scheduled
            7
            mesh     c1 (4 members, to c1 w3 w4 b1)
            scheduled
            8
            done
        "#]],
    );
}

#[test]
fn a_node_leaves_when_no_load_balancer_sends_to_it() {
    drawn(
        &drained_but_targeted(),
        &expect![[r#"
        balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     leave w2: one at a time, after b1
        scheduled
    "#]],
    );
    // What fails is tried again, and the node waits.
    let balance = |world: &World| plan(&world.view()).tasks.remove(0).action;
    let action = balance(&drained_but_targeted());
    let open = |state, error| drained_but_targeted().open("b1", action.clone(), state, error);
    drawn(
        &open(State::Running, None),
        &expect![[r#"
        held     leave w2: one at a time, after b1
        scheduled
    "#]],
    );
    drawn(
        &open(State::Stuck, Some("no room")),
        &expect![[r#"
        held     leave w2: one at a time, after b1
        held     balance b1: stuck: no room
        error
    "#]],
    );
    // Unless somebody gave it up, or the load balancer serves nobody.
    let wish = Wish::Cancel {
        task: model::id::TaskId::derive(crate::fixture::origin("b1", 9)),
        machine: host("b1").id,
        kind: Kind::Balance,
    };
    drawn(
        &open(State::Stuck, Some("no room")).wish(wish),
        &expect![[r#"
            leave    w2
            withdraw 1
            held     balance b1: cancelled by ann
            error
        "#]],
    );
    drawn(
        &drained_but_targeted().seen("b1", '?'),
        &expect![[r#"
        leave    w2
        held     balance b1: the machine does not answer
        error
    "#]],
    );
}

#[test]
fn a_node_that_alone_is_reached_is_a_target_until_it_is_drained() {
    let healthy = |count| {
        let world = World::hosts("c1 w1 w2 b1").settled().want("c1 w2 b1");
        let mut world = world;
        let fact = world.host("b1").balance.as_mut().unwrap();
        fact.healthy.insert("web".parse().unwrap(), count);
        world
    };
    for count in [0, 2] {
        drawn(
            &healthy(count),
            &expect![[r#"
                drain    w1
                balance  b1 (443 > 10.8.16.2) (6443 > 10.8.0.1)
                scheduled
            "#]],
        );
    }
    told(
        healthy(1),
        &expect![[r#"
        1
        drain    w1
        scheduled
        2
        balance  b1 (443 > 10.8.16.2) (6443 > 10.8.0.1)
        held     leave w1: one at a time, after b1
        scheduled
        3
        leave    w1
        scheduled
        4
        delete   w1
        release 1
        scheduled
        5
        mesh     c1 (3 members, to c1 w2 b1)
        scheduled
        6
        done
    "#]],
    );
    // What was taken away is not brought back.
    let mut draining = World::hosts("c1 w1 w2 b1").settled().want("c1 w2 b1");
    let told = plan(&draining.view());
    draining.follow(&told);
    let mut draining = draining.open("w1", Action::Drain, State::Running, None);
    let fact = draining.host("b1").balance.as_mut().unwrap();
    fact.healthy.insert("web".parse().unwrap(), 1);
    drawn(
        &draining,
        &expect![[r#"
        scheduled
    "#]],
    );
}

#[test]
fn a_role_that_works_is_not_told_to_send_nowhere_while_somebody_comes() {
    let mut world = World::hosts("c1 w1 b1").settled().want("c1 s1 b1");
    world.desired.balancers[0].roles[0].target_pools = vec!["attic".parse().unwrap()];
    told(
        world,
        &expect![[r#"
            1
            prepare  s1
            held     drain w1: additions come first: 1 not ready yet (s1)
            held     balance b1: additions come first: 1 not ready yet (s1)
            scheduled
            2
            equip    s1
            held     drain w1: additions come first: 1 not ready yet (s1)
            held     balance b1: additions come first: 1 not ready yet (s1)
            scheduled
            3
            mesh     c1 (4 members, to c1 s1 b1 w1)
            held     drain w1: additions come first: 1 not ready yet (s1)
            held     balance b1: additions come first: 1 not ready yet (s1)
            scheduled
            4
            join     s1
            held     drain w1: additions come first: 1 not ready yet (s1)
            held     balance b1: additions come first: 1 not ready yet (s1)
            scheduled
            5
            balance  b1 (443 > 10.8.32.1) (6443 > 10.8.0.1)
            held     drain w1: one at a time, after b1
            scheduled
            6
            drain    w1
            scheduled
            7
            leave    w1
            scheduled
            8
            delete   w1
            release 1
            scheduled
            9
            mesh     c1 (3 members, to c1 s1 b1)
            scheduled
            10
            done
        "#]],
    );
}

#[test]
fn a_role_that_nobody_comes_for_is_told_so() {
    let world = World::hosts("c1 w1 b1").settled().want("c1 b1");
    told(
        world,
        &expect![[r#"
            1
            drain    w1
            scheduled
            2
            balance  b1 (443 > ) (6443 > 10.8.0.1)
            held     leave w1: one at a time, after b1
            scheduled
            3
            leave    w1
            scheduled
            4
            delete   w1
            release 1
            scheduled
            5
            mesh     c1 (2 members, to c1 b1)
            scheduled
            6
            done
        "#]],
    );
}

#[test]
fn machines_of_a_load_balancer_are_replaced_one_after_the_other() {
    let world = World::hosts("c1 w1 b1 b2").settled().want("c1 w1 b3 b4");
    told(
        world,
        &expect![[r#"
        1
        create   b3
        held     create b4: one at a time, after b3
        held     delete b1 and 1 more: additions come first: 2 not ready yet (b3)
        scheduled
        2
        equip    b3
        held     create b4: one at a time, after b3
        held     delete b1 and 1 more: additions come first: 2 not ready yet (b3)
        scheduled
        3
        mesh     c1 (5 members, to c1 w1 b3 b1 b2)
        held     create b4: one at a time, after b3
        held     delete b1 and 1 more: additions come first: 2 not ready yet (b3)
        scheduled
        4
        balance  b3 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     create b4: one at a time, after b3
        held     delete b1 and 1 more: additions come first: 2 not ready yet (b3)
        scheduled
        5
        delete   b1
        held     create b4: one at a time, after b1
        held     delete b2: additions come first: 1 not ready yet (b4)
        scheduled
        6
        create   b4
        held     mesh c1: additions come first: 1 not ready yet (b4)
        held     delete b2: additions come first: 1 not ready yet (b4)
        scheduled
        7
        equip    b4
        held     mesh c1: additions come first: 1 not ready yet (b4)
        held     delete b2: additions come first: 1 not ready yet (b4)
        scheduled
        8
        mesh     c1 (5 members, to c1 w1 b3 b4 b2)
        held     delete b2: additions come first: 1 not ready yet (b4)
        scheduled
        9
        balance  b4 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     delete b2: additions come first: 1 not ready yet (b4)
        scheduled
        10
        delete   b2
        scheduled
        11
        mesh     c1 (4 members, to c1 w1 b3 b4)
        scheduled
        12
        done
    "#]],
    );
}

#[test]
fn a_machine_of_a_load_balancer_goes_when_its_successor_reaches_what_it_reached() {
    let world = || World::hosts("c1 w1 b1").settled().want("c1 w1 b2").after(4);
    drawn(
        &world(),
        &expect![[r#"
        delete   b1
        scheduled
    "#]],
    );
    let mut unreached = world();
    let web = "web".parse().unwrap();
    unreached
        .host("b2")
        .balance
        .as_mut()
        .unwrap()
        .healthy
        .insert(web, 0);
    drawn(
        &unreached,
        &expect![[r#"
        held     delete b1: additions come first: 1 not ready yet (b2)
        scheduled
    "#]],
    );
    // Where nobody answers, nothing is lost.
    let web = "web".parse().unwrap();
    unreached
        .host("b1")
        .balance
        .as_mut()
        .unwrap()
        .healthy
        .insert(web, 0);
    drawn(
        &unreached,
        &expect![[r#"
        delete   b1
        scheduled
    "#]],
    );
}

#[test]
fn fewer_machines_of_a_load_balancer_go_at_once() {
    drawn(
        &World::hosts("c1 w1 b1 b2 b3").settled().want("c1 w1 b1"),
        &expect![[r#"
            delete   b2
            delete   b3
            scheduled
        "#]],
    );
    // But not before the one that stays serves.
    let world = World::hosts("c1 w1 b1 b2 b3").settled().want("c1 w1 b1");
    drawn(
        &world.seen("b1", '?'),
        &expect![[r#"
        delete   b2
        held     balance b1: the machine does not answer
        held     delete b3: additions come first: 1 not ready yet (b1)
        error
    "#]],
    );
}

#[test]
fn given_machines_of_a_load_balancer_make_room_one_after_the_other() {
    let mut world = World::hosts("c1 w1 b1 b2").settled().want("c1 w1 b3 b4");
    let at = |n: u8| Origin::Given {
        endpoint: Ipv4Addr::new(192, 168, 0, n),
        ssh_port: 22,
        username: "root".to_owned(),
        secret: None,
        jump: None,
    };
    let desired = &mut world.desired;
    for machine in desired.machines.iter_mut().chain(&mut desired.leaving) {
        match machine.name.as_str() {
            "b1" | "b3" => machine.origin = at(1),
            "b2" | "b4" => machine.origin = at(2),
            _ => {}
        }
    }
    told(
        world,
        &expect![[r#"
        1
        mesh     c1 (4 members, to c1 w1)
        release  b1
        held     prepare b3: one at a time, after b1
        held     prepare b4: one at a time, after b2
        held     release b2: additions come first: 2 not ready yet (b3)
        scheduled
        2
        prepare  b3
        held     prepare b4: one at a time, after b2
        held     mesh c1: additions come first: 1 not ready yet (b3)
        held     release b2: additions come first: 2 not ready yet (b3)
        scheduled
        3
        equip    b3
        held     prepare b4: one at a time, after b2
        held     mesh c1: additions come first: 1 not ready yet (b3)
        held     release b2: additions come first: 2 not ready yet (b3)
        scheduled
        4
        mesh     c1 (4 members, to c1 w1 b3 b2)
        held     prepare b4: one at a time, after b2
        held     release b2: additions come first: 2 not ready yet (b3)
        scheduled
        5
        balance  b3 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     prepare b4: one at a time, after b2
        held     release b2: additions come first: 2 not ready yet (b3)
        scheduled
        6
        release  b2
        held     prepare b4: one at a time, after b2
        scheduled
        7
        prepare  b4
        held     mesh c1: additions come first: 1 not ready yet (b4)
        scheduled
        8
        equip    b4
        held     mesh c1: additions come first: 1 not ready yet (b4)
        scheduled
        9
        mesh     c1 (4 members, to c1 w1 b3 b4)
        scheduled
        10
        balance  b4 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        scheduled
        11
        done
    "#]],
    );
}

#[test]
fn who_is_replaced_together_finds_each_other_meanwhile() {
    // Both ends go: the old load balancer learns of the new worker, the new one of the old.
    let world = World::hosts("c1 w1 b1").settled().want("c1 w2 b2");
    told(
        world,
        &expect![[r#"
            1
            create   w2
            create   b2
            held     drain w1: additions come first: 1 not ready yet (w2)
            held     delete b1: additions come first: 1 not ready yet (b2)
            scheduled
            2
            equip    w2
            equip    b2
            held     drain w1: additions come first: 1 not ready yet (w2)
            held     delete b1: additions come first: 1 not ready yet (b2)
            scheduled
            3
            mesh     c1 (5 members, to c1 w2 b2 w1 b1)
            held     drain w1: additions come first: 1 not ready yet (w2)
            held     delete b1: additions come first: 1 not ready yet (b2)
            scheduled
            4
            join     w2
            balance  b2 (443 > 10.8.16.1) (6443 > 10.8.0.1)
            held     drain w1: additions come first: 1 not ready yet (w2)
            held     delete b1: additions come first: 1 not ready yet (b2)
            scheduled
            5
            delete   b1
            balance  b2 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
            held     drain w1: one at a time, after b2
            scheduled
            6
            mesh     c1 (4 members, to c1 w2 b2 w1)
            drain    w1
            balance  b2 (443 > 10.8.16.2) (6443 > 10.8.0.1)
            scheduled
            7
            leave    w1
            scheduled
            8
            delete   w1
            release 1
            scheduled
            9
            mesh     c1 (3 members, to c1 w2 b2)
            scheduled
            10
            done
        "#]],
    );
}

#[test]
fn machines_of_a_load_balancer_are_equipped_again_one_after_the_other() {
    let mut world = World::hosts("c1 b1 b2 b3").settled();
    world.desired.proxy = Some(proxy());
    told(
        world,
        &expect![[r#"
        1
        equip    c1
        equip    b1
        held     equip b2 and 1 more: one at a time, after b1
        scheduled
        2
        equip    b2
        release 1
        held     equip b3: one at a time, after b2
        scheduled
        3
        equip    b3
        scheduled
        4
        done
    "#]],
    );
    // One on which it fails keeps the others as they are; one that serves nobody waits for none.
    let mut world = World::hosts("c1 b1 b2 b3").settled();
    world.desired.proxy = Some(proxy());
    world.host("b3").balance = None;
    let action = equip(&world, "b1");
    drawn(
        &world.open("b1", action, State::Stuck, Some("no proxy there")),
        &expect![[r#"
            equip    c1
            equip    b3
            held     equip b1: stuck: no proxy there
            held     equip b2: one at a time, after b1
            error
        "#]],
    );
}

#[test]
fn the_checker_knows_that_machines_of_a_load_balancer_go_when_others_serve() {
    let serving = || World::hosts("c1 b1 b2").settled();
    judged(
        &serving().want("c1 b1"),
        &serving().want("c1 b1 b3"),
        &expect![[r#"
            front: a load balancer keeps as many machines as it has or should have
        "#]],
    );
    let removed = serving().want("c1");
    judged(
        &removed,
        &serving().want("c1 b3"),
        &expect![[r#"
        front: a load balancer keeps as many machines as it has or should have
    "#]],
    );
}
