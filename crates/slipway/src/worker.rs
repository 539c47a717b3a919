//! `slipway worker`: the engine alone, beside servers on the same database.

use crate::descriptors;
use crate::failure::Failure;
use crate::logging;
use crate::roles::{Installation, Options, Running, listening};
use anyhow::Context as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// Work for the servers on one PostgreSQL database, without an API of its own
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway worker --database postgres://slipway@db/slipway --database-password-file /etc/slipway/password
  SLIPWAY_DATABASE=postgres://slipway@db/slipway slipway worker --data-dir /var/lib/slipway
  slipway worker --listen 127.0.0.1:7079

Any number of workers and servers may share a database. One that is killed is missed after half a
minute, and others take over what it had begun. SQLite is for one process: there, `slipway serve`
does all the work.")]
pub(crate) struct Arguments {
    /// Where to tell programs that watch over it how it is: /healthz and /metrics, and nothing
    /// else [default: nowhere]
    #[arg(
        id = "worker_listen",
        long = "listen",
        value_name = "ADDRESS",
        env = "SLIPWAY_WORKER_LISTEN"
    )]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    options: Options,
    /// How the log is written
    #[arg(long, value_enum, default_value_t = logging::Format::Text)]
    log: logging::Format,
}

/// Runs until it is told to stop.
pub(crate) async fn run(arguments: Arguments, global: &cli::Global) -> anyhow::Result<ExitCode> {
    logging::start(arguments.log, "info");
    descriptors::raise();
    if !arguments.options.database.is_named() {
        return Err(Failure {
            what: "a worker needs a database that it can share with servers".to_owned(),
            code: "SERVE-007",
            hint: "name a PostgreSQL database with --database or SLIPWAY_DATABASE; on SQLite \
                   `slipway serve` does all the work"
                .to_owned(),
        }
        .into());
    }
    let data_dir = global.data_dir()?;
    arguments.options.must_have_key(&data_dir)?;
    let stop = CancellationToken::new();
    let mut running = Running::new();
    if let Some(listen) = arguments.listen {
        // Before anything is counted: what goes up unseen would come down seen.
        let metrics = server::metrics::install().context("could not start the metrics")?;
        let (listener, address) = listening(listen).await?;
        running.start(server::watched(listener, metrics, stop.clone()));
        tracing::info!("listening on http://{address}");
    }
    let installation = Installation::open(&data_dir, &arguments.options).await?;
    running.start(installation.engine().run(stop.clone()));
    running.start(installation.environments().run(stop.clone()));
    running.start(installation.deliveries().run(stop.clone()));
    tracing::info!("working");
    running.until_told(&stop).await?;
    running.ended().await?;
    Ok(ExitCode::SUCCESS)
}
