//! `slipway doctor` on real installations: what it finds, and that it disturbs nobody.

use crate::server::{Server, slipway};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// What is found, by check: how it stands, and the sentence.
struct Found(serde_json::Value, Option<i32>);

impl Found {
    fn by(command: &mut Command) -> Self {
        let output = command.args(["-o", "json"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.stdout.is_empty(), "{said}");
        let report = serde_json::from_slice(&output.stdout).unwrap();
        Self(report, output.status.code())
    }

    #[track_caller]
    fn check(&self, check: &str, standing: &str, found: &str) {
        let findings = self.0["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["check"] == check);
        assert!(finding.is_some(), "no {check} in {}", self.0);
        let finding = finding.unwrap();
        let sentence = finding["found"].as_str().unwrap();
        assert!(
            finding["standing"] == standing && sentence.contains(found),
            "{check} should be {standing} ({found}): {finding}"
        );
        assert_eq!(standing == "good", finding["mend"].is_null(), "{finding}");
    }
}

/// The doctor, for a server that is or was at this address.
fn doctor(address: &str, data: &Path) -> Command {
    let mut command = slipway();
    command
        .args(["doctor", "--listen", address.trim_start_matches("http://")])
        .args([
            "--server",
            &format!("http://{}", address.trim_start_matches("http://")),
        ])
        .arg("--data-dir")
        .arg(data);
    command
}

/// Everything in a directory, with its mode.
fn entries(data: &Path) -> BTreeSet<(String, u32)> {
    let entries = std::fs::read_dir(data).unwrap();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect()
}

#[test]
fn a_running_server_is_asked_and_not_disturbed() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut server = Server::start(directory.path());
    let address = server.address();
    let before = entries(&data);
    let found = Found::by(&mut doctor(&address, &data));
    found.check("data directory", "good", "can be written");
    found.check("database", "good", "a server works with it");
    found.check("master key", "good", "opens what is sealed");
    found.check("token", "good", "admin.token");
    found.check("clock", "good", "agrees with the server");
    found.check("port", "good", "a server of ours listens");
    found.check("server", "good", "ready for work");
    assert_eq!(found.1, Some(0), "{}", found.0);
    assert_eq!(entries(&data), before);
    assert!(server.client(&["get", "clusters"]).status.success());

    std::fs::set_permissions(
        data.join("admin.token"),
        std::fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    let found = Found::by(&mut doctor(&address, &data));
    found.check("token", "wrong", "can be read by others");
    assert_eq!(found.1, Some(1));
}

#[test]
fn what_a_dead_server_left_is_looked_at_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut server = Server::start(directory.path());
    let address = server.address();
    drop(server);
    let before = entries(&data);
    let found = Found::by(&mut doctor(&address, &data));
    found.check("database", "good", "whole");
    found.check("master key", "good", "opens what is sealed");
    found.check("port", "good", "free");
    found.check("server", "note", "nobody answers");
    assert_eq!(found.1, Some(0), "{}", found.0);
    assert_eq!(entries(&data), before);

    // Another key of the same form.
    let key = data.join("slipway.key");
    let other = tempfile::tempdir().unwrap();
    let mut server = Server::start(other.path());
    server.address();
    drop(server);
    std::fs::copy(other.path().join("data/slipway.key"), &key).unwrap();
    let found = Found::by(&mut doctor(&address, &data));
    found.check("master key", "wrong", "SEAL-004");
    assert_eq!(found.1, Some(1));

    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
    let found = Found::by(&mut doctor(&address, &data));
    found.check("master key", "wrong", "can be read by others");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "a doctor changes nothing");

    std::fs::write(data.join("slipway.db"), "no database at all".repeat(100)).unwrap();
    for beside in ["slipway.db-wal", "slipway.db-shm"] {
        drop(std::fs::remove_file(data.join(beside)));
    }
    let found = Found::by(&mut doctor(&address, &data));
    found.check("database", "wrong", "STORE-006");
}

/// What a server says that does not start: the code and the hint.
fn refused(data: &Path) -> (String, String) {
    let mut command = slipway();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    let output = command.arg(data).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    let (error, hint) = said.trim_end().split_once("\nhint: ").unwrap();
    let code = error.rsplit_once('(').unwrap().1.trim_end_matches(')');
    (code.to_owned(), hint.to_owned())
}

/// What a server refuses to start with is wrong, with the same code and the same advice.
#[track_caller]
fn as_refused(check: &str, code: &str, data: &Path) {
    let found = Found::by(&mut doctor("127.0.0.1:9", data));
    found.check(check, "wrong", &format!("({code})"));
    assert_eq!(found.1, Some(1), "{}", found.0);
    let findings = found.0["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == check);
    let mend = finding.unwrap()["mend"].as_str().unwrap().to_owned();
    assert_eq!(refused(data), (code.to_owned(), mend));
}

#[test]
fn what_a_server_refuses_to_start_with_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut server = Server::start(directory.path());
    server.address();
    drop(server);

    let token = data.join("admin.token");
    let good = std::fs::read_to_string(&token).unwrap();
    let short = good.trim().split_at(20).0;
    for text in [
        "",
        "\n",
        "hunter2",
        short,
        &format!("{} {short}", good.trim()),
    ] {
        std::fs::write(&token, text).unwrap();
        as_refused("token", "API-015", &data);
    }
    std::fs::write(&token, [0xff, 0xfe]).unwrap();
    as_refused("token", "API-014", &data);
    std::fs::write(&token, &good).unwrap();

    for file in ["slipway.db", "slipway.db-wal", "slipway.db-shm"] {
        drop(std::fs::remove_file(data.join(file)));
    }
    as_refused("database", "SERVE-004", &data);

    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for unmade in [Path::new("/proc/nope"), &file.join("data"), &link] {
        as_refused("data directory", "SERVE-003", unmade);
    }
}

#[test]
fn a_server_is_looked_for_where_it_listens() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path());
    let address = server.address();
    let mut command = slipway();
    command.args(["doctor", "--listen", address.trim_start_matches("http://")]);
    let data = directory.path().join("data");
    let found = Found::by(command.arg("--data-dir").arg(data));
    found.check("server", "good", &address);
    assert_eq!(found.1, Some(0), "{}", found.0);
}

#[test]
fn a_port_of_somebody_else_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for stream in taken.incoming() {
            let mut stream = stream.unwrap();
            assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nok\n";
            stream.write_all(answer).unwrap();
        }
    });
    let found = Found::by(&mut doctor(&address, &directory.path().join("data")));
    found.check("port", "wrong", "another program");
    found.check("server", "wrong", "no server of ours");
    assert!(!directory.path().join("data").exists());
}

#[test]
fn a_database_on_a_server_is_judged_too() {
    let Some(postgres) = lab::postgres::shared_or_skip("program::doctor") else {
        return;
    };
    let database = postgres.create_database().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let ask = |database: &str| {
        let mut command = doctor("127.0.0.1:9", &data);
        Found::by(command.args(["--database", database]))
    };
    let found = ask(&database);
    found.check("database", "note", "empty");
    found.check("connections", "good", "free");
    found.check("clock", "good", "agrees with the database");
    // The lab's own server forgets everything with a power cut.
    found.check("durability", "wrong", "fsync");
    assert_eq!(found.1, Some(1));
    let tables = postgres.psql(
        &database,
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'public'",
    );
    assert_eq!(tables.unwrap().trim(), "0", "a doctor makes no tables");

    let mut command = slipway();
    let migrated = command.args(["migrate", "--database", &database]).output();
    assert!(migrated.unwrap().status.success());
    ask(&database).check("database", "good", "PostgreSQL");
    ask("postgres://127.0.0.1:9/none").check("database", "wrong", "STORE-010");
}
