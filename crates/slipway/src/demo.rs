//! `slipway demo`: the whole flow on this machine, from nothing to ready clusters.

use crate::failure::Failure;
use crate::roles::{self, Options, Running};
use crate::{Command, Program, logging, serve};
use anyhow::{Context as _, bail};
use clap::{CommandFactory as _, Parser as _};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// What the demo applies.
const MANIFEST: &str = include_str!("../../../examples/hello.yaml");

/// Show the whole flow on this machine: start a server, build the example's clusters, watch
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway demo           stays up until Ctrl-C, with the page open to look at
  slipway demo --once    ends when all is ready, and cleans up

Everything lives in a temporary directory and is gone afterwards.")]
pub(crate) struct Arguments {
    /// End when everything is ready, and clean up
    #[arg(long)]
    once: bool,
}

/// Runs the demo from nothing to ready, and cleans up.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    logging::start(logging::Format::Text, "warn");
    let home = tempfile::Builder::new()
        .prefix("slipway-demo-")
        .tempdir()
        .context("could not make a directory")?;
    let stop = CancellationToken::new();
    let (address, running) = start(home.path(), &stop).await?;
    let url = format!("http://{address}");
    let manifest = home.path().join("hello.yaml");
    std::fs::write(&manifest, MANIFEST).context("could not write the example")?;
    let token = std::fs::read_to_string(home.path().join(server::auth::TOKEN_FILE))
        .context("could not read the token")?;

    say(&format!(
        "Slipway runs on {url}, on machines of the simulated world.\n\n  page   {url}/\n  token  {}\n\n\
         First the whole journey, then the work itself:\n",
        token.trim()
    ));
    let told = tokio::select! {
        biased;
        stopped = roles::told_to_stop() => stopped.map(|()| None),
        shown = show(&url, home.path(), &manifest, arguments.once) => shown.map(Some),
    };
    let told = match told {
        Ok(Some(ExitCode::SUCCESS)) if !arguments.once => {
            say(&format!(
                "\nEverything is ready. Look at {url}/ or try, in another terminal:\n\n  \
                 export SLIPWAY_SERVER={url} SLIPWAY_DATA={}\n  slipway get clusters\n  \
                 slipway pool scale hello/compute 5\n\nCtrl-C ends the demo and cleans up.",
                home.path().display()
            ));
            roles::told_to_stop()
                .await
                .map(|()| Some(ExitCode::SUCCESS))
        }
        other => other,
    };
    stop.cancel();
    running.ended().await?;
    Ok(told?.unwrap_or(ExitCode::SUCCESS))
}

/// Starts on the usual port, or on any where that one is taken.
async fn start(home: &Path, stop: &CancellationToken) -> anyhow::Result<(SocketAddr, Running)> {
    let usual = SocketAddr::from(([127, 0, 0, 1], 7077));
    let free = tokio::net::TcpListener::bind(usual).await.is_ok();
    let listen = if free {
        usual
    } else {
        SocketAddr::from(([127, 0, 0, 1], 0))
    };
    serve::start(home, &Options::default(), listen, stop).await
}

/// Plans, applies and, when asked to, deletes again, as a person would.
async fn show(url: &str, home: &Path, manifest: &Path, once: bool) -> anyhow::Result<ExitCode> {
    let file = manifest
        .to_str()
        .context("the temporary directory has a strange name")?;
    verb(url, home, &["plan", "-f", file]).await?;
    say("");
    verb(url, home, &["apply", "--wait", "-f", file]).await?;
    verb(url, home, &["get", "clusters"]).await?;
    if once {
        say("");
        verb(url, home, &["delete", "--yes", "--wait", "-f", file]).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a client verb against the demo's own server.
async fn verb(url: &str, home: &Path, words: &[&str]) -> anyhow::Result<()> {
    let home = home
        .to_str()
        .context("the temporary directory has a strange name")?;
    let line = ["slipway", "--server", url, "--data-dir", home]
        .into_iter()
        .chain(words.iter().copied());
    let Program { global, command } =
        Program::try_parse_from(line).context("the demo spoke badly")?;
    let Command::Client(verb) = command else {
        bail!("the demo may use client verbs only")
    };
    if cli::run(verb, &global, Program::command).await == ExitCode::SUCCESS {
        return Ok(());
    }
    Err(Failure {
        what: format!("the demo stopped at `slipway {}`", words.join(" ")),
        code: "DEMO-001",
        hint: "the lines above say why".to_owned(),
    }
    .into())
}

fn say(text: &str) {
    // A closed standard error is no reason to stop the demo.
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}
