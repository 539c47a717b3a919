//! Problems with backups.

use axum::http::StatusCode;
use store::DumpError;

use super::Problem;

impl Problem {
    /// The server has no room of its own to write a backup to.
    pub(crate) fn no_scratch(cause: std::io::Error) -> Self {
        DumpError::Write(cause.into()).into()
    }

    /// Another backup goes on.
    pub(crate) fn another_backup() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "BACKUP-008",
            "another backup goes on",
            "the server writes or sends another backup, and makes one at a time",
            "wait until it has ended, then try again",
        )
    }
}

impl From<DumpError> for Problem {
    fn from(error: DumpError) -> Self {
        let error = match error {
            DumpError::Store(error) => return error.into(),
            error @ (DumpError::Write(_)
            | DumpError::Read(_)
            | DumpError::NotOurs
            | DumpError::Newer { .. }
            | DumpError::Truncated { .. }
            | DumpError::Damaged
            | DumpError::Occupied) => error,
        };
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let cause = cause.unwrap_or_default();
        tracing::error!(
            code = error.code(),
            cause,
            "a backup could not be made: {error}"
        );
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            error.code(),
            "no backup was made",
            format!("the server {error}, in its own directory"),
            error.hint(),
        )
    }
}
