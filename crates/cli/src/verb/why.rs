//! `slipway why`: the causal chain behind something, down to what would change it.

use crate::context::Context;
use crate::error::Error;
use crate::kind::Kind;
use crate::table::count;
use crate::view;
use api::{CauseView, Client, ClusterState, Exit, Time};
use serde::Serialize;

/// How many clusters of a manifest are explained.
const CLUSTERS_MAX: usize = 10;

/// Arguments of `slipway why`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway why cluster edge\n  slipway why machine edge-compute-02"
)]
pub struct Arguments {
    /// The kind of thing
    #[arg(value_enum)]
    kind: Kind,

    /// Its name or id
    name: String,
}

/// The chain of one cluster, or the part of it that is about one machine.
#[derive(Serialize)]
struct Explained {
    cluster: String,
    chain: Vec<CauseView>,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Arguments { kind, name } = arguments;
    let fit = "manifests, clusters, machines and tasks";
    let client = context.client()?;
    let explained = match kind {
        Kind::Cluster => vec![explain(&client, name, None).await?],
        Kind::Manifest => of_manifest(&client, &name, context).await?,
        Kind::Machine => {
            let machine = client.machine(&name).await?;
            let fact = view::standing(&machine, Time::now());
            vec![explain(&client, machine.cluster, Some((&machine.name, fact))).await?]
        }
        Kind::Task => {
            let task = client.task(&name).await?;
            let error = task
                .error
                .map(|error| format!(": {error}"))
                .unwrap_or_default();
            let attempts = count(
                usize::try_from(task.attempts).unwrap_or(usize::MAX),
                "attempt",
            );
            let fact = format!(
                "task {} ({} {}) is {} after {attempts}{error}",
                task.id, task.kind, task.machine, task.state
            );
            vec![explain(&client, task.cluster, Some((&task.machine, fact))).await?]
        }
        Kind::Intent | Kind::Event => return Err(kind.unfit("why", fit)),
    };
    context.show(&explained, |_| {
        let chains: Vec<_> = explained.iter().map(|of| view::chain(&of.chain)).collect();
        chains.join("\n")
    })?;
    Ok(Exit::Done)
}

/// The chain of a cluster; about one machine, what is known of it, then the first link and
/// those that name the machine.
async fn explain(
    client: &Client,
    cluster: String,
    about: Option<(&str, String)>,
) -> Result<Explained, Error> {
    let mut chain = client.why(&cluster).await?.chain;
    if let Some((machine, fact)) = about {
        let mut first = true;
        chain.retain(|cause| std::mem::take(&mut first) || cause.fact.contains(machine));
        chain.insert(0, CauseView { fact, next: None });
    }
    Ok(Explained { cluster, chain })
}

/// The chains of those clusters of a manifest that are not done; of all when all are.
async fn of_manifest(
    client: &Client,
    name: &str,
    context: &mut Context<'_>,
) -> Result<Vec<Explained>, Error> {
    let manifest = client.manifest(name).await?;
    let open = |state| state != ClusterState::Done;
    let any = manifest.clusters.iter().any(|cluster| open(cluster.state));
    let names: Vec<_> = manifest
        .clusters
        .iter()
        .filter(|cluster| !any || open(cluster.state))
        .map(|cluster| cluster.name.clone())
        .collect();
    let mut explained = Vec::new();
    for cluster in names.iter().take(CLUSTERS_MAX) {
        explained.push(explain(client, cluster.clone(), None).await?);
    }
    if names.len() > CLUSTERS_MAX {
        let more = names.len() - CLUSTERS_MAX;
        context.out().say(&format!(
            "{more} more clusters are not shown; name one of them"
        ));
    }
    Ok(explained)
}
