//! Whose modules machines are made with, where not the built-in ones.
//!
//! A manifest may name a branch or a tag, which leads to another commit tomorrow. Who looks at the
//! repository tells to which it leads ([`crate::observed::Fact::Commit`]), and machines remember the
//! one that they are made from: desired state never moves because somebody else's branch does.

use crate::name::Name;
use crate::secret::{EntryName, SecretRef};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of modules that need no description: the built-in ones.
pub const BUILT_IN: &str = "claudie-default-templates";

/// The entry of a secret with which a repository is opened.
pub const TOKEN: &str = "token";

/// The entry that says in whose name, where not [`USERNAME_USUAL`].
pub const USERNAME: &str = "username";

/// In whose name a repository is opened where the secret says nothing of it.
pub const USERNAME_USUAL: &str = "x-access-token";

/// Digits of a commit that people are shown.
const SHORT: usize = 10;

/// Modules with which a provider's machines are made.
///
/// Two references that are written alike are the same way of making machines, and two that are
/// not are two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
        /// The secret that opens it, where it is not open to everybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<Name>,
        /// The commit that a tag or a branch led to when it was decided to make machines from it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pinned: Option<Commit>,
    },
    /// Those that somebody described under a name, in documents that were stored before such
    /// descriptions were read.
    Named {
        /// The name.
        name: Name,
        /// Where it was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<Name>,
    },
}

/// A tag or a branch of a repository: somebody has to look to which commit it leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The repository, without a scheme.
    pub repository: String,
    /// What the tag or the branch is called.
    pub name: String,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.repository, self.name)
    }
}

/// One commit of a repository, by its hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Commit(String);

/// A text that is no hash of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a commit is 40 or 64 of the digits 0-9 and a-f")]
pub struct NoCommit;

impl Commit {
    /// All its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As many digits as people compare.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }

    /// Stands for one that somebody will look up: nobody knows it yet.
    pub fn to_come() -> Self {
        Self("0".repeat(40))
    }
}

impl FromStr for Commit {
    type Err = NoCommit;

    fn from_str(text: &str) -> Result<Self, NoCommit> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let fits = matches!(text.len(), 40 | 64) && text.bytes().all(digit);
        fits.then(|| Self(text.to_owned())).ok_or(NoCommit)
    }
}

impl TryFrom<String> for Commit {
    type Error = NoCommit;

    fn try_from(text: String) -> Result<Self, NoCommit> {
        text.parse()
    }
}

impl From<Commit> for String {
    fn from(commit: Commit) -> Self {
        commit.0
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Templates {
    /// What has to be looked up before anything is made with them; nothing where a hash is named.
    pub fn reference(&self) -> Option<Reference> {
        match self {
            Self::Repository {
                repository, commit, ..
            } if commit.parse::<Commit>().is_err() => Some(Reference {
                repository: repository.clone(),
                name: commit.clone(),
            }),
            Self::Repository { .. } | Self::Named { .. } => None,
        }
    }

    /// The commit that machines are made from, where it is known.
    pub fn leads_to(&self) -> Option<Commit> {
        match self {
            Self::Repository { commit, pinned, .. } => {
                commit.parse().ok().or_else(|| pinned.clone())
            }
            Self::Named { .. } => None,
        }
    }

    /// Whether nobody knows yet what machines would be made from.
    pub fn lacks_commit(&self) -> bool {
        self.reference().is_some() && self.leads_to().is_none()
    }

    /// Whether what it leads to may be another thing tomorrow: a tag or a branch that nobody has
    /// looked up yet, or a name.
    pub fn moves(&self) -> bool {
        match self {
            Self::Repository { .. } => self.lacks_commit(),
            Self::Named { .. } => true,
        }
    }

    /// The same, made from this commit; a hash stays what it is.
    #[must_use]
    pub fn at(mut self, commit: Option<Commit>) -> Self {
        let moves = self.reference().is_some();
        if let Self::Repository { pinned, .. } = &mut self {
            *pinned = commit.filter(|_| moves);
        }
        self
    }

    /// The entry of a secret without which the repository is not opened.
    pub fn secret(&self) -> Option<SecretRef> {
        match self {
            Self::Repository {
                secret: Some(name), ..
            } => Some(SecretRef {
                name: name.clone(),
                key: EntryName::try_from(TOKEN.to_owned()).ok(),
            }),
            Self::Repository { secret: None, .. } | Self::Named { .. } => None,
        }
    }

    /// The same, opened as the other is, where both are of one repository.
    #[must_use]
    pub fn opened_like(mut self, other: &Self) -> Self {
        if let Self::Repository {
            repository, secret, ..
        } = &mut self
            && let Self::Repository {
                repository: there,
                secret: opens,
                ..
            } = other
            && repository == there
        {
            secret.clone_from(opens);
        }
        self
    }

    /// Whether both are written alike, whatever commit that led to and whatever opens it.
    pub fn written_like(&self, other: &Self) -> bool {
        self.clone().at(None).opened_like(other) == other.clone().at(None)
    }

    /// Whether both lead to the same modules, though they may be written in two ways.
    pub fn same_modules(&self, other: &Self) -> bool {
        let place = |of: &Self| match of {
            Self::Repository {
                repository, path, ..
            } => Some((repository.clone(), path.clone())),
            Self::Named { .. } => None,
        };
        let commit = self.leads_to();
        commit.is_some() && commit == other.leads_to() && place(self) == place(other)
    }
}

impl fmt::Display for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository {
                repository,
                commit,
                path,
                secret: _,
                pinned,
            } => {
                let path = path.as_ref().map(|path| format!("//{path}"));
                write!(f, "{repository}{}@{commit}", path.unwrap_or_default())?;
                match pinned {
                    Some(pinned) => write!(f, " ({})", pinned.short()),
                    None => Ok(()),
                }
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

    fn at(commit: &str) -> Templates {
        Templates::Repository {
            repository: "example.org/a/b".to_owned(),
            commit: commit.to_owned(),
            path: None,
            secret: None,
            pinned: None,
        }
    }

    #[test]
    fn all_but_a_hash_has_to_be_looked_up() {
        for hash in ["0a".repeat(20), "f".repeat(64)] {
            assert_eq!(at(&hash).reference(), None);
            assert!(!at(&hash).moves());
            let pinned = at(&hash).at(Some(Commit::to_come()));
            assert_eq!(pinned, at(&hash), "a hash is never another one");
        }
        for moving in ["main", "v1", "v0.9.1-rc.1", &"0A".repeat(20), "0a1b2c3"] {
            assert!(at(moving).lacks_commit() && at(moving).moves(), "{moving}");
            let pinned = at(moving).at(Some(Commit::to_come()));
            assert!(!pinned.lacks_commit() && !pinned.moves(), "{moving}");
            assert!(pinned.written_like(&at(moving)) && pinned != at(moving));
        }
    }

    #[test]
    fn who_names_the_hash_of_what_runs_means_the_same() {
        let commit: Commit = "0a".repeat(20).parse().unwrap();
        let followed = at("main").at(Some(commit.clone()));
        assert!(followed.same_modules(&at(commit.as_str())));
        assert!(!followed.same_modules(&at(&"0b".repeat(20))));
        assert!(!at("main").same_modules(&at("main")), "nobody knows yet");
    }

    /// As it was stored before commits were looked up.
    #[test]
    fn what_was_stored_before_is_still_read_and_stays_as_it_is() {
        let stored = r#"{"repository":{"repository":"example.org/a/b","commit":"main"}}"#;
        let read: Templates = serde_json::from_str(stored).unwrap();
        assert_eq!(read, at("main"));
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        let wrong = stored.replace("\"main\"", "\"main\",\"pinned\":\"main\"");
        assert!(serde_json::from_str::<Templates>(&wrong).is_err());
    }
}
