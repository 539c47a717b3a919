//! Who may work with the world's file: one who acts, or any number who look.
//!
//! An advisory lock on a file of its own beside the journal, because the journal itself can
//! be replaced. The operating system frees it when its holder dies. A holder that is
//! stopped keeps it, so nobody waits for it without an end.

use super::error::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How often the lock is tried again before anybody sleeps: it is held for microseconds.
const EAGER: u32 = 8;

/// How long to sleep between two tries after that.
const NAP: Duration = Duration::from_micros(50);

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Look; others may look at the same time.
    Look,
    /// Add to the file; nobody else may do anything.
    Act,
}

/// The lock file.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: Arc<File>,
}

/// The lock is held until this is dropped.
#[derive(Debug)]
#[must_use = "the lock is given back when this is dropped"]
pub(crate) struct Held {
    file: Arc<File>,
}

impl Lock {
    /// Opens the lock file that belongs to a journal; makes it when there is none.
    pub(crate) fn beside(journal: &Path) -> Result<Self, Error> {
        let path = journal.with_extension("lock");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        match options.open(&path) {
            Ok(file) => Ok(Self {
                path,
                file: Arc::new(file),
            }),
            Err(cause) => Err(Error::Open { path, cause }),
        }
    }

    /// Takes the lock, or gives up when others have held it all the time.
    pub(crate) fn take(&self, share: Share, patience: Duration) -> Result<Held, Error> {
        let mut tries = 0;
        let mut began = None;
        loop {
            let taken = match share {
                Share::Look => self.file.try_lock_shared(),
                Share::Act => self.file.try_lock(),
            };
            match taken {
                Ok(()) => {
                    return Ok(Held {
                        file: self.file.clone(),
                    });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => {
                    let path = self.path.clone();
                    return Err(Error::Open { path, cause });
                }
            }
            tries += 1;
            if tries <= EAGER {
                thread::yield_now();
                continue;
            }
            if began.get_or_insert_with(Instant::now).elapsed() >= patience {
                let path = self.path.clone();
                return Err(Error::Busy { path });
            }
            thread::sleep(NAP);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Said outright and not left to the closing of the file: a child that is just being
        // started has a copy of the handle.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "could not give back the lock of the simulated world: {error}");
        }
    }
}
