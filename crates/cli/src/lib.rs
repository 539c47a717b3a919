//! People and the public contract: the verbs that speak to a server.
//!
//! Every verb is a file of its own below `verb`: its arguments, and a function that asks the
//! server and shows the answer. What to print is decided by functions without effects
//! (`view`, `progress`, `lines`), so that tests pin the very text that people see.
//!
//! Data goes to standard output and nothing else does: tables for people, or the wire objects
//! themselves as JSON or YAML. Everything else goes to standard error.
//!
//! **Invariant:** this crate depends on `api` alone (`docs/dependencies.txt`), so it can do
//! nothing that the public contract cannot.

mod allow;
mod context;
mod error;
mod global;
mod kind;
mod lines;
mod live;
mod out;
mod pages;
mod progress;
mod source;
mod table;
mod verb;
mod view;
mod wait;

pub use error::Error;
pub use global::{Format, Global, Output, Token};
pub use verb::Verb;
pub use verb::backup::Arguments as BackupCreate;
pub use verb::env::Verb as EnvVerb;
pub use verb::env::import::{Elsewhere, Import as EnvImport, Left, Offer, Unread};
pub use verb::etcd::Verb as BackupEtcd;

use context::Context;
use out::Out;
use std::process::ExitCode;

/// Runs one verb to its end and says what the shell should hear.
///
/// `program` describes the whole command line, for which `completion` writes its script.
pub async fn run(verb: Verb, global: &Global, program: fn() -> clap::Command) -> ExitCode {
    let mut out = Out::standard();
    let mut context = Context::new(global, &mut out);
    let ended = Box::pin(verb.run(&mut context, program)).await;
    let exit = ended.unwrap_or_else(|error| error.tell(&mut context));
    ExitCode::from(exit.code())
}

/// Takes environments over from elsewhere, and says what the shell should hear.
pub async fn import(arguments: EnvImport, elsewhere: impl Elsewhere, global: &Global) -> ExitCode {
    let mut out = Out::standard();
    let mut context = Context::new(global, &mut out);
    let ended = Box::pin(verb::env::import::run(arguments, elsewhere, &mut context)).await;
    let exit = ended.unwrap_or_else(|error| error.tell(&mut context));
    ExitCode::from(exit.code())
}

/// Shows an answer that came without a server, the object to programs and the picture to
/// people, and says what the shell should hear: `exit`, unless showing it failed.
pub fn show<T: serde::Serialize>(
    global: &Global,
    wire: &T,
    picture: &str,
    exit: api::Exit,
) -> ExitCode {
    let mut out = Out::standard();
    let mut context = Context::new(global, &mut out);
    let shown = context.show(wire, |_| picture.to_owned());
    let exit = shown.map_or_else(|error| error.tell(&mut context), |()| exit);
    ExitCode::from(exit.code())
}

#[cfg(test)]
mod tests;
