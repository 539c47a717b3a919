//! Killed at any moment, the next who opens the sandbox finds a world that makes sense.

use crate::apart::{Lab, apart, runtime};
use hosts::sandbox::{Ending, Level, Sandbox, State};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Tells the one that will be killed how its hosts are to end.
const ENDING: &str = "SLIPWAY_TEST_ENDING";

#[test]
fn hosts_go_on_when_their_maker_is_killed_and_are_adopted() {
    let name = "killed::hosts_go_on_when_their_maker_is_killed_and_are_adopted";
    apart(name, Level::Lite, async |lab| {
        let before = lab.world();
        lab.open()
            .await
            .create(&lab.order("warm", Level::Lite))
            .await
            .unwrap();
        for round in 0..16_u64 {
            let mut victim = victim("stay");
            wait_for(&mut victim, "opened");
            // Another moment every time, over a little more than one round of its work.
            tokio::time::sleep(Duration::from_millis(round * 17)).await;
            victim.kill().unwrap();
            victim.wait().unwrap();
            let sandbox = lab.open().await;
            let warm = sandbox
                .create(&lab.order("warm", Level::Lite))
                .await
                .unwrap();
            lab.ssh(&warm, "true").unwrap();
            for seen in sandbox.list().await {
                let order = lab.order(&seen.id, Level::Lite);
                let made = sandbox.create(&order).await.unwrap();
                assert_eq!(
                    (made.address, &made.host_key),
                    (seen.address, &seen.host_key)
                );
                lab.ssh(&made, "true").unwrap();
            }
        }
        let sandbox = lab.open().await;
        assert_eq!(sandbox.find("warm").await.unwrap().state, State::Running);
        sandbox.clear().await.unwrap();
        drop(sandbox);
        lab.settles_to(&before).await;
    });
}

#[test]
fn hosts_end_with_their_maker_where_that_is_wished() {
    apart(
        "killed::hosts_end_with_their_maker_where_that_is_wished",
        Level::Lite,
        async |lab| {
            let before = lab.world();
            for _ in 0..3 {
                let mut victim = victim("with-us");
                wait_for(&mut victim, "round");
                victim.kill().unwrap();
                victim.wait().unwrap();
                // Opening waits until the guard is done.
                let sandbox = lab.open().await;
                assert_eq!(sandbox.list().await, []);
                sandbox.clear().await.unwrap();
                drop(sandbox);
                lab.settles_to(&before).await;
            }
            let sandbox = Sandbox::open(lab.settings(Ending::WithUs)).await.unwrap();
            sandbox
                .create(&lab.order("one", Level::Lite))
                .await
                .unwrap();
            drop(sandbox);
            lab.settles_to(&before).await;
        },
    );
}

#[test]
fn hosts_whose_maker_was_killed_are_deleted_with_all_they_shared() {
    let name = "killed::hosts_whose_maker_was_killed_are_deleted_with_all_they_shared";
    apart(name, Level::Lite, async |lab| {
        let before = lab.world();
        for round in 0..6_u64 {
            let mut victim = victim("stay");
            wait_for(&mut victim, "round");
            tokio::time::sleep(Duration::from_millis(round * 37)).await;
            victim.kill().unwrap();
            victim.wait().unwrap();
            let sandbox = lab.open().await;
            for id in ["one", "two"] {
                sandbox.delete(id).await.unwrap();
            }
            drop(sandbox);
            lab.settles_to(&before).await;
            let programs = lab.dir.join("sandbox/programs");
            assert!(!programs.exists(), "in round {round}");
        }
    });
}

#[test]
fn makes_and_deletes_for_ever() {
    let Some(dir) = lab::within() else {
        return;
    };
    let ending = match std::env::var(ENDING).as_deref() {
        Ok("with-us") => Ending::WithUs,
        Ok(_) | Err(_) => Ending::Stay,
    };
    runtime().block_on(async {
        let lab = Lab::new(dir);
        let sandbox = Sandbox::open(lab.settings(ending)).await.unwrap();
        println!("opened");
        loop {
            let (one, two) = (lab.order("one", Level::Lite), lab.order("two", Level::Lite));
            let (one, two) = tokio::join!(sandbox.create(&one), sandbox.create(&two));
            one.unwrap();
            two.unwrap();
            println!("round");
            let (one, two) = tokio::join!(sandbox.delete("one"), sandbox.power_off("two"));
            one.unwrap();
            two.unwrap();
        }
    });
}

fn victim(ending: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::makes_and_deletes_for_ever",
            "--nocapture",
        ])
        .env(ENDING, ending)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_for(victim: &mut Child, word: &str) {
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let said = lines.find(|line| line.as_ref().is_ok_and(|line| line.ends_with(word)));
    assert!(said.is_some(), "it ended before it said {word}");
    // It goes on speaking; a pipe that nobody reads would kill it before we do.
    std::thread::spawn(move || lines.for_each(drop));
}

#[test]
fn whoever_is_dropped_while_it_begins_is_begun_again() {
    let name = "killed::whoever_is_dropped_while_it_begins_is_begun_again";
    apart(name, Level::Lite, async |lab| {
        let sandbox = lab.open().await;
        let order = lab.order("one", Level::Lite);
        for milliseconds in (0..120).step_by(4) {
            let moment = std::time::Duration::from_millis(milliseconds);
            let dropped = tokio::time::timeout(moment, sandbox.create(&order)).await;
            if dropped.is_err() {
                let made = sandbox.create(&order).await;
                assert!(made.is_ok(), "dropped after {moment:?}: {made:?}");
            }
            sandbox.delete("one").await.unwrap();
        }
        sandbox.clear().await.unwrap();
    });
}
