//! Problems with environments.

use axum::http::StatusCode;
use model::environment::status::{Deed, Status};
use model::environment::{EnvironmentName, NameError};
use model::fault::{Fault, counted};
use model::id::{ActionId, DeliveryId};
use model::name::Name;
use plan::environment::{Exit, Refusal};
use store::EnvironmentError;

use super::Problem;
use crate::advise::{Trouble, Unadvised};

impl Problem {
    /// What it is called cannot be a name.
    pub(crate) fn environment_name(error: &NameError) -> Self {
        let mut problem = Self::new(
            StatusCode::BAD_REQUEST,
            "ENV-001",
            "not a name of an environment",
            format!("name: {error}"),
            format!(
                "write {} to {} of a-z, 0-9 and, inside, hyphens, beginning with a letter",
                EnvironmentName::LEN_MIN,
                EnvironmentName::LEN_MAX
            ),
        );
        problem.0.faults.push(api::FaultView {
            path: "name".to_owned(),
            code: "format".to_owned(),
            message: error.to_string(),
        });
        problem
    }

    /// There is one of that name, which may rest.
    pub(crate) fn environment_exists(name: &EnvironmentName, status: Status) -> Self {
        let hint = if status == Status::Archived {
            format!(
                "bring it back with `slipway env restore {name}`, remove it with `slipway env cleanup {name}`, or choose another name"
            )
        } else {
            format!("change it with `slipway env update {name}`, or choose another name")
        };
        Self::new(
            StatusCode::CONFLICT,
            "ENV-002",
            "environment exists",
            format!("environment `{name}` exists already, and is {status}"),
            hint,
        )
    }

    /// There is none of that name.
    pub(crate) fn no_environment(name: &EnvironmentName) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "ENV-003",
            "no such environment",
            format!("there is no environment `{name}`"),
            "list them with `slipway env list`",
        )
    }

    /// It cannot be done now; what can is told.
    pub(crate) fn environment_refused(
        name: &EnvironmentName,
        refusal: &Refusal,
        exits: &[Exit],
    ) -> Self {
        let detail = |told: &dyn std::fmt::Display| format!("environment `{name}`: {told}");
        match refusal {
            Refusal::Busy { .. } => Self::new(
                StatusCode::CONFLICT,
                "ENV-004",
                "environment is busy",
                detail(refusal),
                format!(
                    "wait with `slipway env wait {name}`, or end it with `slipway env cancel {name}`"
                ),
            ),
            Refusal::Status { .. } => Self::new(
                StatusCode::CONFLICT,
                "ENV-005",
                "not possible now",
                detail(refusal),
                ways(exits),
            ),
            Refusal::Protected { .. } => Self::new(
                StatusCode::CONFLICT,
                "ENV-006",
                "environment is protected",
                detail(refusal),
                format!(
                    "if it may go, take its protection away with `slipway env update {name} --no-protect`, or let an operator force it"
                ),
            ),
        }
    }

    /// There would be more than there may be.
    fn environment_quota(detail: String) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "ENV-007",
            "too many environments",
            detail,
            "remove what nobody needs, or archive it where only those count that are up; or let an operator raise the limit: that of the quota with `slipway project quota`, that of those that are up with `slipway env settings set --up-max`",
        )
    }

    /// There is no such message, or not any more.
    pub(crate) fn no_delivery(delivery: DeliveryId) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "ENV-018",
            "no such delivery",
            format!("there is no delivery {delivery}"),
            "list them with `slipway env deliveries list`; those that ended are kept for 14 days",
        )
    }

    /// It need not be sent again.
    pub(crate) fn delivered(delivery: DeliveryId) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "ENV-019",
            "delivery has arrived",
            format!("delivery {delivery} has arrived already"),
            "send another with `slipway env settings test-notify TARGET`",
        )
    }

    /// Nobody of that name is told anything.
    pub(crate) fn no_target(target: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "ENV-020",
            "no such target",
            format!("the project's settings name no target `{target}`"),
            "list them with `slipway env settings show`, or add it with `slipway env settings notify`",
        )
    }

    /// Names of settings that are none.
    pub(crate) fn environment_keys(faults: Vec<Fault>) -> Self {
        let mut problem = Self::new(
            StatusCode::BAD_REQUEST,
            "ENV-008",
            "not a name of a setting",
            told(&faults),
            "parts of a name are joined by single dots, as in `image.tag`; nothing was changed",
        );
        problem.0.faults = faults.into_iter().map(Into::into).collect();
        problem
    }

    /// Values that no program can be given.
    pub(crate) fn environment_values(faults: Vec<Fault>) -> Self {
        let mut problem = Self::new(
            StatusCode::BAD_REQUEST,
            "ENV-009",
            "not a value of a setting",
            told(&faults),
            "any text will do that has no NUL and is shorter; a longer one belongs in a file that the application reads",
        );
        problem.0.faults = faults.into_iter().map(Into::into).collect();
        problem
    }

    /// The project's own check says no.
    pub(crate) fn environment_judged(said: &str) -> Self {
        let said = said.trim();
        let detail = if said.is_empty() {
            "the project's check does not take this configuration, and does not say why"
        } else {
            said
        };
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "ENV-010",
            "configuration refused",
            detail,
            "that is what the project's check said: its script `config_check`, or Helm; nothing was changed",
        )
    }

    /// Settings have values that they cannot have.
    pub(crate) fn environment_wrong(faults: Vec<Fault>) -> Self {
        let detail = match faults.as_slice() {
            [only] => only.to_string(),
            many => format!(
                "{} settings have values that they cannot have",
                counted(many)
            ),
        };
        let mut problem = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "ENV-021",
            "not what the chart takes",
            detail,
            "see what each setting may be with `slipway env keys`; nothing was changed",
        );
        problem.0.faults = faults.into_iter().map(Into::into).collect();
        problem
    }

    /// Scripts did not answer as they should. What the project's own scripts do wrong stands in the
    /// way of the request; what is wrong with this machine or the way to others does not.
    pub(crate) fn unadvised(unadvised: Unadvised) -> Self {
        let Unadvised {
            trouble,
            what,
            hint,
        } = unadvised;
        let told = StatusCode::UNPROCESSABLE_ENTITY;
        let (status, code, title) = match trouble {
            Trouble::Unreadable => (told, "ENV-031", "script told no configuration"),
            Trouble::NotText => (told, "ENV-032", "script told no text"),
            Trouble::TooMuch => (told, "ENV-033", "script told too much"),
            Trouble::Hung => (StatusCode::CONFLICT, "ENV-034", "script took too long"),
            Trouble::Early => (StatusCode::CONFLICT, "ENV-039", "init has not ended"),
            Trouble::Missing => (StatusCode::CONFLICT, "ENV-035", "nothing to deploy with"),
            Trouble::Failed => (StatusCode::CONFLICT, "ENV-036", "script failed"),
            Trouble::Unfit => (told, "ENV-037", "cannot be handed over"),
            Trouble::Ours => (StatusCode::BAD_GATEWAY, "ENV-011", "scripts did not answer"),
        };
        let hint = if matches!(trouble, Trouble::Early | Trouble::Unfit | Trouble::Ours) {
            format!("{hint}; nothing was changed")
        } else {
            format!(
                "{hint}; nothing was changed. `slipway env scripts check DIR` tries all scripts of a directory"
            )
        };
        Self::new(status, code, title, what, hint)
    }

    /// The project says nothing of environments.
    pub(crate) fn no_environment_settings(project: &Name, status: StatusCode) -> Self {
        Self::new(
            status,
            "ENV-012",
            "no settings for environments",
            format!("project `{project}` has no settings for environments"),
            "let an operator say where they are placed and who deploys them: `slipway env settings set`",
        )
    }

    /// There is no way to hand over what is secret.
    pub(crate) fn no_secret_delivery(project: &Name) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "ENV-013",
            "no way to hand over secrets",
            format!("project `{project}` does not say how its scripts are given what is secret"),
            "let an operator say so with `slipway env settings set --secret-delivery file` (or `env`; `argv` for scripts that know nothing else); nothing was changed",
        )
    }

    /// Somebody else was quicker.
    pub(crate) fn environment_stale(expected: u64, found: u64) -> Self {
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "ENV-014",
            "not the current generation",
            format!("it has generation {found}, and not {expected}"),
            "read the environment again, and send the change with its generation in If-Match",
        )
    }

    /// There is no such action at that environment.
    pub(crate) fn no_action(name: &EnvironmentName, action: ActionId) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "ENV-015",
            "no such action",
            format!("environment `{name}` has no action `{action}`"),
            format!("list them with `slipway env info {name}`"),
        )
    }

    /// A setting is secret, and nobody has a value for it.
    pub(crate) fn no_secret_value(detail: String) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "ENV-016",
            "secret setting without a value",
            detail,
            "give it one with `slipway env update NAME --secret KEY`; values that were replaced or forgotten are not kept",
        )
    }

    /// What an action was given cannot be given again.
    fn sealed_since(name: &EnvironmentName, detail: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "ENV-038",
            "secret settings have changed since",
            format!("environment `{name}`: {detail}"),
            "take the values of today with `--secrets-as-now` (`secretsAsNow`), or set those of then first with `slipway env update NAME --secret KEY`",
        )
    }

    /// Nothing is being done that could be ended.
    pub(crate) fn nothing_to_cancel(name: &EnvironmentName) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "ENV-017",
            "nothing to cancel",
            format!("nothing is being done to environment `{name}`"),
            format!("see how it is with `slipway env info {name}`"),
        )
    }

    /// Environments of another system that cannot be taken over as they are told.
    pub(crate) fn cannot_be_taken(faults: Vec<Fault>) -> Self {
        let mut problem = Self::new(
            StatusCode::BAD_REQUEST,
            "IMPORT-004",
            "cannot be taken over",
            told(&faults),
            "correct or leave out what is listed, and send the rest again; nothing was taken over",
        );
        problem.0.faults = faults.into_iter().map(Into::into).collect();
        problem
    }

    /// The configuration that counted at an action elsewhere is not known.
    pub(crate) fn imported_action(name: &EnvironmentName, action: ActionId) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "IMPORT-006",
            "configuration is not known",
            format!(
                "action `{action}` of environment `{name}` was done elsewhere, where nobody wrote down what came of defaults and edits"
            ),
            format!(
                "its edits are told by the action itself: set them with `slipway env update {name}`"
            ),
        )
    }

    /// What the store said about many environments at once.
    pub(crate) fn environments(error: EnvironmentError) -> Self {
        let detail = error.to_string();
        match error {
            EnvironmentError::NoProject { project } => Self::no_project(&project),
            EnvironmentError::NoSettings { project } => {
                Self::no_environment_settings(&project, StatusCode::CONFLICT)
            }
            EnvironmentError::Quota { .. } => Self::environment_quota(detail),
            EnvironmentError::KeyReused { .. } => Self::key_reused(),
            EnvironmentError::Store(error) => error.into(),
            EnvironmentError::Exists { .. }
            | EnvironmentError::NotFound { .. }
            | EnvironmentError::Refused(_)
            | EnvironmentError::Stale { .. }
            | EnvironmentError::Edited
            | EnvironmentError::Labels { .. }
            | EnvironmentError::Unsealed { .. }
            | EnvironmentError::SealedSince { .. }
            | EnvironmentError::Fork { .. }
            | EnvironmentError::Elsewhere
            | EnvironmentError::Overtaken
            | EnvironmentError::KeyGone { .. }
            | EnvironmentError::NoAction { .. }
            | EnvironmentError::Ended { .. } => {
                Self::busy("others changed the same things; try again")
            }
        }
    }

    /// What the store said about an environment of that name.
    pub(crate) fn environment(name: &EnvironmentName, error: EnvironmentError) -> Self {
        let detail = error.to_string();
        match error {
            EnvironmentError::NoProject { project } => Self::no_project(&project),
            EnvironmentError::NoSettings { project } => {
                Self::no_environment_settings(&project, StatusCode::CONFLICT)
            }
            EnvironmentError::Exists { name, status } => Self::environment_exists(&name, status),
            EnvironmentError::NotFound { name } => Self::no_environment(&name),
            EnvironmentError::Refused(refusal) => Self::environment_refused(name, &refusal, &[]),
            EnvironmentError::Quota { .. } => Self::environment_quota(detail),
            EnvironmentError::Stale { expected, found } => Self::environment_stale(expected, found),
            // Whoever changes settings has something done, which others may still see.
            EnvironmentError::Edited => {
                let deed = Deed::Update;
                Self::environment_refused(name, &Refusal::Busy { deed }, &[])
            }
            EnvironmentError::Labels { .. } => Self::parameter("labels", detail),
            EnvironmentError::Unsealed { .. } => Self::no_secret_value(detail),
            EnvironmentError::SealedSince { .. } => Self::sealed_since(name, &detail),
            EnvironmentError::Fork { .. } => Self::git_fork(name, &detail),
            EnvironmentError::Elsewhere
            | EnvironmentError::Overtaken
            | EnvironmentError::KeyGone { .. } => {
                Self::busy("others changed the same things; try again")
            }
            EnvironmentError::NoAction { action } => Self::no_action(name, action),
            EnvironmentError::Ended { .. } => Self::nothing_to_cancel(name),
            EnvironmentError::KeyReused { .. } => Self::key_reused(),
            EnvironmentError::Store(error) => error.into(),
        }
    }
}

/// What can be done instead.
fn ways(exits: &[Exit]) -> String {
    let ways: Vec<_> = exits
        .iter()
        .map(|exit| match exit {
            Exit::Cancel => "`cancel`".to_owned(),
            Exit::Do(deed) => format!("`{deed}`"),
            Exit::Force(deed) => format!("`{deed}` with force"),
        })
        .collect();
    if ways.is_empty() {
        return "look at it again with `slipway env info NAME`".to_owned();
    }
    format!("possible now: {}", ways.join(", "))
}

fn told(faults: &[Fault]) -> String {
    match faults {
        [only] => only.to_string(),
        many => format!("{} settings cannot be used", many.len()),
    }
}
