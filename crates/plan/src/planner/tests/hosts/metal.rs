//! Machines that nobody has discovered are waited for, and the rest of the cluster goes on.

use super::{drawn, told};
use crate::fixture::{World, machine};
use crate::{plan, why};
use expect_test::expect;
use model::cluster::{MetalWanted, Role};
use model::observed::NodeFact;

/// A cluster that wants so many machines of metal besides.
fn metal(want: &str, role: Role, count: u32) -> World {
    let mut world = World::hosts(want);
    let label = |text: &str| text.to_owned();
    world.desired.metal = vec![MetalWanted {
        pool: "iron".parse().unwrap(),
        role,
        balancer: None,
        count,
        selector: [(label("rack"), label("a1")), (label("size"), label("big"))].into(),
    }];
    world
}

#[test]
fn everything_else_of_the_cluster_goes_on() {
    told(
        metal("c1 w1", Role::Compute, 2),
        &expect![[r#"
        1
        key      c1
        held     create w1: one at a time, after c1
        held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
        error
        2
        create   c1
        create   w1
        held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
        error
        3
        equip    c1
        equip    w1
        held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
        error
        4
        mesh     c1 (2 members, to c1 w1)
        held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
        error
        5
        init     c1
        held     join w1: the control plane comes first (c1)
        held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
        error
        6
        join     w1
        held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
        error
        7
        held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
        error
    "#]],
    );
    let settled = metal("c1 w1", Role::Compute, 2).settled();
    let plan = plan(&settled.view());
    let chain = why(&settled.view(), &plan);
    let chain: Vec<_> = chain.iter().map(ToString::to_string).collect();
    expect![[r#"
        cluster edge is error at generation 7: 1 of 1 control and 1 of 3 compute nodes are ready
        prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
          → this build discovers no machines: declare them by their addresses in a static pool, or take the pool out of the manifest"#]].assert_eq(&chain.join("\n"));
}

#[test]
fn nobody_joins_a_control_plane_that_has_still_to_be_discovered() {
    drawn(
        &metal("w1", Role::Control, 3).settled(),
        &expect![[r#"
        held     join w1: the control plane comes first (edge-iron-01)
        held     prepare edge-iron-01 and 2 more: no machine was discovered that has rack=a1, size=big
        error
    "#]],
    );
}

#[test]
fn who_serves_stays_until_somebody_has_discovered_others() {
    // The only worker, two of three members, and the way in.
    drawn(
        &metal("c1 w1", Role::Compute, 1).settled().want("c1"),
        &expect![[r#"
            held     drain w1: additions come first: 1 not ready yet (edge-iron-01)
            held     prepare edge-iron-01: no machine was discovered that has rack=a1, size=big
            error
        "#]],
    );
    drawn(
        &metal("c1 c2 c3 w1", Role::Control, 2)
            .settled()
            .want("c1 w1"),
        &expect![[r#"
            held     drain c2: additions come first: 2 not ready yet (edge-iron-01)
            held     drain c3: one at a time, after c2
            held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
            error
        "#]],
    );
    let mut door = World::hosts("c1 w1 b1").settled().want("c1 w1");
    let iron = metal("c1", Role::Balancer, 1).desired.metal;
    door.desired.metal = iron;
    door.desired.metal[0].balancer = Some("front".parse().unwrap());
    drawn(
        &door,
        &expect![[r#"
        tend     w1 (api > 10.8.0.1)
        held     delete b1: additions come first: 1 not ready yet (front-iron-01)
        held     prepare front-iron-01: no machine was discovered that has rack=a1, size=big
        error
    "#]],
    );
}

#[test]
fn others_go_and_so_does_who_serves_nobody() {
    // Another role has nothing to do with it.
    drawn(
        &metal("c1 w1 w2", Role::Control, 2).settled().want("c1 w1"),
        &expect![[r#"
            drain    w2
            held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
            error
        "#]],
    );
    // What was begun goes on.
    let mut begun = metal("c1 w1 w2", Role::Compute, 2).settled().want("c1 w1");
    let drain = World::new("1.34.0", "c1 w1", "c1 w1 w2/");
    begun.ledger = drain.ledger;
    if let Some((NodeFact::Joined { cordoned, .. }, _)) = begun
        .observed
        .machines
        .get_mut(&machine("w2").id)
        .and_then(|seen| seen.node.as_mut())
    {
        *cordoned = true;
    }
    drawn(
        &begun,
        &expect![[r#"
        leave    w2
        held     prepare edge-iron-01 and 1 more: no machine was discovered that has rack=a1, size=big
        error
    "#]],
    );
    // The whole cluster goes.
    drawn(
        &metal("c1 w1", Role::Compute, 2).settled().want(""),
        &expect![[r#"
            delete   w1
            held     delete c1: one at a time, after w1
            deleting
        "#]],
    );
}
