//! A try whose time has come, and that is not made yet.

use super::*;
use crate::why;
use model::id::IntentId;

fn told(life: &Life) -> String {
    let view = life.view();
    let chain = why(&view, &plan(&view));
    chain.iter().map(|cause| format!("{cause}\n")).collect()
}

/// A pool whose new kind failed, at the time of the next try.
fn failed() -> Life {
    let mut life = Life::of(SAID);
    life.broken = vec!["huge"];
    life.apply(Said {
        kind: "huge",
        ..SAID
    });
    life.now = life.waits().wake.unwrap();
    life
}

#[test]
fn what_was_tried_before_is_told_when_it_is_due_and_while_it_is_tried() {
    let mut life = failed();
    expect![[r#"
        cluster edge is error at generation 4: 1 of 1 control and 2 of 2 compute nodes are ready
        drain edge-muscle-01 and 1 more: stays: its successor was tried 1× and taken back: create edge-muscle-03: there is no such type
          → the next try is due and begins by itself; or correct the pool in the manifest, which begins anew
        the next step is due: edge-muscle-03 to come, made as pool muscle now says
          → begins by itself
    "#]].assert_eq(&told(&life));
    let step = advance(&life.view()).unwrap();
    life.desired = Some(step.desired);
    expect![[r#"
        cluster edge is scheduled at generation 5: 1 of 1 control and 2 of 3 compute nodes are ready
        1 task waits for a worker
          → begins by itself
        drain edge-muscle-01 and 1 more: goes when edge-muscle-03 serves in its place
          → continues when edge-muscle-03 serves
        the new kind of pool muscle is being tried for the 2nd time; before, it was taken back: create edge-muscle-03: there is no such type
          → if it fails again, the pool stays as it was and a longer pause follows
    "#]].assert_eq(&told(&life));
}

#[test]
fn a_try_that_is_due_in_a_paused_cluster_waits_for_who_paused_it() {
    let mut life = failed();
    let view = life.view();
    let paused = Intent {
        id: IntentId::derive(crate::fixture::origin("pause", 0)),
        project: view.desired.project.clone(),
        cluster: view.desired.name.clone(),
        wish: Wish::Pause,
        author: "ann".to_owned(),
        reason: "a sale".to_owned(),
        created_at: view.now,
        expires_at: None,
    };
    life.intents.push(paused);
    assert_eq!(advance(&life.view()), None);
    expect![[r#"
        cluster edge is error at generation 4: 1 of 1 control and 2 of 2 compute nodes are ready
        drain edge-muscle-01 and 1 more: paused by ann
          → withdraw the pause intent to let it continue
        the new kind of pool muscle is due to be tried for the 2nd time; before, it was taken back: create edge-muscle-03: there is no such type
          → if it fails again, the pool stays as it was and a longer pause follows
    "#]].assert_eq(&told(&life));
}

#[test]
fn a_try_that_is_due_waits_for_what_is_left_of_the_last_one_and_says_so() {
    let mut life = failed();
    // Who came the last time is a node still, and nobody can take it out.
    let mut desired = life.desired.clone().unwrap();
    let mut left = life.machine("edge-muscle-01");
    left.id = MachineId::derive(crate::fixture::origin("left", 0));
    left.name = "edge-muscle-09".parse().unwrap();
    left.address = "10.8.0.9".parse().unwrap();
    let seen = life.observed.machines[&life.machine("edge-muscle-01").id].clone();
    life.observed.machines.insert(left.id, seen);
    desired.leaving.push(left);
    life.desired = Some(desired);
    assert_eq!(advance(&life.view()), None);
    let waits = plan(&life.view());
    let mut kept = waits.held.iter().map(ToString::to_string);
    let after = "drain edge-muscle-01 and 1 more: one at a time, after edge-muscle-09";
    assert!(kept.any(|held| held == after), "{:#?}", waits.held);
    assert!(told(&life).contains("for the 2nd time"), "{}", told(&life));
    // When it is gone, the try begins.
    life.until(|life| !life.desired.as_ref().unwrap().rolls[0].coming.is_empty());
}
