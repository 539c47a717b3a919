//! What ssh runs instead of opening a connection: bytes between its pipes and the server.

use crate::error::Error;
use api::{Client, Exit};
use std::os::fd::AsFd;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

pub(super) async fn run(client: &Client, machine: &str) -> Result<Exit, Error> {
    let (mut input, mut output) = (own(&std::io::stdin())?, own(&std::io::stdout())?);
    let relay = client.relay(machine).await?;
    let (mut from_machine, mut to_machine) = tokio::io::split(relay);
    let there = async {
        // Whether all of it was taken shows on the other way.
        drop(tokio::io::copy(&mut input, &mut to_machine).await);
        drop(to_machine.shutdown().await);
        std::future::pending::<()>().await;
    };
    let back = async {
        // A relay that breaks ends for ssh as any connection does.
        drop(tokio::io::copy(&mut from_machine, &mut output).await);
        output.flush().await
    };
    tokio::select! {
        () = there => {}
        ended = back => ended?,
    }
    Ok(Exit::Done)
}

/// A handle of our own on one of the process's.
fn own(handle: &impl AsFd) -> Result<File, Error> {
    let handle = handle.as_fd().try_clone_to_owned()?;
    Ok(File::from_std(handle.into()))
}
