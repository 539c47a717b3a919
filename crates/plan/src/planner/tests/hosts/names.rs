//! Names that nobody here can give are told of, and nothing waits for them.

use crate::fixture::{World, picture};
use crate::plan;
use expect_test::expect;
use model::dns::Names;
use model::provider::{Cloud, Provider};

/// Hosts with a load balancer that is called so, by whom.
fn named(via: Provider) -> World {
    let mut world = World::hosts("c1 w1 b1").settled();
    let balancer = &mut world.desired.balancers[0];
    balancer.dns = Some(Names {
        zone: "example.org".parse().unwrap(),
        provider: "zones".parse().unwrap(),
        via,
        secret: None,
        hostname: "www".parse().unwrap(),
        endpoint: "www.example.org".parse().unwrap(),
        alternatives: Vec::new(),
    });
    world
}

#[test]
fn a_record_that_nobody_makes_is_told_with_what_to_do() {
    let world = named(Provider::Cloud(Cloud::Cloudflare));
    let plan = plan(&world.view());
    expect![[r#"
        held     balance b1: www.example.org leads nowhere: nobody here makes records with cloudflare
        error
    "#]].assert_eq(&picture(&plan));
    assert_eq!(
        plan.held[0].next_action(),
        "make the record of www.example.org yourself, and take `dns` of the load balancer out of the manifest"
    );
}

#[test]
fn in_the_simulated_world_names_are_simulated_too() {
    let world = named(Provider::Simulated);
    assert_eq!(plan(&world.view()).held, []);
}
