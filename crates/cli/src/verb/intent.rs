//! `slipway intent`: the wishes outside the manifest, and how to take one back.

use super::apply::lifetime;
use super::get::list;
use crate::allow::Allowing;
use crate::context::Context;
use crate::error::Error;
use crate::pages::all;
use crate::view;
use api::{Client, Exit, IntentRequest, IntentView, WishRequest};
use std::time::Duration;

/// Verbs about intents.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// List the wishes that count
    #[command(after_help = "Example:\n  slipway intent list")]
    List,
    /// Take a wish back
    Withdraw(Withdraw),
}

/// Arguments of `slipway intent withdraw`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway intent withdraw intent-0c5w3k9qj2m4x")]
pub struct Withdraw {
    /// The id of the intent
    #[arg(value_parser = api::argument::intent)]
    id: String,

    #[command(flatten)]
    allow: Allowing,
}

/// Why something is wished, and for how long.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Reason {
    /// Why; others will read it
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "asked for on the command line",
        hide_default_value = true
    )]
    reason: String,

    /// End the wish after this time, e.g. 90s, 30m, 2h
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    match verb {
        Verb::List => {
            let listed = all(async |page| client.intents(page).await).await?;
            list(&listed, "intents", view::intents, context)?;
        }
        Verb::Withdraw(Withdraw { id, allow }) => {
            let intent = super::get::find_intent(&client, &id).await?;
            client.withdraw(&id, allow.into()).await?;
            context.show(&intent, |_| format!("withdrew {id}: {}\n", intent.told()))?;
        }
    }
    Ok(Exit::Done)
}

/// Stores a wish about a cluster and shows it.
pub(super) async fn wish(
    client: &Client,
    cluster: String,
    wish: WishRequest,
    reason: Reason,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let (intent, told) = stored(client, cluster, wish, reason).await?;
    context.show(&intent, |_| told)?;
    context.out().say(&format!(
        "follow it with `slipway describe cluster {}`",
        intent.cluster
    ));
    Ok(Exit::Done)
}

/// Stores a wish about a cluster; answers what is told of it.
pub(super) async fn stored(
    client: &Client,
    cluster: String,
    wish: WishRequest,
    reason: Reason,
) -> Result<(IntentView, String), Error> {
    let Reason { reason, expires } = reason;
    let seconds = expires.map(|expires| u32::try_from(expires.as_secs()).unwrap_or(u32::MAX));
    let request = IntentRequest {
        cluster,
        wish,
        reason,
        expires_in_seconds: seconds,
    };
    let intent = client.wish(&request).await?;
    let told = intent.told();
    let told = format!("{} on cluster {}: {told}\n", intent.id, intent.cluster);
    Ok((intent, told))
}
