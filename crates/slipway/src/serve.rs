//! `slipway serve`: the API, the engine and the page in one process.

use crate::advising::Advisers;
use crate::descriptors;
use crate::entering::Ways;
use crate::failure::failed;
use crate::hands;
use crate::logging;
use crate::prices;
use crate::rehearsal::Twin;
use crate::roles::{Installation, Options, Running, listening};
use anyhow::Context as _;
use server::{Prices, Server, auth::Admin};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Start the server on this machine: API, engine and page in one process
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway serve
  slipway serve --listen 0.0.0.0:7077 --data-dir /var/lib/slipway
  slipway serve --database postgres://slipway@db/slipway --database-password-file /etc/slipway/password
  slipway serve --prices prices.yaml
  SLIPWAY_LOG=debug slipway serve --log json

The first start writes an administrator's token to admin.token in the data directory, readable by
its owner alone. Ctrl-C ends the server; what was under way goes on at the next start.")]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes any that is free
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SLIPWAY_LISTEN",
        default_value = "127.0.0.1:7077"
    )]
    listen: SocketAddr,
    #[command(flatten)]
    options: Options,
    /// A file with prices of machines and disks, which count in plans before those that everybody
    /// has; read once, at the start
    #[arg(
        long,
        value_name = "FILE",
        env = "SLIPWAY_PRICES",
        hide_env_values = true
    )]
    prices: Option<PathBuf>,
    /// How the log is written
    #[arg(long, value_enum, default_value_t = logging::Format::Text)]
    log: logging::Format,
}

/// Runs until it is told to stop.
pub(crate) async fn run(arguments: Arguments, global: &cli::Global) -> anyhow::Result<ExitCode> {
    logging::start(arguments.log, "info");
    descriptors::raise();
    let stop = CancellationToken::new();
    let data_dir = global.data_dir()?;
    let prices = prices::read(arguments.prices.as_deref())?;
    // Before anything is made: who cannot listen leaves nothing behind.
    let (listener, address) = listening(arguments.listen).await?;
    let started = start(&data_dir, &arguments.options, prices, vec![listener], &stop);
    let (_, mut running) = started.await?;
    tracing::info!("listening on http://{address}");
    tracing::info!(data = %data_dir.display(), "data is kept in {}", data_dir.display());
    running.until_told(&stop).await?;
    running.ended().await?;
    Ok(ExitCode::SUCCESS)
}

/// Starts all roles on one data directory; they end when `stop` is cancelled.
pub(crate) async fn start(
    data_dir: &Path,
    options: &Options,
    prices: Prices,
    listeners: Vec<TcpListener>,
    stop: &CancellationToken,
) -> anyhow::Result<(Installation, Running)> {
    // Before anything is counted: what goes up unseen would come down seen.
    let metrics = server::metrics::install().context("could not start the metrics")?;
    let installation = Installation::open(data_dir, options).await?;
    let admin = Admin::load_or_create(data_dir).map_err(|error| {
        let (code, hint) = (error.code(), error.hint().to_owned());
        failed("cannot start without a token", code, hint, error)
    })?;
    let clock = installation.clock();
    server::auth::enrol(&installation.store, &admin, clock.now())
        .await
        .map_err(|error| {
            let (code, hint) = (error.code(), error.hint());
            failed("cannot let the administrator in", code, hint, error)
        })?;
    let environments = installation.environments();
    let server = Server {
        store: installation.store.clone(),
        vault: installation.vault.clone(),
        clock: Arc::new(move || clock.now()),
        rehearse: Arc::new(Twin::new(installation.store.clone())),
        enter: Arc::new(Ways {
            hosts: installation.hosts.clone(),
            store: installation.store.clone(),
            vault: installation.vault.clone(),
            clock,
            stop: stop.clone(),
        }),
        advise: Arc::new(Advisers {
            deployer: installation.deployers.clone(),
            store: installation.store.clone(),
            vault: installation.vault.clone(),
            clock,
            stop: stop.clone(),
            inits: environments.inits(),
        }),
        prices: Arc::new(prices),
        unable: hands::unable,
        metrics,
        scratch: data_dir.to_owned(),
    };
    let mut running = Running::new();
    running.start(installation.engine().run(stop.clone()));
    running.start(environments.run(stop.clone()));
    running.start(installation.deliveries().run(stop.clone()));
    for listener in listeners {
        running.start(server::run(listener, server.clone(), stop.clone()));
    }
    Ok((installation, running))
}
