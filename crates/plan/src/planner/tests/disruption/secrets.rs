//! Secrets and jump hosts: what waits for them, and what becomes of it when they are corrected.

use crate::fixture::{World, secret};
use crate::planner::tests::drawn;
use expect_test::expect;
use model::cluster::{Generation, Jump, Origin};
use model::task::{Action, State};

#[test]
fn nothing_is_begun_without_its_secret() {
    let world = World::new("1.34.0", "c1 w1 s1", "c1").secrets();
    drawn(
        &world.missing("compute").missing("attic"),
        &expect![[r#"
        held     create w1: secret compute is not set
        held     prepare s1: secret attic is not set
        error
    "#]],
    );
    // Between its making and its end a machine that we make needs nobody's account.
    let upgrade = World::new("1.35.0", "c1 w1 s1", "c1@35 w1 s1").secrets();
    drawn(
        &upgrade.missing("compute").missing("attic"),
        &expect![[r#"
        drain    w1
        held     upgrade s1: one at a time, after w1
        scheduled
    "#]],
    );
    let given = World::new("1.35.0", "c1 s1", "c1@35 s1").secrets();
    drawn(
        &given.missing("attic"),
        &expect![[r#"
        held     drain s1: secret attic is not set
        error
    "#]],
    );
    let back = World::new("1.35.0", "c1 s1", "c1@35 s1/@35").secrets();
    drawn(
        &back.missing("attic"),
        &expect![[r#"
        uncordon s1
        scheduled
    "#]],
    );
}

#[test]
fn a_machine_that_needs_one_secret_twice_is_one_machine() {
    let mut world = behind(World::new("1.34.0", "c1 s1 s2", "c1").secrets(), "root");
    let machines = world.desired.machines.iter_mut();
    for (at, machine) in machines.enumerate() {
        if let Origin::Given { endpoint, jump, .. } = &mut machine.origin {
            *endpoint = [203, 0, 113, u8::try_from(at).unwrap()].into();
            jump.as_mut().unwrap().secret = Some(secret("attic"));
        }
    }
    drawn(
        &world.missing("attic"),
        &expect![[r#"
            held     prepare s1 and 1 more: secret attic is not set
            error
        "#]],
    );
}

/// A given machine behind a jump host that is entered as somebody.
fn behind(mut world: World, username: &str) -> World {
    for machine in &mut world.desired.machines {
        if let Origin::Given { jump, .. } = &mut machine.origin {
            *jump = Some(Jump {
                endpoint: "203.0.113.1".parse().unwrap(),
                ssh_port: 22,
                username: username.to_owned(),
                secret: Some(secret("front")),
                since: Generation(1),
            });
        }
    }
    world
}

#[test]
fn nothing_is_begun_without_the_key_of_the_jump_host() {
    let world = behind(World::new("1.34.0", "c1 s1", "c1").secrets(), "root");
    drawn(
        &world.missing("front"),
        &expect![[r#"
        held     prepare s1: secret front is not set
        error
    "#]],
    );
}

#[test]
fn a_corrected_way_to_a_machine_is_another_task() {
    let with = |username: &str, state: State| {
        let world = behind(World::new("1.34.0", "c1 s1", "c1"), "root");
        let way = behind(World::new("1.34.0", "c1 s1", "c1"), username);
        let error = (state == State::Stuck).then_some("it refuses the key");
        let mut world = world.open("s1", Action::Prepare, state, error);
        let begun = way.desired.machine_named("s1").unwrap();
        world.open[0].origin = begun.origin.clone();
        world
    };
    drawn(
        &with("root", State::Stuck),
        &expect![[r#"
        held     prepare s1: stuck: it refuses the key
        error
    "#]],
    );
    drawn(
        &with("typo", State::Stuck),
        &expect![[r#"
        prepare  s1
        withdraw 1
        scheduled
    "#]],
    );
    drawn(
        &with("typo", State::Running),
        &expect![[r#"
        scheduled
    "#]],
    );
    // The machine's own way was corrected.
    let mut renamed = with("root", State::Stuck);
    if let Origin::Given { username, .. } = &mut renamed.open[0].origin {
        "typo".clone_into(username);
    }
    drawn(
        &renamed,
        &expect![[r#"
        prepare  s1
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn a_corrected_secret_is_another_task() {
    let with = |name: Option<&str>, state: State| {
        let error = (state == State::Stuck).then_some("unauthorised");
        let mut world =
            World::new("1.34.0", "c1 w1", "c1")
                .secrets()
                .open("w1", Action::Create, state, error);
        let begun = world.open[0].origin.clone();
        world.open[0].origin = begun.with_secret(name.map(secret));
        world
    };
    drawn(
        &with(Some("compute"), State::Stuck),
        &expect![[r#"
        held     create w1: stuck: unauthorised
        error
    "#]],
    );
    drawn(
        &with(Some("typo"), State::Stuck),
        &expect![[r#"
        create   w1
        withdraw 1
        scheduled
    "#]],
    );
    drawn(
        &with(None, State::Running),
        &expect![[r#"
        scheduled
    "#]],
    );
}
