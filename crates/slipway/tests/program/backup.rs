//! Backups taken while a server builds, restored elsewhere, and continued there.
//!
//! The world is a file that stands for the outside: it goes on after the backup was taken, and
//! the restored server finds it further than it remembers. In the end every cluster must be
//! ready, no machine made twice, none left over.

use crate::clusters::Clusters;
use crate::server::{Server, slipway};
use expect_test::expect;
use sim::{Pace, World};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// The clusters of the manifest, and the machines of each.
const CLUSTERS: usize = 12;
const CONTROL: usize = 3;

/// How long something may take that needs a fraction of it: only a server that is stuck
/// reaches it.
const PATIENCE: Duration = Duration::from_mins(5);

fn manifest(compute: usize) -> String {
    let clusters = Clusters {
        name: "dozen",
        prefix: "c",
        network: "10.30",
        count: CLUSTERS,
        control: CONTROL,
        compute,
    };
    clusters.manifest()
}

/// A place where an installation is.
struct Site {
    directory: PathBuf,
    database: Option<String>,
}

impl Site {
    fn new(directory: PathBuf, database: Option<String>) -> Self {
        std::fs::create_dir(&directory).unwrap();
        Self {
            directory,
            database,
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Adds the options that name the place.
    fn name<'a>(&self, command: &'a mut std::process::Command) -> &'a mut std::process::Command {
        if let Some(database) = &self.database {
            command.args(["--database", database]);
        }
        command.arg("--data-dir").arg(self.data())
    }

    fn serve(&self) -> Server {
        let mut command = slipway();
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        self.name(&mut command);
        Server::run(command, &self.directory, self.data())
    }

    fn restore(&self, from: &Path) -> Output {
        let mut command = slipway();
        command.args(["backup", "restore", "--from"]).arg(from);
        self.name(&mut command).output().unwrap()
    }

    /// Waits until what a dead server had begun has ended.
    fn quiet(&self) {
        let world = World::open(&self.data().join("world.jsonl"), Pace::Demo, 0).unwrap();
        let began = Instant::now();
        while world.under_way() > 0 {
            assert!(
                began.elapsed() < PATIENCE,
                "the world does not come to rest"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Brings over what is not in a backup: the key file, and the world as it is by now.
    fn bring(&self, from: &Self) {
        std::fs::create_dir_all(self.data()).unwrap();
        for name in ["slipway.key", "world.jsonl"] {
            std::fs::copy(from.data().join(name), self.data().join(name)).unwrap();
        }
    }
}

#[track_caller]
fn succeeded(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Where the manifest stands.
fn state(server: &mut Server) -> String {
    let got = server.client(&["get", "manifest", "dozen", "-o", "json"]);
    succeeded(&got);
    let view: serde_json::Value = serde_json::from_slice(&got.stdout).unwrap();
    view["state"].as_str().unwrap().to_owned()
}

#[track_caller]
fn wait(what: &str, server: &mut Server, mut done: impl FnMut(&mut Server) -> bool) {
    let began = Instant::now();
    while !done(server) {
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: {}",
            std::fs::read_to_string(&server.log).unwrap()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn lines(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().count()
}

/// Applies the manifest with that many compute machines per cluster.
fn apply(server: &mut Server, compute: usize) {
    let file = server.directory.join("manifest.yaml");
    std::fs::write(&file, manifest(compute)).unwrap();
    succeeded(&server.client(&["apply", "-f", file.to_str().unwrap()]));
}

/// Takes a backup while the server builds, and lets it go on for a while.
fn take(site: &Site, server: &mut Server, compute: &mut usize) -> PathBuf {
    let world = site.data().join("world.jsonl");
    let file = site.directory.join("taken.backup");
    loop {
        let begun = lines(&world);
        wait("nothing is built", server, |server| {
            lines(&world) > begun + 20 || state(server) == "done"
        });
        succeeded(&server.client(&["backup", "create", "--to", file.to_str().unwrap()]));
        // The world goes on, and the backup does not know.
        let then = lines(&world);
        wait("nothing goes on", server, |server| {
            lines(&world) > then + 20 || state(server) == "done"
        });
        if lines(&world) > then {
            return file;
        }
        // All was built before the backup was taken: let there be more to build.
        *compute += 1;
        apply(server, *compute);
    }
}

/// Lets a server bring everything to its end, and judges the world.
fn finish(site: &Site, mut server: Server, compute: usize) {
    wait("not ready", &mut server, |server| state(server) == "done");
    let doctor = server.client(&["doctor", "-o", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let key = findings.iter().find(|one| one["check"] == "master key");
    assert_eq!(key.unwrap()["standing"], "good", "{report}");
    let audit = server.client(&["audit", "verify"]);
    succeeded(&audit);
    drop(server);
    let world = World::open(&site.data().join("world.jsonl"), Pace::Demo, 0).unwrap();
    let made = world.made();
    let twice: Vec<_> = made.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "made more than once: {twice:?}");
    let wanted = CLUSTERS * (CONTROL + compute);
    assert_eq!(
        (made.len(), world.machines()),
        (wanted, wanted),
        "machines were made that nobody wanted, are missing or left over"
    );
    assert_eq!(world.violations(), Vec::new());
}

#[test]
fn a_backup_taken_while_building_is_continued_elsewhere_on_both_bodies() {
    let home = tempfile::tempdir().unwrap();
    let place = |name: &str| home.path().join(name);
    let first = Site::new(place("first"), None);
    let mut server = first.serve();
    let mut compute = 2;
    apply(&mut server, compute);
    let backup = take(&first, &mut server, &mut compute);
    drop(server);
    first.quiet();

    let second = Site::new(place("second"), None);
    second.bring(&first);
    succeeded(&second.restore(&backup));
    finish(&second, second.serve(), compute);

    let Some(postgres) = lab::postgres::shared_or_skip("program::backup") else {
        return;
    };
    let database = postgres.create_database().unwrap();
    let third = Site::new(place("third"), Some(database));
    third.bring(&first);
    succeeded(&third.restore(&backup));
    let mut server = third.serve();
    let again = take(&third, &mut server, &mut compute);
    drop(server);
    third.quiet();

    // And back: what PostgreSQL knew goes on in SQLite.
    let fourth = Site::new(place("fourth"), None);
    fourth.bring(&third);
    succeeded(&fourth.restore(&again));
    finish(&fourth, fourth.serve(), compute);
    crate::figure(&format!(
        "backups of a server building {CLUSTERS} clusters, restored SQLite → SQLite → PostgreSQL → SQLite: \
         all ready, each machine made once"
    ));
}

/// A server that has accepted something, and a backup of it.
fn taken(home: &Path) -> (Site, Server, PathBuf) {
    let site = Site::new(home.join("first"), None);
    let mut server = site.serve();
    apply(&mut server, 2);
    let backup = home.join("taken.backup");
    succeeded(&server.client(&["backup", "create", "--to", backup.to_str().unwrap()]));
    (site, server, backup)
}

#[test]
fn a_backup_that_is_not_whole_is_refused_and_nothing_is_made() {
    let home = tempfile::tempdir().unwrap();
    let (_, server, backup) = taken(home.path());
    drop(server);
    let whole = std::fs::read(&backup).unwrap();
    let mut damaged = whole.clone();
    let at = damaged
        .windows(5)
        .position(|five| five == b"dozen")
        .unwrap();
    damaged[at..at + 5].copy_from_slice(b"dizen");
    let newer = String::from_utf8(whole.clone()).unwrap();
    let newer = newer.replacen("\"format\":", "\"format\":9", 1);
    let twice = [whole.clone(), whole.clone()].concat();
    let site = Site::new(home.path().join("second"), None);
    let mut told = String::new();
    for (name, bytes) in [
        ("truncated", &whole[..whole.len() / 2]),
        ("without its end", &whole[..whole.len() - 100]),
        ("damaged", &damaged),
        ("twice", &twice),
        ("newer", newer.as_bytes()),
        ("something else", b"a: 1\n"),
        ("empty", b""),
    ] {
        std::fs::write(&backup, bytes).unwrap();
        let refused = site.restore(&backup);
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8(refused.stderr).unwrap();
        let said = said
            .lines()
            .next()
            .unwrap()
            .rsplit(": ")
            .next()
            .unwrap()
            .to_owned();
        let number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let words = said.split(' ');
        let words: Vec<_> = words
            .map(|word| if number(word) { "N" } else { word })
            .collect();
        told.push_str(&format!("{name}: {}\n", words.join(" ")));
        assert!(!site.data().exists(), "{name} left something behind");
    }
    expect![[r#"
        truncated: the backup is cut off after line N (BACKUP-005)
        without its end: the backup is cut off after line N (BACKUP-005)
        damaged: the backup was damaged, its digest does not fit what it holds (BACKUP-006)
        twice: the backup was damaged, its digest does not fit what it holds (BACKUP-006)
        newer: the backup has format N and this program knows up to N (BACKUP-004)
        something else: this is not a backup of Slipway (BACKUP-003)
        empty: this is not a backup of Slipway (BACKUP-003)
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_backup_replaces_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (site, mut server, backup) = taken(home.path());
    let code = |output: &Output| {
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        let (_, rest) = said.split_once('(').unwrap();
        rest.split(')').next().unwrap().to_owned()
    };
    assert_eq!(code(&site.restore(&backup)), "STORE-002");
    // Nothing is left of what was written on the way to the client.
    let names = std::fs::read_dir(site.data()).unwrap();
    let mut names: Vec<_> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("slipway.") && !name.starts_with("world."))
        .collect();
    names.sort();
    assert_eq!(names, ["admin.token", "scripts"]);
    let audit = server.client(&["audit", "list", "-o", "json"]);
    succeeded(&audit);
    assert!(
        String::from_utf8(audit.stdout)
            .unwrap()
            .contains("backup.create")
    );
    drop(server);
    for words in [&[][..], &["--dry-run"]] {
        let mut command = slipway();
        command.args(["backup", "restore", "--from"]).arg(&backup);
        let refused = site.name(command.args(words)).output().unwrap();
        assert_eq!(code(&refused), "BACKUP-007");
    }
    let empty = Site::new(home.path().join("second"), None);
    let mut command = slipway();
    command
        .args(["backup", "restore", "--dry-run", "--from"])
        .arg(&backup);
    succeeded(&empty.name(&mut command).output().unwrap());
    assert!(!empty.data().exists());
}

#[test]
fn an_interrupted_backup_leaves_no_file() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut client = slipway()
        .args(["--server", &server, "--data-dir"])
        .arg(directory.path().join("data"))
        .args(["backup", "create", "--to"])
        .arg(directory.path().join("a.backup"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        request.extend(byte);
    }
    // The beginning of a backup whose end never comes.
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"slipway\":\"backup\"}\n")
        .unwrap();
    let files = || {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let lengths = entries.map(|entry| entry.unwrap().metadata().unwrap().len());
        lengths.collect::<Vec<_>>()
    };
    let began = Instant::now();
    while files() != [21] {
        assert!(began.elapsed() < Duration::from_mins(1), "{:?}", files());
        std::thread::sleep(Duration::from_millis(5));
    }
    let told = std::process::Command::new("kill")
        .args(["-INT", &client.id().to_string()])
        .status();
    assert!(told.unwrap().success());
    assert_eq!(client.wait().unwrap().code(), Some(130));
    assert_eq!(files(), [0; 0]);
    let mut said = String::new();
    client.stderr.unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "interrupted; no backup was written\n");
}
