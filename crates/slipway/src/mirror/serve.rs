//! `slipway mirror serve`: a mirror for others, where there is no other web server.

use super::{failure, show};
use crate::logging;
use crate::roles::{listening, told_to_stop};
use anyhow::Context as _;
use hosts::artifacts::{Patience, Source, mirror};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// Serve a mirror over HTTP, to be read by whoever reaches it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway mirror serve /srv/mirror
  slipway mirror serve /srv/mirror --listen 0.0.0.0:7078

Everybody who reaches the address may read the files of the directory, and nothing else. Its files
may change meanwhile. Ctrl-C ends it.")]
pub(crate) struct Serve {
    /// The directory of the mirror
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where to listen; port 0 takes any that is free
    // Another one than the server's, whose setting must not be taken for it.
    #[arg(
        id = "mirror_listen",
        long = "listen",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7078"
    )]
    listen: SocketAddr,
}

/// Runs until it is told to stop.
pub(super) async fn run(arguments: Serve) -> anyhow::Result<ExitCode> {
    logging::start(logging::Format::Text, "warn");
    let Serve { directory, listen } = arguments;
    let source = Source::Directory(directory.clone());
    let index = mirror::list(&source, Patience::default());
    let index = index.await.map_err(failure)?;
    let (listener, address) = listening(listen).await?;
    let total = index.iter().map(|(_, entry)| entry.size).sum();
    let text = format!(
        "serving {} artifacts, {}, of {source} at http://{address}\n\
         use it with: slipway serve --mirror http://{address}\nend it with Ctrl-C\n",
        index.len(),
        show::bytes(total)
    );
    // A closed standard error leaves nobody to tell.
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
    let stop = CancellationToken::new();
    let serving = server::mirror::run(listener, directory, stop.clone());
    let told = async {
        let told = told_to_stop().await.context("could not wait for the end");
        stop.cancel();
        told
    };
    let ((), told) = tokio::join!(serving, told);
    told?;
    Ok(ExitCode::SUCCESS)
}
