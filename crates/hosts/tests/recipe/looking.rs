//! The probe sees what is there, costs little, and calls garbage garbage.

use crate::world::{World, possible};
use hosts::error::Kind;
use hosts::recipe::{Level, Looked, look, prepare, render};
use model::host::{Purpose, Recipe};
use std::time::{Duration, SystemTime};

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn a_host_is_seen_as_it_is() {
    if !possible("a_host_is_seen_as_it_is") {
        return;
    }
    let world = World::new();
    let program = look(
        &[
            "sw_fact mesh.peers 3",
            "exit 1",
            "if then fi",
            "sw_fact more 'a b'",
        ],
        LIMIT,
    );
    let before = SystemTime::now();
    let looked = Looked::read(&world.run(&program)).unwrap();
    let skew = looked.skew(before, SystemTime::now());
    assert_eq!(skew, Ok(Duration::ZERO));
    assert_eq!(looked.level, Level::Lite);
    assert_eq!(looked.prepared, None);
    assert_eq!(looked.kernel, world.sh("uname -r"));
    let facts: Vec<(&str, &str)> = looked
        .facts
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(facts, [("mesh.peers", "3"), ("more", "a b")]);

    let recipe = Recipe {
        purpose: Purpose::Balancer,
        proxy: None,
        playbooks: Vec::new(),
    };
    world.sh("mkdir -p /etc/slipway; echo x >/etc/slipway/prepared");
    let error = Looked::read(&world.run(&program)).unwrap_err();
    assert_eq!(error.kind, Kind::Garbage, "{error}");
    world.apply(&render(&prepare(&recipe, Level::Lite), "test", LIMIT));
    let again = Looked::read(&world.run(&program)).unwrap();
    assert_eq!(again.prepared, Some(recipe.fingerprint()));
    assert_eq!(again.boot, looked.boot);
    let other = Looked::read(&World::new().run(&program)).unwrap();
    assert_ne!(other.boot, looked.boot, "another start is another boot");
}

#[test]
fn a_wrong_clock_and_a_tool_that_lies_are_told_apart() {
    if !possible("a_wrong_clock_and_a_tool_that_lies_are_told_apart") {
        return;
    }
    let world = World::new();
    let program = look(&[], LIMIT);
    let fake = |tool: &str, text: &str| {
        world.sh(&format!(
            "printf '#!/bin/sh\\n{text}\\n' >/usr/local/sbin/{tool}; chmod 755 /usr/local/sbin/{tool}"
        ));
    };
    fake("date", "exec /usr/bin/date -d \"1 minute ago\" \"$@\"");
    let before = SystemTime::now();
    let looked = Looked::read(&world.run(&program)).unwrap();
    let error = looked.skew(before, SystemTime::now()).unwrap_err();
    assert_eq!(error.kind, Kind::ClockSkew);
    assert!(error.what.contains("behind ours"), "{}", error.what);
    fake("date", "echo Segmentation fault");
    let error = Looked::read(&world.run(&program)).unwrap_err();
    assert_eq!(error.kind, Kind::Garbage);
    fake("date", "exec /usr/bin/date \"$@\"");
    fake("stat", "echo usage: stat FILE");
    let error = Looked::read(&world.run(&program)).unwrap_err();
    assert_eq!(error.kind, Kind::Garbage);
    world.sh("rm /usr/local/sbin/stat /usr/bin/stat");
    let error = Looked::read(&world.run(&program)).unwrap_err();
    assert_eq!(error.kind, Kind::MissingTool);
}

#[test]
fn looking_takes_few_forks() {
    if !possible("looking_takes_few_forks") {
        return;
    }
    // Forks are counted, not seconds: those depend on who else uses the machine.
    let world = World::new();
    let pid = || -> u64 { world.sh("sh -c 'echo $$'").parse().unwrap() };
    let before = pid();
    world.run(&look(&[], LIMIT));
    let spent = pid() - before;
    assert!(spent < 15, "{spent} processes");
}
