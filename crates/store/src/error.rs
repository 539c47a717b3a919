//! Why the store could not answer, and what a person can do about it.
//!
//! These are the failures of the database itself. That a submission, a wish or a plan
//! is refused is said by the errors of those questions, which contain this one.

use std::path::PathBuf;
use std::sync::Arc;

/// What lay below a failure; shared, because one failed commit answers many callers.
pub(crate) type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why the store could not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no room left; reading goes on, and the next write is tried as usual.
    #[error("could not write to the database, its disk is full")]
    Full,
    /// Another process works with the same data directory.
    #[error("could not open {}, another process uses it", path.display())]
    Locked {
        /// The data directory.
        path: PathBuf,
    },
    /// There is no data directory.
    #[error("cannot open {}, there is no such directory", path.display())]
    Missing {
        /// The data directory.
        path: PathBuf,
    },
    /// The file system refuses to open what is there.
    #[error("could not open {}", path.display())]
    Unopenable {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        cause: Cause,
    },
    /// The data directory or the database may only be read.
    #[error("cannot write to the database, it is read-only")]
    ReadOnly,
    /// What the database holds is not what we once wrote.
    #[error("cannot read the database, {what}")]
    Corrupt {
        /// What is wrong, as one clause.
        what: &'static str,
        /// Why, where somebody said so.
        #[source]
        cause: Option<Cause>,
    },
    /// One thing that is stored is not of a form that this program knows; the rest can be read.
    #[error("cannot read {what} that is stored, {why}")]
    Document {
        /// What it is, as the object of a sentence.
        what: &'static str,
        /// What is wrong with it, as one clause.
        why: String,
        /// Whether a later version of the program says that it wrote it.
        newer: bool,
        /// Why, where somebody said so.
        #[source]
        cause: Option<Cause>,
    },
    /// The database was written by a later version of the program.
    #[error("cannot read the database, its format is {found} and this program knows up to {known}")]
    Newer {
        /// The format of the database.
        found: u64,
        /// The newest format this program knows.
        known: u64,
    },
    /// A page was asked for with a cursor that no list gave out.
    #[error("`{found}` is not a cursor of this list")]
    Cursor {
        /// What was given.
        found: String,
    },
    /// The database server does not answer, or the connection to it was lost before anything
    /// was committed.
    #[error("could not reach the database server")]
    Unreachable {
        /// Why.
        #[source]
        cause: Cause,
    },
    /// The connection was lost while a transaction was being committed.
    #[error("lost the database server while writing, it is not known whether the change was kept")]
    Unsure {
        /// Why.
        #[source]
        cause: Cause,
    },
    /// The address of a database server cannot be used.
    #[error("cannot use this address of a database, {what}")]
    Address {
        /// What is wrong, as one clause.
        what: String,
    },
    /// The database server does not let us in, or not do what we must.
    #[error("the database server refuses us, {said}")]
    Denied {
        /// What it said.
        said: String,
    },
    /// The database was written by an earlier version of the program.
    #[error("cannot use the database yet, its format is {found} and this program needs {needed}")]
    Older {
        /// The format of the database.
        found: u64,
        /// The format this program needs.
        needed: u64,
    },
    /// Others were in the way; what was written is undone.
    #[error("could not write, others kept what it needs")]
    Contended {
        /// Why.
        #[source]
        cause: Cause,
    },
    /// Something else went wrong below us.
    #[error("could not {attempted}")]
    Other {
        /// What was attempted, as the rest of the sentence.
        attempted: &'static str,
        /// Why, where somebody said so.
        #[source]
        cause: Option<Cause>,
    },
}

impl Error {
    /// Whether one thing is stored that this program cannot read, though it reads the rest.
    pub const fn is_unreadable(&self) -> bool {
        matches!(self, Self::Document { .. })
    }

    /// The stable code; its page is `docs/errors/CODE.md`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Full => "STORE-001",
            Self::Locked { .. } => "STORE-002",
            Self::Missing { .. } => "STORE-003",
            Self::Unopenable { .. } => "STORE-004",
            Self::ReadOnly => "STORE-005",
            Self::Corrupt { .. } | Self::Document { newer: false, .. } => "STORE-006",
            Self::Newer { .. } | Self::Document { newer: true, .. } => "STORE-007",
            Self::Cursor { .. } => "STORE-008",
            Self::Other { .. } => "STORE-009",
            Self::Unreachable { .. } => "STORE-010",
            Self::Unsure { .. } => "STORE-011",
            Self::Address { .. } => "STORE-012",
            Self::Denied { .. } => "STORE-013",
            Self::Older { .. } => "STORE-014",
            Self::Contended { .. } => "STORE-015",
        }
    }

    /// What would help.
    pub fn hint(&self) -> String {
        match self {
            Self::Full => "make room on the disk; nothing is lost and work continues by itself".to_owned(),
            Self::Locked { path } => {
                format!("stop the other `slipway serve`, or choose another directory than {}", path.display())
            }
            Self::Missing { path } => format!("create it with `mkdir -p {}`, or name another one", path.display()),
            Self::Unopenable { path, .. } => {
                format!("check that {} is readable and writable for this user", path.display())
            }
            Self::ReadOnly => "make the data directory writable for this user, or name another one".to_owned(),
            Self::Corrupt { .. } => {
                "restore slipway.db from a backup, or start with an empty data directory; the file was not changed"
                    .to_owned()
            }
            Self::Document { newer, .. } => {
                let first = if *newer {
                    "run the version of slipway that wrote it, or a later one; else "
                } else {
                    ""
                };
                format!("{first}`slipway cluster recover NAME` sets aside what cannot be read of a cluster, and applying a manifest again replaces it; nothing was changed")
            }
            Self::Newer { .. } => {
                "run the version of slipway that wrote it, or a later one; nothing was changed".to_owned()
            }
            Self::Cursor { .. } => "start again without a cursor and use the one that each page returns".to_owned(),
            Self::Unreachable { .. } => {
                "check that PostgreSQL runs and can be reached; work goes on by itself when it is back".to_owned()
            }
            Self::Unsure { .. } => {
                "look whether it was kept before you repeat it; with an Idempotency-Key a repeat is harmless".to_owned()
            }
            Self::Address { .. } => {
                "write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, or leave it out to use SQLite".to_owned()
            }
            Self::Denied { .. } => {
                "check user, password and database; the user must own the database, because it makes tables there"
                    .to_owned()
            }
            Self::Older { .. } => {
                "run `slipway migrate` once with this version, then start again; nothing was changed".to_owned()
            }
            Self::Contended { .. } => "try again; if it persists, look for a process that is stuck".to_owned(),
            Self::Other { .. } => "try again; if it persists, look at the server's log".to_owned(),
        }
    }

    /// Whether the same may work a moment later, and nothing was kept of it.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self, Self::Contended { .. } | Self::Unreachable { .. })
    }

    /// Something that no version of the program would have stored so.
    pub(crate) fn odd(what: &'static str, why: &str) -> Self {
        Self::Document {
            what,
            why: why.to_owned(),
            newer: false,
            cause: None,
        }
    }

    /// The store's own thread is gone or gave up on the question.
    pub(crate) const fn unanswered() -> Self {
        Self::Other {
            attempted: "get an answer from the database's own thread",
            cause: None,
        }
    }
}
