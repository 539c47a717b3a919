//! What somebody may do, and which token says so.

use crate::id;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

pub use crate::id::TokenId;

/// What the holder of a token may do, each role all that the one before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sees everything but secrets.
    Viewer,
    /// Declares: submits manifests, plans, rehearses, sets secrets.
    User,
    /// Interferes: scales, replaces, retries, cancels, pauses, deletes.
    Operator,
    /// Decides who may do what: projects, tokens, keys, audit, backups.
    Admin,
}

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::User, Self::Operator, Self::Admin];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::User => "user",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a text is not a role.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is not a role; there are viewer, user, operator and admin")]
pub struct Unknown {
    /// What was given.
    pub found: String,
}

impl FromStr for Role {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| Unknown {
            found: text.to_owned(),
        })
    }
}

impl TokenId {
    /// The id of the token with this digest: the same token is never stored twice.
    pub fn of(digest: &str) -> Self {
        Self::derive(id::Origin {
            parent: "",
            name: digest,
            ordinal: 0,
            incarnation: 0,
        })
    }
}
