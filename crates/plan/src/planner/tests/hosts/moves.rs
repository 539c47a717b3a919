//! The API moves between load balancers, and load balancers get other names.

use super::super::judged;
use super::{drawn, told};
use crate::fixture::World;
use expect_test::expect;
use model::cluster::{Balancer, Forward};

/// The load balancer of [`World::hosts`], under another name and with some of its roles.
fn balancer(name: &str, roles: &[&str]) -> Balancer {
    let front = World::hosts("").desired.balancers.remove(0);
    let chosen = |role: &Forward| roles.contains(&role.name.as_str());
    Balancer {
        name: name.parse().unwrap(),
        roles: front.roles.into_iter().filter(chosen).collect(),
        dns: None,
    }
}

/// Two load balancers, and the API on the first.
fn two() -> World {
    let mut world = World::hosts("c1 w1 b1 d1");
    let mut back = balancer("back", &["web"]);
    back.roles[0].name = "shop".parse().unwrap();
    world.desired.balancers.push(back);
    world.settled()
}

/// The API is on the second from now on, or nowhere.
fn moved(mut world: World, to_back: bool) -> World {
    let desired = &mut world.desired;
    desired.former = vec![balancer("front", &["api"])];
    let api = desired.balancers[0].roles.remove(1);
    if to_back {
        desired.balancers[1].roles.push(api);
    }
    world
}

#[test]
fn the_api_is_passed_on_until_nodes_were_led_to_where_it_moved() {
    told(
        moved(two(), true),
        &expect![[r#"
            1
            balance  d1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
            scheduled
            2
            tend     w1 (api > 10.8.64.1)
            scheduled
            3
            balance  b1 (443 > 10.8.16.1)
            scheduled
            4
            done
        "#]],
    );
}

#[test]
fn the_api_is_passed_on_until_nodes_were_led_to_a_member() {
    told(
        moved(two(), false),
        &expect![[r#"
            1
            tend     w1 (api > 10.8.0.1)
            scheduled
            2
            balance  b1 (443 > 10.8.16.1)
            scheduled
            3
            done
        "#]],
    );
}

#[test]
fn other_roles_change_at_once() {
    let mut world = moved(two(), true);
    world.desired.balancers[0].roles[0].port = 8443;
    drawn(
        &world,
        &expect![[r#"
        balance  b1 (6443 > 10.8.0.1) (8443 > 10.8.16.1)
        balance  d1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        scheduled
    "#]],
    );
    // What comes to the port of the API waits for it.
    let mut other = moved(two(), true);
    other.desired.balancers[0].roles[0].port = 6443;
    told(
        other,
        &expect![[r#"
        1
        balance  b1 (6443 > 10.8.0.1)
        balance  d1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        scheduled
        2
        tend     w1 (api > 10.8.64.1)
        scheduled
        3
        balance  b1 (6443 > 10.8.16.1)
        scheduled
        4
        done
    "#]],
    );
}

#[test]
fn nodes_stay_where_the_api_was_until_the_other_load_balancer_passes_it_on() {
    let mut world = World::hosts("c1 w1 b1").settled().want("c1 w1 w2 b1 d1");
    world.desired.balancers = vec![balancer("front", &["web"]), balancer("back", &["api"])];
    world.desired.former = vec![balancer("front", &["api"])];
    told(
        world,
        &expect![[r#"
        1
        create   w2
        create   d1
        scheduled
        2
        equip    w2
        equip    d1
        scheduled
        3
        mesh     c1 (5 members, to c1 w1 w2 b1 d1)
        scheduled
        4
        join     w2
        balance  d1 (6443 > 10.8.0.1)
        scheduled
        5
        tend     w1 (api > 10.8.64.1)
        tend     w2 (api > 10.8.64.1)
        balance  b1 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
        scheduled
        6
        balance  b1 (443 > 10.8.16.1 10.8.16.2)
        scheduled
        7
        done
    "#]],
    );
}

/// A load balancer with these roles that was called otherwise.
fn renamed(roles: &[&str]) -> World {
    let mut world = World::hosts("c1 w1 b1 b2");
    world.desired.balancers = vec![balancer("front", roles)];
    let mut world = world.settled().want("c1 w1 d1 d2");
    world.desired.balancers = vec![balancer("back", roles)];
    world.desired.former = vec![balancer("front", roles)];
    world
}

#[test]
fn under_another_name_it_is_another_one_and_comes_first() {
    told(
        renamed(&["web"]),
        &expect![[r#"
        1
        create   d1
        create   d2
        held     delete b1 and 1 more: additions come first: 2 not ready yet (d1)
        scheduled
        2
        equip    d1
        equip    d2
        held     delete b1 and 1 more: additions come first: 2 not ready yet (d1)
        scheduled
        3
        mesh     c1 (6 members, to c1 w1 d1 d2 b1 b2)
        held     delete b1 and 1 more: additions come first: 2 not ready yet (d1)
        scheduled
        4
        balance  d1 (443 > 10.8.16.1)
        balance  d2 (443 > 10.8.16.1)
        held     delete b1 and 1 more: additions come first: 2 not ready yet (d1)
        scheduled
        5
        delete   b1
        delete   b2
        scheduled
        6
        mesh     c1 (4 members, to c1 w1 d1 d2)
        scheduled
        7
        done
    "#]],
    );
}

#[test]
fn nodes_are_led_to_the_new_name_before_the_old_one_goes() {
    told(
        renamed(&["web", "api"]),
        &expect![[r#"
        1
        create   d1
        create   d2
        held     delete b1 and 1 more: additions come first: 2 not ready yet (d1)
        scheduled
        2
        equip    d1
        equip    d2
        held     delete b1 and 1 more: additions come first: 2 not ready yet (d1)
        scheduled
        3
        mesh     c1 (6 members, to c1 w1 d1 d2 b1 b2)
        held     delete b1 and 1 more: additions come first: 2 not ready yet (d1)
        scheduled
        4
        balance  d1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        balance  d2 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     delete b1 and 1 more: additions come first: 2 not ready yet (d1)
        scheduled
        5
        tend     w1 (api > 10.8.64.1 10.8.64.2)
        held     delete b1 and 1 more: one at a time, after w1
        scheduled
        6
        delete   b1
        delete   b2
        scheduled
        7
        mesh     c1 (4 members, to c1 w1 d1 d2)
        scheduled
        8
        done
    "#]],
    );
}

#[test]
fn whom_the_old_one_sends_to_changes_until_it_goes() {
    let mut world = World::hosts("c1 w1 w2 b1").settled().want("c1 w1 d1");
    world.desired.balancers = vec![balancer("back", &["web", "api"])];
    world.desired.former = vec![balancer("front", &["web", "api"])];
    told(
        world,
        &expect![[r#"
        1
        create   d1
        drain    w2
        balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     delete b1: additions come first: 1 not ready yet (d1)
        scheduled
        2
        equip    d1
        leave    w2
        held     delete b1: additions come first: 1 not ready yet (d1)
        scheduled
        3
        mesh     c1 (5 members, to c1 w1 d1 b1)
        delete   w2
        release 1
        held     delete b1: additions come first: 1 not ready yet (d1)
        scheduled
        4
        mesh     c1 (4 members, to c1 w1 d1 b1)
        balance  d1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     delete b1: additions come first: 1 not ready yet (d1)
        scheduled
        5
        tend     w1 (api > 10.8.64.1)
        held     delete b1: one at a time, after w1
        scheduled
        6
        delete   b1
        scheduled
        7
        mesh     c1 (3 members, to c1 w1 d1)
        scheduled
        8
        done
    "#]],
    );
}

#[test]
fn one_that_nobody_comes_for_goes_at_once() {
    let mut world = two().want("c1 w1 d1");
    let front = world.desired.balancers.remove(0);
    world.desired.former = vec![front];
    told(
        world,
        &expect![[r#"
        1
        tend     w1 (api > 10.8.0.1)
        held     delete b1: one at a time, after w1
        scheduled
        2
        delete   b1
        scheduled
        3
        mesh     c1 (3 members, to c1 w1 d1)
        scheduled
        4
        done
    "#]],
    );
}

#[test]
fn the_checker_sees_an_api_that_is_closed_too_early() {
    // A plan to close the API, and a node still looks for it there.
    judged(
        &moved(two(), true).after(2),
        &moved(two(), true).after(1),
        &expect![[r#"
            b1: nodes are led away before what they were led to goes
        "#]],
    );
    // A plan to delete a load balancer, and the one that comes in its place does not serve.
    let renamed = || {
        let mut world = World::hosts("c1 w1 b1");
        world.desired.balancers = vec![balancer("front", &["web"])];
        let mut world = world.settled().want("c1 w1 d1");
        world.desired.balancers = vec![balancer("back", &["web"])];
        world.desired.former = vec![balancer("front", &["web"])];
        world
    };
    judged(
        &renamed().after(4),
        &renamed().after(3),
        &expect![[r#"
        b1: a load balancer goes when the one in its place serves
    "#]],
    );
}
