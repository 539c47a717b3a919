//! `slipway backup etcd`: snapshots of a cluster's etcd, and the way back.

use super::apply::span;
use super::intent::{Reason, stored, wish};
use crate::context::Context;
use crate::error::Error;
use crate::table::Table;
use crate::wait::wish::{Wait, wait};
use api::{Client, ClusterView, Exit, SnapshotView, SnapshotsView, Time, WishRequest};
use indicatif::HumanBytes;
use std::time::Duration;

/// Verbs about what the API of a cluster knows.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// List the snapshots that are kept of a cluster
    List(List),
    /// Take a snapshot now, whatever the schedule
    Create(Create),
    /// Put a snapshot back: the cluster knows what it knew then, and nothing since
    Restore(Restore),
}

/// Arguments of `slipway backup etcd list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway backup etcd list edge")]
pub struct List {
    /// The cluster
    #[arg(value_parser = api::argument::name)]
    cluster: String,
}

/// Arguments of `slipway backup etcd create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway backup etcd create edge --wait
  slipway backup etcd create edge --reason 'before the migration'")]
pub struct Create {
    /// The cluster
    #[arg(value_parser = api::argument::name)]
    cluster: String,

    #[command(flatten)]
    waiting: Waiting,

    #[command(flatten)]
    reason: Reason,
}

/// Whether to wait for what was wished, and for how long.
#[derive(Debug, Clone, clap::Args)]
struct Waiting {
    /// Wait until it is done
    #[arg(long)]
    wait: bool,

    /// Wait no longer than this, e.g. 90s, 30m, 2h
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = span)]
    timeout: Option<Duration>,
}

/// Arguments of `slipway backup etcd restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway backup etcd list edge
  slipway backup etcd restore edge --snapshot 20260307T020000Z-0a1b2c3d --wait

Everything that was created, changed or deleted in the API of the cluster since then is undone.
The API is away for a minute or two; pods go on running meanwhile.")]
pub struct Restore {
    /// The cluster
    #[arg(value_parser = api::argument::name)]
    cluster: String,

    /// Which snapshot
    #[arg(long, value_name = "ID", value_parser = api::argument::snapshot)]
    snapshot: String,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    waiting: Waiting,

    #[command(flatten)]
    reason: Reason,
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    match verb {
        Verb::List(List { cluster }) => {
            let view = client.cluster(&cluster).await?;
            let kept = snapshots(&view);
            let kept = kept.map_or_else(Vec::new, |known| known.kept.clone());
            context.show(&kept, |now| listed(&view, now))?;
            Ok(Exit::Done)
        }
        Verb::Create(Create {
            cluster,
            waiting,
            reason,
        }) => {
            let view = client.cluster(&cluster).await?;
            let asked = WishRequest::Snapshot {};
            asked_for(&client, &view, asked, (waiting, reason), context).await
        }
        Verb::Restore(Restore {
            cluster,
            snapshot,
            yes,
            waiting,
            reason,
        }) => {
            let view = client.cluster(&cluster).await?;
            if !yes && !agreed(&view, &snapshot, context)? {
                context.out().say("nothing was restored");
                return Ok(Exit::Failed);
            }
            let asked = WishRequest::Restore { snapshot };
            asked_for(&client, &view, asked, (waiting, reason), context).await
        }
    }
}

/// Stores a wish and, if asked, waits until it is fulfilled.
async fn asked_for(
    client: &Client,
    before: &ClusterView,
    asked: WishRequest,
    (waiting, reason): (Waiting, Reason),
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let cluster = before.head.summary.name.clone();
    if !waiting.wait {
        return wish(client, cluster, asked, reason, context).await;
    }
    let (intent, told) = stored(client, cluster, asked, reason).await?;
    context.out().complain(&told);
    let waited = Wait {
        before,
        intent: &intent,
        timeout: waiting.timeout,
    };
    wait(context, client, waited).await
}

fn snapshots(view: &ClusterView) -> Option<&SnapshotsView> {
    view.kubernetes.as_ref()?.snapshots.as_ref()
}

/// Whether somebody has typed the name of the cluster: a yes is said too easily.
fn agreed(view: &ClusterView, snapshot: &str, context: &mut Context<'_>) -> Result<bool, Error> {
    let name = &view.head.summary.name;
    let question = format!(
        "everything that the API of cluster {name} was told since snapshot {snapshot} is undone; \
         type the name of the cluster to go on:"
    );
    let typed = context.out().ask_for(&question);
    typed
        .map(|typed| typed == *name)
        .ok_or_else(|| Error::Usage {
            what: "restoring needs the name of the cluster, and nobody is here to type it"
                .to_owned(),
            hint: "say it with --yes".to_owned(),
        })
}

fn listed(view: &ClusterView, now: Time) -> String {
    let Some(known) = snapshots(view) else {
        return "there is no control plane yet\n".to_owned();
    };
    let mut table = Table::new(["ID", "TAKEN", "SIZE", "KUBERNETES", "WHY"]);
    for snapshot in known.kept.iter().rev() {
        table.row(row(snapshot, now));
    }
    let place = known.to.as_ref();
    let place = place.map_or_else(String::new, |to| format!(", in {to}"));
    format!("{}{}{place}\n", table.render(), known.told(now))
}

fn row(snapshot: &SnapshotView, now: Time) -> [String; 5] {
    let before = snapshot.before.as_ref();
    [
        snapshot.id.clone(),
        crate::view::ago(snapshot.taken_at, now),
        HumanBytes(snapshot.bytes).to_string(),
        snapshot.version.clone(),
        before.map_or_else(String::new, |before| format!("before {before}")),
    ]
}
