//! What only a real script can do wrong: each is told with a code and a hint, and nothing changed.
//!
//! What a request can do wrong is in the tests of the server, under the same name.

use super::House;
use std::os::unix::fs::PermissionsExt as _;

/// Puts another script in the place of one.
pub(super) fn script(house: &House, name: &str, text: &str) {
    let path = house.directory.path().join("scripts").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn csv_with_wrong_columns_is_told_and_nothing_is_created() {
    let table = [
        ("echo a,b; echo hunter2", "line 2, column 1: one column"),
        ("echo one,hunter2,three", "line 1, column 1: 3 columns"),
        (
            "echo '\"open,hunter2'",
            "line 1, column 1: a quote that is never closed",
        ),
    ];
    for (text, wrong) in table {
        let mut house = House::new("file");
        script(&house, "deployment_config", text);
        let before = house.env(&["list", "-o", "json"]);
        let (_, told) = house.refused(&["create", "orange", "-t", "v1"]);
        assert!(told.contains("(ENV-031)"), "{text}: {told}");
        assert!(told.contains(wrong), "{text}: {told}");
        assert!(!told.contains("hunter2"), "{text}: {told}");
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
        told.contains("(ENV-032)") && told.contains("hint: "),
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
        told.contains("(ENV-033)") && told.contains("hint: "),
        "{told}"
    );
    assert!(!house.env(&["list"]).contains("lemon"));
}

#[test]
fn scripts_that_are_not_there_fail_or_hang_have_codes_of_their_own() {
    let mut house = House::new("file");
    house.env(&["settings", "set", "--check-time", "1s"]);
    let scripts = house.directory.path().join("scripts");
    for (text, code, wrong) in [
        ("sleep 60", "ENV-034", "took longer than 1 s"),
        ("echo no database >&2; exit 3", "ENV-036", "no database"),
    ] {
        script(&house, "deployment_config", text);
        let (exit, told) = house.refused(&["create", "orange", "-t", "v1"]);
        assert_eq!(exit, Some(4), "{told}");
        assert!(told.contains(&format!("({code})")), "{text}: {told}");
        assert!(told.contains(wrong) && told.contains("hint: "), "{told}");
    }
    let file = scripts.join("deployment_config");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (_, told) = house.refused(&["create", "orange", "-t", "v1"]);
    assert!(
        told.contains("(ENV-035)") && told.contains("chmod +x"),
        "{told}"
    );
    std::fs::remove_file(&file).unwrap();
    let (_, told) = house.refused(&["create", "orange", "-t", "v1"]);
    assert!(told.contains("(ENV-035)"), "{told}");
    assert!(
        told.contains("there is no script deployment_config"),
        "{told}"
    );
    assert_eq!(house.runs("orange").len(), 0);
    assert!(!house.env(&["list"]).contains("orange"));
}

#[test]
fn settings_that_name_what_is_not_there_are_kept_with_a_warning() {
    let mut house = House::new("file");
    let quiet = house.env(&["settings", "show"]);
    assert!(!quiet.contains("warning: "), "{quiet}");
    let scripts = house.directory.path().join("scripts");
    std::fs::remove_file(scripts.join("create")).unwrap();
    std::fs::remove_file(scripts.join("cleanup")).unwrap();
    let update = scripts.join("update");
    std::fs::set_permissions(&update, std::fs::Permissions::from_mode(0o644)).unwrap();
    let told = house.env(&["settings", "set", "--cluster", "nowhere"]);
    for part in [
        "warning: there are no scripts create, cleanup in ",
        "update is not executable (SCRIPT-002); make it executable",
        "warning: project default has no cluster nowhere; declare it",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    house.env(&["settings", "set", "--cluster", "none"]);
    let file = scripts.join("check");
    for wrong in ["/nowhere", file.to_str().unwrap()] {
        let told = house.env(&["settings", "set", "--scripts", wrong]);
        let warnings = told.lines().filter(|line| line.starts_with("warning: "));
        let warnings: Vec<_> = warnings.collect();
        assert_eq!(warnings.len(), 1, "{told}");
        assert!(
            warnings[0].contains("(SCRIPT-003); correct the directory"),
            "{told}"
        );
    }
    let told = house.env(&["settings", "set", "--chart", "/nowhere"]);
    assert!(told.contains("(HELM-004); correct the chart"), "{told}");
}
