//! Problems with git services and what follows their requests.

use axum::http::StatusCode;
use model::environment::EnvironmentName;
use model::environment::git::Service;
use model::environment::git::event::Unread;

use super::Problem;

impl Problem {
    /// Nobody knows who sent this: the same whatever is wrong.
    pub(crate) fn git_unproven() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "GIT-001",
            "not proven who sent this",
            "there is no such source of a project, or this is not signed with its secret",
            "compare the address with the sources in `slipway env settings show`, and the secret of the webhook with the one that the source names",
        )
    }

    /// It is proven who sent it, and nobody can read it.
    pub(crate) fn git_unread(service: Service, error: &Unread) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "GIT-002",
            "not what the service sends",
            format!("this cannot be read as a request of {service}: {error}"),
            "compare the `service` of the source with who sends this; a webhook of another service needs a source of its own",
        )
    }

    /// What is deployed there comes from anybody.
    pub(crate) fn git_fork(name: &EnvironmentName, detail: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "GIT-003",
            "no secrets for forks",
            format!("environment `{name}`: {detail}"),
            "what a fork deploys could tell the secret to its author; push the branch to the repository itself, or create an environment by hand",
        )
    }
}
