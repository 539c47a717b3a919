//! `slipway why`: the causal chain behind something, down to what would change it.

use crate::context::Context;
use crate::error::Error;
use crate::kind::Kind;
use crate::table::count;
use crate::view;
use api::{
    CauseView, Client, ClusterState, ClusterView, Exit, HeldView, MachineState, MachineView,
    TaskKind, Time,
};
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
    #[arg(value_parser = Kind::among(&[Kind::Manifest, Kind::Cluster, Kind::Machine, Kind::Task]))]
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
    kind.check(&name)?;
    let client = context.client()?;
    let explained = match kind {
        Kind::Cluster => vec![explain(&client, name, None).await?],
        Kind::Manifest => of_manifest(&client, &name, context).await?,
        Kind::Machine => {
            let machine = client.machine(&name).await?;
            vec![of_machine(&client, machine).await?]
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
        Kind::Intent | Kind::Event | Kind::Project => return Err(kind.unfit("why", fit)),
    };
    context.show(&explained, |_| {
        let chains: Vec<_> = explained.iter().map(|of| view::chain(&of.chain)).collect();
        chains.join("\n")
    })?;
    Ok(Exit::Done)
}

/// What is known of a machine, how its cluster stands, and every link that names it. When
/// none does, its task, or else the waits that it shares with others: those name only the first
/// of them.
async fn of_machine(client: &Client, machine: MachineView) -> Result<Explained, Error> {
    let fact = view::standing(&machine, Time::now());
    let about = Some((machine.name.as_str(), fact));
    // A name may have had several lives; which one is meant is known here.
    let life = Some(&machine.cluster_id).filter(|id| !id.is_empty());
    let life = life.unwrap_or(&machine.cluster);
    let mut explained = explain(client, life.clone(), about).await?;
    explained.cluster.clone_from(&machine.cluster);
    // What is known of it and how the cluster stands are always there.
    if explained.chain.len() <= 2 {
        let cluster = client.cluster(life).await?;
        let task = cluster
            .open_tasks
            .iter()
            .find(|task| task.machine == machine.name);
        match task {
            Some(task) => explained.chain.push(CauseView {
                fact: format!("{} {} is {}", task.kind, task.machine, task.state),
                next: Some(format!("follow it with `slipway task log {}`", task.id)),
            }),
            None => explained.chain.extend(shared(&machine, &cluster)),
        }
    }
    Ok(explained)
}

/// The waits of several machines for work that this one needs too: those whose first is of the
/// same pool, or else any, because a wait goes across pools.
fn shared(machine: &MachineView, cluster: &ClusterView) -> Vec<CauseView> {
    let needed = |held: &&HeldView| held.machines > 1 && needs(machine, cluster, held.kind);
    let waits: Vec<_> = cluster.head.held.iter().filter(needed).collect();
    let near = |held: &&&HeldView| {
        let mut machines = cluster.machines.iter();
        machines.any(|first| first.name == held.machine && first.pool == machine.pool)
    };
    let nearest: Vec<_> = waits.iter().filter(near).copied().collect();
    let waits = if nearest.is_empty() { waits } else { nearest };
    let wait = |held: &HeldView| {
        let others = match held.machines - 1 {
            1 => "1 other".to_owned(),
            many => format!("{many} others"),
        };
        CauseView {
            fact: format!("{} waits with {others}: {}", machine.name, held.text),
            next: Some(held.next_action.clone()),
        }
    };
    waits.into_iter().map(wait).collect()
}

/// Whether this is yet to be done to a machine, as far as it was seen.
fn needs(machine: &MachineView, cluster: &ClusterView, kind: TaskKind) -> bool {
    let node = machine.node.as_ref().filter(|node| node.joined);
    let host = machine.host.as_ref();
    let made = machine
        .machine
        .as_ref()
        .is_some_and(|seen| seen.state != MachineState::Absent);
    let old = node.is_some_and(|node| {
        let version = node.version.as_deref();
        version.is_some_and(|version| version != cluster.head.version)
    });
    match kind {
        TaskKind::Key | TaskKind::Create => !machine.leaving && !made,
        TaskKind::Equip => !machine.leaving && host.is_none_or(|host| !host.equipped),
        TaskKind::Mesh | TaskKind::Balance => !machine.leaving && made,
        TaskKind::Name | TaskKind::Expose | TaskKind::Shut => made,
        TaskKind::Prepare | TaskKind::Init | TaskKind::Join => !machine.leaving && node.is_none(),
        TaskKind::Install | TaskKind::Clear | TaskKind::Snapshot | TaskKind::Restore => {
            !machine.leaving && node.is_some()
        }
        TaskKind::Tend => node.is_some(),
        TaskKind::Drain => machine.leaving || old,
        TaskKind::Upgrade => !machine.leaving && old,
        TaskKind::Renew => !machine.leaving && node.is_some(),
        TaskKind::Uncordon => !machine.leaving && node.is_some_and(|node| node.cordoned),
        TaskKind::Leave | TaskKind::Delete | TaskKind::Release => machine.leaving,
    }
}

/// Whether a sentence has this name in it, and not only a longer one that begins so.
fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .any(|word| word == name)
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
        chain.retain(|cause| std::mem::take(&mut first) || names(&cause.fact, machine));
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
