//! Playbooks: when they are played, and what waits for them.

use super::{drawn, equip, init, playbook, told};
use crate::fixture::{World, host};
use expect_test::expect;
use model::task::{Action, State};

#[test]
fn playbooks_are_played_before_a_machine_joins_and_when_it_has() {
    let mut world = World::hosts("c1 w1 b1").settled().want("c1 w1 w2 b1");
    world.desired.playbooks.before_joining = playbook("tune", "- {hosts: all}");
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    told(
        world,
        &expect![[r#"
            1
            create   w2
            equip    c1
            held     equip w1: 1 of 1 already out of service (c1)
            scheduled
            2
            equip    w1
            equip    w2
            release 1
            scheduled
            3
            mesh     c1 (4 members, to c1 w1 w2 b1)
            release 1
            scheduled
            4
            join     w2
            scheduled
            5
            equip    w2
            balance  b1 (443 > 10.8.16.1 10.8.16.2) (6443 > 10.8.0.1)
            scheduled
            6
            done
        "#]],
    );
}

#[test]
fn nobody_joins_before_its_playbooks_were_played() {
    let mut world = World::hosts("c1 w1").settled().want("c1 w1 w2");
    world.desired.playbooks.before_joining = playbook("tune", "- {hosts: none}");
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    let mut world = world.after(3);
    // It is a part of the mesh, and its playbook fails.
    world.host("w2").equipped = None;
    let equip = Action::Equip {
        recipe: world.desired.recipe(&host("w2"), false),
    };
    let stuck = world.open("w2", equip, State::Stuck, Some("no such host pattern"));
    drawn(
        &stuck,
        &expect![[r#"
            held     equip w2: stuck: no such host pattern
            held     join w2: equip is still running
            error
        "#]],
    );
    let mut corrected = stuck;
    corrected.desired.playbooks.before_joining = playbook("tune", "- {hosts: all}");
    drawn(
        &corrected,
        &expect![[r#"
            equip    c1
            equip    w2
            withdraw 1
            held     equip w1: 1 of 1 already out of service (c1)
            held     join w2: equip is still running
            scheduled
        "#]],
    );
}

#[test]
fn a_playbook_that_fails_when_a_node_has_joined_keeps_nobody_from_joining() {
    let mut world = World::hosts("c1 w1").settled().want("c1 w1 w2").after(3);
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    let failing = equip(&world, "w1");
    let world = world.open("w1", failing, State::Stuck, Some("no such label"));
    drawn(
        &world,
        &expect![[r#"
        equip    c1
        join     w2
        held     equip w1: stuck: no such label
        error
    "#]],
    );
    // One that was taken out of service comes back first.
    let mut cordoned = World::hosts("c1 w1").settled();
    cordoned.desired.version = "1.35.0".parse().unwrap();
    let mut cordoned = cordoned.after(5);
    cordoned.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    cordoned.host("c1").equipped = Some(cordoned.desired.recipe(&host("c1"), true).fingerprint());
    let failing = equip(&cordoned, "w1");
    let cordoned = cordoned.open("w1", failing, State::Stuck, Some("no such label"));
    drawn(
        &cordoned,
        &expect![[r#"
        uncordon w1
        withdraw 1
        scheduled
    "#]],
    );
}

#[test]
fn a_starting_control_plane_is_not_forgotten_for_a_playbook() {
    let mut world =
        World::hosts("c1 c2")
            .after(4)
            .open("c2", init(), State::Waiting, Some("timeout"));
    world.desired.playbooks.before_joining = playbook("tune", "- {hosts: all}");
    drawn(
        &world,
        &expect![[r#"
        equip    c1
        held     init c2: tried 1×: timeout
        held     join c1: one at a time, after c2
        scheduled
    "#]],
    );
}

#[test]
fn a_playbook_that_changed_is_played_again_and_load_balancers_have_none() {
    let mut world = World::hosts("c1 w1 b1").settled();
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    let mut world = world.settled();
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: control}");
    told(
        world,
        &expect![[r#"
            1
            equip    c1
            held     equip w1: 1 of 1 already out of service (c1)
            scheduled
            2
            equip    w1
            release 1
            scheduled
            3
            release 1
            done
        "#]],
    );
}

#[test]
fn newcomers_are_played_to_all_at_once_and_at_any_time() {
    let night = r#"{"windows":[{"days":["mon","tue","wed","thu","fri","sat","sun"],"start":120,"minutes":60,"offset":0}]}"#;
    let mut world = World::hosts("c1 w1 w2 w3").allow(night);
    world.desired.playbooks.after_joining = playbook("label", "- {hosts: all}");
    told(
        world.after(5),
        &expect![[r#"
        1
        equip    c1
        join     w1
        join     w2
        join     w3
        scheduled
        2
        equip    w1
        equip    w2
        equip    w3
        scheduled
        3
        done
    "#]],
    );
    // To those that were there before it was declared it is a change.
    let mut world = World::hosts("c1 w1").settled().allow(night);
    let after_joining = playbook("label", "- {hosts: all}");
    let made = ["control", "compute"].map(|pool| (pool.parse().unwrap(), 1));
    world.desired.playbooks.after_joining = after_joining;
    world.desired.playbooks.made_before = made.into();
    drawn(
        &world,
        &expect![[r#"
        held     equip c1 and 1 more: waits for its window, which opens Thu 1970-01-01 02:00 UTC
        scheduled
    "#]],
    );
}
