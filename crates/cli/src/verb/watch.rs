//! `slipway watch`: what happens, as it happens.

use crate::context::Context;
use crate::error::Error;
use crate::global::Format;
use crate::{context, view};
use api::{EventView, Exit, Signal};

/// Arguments of `slipway watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway watch -o json | jq .message")]
pub struct Arguments {
    /// Begin after this event instead of now
    #[arg(long, value_name = "ID")]
    after: Option<u64>,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    if let Some(after @ 1..) = arguments.after
        && client.events_after(after - 1, 1).await?.items.is_empty()
    {
        context.out().say(&format!(
            "nothing of this project has the number {after} or a later one; watching from now on"
        ));
    }
    let mut events = client.events(arguments.after);
    let mut away = false;
    loop {
        match events.next().await? {
            Signal::Open => {
                let again = if away {
                    "the server is back"
                } else {
                    "watching; Ctrl-C ends it"
                };
                context.out().say(again);
                away = false;
            }
            Signal::Event(event) => {
                let text = line(&event, context.global().output())?;
                context.out().data(&text)?;
            }
            Signal::Unknown => context
                .out()
                .say("something happened that this version cannot read"),
            Signal::Lost(error) => {
                if !away {
                    context.out().say(&format!("{error}; trying again"));
                }
                away = true;
            }
        }
    }
}

/// One event: a line for people, a line of JSON, or a document of YAML.
fn line(event: &EventView, format: Format) -> Result<String, Error> {
    match format {
        Format::Table => Ok(view::event(event)),
        Format::Json => {
            let text = serde_json::to_string(event).map_err(std::io::Error::other)?;
            Ok(format!("{text}\n"))
        }
        Format::Yaml => Ok(format!("---\n{}", context::yaml(event)?)),
    }
}
