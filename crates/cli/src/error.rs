//! Why a verb did not do what was asked, told once, at the edge.

use crate::context::Context;
use crate::table::plain;
use api::Exit;
use std::io;
use std::path::PathBuf;

/// Why a verb did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server could not be asked, or said no.
    #[error("{0}")]
    Client(#[source] api::client::Error),
    /// A file that is not there.
    #[error("there is no file `{}`", file.display())]
    NoFile {
        /// Which file.
        file: PathBuf,
    },
    /// A directory where a file belongs.
    #[error("`{}` is a directory", file.display())]
    Directory {
        /// Which one.
        file: PathBuf,
    },
    /// A file that cannot be read.
    #[error("could not read `{}`", file.display())]
    Unreadable {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// More than any manifest has.
    #[error("`{}` is larger than {max} bytes", file.display())]
    TooLarge {
        /// Which file.
        file: PathBuf,
        /// How much is read at most.
        max: usize,
    },
    /// More than a value of a secret may have.
    #[error("the value in `{}` is larger than {max} bytes", file.display())]
    LongValue {
        /// Which file.
        file: PathBuf,
        /// How much a value may have.
        max: usize,
    },
    /// A file that is not text.
    #[error("`{}` is not text in UTF-8", file.display())]
    NotText {
        /// Which file.
        file: PathBuf,
    },
    /// A file without the name of a manifest.
    #[error("`{}` does not say which manifest it is", file.display())]
    NoName {
        /// Which file.
        file: PathBuf,
    },
    /// A document that is something else.
    #[error(
        "`{}` is no manifest: its kind is `{}` and its apiVersion `{}`",
        file.display(), kind.escape_debug(), version.escape_debug()
    )]
    NoManifest {
        /// Which file.
        file: PathBuf,
        /// What it says that it is.
        kind: String,
        /// In which version.
        version: String,
    },
    /// A token that is there and cannot be read.
    #[error("could not read the token in {}", file.display())]
    TokenFile {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Neither an option nor the environment says where data is.
    #[error("this user has no home to keep data in")]
    NoDataDir,
    /// Called in a way that makes no sense, or not enough.
    #[error("{what}")]
    Usage {
        /// What is wrong with it.
        what: String,
        /// What to write instead.
        hint: String,
    },
    /// Something that is not on the server.
    #[error("there is no {kind} `{name}`")]
    NotFound {
        /// What kind of thing.
        kind: &'static str,
        /// Which one.
        name: String,
    },
    /// A file that a backup cannot be written to.
    #[error("could not write the backup to `{}`", file.display())]
    Unwritable {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A backup without its last line.
    #[error("the backup is cut off, and was not kept")]
    CutOff,
    /// An audit chain in which an entry is not as it was written.
    #[error("the audit chain is broken at entry {seq}: {reason}")]
    Broken {
        /// Which entry.
        seq: u64,
        /// In what way.
        reason: String,
        /// Whether all that was read is about one project: then it may be no whole chain.
        part: bool,
    },
    /// An export with nothing in it: no chain is without its first entry.
    #[error("`{}` has no entries", file.display())]
    NoEntries {
        /// Which file.
        file: PathBuf,
    },
    /// A file that cannot be written.
    #[error("could not write `{}`", file.display())]
    Unwritten {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A program of this machine that is not there.
    #[error("could not run `{program}`")]
    NoProgram {
        /// Which one.
        program: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// What is to be taken over from elsewhere could not be read.
    #[error("{what}")]
    Elsewhere {
        /// What was attempted, and why it failed.
        what: String,
        /// The stable code.
        code: &'static str,
        /// What to do.
        hint: String,
    },
    /// The reader of our output is gone, or has no room.
    #[error("could not write the answer")]
    Write(#[source] io::Error),
}

impl From<api::client::Error> for Error {
    fn from(error: api::client::Error) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        Self::Write(cause)
    }
}

impl Error {
    /// The stable name of the error.
    pub fn code(&self) -> &str {
        match self {
            Self::Client(error) => error.code(),
            Self::TokenFile { .. } => "CLI-005",
            Self::NoFile { .. }
            | Self::Directory { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::LongValue { .. }
            | Self::NotText { .. }
            | Self::NoName { .. }
            | Self::NoManifest { .. } => "CLI-006",
            Self::NoDataDir => "CLI-007",
            Self::Usage { .. } => "CLI-008",
            Self::NotFound { .. } => "CLI-009",
            Self::Write(_) | Self::Unwritten { .. } => "CLI-010",
            Self::NoProgram { .. } => "CLI-011",
            Self::Broken { .. } => "AUDIT-001",
            Self::NoEntries { .. } => "AUDIT-002",
            Self::Unwritable { .. } => "BACKUP-001",
            Self::CutOff => "BACKUP-005",
            Self::Elsewhere { code, .. } => code,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Client(error) => return error.hint(),
            Self::NoFile { .. } => "is the name right? `-` reads standard input",
            Self::Directory { .. } => "name one file in it",
            Self::Unreadable { .. } => "who may read it, and is it a file?",
            Self::TooLarge { .. } => "is this a manifest? split it into several if it is",
            Self::LongValue { .. } => {
                "a secret is for keys and passwords: is this the right file? a longer one belongs elsewhere"
            }
            Self::NotText { .. } => "is this a manifest?",
            Self::NoName { .. } => "it should be YAML with `metadata.name`; or name the manifest",
            Self::NoManifest { .. } => "give the file that was applied; or name the manifest",
            Self::TokenFile { .. } => "ask as the user who runs the server, or set SLIPWAY_TOKEN",
            Self::NoDataDir => "set SLIPWAY_DATA, or name --data-dir",
            Self::Usage { hint, .. } | Self::Elsewhere { hint, .. } => hint,
            Self::NotFound {
                kind: "environment",
                ..
            } => "`slipway env list` lists them",
            Self::NotFound { kind, .. } => return Some(format!("`slipway get {kind}` lists them")),
            Self::NoProgram { .. } => {
                "install OpenSSH's client on this machine (Debian: openssh-client)"
            }
            Self::Write(_) => "is there room on the disk?",
            Self::Unwritten { .. } => "make room there, or name another file",
            Self::NoEntries { .. } => "take it again with `slipway audit export --to FILE`",
            Self::Broken { part: true, .. } => {
                "an export of one project is no whole chain and cannot be verified: export without --project, with a token for all projects"
            }
            Self::Broken { part: false, .. } => {
                "compare it with an export or a backup from before, and find out who can write there"
            }
            Self::Unwritable { .. } => "make room there, or name another file with --to",
            Self::CutOff => "look at the server's log, then try again",
        };
        Some(hint.to_owned())
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Client(error) => error.exit(),
            Self::NoFile { .. }
            | Self::Directory { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::LongValue { .. }
            | Self::NotText { .. }
            | Self::NoName { .. }
            | Self::NoManifest { .. }
            | Self::TokenFile { .. }
            | Self::NoDataDir
            | Self::Usage { .. } => Exit::Usage,
            Self::NotFound { .. }
            | Self::Elsewhere { .. }
            | Self::Unwritable { .. }
            | Self::CutOff
            | Self::Broken { .. }
            | Self::NoEntries { .. }
            | Self::Unwritten { .. }
            | Self::NoProgram { .. }
            | Self::Write(_) => Exit::Failed,
        }
    }

    /// Tells the person what went wrong, and the shell how it ended.
    pub(crate) fn tell(&self, context: &mut Context<'_>) -> Exit {
        if let Self::Write(cause) = self
            && cause.kind() == io::ErrorKind::BrokenPipe
        {
            // The reader has seen enough; that is no failure of ours.
            return Exit::Done;
        }
        let hint = if let Self::Client(api::client::Error::Problem(problem)) = self
            && problem.status == 401
            && !context.has_token()
        {
            Some(context.global().token_hint())
        } else {
            self.hint()
        };
        context.out().complain(&self.text(hint.as_deref()));
        self.exit()
    }

    /// The whole of it: what, why, every fault of the input, and what to do.
    fn text(&self, hint: Option<&str>) -> String {
        // The last link says what the system said; those between only say who passed it on.
        let root = self
            .root()
            .map(|root| format!(": {root}"))
            .unwrap_or_default();
        let mut lines = vec![format!("error: {self}{root} ({})", self.code())];
        if let Self::Client(api::client::Error::Problem(problem)) = self {
            // A single fault may be all that the problem says.
            let faults = problem.faults.iter().map(ToString::to_string);
            lines.extend(faults.filter(|fault| *fault != problem.detail));
        }
        lines.extend(hint.map(|hint| format!("hint: {hint}")));
        lines.push(String::new());
        // A problem may repeat what a script printed.
        let lines: Vec<String> = lines
            .iter()
            .flat_map(|line| line.split('\n'))
            .map(plain)
            .collect();
        lines.join("\n")
    }

    fn root(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let first = match self {
            Self::Client(error) => std::error::Error::source(error),
            Self::Unreadable { cause, .. }
            | Self::TokenFile { cause, .. }
            | Self::Unwritable { cause, .. }
            | Self::Unwritten { cause, .. }
            | Self::NoProgram { cause, .. }
            | Self::Write(cause) => return Some(cause),
            Self::NoFile { .. }
            | Self::Directory { .. }
            | Self::TooLarge { .. }
            | Self::LongValue { .. }
            | Self::NotText { .. }
            | Self::NoName { .. }
            | Self::NoManifest { .. }
            | Self::NoDataDir
            | Self::Usage { .. }
            | Self::CutOff
            | Self::NoEntries { .. }
            | Self::Broken { .. }
            | Self::Elsewhere { .. }
            | Self::NotFound { .. } => None,
        }?;
        Some(
            std::iter::successors(Some(first), |error| error.source())
                .last()
                .unwrap_or(first),
        )
    }
}
