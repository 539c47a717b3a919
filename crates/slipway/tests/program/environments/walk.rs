//! An environment goes through every status, and out of each.

use super::House;
use std::collections::BTreeSet;

/// What the server tells of how an environment became what it is.
fn statuses(house: &mut House, name: &str) -> BTreeSet<String> {
    let events = crate::secrets::done(&house.server.client(&["get", "events", "-o", "json"]));
    let events: serde_json::Value = serde_json::from_str(&events).unwrap();
    let events = events["items"].as_array().unwrap().iter();
    let told = events.filter(|event| event["kind"] == "environment" && event["object"] == name);
    told.filter_map(|event| {
        let message = event["message"].as_str()?;
        let became = message
            .split_once(" became ")
            .map_or(message, |both| both.1);
        Some(became.split_once(':')?.0.to_owned())
    })
    .collect()
}

#[test]
fn the_example_scripts_drive_an_environment_through_every_status() {
    let mut house = House::new("file");
    let created = house.env(&["create", "orange", "-t", "v1", "--wait"]);
    assert!(created.contains("created with tag v1"), "{created}");
    house.is("orange", "running");
    let info = house.env(&["info", "orange"]);
    assert!(info.contains("https://orange.shop.example.org"), "{info}");

    // What its looks find decides how it is, in each of the ways to be unwell.
    for (health, status) in [
        ("bad", "failure"),
        ("partial", "partial-failure"),
        ("mismatch", "tag-mismatch"),
    ] {
        let setting = format!("demo.health={health}");
        let (exit, told) = house.refused(&["update", "orange", "-e", &setting, "--wait"]);
        assert_eq!(exit, Some(1), "{told}");
        house.is("orange", status);
    }
    house.env(&["update", "orange", "-E", "demo.health", "--wait"]);
    house.is("orange", "running");

    // Something outside breaks it, and mends it again; nobody asked for anything.
    let up = house.directory.path().join("state/shop/orange/state");
    std::fs::write(&up, "broken\n").unwrap();
    house.is("orange", "failure");
    std::fs::write(&up, "up\n").unwrap();
    house.is("orange", "running");

    house.env(&["update", "orange", "-e", "demo.slow=1"]);
    house.is("orange", "update-pending");
    house.env(&["wait", "orange"]);
    house.env(&["archive", "orange", "--wait"]);
    house.is("orange", "archived");
    let (exit, told) = house.refused(&["update", "orange", "-t", "v2"]);
    assert_eq!(exit, Some(4), "{told}");
    assert!(told.contains("(ENV-005)"), "{told}");
    assert!(told.contains("hint: "), "{told}");
    house.env(&["restore", "orange", "--wait"]);
    house.is("orange", "running");

    // One that cannot be removed, until somebody has seen to it.
    house.env(&["update", "orange", "-e", "demo.cleanup=fail", "--wait"]);
    house.env(&["archive", "orange", "--wait"]);
    let (exit, told) = house.refused(&["cleanup", "orange", "--yes", "--wait"]);
    assert_eq!(exit, Some(1), "{told}");
    house.is("orange", "cleanup-failed");
    house.env(&["delete", "orange", "--yes"]);
    let (_, told) = house.refused(&["status", "orange"]);
    assert!(told.contains("there is no environment `orange`"), "{told}");

    let told = statuses(&mut house, "orange");
    let all = [
        "archive-pending",
        "archived",
        "cleanup-failed",
        "create-pending",
        "failure",
        "partial-failure",
        "running",
        "tag-mismatch",
        "update-pending",
    ];
    for status in all {
        assert!(told.contains(status), "{status} was not told: {told:?}");
    }

    // The name is free, and what was there is not taken for another's.
    house.env(&["create", "orange", "-t", "v3", "--wait"]);
    house.env(&["archive", "orange", "--wait"]);
    house.env(&["cleanup", "orange", "--yes", "--wait"]);
    assert!(!house.directory.path().join("state/shop/orange").exists());
}
