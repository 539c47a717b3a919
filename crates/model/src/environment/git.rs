//! Environments that follow the requests of a git service: which requests, and what is made of
//! each.
//!
//! A *source* is a repository whose service tells us of its pull or merge requests. Each of these
//! that the rules of the source take has an environment of its own while it is open.

pub mod event;
pub mod pattern;
pub mod report;
pub mod template;

use super::config::{Edit, Edits, Key, Level};
use crate::name::Name;
use crate::secret::SecretRef;
use event::Event;
use pattern::Pattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use template::{NameTemplate, TagTemplate};

/// How labels begin that say which request an environment follows.
pub const LABELS: &str = "git/";

/// Which git service tells us of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// GitHub, or GitHub Enterprise.
    Github,
    /// GitLab.
    Gitlab,
    /// Gitea, or Forgejo.
    Gitea,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Github, Self::Gitlab, Self::Gitea];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Gitea => "gitea",
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A repository as its service calls it: `owner/name`, or with more groups before the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Repository(String);

/// Why a text is no repository.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "a repository is written like `owner/name`, of a-z, A-Z, 0-9, `.`, `_` and `-`, in at most {} characters",
    Repository::LEN_MAX
)]
pub struct NoRepository;

impl Repository {
    /// The longest path of a repository.
    pub const LEN_MAX: usize = 255;

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is that one: services tell upper from lower case when they show it, and not otherwise.
    pub fn is(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl std::fmt::Display for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for Repository {
    type Error = NoRepository;

    fn try_from(text: String) -> Result<Self, NoRepository> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let part =
            |part: &str| !part.is_empty() && part != "." && part != ".." && part.chars().all(plain);
        let parts = text.split('/').count();
        let fits = parts >= 2 && text.len() <= Self::LEN_MAX && text.split('/').all(part);
        fits.then_some(Self(text)).ok_or(NoRepository)
    }
}

impl std::str::FromStr for Repository {
    type Err = NoRepository;

    fn from_str(text: &str) -> Result<Self, NoRepository> {
        text.to_owned().try_into()
    }
}

impl From<Repository> for String {
    fn from(repository: Repository) -> Self {
        repository.0
    }
}

/// What becomes of requests that come from a copy of the repository, which anybody may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forks {
    /// They have no environments.
    #[default]
    Ignore,
    /// They have environments that are given nothing secret, now or later.
    WithoutSecrets,
}

impl Forks {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::WithoutSecrets => "without-secrets",
        }
    }
}

/// Which requests have environments: those that fit every list that names anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Whose branch fits one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Pattern>,
    /// That have one of these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// That one of these opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// What becomes of those from elsewhere.
    #[serde(default)]
    pub forks: Forks,
}

/// Why a request has no environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unfit {
    /// It comes from a copy of the repository.
    Fork,
    /// Its branch fits no pattern.
    Branch,
    /// It has none of the labels.
    Label,
    /// Nobody of those opened it.
    Author,
}

impl Unfit {
    /// As one clause.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fork => "it comes from a fork, and the source ignores forks",
            Self::Branch => "its branch fits none of the source's patterns",
            Self::Label => "it has none of the labels that the source asks for",
            Self::Author => "the source does not take requests of its author",
        }
    }
}

impl Rules {
    /// Whether a request has an environment while it is open.
    pub fn fit(&self, event: &Event) -> Result<(), Unfit> {
        let branch = |pattern: &Pattern| pattern.fits(&event.branch);
        let author = |name: &String| {
            let author = event.author.as_deref();
            author.is_some_and(|author| author.eq_ignore_ascii_case(name))
        };
        if event.fork && self.forks == Forks::Ignore {
            return Err(Unfit::Fork);
        }
        if !self.branches.is_empty() && !self.branches.iter().any(branch) {
            return Err(Unfit::Branch);
        }
        if !self.labels.is_empty() && !self.labels.iter().any(|one| event.labels.contains(one)) {
            return Err(Unfit::Label);
        }
        if !self.authors.is_empty() && !self.authors.iter().any(author) {
            return Err(Unfit::Author);
        }
        Ok(())
    }
}

/// Where a service is told how environments are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Where its API begins: `https://api.github.com`, `https://gitlab.example.org/api/v4`.
    pub api: String,
    /// What opens it.
    pub token: SecretRef,
}

/// A setting that is given a secret of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lent {
    /// Of which configuration.
    pub level: Level,
    /// Which setting.
    pub key: Key,
    /// What it is given.
    pub secret: SecretRef,
}

/// What every environment of a source begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beginning {
    /// What is made of the defaults; nothing of it is secret.
    #[serde(default)]
    pub edits: Edits,
    /// Settings that are given secrets; those of forks are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Lent>,
    /// What it is found by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How long it may be up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Duration>,
}

/// A repository whose requests have environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What people call it; a part of the address that its service calls.
    pub name: Name,
    /// Who tells us.
    pub service: Service,
    /// Of which repository.
    pub repository: Repository,
    /// What proves that it is them.
    pub secret: SecretRef,
    /// Where they are told how environments are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Which requests have environments.
    #[serde(default)]
    pub rules: Rules,
    /// What these are called.
    #[serde(default)]
    pub environment: NameTemplate,
    /// Which tag they are given.
    #[serde(default)]
    pub tag: TagTemplate,
    /// What they begin with.
    #[serde(default)]
    pub beginning: Beginning,
}

impl Source {
    /// The most sources of a project.
    pub const COUNT_MAX: usize = 50;

    /// What an environment of this request begins with; `tag` is the setting that is its tag.
    pub fn edits(&self, event: &Event, tag: &Key) -> Edits {
        let mut edits = self.beginning.edits.clone();
        let lent = self.beginning.secrets.iter().filter(|_| !event.fork);
        for Lent { level, key, .. } in lent {
            edits.of_mut(*level).insert(key.clone(), Edit::Secret);
        }
        self.tagged(event, tag, &edits)
    }

    /// The same edits with the tag of this request.
    pub fn tagged(&self, event: &Event, tag: &Key, edits: &Edits) -> Edits {
        let mut edits = edits.clone();
        let value = Edit::Set(self.tag.fill(&self.name, event));
        edits.application.insert(tag.clone(), value);
        edits
    }

    /// Where an environment of this request comes from.
    pub fn origin(&self, event: &Event) -> Origin {
        Origin {
            source: self.name.clone(),
            repository: event.repository.clone(),
            request: event.request,
            branch: event.branch.clone(),
            sha: event.sha.clone(),
            url: event.url.clone(),
            fork: event.fork,
        }
    }
}

/// Where an environment comes from that follows a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// By which source.
    pub source: Name,
    /// Of which repository.
    pub repository: Repository,
    /// The number of the request there.
    pub request: u64,
    /// Its branch.
    pub branch: String,
    /// The commit that the environment was last given.
    pub sha: String,
    /// Where people read it.
    pub url: String,
    /// Whether it comes from a copy of the repository: then nothing secret is ever given to it.
    pub fork: bool,
}

#[cfg(test)]
mod tests;
