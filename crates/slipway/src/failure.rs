//! How the program tells that it could not begin or go on: what, why, and what to do.

use std::io::Write as _;
use std::process::ExitCode;

/// How the shell hears that the program was not called rightly.
pub(crate) const USAGE: u8 = 2;

/// What no other attempt mends, only another configuration: those who start programs again and
/// again can tell by the exit code.
const MISUSE: [&str; 7] = [
    "IMPORT-005",
    "SERVE-005",
    "SERVE-006",
    "SERVE-007",
    "SERVE-008",
    "SERVE-011",
    "STORE-012",
];

/// Something that stops the program, with its code and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What was attempted.
    pub(crate) what: String,
    /// The stable code, which names a page in `docs/errors`.
    pub(crate) code: &'static str,
    /// What to do.
    pub(crate) hint: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// A failure that something below has caused.
pub(crate) fn failed(
    what: impl Into<String>,
    code: &'static str,
    hint: String,
    cause: impl std::error::Error + Send + Sync + 'static,
) -> anyhow::Error {
    let what = what.into();
    anyhow::Error::new(cause).context(Failure { what, code, hint })
}

/// Prints an error with its chain and its hint, and fails.
pub(crate) fn tell(error: &anyhow::Error) -> ExitCode {
    let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.dedup();
    let mut text = format!("error: {}", causes.join(": "));
    if let Some(failure) = error.downcast_ref::<Failure>() {
        text = format!("{text} ({})\nhint: {}", failure.code, failure.hint);
    }
    // A closed standard error leaves nobody to tell.
    drop(writeln!(std::io::stderr().lock(), "{text}"));
    let code = error.downcast_ref::<Failure>().map(|failure| failure.code);
    if code.is_some_and(|code| MISUSE.contains(&code)) {
        ExitCode::from(USAGE)
    } else {
        ExitCode::FAILURE
    }
}
