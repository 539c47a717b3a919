//! Newcomers on which work fails: whoever serves all the same has come, whoever does not become what
//! it should is taken back, and nothing is tried in vain without end.

use super::{LARGE, Life, SAID, Said};
use crate::advance::advance;
use crate::journey;
use expect_test::expect;
use model::observed::Observed;
use model::task::{Kind, State, Task};
use std::fmt::Write as _;
use std::time::Duration;

/// Whether a task is to make a node of the first newcomer.
fn joins(_: &Observed, task: &Task) -> bool {
    task.action.kind() == Kind::Join && task.machine.name.as_str() == "edge-muscle-03"
}

/// Whether a task plays what is played on the first newcomer when it has joined.
fn plays(observed: &Observed, task: &Task) -> bool {
    let node = observed.machines.get(&task.machine.id);
    let joined = node.is_some_and(|seen| seen.node.is_some());
    let first = task.machine.name.as_str() == "edge-muscle-03";
    first && joined && task.action.kind() == Kind::Equip
}

/// A cluster of hosts on which something is played after they have joined.
const PLAYED: Said = Said {
    cluster: ", playbooks: {afterJoining: [{name: after, text: '- {hosts: all}'}]}",
    kind: "lite",
    door: (1, "lite"),
    ..SAID
};

/// A roll whose newcomer could not be made a node.
fn stuck() -> Life {
    let mut life = Life::of(SAID);
    life.fails = joins;
    life.apply(LARGE);
    life.until(|life| !life.open.is_empty());
    life
}

#[test]
fn a_join_that_was_mended_by_hand_is_noticed() {
    let mut life = stuck();
    life.by_hand("edge-muscle-03");
    let told = journey(&life.view());
    assert!(told.held.is_empty(), "{told}");
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
        edge-muscle-03 in place of edge-muscle-01
          drain edge-muscle-01
        edge-muscle-04 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-04
        edge-muscle-04 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        now edge-brain-01 edge-muscle-03 edge-muscle-04
    "#]]);
}

#[test]
fn a_join_that_fails_is_taken_back() {
    let mut life = stuck();
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
        pool muscle stays as it was, tried 1×: join edge-muscle-03: there is no such type
          delete edge-muscle-03
        now edge-brain-01 edge-muscle-01 edge-muscle-02
    "#]]);
}

#[test]
fn a_newcomer_that_serves_and_does_not_become_what_it_should_is_taken_back() {
    let mut life = Life::of(PLAYED);
    life.fails = plays;
    life.apply(Said {
        kind: "systemd",
        ..PLAYED
    });
    let waits = life.waits();
    for held in &waits.held {
        writeln!(life.told, "{held}").unwrap();
    }
    assert_eq!(waits.wake.unwrap().since(life.now), Duration::from_mins(1));
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
          balance front-door-01
        pool muscle stays as it was, tried 1×: equip edge-muscle-03: there is no such type
          drain edge-muscle-03
          balance front-door-01
          delete edge-muscle-03
        drain edge-muscle-01 and 1 more: stays: its successor was tried 1× and taken back: equip edge-muscle-03: there is no such type
        now edge-brain-01 edge-muscle-01 edge-muscle-02 front-door-01
    "#]]);
    life.now = waits.wake.unwrap();
    life.fails = |_, _| false;
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
          balance front-door-01
        edge-muscle-03 in place of edge-muscle-01
          drain edge-muscle-01
          balance front-door-01
        edge-muscle-04 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-04
          balance front-door-01
        edge-muscle-04 in place of edge-muscle-02
          drain edge-muscle-02
          balance front-door-01
          delete edge-muscle-02
        now edge-brain-01 edge-muscle-03 edge-muscle-04 front-door-01
    "#]]);
}

#[test]
fn what_failed_and_was_corrected_is_attempted_before_it_is_taken_back() {
    let mut life = stuck();
    life.open[0].corrected = true;
    assert_eq!(advance(&life.view()), None);
    life.open[0].corrected = false;
    life.open[0].state = State::Running;
    assert_eq!(advance(&life.view()), None);
    life.open[0].state = State::Waiting;
    life.open[0].attempts = 4;
    assert_eq!(advance(&life.view()), None);
    life.open[0].attempts = 5;
    assert!(advance(&life.view()).is_some());
}

#[test]
fn a_newcomer_that_does_not_serve_is_taken_back_in_time() {
    let mut life = Life::of(SAID);
    life.apply(LARGE);
    life.until(|life| life.told.contains("join edge-muscle-03"));
    life.sicken("edge-muscle-03");
    let waits = life.waits();
    assert_eq!(waits.wake.unwrap().since(life.now), Duration::from_mins(10));
    life.now = waits.wake.unwrap();
    life.look();
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
        pool muscle stays as it was, tried 1×: edge-muscle-03 does not serve
          delete edge-muscle-03
        now edge-brain-01 edge-muscle-01 edge-muscle-02
    "#]]);
}
