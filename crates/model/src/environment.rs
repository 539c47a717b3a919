//! Environments: an application deployed somewhere, with a configuration of its own.
//!
//! Only what somebody edited is kept of a configuration ([`config::Edits`]); what the application
//! itself would take comes from its scripts. [`config::effective`] puts the two together.

pub mod action;
pub mod config;
pub mod delivery;
pub mod git;
pub mod hours;
pub mod link;
pub mod notify;
pub mod octopod;
pub mod schema;
pub mod settings;
pub mod status;
pub mod taken;

use crate::name;
use serde::{Deserialize, Serialize};

/// The most labels of one environment.
pub const LABELS_MAX: usize = 64;

/// What an environment is called: a DNS label that begins with a letter, of 2 to 16 characters.
///
/// Scripts make host names, releases and labels of it, some with a suffix of their own: hence the
/// limit. Holding one is the proof that it was checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct EnvironmentName(String);

/// Why a text is not the name of an environment.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    /// Too few characters.
    #[error(
        "name has {len} characters, at least {} are needed",
        EnvironmentName::LEN_MIN
    )]
    TooShort {
        /// How many were given.
        len: usize,
    },
    /// It begins with something else than a letter.
    #[error("name begins with {found:?}; it must begin with one of a-z")]
    Begins {
        /// With what.
        found: char,
    },
    /// Not a name at all.
    #[error(transparent)]
    Name(#[from] name::Error),
}

impl EnvironmentName {
    /// The fewest characters.
    pub const LEN_MIN: usize = 2;

    /// The most characters.
    pub const LEN_MAX: usize = 16;

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for EnvironmentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl std::str::FromStr for EnvironmentName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let name = name::Name::checked(text, Self::LEN_MAX)?;
        match text.chars().next() {
            Some(found) if !found.is_ascii_lowercase() => Err(NameError::Begins { found }),
            Some(_) | None if text.len() < Self::LEN_MIN => {
                Err(NameError::TooShort { len: text.len() })
            }
            Some(_) | None => Ok(Self(name.into())),
        }
    }
}

impl TryFrom<String> for EnvironmentName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<EnvironmentName> for String {
    fn from(name: EnvironmentName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_labels_that_begin_with_a_letter() {
        for good in ["ab", "orange", "a-b", "a1234567890abcde"] {
            assert_eq!(good.parse::<EnvironmentName>().unwrap().as_str(), good);
        }
        let why = |text: &str| text.parse::<EnvironmentName>().unwrap_err().to_string();
        assert_eq!(why("a"), "name has 1 characters, at least 2 are needed");
        assert_eq!(
            why("1a"),
            "name begins with '1'; it must begin with one of a-z"
        );
        assert_eq!(
            why("a1234567890abcdef"),
            "name has 17 characters, at most 16 are allowed"
        );
        for bad in ["", "a-", "-a", "A1", "a_b", "ä1", "a b"] {
            assert!(bad.parse::<EnvironmentName>().is_err(), "{bad}");
        }
    }
}
