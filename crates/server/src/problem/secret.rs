//! Problems of sealing and opening. None of them says anything of a value.

use axum::http::StatusCode;
use model::fault::Fault;
use model::name::Name;
use vault::Error;

use super::Problem;

impl From<Error> for Problem {
    /// The vault's own code and hint; whatever it is, it concerns nothing but secrets.
    fn from(error: Error) -> Self {
        let (status, title) = match error {
            Error::Store(error) => return error.into(),
            Error::NoProject { project } => return Self::no_project(&project),
            Error::TooMany { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "too many entries"),
            Error::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "value too large"),
            Error::Read { .. }
            | Error::Write { .. }
            | Error::Form { .. }
            | Error::Missing { .. }
            | Error::WrongKey { .. }
            | Error::DamagedKey { .. }
            | Error::UnknownKey { .. }
            | Error::Damaged { .. }
            | Error::NoProgram
            | Error::Start { .. }
            | Error::Speak { .. }
            | Error::Failed { .. }
            | Error::Answer { .. }
            | Error::Slow { .. }
            | Error::Random(_)
            | Error::Unopened
            | Error::Closed(_)
            | Error::NoKey
            | Error::Overtaken => (StatusCode::SERVICE_UNAVAILABLE, "secrets out of reach"),
        };
        Self::new(status, error.code(), title, error.to_string(), error.hint())
    }
}

impl Problem {
    /// What clusters need would go.
    pub(crate) fn needed(secret: &Name, faults: Vec<Fault>) -> Self {
        let mut problem = Self::new(
            StatusCode::CONFLICT,
            "SEAL-014",
            "secret is in use",
            format!("secret {secret} is in use, and what uses it could not go on without it"),
            "nothing was changed; first remove what uses it, or repeat it with `--force`",
        );
        problem.0.faults = faults.into_iter().map(Into::into).collect();
        problem
    }
}
