//! The database of an Octopod is read as it is, whatever somebody wrote to it.

use crate::database;
use lab::postgres::Postgres;
use model::secret::Secret;
use model::time::Timestamp;
use std::time::{Duration, Instant};
use store::{Octopod, OctopodError};

/// The tables of an Octopod, and some rows.
fn fixture(test: &str, rows: &str) -> Option<(&'static Postgres, String)> {
    let (server, url) = database(test)?;
    server.psql(&url, lab::octopod::TABLES).unwrap();
    server.psql(&url, rows).unwrap();
    Some((server, url))
}

#[tokio::test]
async fn rows_are_read_with_all_that_they_have() {
    let rows = r#"
        INSERT INTO deployments (name, status, created_at, updated_at, status_updated_at, archived_at,
            app_overrides, deployment_overrides, links)
        VALUES ('orange', 'Running', '2022-06-06 10:20:37.123+00', '2022-06-07 00:00+00',
            '2022-06-07 00:00+00', NULL, '[["image.tag", {"tag": "ValueAdded", "contents": "v7"}]]', '[]',
            '[{"name": "app", "link": "https://x"}]'),
          ('ODD', 'Odd', 'infinity', '-infinity', '0044-03-15 BC', '250000-01-01', '7', 'null', '{}');
        INSERT INTO deployment_logs (deployment_id, action, exit_code, created_at, duration, stdout, stderr,
            app_overrides, deployment_overrides)
        VALUES (1, 'create', 0, '2022-06-06 10:21:00+00', '5.21 seconds', 'hello' || chr(10), '', '[]', '[]'),
          (1, NULL, -9, 'infinity', '-1 seconds', repeat('x', 3000000) || 'end', 'é', '[]', '[]');
        -- Octopod forbids what is missing here; other hands may not.
        ALTER TABLE deployments ALTER COLUMN app_overrides DROP NOT NULL, ALTER COLUMN name DROP NOT NULL,
            ALTER COLUMN status DROP NOT NULL, ALTER COLUMN links DROP NOT NULL,
            ALTER COLUMN created_at DROP NOT NULL;
        INSERT INTO deployments (deployment_overrides) VALUES ('[]');"#;
    let Some((_, url)) = fixture("rows_are_read_with_all_that_they_have", rows) else {
        return;
    };
    let octopod = Octopod::open(&url, None).await.unwrap();
    let rows = octopod.deployments().await.unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!((rows[0].id, rows[0].name.as_str()), (1, "orange"));
    let at = |millis| Some(Timestamp::from_millis(millis));
    assert_eq!(rows[0].created_at, at(1_654_510_837_123));
    assert_eq!(rows[0].archived_at, None);
    let tag = r#"[["image.tag", {"tag": "ValueAdded", "contents": "v7"}]]"#;
    assert_eq!(rows[0].overrides.application.as_deref(), Some(tag));
    assert_eq!((rows[1].created_at, rows[1].updated_at), (None, None));
    assert!(rows[1].since < at(0) && rows[1].archived_at > at(1 << 50));
    assert_eq!((rows[2].name.as_str(), rows[2].status.as_str()), ("", ""));
    assert_eq!(rows[2].overrides.application, None);

    assert_eq!(octopod.entries().await.unwrap(), [(1, 1), (1, 2)]);
    let log = octopod.log(&[2, 1, 99]).await.unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!(log[0].took, Duration::from_millis(5_210));
    assert_eq!((log[0].stdout.as_str(), log[0].exit), ("hello\n", 0));
    assert_eq!((log[1].action.as_deref(), log[1].at), (None, None));
    assert_eq!((log[1].exit, log[1].took), (-9, Duration::ZERO));
    let cut = &log[1].stdout;
    assert!(
        cut.len() < 100_000 && cut.ends_with("xend"),
        "{}",
        cut.len()
    );
    assert_eq!(log[1].stderr, "é");
}

#[tokio::test]
async fn all_is_of_one_moment_and_nothing_is_written() {
    let row = "INSERT INTO deployments (name, status, app_overrides, deployment_overrides, links)
               SELECT 'env' || n, 'Running', '[]', '[]', '[]' FROM generate_series(1, 3) n";
    let Some((server, url)) = fixture("all_is_of_one_moment_and_nothing_is_written", row) else {
        return;
    };
    let octopod = Octopod::open(&url, None).await.unwrap();
    assert_eq!(octopod.deployments().await.unwrap().len(), 3);
    let more = "INSERT INTO deployments (name, status, app_overrides, deployment_overrides, links)
                VALUES ('late', 'Running', '[]', '[]', '[]');
                INSERT INTO deployment_logs (deployment_id, exit_code, duration, app_overrides,
                    deployment_overrides) VALUES (1, 0, '1s', '[]', '[]')";
    server.psql(&url, more).unwrap();
    assert_eq!(octopod.deployments().await.unwrap().len(), 3);
    assert_eq!(octopod.entries().await.unwrap(), []);
    // Only while it is open.
    let mode = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'slipway env import'
                AND state = 'idle in transaction'";
    assert_eq!(server.psql(&url, mode).unwrap().trim(), "1");
}

#[tokio::test]
async fn what_is_no_octopod_is_told_with_what_is_missing() {
    let Some((server, url)) = database("what_is_no_octopod_is_told_with_what_is_missing") else {
        return;
    };
    let told = async |url: &str, password: Option<&Secret>| {
        let opened = Octopod::open(url, password).await;
        let error = opened.err().unwrap();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        (
            error.code(),
            format!("{error}{}", cause.unwrap_or_default()),
            error,
        )
    };
    let (code, what, error) = told(&url, None).await;
    assert_eq!(code, "IMPORT-002");
    let none = "it is no database of an Octopod: it has no table `deployments`, no table `deployment_logs`";
    assert_eq!(what, none);
    assert!(error.hint().contains("1.5") && !error.is_denied());
    server.psql(&url, lab::octopod::TABLES).unwrap();
    server
        .psql(&url, "ALTER TABLE deployments DROP COLUMN app_overrides")
        .unwrap();
    let (_, what, _) = told(&url, None).await;
    assert!(
        what.ends_with("it has no column `app_overrides` in `deployments`"),
        "{what}"
    );

    let nowhere = "postgres://postgres@127.0.0.1:1/none";
    assert_eq!(told(nowhere, None).await.0, "IMPORT-001");
    let (code, _, error) = told(&url.replace("/lab_", "/none_"), None).await;
    assert!(code == "IMPORT-001" && error.is_denied());
    assert!(matches!(
        told("mysql://x/y", None).await.2,
        OctopodError::Unread { .. }
    ));
}

/// A large one is read within seconds; the limit is for a machine that is busy with other things.
#[tokio::test]
async fn ten_thousand_are_read_quickly() {
    let rows = "INSERT INTO deployments (name, status, app_overrides, deployment_overrides, links)
          SELECT 'env' || n, 'Running', '[[\"image.tag\", {\"tag\": \"ValueAdded\", \"contents\": \"v1\"}]]', '[]', '[]'
          FROM generate_series(1, 10000) n;
        INSERT INTO deployment_logs (deployment_id, action, exit_code, duration, stdout, app_overrides,
            deployment_overrides)
          SELECT 1 + n % 10000, 'update', 0, '5s', repeat('line' || chr(10), 100), '[]', '[]'
          FROM generate_series(1, 30000) n;";
    let Some((_, url)) = fixture("ten_thousand_are_read_quickly", rows) else {
        return;
    };
    let begun = Instant::now();
    let octopod = Octopod::open(&url, None).await.unwrap();
    assert_eq!(octopod.deployments().await.unwrap().len(), 10_000);
    let entries = octopod.entries().await.unwrap();
    let mut read = 0;
    let ids: Vec<i64> = entries.iter().map(|(_, id)| *id).collect();
    for piece in ids.chunks(64) {
        read += octopod.log(piece).await.unwrap().len();
    }
    assert_eq!(read, 30_000);
    assert!(begun.elapsed() < crate::LONG, "{:?}", begun.elapsed());
}
