//! The ground a sandbox stands on: its directory, who has it open, what the machine allows.

use super::enter;
use super::record::{replace, unwritten};
use crate::error::{Error, Kind};
use crate::tool::{self, SHORT};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for the one who had the sandbox open before.
const LOCKING: Duration = Duration::from_mins(1);
/// How many watches the hosts of this machine may have: systemd takes some, and hangs without.
const WATCHES: Limit = Limit {
    set: "/proc/sys/fs/inotify/max_user_instances",
    least: 8192,
    kept: "watches",
};
/// How many neighbours all namespaces of this machine together may know: in a mesh of n hosts each
/// knows all others, and beyond the limit they stop hearing each other. Only the first namespace
/// can say so.
const NEIGHBOURS: [Limit; 2] = [
    Limit {
        set: "/proc/sys/net/ipv4/neigh/default/gc_thresh3",
        least: 65_536,
        kept: "neighbours",
    },
    Limit {
        set: "/proc/sys/net/ipv4/neigh/default/gc_thresh2",
        least: 32_768,
        kept: "neighbours-soft",
    },
];

/// A limit of the machine that hosts need higher.
struct Limit {
    set: &'static str,
    least: u32,
    /// The file in the sandbox's directory that keeps what it was.
    kept: &'static str,
}

impl Limit {
    fn raise(&self, dir: &Path) -> Result<(), Error> {
        let now = std::fs::read_to_string(self.set).unwrap_or_default();
        if now.trim().parse::<u32>().is_ok_and(|now| now < self.least) {
            replace(&dir.join(self.kept), now.as_bytes(), 0o600)?;
            let raised = std::fs::write(self.set, self.least.to_string());
            raised.map_err(|error| unwritten(Path::new(self.set), &error))?;
        }
        Ok(())
    }

    fn give_back(&self, dir: &Path) -> Result<(), Error> {
        let saved = dir.join(self.kept);
        let Ok(before) = std::fs::read(&saved) else {
            return Ok(());
        };
        let restored = std::fs::write(self.set, before).and_then(|()| std::fs::remove_file(&saved));
        restored.map_err(|error| unwritten(&saved, &error))
    }
}

/// Has what many hosts take of the machine, where it can be had.
pub(super) fn fit_for_many(dir: &Path) -> Result<(), Error> {
    if !enter::is_real_root() {
        return Ok(());
    }
    NEIGHBOURS.iter().try_for_each(|limit| limit.raise(dir))
}

/// Whether this process can have hosts with systemd, as far as can be told without making one.
pub fn fits_systemd() -> Result<(), Error> {
    let refused = |why: &str| {
        let what = format!("making a host with systemd: {why}");
        Err(Error::new(Kind::NoSandbox, what))
    };
    if !enter::is_real_root() {
        return refused("it takes root of the machine");
    }
    if !tool::installed("systemd-nspawn") {
        return refused("the program systemd-nspawn is missing");
    }
    Ok(())
}

/// Has what hosts with systemd take of the machine, and keeps what it had before in a directory.
pub(super) fn fit_for_systemd(dir: &Path) -> Result<(), Error> {
    fits_systemd()?;
    WATCHES.raise(dir)
}

/// Gives the machine back what it had.
pub(super) fn give_back(dir: &Path) -> Result<(), Error> {
    let mut limits = NEIGHBOURS.iter().chain([&WATCHES]);
    limits.try_for_each(|limit| limit.give_back(dir))
}

/// A directory that can be named to the kernel and to the shell, for its owner only.
pub(super) fn prepared(dir: &Path) -> Result<PathBuf, Error> {
    let made = std::fs::create_dir_all(dir).and_then(|()| dir.canonicalize());
    let dir = made.map_err(|error| unwritten(dir, &error))?;
    plain(&dir).map(|()| dir)
}

/// Refuses a path that the kernel would read as several.
pub(super) fn plain(path: &Path) -> Result<(), Error> {
    let usual = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@~".contains(byte);
    if path.as_os_str().as_encoded_bytes().iter().all(usual) {
        return Ok(());
    }
    let what = format!(
        "{} for sandbox hosts: a path with such signs cannot be mounted",
        path.display()
    );
    Err(Error::new(Kind::NoSandbox, what))
}

/// Waits until nobody else has the sandbox open.
pub(super) async fn locked(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let options = File::options().create(true).append(true).open(&path);
    let file = options.map_err(|error| unwritten(&path, &error))?;
    let waiting = async {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(std::fs::TryLockError::Error(error)) => return Err(unwritten(&path, &error)),
                Err(std::fs::TryLockError::WouldBlock) => {}
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let busy = || {
        let what = format!(
            "opening the sandbox in {}: another process has it open",
            dir.display()
        );
        Error::new(Kind::SandboxBusy, what)
    };
    tokio::time::timeout(LOCKING, waiting)
        .await
        .map_err(|_| busy())??;
    Ok(file)
}

/// Whether the filesystem of a directory can hold the disks of hosts; some refuse, such as
/// another overlay.
pub(super) async fn takes_overlay(dir: &Path) -> Result<bool, Error> {
    let probe = dir.join("probe");
    let script = "set -e; rm -rf \"$1\"; mkdir -p \"$1/lower\" \"$1/upper\" \"$1/work\" \"$1/root\"
        status=0
        unshare --mount mount -t overlay overlay \
            -o \"lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work$2\" \"$1/root\" 2>/dev/null || status=1
        rm -rf \"$1\"; echo $status";
    let options = if enter::is_real_root() {
        ""
    } else {
        ",userxattr"
    };
    let mut command = tool::command("sh");
    command.args(["-c", script, "sh"]).arg(&probe).arg(options);
    let said = tool::run(&mut command, "", SHORT).await;
    let said = said.map_err(|said| unwritten(dir, &std::io::Error::other(said)))?;
    Ok(said.trim() == "0")
}

/// Whether something is mounted there.
pub(super) fn is_mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let path = path.to_string_lossy();
    mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(&*path))
}
