//! Data directories as they are found: missing, locked, damaged, of another program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use expect_test::{Expect, expect};
use rusqlite::Connection;
use std::error::Error as _;
use std::path::Path;
use store::{Error, Store};
use tempfile::TempDir;

/// A data directory with a store that was used and closed.
fn used() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    drop(Store::open(directory.path()).unwrap());
    directory
}

fn database(directory: &TempDir) -> std::path::PathBuf {
    directory.path().join("slipway.db")
}

/// Opens a directory that cannot be opened and shows what people are told.
#[track_caller]
fn check(directory: &Path, expected: &Expect) {
    let refused = Store::open(directory).map(drop).unwrap_err();
    let told = format!("{}: {refused}\nhint: {}\n", refused.code(), refused.hint());
    let place = directory.display().to_string();
    let known = format!("knows up to {}", store::FORMAT);
    let told = told.replace(&place, "DIR").replace(&known, "knows up to N");
    expected.assert_eq(&told);
}

#[test]
fn a_missing_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    check(
        &directory.path().join("not-there"),
        &expect![[r#"
            STORE-003: cannot open DIR, there is no such directory
            hint: create it with `mkdir -p DIR`, or name another one
        "#]],
    );
}

#[test]
fn a_file_is_not_a_directory() {
    let file = tempfile::NamedTempFile::new().unwrap();
    check(
        file.path(),
        &expect![[r#"
            STORE-004: could not open DIR
            hint: check that DIR is readable and writable for this user
        "#]],
    );
}

/// The kernel lets nobody make files there, not even root.
#[test]
fn a_directory_that_cannot_be_written_to_is_said_to_be_so() {
    check(
        Path::new("/sys"),
        &expect![[r#"
            STORE-005: cannot write to the database, it is read-only
            hint: make the data directory writable for this user, or name another one
        "#]],
    );
}

#[test]
fn a_directory_has_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    check(
        directory.path(),
        &expect![[r#"
            STORE-002: could not open DIR, another process uses it
            hint: stop the other `slipway serve`, or choose another directory than DIR
        "#]],
    );
    let clone = store.clone();
    drop(store);
    assert!(
        Store::open(directory.path()).is_err(),
        "a clone still holds it"
    );
    drop(clone);
    Store::open(directory.path()).unwrap();
}

#[test]
fn a_database_of_a_later_version_is_not_touched() {
    let directory = used();
    let later = Connection::open(database(&directory)).unwrap();
    later
        .execute("INSERT INTO schema_version (version) VALUES (99)", [])
        .unwrap();
    drop(later);
    let before = std::fs::read(database(&directory)).unwrap();
    check(
        directory.path(),
        &expect![[r#"
            STORE-007: cannot read the database, its format is 99 and this program knows up to N
            hint: run the version of slipway that wrote it, or a later one; nothing was changed
        "#]],
    );
    assert!(std::fs::read(database(&directory)).unwrap() == before);
}

#[test]
fn a_file_that_is_no_database_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let letter = "Dear database, ".repeat(1000);
    std::fs::write(database(&directory), &letter).unwrap();
    check(
        directory.path(),
        &expect![[r#"
            STORE-006: cannot read the database, its file is not a database
            hint: restore slipway.db from a backup, or start with an empty data directory; the file was not changed
        "#]],
    );
    assert_eq!(
        std::fs::read_to_string(database(&directory)).unwrap(),
        letter
    );
}

#[test]
fn a_database_that_was_cut_off_is_refused() {
    let directory = used();
    let whole = std::fs::read(database(&directory)).unwrap();
    std::fs::write(database(&directory), &whole[..whole.len() / 2]).unwrap();
    let refused = Store::open(directory.path()).map(drop).unwrap_err();
    assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
    assert!(refused.source().is_some(), "the cause is in the chain");
}

#[test]
fn a_database_of_another_program_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let other = Connection::open(database(&directory)).unwrap();
    other
        .execute_batch("CREATE TABLE recipes (name TEXT)")
        .unwrap();
    drop(other);
    let before = std::fs::read(database(&directory)).unwrap();
    let refused = Store::open(directory.path()).map(drop).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot read the database, its file belongs to another program"
    );
    assert!(std::fs::read(database(&directory)).unwrap() == before);
}

#[test]
fn an_empty_file_is_a_new_database() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(database(&directory), "").unwrap();
    Store::open(directory.path()).unwrap();
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let id = model::id::JourneyId::derive(model::id::Origin {
        parent: "",
        name: "",
        ordinal: 0,
        incarnation: 0,
    });
    let project = model::name::Name::default_project();
    let now = model::time::Timestamp::default();
    store
        .save_journey(id, &project, "kept".to_owned(), now)
        .await
        .unwrap();
    // What a killed process leaves: the files as they are, the log not folded in.
    let crashed = tempfile::tempdir().unwrap();
    for file in ["slipway.db", "slipway.db-wal"] {
        std::fs::copy(directory.path().join(file), crashed.path().join(file)).unwrap();
    }
    let restarted = Store::open(crashed.path()).unwrap();
    assert_eq!(
        restarted.journey(&project, id).await.unwrap().as_deref(),
        Some("kept")
    );
}

/// A copy of a database in the middle of a transaction, as a killed process leaves it.
fn killed(committed: &str) -> TempDir {
    let (alive, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let connection = Connection::open(database(&alive)).unwrap();
    // With next to no cache, pages reach the file long before the transaction ends.
    connection
        .execute_batch(&format!(
            "{committed}; PRAGMA cache_size = 1; BEGIN; CREATE TABLE lost (text TEXT);
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             INSERT INTO lost SELECT hex(randomblob(500)) FROM n"
        ))
        .unwrap();
    for file in ["slipway.db", "slipway.db-journal"] {
        let size = std::fs::copy(alive.path().join(file), killed.path().join(file)).unwrap();
        assert!(size > 0, "{file} is not in the middle of anything");
    }
    killed
}

#[tokio::test]
async fn a_first_start_that_was_killed_is_continued_by_the_next() {
    let directory = killed("SELECT 1");
    let store = Store::open(directory.path()).unwrap();
    assert_eq!(store.counts().await.unwrap(), store::Counts::default());
    drop(store);
    Store::open(directory.path()).unwrap();
}

/// The first write of all, which switches the log on, has nothing to put back but a size.
#[test]
fn a_start_that_was_killed_at_its_first_write_is_continued_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let page = {
        let other = used();
        std::fs::read(database(&other)).unwrap()[..4096].to_vec()
    };
    std::fs::write(database(&directory), page).unwrap();
    // Magic number, no pages, a nonce, a file of no pages before, sectors of 512, pages of 4096.
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    journal.extend([0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 16, 0]);
    journal.resize(512, 0);
    std::fs::write(directory.path().join("slipway.db-journal"), journal).unwrap();
    Store::open(directory.path()).unwrap();
}

#[test]
fn a_killed_database_of_another_program_keeps_what_it_committed() {
    let directory = killed("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')");
    let refused = Store::open(directory.path()).map(drop).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot read the database, its file belongs to another program"
    );
    let other = Connection::open(database(&directory)).unwrap();
    let name: String = other
        .query_row("SELECT name FROM recipes", [], |row| row.get(0))
        .unwrap();
    assert_eq!(name, "soup");
}
