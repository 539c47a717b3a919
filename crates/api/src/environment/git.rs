//! Git services on the wire: whose requests have environments, and what was decided about one.

use super::ValueLevels;
use model::environment::config::{Edit, LevelEdits};
use model::environment::git;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Which git service tells of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GitService {
    /// GitHub, or GitHub Enterprise.
    Github,
    /// GitLab.
    Gitlab,
    /// Gitea, or Forgejo.
    Gitea,
}

impl GitService {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Gitea => "gitea",
        }
    }
}

impl From<git::Service> for GitService {
    fn from(service: git::Service) -> Self {
        match service {
            git::Service::Github => Self::Github,
            git::Service::Gitlab => Self::Gitlab,
            git::Service::Gitea => Self::Gitea,
        }
    }
}

impl From<GitService> for git::Service {
    fn from(service: GitService) -> Self {
        match service {
            GitService::Github => Self::Github,
            GitService::Gitlab => Self::Gitlab,
            GitService::Gitea => Self::Gitea,
        }
    }
}

/// What becomes of requests that come from forks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GitForks {
    /// They have no environments.
    #[default]
    Ignore,
    /// They have environments that are given nothing secret, now or later.
    WithoutSecrets,
}

impl GitForks {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::WithoutSecrets => "without-secrets",
        }
    }
}

impl From<git::Forks> for GitForks {
    fn from(forks: git::Forks) -> Self {
        match forks {
            git::Forks::Ignore => Self::Ignore,
            git::Forks::WithoutSecrets => Self::WithoutSecrets,
        }
    }
}

impl From<GitForks> for git::Forks {
    fn from(forks: GitForks) -> Self {
        match forks {
            GitForks::Ignore => Self::Ignore,
            GitForks::WithoutSecrets => Self::WithoutSecrets,
        }
    }
}

/// A repository whose pull or merge requests have environments.
///
/// Its service calls `POST /api/v1/projects/{project}/git/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitSource {
    /// What people call it; a part of the address that its service calls.
    pub name: String,
    /// Who tells of requests.
    pub service: GitService,
    /// Of which repository, as `owner/name`.
    pub repository: String,
    /// What proves that it is them: an entry of a secret of the project, as `NAME/ENTRY`.
    pub secret: String,
    /// Where the API of the service begins, to tell it how environments are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// What opens that: an entry of a secret of the project, as `NAME/ENTRY`. Without it nothing is
    /// told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Only requests whose branch fits one of these, like `feature/*`; without any, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
    /// Only requests with one of these labels; without any, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Only requests that one of these opened; without any, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// What becomes of requests from forks; they are ignored as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forks: Option<GitForks>,
    /// What environments are called; `{branch}` as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Which tag they are given; `{sha}` as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// What they begin with, besides the tag.
    #[serde(default, skip_serializing_if = "ValueLevels::is_empty")]
    pub set: ValueLevels,
    /// Settings that are given secrets of the project, each as `NAME/ENTRY`; those of forks are not.
    #[serde(default, skip_serializing_if = "ValueLevels::is_empty")]
    pub secrets: ValueLevels,
    /// What they are found by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment_labels: BTreeMap<String, String>,
    /// How long each may be up; without it, any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u32>,
}

impl From<git::Source> for GitSource {
    fn from(source: git::Source) -> Self {
        let git::Source {
            name,
            service,
            repository,
            secret,
            report,
            rules,
            environment,
            tag,
            beginning,
        } = source;
        let git::Rules {
            branches,
            labels,
            authors,
            forks,
        } = rules;
        let git::Beginning {
            edits,
            secrets: lent,
            labels: environment_labels,
            expires,
        } = beginning;
        let mut secrets = ValueLevels::default();
        for git::Lent { level, key, secret } in lent {
            let of = match level {
                model::environment::config::Level::Application => &mut secrets.application,
                model::environment::config::Level::Deployment => &mut secrets.deployment,
            };
            of.insert(key.into(), secret.to_string());
        }
        let (api, token) = report.map(|report| (report.api, report.token)).unzip();
        Self {
            name: name.into(),
            service: service.into(),
            repository: repository.into(),
            secret: secret.to_string(),
            api,
            token: token.map(|token| token.to_string()),
            branches: branches.into_iter().map(Into::into).collect(),
            labels,
            authors,
            forks: Some(forks.into()),
            environment: Some(environment.into()),
            tag: Some(tag.into()),
            set: ValueLevels {
                application: values(edits.application),
                deployment: values(edits.deployment),
            },
            secrets,
            environment_labels,
            expires_in_seconds: expires
                .map(|span| u32::try_from(span.as_secs()).unwrap_or(u32::MAX)),
        }
    }
}

/// The values of settings that have one.
fn values(edits: LevelEdits) -> BTreeMap<String, String> {
    let value = |(key, edit): (_, Edit)| match edit {
        Edit::Set(value) => Some((String::from(key), String::from(value))),
        Edit::Secret | Edit::Removed => None,
    };
    edits.into_iter().filter_map(value).collect()
}

/// Where an environment comes from that follows a request of a git service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OriginView {
    /// By which source of the project.
    pub source: String,
    /// Of which repository.
    pub repository: String,
    /// The number of the request there.
    pub request: u64,
    /// Its branch.
    pub branch: String,
    /// The commit that the environment was last given.
    pub sha: String,
    /// Where people read it.
    pub url: String,
    /// Whether it comes from a fork: then nothing secret is ever given to it.
    pub fork: bool,
}

impl From<git::Origin> for OriginView {
    fn from(origin: git::Origin) -> Self {
        let git::Origin {
            source,
            repository,
            request,
            branch,
            sha,
            url,
            fork,
        } = origin;
        Self {
            source: source.into(),
            repository: repository.into(),
            request,
            branch,
            sha,
            url,
            fork,
        }
    }
}

/// What is decided about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GitDecision {
    /// It is given an environment.
    Create,
    /// Its environment is given its commit.
    Update,
    /// Its environment is brought back from the archive, with its commit.
    Restore,
    /// Its environment is archived.
    Archive,
    /// Nothing, and `reason` says why.
    Ignore,
    /// Something is decided later, and `reason` says when.
    Later,
}

impl GitDecision {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Restore => "restore",
            Self::Archive => "archive",
            Self::Ignore => "ignore",
            Self::Later => "later",
        }
    }
}

/// What is made of something that a git service told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitAnswer {
    /// What is decided; it is done soon.
    pub decision: GitDecision,
    /// Which environment that is, or is likely to be; null where there is none.
    pub environment: Option<String>,
    /// Why.
    pub reason: String,
}
