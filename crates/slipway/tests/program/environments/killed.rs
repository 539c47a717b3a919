//! The server is killed in the middle of each kind of action.

use super::House;
use crate::secrets::until;
use std::collections::BTreeMap;

/// What is done: the words, to which environment, the script, how it is meanwhile, what it leads
/// to, and the last line that the script prints.
struct Action {
    words: &'static [&'static str],
    name: &'static str,
    script: &'static str,
    meanwhile: &'static str,
    /// Nothing where it is gone then.
    becomes: Option<&'static str>,
    last: Option<&'static str>,
}

const fn action(
    words: &'static [&'static str],
    name: &'static str,
    (script, last): (&'static str, Option<&'static str>),
    (meanwhile, becomes): (&'static str, Option<&'static str>),
) -> Action {
    Action {
        words,
        name,
        script,
        meanwhile,
        becomes,
        last,
    }
}

/// In an order in which each is possible. Of a redeployment the action is put in.
const ACTIONS: &[Action] = &[
    action(
        &["create", "orange", "-t", "v1", "-e", "demo.slow=1"],
        "orange",
        ("create", Some("created with tag v1")),
        ("create-pending", Some("running")),
    ),
    action(
        &["update", "orange", "-t", "v2"],
        "orange",
        ("update", Some("updated to tag v2")),
        ("update-pending", Some("running")),
    ),
    action(
        &["redeploy", "orange", "--action", FIRST],
        "orange",
        ("update", Some("updated to tag v1")),
        ("update-pending", Some("running")),
    ),
    action(
        &["clone", "orange", "lemon"],
        "lemon",
        ("create", Some("created with tag v1")),
        ("create-pending", Some("running")),
    ),
    action(
        &["archive", "orange"],
        "orange",
        ("archive", None),
        ("archive-pending", Some("archived")),
    ),
    action(
        &["restore", "orange"],
        "orange",
        ("unarchive", Some("restored with tag v1")),
        ("create-pending", Some("running")),
    ),
    action(
        &["archive", "orange"],
        "orange",
        ("archive", None),
        ("archive-pending", Some("archived")),
    ),
    action(
        &["cleanup", "orange", "--yes"],
        "orange",
        ("cleanup", None),
        ("archived", None),
    ),
];

/// Stands for the first action of all.
const FIRST: &str = "FIRST";

/// What scripts were run for each environment.
type Runs = BTreeMap<&'static str, BTreeMap<String, usize>>;

#[track_caller]
fn check_runs(house: &House, expected: &Runs) {
    for (name, runs) in expected {
        assert_eq!(&house.runs(name), runs, "{name}");
    }
}

/// The action that is under way.
fn under_way(house: &mut House, name: &str) -> String {
    let seen = house.seen(name);
    let action = seen["busy"]["action"].as_str();
    assert!(action.is_some(), "{seen}");
    action.unwrap().to_owned()
}

/// All that a script printed while it was held is kept, each line once and in its order.
#[track_caller]
fn check_log(logs: &str) {
    let held = logs.lines().filter_map(|line| line.strip_prefix("held "));
    let held: Vec<usize> = held.map(|number| number.parse().unwrap()).collect();
    let all: Vec<usize> = (1..=held.len()).collect();
    assert_eq!(held, all, "{logs}");
    let end = format!("let go after {}", held.len());
    assert_eq!(logs.matches(&end).count(), 1, "{logs}");
    assert_eq!(logs.matches("1 of 1 s").count(), 1, "{logs}");
}

/// Has something done, and kills the server in the middle of it.
///
/// Answers the action's id.
fn killed_in(house: &mut House, action: &Action, first: &str, expected: &mut Runs) -> String {
    let of = |word: &&'static str| if *word == FIRST { first } else { word };
    let words: Vec<&str> = action.words.iter().map(of).collect();
    house.hold(true);
    house.env(&words);
    let (name, script) = (action.name, action.script);
    let runs = expected.entry(name).or_default();
    *runs.entry(script.to_owned()).or_insert(0) += 1;
    until(&format!("what {script} prints is stored"), || {
        let logs = house.env(&["logs", name]);
        logs.contains("held 2").then_some(())
    });
    check_runs(house, expected);
    let begun = under_way(house, name);
    house.kill();
    // It is under way, and is as it was: nobody takes it for another, or for lost.
    let seen = house.seen(name);
    assert_eq!(
        (&seen["busy"]["action"], &seen["status"]),
        (&begun.as_str().into(), &action.meanwhile.into()),
        "{seen}"
    );
    // It is followed again before it ends; and then the server is killed once more.
    let printed = house.env(&["logs", name]).matches("held ").count();
    until(&format!("{script} is followed again"), || {
        let now = house.env(&["logs", name]).matches("held ").count();
        (now > printed).then_some(())
    });
    house.kill();
    check_runs(house, expected);
    house.hold(false);
    begun
}

#[test]
fn whatever_is_under_way_when_the_server_is_killed_is_done_once_and_told_whole() {
    let mut house = House::new("file");
    let mut expected = Runs::new();
    let mut first = String::new();
    for action in ACTIONS {
        let begun = killed_in(&mut house, action, &first, &mut expected);
        let name = action.name;
        let Some(status) = action.becomes else {
            until("it is gone", || {
                let gone = house.server.client(&["env", "status", name]);
                (!gone.status.success()).then_some(())
            });
            check_log(&house.env(&["logs", name, "--action", &begun]));
            continue;
        };
        house.env(&["wait", name, "--timeout", "1m"]);
        house.is(name, status);
        let seen = house.seen(name);
        assert_eq!(
            (&seen["failed"], &seen["busy"]),
            (&false.into(), &serde_json::Value::Null),
            "{seen}"
        );
        let logs = house.env(&["logs", name]);
        check_log(&logs);
        if let Some(last) = action.last {
            assert!(logs.contains(last), "{logs}");
        }
        if first.is_empty() {
            first = newest(&mut house, name);
        }
        check_runs(&house, &expected);
    }
    check_runs(&house, &expected);
    assert!(!house.directory.path().join("state/shop/orange").exists());
    check_forgotten(&house);
    crate::figure(
        "8 actions of environments, the server killed twice during each: every script run once, every line kept",
    );
}

/// The last thing that was done.
fn newest(house: &mut House, name: &str) -> String {
    let info = house.env(&["info", name]);
    let mut words = info.split_whitespace();
    let action = words.find(|word| word.starts_with("action-"));
    action.unwrap().to_owned()
}

/// Nothing is left of what ran.
fn check_forgotten(house: &House) {
    let left = house.directory.path().join("data/scripts");
    until("nothing is left of what ran", || {
        let entries = std::fs::read_dir(&left).unwrap();
        let mut names = entries.map(|entry| entry.unwrap().file_name());
        let left = names.any(|name| name.to_string_lossy().starts_with("action-"));
        (!left).then_some(())
    });
}

#[test]
fn what_is_cancelled_while_the_server_is_killed_is_ended_and_reads_cancelled() {
    let mut house = House::new("file");
    house.env(&["create", "orange", "-t", "v1", "--wait"]);
    house.hold(true);
    house.env(&["update", "orange", "-t", "v2"]);
    until("the script runs", || {
        house.runs("orange").contains_key("update").then_some(())
    });
    house.env(&["cancel", "orange"]);
    house.kill();
    // It still has what it had, and somebody wanted another.
    house.is("orange", "tag-mismatch");
    let seen = house.seen("orange");
    let cancelled = &seen["cancelled"];
    assert_eq!(
        (&seen["failed"], &cancelled["kind"], &cancelled["by"]),
        (&false.into(), &"update".into(), &"admin".into()),
        "{seen}"
    );
    let shown = house.env(&["list"]);
    assert!(shown.contains("update cancelled by admin"), "{shown}");
    let shown = house.env(&["info", "orange"]);
    assert!(shown.contains("admin called it off"), "{shown}");
    assert!(!shown.contains("failed"), "{shown}");
    house.hold(false);
    assert_eq!(house.runs("orange")["update"], 1);
    check_forgotten(&house);
    let tag = house.directory.path().join("state/shop/orange/tag");
    let tag = std::fs::read_to_string(tag).unwrap();
    assert_eq!(tag, "v1\n", "what was cancelled went no further");
}

#[test]
fn what_is_forgotten_stays_so_when_the_server_is_killed_and_nothing_is_run_for_it() {
    let mut house = House::new("file");
    house.env(&["create", "orange", "-t", "v1", "--wait"]);
    house.env(&["delete", "orange", "--force", "--yes"]);
    house.kill();
    let (_, told) = house.refused(&["status", "orange"]);
    assert!(told.contains("there is no environment `orange`"), "{told}");
    assert_eq!(
        house.runs("orange"),
        BTreeMap::from([("create".to_owned(), 1)])
    );
    let left = house.directory.path().join("state/shop/orange/state");
    assert!(left.exists(), "what it has stays where it is");
}
