//! Tasks that were begun, failed, got stuck, are not wanted any more, or that somebody interferes with.

use super::{care, drawn};
use crate::fixture::{World, machine, origin};
use expect_test::expect;
use model::id::TaskId;
use model::intent::Wish;
use model::task::{Action, Kind, State};

#[test]
fn what_runs_is_not_begun_again() {
    let world =
        World::new("1.34.0", "c1 w1", "c1").open("w1", Action::Create, State::Running, None);
    drawn(
        &world,
        &expect![[r#"
        scheduled
    "#]],
    );
}

#[test]
fn a_failed_attempt_is_told_with_its_count() {
    let world = World::new("1.34.0", "c1 w1", "c1").open(
        "w1",
        Action::Create,
        State::Waiting,
        Some("rate limit"),
    );
    drawn(
        &world,
        &expect![[r#"
        held     create w1: tried 1×: rate limit
        scheduled
    "#]],
    );
}

#[test]
fn a_stuck_task_waits_until_somebody_asks_again() {
    let world = World::new("1.34.0", "c1 w1", "c1").open(
        "w1",
        Action::Create,
        State::Stuck,
        Some("no such type"),
    );
    drawn(
        &world,
        &expect![[r#"
        held     create w1: stuck: no such type
        error
    "#]],
    );
    let task = TaskId::derive(origin("w1", 9));
    drawn(
        &world.wish(Wish::Retry { task }),
        &expect![[r#"
        reopen 1
        scheduled
    "#]],
    );
}

#[test]
fn a_task_nobody_wants_is_withdrawn_unless_it_runs() {
    let waiting =
        World::new("1.34.0", "c1", "c1 w1-").open("w1", Action::Create, State::Waiting, None);
    drawn(
        &waiting,
        &expect![[r#"
        delete   w1
        withdraw 1
        scheduled
    "#]],
    );
    let running =
        World::new("1.34.0", "c1", "c1 w1-").open("w1", Action::Create, State::Running, None);
    drawn(
        &running,
        &expect![[r#"
        held     delete w1: create is still running
        scheduled
    "#]],
    );
}

#[test]
fn a_pause_holds_what_is_new_and_keeps_what_runs() {
    let world = World::new("1.34.0", "c1 w1 w2", "c1")
        .open("w1", Action::Create, State::Running, None)
        .wish(Wish::Pause);
    drawn(
        &world,
        &expect![[r#"
        held     create w2: paused by ann
        error
    "#]],
    );
}

#[test]
fn a_cancelled_task_is_left_alone() {
    let task = TaskId::derive(origin("w1", 9));
    let wish = Wish::Cancel {
        task,
        machine: machine("w1").id,
        kind: Kind::Create,
    };
    let world = World::new("1.34.0", "c1 w1", "c1")
        .open("w1", Action::Create, State::Waiting, Some("rate limit"))
        .wish(wish);
    drawn(
        &world,
        &expect![[r#"
        withdraw 1
        held     create w1: cancelled by ann
        error
    "#]],
    );
}

#[test]
fn a_control_plane_that_is_being_started_elsewhere_is_waited_for() {
    let init = Action::Init {
        version: "1.34.0".parse().unwrap(),
        network: "10.8.0.0/16".parse().unwrap(),
        care: care("c1"),
    };
    // The first machine turned out to run while its own task still waits to try again.
    let world = World::new("1.34.0", "c1 c2", "c1~ c2~")
        .open("c1", Action::Create, State::Waiting, Some("rate limit"))
        .open("c2", init.clone(), State::Running, None);
    drawn(
        &world,
        &expect![[r#"
        withdraw 1
        held     join c1: one at a time, after c2
        scheduled
    "#]],
    );
    // Nor is another started while the one that was begun does not answer.
    let world =
        World::new("1.34.0", "c1 c2", "c1~ c2?").open("c2", init, State::Waiting, Some("timeout"));
    drawn(
        &world,
        &expect![[r#"
            held     join c2: the machine does not answer
            held     init c1: one at a time, after c2
            held     init c2: tried 1×: timeout
            error
        "#]],
    );
}

#[test]
fn a_control_plane_that_may_have_been_started_is_remembered_before_another_machine_is_there() {
    let init = Action::Init {
        version: "1.34.0".parse().unwrap(),
        network: "10.8.0.0/16".parse().unwrap(),
        care: care("c1"),
    };
    drawn(
        &World::new("1.34.0", "c1 c2 c3", "c2~? c3~?").open("c3", init, State::Waiting, None),
        &expect![[r#"
            create   c1
            held     join c2 and 1 more: the machine does not answer
            error
        "#]],
    );
}

#[test]
fn what_an_attempt_may_have_made_since_it_was_seen_to_be_absent_is_removed() {
    let gone = World::new("1.34.0", "", "w1x").open("w1", Action::Create, State::Running, None);
    drawn(
        &gone,
        &expect![[r#"
        held     delete w1: create is still running
        deleting
    "#]],
    );
    let surplus = World::new("1.34.0", "c1", "c1 w1x").open(
        "w1",
        Action::Create,
        State::Waiting,
        Some("timeout"),
    );
    drawn(
        &surplus,
        &expect![[r#"
        delete   w1
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn a_drain_that_has_not_ended_goes_on_before_anything_else() {
    let upgrade = World::new("1.35.0", "c1 w1", "c1@35 w1/").open(
        "w1",
        Action::Drain,
        State::Waiting,
        Some("timeout"),
    );
    drawn(
        &upgrade,
        &expect![[r#"
        held     drain w1: tried 1×: timeout
        scheduled
    "#]],
    );
    let removal = World::new("1.34.0", "c1", "c1 w1/").open(
        "w1",
        Action::Drain,
        State::Waiting,
        Some("timeout"),
    );
    drawn(
        &removal,
        &expect![[r#"
        held     drain w1: tried 1×: timeout
        scheduled
    "#]],
    );
}
