//! What a git service is told of the commit of a request.

use super::Repository;
use serde::{Deserialize, Serialize};

/// How the environment of a commit is, in the words that services know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is on its way.
    Pending,
    /// It runs.
    Success,
    /// It does not.
    Failure,
}

/// What a service is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reported {
    /// In which repository.
    pub repository: Repository,
    /// Of which commit.
    pub sha: String,
    /// How its environment is.
    pub verdict: Verdict,
    /// The same for people, in one line.
    pub description: String,
    /// Where the environment is reached, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Reported {
    /// The kind of message that such a one is.
    pub const KIND: &str = "git";

    /// The longest line that every service takes.
    pub const DESCRIPTION_LEN_MAX: usize = 140;

    /// A line that every service takes.
    pub fn line(text: &str) -> String {
        let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        plain.take(Self::DESCRIPTION_LEN_MAX).collect()
    }
}
