//! What the program says when it cannot start: one sentence, a code, and what to do.

use crate::server::{Server, slipway};
use expect_test::{Expect, expect};
use std::path::Path;
use tempfile::TempDir;

/// Starts a server that must not start, and shows what it says.
#[track_caller]
fn check(directory: &Path, listen: &str, expected: &Expect) {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = slipway();
    command
        .args(["serve", "--listen", listen, "--data-dir"])
        .arg(directory);
    let mut server = Server::run(command, scratch.path(), directory.to_owned());
    let status = server.ended();
    let said = std::fs::read_to_string(&server.log).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    let said = said
        .replace(&directory.display().to_string(), "DIR")
        .replace(listen, "ADDRESS")
        .replace(&format!("knows up to {}", store::FORMAT), "knows up to N");
    expected.assert_eq(&said);
}

/// A data directory that a server has used.
fn used() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path());
    server.address();
    drop(server);
    directory
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let directory = tempfile::tempdir().unwrap();
    check(
        directory.path(),
        &taken.local_addr().unwrap().to_string(),
        &expect![[r#"
            error: cannot listen on ADDRESS: Address already in use (os error 98) (SERVE-001)
            hint: another program may hold this port: end it, or choose another with --listen
        "#]],
    );
}

#[test]
fn a_second_server_on_one_directory_is_refused_and_the_first_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Server::start(directory.path());
    first.address();
    check(
        &directory.path().join("data"),
        "127.0.0.1:0",
        &expect![[r#"
            error: cannot use DIR: could not open DIR, another process uses it (STORE-002)
            hint: stop the other `slipway serve`, or choose another directory than DIR
        "#]],
    );
    assert!(first.client(&["get", "clusters"]).status.success());
}

#[test]
fn a_corrupt_database_is_refused_and_left_as_it_is() {
    let directory = used();
    let database = directory.path().join("data/slipway.db");
    // The log beside the database holds all that was written last, and would mend it.
    for log in ["slipway.db-wal", "slipway.db-shm"] {
        drop(std::fs::remove_file(
            directory.path().join("data").join(log),
        ));
    }
    std::fs::write(
        &database,
        "this is not a database, whatever its name says".repeat(100),
    )
    .unwrap();
    let before = std::fs::read(&database).unwrap();
    check(
        &directory.path().join("data"),
        "127.0.0.1:0",
        &expect![[r#"
            error: cannot use DIR: cannot read the database, its file is not a database: file is not a database: Error code 26: file is not a database (STORE-006)
            hint: restore slipway.db from a backup, or start with an empty data directory; the file was not changed
        "#]],
    );
    assert_eq!(std::fs::read(&database).unwrap(), before);
}

#[test]
fn a_database_that_is_missing_from_a_used_directory_is_missed() {
    let directory = used();
    for file in ["slipway.db", "slipway.db-wal", "slipway.db-shm"] {
        drop(std::fs::remove_file(
            directory.path().join("data").join(file),
        ));
    }
    check(
        &directory.path().join("data"),
        "127.0.0.1:0",
        &expect![[r#"
            error: the database slipway.db is missing from DIR (SERVE-004)
            hint: put it back from a backup; to start anew, move admin.token away too; if the database is on a server, name it with --database
        "#]],
    );
}

#[test]
fn a_directory_of_a_newer_version_is_refused() {
    let directory = used();
    let database = rusqlite::Connection::open(directory.path().join("data/slipway.db")).unwrap();
    database
        .execute("INSERT INTO schema_version (version) VALUES (1000)", [])
        .unwrap();
    drop(database);
    check(
        &directory.path().join("data"),
        "127.0.0.1:0",
        &expect![[r#"
            error: cannot use DIR: cannot read the database, its format is 1000 and this program knows up to N (STORE-007)
            hint: run the version of slipway that wrote it, or a later one; nothing was changed
        "#]],
    );
}

#[test]
fn a_file_is_not_a_data_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    check(
        &file,
        "127.0.0.1:0",
        &expect![[r#"
            error: cannot use DIR as data directory: File exists (os error 17) (SERVE-003)
            hint: choose a directory you may write with --data-dir or SLIPWAY_DATA
        "#]],
    );
}

#[test]
fn without_a_server_the_client_says_how_to_start_one() {
    let directory = tempfile::tempdir().unwrap();
    let output = slipway()
        .args(["--server", "http://127.0.0.1:9", "--data-dir"])
        .arg(directory.path())
        .args(["get", "clusters"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        error: no server answers at http://127.0.0.1:9: Connection refused (os error 111) (CLI-002)
        hint: start one with `slipway serve`, or name another with --server
    "#]]
    .assert_eq(&String::from_utf8(output.stderr).unwrap());
}
