//! Bad days: refused configurations, half of everything, full disks, and being killed.

use crate::host::{
    STOP, balance, figure, files, look, page, program, role, run, start, tell, told,
};
use crate::traffic::{Target, ask_once};
use crate::world::within;
use hosts::balancer::{self, DIRECTORY};
use model::balancer::Listener;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Does something to the machine that a person could.
fn shell(line: &str) {
    let done = Command::new("sh").args(["-ec", line]).status().unwrap();
    assert!(done.success(), "{line}");
}

#[test]
fn a_refused_configuration_leaves_the_one_before_in_use() {
    within(
        "trouble::a_refused_configuration_leaves_the_one_before_in_use",
        async {
            let _targets = (Target::start(1), Target::start(2));
            let first = balance(&[role("web", 8080, &[1])]);
            told(&first).await;
            let before = files();

            // Somebody else has the port of a new role; targets and clusters change as well.
            let taken = std::net::TcpListener::bind("0.0.0.0:8081").unwrap();
            let second = balance(&[role("web", 8080, &[2]), role("api", 8081, &[1])]);
            let report = tell(&second).await;
            let (code, why) = report.failure().unwrap();
            assert_eq!(code, "HOST-018");
            assert!(
                why.contains("0.0.0.0:8081") && why.contains("Address already in use"),
                "{why}"
            );
            assert_eq!(
                report.fact("balancer-told"),
                Some(first.fingerprint().as_str())
            );
            assert_eq!(ask_once(8080).await.unwrap(), 1, "as before");
            let kept: Vec<_> = files()
                .into_iter()
                .filter(|(path, _)| !path.contains("/new/"))
                .collect();
            assert_eq!(kept, before.into_iter().collect::<Vec<_>>());

            run(STOP).await;
            let report = told(&first).await;
            assert_eq!(
                report.changed(),
                1,
                "it starts with what worked: {report:?}"
            );

            drop(taken);
            told(&second).await;
            assert_eq!(ask_once(8080).await.unwrap(), 2);
            assert_eq!(ask_once(8081).await.unwrap(), 1);
            assert_eq!(told(&second).await.changed(), 0);
        },
    );
}

#[test]
fn a_first_configuration_that_is_refused_is_tried_again() {
    within(
        "trouble::a_first_configuration_that_is_refused_is_tried_again",
        async {
            let _one = Target::start(1);
            let taken = std::net::TcpListener::bind("0.0.0.0:8080").unwrap();
            let wish = balance(&[role("web", 8080, &[1])]);
            for _ in 0..2 {
                let report = tell(&wish).await;
                let (code, why) = report.failure().unwrap();
                assert_eq!(
                    (code, why.contains("Address already in use")),
                    ("HOST-018", true),
                    "{why}"
                );
                assert!(why.contains("first configuration"), "{why}");
                assert_eq!(balancer::read(&report), Ok(None));
            }
            drop(taken);
            told(&wish).await;
            assert_eq!(ask_once(8080).await.unwrap(), 1);
            assert_eq!(told(&wish).await.changed(), 0);
        },
    );
}

#[test]
fn a_first_configuration_that_is_refused_is_not_in_use_after_the_next_start_either() {
    within(
        "trouble::a_first_configuration_that_is_refused_is_not_in_use_after_the_next_start_either",
        async {
            let _one = Target::start(1);
            let taken = std::net::TcpListener::bind("0.0.0.0:8081").unwrap();
            let wish = balance(&[role("web", 8080, &[1]), role("api", 8081, &[1])]);
            let report = tell(&wish).await;
            assert_eq!(report.failure().unwrap().0, "HOST-018");
            let listens = |port| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
            assert!(!listens(8080), "half of it is in use");

            // The machine starts again, and whoever has the port is slower this time.
            run(STOP).await;
            drop(taken);
            let command = fs::read_to_string("/var/lib/slipway/envoy.command").unwrap();
            let mut envoy = Command::new("sh")
                .args(["-c", &format!("exec {command}")])
                .spawn()
                .unwrap();
            crate::host::until("it starts", "ready", |page| page.contains("LIVE")).await;
            assert!(!listens(8081) && !listens(8080), "it took the port");
            envoy.kill().unwrap();
            envoy.wait().unwrap();

            told(&wish).await;
            assert_eq!(ask_once(8081).await.unwrap(), 1);
            assert_eq!(told(&wish).await.changed(), 0);
        },
    );
}

#[test]
fn files_that_somebody_broke_are_put_right_and_half_ones_never_read() {
    within(
        "trouble::files_that_somebody_broke_are_put_right_and_half_ones_never_read",
        async {
            let _one = Target::start(1);
            let wish = balance(&[role("web", 8080, &[1])]);
            told(&wish).await;
            let before = files();
            let listeners = format!("{DIRECTORY}/listeners/all.json");

            // Written in place, as by a crash: Envoy reads only what is moved there.
            let whole = fs::read_to_string(&listeners).unwrap();
            fs::write(&listeners, &whole[..whole.len() / 2]).unwrap();
            assert_eq!(figure("listener_manager.lds.update_attempt").await, 1);
            assert_eq!(told(&wish).await.changed(), 1);

            // Moved there: Envoy reads it and keeps what it has.
            shell(&format!(
                "echo '{{\"broken' >{listeners}.x; mv {listeners}.x {listeners}"
            ));
            crate::host::until("it saw it", "stats?filter=lds", |page| {
                page.contains("lds.update_failure: 1")
            })
            .await;
            assert_eq!(ask_once(8080).await.unwrap(), 1);
            assert_eq!(told(&wish).await.changed(), 1);

            // Gone altogether, all of it, while Envoy goes on.
            shell(&format!(
                "cd {DIRECTORY} && rm -rf endpoints/* clusters/* listeners/* good in-use told"
            ));
            told(&wish).await;
            assert_eq!(files(), before);
            assert_eq!(ask_once(8080).await.unwrap(), 1);
        },
    );
}

#[test]
fn a_program_that_was_cut_off_changes_nothing() {
    within(
        "trouble::a_program_that_was_cut_off_changes_nothing",
        async {
            told(&balance(&[role("web", 8080, &[1])])).await;
            let in_use = || {
                let mut files = files();
                files.retain(|path, _| !path.contains("/new/"));
                files
            };
            let before = in_use();
            let text = program(&balance(&[
                role("web", 8080, &[2]),
                role("api", 8081, &[1]),
            ]))
            .text;
            for tenth in 0..10 {
                let mut end = text.len() * tenth / 10;
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                run(&text[..end]).await;
                assert_eq!(in_use(), before, "cut at {end} of {}", text.len());
            }
            // A file whose bytes changed on the way is not used either.
            let report = run(&text.replace("127.0.1.2", "127.0.1.3")).await;
            assert_eq!(report.failure().unwrap().0, "HOST-019");
            assert_eq!(in_use(), before);
        },
    );
}

#[test]
fn full_and_read_only_disks_are_told_apart() {
    within("trouble::full_and_read_only_disks_are_told_apart", async {
        let _one = Target::start(1);
        let first = balance(&[role("web", 8080, &[1])]);
        told(&first).await;
        let before = files();
        let second = balance(&[role("web", 8080, &[1, 2])]);
        shell("dd if=/dev/zero of=/var/lib/fill bs=1M 2>/dev/null || :");
        assert_eq!(tell(&second).await.failure().unwrap().0, "HOST-006");
        shell(
            "rm /var/lib/fill; mount --bind /var/lib/slipway /var/lib/slipway; mount -o remount,ro,bind /var/lib/slipway",
        );
        assert_eq!(tell(&second).await.failure().unwrap().0, "HOST-007");
        shell("umount -l /var/lib/slipway");
        assert_eq!(ask_once(8080).await.unwrap(), 1);
        told(&first).await;
        assert_eq!(files(), before);
        told(&second).await;
    });
}

/// The two wishes between which a machine is torn.
fn wishes() -> [Vec<Listener>; 2] {
    let mut sticky = role("web", 8080, &[2, 3]);
    sticky.sticky = true;
    [
        vec![role("web", 8080, &[1]), role("old", 8082, &[1])],
        vec![sticky, role("api", 8081, &[1, 2])],
    ]
}

#[test]
fn killed_at_any_moment_the_next_run_ends_in_the_same_world() {
    within(
        "trouble::killed_at_any_moment_the_next_run_ends_in_the_same_world",
        async {
            let _targets = (Target::start(1), Target::start(2), Target::start(3));
            let wishes = wishes().map(|listeners| balance(&listeners));
            let mut worlds = Vec::new();
            let mut took = Duration::ZERO;
            for wish in wishes.iter().chain(&wishes) {
                let begun = Instant::now();
                told(wish).await;
                took = begun.elapsed();
                worlds.push(files());
            }
            assert_eq!(worlds[0], worlds[2]);
            assert_eq!(worlds[1], worlds[3]);
            let (mut killed, mut round) = (0, 0_u32);
            while killed < 30 {
                let wish = usize::try_from(round % 2).unwrap();
                if round % 5 == 4 {
                    run(STOP).await;
                }
                let mut running = start(&program(&wishes[wish]).text).await;
                let group = running.id().unwrap();
                let moment = took * (round * 7 % 30 + 1) / 30;
                round += 1;
                if tokio::time::timeout(moment, running.wait()).await.is_ok() {
                    // The machine was slow when this was measured.
                    took = took * 3 / 4;
                } else {
                    killed += 1;
                    shell(&format!("kill -9 -{group}"));
                    running.wait().await.unwrap();
                }
                told(&wishes[wish]).await;
                assert_eq!(
                    files(),
                    worlds[wish],
                    "round {round}, killed after {moment:?}"
                );
                assert_eq!(told(&wishes[wish]).await.changed(), 0, "round {round}");
                assert_eq!(ask_once(8080).await.unwrap() == 1, wish == 0);
            }
            println!("killed {killed} times on the way, in {round} rounds");
        },
    );
}

#[test]
fn nothing_is_left_when_it_is_taken_away() {
    within("trouble::nothing_is_left_when_it_is_taken_away", async {
        told(&balance(&[role("web", 8080, &[1])])).await;
        let seen = balancer::read(&look().await).unwrap().unwrap();
        assert_eq!(
            seen.healthy.values().copied().collect::<Vec<_>>(),
            [0],
            "nobody listens there"
        );
        let report = run(&balancer::down_program(STOP).text).await;
        assert_eq!(
            (report.status, report.changed()),
            (Some(0), 1),
            "{report:?}"
        );
        assert!(!Path::new(DIRECTORY).exists());
        assert_eq!(page("ready").await, "");
        let report = run(&balancer::down_program(STOP).text).await;
        assert_eq!(
            (report.status, report.changed()),
            (Some(0), 0),
            "{report:?}"
        );
        assert_eq!(balancer::read(&look().await), Ok(None));
    });
}
