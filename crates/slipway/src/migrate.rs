//! `slipway migrate` and `slipway store copy`: databases brought up to date, and moved.

use crate::failure::{Failure, failed};
use crate::place::{Database, Place};
use anyhow::Context as _;
use driver::Clock;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use store::DumpError;

/// Bring a database up to date, before servers of this version start on it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway migrate --database postgres://slipway@db/slipway --database-password-file /etc/slipway/password

Once more does nothing. SQLite is brought up to date by `slipway serve` itself.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Migrates, and says what was done.
pub(crate) fn run(arguments: &Arguments, global: &cli::Global) -> anyhow::Result<ExitCode> {
    if !arguments.database.is_named() {
        return Err(Failure {
            what: "there is no database to migrate".to_owned(),
            code: "SERVE-008",
            hint: "name a PostgreSQL database with --database or SLIPWAY_DATABASE; SQLite is brought up to \
                   date by `slipway serve` itself"
                .to_owned(),
        }
        .into());
    }
    let place = Place::of(&arguments.database, &global.data_dir()?)?;
    let said = match place.migrate()? {
        None => format!("{place} is up to date"),
        Some((before, now)) if before == now => format!("{place} is up to date, at format {now}"),
        Some((0, now)) => format!("{place} was empty and has format {now} now"),
        Some((before, now)) => format!("{place} was brought from format {before} to {now}"),
    };
    say(&said)
}

/// Look after the database itself
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Group {
    Copy(Copy),
}

/// Copy a whole installation from one database into another, empty one
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway store copy --from /var/lib/slipway --to postgres://slipway@db/slipway
  slipway store copy --from postgres://slipway@db/slipway --to /var/lib/slipway-new

Stop the servers on the old database first: what they did after the copy would be missing from it.
Start them on the new one with the same data directory, whose key file opens what is sealed.")]
pub(crate) struct Copy {
    /// The database there is: a data directory, or postgres://…
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// The empty database: a data directory, or postgres://…
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// A file with the password for the database that is copied from
    #[arg(long, value_name = "FILE")]
    from_password_file: Option<PathBuf>,
    /// A file with the password for the database that is copied to
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,
}

/// Copies, and says how much.
pub(crate) async fn copy(arguments: Copy) -> anyhow::Result<ExitCode> {
    let from = Place::named(&arguments.from, arguments.from_password_file.as_ref())?;
    let to = Place::named(&arguments.to, arguments.to_password_file.as_ref())?;
    from.must_be_used()?;
    if from == to {
        return Err(Failure {
            what: format!("{from} cannot be copied into itself"),
            code: "SERVE-008",
            hint: "name another, empty place with --to".to_owned(),
        }
        .into());
    }
    let source = from.open()?;
    let target = to.open_or_create()?;
    let between = tempfile::NamedTempFile::new().context("could not make a temporary file")?;
    let now = Clock::System.now();
    source
        .dump(between.path(), now)
        .await
        .map_err(|error| told(format!("cannot copy {from}"), error))?;
    let loaded = target
        .load(between.path())
        .await
        .map_err(|error| told(format!("cannot copy into {to}"), error))?;
    say(&format!(
        "{} rows were copied from {from} to {to}
next: start servers on {to} alone, with the data directory they had: its slipway.key opens what is sealed
never start one on {from} again: two installations would work on the same machines",
        loaded.rows
    ))
}

/// A failure with files as the program tells it.
pub(crate) fn told(what: String, error: DumpError) -> anyhow::Error {
    let (code, hint) = (error.code(), error.hint());
    failed(what, code, hint, error)
}

/// Says what was done, on standard output.
pub(crate) fn say(text: &str) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout().lock(), "{text}").context("could not write the answer")?;
    Ok(ExitCode::SUCCESS)
}
