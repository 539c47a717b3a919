//! `slipway machine`: a new machine in place of an old one.

use super::intent::{Reason, wish};
use crate::context::Context;
use crate::error::Error;
use api::{Exit, WishRequest};

/// Verbs about machines.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Make a new machine, then remove this one with its disk
    Replace(Replace),
}

/// Arguments of `slipway machine replace`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  slipway machine replace edge-compute-02 --reason 'disk is failing'"
)]
pub struct Replace {
    /// The name of the machine
    #[arg(value_parser = api::argument::name)]
    name: String,

    #[command(flatten)]
    reason: Reason,
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Verb::Replace(Replace { name, reason }) = verb;
    let client = context.client()?;
    let machine = client.machine(&name).await?;
    let replace = WishRequest::Replace {
        machine: machine.name,
    };
    wish(&client, machine.cluster, replace, reason, context).await
}
