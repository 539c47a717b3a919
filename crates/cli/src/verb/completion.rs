//! `slipway completion`: a script that completes our command line in a shell.

use crate::context::Context;
use crate::error::Error;
use api::Exit;
use clap_complete::Shell;

/// Arguments of `slipway completion`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  source <(slipway completion bash)")]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(
    arguments: &Arguments,
    context: &mut Context<'_>,
    program: fn() -> clap::Command,
) -> Result<Exit, Error> {
    let mut command = program();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    context.out().data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
