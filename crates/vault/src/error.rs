//! Why something cannot be sealed, opened or unwrapped. No message contains a key or a value.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::name::Name;
use model::sealed::{KeyId, Place};
use store::SealError;

/// What went wrong, with a code and a hint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key file is there and cannot be read, or cannot be closed to others.
    #[error("could not read the key file {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The key file cannot be made.
    #[error("could not write the key file {}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The key file holds something else.
    #[error("the key file {} cannot be used: {why}", path.display())]
    Form {
        /// Which file.
        path: PathBuf,
        /// Which line, and what is wrong with it; never what it says.
        why: String,
    },
    /// The key file is gone, and something is sealed that needs it.
    #[error("the key file {} is missing, and the store holds what was sealed with it", path.display())]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// The data key was wrapped by a master key that is not here.
    #[error("cannot unwrap data key {key}: it was wrapped by {by}, and here is {had}")]
    WrongKey {
        /// Which data key.
        key: KeyId,
        /// Who wrapped it.
        by: String,
        /// The master keys that are here.
        had: String,
    },
    /// The master key is right, and the wrapped data key is not what it made.
    #[error("cannot unwrap data key {key}: what the store holds of it is damaged")]
    DamagedKey {
        /// Which data key.
        key: KeyId,
    },
    /// The data key was never unwrapped here.
    #[error("data key {key} is not known here")]
    UnknownKey {
        /// Which data key.
        key: KeyId,
    },
    /// The sealed value was changed, cut off, or belongs elsewhere.
    #[error(
        "cannot open the sealed value {place}: it is damaged, or was moved there from another place"
    )]
    Damaged {
        /// Where it was found.
        place: Place,
    },
    /// The value is longer than what is sealed.
    #[error("cannot seal a value of {len} bytes, at most {max} are allowed")]
    TooLarge {
        /// How many bytes were given.
        len: usize,
        /// How many are allowed.
        max: usize,
    },
    /// The key command names no program.
    #[error("the key command is empty")]
    NoProgram,
    /// The key command does not start.
    #[error("could not start the key command `{program}`")]
    Start {
        /// Which program.
        program: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The key command was started and then lost.
    #[error("could not speak with the key command `{program} … {verb}`")]
    Speak {
        /// Which program.
        program: String,
        /// What it should do.
        verb: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The key command reported failure.
    #[error("the key command `{program} … {verb}` failed ({status}): {said}")]
    Failed {
        /// Which program.
        program: String,
        /// What it should do.
        verb: &'static str,
        /// How it ended.
        status: String,
        /// The last line it wrote to its standard error.
        said: String,
    },
    /// The key command reported success, and its answer is of no use.
    #[error("the key command `{program} … {verb}` gave an answer that {why}")]
    Answer {
        /// Which program.
        program: String,
        /// What it should do.
        verb: &'static str,
        /// What is wrong with the answer; never the answer.
        why: &'static str,
    },
    /// The key command did not end in time.
    #[error("the key command `{program} … {verb}` did not end within {limit:?}")]
    Slow {
        /// Which program.
        program: String,
        /// What it should do.
        verb: &'static str,
        /// How long it had.
        limit: Duration,
    },
    /// The system gives no random bytes.
    #[error("could not draw random bytes")]
    Random(#[source] getrandom::Error),
    /// Nobody has tried to open the vault yet.
    #[error("the vault is not open yet")]
    Unopened,
    /// The vault could not be opened, and is not tried again yet.
    #[error("the vault is closed: {0}")]
    Closed(Arc<Self>),
    /// No data key is in the store, though there was one.
    #[error("the store has no data key")]
    NoKey,
    /// The data key was changed again and again in the meantime.
    #[error("could not keep up with changes of the data key")]
    Overtaken,
    /// There is no such project.
    #[error("there is no project `{project}`")]
    NoProject {
        /// Which one.
        project: Name,
    },
    /// The secret would have too many entries.
    #[error("the secret would have {found} entries, at most {max} are allowed")]
    TooMany {
        /// How many it would have.
        found: usize,
        /// How many are allowed.
        max: usize,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<SealError> for Error {
    fn from(error: SealError) -> Self {
        match error {
            SealError::KeyGone { key } => Self::UnknownKey { key },
            SealError::NoProject { project } => Self::NoProject { project },
            SealError::TooMany { found } => Self::TooMany {
                found,
                max: store::SECRET_ENTRIES_MAX,
            },
            SealError::Store(error) => Self::Store(error),
        }
    }
}

impl Error {
    /// The stable code, which names a page of the documentation.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Closed(why) => why.code(),
            Self::Store(error) => error.code(),
            Self::Read { .. } | Self::Write { .. } => "SEAL-001",
            Self::Form { .. } => "SEAL-002",
            Self::Missing { .. } => "SEAL-003",
            Self::WrongKey { .. } => "SEAL-004",
            Self::Damaged { .. } => "SEAL-005",
            Self::NoProgram
            | Self::Start { .. }
            | Self::Speak { .. }
            | Self::Failed { .. }
            | Self::Answer { .. } => "SEAL-006",
            Self::Slow { .. } => "SEAL-007",
            Self::Random(_) => "SEAL-008",
            Self::UnknownKey { .. } | Self::NoKey => "SEAL-009",
            Self::DamagedKey { .. } => "SEAL-010",
            Self::TooLarge { .. } => "SEAL-011",
            Self::Unopened | Self::Overtaken => "SEAL-012",
            Self::TooMany { .. } => "SEAL-013",
            Self::NoProject { .. } => "API-002",
        }
    }

    /// What would help.
    pub fn hint(&self) -> Cow<'static, str> {
        let hint = match self {
            Self::Closed(why) => return why.hint(),
            Self::Store(error) => return error.hint().into(),
            Self::Read { .. } => {
                "let the user that runs slipway own the key file, with mode 0600, on a disk that answers"
            }
            Self::Write { .. } => {
                "make the directory of the key file writable and leave room on its disk"
            }
            Self::Form { .. } => {
                "put the key file back from its backup: every line is `slipway-key-1` and a key, the current one first"
            }
            Self::Missing { .. } => {
                "put the key file back, or copy it from another server of this installation"
            }
            Self::WrongKey { .. } => {
                "add the line of the missing key to the end of the key file, or set the key command that wrapped it"
            }
            Self::Damaged { .. } => "set the secret again, or restore the database from a backup",
            Self::NoProgram => "give the program and its arguments as a list of words",
            Self::Start { .. } => "check the path of the program and that it may be executed",
            Self::Speak { .. } | Self::Failed { .. } => {
                "run the program by hand as the user that runs slipway and see what it says"
            }
            Self::Answer { .. } => {
                "let the program write base64 and nothing else to its standard output, and unwrap what it wrapped"
            }
            Self::Slow { .. } => {
                "check that the key service answers, and that the program waits for nobody"
            }
            Self::Random(_) => "try again when the system has gathered randomness",
            Self::UnknownKey { .. } => {
                "try again: the key may be new; if it stays unknown, restore the database from a backup"
            }
            Self::DamagedKey { .. } | Self::NoKey => "restore the database from a backup",
            Self::TooLarge { .. } => {
                "split the value, or keep it elsewhere and seal only the key to it"
            }
            Self::Unopened | Self::Overtaken => "try again in a moment",
            Self::TooMany { .. } => "remove entries that nobody uses, or set a second secret",
            Self::NoProject { .. } => "list the projects with `slipway project list`",
        };
        hint.into()
    }

    /// Whether it may work later without anybody doing anything to the value.
    pub fn is_passing(&self) -> bool {
        !matches!(
            self,
            Self::Damaged { .. }
                | Self::TooLarge { .. }
                | Self::TooMany { .. }
                | Self::NoProject { .. }
        )
    }
}
