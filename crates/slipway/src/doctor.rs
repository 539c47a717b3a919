//! `slipway doctor`: looks whether all is well, and says how to mend what is not.
//!
//! Looking (`look.rs`) and judging (`judge.rs`) are apart: what was seen is plain data, and the
//! judgement a function of it. A server that runs is not disturbed: nothing is locked, written
//! or migrated, and what only the server can know is asked of the server.

mod judge;
mod look;
mod seen;
mod show;

use crate::roles::Options;
use api::Exit;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Look whether everything that a server needs is as it should be, and say how to mend the rest
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway doctor
  sudo -u slipway slipway doctor --data-dir /var/lib/slipway
  slipway doctor --config /etc/slipway/slipway.yaml -o json

Give it the options that the server has, as the user who runs the server. A server that is running
is not disturbed. Ends with 1 when something is wrong; notes are no fault.")]
pub(crate) struct Arguments {
    /// Where the server listens, or would
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SLIPWAY_LISTEN",
        default_value = "127.0.0.1:7077"
    )]
    listen: SocketAddr,
    #[command(flatten)]
    options: Options,
}

/// Looks, judges and tells.
pub(crate) async fn run(arguments: Arguments, global: &cli::Global) -> anyhow::Result<ExitCode> {
    let seen = look::look(&arguments.options, arguments.listen, global).await?;
    let findings = judge::judge(&seen);
    let report = show::Report::of(&findings);
    let exit = if report.good {
        Exit::Done
    } else {
        Exit::Failed
    };
    Ok(cli::show(global, &report, &show::picture(&findings), exit))
}
