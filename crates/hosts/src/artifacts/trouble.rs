//! Why one source could not give an artifact, and what all of them together come to.

use super::{Digest, Name, Source};
use crate::error::{Error, Kind};

/// Why one source could not give what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It does not have it.
    Absent(String),
    /// It did not answer, or not to the end.
    Away(String),
    /// It has something else of that name.
    Wrong(String),
    /// Its index makes no sense.
    Garbage(String),
    /// It is our own side that cannot go on; no other source would help.
    Ours(Error),
}

impl Trouble {
    /// What is in the file is not what was promised.
    pub(super) fn digest(expected: Digest, found: Digest) -> Self {
        Self::Wrong(format!(
            "its SHA-256 is {found}, and {expected} was expected"
        ))
    }

    /// The file is longer or shorter than was promised.
    pub(super) fn size(expected: u64, expected_digest: Digest, found: &str) -> Self {
        Self::Wrong(format!(
            "it has {found} bytes, and {expected} with SHA-256 {expected_digest} were expected"
        ))
    }

    /// An index that cannot be read.
    pub(super) fn garbage(why: impl std::fmt::Display) -> Self {
        Self::Garbage(format!("its index makes no sense: {why}"))
    }

    /// Something of ours that failed.
    pub(super) fn ours(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Ours(unwritable(what, path, error))
    }

    /// The error it is where there is no source to be named.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Ours(error) => error,
            Self::Absent(_) | Self::Away(_) | Self::Wrong(_) | Self::Garbage(_) => {
                Error::new(self.kind(), self.why())
            }
        }
    }

    /// What it says.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Absent(why) | Self::Away(why) | Self::Wrong(why) | Self::Garbage(why) => why,
            Self::Ours(error) => &error.what,
        }
    }

    /// The kind of error it is when nobody did better.
    fn kind(&self) -> Kind {
        match self {
            Self::Wrong(_) => Kind::WrongChecksum,
            Self::Garbage(_) => Kind::BadIndex,
            Self::Away(_) => Kind::SourceAway,
            Self::Absent(_) => Kind::NoArtifact,
            Self::Ours(error) => error.kind,
        }
    }

    /// How much it must be seen: a wrong file before an absent one.
    fn weight(&self) -> u8 {
        match self {
            Self::Absent(_) => 0,
            Self::Away(_) => 1,
            Self::Garbage(_) => 2,
            Self::Wrong(_) => 3,
            Self::Ours(_) => 4,
        }
    }
}

/// What the cache or a mirror could not write or read.
pub(super) fn unwritable(what: &str, path: &std::path::Path, error: &std::io::Error) -> Error {
    let what = format!("could not {what} {}: {error}", path.display());
    Error::new(Kind::CacheBroken, what)
}

/// What it comes to that no source gave an artifact: the worst decides, all are told.
pub(super) fn verdict(name: &Name, met: &[(&Source, Trouble)]) -> Error {
    let worst = met.iter().max_by_key(|(_, trouble)| trouble.weight());
    let kind = worst.map_or(Kind::NoArtifact, |(_, trouble)| trouble.kind());
    if met.is_empty() {
        return Error::new(kind, format!("could not get {name}: there is no source"));
    }
    let told: Vec<String> = met
        .iter()
        .map(|(source, trouble)| format!("{source}: {}", trouble.why()))
        .collect();
    Error::new(kind, format!("could not get {name}: {}", told.join("; ")))
}
