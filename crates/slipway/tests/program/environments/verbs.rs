//! The verbs as people and programs use them, against a real server: what they take, when they end,
//! and what they answer.

use super::bad_input::script;
use super::{EXAMPLES, House, noted_scripts, wire};
use crate::secrets::{done, said, until};
use crate::server::slipway;
use serde_json::{Value, json};
use std::process::Output;

/// Runs `slipway env … -o json`, which must end well; answers what it says to programs.
#[track_caller]
fn told(house: &mut House, words: &[&str]) -> Value {
    let words = [&["env"], words, &["-o", "json"]].concat();
    let output = house.server.client(&words);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    let read = serde_json::from_slice(&output.stdout);
    assert!(read.is_ok(), "{words:?}: {}", said(&output));
    read.unwrap()
}

/// The action that was done last.
fn newest(house: &mut House, name: &str) -> String {
    let info = told(house, &["info", name]);
    info["actions"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_environment_is_given_another_end_and_is_seen_to_have_it() {
    let mut house = House::new("file");
    house.env(&["create", "orange", "-t", "v1", "--expires", "8h", "--wait"]);
    let info = house.env(&["info", "orange"]);
    assert!(info.contains("ends        in 8h"), "{info}");
    let said = house.env(&["extend", "orange", "--for", "3d"]);
    assert!(
        said.contains("environment orange ends in 3d, at "),
        "{said}"
    );
    let info = house.env(&["info", "orange"]);
    assert!(info.contains("ends        in 3d"), "{info}");
    let said = house.env(&["extend", "-n", "orange", "--forever"]);
    assert!(said.contains("environment orange has no end"), "{said}");
    let info = house.env(&["info", "orange"]);
    assert!(!info.contains("ends  "), "{info}");
    assert_eq!(house.runs("orange").len(), 1, "no script is run for it");
}

#[test]
fn whoever_follows_a_log_is_told_every_line_and_let_go_at_the_end_of_the_script() {
    let mut house = House::new("file");
    house.hold(true);
    house.env(&["create", "orange", "-t", "v1"]);
    let address = house.server.address();
    let (house, follow) = (&house, ["env", "logs", "orange", "--follow"]);
    let output: Output = std::thread::scope(|scope| {
        let following = scope.spawn(|| house.server.client_at(&address, &follow));
        until("the script has printed something", || {
            let logs = house.server.client_at(&address, &["env", "logs", "orange"]);
            done(&logs).contains("held 2").then_some(())
        });
        assert!(!following.is_finished(), "the script goes on");
        house.hold(false);
        following.join().unwrap()
    });
    done(&output);
    let followed = String::from_utf8(output.stdout).unwrap();
    for line in [
        "held 1\n",
        "held 2\n",
        "let go after ",
        "created with tag v1\n",
    ] {
        assert_eq!(followed.matches(line).count(), 1, "{line}: {followed}");
    }
    let end = String::from_utf8(output.stderr).unwrap();
    assert!(end.contains("action-") && end.contains(" is done"), "{end}");
    let logs = house.server.client_at(&address, &["env", "logs", "orange"]);
    assert_eq!(String::from_utf8(logs.stdout).unwrap(), followed);
}

#[test]
fn either_stream_of_any_action_can_be_read_by_itself() {
    let mut house = House::new("file");
    let text =
        format!("echo to whoever reads\necho a complaint >&2\nexec '{EXAMPLES}/create' \"$@\"");
    script(&house, "create", &text);
    house.env(&["create", "orange", "-t", "v1", "--wait"]);
    let action = newest(&mut house, "orange");
    house.env(&["update", "orange", "-t", "v2", "--wait"]);
    let mut logs = |stream: &str| {
        let words = ["env", "logs", "-n", "orange", "-a", &action, "-l", stream];
        let output = house.server.client(&words);
        done(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    let of_stdout =
        "to whoever reads\ncreate orange\n0 secret settings came as files\ncreated with tag v1\n";
    assert_eq!(logs("stdout"), of_stdout);
    assert_eq!(logs("stderr"), "a complaint\n");
    let all = logs("all");
    let mut lines: Vec<_> = all.lines().collect();
    assert!(lines.contains(&"a complaint"), "{all}");
    lines.retain(|line| *line != "a complaint");
    assert_eq!(lines.join("\n") + "\n", of_stdout);
    let newest = house.env(&["logs", "orange"]);
    assert!(newest.contains("updated to tag v2"), "{newest}");
    assert!(!newest.contains("a complaint"), "{newest}");
}

/// What is asked, and where in the answer there must be something. Each is possible after those
/// before.
const ASKED: &[(&[&str], &str)] = &[
    (&["settings", "show"], "/settings/scripts"),
    (&["settings", "set", "--up-max", "9"], "/settings/upMax"),
    (
        &[
            "settings",
            "notify",
            "ops",
            "--webhook",
            "http://127.0.0.1:9/",
            "--secret",
            "a/b",
        ],
        "/settings/notify/0/webhook/url",
    ),
    (&["settings", "notify", "ops", "--remove"], "/version"),
    (
        &[
            "settings",
            "source",
            "shop",
            "--service",
            "github",
            "--repository",
            "acme/shop",
            "--secret",
            "a/b",
        ],
        "/settings/sources/0/name",
    ),
    (&["settings", "source", "shop", "--remove"], "/version"),
    (&["keys"], "/settings/0/key"),
    (&["keys", "--level", "deployment"], "/keys/0"),
    (
        &["create", "orange", "-t", "v1", "--dry-run"],
        "/configuration/application/0/key",
    ),
    (&["create", "orange", "-t", "v1"], "/action"),
    (&["wait", "orange"], "/status"),
    (&["keys", "orange"], "/keys/0"),
    (&["create", "lemon", "-t", "v1", "--wait"], "/status"),
    (
        &["update", "orange", "-t", "v2", "--dry-run"],
        "/configuration/application/0/key",
    ),
    (&["update", "orange", "-t", "v2"], "/action"),
    (&["wait", "orange", "--for", "running"], "/status"),
    (
        &["update", "orange", "-e", "greeting=hi", "--wait"],
        "/status",
    ),
    (&["update", "orange", "--owner", "ana"], "/name"),
    (&["list"], "/items/1/name"),
    (&["list", "--owner", "ana", "--active"], "/items/0/name"),
    (&["info", "orange"], "/actions/2/id"),
    (
        &["info", "orange", "--effective"],
        "/configuration/deployment/0/key",
    ),
    (&["status", "orange"], "/status"),
    (&["status", "orange", "--now"], "/seen"),
    (&["extend", "orange", "--for", "3d"], "/expiresAt"),
    (&["clone", "orange", "lime"], "/action"),
    (&["wait", "lime"], "/status"),
    (&["archive", "orange"], "/action"),
    (&["wait", "orange", "--for", "archived"], "/status"),
    (&["restore", "orange", "--wait"], "/status"),
    (&["archive", "lemon", "--wait"], "/status"),
    (&["cleanup", "lemon", "--yes", "--wait"], "/gone"),
    (&["delete", "lime", "--force", "--yes"], "/action"),
    (&["deliveries", "list"], "/items/0/id"),
    (
        &[
            "deliveries",
            "list",
            "--state",
            "waiting",
            "--target",
            "nobody",
        ],
        "/items",
    ),
];

#[test]
fn what_every_verb_says_to_programs_can_be_read_by_them() {
    let mut house = House::new("file");
    house.env(&["settings", "set", "--pending-time", "2m"]);
    for (words, place) in ASKED {
        let answer = told(&mut house, words);
        let found = answer.pointer(place);
        let there = found.is_some_and(|found| !found.is_null());
        assert!(there, "{words:?} says nothing at {place}: {answer}");
    }
    let action = newest(&mut house, "orange");
    let again = told(&mut house, &["redeploy", "orange", "--action", &action]);
    assert_eq!(again["kind"], "update");
    told(&mut house, &["wait", "orange"]);
    // A log has no end while its script runs, so each line is one answer.
    let output = house
        .server
        .client(&["env", "logs", "orange", "-o", "json"]);
    done(&output);
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["seq"], &lines[0]["stream"], &lines[0]["text"]),
        (&json!(1), &json!("stdout"), &json!("update orange"))
    );
    house.hold(true);
    house.env(&["update", "orange", "-t", "v3"]);
    // What has not begun leaves no trace of having been called off.
    until("the script runs", || {
        let logs = house.env(&["logs", "orange"]);
        logs.contains("held 1").then_some(())
    });
    let cancelled = told(&mut house, &["cancel", "orange"]);
    assert_eq!(cancelled["kind"], "update");
    until("it is called off", || {
        house.seen("orange")["busy"].is_null().then_some(())
    });
    let seen = house.seen("orange");
    assert_eq!(seen["cancelled"]["kind"], "update", "{seen}");
}

#[test]
fn whoever_checks_scripts_is_told_by_the_exit_and_by_the_answer_whether_they_are_whole() {
    let directory = tempfile::tempdir().unwrap();
    let scripts = directory.path().join("scripts");
    noted_scripts(&scripts, &directory.path().join("runs"));
    let check = |which: &str, words: &[&str]| {
        let mut command = slipway();
        command
            .env("SLIPWAY_EXAMPLE_STATE", directory.path().join("state"))
            .args(["env", "scripts", "check", which])
            .args(words);
        command.output().unwrap()
    };
    let whole = done(&check(EXAMPLES, &[]));
    assert!(whole.contains("good     check"), "{whole}");
    let whole = check(EXAMPLES, &["-o", "json"]);
    let report: Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(
        (whole.status.code(), &report["good"]),
        (Some(0), &json!(true))
    );

    std::fs::remove_file(scripts.join("create")).unwrap();
    let partly = check(scripts.to_str().unwrap(), &["-o", "json"]);
    let report: Value = serde_json::from_slice(&partly.stdout).unwrap();
    assert_eq!(
        (partly.status.code(), &report["good"]),
        (Some(1), &json!(false))
    );
    let rows = report["scripts"].as_array().unwrap();
    let wrong: Vec<_> = rows
        .iter()
        .filter(|row| row["verdict"] == "wrong")
        .collect();
    assert_eq!(wrong.len(), 1, "{report}");
    assert_eq!(wrong[0]["script"], "create");
    assert!(wrong[0]["code"].is_string() && wrong[0]["hint"].is_string());
    let nowhere = check("/nowhere", &["-o", "json"]);
    assert!(!nowhere.status.success(), "{}", said(&nowhere));
    assert!(said(&nowhere).contains("hint: "), "{}", said(&nowhere));
}

/// The arguments that the last script was given that deployed an environment.
fn given(house: &House, name: &str) -> Vec<String> {
    let file = house.directory.path().join("state/shop").join(name);
    let words = std::fs::read_to_string(file.join("settings")).unwrap();
    words.lines().map(str::to_owned).collect()
}

#[test]
fn a_project_says_which_setting_its_tag_is_and_whether_scripts_are_told_it_besides() {
    let mut house = House::new("file");
    house.env(&["settings", "set", "--tag-key", "app.version"]);
    house.env(&["create", "orange", "-t", "v9", "--wait"]);
    let info = house.env(&["info", "orange", "--effective"]);
    let mut lines = info.lines().map(str::split_whitespace);
    let is_set = |words: std::str::SplitWhitespace<'_>| {
        words.take(2).collect::<Vec<_>>() == ["app.version", "v9"]
    };
    assert!(lines.any(is_set), "{info}");
    let words = given(&house, "orange");
    let told = ["--application-config", "app.version=v9"];
    assert!(words.windows(2).any(|pair| pair == told), "{words:?}");
    assert!(!words.contains(&"--tag".to_owned()), "{words:?}");

    house.env(&["settings", "set", "--contract", "legacy"]);
    house.env(&["create", "lemon", "-t", "v9", "--wait"]);
    let words = given(&house, "lemon");
    let before = ["--name", "lemon", "--tag", "v9"];
    assert!(words.windows(4).any(|four| four == before), "{words:?}");
    assert!(words.windows(2).any(|pair| pair == told), "{words:?}");
}

#[test]
fn what_is_asked_may_be_in_a_file_and_the_command_line_adds_to_it() {
    let mut house = House::new("file");
    let file = house.directory.path().join("orange.yaml");
    let text = "name: orange\ntag: v1\nowner: ana\nlabels: {team: web}\nexpiresInSeconds: 28800\n\
        set:\n  application: {greeting: from the file}\n  deployment: {replicas: '2'}\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    house.env(&[
        "create",
        "--from-file",
        file,
        "-t",
        "v2",
        "-l",
        "tier=one",
        "--wait",
    ]);
    let seen = told(&mut house, &["info", "orange", "--effective"]);
    assert_eq!(
        (&seen["owner"], &seen["labels"]),
        (&json!("ana"), &json!({"team": "web", "tier": "one"}))
    );
    assert!(seen["expiresAt"].is_string(), "{seen}");
    for (level, key, value) in [
        ("application", "image.tag", "v2"),
        ("application", "greeting", "from the file"),
        ("deployment", "replicas", "2"),
    ] {
        let settings = seen["configuration"][level].as_array().unwrap();
        let found = settings.iter().find(|setting| setting["key"] == key);
        assert_eq!(found.unwrap()["value"], value, "{key}");
    }
}

/// Has something done, and reads what is told of it meanwhile until it has ended in this.
fn happens(
    house: &mut House,
    events: &mut impl Iterator<Item = Value>,
    words: &[&str],
    what: &str,
) -> Vec<(String, String)> {
    let accepted = told(house, words);
    let action = accepted["action"].as_str().unwrap();
    let mut expected = vec![
        ("action.waiting", action),
        ("action.running", action),
        ("action.done", action),
        (what, "orange"),
    ];
    let mut heard = Vec::new();
    while !expected.is_empty() {
        let event = events.next();
        assert!(event.is_some(), "{expected:?} is not told, only {heard:?}");
        let event = event.unwrap();
        let (what, object) = (&event["what"], &event["object"]);
        expected.retain(|(expected, of)| what != expected || object != of);
        let word = |word: &Value| word.as_str().unwrap().to_owned();
        heard.push((word(what), word(object)));
    }
    heard
}

#[test]
fn whoever_follows_events_is_told_what_happens_to_an_environment_while_it_does() {
    let mut house = House::new("file");
    let headers = [house.bearer(), ("accept", "text/event-stream".to_owned())];
    let path = "/api/v1/projects/default/events";
    let mut events = wire::events(&house.server.address(), path, &headers);
    let create = ["create", "orange", "-t", "v1"];
    let heard = happens(&mut house, &mut events, &create, "environment.status");
    let first = ("environment.created".to_owned(), "orange".to_owned());
    assert_eq!(heard[0], first, "it begins with what happens from then on");
    house.is("orange", "running");
    let cleanup = ["cleanup", "orange", "--force", "--yes"];
    let heard = happens(&mut house, &mut events, &cleanup, "environment.gone");
    assert!(!heard.contains(&first), "{heard:?}");
}
