//! `slipway serve`: the API, the engine and the page in one process, on one directory.

use crate::failure::Failure;
use crate::logging;
use crate::rehearsal::Twin;
use anyhow::Context as _;
use driver::Clock;
use engine::{Engine, Settings};
use server::{Server, auth::Admin};
use sim::{Pace, Simulated, World};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use store::Store;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Start the server on this machine: API, engine and page in one process
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway serve
  slipway serve --listen 0.0.0.0:7077 --data-dir /var/lib/slipway
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
    /// How the log is written
    #[arg(long, value_enum, default_value_t = logging::Format::Text)]
    log: logging::Format,
}

/// Runs until it is told to stop.
pub(crate) async fn run(arguments: Arguments, global: &cli::Global) -> anyhow::Result<ExitCode> {
    logging::start(arguments.log, "info");
    let stop = CancellationToken::new();
    let mut running = start(&global.data_dir()?, arguments.listen, stop.clone()).await?;
    tracing::info!("listening on http://{}", running.address);
    tracing::info!(data = %running.data_dir.display(), "data is kept in {}", running.data_dir.display());
    tokio::select! {
        biased;
        stopped = told_to_stop() => stopped?,
        // A role that ends by itself takes the others along: half a server helps nobody.
        () = running.one_ended() => tracing::error!("a part of the server ended by itself"),
    }
    tracing::info!("ending: what is under way is given back and goes on at the next start");
    stop.cancel();
    running.ended().await?;
    Ok(ExitCode::SUCCESS)
}

/// Completes when somebody asks the program to end.
pub(crate) async fn told_to_stop() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("could not wait for signals")?;
    tokio::select! {
        biased;
        _ = terminate.recv() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => interrupted.context("could not wait for signals"),
    }
}

/// A server that is running.
pub(crate) struct Running {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Where it keeps its data.
    pub(crate) data_dir: PathBuf,
    roles: JoinSet<anyhow::Result<()>>,
    failed: Option<anyhow::Error>,
}

impl Running {
    /// Waits until one role has ended.
    async fn one_ended(&mut self) {
        let ended = self.roles.join_next().await;
        let ended = ended.map(|role| role.context("a role of the server broke down"));
        self.failed = match ended {
            Some(Ok(Ok(()))) | None => {
                Some(anyhow::anyhow!("a role of the server ended by itself"))
            }
            Some(Ok(Err(error)) | Err(error)) => Some(error),
        };
    }

    /// Waits until every role has ended.
    pub(crate) async fn ended(mut self) -> anyhow::Result<()> {
        while let Some(role) = self.roles.join_next().await {
            role.context("a role of the server broke down")??;
        }
        self.failed.map_or(Ok(()), Err)
    }
}

/// Starts all roles on one data directory; they end when `stop` is cancelled.
pub(crate) async fn start(
    data_dir: &Path,
    listen: SocketAddr,
    stop: CancellationToken,
) -> anyhow::Result<Running> {
    make_directory(data_dir)?;
    miss_database(data_dir)?;
    let store = Store::open(data_dir).map_err(|error| {
        let (code, hint) = (error.code(), error.hint());
        failed("cannot start on this data directory", code, hint, error)
    })?;
    let admin = Admin::load_or_create(data_dir).map_err(|error| {
        let (code, hint) = (error.code(), error.hint().to_owned());
        failed("cannot start without a token", code, hint, error)
    })?;
    let world = World::open(&data_dir.join("world.jsonl"), Pace::Demo, 0).map_err(|error| {
        let what = format!("cannot open the simulated world in {}", data_dir.display());
        let hint = "check that the directory can be written, or move world.jsonl away".to_owned();
        failed(what, "SERVE-002", hint, error)
    })?;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        let what = format!("cannot listen on {listen}");
        let hint = "another program may hold this port: end it, or choose another with --listen";
        failed(what, "SERVE-001", hint.to_owned(), error)
    })?;
    let address = listener
        .local_addr()
        .context("could not read the listening address")?;
    let roles = roles(store, admin, world, listener, stop)?;
    Ok(Running {
        address,
        data_dir: data_dir.to_owned(),
        roles,
        failed: None,
    })
}

/// Starts the engine and the listener.
fn roles(
    store: Store,
    admin: Admin,
    world: World,
    listener: TcpListener,
    stop: CancellationToken,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let metrics = server::metrics::builder()
        .and_then(metrics_exporter_prometheus::PrometheusBuilder::install_recorder)
        .context("could not start the metrics")?;
    let clock = Clock::System;
    let settings = Settings {
        worker: format!("process-{}", std::process::id()),
        ..Settings::default()
    };
    let hands = Arc::new(Simulated::new(world));
    let engine = Engine::new(store.clone(), hands, clock, settings);
    let server = Server {
        store: store.clone(),
        admin,
        clock: Arc::new(move || clock.now()),
        rehearse: Arc::new(Twin::new(store)),
        metrics,
    };
    let mut roles = JoinSet::new();
    let engine_stop = stop.clone();
    roles.spawn(async move {
        engine.run(engine_stop).await;
        Ok(())
    });
    roles.spawn(async move {
        server::run(listener, server, stop).await;
        Ok(())
    });
    Ok(roles)
}

fn failed(
    what: impl Into<String>,
    code: &'static str,
    hint: String,
    cause: impl std::error::Error + Send + Sync + 'static,
) -> anyhow::Error {
    let what = what.into();
    anyhow::Error::new(cause).context(Failure { what, code, hint })
}

/// Refuses a directory that was used before and has lost its database: starting anew would
/// forget every machine there is.
fn miss_database(data_dir: &Path) -> anyhow::Result<()> {
    let used = data_dir.join(server::auth::TOKEN_FILE).exists();
    if !used || data_dir.join(store::FILE).exists() {
        return Ok(());
    }
    Err(Failure {
        what: format!(
            "the database {} is missing from {}",
            store::FILE,
            data_dir.display()
        ),
        code: "SERVE-004",
        hint: format!(
            "put it back from a backup; to start anew, move {} away too",
            server::auth::TOKEN_FILE
        ),
    }
    .into())
}

/// Makes the data directory, readable by its owner alone.
fn make_directory(data_dir: &Path) -> anyhow::Result<()> {
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir);
    made.map_err(|error| {
        let what = format!("cannot use {} as data directory", data_dir.display());
        let hint = "choose a directory you may write with --data-dir or SLIPWAY_DATA".to_owned();
        failed(what, "SERVE-003", hint, error)
    })
}
