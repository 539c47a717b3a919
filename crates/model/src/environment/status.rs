//! How an environment is, and what can be done to it.

use serde::{Deserialize, Serialize};

/// In which way an environment does not run as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// It does not answer, or nobody can tell.
    Generic,
    /// Some of it runs.
    Partial,
    /// Another version runs than was wanted.
    TagMismatch,
}

/// How an environment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It comes, for the first time or again.
    CreatePending,
    /// It becomes another.
    UpdatePending,
    /// It goes to the archive.
    ArchivePending,
    /// It runs as it should.
    Running,
    /// It does not.
    Failure(Failure),
    /// It rests: nothing runs, and what it has stored is kept.
    Archived,
    /// What it has stored could not be removed.
    CleanupFailed,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 9] = [
        Self::CreatePending,
        Self::UpdatePending,
        Self::ArchivePending,
        Self::Running,
        Self::Failure(Failure::Generic),
        Self::Failure(Failure::Partial),
        Self::Failure(Failure::TagMismatch),
        Self::Archived,
        Self::CleanupFailed,
    ];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreatePending => "create-pending",
            Self::UpdatePending => "update-pending",
            Self::ArchivePending => "archive-pending",
            Self::Running => "running",
            Self::Failure(Failure::Generic) => "failure",
            Self::Failure(Failure::Partial) => "partial-failure",
            Self::Failure(Failure::TagMismatch) => "tag-mismatch",
            Self::Archived => "archived",
            Self::CleanupFailed => "cleanup-failed",
        }
    }

    /// The word that control scripts are told.
    pub const fn to_scripts(self) -> &'static str {
        match self {
            Self::CreatePending => "CreatePending",
            Self::UpdatePending => "UpdatePending",
            Self::ArchivePending => "ArchivePending",
            Self::Running => "Running",
            Self::Failure(Failure::Generic) => "GenericFailure",
            Self::Failure(Failure::Partial) => "PartialAvailability",
            Self::Failure(Failure::TagMismatch) => "TagMismatch",
            Self::Archived => "Archived",
            Self::CleanupFailed => "CleanupFailed",
        }
    }

    /// Whether it is on its way from one to another.
    pub const fn is_pending(self) -> bool {
        matches!(
            self,
            Self::CreatePending | Self::UpdatePending | Self::ArchivePending
        )
    }

    /// Whether it takes, or may take, part of what is there to run on.
    pub const fn is_up(self) -> bool {
        !matches!(self, Self::Archived | Self::CleanupFailed)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| UnknownStatus {
            found: text.to_owned(),
        })
    }
}

/// A word that is no status.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is not a status")]
pub struct UnknownStatus {
    /// What was given.
    pub found: String,
}

/// What is done to an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Bring it into being.
    Create,
    /// Make it another.
    Update,
    /// Have it rest.
    Archive,
    /// Bring it back from there.
    Restore,
    /// Remove it with all that it has stored.
    Cleanup,
    /// Forget it, and touch nothing of it.
    Delete,
}

impl Deed {
    /// Every one of them.
    pub const ALL: [Self; 6] = [
        Self::Create,
        Self::Update,
        Self::Archive,
        Self::Restore,
        Self::Cleanup,
        Self::Delete,
    ];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Archive => "archive",
            Self::Restore => "restore",
            Self::Cleanup => "cleanup",
            Self::Delete => "delete",
        }
    }
}

impl std::fmt::Display for Deed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Deed {
    type Err = UnknownDeed;

    fn from_str(text: &str) -> Result<Self, UnknownDeed> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| UnknownDeed {
            found: text.to_owned(),
        })
    }
}

/// A word that is nothing that can be done.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is nothing that is done to an environment")]
pub struct UnknownDeed {
    /// What was given.
    pub found: String,
}

/// Why an environment rests though nobody asked for it: it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sleep {
    /// Nobody used it.
    Idle,
    /// It is not the time of day, or of the week.
    Hours,
}

impl Sleep {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Idle, Self::Hours];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Hours => "hours",
        }
    }
}

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Look {
    /// Whether it is up, as it should be.
    Up,
    /// Whether it is down.
    Down,
}

/// What a look at an environment showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// It is as it was asked about: up, or, of one that should rest, down.
    Good,
    /// It is not.
    Bad(Failure),
}

impl Seen {
    /// What the exit of a check means; one that was killed has none.
    pub const fn from_exit(exit: Option<i32>) -> Self {
        match exit {
            Some(0) => Self::Good,
            Some(2) => Self::Bad(Failure::Partial),
            Some(3) => Self::Bad(Failure::TagMismatch),
            Some(_) | None => Self::Bad(Failure::Generic),
        }
    }
}
