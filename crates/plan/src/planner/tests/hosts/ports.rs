//! The port of the API at clouds: open before anybody is led to a machine, shut when nobody is.

use super::super::judged;
use super::{drawn, told};
use crate::fixture::{World, host};
use expect_test::expect;
use model::cluster::{Balancer, Forward};
use model::intent::Wish;
use model::task::{Action, Kind, State};

/// The load balancer of [`World::hosts`], with some of its roles.
fn front(roles: &[&str]) -> Balancer {
    let mut front = World::hosts("").desired.balancers.remove(0);
    let chosen = |role: &Forward| roles.contains(&role.name.as_str());
    front.roles.retain(chosen);
    front
}

/// A cluster of which a cloud lends the control machines, and whose load balancer passes the API on.
fn behind() -> World {
    World::hosts("c1 c2 c3 w1 b1")
        .at_cloud("c1 c2 c3")
        .settled()
}

/// The API is to be found on a machine from now on.
fn detached(mut world: World) -> World {
    world.desired.balancers = vec![front(&["web"])];
    world.desired.former = vec![front(&["api"])];
    world
}

/// A cluster without an entrance to its API but the machines themselves.
fn alone() -> World {
    let mut world = World::hosts("c1 w1 b1").at_cloud("c1");
    world.desired.balancers = vec![front(&["web"])];
    world.settled()
}

/// The load balancer passes the API on from now on.
fn attached(mut world: World) -> World {
    world.desired.balancers = vec![front(&["web", "api"])];
    world
}

/// Somebody said that a port need not be opened by us.
fn vouched(world: World, name: &str, kind: Kind) -> World {
    let task = "task-0c5w3k9qj2m4x".parse().unwrap();
    let machine = host(name).id;
    world.wish(Wish::Cancel {
        task,
        machine,
        kind,
    })
}

#[test]
fn a_new_cluster_is_open_until_its_load_balancer_passes_the_api_on() {
    told(
        World::hosts("c1 w1 b1").at_cloud("c1"),
        &expect![[r#"
        1
        key      c1
        held     create w1 and 1 more: one at a time, after c1
        scheduled
        2
        create   c1 (port open)
        create   w1
        create   b1
        scheduled
        3
        equip    c1
        equip    w1
        equip    b1
        scheduled
        4
        mesh     c1 (3 members, to c1 w1 b1)
        scheduled
        5
        init     c1
        held     join w1: the control plane comes first (c1)
        held     balance b1: additions come first: 1 not ready yet (w1)
        scheduled
        6
        join     w1
        balance  b1 (443 > ) (6443 > 10.8.0.1)
        scheduled
        7
        tend     w1 (api > 10.8.48.1)
        balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     shut c1: one at a time, after w1
        scheduled
        8
        shut     c1
        scheduled
        9
        done
    "#]],
    );
}

#[test]
fn ports_shut_when_nodes_were_led_to_the_load_balancer() {
    told(
        attached(alone()),
        &expect![[r#"
        1
        balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        scheduled
        2
        tend     w1 (api > 10.8.48.1)
        held     shut c1: one at a time, after w1
        scheduled
        3
        shut     c1
        scheduled
        4
        done
    "#]],
    );
}

#[test]
fn ports_open_before_nodes_are_led_to_a_member() {
    told(
        detached(behind()),
        &expect![[r#"
        1
        expose   c1
        expose   c2
        expose   c3
        scheduled
        2
        tend     w1 (api > 10.8.0.1)
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
fn nodes_are_led_to_the_first_member_whichever_port_opens_first() {
    let opened = |names: &[&str]| {
        let world = detached(behind());
        let open = |world: World, name: &&str| world.port(name, Some(true));
        names.iter().fold(world, open)
    };
    let fails = |world: World, name: &str| {
        world.open(name, Action::Expose, State::Stuck, Some("nobody opens it"))
    };
    drawn(
        &fails(opened(&["c2", "c3"]), "c1"),
        &expect![[r#"
            held     expose c1: stuck: nobody opens it
            error
        "#]],
    );
    drawn(
        &vouched(fails(opened(&["c2", "c3"]), "c1"), "c1", Kind::Expose),
        &expect![[r#"
            tend     w1 (api > 10.8.0.1)
            withdraw 1
            held     expose c1: cancelled by ann
            error
        "#]],
    );
    drawn(
        &fails(opened(&["c1", "c3"]), "c2"),
        &expect![[r#"
            tend     w1 (api > 10.8.0.1)
            held     expose c2: stuck: nobody opens it
            error
        "#]],
    );
    // Nobody passes the API on until then: whoever can be reached has to do.
    drawn(
        &fails(opened(&["c2", "c3"]), "c1").seen("b1", '?'),
        &expect![[r#"
            tend     w1 (api > 10.8.0.2)
            held     balance b1: the machine does not answer
            held     expose c1: stuck: nobody opens it
            error
        "#]],
    );
}

#[test]
fn nothing_is_done_while_a_worker_holds_what_nobody_wants_any_more() {
    let passes = crate::plan(&attached(alone()).view()).tasks.remove(0);
    assert_eq!(passes.action.kind(), Kind::Balance);
    let world = |state| alone().open("b1", passes.action.clone(), state, None);
    let summary = crate::plan(&world(State::Running).view()).summary;
    assert_eq!((summary.tasks, &summary.message[..]), (1, "balance b1"));
    drawn(
        &world(State::Running),
        &expect![[r#"
            scheduled
        "#]],
    );
    // Its worker is gone, and somebody has taken it over.
    drawn(
        &world(State::Waiting),
        &expect![[r#"
            withdraw 1
            done
        "#]],
    );
}

#[test]
fn a_load_balancer_passes_the_api_on_to_people_until_a_port_is_open() {
    let world = World::hosts("c1 b1").at_cloud("c1").settled();
    told(
        detached(world),
        &expect![[r#"
        1
        expose   c1
        scheduled
        2
        balance  b1 (443 > )
        scheduled
        3
        done
    "#]],
    );
}

#[test]
fn a_load_balancer_that_is_declared_no_more_goes_after_ports_are_open() {
    let mut world = World::hosts("c1 w1 b1").at_cloud("c1").settled();
    world = world.want("c1 w1").at_cloud("c1");
    world.desired.former = std::mem::take(&mut world.desired.balancers);
    told(
        world,
        &expect![[r#"
        1
        expose   c1
        held     delete b1: one at a time, after w1
        scheduled
        2
        tend     w1 (api > 10.8.0.1)
        held     delete b1: one at a time, after w1
        scheduled
        3
        delete   b1
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
fn who_has_no_firewall_is_never_waited_for() {
    let world = World::hosts("c1 w1 b1").settled();
    told(
        detached(world),
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
    // One that was given is reached at once, and those at a cloud open beside it.
    let mixed = World::hosts("c1 c2 c3 w1 b1").at_cloud("c2 c3").settled();
    told(
        detached(mixed),
        &expect![[r#"
        1
        expose   c2
        expose   c3
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
fn a_control_machine_comes_as_the_others_are() {
    let world = behind().want("c1 c2 c3 c4 w1 b1").at_cloud("c1 c2 c3 c4");
    drawn(
        &world,
        &expect![[r#"
        create   c4
        scheduled
    "#]],
    );
    let world = alone().want("c1 c2 w1 b1").at_cloud("c1 c2");
    drawn(
        &world,
        &expect![[r#"
        create   c2 (port open)
        scheduled
    "#]],
    );
}

#[test]
fn what_is_not_known_is_not_guessed() {
    let unknown = |world: World| world.port("c1", None);
    drawn(
        &unknown(alone()),
        &expect![[r#"
        expose   c1
        held     tend w1: one at a time, after c1
        scheduled
    "#]],
    );
    drawn(
        &unknown(behind()),
        &expect![[r#"
        shut     c1
        scheduled
    "#]],
    );
}

#[test]
fn a_port_stays_open_for_who_is_being_led_there() {
    let led = attached(alone()).want("c1 w1 w2 b1").at_cloud("c1");
    let mut led = attached(led).after(3);
    let plan = crate::plan(&led.view());
    let join = plan
        .tasks
        .into_iter()
        .find(|task| task.machine.name.as_str() == "w2");
    let action = join.unwrap().action;
    assert_eq!(action.kind(), Kind::Join);
    let mut care = action.care().unwrap().clone();
    care.api = vec![host("c1").address];
    let version = led.desired.version;
    let join = Action::Join {
        version,
        care,
        gated: false,
    };
    led = led.open("w2", join, State::Running, None);
    drawn(
        &led,
        &expect![[r#"
        held     join w2: join is still running
        held     shut c1: one at a time, after w2
        scheduled
    "#]],
    );
}

#[test]
fn what_was_begun_leaves_a_port_unknown() {
    // It may be shut by now, though it was seen to be open.
    let world = detached(behind()).port("c1", Some(true)).open(
        "c1",
        Action::Shut,
        State::Waiting,
        Some("gone"),
    );
    drawn(
        &world,
        &expect![[r#"
        expose   c1
        expose   c2
        expose   c3
        withdraw 1
        scheduled
    "#]],
    );
    let world = behind().open("c1", Action::Expose, State::Waiting, Some("gone"));
    drawn(
        &world,
        &expect![[r#"
        shut     c1
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn a_person_can_say_that_a_port_need_not_be_opened() {
    let world = detached(World::hosts("c1 w1 b1").at_cloud("c1").settled());
    let refused = world.open("c1", Action::Expose, State::Stuck, Some("nobody opens it"));
    drawn(
        &refused,
        &expect![[r#"
        held     expose c1: stuck: nobody opens it
        error
    "#]],
    );
    drawn(
        &vouched(refused, "c1", Kind::Expose),
        &expect![[r#"
        tend     w1 (api > 10.8.0.1)
        withdraw 1
        held     expose c1: cancelled by ann
        error
    "#]],
    );
    let shut = attached(alone()).after(2);
    drawn(
        &vouched(shut, "c1", Kind::Shut),
        &expect![[r#"
        held     shut c1: cancelled by ann
        error
    "#]],
    );
}

#[test]
fn ports_open_when_nobody_passes_the_api_on_and_somebody_comes() {
    // A load balancer that is away for a while opens nothing.
    let world = behind().seen("b1", '?');
    drawn(
        &world,
        &expect![[r#"
        held     balance b1: the machine does not answer
        error
    "#]],
    );
    let world = behind().want("c1 c2 c3 w1 w2 b1").at_cloud("c1 c2 c3");
    told(
        world.after(3).seen("b1", '?'),
        &expect![[r#"
        1
        expose   c1
        expose   c2
        expose   c3
        held     balance b1: the machine does not answer
        held     join w2: one at a time, after c1
        error
        2
        join     w2
        held     balance b1: the machine does not answer
        error
        3
        held     balance b1: the machine does not answer
        error
    "#]],
    );
}

#[test]
fn the_checker_knows_who_is_let_in() {
    // Opened while the load balancer passes the API on.
    judged(
        &detached(behind()),
        &behind(),
        &expect![[r#"
        c1: no port opens while a load balancer passes the API on
        c2: no port opens while a load balancer passes the API on
        c3: no port opens while a load balancer passes the API on
    "#]],
    );
    // Shut while a node looks there.
    let shut = attached(alone()).after(2);
    judged(
        &shut,
        &attached(alone()).after(1),
        &expect![[r#"
        c1: nodes are led away before what they were led to goes
    "#]],
    );
    // Led to where the port is shut.
    let opened = detached(behind()).after(1);
    let shut_again = detached(behind()).after(1).port("c1", Some(false));
    judged(
        &opened,
        &shut_again,
        &expect![[r#"
        w1: nodes are led to where the API is
    "#]],
    );
    // Nobody shuts what has no firewall.
    let sandboxed = || World::hosts("c1 w1 b1").settled();
    let at_cloud = || detached(sandboxed().at_cloud("c1").port("c1", Some(false)));
    let plan = crate::plan(&at_cloud().view());
    let mut plan = plan;
    for task in &mut plan.tasks {
        task.machine = host(task.machine.name.as_str());
    }
    let notes = crate::check::check(&detached(sandboxed()).view(), &plan);
    let told: Vec<_> = notes.iter().map(ToString::to_string).collect();
    expect!["c1: only a cloud shuts the port of a control machine"].assert_eq(&told.join("\n"));
}
