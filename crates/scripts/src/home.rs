//! The directory where a machine keeps what it begins: which place it is, and where secrets pass through.
//!
//! Several processes may share it: what one of them has begun, each of them finds.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::runner::session;

/// What whoever locks it has for itself.
const LOCK: &str = "lock";

/// A directory that is ready.
pub(crate) struct Home {
    /// Which place it is.
    pub(crate) place: String,
    /// Where this process puts what is secret for as long as a script runs.
    pub(crate) passing: PathBuf,
    /// That it does, for as long as this is open.
    pub(crate) held: File,
}

/// Makes the directory where there is none.
pub(crate) fn open(home: &Path) -> io::Result<Home> {
    private().create(home)?;
    let mine = File::create(home.join(LOCK))?;
    mine.lock()?;
    let (passing, held) = passing(&home.join("passing"))?;
    Ok(Home {
        place: place(home)?,
        passing,
        held,
    })
}

/// What whoever looks or tells carries, so that nobody is left who does so for a process that was killed: a
/// variable, and this process by where it passes secrets through.
pub(crate) fn mark(passing: &Path) -> (OsString, OsString) {
    ("SLIPWAY_LOOK".into(), passing.into())
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

/// A directory for this process, in the place of those that processes have left that were killed.
fn passing(above: &Path) -> io::Result<(PathBuf, File)> {
    private().create(above)?;
    for entry in std::fs::read_dir(above)? {
        let left = entry?.path();
        if is_free(&left.join(LOCK))? {
            // What looked or told for them still does.
            session::end_marked(&mark(&left));
            std::fs::remove_dir_all(&left)?;
        }
    }
    let directory = tempfile::tempdir_in(above)?.keep();
    let held = File::create(directory.join(LOCK))?;
    held.lock()?;
    Ok((directory, held))
}

/// Whether nobody holds a lock.
fn is_free(lock: &Path) -> io::Result<bool> {
    let lock = match File::open(lock) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened?,
    };
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(cause),
    }
}

/// Which place this is: a word that no other has, made once.
fn place(home: &Path) -> io::Result<String> {
    let file = home.join("place");
    match std::fs::read_to_string(&file) {
        Ok(place) if !place.trim().is_empty() => return Ok(place.trim().to_owned()),
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        Ok(_) | Err(_) => {}
    }
    let place = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let draft = tempfile::NamedTempFile::new_in(home)?;
    std::fs::write(draft.path(), &place)?;
    draft.as_file().sync_all()?;
    draft.persist(&file)?;
    File::open(home)?.sync_all()?;
    Ok(place.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{mark, open};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// Tries until it is so. Whatever another test starts right now has our locks until it is itself.
    #[track_caller]
    fn until(mut is_so: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < end, "it never came about");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_looked_for_a_process_that_is_gone_is_ended() {
        let above = tempfile::tempdir().unwrap();
        let home = above.path().join("scripts");
        let looks = |passing: &std::path::Path| {
            let (name, value) = mark(passing);
            let mut command = Command::new("sleep");
            command.arg("600").env(name, value).process_group(0);
            command.stdin(Stdio::null()).spawn().unwrap()
        };
        let first = open(&home).unwrap();
        let second = open(&home).unwrap();
        let (mut left, mut other) = (looks(&first.passing), looks(&second.passing));
        drop(first);
        until(|| {
            drop(open(&home).unwrap());
            left.try_wait().unwrap().is_some()
        });
        assert!(other.try_wait().unwrap().is_none(), "somebody waits for it");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn processes_share_a_place_and_leave_each_other_what_passes_through() {
        let above = tempfile::tempdir().unwrap();
        let home = above.path().join("scripts");
        let first = open(&home).unwrap();
        std::fs::write(first.passing.join("secret"), "pips").unwrap();
        let second = open(&home).unwrap();
        assert_eq!(first.place, second.place);
        assert_ne!(first.passing, second.passing);
        assert!(first.passing.join("secret").exists(), "it is still used");
        let left = first.passing.clone();
        drop(first);
        until(|| {
            let third = open(&home).unwrap();
            assert!(second.passing.exists() && third.passing.exists());
            !left.exists()
        });
    }
}
