//! Machines of load balancers: how they are replaced and equipped again.

use super::super::judged;
use super::{drawn, equip, proxy, told};
use crate::fixture::World;
use expect_test::expect;
use model::cluster::Origin;
use model::task::State;
use std::net::Ipv4Addr;

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
            tend     w1 (api > 10.8.48.2 10.8.48.3)
            held     create b4: one at a time, after b1
            held     delete b1: one at a time, after w1
            held     delete b2: additions come first: 1 not ready yet (b4)
            scheduled
            6
            delete   b1
            held     create b4: one at a time, after b1
            held     delete b2: additions come first: 1 not ready yet (b4)
            scheduled
            7
            create   b4
            held     mesh c1: additions come first: 1 not ready yet (b4)
            held     delete b2: additions come first: 1 not ready yet (b4)
            scheduled
            8
            equip    b4
            held     mesh c1: additions come first: 1 not ready yet (b4)
            held     delete b2: additions come first: 1 not ready yet (b4)
            scheduled
            9
            mesh     c1 (5 members, to c1 w1 b3 b4 b2)
            held     delete b2: additions come first: 1 not ready yet (b4)
            scheduled
            10
            balance  b4 (443 > 10.8.16.1) (6443 > 10.8.0.1)
            held     delete b2: additions come first: 1 not ready yet (b4)
            scheduled
            11
            tend     w1 (api > 10.8.48.3 10.8.48.4)
            held     delete b2: one at a time, after w1
            scheduled
            12
            delete   b2
            scheduled
            13
            mesh     c1 (4 members, to c1 w1 b3 b4)
            scheduled
            14
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
            tend     w1 (api > 10.8.48.2)
            held     delete b1: one at a time, after w1
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
            tend     w1 (api > 10.8.48.1 10.8.48.2)
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
            tend     w1 (api > 10.8.48.2)
            held     delete b1: one at a time, after w1
            scheduled
        "#]],
    );
}

#[test]
fn fewer_machines_of_a_load_balancer_go_at_once() {
    drawn(
        &World::hosts("c1 w1 b1 b2 b3").settled().want("c1 w1 b1"),
        &expect![[r#"
            tend     w1 (api > 10.8.48.1)
            held     delete b2 and 1 more: one at a time, after w1
            scheduled
        "#]],
    );
    // But not before the one that stays serves.
    let world = World::hosts("c1 w1 b1 b2 b3").settled().want("c1 w1 b1");
    drawn(
        &world.seen("b1", '?'),
        &expect![[r#"
            tend     w1 (api > 10.8.48.3)
            held     balance b1: the machine does not answer
            held     delete b2: one at a time, after w1
            held     delete b3: additions come first: 1 not ready yet (b1)
            error
        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is one picture")]
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
            tend     w1 (api > 10.8.48.2)
            held     prepare b3: one at a time, after b1
            held     prepare b4: one at a time, after b2
            held     release b1: one at a time, after w1
            held     release b2: additions come first: 2 not ready yet (b3)
            scheduled
            2
            release  b1
            held     prepare b3: one at a time, after b1
            held     prepare b4: one at a time, after b2
            held     release b2: additions come first: 2 not ready yet (b3)
            scheduled
            3
            prepare  b3
            held     prepare b4: one at a time, after b2
            held     mesh c1: additions come first: 1 not ready yet (b3)
            held     release b2: additions come first: 2 not ready yet (b3)
            scheduled
            4
            equip    b3
            held     prepare b4: one at a time, after b2
            held     mesh c1: additions come first: 1 not ready yet (b3)
            held     release b2: additions come first: 2 not ready yet (b3)
            scheduled
            5
            mesh     c1 (4 members, to c1 w1 b3 b2)
            held     prepare b4: one at a time, after b2
            held     release b2: additions come first: 2 not ready yet (b3)
            scheduled
            6
            balance  b3 (443 > 10.8.16.1) (6443 > 10.8.0.1)
            held     prepare b4: one at a time, after b2
            held     release b2: additions come first: 2 not ready yet (b3)
            scheduled
            7
            tend     w1 (api > 10.8.48.3)
            held     prepare b4: one at a time, after b2
            held     release b2: one at a time, after w1
            scheduled
            8
            release  b2
            held     prepare b4: one at a time, after b2
            scheduled
            9
            prepare  b4
            held     mesh c1: additions come first: 1 not ready yet (b4)
            scheduled
            10
            equip    b4
            held     mesh c1: additions come first: 1 not ready yet (b4)
            scheduled
            11
            mesh     c1 (4 members, to c1 w1 b3 b4)
            scheduled
            12
            balance  b4 (443 > 10.8.16.1) (6443 > 10.8.0.1)
            scheduled
            13
            tend     w1 (api > 10.8.48.3 10.8.48.4)
            scheduled
            14
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
            tend     w2 (api > 10.8.48.2)
            tend     w1 (api > 10.8.48.2)
            balance  b2 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
            balance  b1 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
            held     drain w1: one at a time, after b2
            held     delete b1: one at a time, after w2
            scheduled
            6
            drain    w1
            delete   b1
            balance  b2 (443 > 10.8.16.2) (6443 > 10.8.0.1)
            scheduled
            7
            mesh     c1 (4 members, to c1 w2 b2)
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
