//! Why a question got no answer that could be used.

use crate::problem::{Exit, Problem};

/// Why a question got no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No address to speak to.
    #[error("`{server}` is not the address of a server")]
    Address {
        /// What was given.
        server: String,
    },
    /// A token that cannot be sent.
    #[error("the token has characters that no token has")]
    Token,
    /// Nobody is there.
    #[error("no server answers at {server}")]
    Unreachable {
        /// Where.
        server: String,
        /// What the network said.
        #[source]
        cause: reqwest::Error,
    },
    /// Somebody is there and takes too long.
    #[error("the server at {server} did not answer in time")]
    Timeout {
        /// Where.
        server: String,
        /// What the network said.
        #[source]
        cause: reqwest::Error,
    },
    /// The connection ended in the middle.
    #[error("the connection to {server} broke")]
    Broken {
        /// Where.
        server: String,
        /// What the network said.
        #[source]
        cause: reqwest::Error,
    },
    /// A live stream that has been silent for too long, or that ended.
    #[error("the live stream of {server} ended")]
    Ended {
        /// Where.
        server: String,
    },
    /// Somebody else's server.
    #[error("{server} answered with status {status} and without a reason")]
    Foreign {
        /// Where.
        server: String,
        /// The status.
        status: u16,
    },
    /// An answer that does not keep the contract.
    #[error("the answer of {server} is not what this version understands")]
    Answer {
        /// Where.
        server: String,
        /// What was wrong with it.
        #[source]
        cause: serde_json::Error,
    },
    /// An answer without end.
    #[error("the answer of {server} is longer than any that makes sense")]
    TooLong {
        /// Where.
        server: String,
    },
    /// The server said no, and why.
    #[error("{0}")]
    Problem(Box<Problem>),
}

impl Error {
    /// The stable name of the error.
    pub fn code(&self) -> &str {
        match self {
            Self::Address { .. } => "CLI-001",
            Self::Unreachable { .. } => "CLI-002",
            Self::Timeout { .. } | Self::Broken { .. } | Self::Ended { .. } => "CLI-003",
            Self::Foreign { .. } | Self::Answer { .. } | Self::TooLong { .. } => "CLI-004",
            Self::Token => "CLI-005",
            Self::Problem(problem) => &problem.code,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Address { .. } => "write it like http://127.0.0.1:7077; plain HTTP only",
            Self::Unreachable { .. } => {
                "start one with `slipway serve`, or name another with --server"
            }
            Self::Timeout { .. } | Self::Broken { .. } | Self::Ended { .. } => {
                "the server may be busy or gone; look at its log, then try again"
            }
            Self::Foreign { .. } | Self::TooLong { .. } => {
                "is this the address of a Slipway server?"
            }
            Self::Answer { .. } => "use a client and a server of the same version",
            Self::Token => "a token is one line of letters and digits; copy it again",
            Self::Problem(problem) => return problem.hint.clone(),
        };
        Some(hint.to_owned())
    }

    /// How a command that met this error ends.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Address { .. } | Self::Token => Exit::Usage,
            Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Broken { .. }
            | Self::Ended { .. }
            | Self::Foreign { .. }
            | Self::Answer { .. }
            | Self::TooLong { .. } => Exit::Failed,
            Self::Problem(problem) => problem.exit(),
        }
    }

    /// Whether asking again later may help although nobody changes anything.
    pub fn passes(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Broken { .. }
            | Self::Ended { .. } => true,
            Self::Problem(problem) => problem.status >= 500 || problem.status == 429,
            Self::Address { .. }
            | Self::Token
            | Self::Foreign { .. }
            | Self::Answer { .. }
            | Self::TooLong { .. } => false,
        }
    }
}
