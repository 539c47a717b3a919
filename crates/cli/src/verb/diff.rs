//! `slipway diff`: what changed between two generations.

use crate::context::{Context, yaml};
use crate::error::Error;
use crate::kind::Kind;
use crate::lines::difference;
use api::client::Page;
use api::{Client, Exit};
use serde::Serialize;

/// Arguments of `slipway diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    slipway diff manifest hello\n  \
    slipway diff cluster edge --from 2 --to 5")]
pub struct Arguments {
    /// The kind of thing
    #[arg(value_parser = Kind::among(&[Kind::Manifest, Kind::Cluster]))]
    kind: Kind,

    /// Its name
    name: String,

    /// The older generation [default: the one before --to]
    #[arg(long, value_name = "GENERATION")]
    from: Option<u64>,

    /// The newer generation [default: the newest]
    #[arg(long, value_name = "GENERATION")]
    to: Option<u64>,
}

/// Two generations side by side.
#[derive(Serialize)]
struct Both<T> {
    from: Option<T>,
    to: T,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Arguments {
        kind,
        name,
        from,
        to,
    } = arguments;
    kind.check(&name)?;
    let client = context.client()?;
    let to = match to {
        Some(to) => to,
        None => newest(&client, kind, &name).await?,
    };
    // Before the first generation there was nothing, and that can be compared with too.
    let from = from.or_else(|| to.checked_sub(1)).filter(|from| *from > 0);
    let title = Title {
        kind,
        name: &name,
        from,
        to,
    };
    match kind {
        Kind::Manifest => {
            let old = match from {
                Some(from) => Some(client.manifest_generation(&name, from).await?),
                None => None,
            };
            let new = client.manifest_generation(&name, to).await?;
            let before = old.as_ref().map(|old| old.text.clone()).unwrap_or_default();
            let after = new.text.clone();
            title.compare(&Both { from: old, to: new }, &before, &after, context)?;
        }
        Kind::Cluster => {
            let old = match from {
                Some(from) => Some(client.cluster_generation(&name, from).await?),
                None => None,
            };
            let new = client.cluster_generation(&name, to).await?;
            let before = old.as_ref().map(yaml).transpose()?.unwrap_or_default();
            let after = yaml(&new)?;
            title.compare(&Both { from: old, to: new }, &before, &after, context)?;
        }
        Kind::Machine | Kind::Task | Kind::Intent | Kind::Event | Kind::Project => {
            return Err(kind.unfit("diff", "manifests and clusters"));
        }
    }
    Ok(Exit::Done)
}

async fn newest(client: &Client, kind: Kind, name: &str) -> Result<u64, Error> {
    match kind {
        Kind::Manifest => Ok(client.manifest(name).await?.generation),
        Kind::Cluster => {
            // Of a cluster that is gone only the history is left.
            let page = Page {
                limit: Some(1),
                cursor: None,
            };
            let listed = client.cluster_generations(name, &page).await?;
            Ok(listed.items.first().map_or(0, |newest| newest.generation))
        }
        Kind::Machine | Kind::Task | Kind::Intent | Kind::Event | Kind::Project => {
            Err(kind.unfit("diff", "manifests and clusters"))
        }
    }
}

/// What is compared.
struct Title<'a> {
    kind: Kind,
    name: &'a str,
    from: Option<u64>,
    to: u64,
}

impl Title<'_> {
    fn compare<T: Serialize>(
        &self,
        wire: &Both<T>,
        before: &str,
        after: &str,
        context: &mut Context<'_>,
    ) -> Result<(), Error> {
        let Self {
            kind,
            name,
            from,
            to,
        } = self;
        let text = difference(before, after, context.out().colours());
        if text.is_empty() {
            context.out().say("no difference");
        }
        context.show(wire, |_| {
            if text.is_empty() {
                return text;
            }
            let kind = kind.as_str();
            let old = from.map_or_else(
                || "nothing".to_owned(),
                |from| format!("{kind} {name} generation {from}"),
            );
            format!("--- {old}\n+++ {kind} {name} generation {to}\n{text}")
        })
    }
}
