//! Problems about who asks, and about the project they ask in.

use std::time::Duration;

use axum::http::StatusCode;
use model::access::Role;
use model::name::Name;
use store::ProjectError;

use super::Problem;
use crate::access::Refusal;

impl Problem {
    /// Nobody said who they are.
    pub(crate) fn no_token() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "API-003",
            "unauthorised",
            "the request shows no token",
            "send `Authorization: Bearer TOKEN`; the first token is in admin.token in the data directory of the server",
        )
    }

    /// Somebody showed a token that opens nothing.
    pub(crate) fn token(refusal: Refusal) -> Self {
        let (code, title, detail, hint) = match refusal {
            Refusal::Unknown => (
                "AUTH-001",
                "unknown token",
                "nobody ever made the token that the request shows",
                "copy the whole token, from `slipway_` on, and ask the server that it was made for",
            ),
            Refusal::Expired => (
                "AUTH-002",
                "token expired",
                "the time of the token that the request shows is over",
                "let an administrator make another one with `slipway token create`",
            ),
            Refusal::Revoked => (
                "AUTH-003",
                "token revoked",
                "the token that the request shows was revoked",
                "let an administrator make another one with `slipway token create`",
            ),
        };
        Self::new(StatusCode::UNAUTHORIZED, code, title, detail, hint)
    }

    /// Too many tokens that open nothing came from one address.
    pub(crate) fn too_many_failures(wait: Duration) -> Self {
        // A part of a second is a second: who comes back too early is refused again.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let mut problem = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "AUTH-004",
            "too many failures",
            "too many tokens that open nothing came from this address within a minute",
            format!(
                "correct the token and try again in {seconds} s; a good token is never refused for this"
            ),
        );
        problem.1 = Some(seconds);
        problem
    }

    /// The caller's role is not enough.
    pub(crate) fn role(needed: Role, has: Role) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "AUTH-005",
            "role too low",
            format!("this needs the role {needed}, and the token has the role {has}"),
            format!(
                "let somebody do it whose token has the role {needed}, or ask an administrator for such a token"
            ),
        )
    }

    /// The caller's token is for another project; whether this one exists is not told.
    pub(crate) fn other_project() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "AUTH-006",
            "another project",
            "the token is good for another project than the one asked for",
            "name your own project with --project, or ask an administrator for a token of this one",
        )
    }

    /// The caller's token is for one project, and this concerns all.
    pub(crate) fn all_projects() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "AUTH-007",
            "concerns all projects",
            "this needs a token for all projects, and the token is good for one",
            "ask somebody whose token was made with `--all-projects`",
        )
    }

    /// Nobody gives more than they have.
    pub(crate) fn beyond_own(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "AUTH-008",
            "more than you have",
            detail,
            "ask for the role that you have or a lower one, in a project that your token is good for, and for no longer",
        )
    }

    /// There is no such project.
    pub(crate) fn no_project(name: &Name) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "PROJECT-001",
            "no such project",
            format!("there is no project `{name}`"),
            "list them with `slipway get projects`; an administrator makes one with `slipway project create`",
        )
    }

    /// The project would have more than it may.
    pub(super) fn quota(detail: String) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "PROJECT-002",
            "quota exceeded",
            detail,
            "remove what is not needed, or let an administrator raise it with `slipway project quota`",
        )
    }

    /// The project still has something.
    fn project_in_use(project: &Name, detail: String) -> Self {
        let hint = if *project == Name::default_project() {
            "remove another project; limits keep this one from being used"
        } else {
            "delete its manifests, environments and secrets, wait until its clusters are gone, revoke its tokens, then try again"
        };
        Self::new(
            StatusCode::CONFLICT,
            "PROJECT-003",
            "project in use",
            detail,
            hint,
        )
    }

    /// There is such a project, and there should be none.
    pub(crate) fn project_exists(name: &Name) -> Self {
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "PROJECT-004",
            "project exists",
            format!("there is a project `{name}` already"),
            "choose another name, or change its limits with `slipway project quota`",
        )
    }
}

impl From<ProjectError> for Problem {
    fn from(error: ProjectError) -> Self {
        let detail = error.to_string();
        match error {
            ProjectError::NotFound { project } => Self::no_project(&project),
            ProjectError::InUse { project, .. } => Self::project_in_use(&project, detail),
            ProjectError::Store(error) => error.into(),
        }
    }
}
