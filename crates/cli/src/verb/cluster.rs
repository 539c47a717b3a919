//! `slipway cluster`: begin nothing new on a cluster, and go on again.

use super::intent::{Reason, wish};
use crate::context::Context;
use crate::error::Error;
use crate::pages::all;
use crate::table::count;
use api::{Exit, Listed, WishRequest, WishView};

/// Verbs about clusters.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Begin nothing new; what runs is finished
    Pause(Pause),
    /// Go on, by withdrawing every pause
    Resume(Resume),
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

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    match verb {
        Verb::Pause(Pause { name, reason }) => {
            wish(&client, name, WishRequest::Pause {}, reason, context).await
        }
        Verb::Resume(Resume { name }) => {
            // Asked for first, so that a wrong name is not mistaken for a cluster that runs.
            let cluster = client.cluster(&name).await?.head.summary.name;
            let mut listed = all(async |page| client.intents(page).await).await?;
            listed.items.retain(|intent| {
                intent.cluster == cluster && matches!(intent.wish, WishView::Pause {})
            });
            for intent in &listed.items {
                client.withdraw(&intent.id, None).await?;
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
