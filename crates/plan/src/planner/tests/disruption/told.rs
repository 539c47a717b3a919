//! How it is told that something is held: by the planner, by a commit, and in older words.

use super::{LATER, TWO, allowed, pool_and_group};
use crate::fixture::{World, picture};
use crate::held::{Owner, Reason};
use crate::planner::plan;
use crate::why::why;
use expect_test::expect;
use model::intent::Wish;

#[test]
fn a_pause_and_a_window_are_told_apart() {
    let world = World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2").wish(Wish::Pause);
    allowed(
        TWO,
        world,
        &expect![[r#"
        held     drain w1 and 1 more: paused by ann
        error
    "#]],
    );
}

#[test]
fn what_the_commit_refuses_is_told_like_what_the_planner_holds() {
    let world = World::new("1.35.0", "c1 w1", "c1@35 w1").allow(&pool_and_group(9, 1));
    let mut refused = plan(&world.view());
    let busy = world.elsewhere("rack", "west-w1");
    let slot = refused.disturbs[0].clone();
    let reason = crate::spent(&refused.budgets, &[], &busy.elsewhere, &slot).unwrap();
    refused.hold_back(slot.machine, &reason);
    assert_eq!(refused.disturbs, []);
    expect![[r#"
        held     drain w1: 1 of 1 of group rack already out of service (west-w1 of cluster west)
        scheduled
    "#]]
    .assert_eq(&picture(&refused));

    let mut full = plan(&World::new("1.34.0", "c1 w1", "c1").view());
    let reason = Reason::Quota {
        what: "machines".to_owned(),
        used: 40,
        limit: 40,
    };
    let machine = full.tasks[0].machine.id;
    full.hold_back(machine, &reason);
    expect![[r#"
        held     create w1: the project has 40 of at most 40 machines
        error
    "#]]
    .assert_eq(&picture(&full));
}

#[test]
fn every_wait_has_an_owner_and_a_next_action() {
    let worlds = [
        World::new("1.35.0", "c1 w1 w2", "c1@35 w1 w2").allow(LATER),
        World::new("1.35.0", "c1 w1", "c1@35 w1")
            .allow(&pool_and_group(9, 1))
            .elsewhere("rack", "west-w1"),
        World::new("1.34.0", "c1 w1", "c1")
            .secrets()
            .missing("compute"),
    ];
    let mut told = String::new();
    for world in worlds {
        let plan = plan(&world.view());
        for cause in why(&world.view(), &plan) {
            told += &format!("{cause}\n");
        }
    }
    let quota = Reason::Quota {
        what: "machines".to_owned(),
        used: 40,
        limit: 40,
    };
    assert_eq!(quota.owner(), Owner::Person);
    expect![[r#"
        cluster edge is scheduled at generation 7: 1 of 1 control and 2 of 2 compute nodes are ready
        upgrade w1 and 1 more: waits for its window, which opens Thu 1970-01-01 01:16 UTC
          → begins by itself when the window opens, Thu 1970-01-01 01:16 UTC
        cluster edge is scheduled at generation 7: 1 of 1 control and 1 of 1 compute nodes are ready
        upgrade w1: 1 of 1 of group rack already out of service (west-w1 of cluster west)
          → continues when west-w1 of cluster west is back in service
        cluster edge is error at generation 7: 1 of 1 control and 0 of 1 compute nodes are ready
        create w1: secret compute is not set
          → run `slipway secret set compute KEY`, or name another in the manifest
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_reason_stored_before_there_were_several_budgets_is_still_read() {
    let stored = r#"{"budget":{"by":"w1","unavailable":1,"budget":1}}"#;
    let reason: Reason = serde_json::from_str(stored).unwrap();
    assert_eq!(reason.to_string(), "1 of 1 already out of service (w1)");
}
