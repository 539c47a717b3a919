//! What nodes carry, and where they find the API.

use super::{drawn, told};
use crate::fixture::{World, host, origin};
use crate::plan;
use expect_test::expect;
use model::care::Marks;
use model::cluster::Origin;
use model::id::TaskId;
use model::intent::Wish;
use model::observed::NodeFact;
use model::task::{Action, Kind, State};

/// Without the load balancer of [`World::hosts`].
fn unbalanced(mut world: World) -> World {
    world.desired.balancers.clear();
    world
}

fn marked(mut world: World, team: &str) -> World {
    let marks = Marks {
        labels: [("team".to_owned(), team.to_owned())].into(),
        ..Marks::default()
    };
    world.desired.marks = [("compute".parse().unwrap(), marks)].into();
    world
}

/// Somebody changed what a node carries.
fn drifted(mut world: World, name: &str) -> World {
    let seen = world.observed.machines.get_mut(&host(name).id).unwrap();
    if let Some((NodeFact::Joined { care, .. }, _)) = &mut seen.node {
        *care = None;
    }
    world
}

#[test]
fn nodes_of_a_pool_that_moves_are_told_where_they_are() {
    let mut world = World::hosts("c1 w1 w2").settled();
    let newcomer = world.desired.machines.last_mut().unwrap();
    if let Origin::Made { region, .. } = &mut newcomer.origin {
        *region = "south".to_owned();
    }
    let step = plan(&world.view());
    assert_eq!(crate::check::check(&world.view(), &step), Vec::new());
    let told = step.tasks.iter().map(|task| {
        let care = task.action.care().unwrap();
        let region = &care.marks.labels[model::care::REGION];
        (task.machine.name.as_str(), region.as_str())
    });
    assert_eq!(told.collect::<Vec<_>>(), [("w2", "south")]);
    world.follow(&step);
    drawn(
        &world,
        &expect![[r#"
            done
        "#]],
    );
}

#[test]
fn nodes_are_told_what_changed_and_what_somebody_else_changed() {
    let settled = || World::hosts("c1 w1 w2 b1").settled();
    drawn(
        &marked(settled(), "blue"),
        &expect![[r#"
        tend     w1 (api > 10.8.48.1)
        tend     w2 (api > 10.8.48.1)
        scheduled
    "#]],
    );
    drawn(
        &drifted(settled(), "c1"),
        &expect![[r#"
        tend     c1 (api > )
        scheduled
    "#]],
    );
    // Who does not answer is told when it does.
    drawn(
        &drifted(settled(), "w1").seen("w1", '?'),
        &expect![[r#"
        held     join w1: the machine does not answer
        error
    "#]],
    );
    let mut lost = drifted(settled(), "w1");
    lost.not_ready("c1");
    drawn(
        &lost,
        &expect![[r#"
        held     join c1: the node is not ready
        held     tend w1: other control nodes ready: 0, needed: 1
        scheduled
    "#]],
    );
}

#[test]
fn nodes_follow_the_api_to_a_load_balancer_and_back() {
    let mut world = unbalanced(World::hosts("c1 w1")).settled();
    world.desired.balancers = World::hosts("").desired.balancers;
    told(
        world.want("c1 w1 b1"),
        &expect![[r#"
        1
        create   b1
        scheduled
        2
        equip    b1
        scheduled
        3
        mesh     c1 (3 members, to c1 w1 b1)
        scheduled
        4
        balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        scheduled
        5
        tend     w1 (api > 10.8.48.1)
        scheduled
        6
        done
    "#]],
    );
    let world = World::hosts("c1 w1 b1").settled().want("c1 w1");
    told(
        unbalanced(world),
        &expect![[r#"
        1
        tend     w1 (api > 10.8.0.1)
        held     delete b1: one at a time, after w1
        scheduled
        2
        delete   b1
        scheduled
        3
        mesh     c1 (2 members, to c1 w1)
        scheduled
        4
        done
    "#]],
    );
}

#[test]
fn who_was_told_to_leave_a_node_alone_waits_for_nothing() {
    let world = World::hosts("c1 w1 b1").settled().want("c1 w1");
    let world = unbalanced(world).wish(Wish::Cancel {
        machine: host("w1").id,
        kind: Kind::Tend,
        task: TaskId::derive(origin("w1", 9)),
    });
    drawn(
        &world,
        &expect![[r#"
        delete   b1
        held     tend w1: cancelled by ann
        error
    "#]],
    );
}

#[test]
fn without_a_load_balancer_nodes_are_led_away_from_members_that_go_or_are_lost() {
    let settled = || unbalanced(World::hosts("c1 c2 c3 w1")).settled();
    drawn(
        &settled().seen("c1", '?'),
        &expect![[r#"
        tend     w1 (api > 10.8.0.2)
        held     join c1: the machine does not answer
        error
    "#]],
    );
    drawn(
        &settled().seen("c2", '?'),
        &expect![[r#"
        held     join c2: the machine does not answer
        error
    "#]],
    );
    drawn(
        &settled().want("c2 c3 c4 w1"),
        &expect![[r#"
        create   c4
        tend     w1 (api > 10.8.0.2)
        held     drain c1: additions come first: 1 not ready yet (c4)
        scheduled
    "#]],
    );
    let mut world = settled().want("c2 c3 w1");
    world.desired.disruption.unavailable = 2;
    told(
        world,
        &expect![[r#"
        1
        tend     w1 (api > 10.8.0.2)
        held     drain c1: one at a time, after w1
        scheduled
        2
        drain    c1
        scheduled
        3
        leave    c1
        scheduled
        4
        delete   c1
        release 1
        scheduled
        5
        mesh     c2 (3 members, to c2 c3 w1)
        scheduled
        6
        done
    "#]],
    );
}

#[test]
fn a_member_that_we_change_keeps_those_that_ask_it() {
    let mut world = unbalanced(World::hosts("c1 c2 c3 w1")).settled();
    world.desired.version = "1.35.0".parse().unwrap();
    let mut world = world.after(1);
    world.not_ready("c1");
    drawn(
        &world,
        &expect![[r#"
        upgrade  c1
        held     join c1: the node is not ready
        held     upgrade c2 and 2 more: one at a time, after c1
        scheduled
    "#]],
    );
}

#[test]
fn a_load_balancer_that_reaches_nobody_gets_no_node_and_loses_none() {
    let mut world = World::hosts("c1 w1 w2 b1").settled();
    let api = "api".parse().unwrap();
    let told = world.host("b1").balance.as_mut().unwrap();
    told.healthy.insert(api, 0);
    drawn(
        &drifted(world, "w2"),
        &expect![[r#"
        tend     w2 (api > 10.8.0.1)
        scheduled
    "#]],
    );
}

#[test]
fn a_task_goes_on_while_it_leads_somewhere() {
    let world = || unbalanced(World::hosts("c1 c2 w1")).settled();
    let care = |name: &str| {
        let world = world();
        crate::care::care(&world.desired, &host("w1"), &[host(name).address])
    };
    let open = |name: &str| {
        let tend = Action::Tend { care: care(name) };
        let mut open = drifted(world(), "w1").open("w1", tend, State::Waiting, Some("timeout"));
        open.open[0].through = vec![host("c1").id];
        open
    };
    drawn(
        &open("c2"),
        &expect![[r#"
        held     tend w1: tried 1×: timeout
        scheduled
    "#]],
    );
    drawn(
        &open("c9"),
        &expect![[r#"
        tend     w1 (api > 10.8.0.1)
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn the_checker_sees_who_is_led_to_nowhere_and_who_goes_too_early() {
    // A plan to lead nodes to a load balancer, and that was not told of the API meanwhile.
    let made = drifted(World::hosts("c1 w1 b1").settled(), "w1");
    let mut now = drifted(World::hosts("c1 w1 b1").settled(), "w1");
    now.host("b1").balance = None;
    super::super::judged(
        &made,
        &now,
        &expect![[r#"
        w1: nodes are led to where the API is
    "#]],
    );
    // A plan to delete a load balancer, and a node still looks for the API there.
    let gone = || unbalanced(World::hosts("c1 w1 b1").settled().want("c1 w1"));
    super::super::judged(
        &gone().after(1),
        &drifted(gone(), "w1"),
        &expect![[r#"
        b1: nodes are led away before what they were led to goes
    "#]],
    );
}

#[test]
fn a_kubelet_that_asks_for_a_certificate_is_answered() {
    let asking = |name: &str| {
        let mut world = World::hosts("c1 w1 b1").settled();
        let seen = world.observed.machines.get_mut(&host(name).id).unwrap();
        if let Some((NodeFact::Joined { asks, .. }, _)) = &mut seen.node {
            *asks = true;
        }
        world
    };
    drawn(
        &asking("c1"),
        &expect![[r#"
        tend     c1 (api > )
        scheduled
    "#]],
    );
    told(
        asking("w1"),
        &expect![[r#"
        1
        tend     w1 (api > 10.8.48.1)
        scheduled
        2
        done
    "#]],
    );
}
