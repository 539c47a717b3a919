//! Whose modules machines are made with, where not the built-in ones.

use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Modules with which a provider's machines are made.
///
/// Two references that are written alike are the same way of making machines, and two that are
/// not are two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Templates {
    /// Those of a git repository.
    Repository {
        /// Where it is, without a scheme; it is fetched by https.
        repository: String,
        /// Which of its commits: a hash, a tag or a branch.
        commit: String,
        /// Where in the repository; absent means at its top.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Those that somebody described under a name, as the files say that people have.
    Named {
        /// The name.
        name: Name,
        /// Where it was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<Name>,
    },
}

impl Templates {
    /// Whether what it leads to may be another thing tomorrow: a branch, or a name. A hash never
    /// is, and neither is a tag that looks like a version.
    pub fn moves(&self) -> bool {
        match self {
            Self::Repository { commit, .. } => !is_hash(commit) && !is_version(commit),
            Self::Named { .. } => true,
        }
    }
}

fn is_hash(commit: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    matches!(commit.len(), 40 | 64) && commit.bytes().all(digit)
}

fn is_version(commit: &str) -> bool {
    let rest = commit.strip_prefix('v');
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

impl fmt::Display for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository {
                repository,
                commit,
                path,
            } => {
                let path = path.as_ref().map(|path| format!("//{path}"));
                write!(f, "{repository}{}@{commit}", path.unwrap_or_default())
            }
            Self::Named {
                name,
                namespace: Some(namespace),
            } => write!(f, "{namespace}/{name}"),
            Self::Named {
                name,
                namespace: None,
            } => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_moves_and_a_hash_or_a_version_does_not() {
        let at = |commit: &str| Templates::Repository {
            repository: "example.org/a/b".to_owned(),
            commit: commit.to_owned(),
            path: None,
        };
        for still in ["v1", "v0.9.1-rc.1", &"0a".repeat(20), &"f".repeat(64)] {
            assert!(!at(still).moves(), "{still}");
        }
        for moving in [
            "main",
            "release",
            "version",
            "v",
            &"0A".repeat(20),
            "0a1b2c3",
        ] {
            assert!(at(moving).moves(), "{moving}");
        }
    }
}
