//! What a sandbox knows of its hosts after everything was killed: files beside their disks.

use super::Level;
use crate::error::{Error, Kind};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// One host as it was ordered; its directory is half-made until this is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The machine's id.
    pub(super) id: String,
    /// Its host name.
    pub(super) name: String,
    /// What runs in it.
    pub(super) level: Level,
    /// Where it answers.
    pub(super) address: Ipv4Addr,
    /// The public key of its sshd.
    pub(super) host_key: String,
    /// Who may log in.
    pub(super) authorized_key: String,
    /// What its disk lies on; its disk makes no sense on another one.
    pub(super) lower: PathBuf,
    /// Whether its disk is in memory, because the filesystem takes none.
    pub(super) in_memory: bool,
}

impl Record {
    /// Reads the record of a directory; `None` where it is half-made.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        let text = std::fs::read(directory.join("record.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes it, whole or not at all.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        replace(&directory.join("record.json"), &text, 0o600)
    }
}

/// A process of this machine, told from a later one with the same number by when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    /// Its number.
    pub(super) pid: u32,
    /// When it began, in ticks of the kernel since the machine did.
    pub(super) began: u64,
}

impl Process {
    /// Reads `PID BEGAN`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (pid, began) = text.trim().split_once(' ')?;
        let (pid, began) = (pid.parse().ok()?, began.parse().ok()?);
        Some(Self { pid, began })
    }

    /// The process that a file names, if it lives.
    pub(super) fn recorded(file: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(file).ok()?;
        Self::parse(&text).filter(|process| process.alive())
    }

    /// Writes it down.
    pub(super) fn record(self, file: &Path) -> Result<(), Error> {
        let text = format!("{} {}\n", self.pid, self.began);
        replace(file, text.as_bytes(), 0o600)
    }

    /// Ends it, and nobody else who has its number by now.
    pub(super) fn kill(self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let held = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let sent = held
            .filter(|_| self.alive())
            .map(|held| pidfd_send_signal(held, Signal::KILL));
        if let Some(Err(error)) = sent {
            tracing::warn!(pid = self.pid, %error, "a process could not be ended");
        }
    }

    /// Whether it still lives; one that only waits to be buried does not.
    pub(super) fn alive(self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
        stat.is_ok_and(|stat| lives(&stat, self.began))
    }
}

/// Reads a line of `/proc/PID/stat`; the name in it may hold blanks and brackets.
fn lives(stat: &str, began: u64) -> bool {
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = rest.split(' ');
    let ended = matches!(fields.next(), Some("Z" | "X"));
    let start = fields.nth(18).and_then(|field| field.parse().ok());
    !ended && start == Some(began)
}

/// Writes a file beside its place and moves it there.
pub(super) fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let beside = path.with_extension("new");
    let written = || {
        // What a killed attempt left may have another mode.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)?;
        file.write_all(content)?;
        std::fs::rename(&beside, path)
    };
    written().map_err(|error| unwritten(path, &error))
}

/// The error of a file of the sandbox that could not be written.
pub(super) fn unwritten(path: &Path, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let kind = error.kind();
    let kind = if [StorageFull, QuotaExceeded].contains(&kind) {
        Kind::DiskFull
    } else if kind == ReadOnlyFilesystem {
        Kind::ReadOnly
    } else {
        Kind::NotStarted
    };
    Error::new(kind, format!("writing {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_number() {
        let line = |state| {
            format!(
                "7 (a ) b) {state} 1 7 7 0 -1 4194560 92 0 0 0 0 0 0 0 20 0 1 0 4711 2580480 197"
            )
        };
        assert!(lives(&line("S"), 4711));
        assert!(!lives(&line("S"), 4712));
        assert!(!lives(&line("Z"), 4711));
        assert!(!lives("", 4711));
    }

    #[test]
    fn we_ourselves_live() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        let began = rest.split(' ').nth(19).unwrap().parse().unwrap();
        let pid = std::process::id();
        assert!(Process { pid, began }.alive());
        assert!(
            !Process {
                pid,
                began: began + 1
            }
            .alive()
        );
    }
}
