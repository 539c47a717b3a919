//! Runs a test in namespaces of its own: whatever it leaves ends with it.

use hosts::sandbox::{Ending, Level, Made, Order, Sandbox, Settings, default_cache, ensure_rootfs};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a test apart; skips it where this machine cannot have sandbox hosts.
pub(crate) fn apart(name: &str, level: Level, body: impl AsyncFnOnce(Lab)) {
    apart_with(name, level, |_| {}, body);
}

/// The same, with something that stays outside and shares the directory of the test.
pub(crate) fn apart_with(
    name: &str,
    level: Level,
    outside: impl FnOnce(&Path),
    body: impl AsyncFnOnce(Lab),
) {
    if let Some(dir) = lab::within() {
        return runtime().block_on(body(Lab::new(dir)));
    }
    if let Some(reason) = missing(level) {
        return lab::skip(name, &reason);
    }
    // Inside there is no network to build it from.
    rootfs(level);
    let dir = tempfile::Builder::new()
        .prefix("slipway-sandbox-")
        .tempdir()
        .unwrap();
    outside(dir.path());
    let status = lab::apart(name, dir.path()).unwrap();
    // What a failed test left ends with its namespaces, but for these.
    for group in keys(dir.path()).iter().flat_map(|key| groups(key)) {
        let mut find = Command::new("find");
        find.arg(group)
            .args(["-depth", "-type", "d", "-exec", "rmdir", "{}", "+"]);
        find.status().unwrap();
    }
    assert!(
        status.success(),
        "{name} failed in its namespaces: {status}"
    );
}

/// Why a test cannot run here.
pub(crate) fn missing(level: Level) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not possible here: it takes root".to_owned());
    }
    let mut programs = vec!["mmdebstrap", "ssh", "ssh-keygen"];
    if level == Level::Systemd {
        programs.push("systemd-nspawn");
    }
    for program in programs {
        if !Command::new("which")
            .arg(program)
            .output()
            .unwrap()
            .status
            .success()
        {
            return Some(format!("the program {program} is missing"));
        }
    }
    let means = hosts::sandbox::means();
    means
        .err()
        .map(|error| format!("not possible here: {}", error.what))
}

/// The root filesystem of hosts; built where it was not yet.
pub(crate) fn rootfs(level: Level) -> PathBuf {
    let told = |line: &str| println!("{line}");
    let built = runtime().block_on(ensure_rootfs(level, &default_cache(), &told));
    built.unwrap()
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// What the hosts of a test are called by.
pub(crate) fn keys(dir: &Path) -> BTreeSet<String> {
    files(&dir.join("sandbox/hosts"))
}

/// The control groups of a host.
pub(crate) fn groups(key: &str) -> Vec<PathBuf> {
    let own = |entry: std::fs::DirEntry| entry.path().join(format!("slipway-{key}"));
    let entries = std::fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten();
    entries.map(own).filter(|group| group.is_dir()).collect()
}

/// What a test has to itself.
pub(crate) struct Lab {
    pub(crate) dir: PathBuf,
}

/// What can be seen from outside of hosts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct World {
    links: BTreeSet<String>,
    mounts: BTreeSet<String>,
    processes: BTreeSet<String>,
    directories: BTreeSet<String>,
}

impl Lab {
    pub(crate) fn new(dir: PathBuf) -> Self {
        let key = dir.join("key");
        if !key.exists() {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(&key)
                .status()
                .unwrap();
            assert!(made.success());
        }
        Self { dir }
    }

    pub(crate) fn settings(&self, ending: Ending) -> Settings {
        Settings {
            dir: self.dir.join("sandbox"),
            rootfs: None,
            cache: None,
            subnet: "10.77.0.0/24".parse().unwrap(),
            ending,
        }
    }

    pub(crate) async fn open(&self) -> Sandbox {
        Sandbox::open(self.settings(Ending::Stay)).await.unwrap()
    }

    pub(crate) fn order(&self, id: &str, level: Level) -> Order {
        Order {
            id: id.to_owned(),
            name: format!("host-{id}"),
            level,
            authorized_key: std::fs::read_to_string(self.dir.join("key.pub")).unwrap(),
        }
    }

    /// Logs in as root.
    pub(crate) fn ssh(&self, made: &Made, command: &str) -> Result<String, String> {
        self.ssh_as("root", made, command)
    }

    pub(crate) fn ssh_as(&self, user: &str, made: &Made, command: &str) -> Result<String, String> {
        let output = self.ssh_command(user, made, command).output().unwrap();
        if output.status.success() {
            return Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stdout);
        Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// The client of the system, which knows the host by the key we were told of alone.
    pub(crate) fn ssh_command(&self, user: &str, made: &Made, command: &str) -> Command {
        let known = self.dir.join(format!("known-{}", made.address));
        std::fs::write(&known, format!("{} {}\n", made.address, made.host_key)).unwrap();
        let mut ssh = Command::new("ssh");
        ssh.args([
            "-F",
            "/dev/null",
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=5",
        ])
        .args([
            "-o",
            "StrictHostKeyChecking=yes",
            "-o",
            "IdentitiesOnly=yes",
        ])
        .arg("-o")
        .arg(format!("UserKnownHostsFile={}", known.display()))
        .arg("-i")
        .arg(self.dir.join("key"))
        .arg(format!("{user}@{}", made.address))
        .arg(command);
        ssh
    }

    /// Waits until what was is again: the kernel takes some things away when it finds time.
    pub(crate) async fn settles_to(&self, before: &World) {
        for _ in 0..500 {
            if self.world() == *before {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(self.world(), *before);
    }

    pub(crate) fn world(&self) -> World {
        let links = Command::new("ip").args(["-o", "link"]).output().unwrap();
        let name = |line: &str| line.split(": ").nth(1).unwrap_or_default().to_owned();
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        World {
            links: String::from_utf8(links.stdout)
                .unwrap()
                .lines()
                .map(name)
                .collect(),
            mounts: mounts.lines().map(str::to_owned).collect(),
            processes: processes(),
            directories: files(&self.dir.join("sandbox/hosts")),
        }
    }
}

fn files(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// All processes but those that only wait to be buried.
fn processes() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for pid in files(Path::new("/proc")) {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        if pid.parse::<u32>().is_ok() && !stat.contains(") Z ") {
            all.insert(format!(
                "{pid} {}",
                stat.split(' ').nth(1).unwrap_or_default()
            ));
        }
    }
    all
}
