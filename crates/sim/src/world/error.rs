//! Why the file that keeps the simulated world cannot be used.

use std::io;
use std::path::PathBuf;

/// Why the file of the world cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or read.
    #[error("could not open the simulated world at {path}")]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        cause: io::Error,
    },
    /// A line in the middle is not one of ours.
    #[error("the simulated world at {path} cannot be read: line {line}")]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: usize,
        /// What the reader tripped over.
        #[source]
        cause: serde_json::Error,
    },
    /// Another process has held the lock for too long.
    #[error("could not get hold of the simulated world: another process holds {path}")]
    Busy {
        /// Which lock file.
        path: PathBuf,
    },
    /// What happens could not be written down, and so did not happen.
    #[error("could not write to the simulated world at {path}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        cause: io::Error,
    },
}

impl Error {
    /// The stable code of this error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } => "SIM-001",
            Self::Line { .. } => "SIM-002",
            Self::Busy { .. } => "SIM-006",
            Self::Write { .. } => "SIM-007",
        }
    }

    /// What would help.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Open { .. } => "make the data directory writable, or free space on its disk",
            Self::Line { .. } => {
                "it was written by another version or damaged: use that version, or remove the \
                 file and the simulated machines with it"
            }
            Self::Busy { .. } => {
                "tries again by itself; a process that was stopped while it held the lock must \
                 be continued or killed"
            }
            Self::Write { .. } => "free space on the disk of the data directory",
        }
    }

    /// The same in a driver's words: what was attempted, with its code, and what would help.
    pub(crate) fn told(&self) -> driver::Error {
        let code = self.code();
        let attempted = match std::error::Error::source(self) {
            Some(cause) => format!("{self}: {cause} ({code})"),
            None => format!("{self} ({code})"),
        };
        driver::Error {
            attempted,
            hint: self.hint().to_owned(),
        }
    }
}
