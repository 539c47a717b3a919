//! `slipway describe`: all that is known of one thing.

use super::get::find_intent;
use crate::context::Context;
use crate::error::Error;
use crate::kind::Kind;
use crate::view;
use api::Exit;
use api::client::Page;
use api::page::LIMIT_MAX;

/// How many of the last changes of a machine are shown.
const CHANGES_SHOWN: u32 = 10;

/// Arguments of `slipway describe`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway describe cluster edge")]
pub struct Arguments {
    /// The kind of thing
    #[arg(value_parser = Kind::among(&[Kind::Manifest, Kind::Cluster, Kind::Machine, Kind::Task, Kind::Intent]))]
    kind: Kind,

    /// Its name or id
    name: String,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Arguments { kind, name } = arguments;
    if matches!(kind, Kind::Event | Kind::Project) {
        return Err(kind.unfit(
            "describe",
            "manifests, clusters, machines, tasks and intents",
        ));
    }
    kind.check(&name)?;
    let client = context.client()?;
    match kind {
        Kind::Manifest => {
            let view = client.manifest(&name).await?;
            context.show(&view, |now| view::manifest(&view, now))?;
        }
        Kind::Cluster => {
            let view = client.cluster(&name).await?;
            context.show(&view, |now| view::cluster(&view, now))?;
        }
        Kind::Machine => {
            let view = client.machine(&name).await?;
            let page = Page {
                limit: Some(CHANGES_SHOWN),
                cursor: None,
            };
            let changes = client.machine_changes(&name, &page).await?.items;
            context.show(&view, |now| view::machine(&view, &changes, now))?;
        }
        Kind::Task => {
            let view = client.task(&name).await?;
            let log = client.task_log(&name, 0, LIMIT_MAX).await?;
            context.show(&view, |now| view::task(&view, &log.lines, now))?;
        }
        Kind::Intent => {
            let view = find_intent(&client, &name).await?;
            context.show(&view, |now| view::intent(&view, now))?;
        }
        Kind::Event | Kind::Project => {}
    }
    Ok(Exit::Done)
}
