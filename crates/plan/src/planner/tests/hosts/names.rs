//! Names of DNS: given to those who serve, taken back before they go, and never missing.

use super::super::judged;
use super::{drawn, told};
use crate::fixture::{World, host, names, picture};
use crate::plan;
use expect_test::expect;
use model::cluster::Balancer;
use model::dns::NamesFact;
use model::intent::Wish;
use model::provider::{Cloud, Provider};
use model::task::{Action, Kind, State};

/// Hosts with a load balancer that should be called so, by whom, and is not yet.
fn unnamed(machines: &str, via: Provider) -> World {
    let mut world = World::hosts(machines).settled();
    world.desired.balancers[0].dns = Some(names(via, "www"));
    world
}

/// Hosts with a load balancer that is called so.
fn named(machines: &str) -> World {
    unnamed(machines, Provider::Simulated).settled()
}

#[test]
fn a_record_that_nobody_makes_is_told_with_what_to_do() {
    let mut world = unnamed("c1 w1 b1", Provider::Cloud(Cloud::Cloudflare));
    let held = plan(&world.view());
    expect![[r#"
        held     name b1: www.example.org is not looked after: nobody here makes records with cloudflare
        error
    "#]]
    .assert_eq(&picture(&held));
    assert_eq!(
        held.held[0].next_action(),
        "make the record of www.example.org yourself, and take `dns` of the load balancer out of the manifest"
    );
    // Whoever can ask for names can make them.
    let seen = world.observed.machines.get_mut(&host("b1").id).unwrap();
    let asked = NamesFact {
        asked: vec![Provider::Cloud(Cloud::Cloudflare)],
        ..NamesFact::default()
    };
    seen.names = Some((asked, crate::fixture::NOW));
    drawn(
        &world,
        &expect![[r#"
        name     b1 (www.example.org)
        scheduled
    "#]],
    );
}

#[test]
fn a_name_leads_to_those_who_serve() {
    let mut world = World::hosts("c1 w1 b1 b2");
    world.desired.balancers[0].dns = Some(names(Provider::Simulated, "www"));
    told(
        world,
        &expect![[r#"
        1
        key      c1
        held     create w1 and 2 more: one at a time, after c1
        scheduled
        2
        create   c1
        create   w1
        create   b1
        create   b2
        scheduled
        3
        equip    c1
        equip    w1
        equip    b1
        equip    b2
        scheduled
        4
        mesh     c1 (4 members, to c1 w1 b1 b2)
        scheduled
        5
        init     c1
        held     join w1: the control plane comes first (c1)
        held     balance b1 and 1 more: additions come first: 1 not ready yet (w1)
        scheduled
        6
        join     w1
        balance  b1 (443 > ) (6443 > 10.8.0.1)
        balance  b2 (443 > ) (6443 > 10.8.0.1)
        scheduled
        7
        tend     w1 (api > 10.8.48.1 10.8.48.2)
        balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        balance  b2 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        scheduled
        8
        name     b1 (www.example.org)
        name     b2 (www.example.org)
        scheduled
        9
        done
    "#]],
    );
}

#[test]
fn a_name_leads_to_others_before_a_machine_goes() {
    told(
        named("c1 w1 b1").want("c1 w1 b2"),
        &expect![[r#"
        1
        create   b2
        held     delete b1: additions come first: 1 not ready yet (b2)
        scheduled
        2
        equip    b2
        held     delete b1: additions come first: 1 not ready yet (b2)
        scheduled
        3
        mesh     c1 (4 members, to c1 w1 b2 b1)
        held     delete b1: additions come first: 1 not ready yet (b2)
        scheduled
        4
        balance  b2 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     delete b1: additions come first: 1 not ready yet (b2)
        scheduled
        5
        tend     w1 (api > 10.8.48.2)
        name     b2 (www.example.org)
        held     delete b1: one at a time, after w1
        scheduled
        6
        name     b1 ()
        scheduled
        7
        delete   b1
        scheduled
        8
        mesh     c1 (3 members, to c1 w1 b2)
        scheduled
        9
        done
    "#]],
    );
}

#[test]
fn another_name_comes_before_the_old_one_goes() {
    let mut world = named("c1 w1 b1 b2");
    world.desired.balancers[0].dns = Some(names(Provider::Simulated, "shop"));
    told(
        world,
        &expect![[r#"
        1
        name     b1 (shop.example.org www.example.org)
        name     b2 (shop.example.org www.example.org)
        scheduled
        2
        name     b1 (shop.example.org)
        name     b2 (shop.example.org)
        scheduled
        3
        done
    "#]],
    );
    let mut without = named("c1 w1 b1");
    without.desired.balancers[0].dns = None;
    told(
        without,
        &expect![[r#"
        1
        name     b1 ()
        scheduled
        2
        done
    "#]],
    );
}

#[test]
fn a_name_moves_to_another_load_balancer_and_leads_there_first() {
    let back = || Balancer {
        name: "back".parse().unwrap(),
        roles: Vec::new(),
        dns: None,
    };
    let mut world = World::hosts("c1 w1 b1 d1");
    world.desired.balancers[0].dns = Some(names(Provider::Simulated, "www"));
    world.desired.balancers.push(back());
    let mut world = world.settled();
    world.desired.balancers[1].dns = world.desired.balancers[0].dns.take();
    told(
        world,
        &expect![[r#"
        1
        name     d1 (www.example.org)
        scheduled
        2
        name     b1 ()
        scheduled
        3
        done
    "#]],
    );
    // The same where it gets another name.
    let mut world = named("c1 w1 b1").want("c1 w1 d1");
    let front = world.desired.balancers[0].clone();
    world.desired.balancers[0].name = "back".parse().unwrap();
    world.desired.former = vec![front];
    told(
        world,
        &expect![[r#"
        1
        create   d1
        held     delete b1: additions come first: 1 not ready yet (d1)
        scheduled
        2
        equip    d1
        held     delete b1: additions come first: 1 not ready yet (d1)
        scheduled
        3
        mesh     c1 (4 members, to c1 w1 d1 b1)
        held     delete b1: additions come first: 1 not ready yet (d1)
        scheduled
        4
        balance  d1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
        held     delete b1: additions come first: 1 not ready yet (d1)
        scheduled
        5
        tend     w1 (api > 10.8.64.1)
        name     d1 (www.example.org)
        held     delete b1: one at a time, after w1
        scheduled
        6
        name     b1 ()
        scheduled
        7
        delete   b1
        scheduled
        8
        mesh     c1 (3 members, to c1 w1 d1)
        scheduled
        9
        done
    "#]],
    );
}

#[test]
fn names_go_with_their_cluster_and_with_machines_that_are_lost() {
    told(
        named("c1 w1 b1").want(""),
        &expect![[r#"
        1
        delete   w1
        name     b1 ()
        held     delete c1: one at a time, after w1
        deleting
        2
        delete   c1
        delete   b1
        deleting
        3
        gone
    "#]],
    );
    let world = named("c1 w1 b1 b2").want("c1 w1 b2").seen("b1", 'x');
    drawn(
        &world,
        &expect![[r#"
        mesh     c1 (3 members, to c1 w1 b2)
        tend     w1 (api > 10.8.48.2)
        held     delete b1: one at a time, after w1
        scheduled
    "#]],
    );
}

/// The naming of a machine that the next plan would begin.
fn naming(world: &World, name: &str) -> Action {
    let next = plan(&world.view());
    let mut tasks = next.tasks.into_iter();
    let task = tasks.find(|task| task.machine.name.as_str() == name);
    task.unwrap().action
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one story, in the order in which it happens"
)]
fn what_was_begun_and_is_not_wanted_any_more_is_taken_back() {
    let begun = |error| {
        let world = unnamed("c1 w1 b1", Provider::Simulated);
        let action = naming(&world, "b1");
        world.open("b1", action, State::Waiting, Some(error))
    };
    // Nobody has seen it, and it may be there.
    let mut without = begun("cut off");
    without.desired.balancers[0].dns = None;
    told(
        without,
        &expect![[r#"
        1
        name     b1 ()
        withdraw 1
        scheduled
        2
        done
    "#]],
    );
    let mut other = begun("cut off");
    other.desired.balancers[0].dns = Some(names(Provider::Simulated, "shop"));
    told(
        other,
        &expect![[r#"
        1
        name     b1 (shop.example.org)
        withdraw 1
        scheduled
        2
        done
    "#]],
    );
    // Who was asked to take it back is the only one who remembers.
    let mut next = begun("cut off");
    next.desired.balancers[0].dns = None;
    let action = naming(&next, "b1");
    next.open.clear();
    let mut next = next.open("b1", action, State::Waiting, None);
    next.open[0].attempts = 0;
    drawn(
        &next,
        &expect![[r#"
        scheduled
    "#]],
    );
    // What was never begun is not there.
    let mut never = begun("cut off");
    never.desired.balancers[0].dns = None;
    never.open[0].attempts = 0;
    drawn(
        &never,
        &expect![[r#"
        withdraw 1
        done
    "#]],
    );
    // Who does not serve gets no name, and one that goes is given back without any.
    drawn(
        &begun("cut off").seen("b1", '?'),
        &expect![[r#"
        name     b1 ()
        withdraw 1
        held     balance b1: the machine does not answer
        error
    "#]],
    );
    told(
        begun("cut off").want(""),
        &expect![[r#"
        1
        delete   w1
        name     b1 ()
        withdraw 1
        held     delete c1: one at a time, after w1
        deleting
        2
        delete   c1
        delete   b1
        deleting
        3
        gone
    "#]],
    );
}

/// A load balancer that somebody has begun to name, and whose machine is gone.
fn half_made() -> World {
    let world = unnamed("c1 w1 b1", Provider::Simulated);
    let action = naming(&world, "b1");
    let begun = world.open("b1", action, State::Waiting, Some("cut off"));
    begun.seen("b1", 'x')
}

#[test]
fn what_was_begun_is_taken_back_before_its_machine_is_made_again() {
    told(
        half_made(),
        &expect![[r#"
            1
            name     b1 ()
            mesh     c1 (2 members, to c1 w1)
            tend     w1 (api > 10.8.0.1)
            withdraw 1
            held     create b1: name is still running
            scheduled
            2
            create   b1
            scheduled
            3
            equip    b1
            scheduled
            4
            mesh     c1 (3 members, to c1 w1 b1)
            scheduled
            5
            balance  b1 (443 > 10.8.16.1) (6443 > 10.8.0.1)
            scheduled
            6
            tend     w1 (api > 10.8.48.1)
            name     b1 (www.example.org)
            scheduled
            7
            done
        "#]],
    );
    // What was never begun is not there.
    let mut never = half_made();
    never.open[0].attempts = 0;
    drawn(
        &never,
        &expect![[r#"
            create   b1
            mesh     c1 (2 members, to c1 w1)
            tend     w1 (api > 10.8.0.1)
            withdraw 1
            scheduled
        "#]],
    );
}

#[test]
fn what_nobody_takes_back_keeps_its_machine_until_a_person_gives_it_up() {
    let mut stuck = half_made();
    let action = naming(&stuck, "b1");
    stuck.open.clear();
    let stuck = stuck.open("b1", action, State::Stuck, Some("no such account"));
    drawn(
        &stuck,
        &expect![[r#"
            mesh     c1 (2 members, to c1 w1)
            tend     w1 (api > 10.8.0.1)
            held     name b1: stuck: no such account
            held     create b1: name is still running
            error
        "#]],
    );
    let given_up = stuck.wish(Wish::Cancel {
        task: "task-0c5w3k9qj2m4x".parse().unwrap(),
        machine: host("b1").id,
        kind: Kind::Name,
    });
    drawn(
        &given_up,
        &expect![[r#"
            create   b1
            mesh     c1 (2 members, to c1 w1)
            tend     w1 (api > 10.8.0.1)
            withdraw 1
            scheduled
        "#]],
    );
}

#[test]
fn a_name_that_nobody_takes_back_is_given_up_by_a_person() {
    let world = named("c1 w1 b1").want("");
    let action = naming(&world, "b1");
    let stuck = world.open("b1", action, State::Stuck, Some("no such account"));
    let held = plan(&stuck.view());
    expect![[r#"
        delete   w1
        held     delete c1: one at a time, after w1
        held     name b1: stuck: no such account
        error
    "#]]
    .assert_eq(&picture(&held));
    let told: Vec<_> = held.held.iter().map(crate::Held::next_action).collect();
    expect![[r#"
        continues after w1
        correct the manifest, or mend the cause and run `slipway task retry task-cqv0h79e96zht`; if nobody answers for the name any more, `slipway task cancel task-cqv0h79e96zht` gives it up, and what leads there stays behind"#]].assert_eq(&told.join("\n"));
    let given_up = stuck.wish(Wish::Cancel {
        task: "task-0c5w3k9qj2m4x".parse().unwrap(),
        machine: host("b1").id,
        kind: Kind::Name,
    });
    let journey = crate::journey(&given_up.view()).to_string();
    expect![[r#"
        cluster edge
                1  delete w1 + delete b1                                         data loss     1 min
                2  delete c1                                                     data loss     1 min
          disturbs  1 of compute; 1 of control; 1 of door
          leaves behind  www.example.org of b1, with zones
          ends gone after about 2 min, 3 machines touched
    "#]]
    .assert_eq(&journey);
    super::told(
        given_up,
        &expect![[r#"
        1
        delete   w1
        delete   b1
        withdraw 1
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

#[test]
fn a_name_moves_to_another_provider_and_leads_there_first() {
    let cloud = Provider::Cloud(Cloud::Cloudflare);
    let mut world = named("c1 w1 b1");
    world.desired.balancers[0].dns = Some(names(cloud, "www"));
    // Who asks the old one alone makes nothing with the new one, and leaves it as it is.
    drawn(
        &world,
        &expect![[r#"
        held     name b1: www.example.org is not looked after: nobody here makes records with cloudflare
        error
    "#]],
    );
    let seen = world.observed.machines.get_mut(&host("b1").id).unwrap();
    let (fact, _) = seen.names.as_mut().unwrap();
    fact.asked.push(cloud);
    // One machine, twice.
    expect![[r#"
        cluster edge
                1  name b1                                                       in place      1 min
                2  name b1                                                       in place      1 min
          ends ready after about 2 min, 1 machine touched
    "#]]
    .assert_eq(&crate::journey(&world.view()).to_string());
    told(
        world,
        &expect![[r#"
        1
        name     b1 (www.example.org www.example.org)
        scheduled
        2
        name     b1 (www.example.org)
        scheduled
        3
        done
    "#]],
    );
}

#[test]
fn the_checker_sees_names_that_lead_nowhere() {
    // A plan to name a machine, and that passes on nothing meanwhile.
    let made = unnamed("c1 w1 b1", Provider::Simulated);
    let mut now = unnamed("c1 w1 b1", Provider::Simulated);
    now.host("b1").balance = None;
    judged(
        &made,
        &now,
        &expect![[r#"
        b1: a name leads to a load balancer that serves
    "#]],
    );
    // A plan to delete a machine, and a name still leads there.
    let goes = || {
        World::hosts("c1 w1 b1 b2")
            .settled()
            .want("c1 w1 b2")
            .after(1)
    };
    let (made, mut now) = (goes(), goes());
    let dns = names(Provider::Simulated, "www");
    let seen = now.observed.machines.get_mut(&host("b1").id).unwrap();
    let fact = NamesFact {
        address: Some([10, 8, 48, 1].into()),
        names: dns.entries(),
        asked: Vec::new(),
    };
    seen.names = Some((fact, crate::fixture::NOW));
    judged(
        &made,
        &now,
        &expect![[r#"
        b1: no name leads to a machine that goes
    "#]],
    );
    // A plan to make a machine, and somebody has begun to name it.
    let made = unnamed("c1 w1 b1", Provider::Simulated);
    let action = naming(&made, "b1");
    let made = made.seen("b1", 'x');
    let now = unnamed("c1 w1 b1", Provider::Simulated).seen("b1", 'x');
    judged(
        &made,
        &now.open("b1", action, State::Waiting, Some("cut off")),
        &expect![[r#"
            b1: one machine, one task at a time
            b1: no machine is made to which a name may lead that nobody has seen
        "#]],
    );
}
