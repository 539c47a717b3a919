//! The program with a configuration file, from the outside.

use crate::server::{Server, slipway};
use expect_test::expect;
use std::path::Path;

/// Writes a file that names a free port and a data directory, and what else is said.
fn write(directory: &Path, more: &str) -> std::path::PathBuf {
    let file = directory.join("slipway.yaml");
    let data = directory.join("data");
    let text = format!("listen: 127.0.0.1:0\ndata-dir: {}\n{more}", data.display());
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_server_takes_its_settings_from_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "log: text\n");
    let mut command = slipway();
    command
        .arg("serve")
        .env("SLIPWAY_CONFIG", &file)
        .env_remove("SLIPWAY_LISTEN")
        .env_remove("SLIPWAY_DATA");
    let data = directory.path().join("data");
    let mut server = Server::run(command, directory.path(), data);
    assert!(server.client(&["get", "clusters"]).status.success());
}

#[test]
fn an_option_comes_before_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "log: json\n");
    let other = directory.path().join("other");
    let mut command = slipway();
    command
        .args(["serve", "--log", "text", "--config"])
        .arg(&file)
        .arg("--data-dir")
        .arg(&other)
        .env_remove("SLIPWAY_LISTEN");
    let mut server = Server::run(command, directory.path(), other);
    // A log in JSON would end the line with more than the address.
    assert!(server.client(&["get", "clusters"]).status.success());
    assert!(!directory.path().join("data").exists());
}

#[test]
fn a_wrong_file_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "colour: red\nlog: xml\n");
    let output = slipway()
        .args(["serve", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    let (error, hint) = said.split_once("\nhint: the settings are ").unwrap();
    expect![[r#"error: cannot use the configuration in FILE: `colour` is no setting; `log` cannot be `xml`, only text or json (CONFIG-003)"#]]
        .assert_eq(&error.replace(&file.display().to_string(), "FILE"));
    for setting in ["data-dir", "listen", "log"] {
        assert!(hint.contains(setting), "{hint}");
    }
    assert!(!directory.path().join("data").exists());
}
