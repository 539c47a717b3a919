//! The environments of an Octopod are taken over by the whole program, and go on from there.

use super::House;
use crate::secrets::{done, said};
use crate::server::slipway;
use lab::postgres::Postgres;
use serde_json::Value;
use std::process::Output;
use std::time::{Duration, Instant};

/// Rows of every kind: one that runs and one that rests, one whose name is none here, one whose
/// status nobody knows, and one whose name is taken.
const ROWS: &str = r#"
    INSERT INTO deployments (name, status, created_at, updated_at, status_updated_at, archived_at,
        app_overrides, deployment_overrides, links)
    VALUES
      ('orange', 'Running', '2022-06-06 10:20:37+00', '2022-06-07+00', '2022-06-07+00', NULL,
        '[["image.tag", {"tag": "ValueAdded", "contents": "v7"}], ["motd", {"tag": "ValueDeleted"}]]', '[]',
        '[{"name": "app", "link": "https://orange.old.example.org"}]'),
      ('lemon', 'Archived', now() - interval '9 days', now() - interval '3 days', now() - interval '3 days',
        now() - interval '3 days', '[]', '[]', '[]'),
      ('lime', 'CreatePending', now(), now(), now(), NULL, '[]', '[]', '[]'),
      ('a-name-that-is-too-long', 'Running', now(), now(), now(), NULL, '[]', '[]', '[]'),
      ('plum', 'DeletePending', now(), now(), now(), NULL, '[]', '[]', '[]'),
      ('fig', 'Running', now(), now(), now(), NULL, '[]', '[]', '[]');
    INSERT INTO deployment_logs (deployment_id, action, exit_code, created_at, duration, stdout, stderr,
        app_overrides, deployment_overrides)
    VALUES
      (1, 'create', 0, '2022-06-06 10:21:00+00', '5.21 s', 'created by the old one' || chr(10), '', '[]', '[]'),
      (1, 'odd', 0, '2022-06-06 10:22:00+00', '1 s', '', '', '[]', '[]'),
      (1, 'update', 1, '2022-06-06 10:23:00+00', '1 s', repeat('x', 5000000), 'went wrong', '[]', '[]');
"#;

/// An old database with these rows.
fn old(test: &str, rows: &str) -> Option<(&'static Postgres, String)> {
    let server = lab::postgres::shared_or_skip(&format!("environments::import::{test}"))?;
    let url = server.create_database().unwrap();
    server.psql(&url, lab::octopod::TABLES).unwrap();
    server.psql(&url, rows).unwrap();
    Some((server, url))
}

impl House {
    /// Runs `slipway env import`.
    fn import(&mut self, url: &str, words: &[&str]) -> Output {
        let words: Vec<_> = ["env", "import", "--octopod", url]
            .iter()
            .chain(words)
            .copied()
            .collect();
        self.server.client(&words)
    }
}

/// All environments, but for when somebody looked last: looks go on meanwhile.
fn unlooked(house: &mut House) -> Value {
    let mut list: Value = serde_json::from_str(&house.env(&["list", "-o", "json"])).unwrap();
    for environment in list["items"].as_array_mut().unwrap() {
        environment.as_object_mut().unwrap().remove("checked");
    }
    list
}

#[test]
fn environments_of_an_octopod_are_taken_over_and_go_on() {
    let Some((server, url)) = old("environments_of_an_octopod_are_taken_over_and_go_on", ROWS)
    else {
        return;
    };
    let mut house = House::new("file");
    house.env(&["create", "fig", "-t", "v1", "--wait"]);
    let before = unlooked(&mut house);

    // Without a yes it only tells.
    let asked = house.import(&url, &[]);
    assert_eq!(asked.status.code(), Some(2), "{}", said(&asked));
    assert!(
        said(&asked).contains("hint: say it with --yes"),
        "{}",
        said(&asked)
    );
    let plan = done(&house.import(&url, &["--dry-run"]));
    for line in [
        "orange  running         1      1        3    -",
        "lemon   archived        0      0        0    3d ago",
        "3 environments to take over: 1 create-pending, 1 running, 1 archived",
        "1 edit and 1 removed, 3 entries of their logs; no script is run",
        "1 environment skipped: there is another of that name, which is running",
        "environment `a-name-that-is-too-long`: name has 23 characters, at most 16 are allowed",
        "environment `plum`: its status `DeletePending` is none that is known",
    ] {
        assert!(plan.contains(line), "{line}:\n{plan}");
    }
    assert_eq!(unlooked(&mut house), before);

    let taken = done(&house.import(&url, &["--yes"]));
    let log = "entry 2 in the log of `orange`: its action `odd` is none that is known";
    for line in [
        "3 environments taken over, with 2 entries of logs",
        "1 skipped",
        log,
    ] {
        assert!(taken.contains(line), "{line}:\n{taken}");
    }
    assert_eq!(house.runs("orange").len(), 0, "no script was run");
    let info = house.env(&["info", "orange"]);
    assert!(info.contains("https://orange.old.example.org"), "{info}");
    let actions: Value =
        serde_json::from_str(&house.env(&["info", "orange", "-o", "json"])).unwrap();
    assert!(actions.to_string().contains("octopod"), "{actions}");
    let printed = house.env(&["logs", "orange"]);
    assert!(printed.contains("went wrong"), "{printed}");
    assert!(
        printed.contains("the middle was left out here"),
        "{printed}"
    );

    // The same again changes nothing; what is new in the old log follows.
    let again = done(&house.import(&url, &["--yes"]));
    assert!(
        again.contains("0 environments taken over, with 0 entries of logs"),
        "{again}"
    );
    assert!(again.contains("3 had been taken over before"), "{again}");
    let more =
        "INSERT INTO deployment_logs (deployment_id, action, exit_code, duration, app_overrides,
        deployment_overrides) VALUES (2, 'archive', 0, '1 s', '[]', '[]')";
    server.psql(&url, more).unwrap();
    let again = done(&house.import(&url, &["--yes"]));
    assert!(again.contains("with 1 entry of logs"), "{again}");

    // It is an environment as any other: looks decide, and it is changed like them.
    house.is("orange", "failure");
    for name in ["orange", "lemon"] {
        // As the old system would have left it.
        let there = house.directory.path().join("state/shop").join(name);
        std::fs::create_dir_all(there.join("data")).unwrap();
        std::fs::write(there.join("state"), "down\n").unwrap();
    }
    house.env(&["update", "orange", "-t", "v8", "--wait"]);
    house.is("orange", "running");
    house.env(&["restore", "lemon", "--wait"]);
    house.is("lemon", "running");
}

#[test]
fn what_cannot_be_read_is_told_with_what_to_do() {
    let Some((server, url)) = old("what_cannot_be_read_is_told_with_what_to_do", "SELECT 1") else {
        return;
    };
    let mut house = House::new("file");
    let empty = server.create_database().unwrap();
    let told = [
        (url.as_str(), "(IMPORT-003)", "is it the right database?", 1),
        (&empty, "(IMPORT-002)", "no table `deployments`", 1),
        (
            "postgres://octo@127.0.0.1:1/x",
            "(IMPORT-001)",
            "check host and port",
            1,
        ),
        (
            "mysql://octo@db/x",
            "(IMPORT-001)",
            "postgresql://USER@HOST",
            1,
        ),
        (
            "postgres://octo:s3cret@127.0.0.1:1/x",
            "(IMPORT-005)",
            "--password-file",
            2,
        ),
        (
            "postgres://127.0.0.1:1/x?password=s3cret",
            "(IMPORT-005)",
            "PGPASSWORD",
            2,
        ),
    ];
    for (url, code, hint, exit) in told {
        let output = house.import(url, &["--yes"]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(exit), "{text}");
        assert!(text.contains(code) && text.contains(hint), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert!(!house.env(&["list"]).contains("orange"));
}

/// A password is read from where people keep it, and is never an argument.
#[test]
fn passwords_are_found_where_people_keep_them() {
    let Some((_, url)) = old("passwords_are_found_where_people_keep_them", ROWS) else {
        return;
    };
    // Who comes through the loopback device is trusted, whatever they say: what is proved is that a
    // password given in any of these ways keeps nobody out, and that a file that is none is told.
    let mut house = House::new("file");
    let file = house.directory.path().join("password");
    std::fs::write(&file, "s3cret\n").unwrap();
    let path = file.to_str().unwrap().to_owned();
    done(&house.import(&url, &["--dry-run", "--password-file", &path]));
    let output = house.import(&url, &["--dry-run", "--password-file", "/none"]);
    assert!(said(&output).contains("(SERVE-006)"), "{}", said(&output));
    let address = house.server.address();
    let mut command = slipway();
    command
        .env("PGPASSWORD", "s3cret")
        .args([
            "env",
            "import",
            "--dry-run",
            "--octopod",
            &url,
            "--server",
            &address,
        ])
        .arg("--data-dir")
        .arg(house.directory.path().join("data"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// Ten thousand, with three entries of their logs each; the limit is for a machine that is busy
/// with other things.
#[test]
fn ten_thousand_are_taken_over_within_a_minute_or_two() {
    let rows = "INSERT INTO deployments (name, status, app_overrides, deployment_overrides, links)
          SELECT 'env' || n, 'Archived', '[[\"image.tag\", {\"tag\": \"ValueAdded\", \"contents\": \"v1\"}]]', '[]', '[]'
          FROM generate_series(1, 10000) n;
        INSERT INTO deployment_logs (deployment_id, action, exit_code, duration, stdout, app_overrides,
            deployment_overrides)
          SELECT 1 + n % 10000, 'update', 0, '5 s', 'one' || chr(10) || 'two', '[]', '[]'
          FROM generate_series(1, 30000) n;";
    let Some((_, url)) = old("ten_thousand_are_taken_over_within_a_minute_or_two", rows) else {
        return;
    };
    let mut house = House::new("file");
    let begun = Instant::now();
    let taken = done(&house.import(&url, &["--yes"]));
    let took = begun.elapsed();
    assert!(
        taken.contains("10000 environments taken over, with 30000 entries of logs"),
        "{taken}"
    );
    assert!(taken.contains("… and 9960 more"), "{taken}");
    assert!(took < Duration::from_mins(5), "{took:?}");
    println!("10000 environments with 30000 entries of logs took {took:?}");
}
