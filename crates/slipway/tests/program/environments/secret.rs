//! A secret setting goes to scripts, and nowhere else.

use super::House;
use crate::secrets::{drawn, files, until};
use lab::traces::{found, traces};
use std::path::Path;

/// What every process of this machine was started with: its arguments, and, where asked, its
/// environment.
fn processes(what: &str) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let pid = path.file_name()?.to_str()?;
        pid.parse::<u32>().ok()?;
        let bytes = std::fs::read(path.join(what)).ok()?;
        Some((path.join(what).display().to_string(), bytes))
    };
    entries.filter_map(of).collect()
}

fn search(where_: &[(String, Vec<u8>)], told: &[Vec<u8>]) -> Vec<String> {
    let hits = where_
        .iter()
        .filter(|(_, bytes)| !found(bytes, told).is_empty());
    hits.map(|(path, _)| path.clone()).collect()
}

/// Everything that lies on the disk of the test, without what scripts are handed while they run.
/// The example script itself writes its arguments down: where a secret is one, that is its own
/// matter.
fn disk(directory: &Path, delivery: &str) -> Vec<(String, Vec<u8>)> {
    let own = |path: &str| delivery == "argv" && path.contains("/state/shop/");
    let passes = |path: &str| path.contains("/secrets/") || path.contains("/passing/") || own(path);
    let all = files(directory).into_iter();
    all.filter(|(path, _)| !passes(path)).collect()
}

/// Whether these are the arguments of a control script: a shell, the script, and what it is told.
fn is_script(arguments: &[u8]) -> bool {
    let words: Vec<_> = arguments.split(|byte| *byte == 0).collect();
    let scripts = [
        "/create",
        "/check",
        "/info",
        "/config_check",
        "/archive_check",
    ];
    let named = |word: &&[u8]| scripts.iter().any(|name| word.ends_with(name.as_bytes()));
    words.iter().take(2).any(named) && words.contains(&&b"--application-config"[..])
}

/// What is done to an environment whose script has run, and what is asked about it.
const WORDS: &[&[&str]] = &[
    &["update", "lemon", "-t", "v2", "-e", "demo.slow=0", "--wait"],
    &["update", "lemon", "-t", "v3", "--dry-run", "-o", "json"],
    &["info", "lemon", "--effective"],
    &["info", "lemon", "-o", "json"],
    &["status", "lemon", "--now"],
    &["list", "-o", "json"],
    &["logs", "lemon"],
    &["clone", "lemon", "lime", "--wait"],
    &["archive", "lemon", "--wait"],
    &["restore", "lemon", "--wait"],
];

/// Where arguments are the way, the script has the secret in its own, and nobody else does.
#[track_caller]
fn check_arguments(told: &[Vec<u8>], delivery: &str) {
    let arguments: Vec<_> = processes("cmdline")
        .into_iter()
        .filter(|(_, words)| !found(words, told).is_empty())
        .collect();
    let elsewhere: Vec<_> = arguments
        .iter()
        .filter(|(_, words)| delivery != "argv" || !is_script(words))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(elsewhere, Vec::<&String>::new(), "{delivery}: arguments");
    assert_eq!(!arguments.is_empty(), delivery == "argv", "{delivery}");
}

fn walk(delivery: &str) {
    let secret = drawn(40);
    let given = tempfile::tempdir().unwrap();
    let file = given.path().join("value");
    std::fs::write(&file, &secret).unwrap();
    let setting = format!("db.password=@{}", file.display());
    let told = traces(secret.as_bytes());
    let mut house = House::new(delivery);
    let warned = house
        .env(&["settings", "show"])
        .contains("which everybody on the machine can read");
    assert_eq!(warned, delivery == "argv", "{delivery}: the warning");
    let mut heard = house.env(&[
        "create",
        "lemon",
        "-t",
        "v1",
        "-e",
        "demo.slow=3",
        "--secret",
        &setting,
    ]);
    until("the script runs", || {
        (!house.runs("lemon").is_empty()).then_some(())
    });
    check_arguments(&told, delivery);
    let variables = search(&processes("environ"), &told);
    assert_eq!(
        !variables.is_empty(),
        delivery == "env",
        "{delivery}: the environment of processes: {variables:?}"
    );
    assert_eq!(
        search(&disk(house.directory.path(), delivery), &told),
        Vec::<String>::new()
    );
    heard += &house.env(&["wait", "lemon"]);
    let deployed = house.env(&["logs", "lemon"]);
    let count = if delivery == "file" { "1" } else { "0" };
    let said = format!("{count} secret settings came as files");
    assert!(deployed.contains(&said), "{deployed}");
    heard += &deployed;
    for words in WORDS {
        heard += &house.env(words);
    }
    for words in [
        &["get", "events", "-o", "json"][..],
        &["audit", "list", "-o", "json"],
    ] {
        heard += &crate::secrets::done(&house.server.client(words));
    }
    assert!(found(heard.as_bytes(), &told).is_empty(), "{heard}");
    let looked = disk(house.directory.path(), delivery);
    assert_eq!(search(&looked, &told), Vec::<String>::new());
    for name in ["slipway.db", "slipway.db-wal", "server.log", "runs"] {
        let seen = looked.iter().any(|(path, _)| path.ends_with(name));
        assert!(seen, "{name} was looked at");
    }
    let log = std::fs::read_to_string(&house.server.log).unwrap();
    assert!(log.contains("DEBUG"), "the log says all it can");
    // What scripts were handed is gone with them.
    until("nothing is left of what was handed over", || {
        let scripts = files(&house.directory.path().join("data/scripts"));
        search(&scripts, &told).is_empty().then_some(())
    });
}

#[test]
fn a_secret_setting_that_goes_as_a_file_is_told_to_nobody_else() {
    walk("file");
}

#[test]
fn a_secret_setting_that_goes_as_an_argument_is_told_to_the_script_alone() {
    walk("argv");
}

#[test]
fn a_secret_setting_that_goes_as_a_variable_is_told_to_nobody_else() {
    walk("env");
}
