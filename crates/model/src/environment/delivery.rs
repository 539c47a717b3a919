//! A message on its way to somebody outside.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Somebody will send it, for the first time or again.
    Waiting,
    /// Somebody is at it.
    Sending,
    /// Whoever it is for has taken it.
    Delivered,
    /// Nobody sends it any more, unless a person asks for it.
    GivenUp,
}

impl State {
    /// Every one of them.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Sending, Self::Delivered, Self::GivenUp];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::GivenUp => "given-up",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == text);
        found.ok_or_else(|| UnknownState {
            found: text.to_owned(),
        })
    }
}

/// A word that is no state of a delivery.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is not a state of a delivery")]
pub struct UnknownState {
    /// What was given.
    pub found: String,
}

/// What whoever a message is for made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// They took it.
    Taken,
    /// They could not, and may later; perhaps they said when.
    Later(Option<Duration>),
    /// They do not want it, and may change their mind.
    Refused,
    /// They never will.
    Never,
    /// There is nobody to be told.
    Nobody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert!("lost".parse::<State>().is_err());
    }
}
