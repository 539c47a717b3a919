//! What the checker says of plans that keep to no budget, window or secret.

use super::{LATER, TWO, pool_and_group};
use crate::check::check as judge;
use crate::fixture::World;
use crate::planner::plan;
use crate::planner::tests::judged;
use expect_test::expect;

#[test]
fn the_checker_knows_budgets_windows_and_secrets() {
    let upgrade = || World::new("1.35.0", "c1 w1 w2 s1", "c1@35 w1 w2 s1");
    let free = || upgrade().allow(&pool_and_group(9, 9));
    judged(
        &free(),
        &upgrade().allow(TWO),
        &expect![[r#"
        w1: a cluster keeps to its budget
        w2: a cluster keeps to its budget
        s1: a cluster keeps to its budget
    "#]],
    );
    judged(
        &free(),
        &upgrade().allow(&pool_and_group(1, 9)),
        &expect![[r#"
        w1: a pool keeps to its budget
        w2: a pool keeps to its budget
    "#]],
    );
    judged(
        &free(),
        &upgrade().allow(&pool_and_group(9, 2)),
        &expect![[r#"
        w1: a group keeps to its budget
        w2: a group keeps to its budget
        s1: a group keeps to its budget
    "#]],
    );
    let busy = upgrade()
        .allow(&pool_and_group(9, 3))
        .elsewhere("rack", "west-w1");
    judged(
        &free(),
        &busy,
        &expect![[r#"
        w1: a group keeps to its budget
        w2: a group keeps to its budget
        s1: a group keeps to its budget
    "#]],
    );
    let later = LATER.replace("{\"windows\"", "{\"unavailable\":9,\"windows\"");
    judged(
        &free(),
        &upgrade().allow(&later),
        &expect![[r#"
        w1: machines are taken out of service only within a window
        w2: machines are taken out of service only within a window
        s1: machines are taken out of service only within a window
    "#]],
    );

    let members = || World::new("1.35.0", "c1 c2 c3 c4 c5", "c1 c2 c3 c4 c5").allow(TWO);
    let sick = World::new("1.35.0", "c1 c2 c3 c4 c5", "c1 c2 c3 c4 c5!").allow(TWO);
    judged(
        &members(),
        &sick,
        &expect![[r#"
        c1: one member of the control plane is out of service at a time
    "#]],
    );

    let create = || World::new("1.34.0", "c1 w1", "c1").secrets();
    judged(
        &create(),
        &create().missing("compute"),
        &expect![[r#"
        w1: nothing is begun without the secret that it needs
    "#]],
    );
}

#[test]
fn the_checker_wants_a_row_for_whoever_is_out_of_service() {
    let world = World::new("1.35.0", "c1 w1", "c1@35 w1");
    let mut plan = plan(&world.view());
    plan.disturbs.clear();
    let notes = judge(&world.view(), &plan);
    let told: Vec<_> = notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["w1: who is out of service because of us has a row in the ledger"]
    );
}
