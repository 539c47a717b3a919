//! Load balancers: whom they send to, and who waits for them.

use super::{drawn, equip, plan, proxy, told};
use crate::fixture::{World, host};
use expect_test::expect;
use model::intent::Wish;
use model::task::{Action, Kind, State};

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
            tend     w1 (api > 10.8.0.1)
            balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
            withdraw 1
            scheduled
        "#]],
    );
    // And what is told is not given up for what fails.
    let next = plan(&world.view()).tasks.pop().unwrap().action;
    world.open.clear();
    drawn(
        &world.open("b1", next, State::Waiting, Some("timeout")),
        &expect![[r#"
            tend     w1 (api > 10.8.0.1)
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
