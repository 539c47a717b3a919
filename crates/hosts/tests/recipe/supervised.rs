//! Our own supervision: what dies is started again, what is stopped stays so, logs stay small.

use crate::world::{World, eventually, possible};
use hosts::program::Program;
use hosts::recipe::item::{Item, State, Unit};
use hosts::recipe::services::{Definition, Verb, ask};
use hosts::recipe::{Looked, done, look, render};
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

fn service(script: &str, state: State) -> Program {
    let item = Item::Service {
        name: "one".to_owned(),
        unit: Unit::Ours(Definition {
            description: "a test".to_owned(),
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            reload: "USR1".to_owned(),
        }),
        state,
        restart_when: Vec::new(),
    };
    render(&[item], "test", LIMIT)
}

/// How a world's service is, as the probe sees it.
fn runs(world: &World) -> Option<bool> {
    let looked = Looked::read(&world.run(&look(&[], LIMIT))).unwrap();
    looked.services.get("one").copied()
}

fn main_process(world: &World) -> String {
    world.sh("read -r pid rest </run/slipway/one.child; echo $pid")
}

#[test]
fn a_program_that_dies_is_started_again_and_stops_cleanly() {
    if !possible("a_program_that_dies_is_started_again_and_stops_cleanly") {
        return;
    }
    let world = World::new();
    let script = "trap 'echo clean >>/tmp/ends; exit 0' TERM; trap 'echo again >>/tmp/ends' USR1; \
                  echo begun >>/tmp/begun; while :; do sleep 0.05; done";
    let program = service(script, State::Running);
    assert!(world.apply(&program) >= 2);
    assert_eq!(world.apply(&program), 0);
    assert_eq!(runs(&world), Some(true));
    // It outlived the session that started it; now it dies, and later its supervisor, too.
    let first = main_process(&world);
    world.sh(&format!("kill -9 {first}"));
    eventually("it is started again", || {
        world.sh("grep -c begun /tmp/begun") == "2"
    });
    let ask = |verb| {
        let report = world.run(&ask("one", verb, LIMIT));
        done(&report).unwrap();
        report.fact("service.one").unwrap().to_owned()
    };
    eventually("it runs", || ask(Verb::Look) == "running");
    ask(Verb::Reload);
    eventually("it read its settings", || {
        world.sh("cat /tmp/ends 2>/dev/null || :") == "again"
    });
    world.sh("read -r pid rest </run/slipway/one.pid; kill -9 $pid");
    assert_eq!(ask(Verb::Look), "stopped");
    assert!(world.apply(&program) > 0);
    assert_eq!(world.sh("grep -c begun /tmp/begun"), "3");
    // A process that was forked a moment ago still looks like its parent.
    eventually("there is one of it", || {
        world.sh("pgrep -fc 'while :; do sleep 0.05' || :") == "1"
    });
    assert_eq!(ask(Verb::Stop), "stopped");
    assert_eq!(
        world.sh("tail -n 1 /tmp/ends; pgrep -fc 'while :; do sleep 0.05' || :"),
        "clean\n0"
    );
    eventually("nothing is left", || {
        world.sh("pgrep -c dd || :; pgrep -fc supervise || :") == "0\n0"
    });
    assert_eq!(runs(&world), Some(false));
    assert_eq!(ask(Verb::Start), "running");
    let gone = service(script, State::Absent);
    assert_eq!(world.apply(&gone), 1);
    assert_eq!(world.apply(&gone), 0);
    assert_eq!(runs(&world), None);
    assert_eq!(
        world.sh("ls /run/slipway /etc/slipway/services"),
        "/etc/slipway/services:\n\n/run/slipway:"
    );
}

#[test]
fn one_that_ignores_the_asking_is_made_to_stop() {
    if !possible("one_that_ignores_the_asking_is_made_to_stop") {
        return;
    }
    let world = World::new();
    let script = "trap '' TERM; while :; do sleep 0.1; done";
    world.apply(&service(script, State::Running));
    world.apply(&service(script, State::Stopped));
    assert_eq!(world.sh("pgrep -fc 'sleep 0.1; done' || :"), "0");
    assert_eq!(world.apply(&service(script, State::Stopped)), 0);
}

#[test]
fn one_that_does_not_stay_up_is_told_with_its_last_words() {
    if !possible("one_that_does_not_stay_up_is_told_with_its_last_words") {
        return;
    }
    let world = World::new();
    for script in [
        "echo no port; exit 3",
        "sleep 0.2; echo no port >&2; exit 3",
    ] {
        let report = world.run(&service(script, State::Running));
        let (code, what) = report.failure().unwrap();
        assert_eq!(code, "HOST-015", "{what}");
        assert!(
            report.tail.iter().any(|line| line == "| no port"),
            "{report:#?}"
        );
    }
    assert!(world.apply(&service("exec sleep 1000", State::Running)) > 0);
}

#[test]
fn a_hundred_megabytes_of_log_stay_two() {
    if !possible("a_hundred_megabytes_of_log_stay_two") {
        return;
    }
    let world = World::new();
    let script = "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo the last; exec sleep 1000";
    world.apply(&service(script, State::Running));
    eventually("all is said", || {
        world.sh("cat /var/log/slipway/one.1 /var/log/slipway/one 2>/dev/null | tail -c 9")
            == "the last"
    });
    let size: u64 = world.sh("cat /var/log/slipway/* | wc -c").parse().unwrap();
    assert!((1_000_000..3_000_000).contains(&size), "{size} bytes");
}
