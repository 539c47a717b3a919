//! The program: composes the rooms by role, and nothing else.

mod advising;
mod aside;
mod backup;
mod config;
mod couriers;
mod demo;
#[cfg(test)]
mod deploy;
mod descriptors;
mod doctor;
mod entering;
mod environment;
mod failure;
mod hands;
mod logging;
mod migrate;
mod mirror;
mod place;
mod prices;
#[cfg(test)]
mod reference;
mod rehearsal;
mod roles;
mod serve;
mod worker;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Builds Kubernetes and looks after it for life.
#[derive(Debug, Parser)]
#[command(
    name = "slipway",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  slipway serve                                  start the server on this machine
  slipway plan -f examples/hello.yaml            see the whole journey before anything happens
  slipway apply -f examples/hello.yaml --wait    make it so, and watch
  slipway why cluster hello                      why it is as it is, and what ends it"
)]
struct Program {
    #[command(flatten)]
    global: cli::Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Worker(worker::Arguments),
    Migrate(migrate::Arguments),
    #[command(
        subcommand,
        after_help = "Example:\n  slipway store copy --from /var/lib/slipway --to postgres://slipway@db/slipway"
    )]
    Store(migrate::Group),
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway backup create --to slipway.backup\n  slipway backup restore --from slipway.backup --data-dir /var/lib/slipway\n  slipway backup etcd list edge"
    )]
    Backup(backup::Group),
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway mirror create --to mirror --from http://mirror.example/slipway\n  slipway serve --mirror mirror"
    )]
    Mirror(mirror::Group),
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway env create orange -t v1.2 --wait\n  slipway env list --owner ana\n  slipway env archive orange\n  slipway env scripts check /srv/scripts\n  slipway env import --octopod postgresql://octopod@db/octopod"
    )]
    Env(environment::Group),
    Doctor(doctor::Arguments),
    Demo(demo::Arguments),
    /// Run one control script to its end; the server starts this, nobody else does
    #[command(hide = true)]
    RunScript {
        /// The directory of the action
        directory: std::path::PathBuf,
    },
    #[command(flatten)]
    Client(cli::Verb),
}

fn main() -> ExitCode {
    let program = match config::parse() {
        Ok(program) => program,
        Err(ended) => return ended,
    };
    let runtime = match &program.command {
        Command::Serve(_) | Command::Worker(_) | Command::Demo(_) => {
            tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
        }
        Command::Migrate(_)
        | Command::Store(_)
        | Command::Backup(_)
        | Command::Mirror(_)
        | Command::Env(_)
        | Command::Doctor(_)
        | Command::RunScript { .. }
        | Command::Client(_) => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build(),
    };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(cause) => return failure::tell(&anyhow::Error::new(cause).context("could not start")),
    };
    let ended = runtime.block_on(run(program));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    ended
}

async fn run(program: Program) -> ExitCode {
    let Program { global, command } = program;
    let ended = match command {
        Command::Serve(arguments) => Box::pin(serve::run(arguments, &global)).await,
        Command::Worker(arguments) => Box::pin(worker::run(arguments, &global)).await,
        Command::Migrate(arguments) => migrate::run(&arguments, &global),
        Command::Store(migrate::Group::Copy(arguments)) => Box::pin(migrate::copy(arguments)).await,
        Command::Backup(backup::Group::Create(arguments)) => {
            let verb = cli::Verb::Backup(arguments);
            return cli::run(verb, &global, config::command).await;
        }
        Command::Backup(backup::Group::Etcd(verb)) => {
            let verb = cli::Verb::Etcd(verb);
            return cli::run(verb, &global, config::command).await;
        }
        Command::Backup(backup::Group::Restore(arguments)) => {
            Box::pin(backup::restore(arguments, &global)).await
        }
        Command::Backup(backup::Group::Verify(arguments)) => backup::verify(&arguments, &global),
        Command::Mirror(verb) => Box::pin(mirror::run(verb, &global)).await,
        Command::Env(group) => Box::pin(environment::run(group, &global)).await,
        Command::RunScript { directory } => environment::carry(&directory).await,
        Command::Doctor(arguments) => Box::pin(doctor::run(arguments, &global)).await,
        Command::Demo(arguments) => Box::pin(demo::run(arguments)).await,
        Command::Client(verb) => return cli::run(verb, &global, config::command).await,
    };
    ended.unwrap_or_else(|error| failure::tell(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        config::command().debug_assert();
    }
}
