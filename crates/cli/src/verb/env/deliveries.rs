//! `slipway env deliveries`: messages to those who are told what becomes of environments.

use crate::context::Context;
use crate::error::Error;
use crate::pages::all;
use crate::verb::get;
use crate::view;
use api::client::DeliveryFilter;
use api::{DeliveryState, Exit};

/// Verbs about messages.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// List messages, newest first
    List(List),
    /// Have a message that has not arrived be sent now
    #[command(after_help = "Example:\n  slipway env deliveries retry delivery-0c5w3k9qj2m4x")]
    Retry {
        /// Which message
        #[arg(value_name = "ID", value_parser = api::argument::delivery)]
        id: String,
    },
}

/// Arguments of `slipway env deliveries list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env deliveries list --state given-up
  slipway env deliveries list --target ops --environment orange -o json")]
pub struct List {
    /// Only those that have come so far
    #[arg(long, value_name = "STATE", value_parser = ["waiting", "sending", "delivered", "given-up"])]
    state: Option<String>,

    /// Only those to this target
    #[arg(long, value_name = "NAME")]
    target: Option<String>,

    /// Only those about this environment
    #[arg(long, value_name = "NAME", value_parser = api::argument::environment)]
    environment: Option<String>,
}

pub(super) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    match verb {
        Verb::List(arguments) => {
            let filter = DeliveryFilter {
                state: arguments.state.as_deref().and_then(state),
                target: arguments.target,
                environment: arguments.environment,
            };
            let listed = all(async |page| client.deliveries(&filter, page).await).await?;
            get::list(&listed, "deliveries", view::deliveries, context)?;
        }
        Verb::Retry { id } => {
            let view = client.retry_delivery(&id).await?;
            context.show(&view, |now| {
                view::deliveries(std::slice::from_ref(&view), now)
            })?;
        }
    }
    Ok(Exit::Done)
}

fn state(word: &str) -> Option<DeliveryState> {
    let all = [
        DeliveryState::Waiting,
        DeliveryState::Sending,
        DeliveryState::Delivered,
        DeliveryState::GivenUp,
    ];
    all.into_iter().find(|state| state.as_str() == word)
}
