//! `slipway cluster`: begin nothing new on a cluster, go on again, and set aside what cannot be read of one.

use super::intent::{Reason, wish};
use crate::allow::Allowing;
use crate::context::Context;
use crate::error::Error;
use crate::pages::all;
use crate::table::count;
use api::client::Allow;
use api::{Exit, Listed, RecoveryView, WishRequest, WishView};

/// Verbs about clusters.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Begin nothing new; what runs is finished
    Pause(Pause),
    /// Go on, by withdrawing every pause
    Resume(Resume),
    /// Set aside what is stored of a cluster and cannot be read (STORE-006, STORE-007)
    Recover(Recover),
}

/// Arguments of `slipway cluster pause`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway cluster pause edge --reason 'audit until noon'")]
pub struct Pause {
    /// The name of the cluster
    #[arg(value_parser = api::argument::name)]
    name: String,

    #[command(flatten)]
    reason: Reason,
}

/// Arguments of `slipway cluster resume`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway cluster resume edge")]
pub struct Resume {
    /// The name of the cluster
    #[arg(value_parser = api::argument::name)]
    name: String,
}

/// Arguments of `slipway cluster recover`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway cluster recover edge")]
pub struct Recover {
    /// The name of the cluster
    #[arg(value_parser = api::argument::name)]
    name: String,

    /// Leave a machine to itself that is known by its name alone
    #[arg(long, value_name = "MACHINE", value_parser = api::argument::name)]
    leave: Vec<String>,

    /// Give the whole cluster up, and leave all its machines to themselves
    #[arg(long, conflicts_with = "leave")]
    abandon: bool,

    #[command(flatten)]
    allow: Allowing,
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    match verb {
        Verb::Pause(Pause { name, reason }) => {
            wish(&client, name, WishRequest::Pause {}, reason, context).await
        }
        Verb::Recover(recover) => {
            let Recover {
                name,
                leave,
                abandon,
                allow,
            } = recover;
            let recovered = client.recover(&name, &leave, abandon, allow.into());
            let recovered = recovered.await?;
            context.show(&recovered, |_| told(&recovered))?;
            Ok(Exit::Done)
        }
        Verb::Resume(Resume { name }) => {
            // Asked for first, so that a wrong name is not mistaken for a cluster that runs.
            let cluster = client.cluster(&name).await?.head.summary.name;
            let mut listed = all(async |page| client.intents(page).await).await?;
            listed.items.retain(|intent| {
                intent.cluster == cluster && matches!(intent.wish, WishView::Pause {})
            });
            for intent in &listed.items {
                client.withdraw(&intent.id, Allow::default()).await?;
            }
            let Listed { items, .. } = &listed;
            context.show(&listed, |_| match items.len() {
                0 => format!("cluster {cluster} was not paused\n"),
                many => format!(
                    "cluster {cluster} goes on; withdrew {}\n",
                    count(many, "pause")
                ),
            })?;
            Ok(Exit::Done)
        }
    }
}

/// What was set aside, a line each, and what is left behind.
fn told(recovered: &RecoveryView) -> String {
    let RecoveryView {
        cluster,
        generation,
        set_aside,
        left,
        follow: _,
    } = recovered;
    let mut told = format!("cluster {cluster} is at generation {generation}\n");
    for aside in set_aside {
        told.push_str(&format!("set aside: {aside}\n"));
    }
    for machine in left {
        told.push_str(&format!(
            "left to itself, nobody looks after it any more: {machine}\n"
        ));
    }
    told
}
