//! How the program tells that it could not begin or go on: what, why, and what to do.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

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

/// Prints an error with its chain and its hint, and fails.
pub(crate) fn tell(error: &anyhow::Error) -> ExitCode {
    let mut text = String::from("error: ");
    let mut last = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if cause != last {
            let separator = if last.is_empty() { "" } else { ": " };
            // Writing to a string cannot fail.
            drop(write!(text, "{separator}{cause}"));
        }
        last = cause;
    }
    if let Some(failure) = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()) {
        drop(write!(text, " ({})\nhint: {}", failure.code, failure.hint));
    }
    drop(writeln!(std::io::stderr().lock(), "{text}"));
    ExitCode::FAILURE
}
