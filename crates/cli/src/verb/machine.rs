//! `slipway machine`: a new machine in place of an old one, or none.

use super::intent::{Reason, wish};
use crate::context::Context;
use crate::error::Error;
use api::{Exit, WishRequest};

/// Verbs about machines.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Make a new machine, then remove this one with its disk
    Replace(Replace),
    /// Remove a machine with its disk, and have its pool be one smaller
    Retire(Retire),
}

/// Arguments of `slipway machine replace`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  slipway machine replace edge-compute-02 --reason 'disk is failing'"
)]
pub struct Replace {
    /// The name of the machine, or its id
    #[arg(value_parser = api::argument::name)]
    name: String,

    #[command(flatten)]
    reason: Reason,
}

/// Arguments of `slipway machine retire`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  slipway machine retire edge-compute-02 --reason 'idle since noon'"
)]
pub struct Retire {
    /// The name of the machine, or its id, of a pool with an autoscaler
    #[arg(value_parser = api::argument::name)]
    name: String,

    #[command(flatten)]
    reason: Reason,
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    let (name, reason) = match &verb {
        Verb::Replace(Replace { name, reason }) | Verb::Retire(Retire { name, reason }) => {
            (name, reason.clone())
        }
    };
    let found = client.machine(name).await?;
    // As it was written: the server reads it as it did here.
    let machine = name.clone();
    let wished = match verb {
        Verb::Replace(_) => WishRequest::Replace { machine },
        Verb::Retire(_) => WishRequest::Retire { machine },
    };
    wish(&client, found.cluster, wished, reason, context).await
}
