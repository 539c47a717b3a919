//! The server is killed in the middle of each kind of action.

use super::House;
use crate::secrets::until;

/// What is done: the words, the script, what it leads to, and the last line that the script prints.
type Action = (
    &'static [&'static str],
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
);

/// In an order in which each is possible.
const ACTIONS: &[Action] = &[
    (
        &["create", "orange", "-t", "v1", "-e", "demo.slow=1"],
        "create",
        Some("running"),
        Some("created with tag v1"),
    ),
    (
        &["update", "orange", "-t", "v2"],
        "update",
        Some("running"),
        Some("updated to tag v2"),
    ),
    (&["archive", "orange"], "archive", Some("archived"), None),
    (
        &["restore", "orange"],
        "unarchive",
        Some("running"),
        Some("restored with tag v2"),
    ),
    (&["archive", "orange"], "archive", Some("archived"), None),
    (&["cleanup", "orange", "--yes"], "cleanup", None, None),
];

#[test]
fn whatever_is_under_way_when_the_server_is_killed_is_done_once_and_told_whole() {
    let mut house = House::new("file");
    let mut expected = std::collections::BTreeMap::new();
    for (words, script, status, last) in ACTIONS {
        house.hold(true);
        house.env(words);
        *expected.entry((*script).to_owned()).or_insert(0) += 1;
        until(&format!("what {script} prints is stored"), || {
            let logs = house.env(&["logs", "orange"]);
            logs.contains("held").then_some(())
        });
        assert_eq!(house.runs("orange"), expected, "it was begun once");
        house.kill();
        let busy = house.seen("orange");
        assert!(!busy["busy"].is_null(), "it is still under way: {busy}");
        house.hold(false);
        let Some(status) = status else {
            until("it is gone", || {
                let gone = house.server.client(&["env", "status", "orange"]);
                (!gone.status.success()).then_some(())
            });
            break;
        };
        house.env(&["wait", "orange", "--timeout", "1m"]);
        house.is("orange", status);
        let logs = house.env(&["logs", "orange"]);
        let held = logs.lines().filter(|line| *line == "held").count();
        assert!(held > 0, "what came before is kept: {logs}");
        let slow = logs.matches("1 of 1 s").count();
        assert_eq!(slow, 1, "what came after is told once: {logs}");
        if let Some(last) = last {
            assert!(logs.contains(last), "{logs}");
        }
    }
    assert_eq!(house.runs("orange"), expected, "each script was run once");
    assert!(!house.directory.path().join("state/shop/orange").exists());
    let left = house.directory.path().join("data/scripts");
    until("nothing is left of what ran", || {
        let entries = std::fs::read_dir(&left).unwrap();
        let mut names = entries.map(|entry| entry.unwrap().file_name());
        let left = names.any(|name| name.to_string_lossy().starts_with("action-"));
        (!left).then_some(())
    });
    crate::figure(
        "6 actions of an environment, the server killed during each: every script run once, every line kept",
    );
}
