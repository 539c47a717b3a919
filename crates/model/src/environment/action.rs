//! Something that is done to an environment, from the wish to its end.

use serde::{Deserialize, Serialize};

/// How far something that is done to an environment has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Somebody will take it up, for the first time or again.
    Waiting,
    /// Somebody is at it.
    Running,
    /// It did what it should.
    Done,
    /// It did not.
    Failed,
    /// Somebody called it off.
    Cancelled,
    /// It ended, and nobody knows how.
    Lost,
}

impl State {
    /// Every one of them.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Lost,
    ];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// Whether nothing more comes of it.
    pub const fn is_ended(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
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

/// A word that is no state of an action.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is not a state of an action")]
pub struct UnknownState {
    /// What was given.
    pub found: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::status::{Deed, Status};

    #[test]
    fn words_are_read_as_they_are_written() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        for deed in Deed::ALL {
            assert_eq!(deed.as_str().parse(), Ok(deed));
        }
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!(
            "undone".parse::<State>().unwrap_err().to_string(),
            "`undone` is not a state of an action"
        );
        assert!("gone".parse::<Deed>().is_err());
    }
}
