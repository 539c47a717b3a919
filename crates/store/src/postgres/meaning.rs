//! What an error of PostgreSQL means for us.

use crate::error::Error;
use std::error::Error as _;
use std::sync::Arc;
use tokio_postgres::error::SqlState;

pub(super) fn lost() -> Error {
    Error::Unreachable {
        cause: Arc::new(std::io::Error::from(std::io::ErrorKind::NotConnected)),
    }
}

pub(super) fn unreachable(error: tokio_postgres::Error) -> Error {
    Error::Unreachable {
        cause: Arc::new(error),
    }
}

/// Says what an error of PostgreSQL means for us.
pub(super) fn meaning(error: tokio_postgres::Error) -> Error {
    let Some(code) = error.code().cloned() else {
        let broken = error
            .source()
            .is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        return if error.is_closed() || broken {
            unreachable(error)
        } else {
            Error::Other {
                attempted: "read or write the database",
                cause: Some(Arc::new(error)),
            }
        };
    };
    let said = error.as_db_error().map(|error| error.message().to_owned());
    let class = code.code().get(..2).unwrap_or_default();
    if code == SqlState::DISK_FULL {
        Error::Full
    } else if code == SqlState::READ_ONLY_SQL_TRANSACTION {
        Error::ReadOnly
    } else if matches!(class, "08" | "57") && code != SqlState::QUERY_CANCELED
        || code == SqlState::TOO_MANY_CONNECTIONS
        || code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
    {
        unreachable(error)
    } else if class == "40"
        || code == SqlState::LOCK_NOT_AVAILABLE
        || code == SqlState::QUERY_CANCELED
    {
        Error::Contended {
            cause: Arc::new(error),
        }
    } else if matches!(class, "28" | "3D") || code == SqlState::INSUFFICIENT_PRIVILEGE {
        Error::Denied {
            said: said.unwrap_or_default(),
        }
    } else {
        Error::Other {
            attempted: "read or write the database",
            cause: Some(Arc::new(error)),
        }
    }
}
