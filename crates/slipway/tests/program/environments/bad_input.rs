//! What only a real script can do wrong: each is told with a code and a hint, and nothing changed.
//!
//! What a request can do wrong is in the tests of the server, under the same name.

use super::House;
use std::os::unix::fs::PermissionsExt as _;

/// Puts another script in the place of one.
fn script(house: &House, name: &str, text: &str) {
    let path = house.directory.path().join("scripts").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn csv_with_wrong_columns_is_told_and_nothing_is_created() {
    for text in ["echo one", "echo one,two,three", "echo '\"open,x'"] {
        let mut house = House::new("file");
        script(&house, "deployment_config", text);
        let before = house.env(&["list", "-o", "json"]);
        let (_, told) = house.refused(&["create", "orange", "-t", "v1"]);
        assert!(told.contains("(ENV-011)"), "{text}: {told}");
        assert!(told.contains("deployment_config"), "{text}: {told}");
        assert!(told.contains("hint: "), "{text}: {told}");
        assert_eq!(house.env(&["list", "-o", "json"]), before, "{text}");
        assert_eq!(house.runs("orange").len(), 0, "{text}");
    }
}

#[test]
fn output_that_is_not_utf_8_is_kept_as_far_as_it_can_be_read() {
    let mut house = House::new("file");
    let create = std::fs::read_to_string(house.directory.path().join("scripts/create")).unwrap();
    let rest = create.strip_prefix("#!/bin/sh\n").unwrap();
    let text = format!("printf 'before \\377\\376 after\\n'\nprintf 'nul \\000 here\\n'\n{rest}");
    script(&house, "create", &text);
    house.env(&["create", "orange", "-t", "v1", "--wait"]);
    let printed = house.env(&["logs", "orange"]);
    assert!(
        printed.contains("before ") && printed.contains(" after"),
        "{printed}"
    );
    assert!(
        printed.contains("nul ") && printed.contains(" here"),
        "{printed}"
    );
    house.is("orange", "running");
    // Where an answer is needed, one that nobody can read is none; nobody was answered before.
    let mut house = House::new("file");
    script(&house, "application_config", "printf 'a,\\377\\n'");
    let (_, told) = house.refused(&["create", "lemon", "-t", "v1"]);
    assert!(
        told.contains("(ENV-011)") && told.contains("hint: "),
        "{told}"
    );
    assert!(!house.env(&["list"]).contains("lemon"));
}

#[test]
fn of_100_mb_of_output_the_beginning_and_the_last_that_fits_are_kept() {
    let mut house = House::new("file");
    let create = std::fs::read_to_string(house.directory.path().join("scripts/create")).unwrap();
    let rest = create.strip_prefix("#!/bin/sh\n").unwrap();
    let lines = "echo the first line\nyes 0123456789012345678901234567890123456789012345678 | head -c 110000000\necho the last line";
    script(&house, "create", &format!("{lines}\n{rest}"));
    house.env(&["create", "orange", "-t", "v1"]);
    house.env(&["wait", "orange"]);
    let printed = house.env(&["logs", "orange"]);
    assert!(
        printed.contains("the first line"),
        "{} bytes",
        printed.len()
    );
    let rest = "more than 100 MB were printed; the rest is dropped";
    assert!(printed.contains(rest), "{} bytes", printed.len());
    assert!(
        printed.contains("lines were dropped here"),
        "{} bytes",
        printed.len()
    );
    assert!(printed.len() < 5_000_000, "{} bytes", printed.len());
    house.is("orange", "running");
    let kept: u64 = crate::secrets::files(&house.directory.path().join("data"))
        .iter()
        .map(|(_, bytes)| u64::try_from(bytes.len()).unwrap())
        .sum();
    assert!(kept < 90_000_000, "{kept} bytes are kept");
    // Where an answer is needed, one without end is none; nobody was answered before.
    let mut house = House::new("file");
    script(&house, "application_config", "yes a,b | head -c 100000000");
    let (_, told) = house.refused(&["create", "lemon", "-t", "v1"]);
    assert!(
        told.contains("(ENV-011)") && told.contains("hint: "),
        "{told}"
    );
    assert!(!house.env(&["list"]).contains("lemon"));
}
