//! A secret setting goes to scripts, and nowhere else.

use super::House;
use crate::secrets::{drawn, files, until};
use lab::postgres::{Options, Postgres};
use lab::traces::{found, traces};
use std::os::unix::fs::PermissionsExt as _;
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

/// Whose environment may have a secret that goes as a variable: that of the script, of what it
/// runs, and of the runner that begins it.
fn check_variables(house: &House, told: &[Vec<u8>], delivery: &str) {
    let variables = search(&processes("environ"), told);
    assert_eq!(
        !variables.is_empty(),
        delivery == "env",
        "{delivery}: the environment of processes: {variables:?}"
    );
    let server = format!("/proc/{}/", house.server.child.id());
    let ours = variables.iter().any(|path| path.starts_with(&server));
    assert!(!ours, "{delivery}: the server has it as a variable");
    for path in variables {
        let directory = Path::new(&path).parent().unwrap();
        // One that has ended meanwhile had a right to it, as those that run.
        let Ok(words) = std::fs::read(directory.join("cmdline")) else {
            continue;
        };
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let known = ["run-script", "/scripts/", "sleep "];
        let known = known.iter().any(|part| words.contains(part));
        assert!(known || words.is_empty(), "{words} has it as a variable");
    }
}

/// Whatever the API answers about environments and what is around them, as it comes.
fn asked(house: &mut House) -> String {
    let bearer = [house.bearer()];
    let address = house.server.address();
    let get = |path: &str| {
        let (status, body) = super::wire::send(&address, ("GET", path), &bearer, "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    };
    let project = "/api/v1/projects/default";
    let of_one = format!("{project}/environments/lemon");
    let actions = get(&format!("{of_one}/actions"));
    let known: serde_json::Value = serde_json::from_str(&actions).unwrap();
    let known = known["items"].as_array().unwrap();
    assert!(known.len() > 3, "{actions}");
    let mut heard = actions.clone();
    for action in known {
        let id = action["id"].as_str().unwrap();
        heard += &get(&format!("{of_one}/actions/{id}"));
        heard += &get(&format!("{of_one}/actions/{id}/log"));
    }
    for path in [
        "environments",
        "environments/lemon",
        "environments/lemon/configuration",
        "environments/lemon/changes",
        "environment-settings",
        "environment-defaults?level=application&environment=lemon",
        "environment-keys?level=application&environment=lemon",
        "environment-deliveries",
        "secrets",
        "events",
    ] {
        heard += &get(&format!("{project}/{path}"));
    }
    for path in ["/api/v1/audit", "/metrics"] {
        heard += &get(path);
    }
    heard
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

fn walk(delivery: &str, postgres: Option<&Postgres>) {
    let secret = drawn(40);
    let given = tempfile::tempdir().unwrap();
    let file = given.path().join("value");
    std::fs::write(&file, &secret).unwrap();
    let setting = format!("db.password=@{}", file.display());
    let told = traces(secret.as_bytes());
    let database = postgres.map(|server| server.create_database().unwrap());
    let mut house = House::on(database, delivery);
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
    check_variables(&house, &told, delivery);
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
    heard += &asked(&mut house);
    assert!(found(heard.as_bytes(), &told).is_empty(), "{heard}");
    check_disk(&mut house, &told, delivery);
    if let Some(postgres) = postgres {
        check_postgres(postgres, house.database.as_deref().unwrap(), &told);
    }
}

/// Nor has it any file of the database server: what it holds, its log of changes, and what it said.
fn check_postgres(postgres: &Postgres, database: &str, told: &[Vec<u8>]) {
    let known = "SELECT name FROM environments";
    assert!(
        postgres.psql(database, known).unwrap().contains("lemon"),
        "this is where environments are stored"
    );
    postgres.psql(database, "CHECKPOINT").unwrap();
    let looked = files(postgres.directory());
    assert_eq!(search(&looked, told), Vec::<String>::new());
    let (name, table, log) = (b"lemon".as_slice(), "/base/", "/pg_wal/");
    for part in [table, log] {
        let has = |(path, bytes): &(String, Vec<u8>)| {
            path.contains(part) && bytes.windows(name.len()).any(|some| some == name)
        };
        assert!(looked.iter().any(has), "{part} was looked at");
    }
}

/// Neither what is stored nor what was said nor what runners left has it when all has ended.
fn check_disk(house: &mut House, told: &[Vec<u8>], delivery: &str) {
    let looked = disk(house.directory.path(), delivery);
    assert_eq!(search(&looked, told), Vec::<String>::new());
    let stored = ["slipway.db", "slipway.db-wal"];
    let stored = stored.iter().filter(|_| house.database.is_none());
    for name in stored.chain(&["server.log"]) {
        let seen = looked.iter().any(|(path, _)| path.ends_with(name));
        assert!(seen, "{name} was looked at");
    }
    let log = std::fs::read_to_string(&house.server.log).unwrap();
    assert!(log.contains("DEBUG"), "the log says all it can");
    // What was handed over is gone with those whom it was handed to.
    until("nothing is left of what was handed over", || {
        let scripts = files(&house.directory.path().join("data/scripts"));
        search(&scripts, told).is_empty().then_some(())
    });
    // Nor does it come with the end of the server, or the next start.
    house.kill();
    house.server.address();
    let looked = disk(house.directory.path(), delivery);
    assert_eq!(search(&looked, told), Vec::<String>::new());
}

#[test]
fn a_secret_setting_that_goes_as_a_file_is_told_to_nobody_else() {
    walk("file", None);
}

#[test]
fn a_secret_setting_that_goes_as_an_argument_is_told_to_the_script_alone() {
    walk("argv", None);
}

#[test]
fn a_secret_setting_that_goes_as_a_variable_is_told_to_nobody_else() {
    walk("env", None);
}

#[test]
fn a_secret_setting_is_in_no_file_of_a_database_server() {
    let Some(_) = lab::postgres::shared_or_skip("program::environments") else {
        return;
    };
    // One of its own: whoever else uses a shared one would be searched, too.
    let postgres = Postgres::start(Options::default()).unwrap();
    walk("file", Some(&postgres));
}

/// A Helm and a kubectl that remember what they are told, and what of it came as values.
fn programs(directory: &Path) {
    let helm = "case $1 in
  version) echo v4.1.4 ;;
  show) echo '{\"image\":{\"tag\":\"\"},\"db\":{\"password\":\"\"}}' ;;
  upgrade)
    echo \"$2\" >>\"$0.releases\"
    while [ $# -gt 1 ]; do
      if [ \"$1\" = --values ]; then sha256sum <\"$2\"; grep -c password \"$2\"; fi
      shift
    done
    echo deploying
    while [ -e \"$0.hold\" ]; do sleep 0.1; done ;;
esac";
    let kubectl = "case \"$*\" in
  *--output\\ json*) echo '{\"items\":[]}' ;;
esac";
    for (name, text) in [("helm", helm), ("kubectl", kubectl)] {
        let file = directory.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A project with a chart, whose Helm waits when it deploys; and what was said to its settings.
fn charted() -> (House, String) {
    let mut house = House::new("file");
    let directory = house.directory.path().to_owned();
    programs(&directory);
    let chart = directory.join("chart");
    std::fs::create_dir(&chart).unwrap();
    std::fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    )
    .unwrap();
    std::fs::write(
        directory.join("kubeconfig"),
        "apiVersion: v1\nkind: Config\n",
    )
    .unwrap();
    std::fs::write(directory.join("helm.hold"), "").unwrap();
    let words = [
        "settings",
        "set",
        "--chart",
        chart.to_str().unwrap(),
        "--kubeconfig-file",
        &format!("{}/kubeconfig", directory.display()),
    ];
    let heard = house.env(&words);
    assert!(!heard.contains("warning: "), "{heard}");
    (house, heard)
}

#[test]
fn a_secret_setting_of_a_chart_is_told_to_helm_alone() {
    let secret = drawn(40);
    let told = traces(secret.as_bytes());
    let given = tempfile::tempdir().unwrap();
    let file = given.path().join("value");
    std::fs::write(&file, &secret).unwrap();
    let setting = format!("db.password=@{}", file.display());
    let (mut house, mut heard) = charted();
    let directory = house.directory.path().to_owned();
    heard += &house.env(&["create", "lemon", "-t", "v1", "--secret", &setting]);
    until("Helm is at it", || {
        heard += &house.env(&["logs", "lemon"]);
        heard.contains("deploying").then_some(())
    });
    for what in ["cmdline", "environ"] {
        assert_eq!(
            search(&processes(what), &told),
            Vec::<String>::new(),
            "{what}"
        );
    }
    assert_eq!(
        search(&disk(&directory, "file"), &told),
        Vec::<String>::new()
    );
    let handed = search(&files(&directory.join("data/scripts")), &told);
    assert_eq!(
        handed.len(),
        1,
        "it is in the file of the values: {handed:?}"
    );
    std::fs::remove_file(directory.join("helm.hold")).unwrap();
    until("it has ended", || {
        house.seen("lemon")["busy"].is_null().then_some(())
    });
    for words in [
        &["update", "lemon", "-t", "v2"][..],
        &["info", "lemon", "--effective"],
        &["info", "lemon", "-o", "json"],
        &["list", "-o", "json"],
        &["logs", "lemon"],
    ] {
        heard += &house.env(words);
    }
    until("it has ended", || {
        house.seen("lemon")["busy"].is_null().then_some(())
    });
    for words in [
        &["get", "events", "-o", "json"][..],
        &["audit", "list", "-o", "json"],
    ] {
        heard += &crate::secrets::done(&house.server.client(words));
    }
    assert!(found(heard.as_bytes(), &told).is_empty(), "{heard}");
    let releases = std::fs::read_to_string(directory.join("helm.releases")).unwrap();
    assert_eq!(releases, "lemon\nlemon\n");
    check_disk(&mut house, &told, "file");
}
