//! One cluster: what should be beside what was seen, what is done, and what waits for whom.

use std::collections::{BTreeMap, BTreeSet};

use api::{KubernetesView, OriginView, WishView};
use askama::Template;
use axum::extract::State;
use model::balancer::BalanceFact;
use model::cluster::Role;
use model::id::ClusterId;
use model::intent::Intent;
use model::name::Name;
use model::network::Network;
use model::observed::{MachineFact, NodeFact};
use model::time::Timestamp;
use plan::{Held, Owner};
use serde::Deserialize;
use store::{ClusterRow, Event, MachineRow, TaskFilter, TaskRow};

use super::fleet;
use super::signs::{Bar, Sign, Stamp};
use super::task;
use super::{Frame, Shown, render};
use crate::access::Caller;
use crate::app::App;
use crate::extract::{self, Query, Within};
use crate::problem::Problem;
use crate::routes::clusters::{find, machines, open_tasks};

/// Machines on one page.
const MACHINES: usize = 100;

/// Open tasks that are shown; the rest are of the same kinds.
const OPEN_TASKS: usize = 50;

/// Finished tasks that are shown.
const FINISHED_TASKS: usize = 10;

/// Tasks and events that are looked through for those to show.
const RECENT: u32 = 200;

/// Events that are shown.
const EVENTS: usize = 20;

/// What is looked at.
#[derive(Debug, Deserialize)]
pub(super) struct ClusterQuery {
    from: Option<usize>,
    fragment: Option<String>,
}

#[derive(Template)]
#[template(path = "cluster.html", blocks = ["main"])]
struct Page {
    frame: Frame,
    id: ClusterId,
    cluster: fleet::Line,
    generation: u64,
    network: Network,
    kubernetes: Vec<(String, String)>,
    held: Vec<Waits>,
    intents: Vec<Wished>,
    pools: Vec<Pool>,
    machines: Vec<Line>,
    next: Option<String>,
    tasks: [Tasks; 2],
    events: Vec<Happened>,
}

/// Work that waits.
struct Waits {
    what: String,
    reason: String,
    person: bool,
    next_action: String,
}

/// A wish about the cluster.
struct Wished {
    wish: String,
    author: String,
    reason: String,
    since: Stamp,
}

/// How many machines of a pool are ready.
struct Pool {
    name: Name,
    role: Role,
    bar: Bar,
    /// What its machines are made with; several kinds while they are replaced.
    made_with: String,
}

/// One machine, as it should be and as it was seen.
struct Line {
    name: Name,
    pool: Name,
    role: Role,
    desired: &'static str,
    provider: Seen,
    service: Seen,
    address: String,
}

/// How something was seen from one side.
struct Seen {
    state: Sign,
    note: Option<String>,
    at: Option<Stamp>,
}

/// A list of tasks under its title.
struct Tasks {
    title: &'static str,
    anchor: &'static str,
    nothing: &'static str,
    lines: Vec<task::Line>,
}

/// Something that happened.
struct Happened {
    at: Stamp,
    kind: String,
    message: String,
}

/// Shows a cluster.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    named: Result<Within<Name>, Problem>,
    query: Result<Query<ClusterQuery>, Problem>,
) -> Shown {
    let (Within(project, name), Query(query)) = (named?, query?);
    let now = app.now();
    let frame = Frame::new(&app, caller, &project, query.fragment.is_some()).await?;
    let row = find(&app, &project, &name).await?;
    let seen = app.store().cluster_view(row.id).await?;
    let seen = seen.ok_or_else(|| Problem::missing("cluster", &name))?;
    let all = machines(&seen);
    let (open, finished) = tasks(&app, &row).await?;
    let about = objects(&name, &all, open.iter().chain(&finished));
    let from = query.from.unwrap_or(0);
    let end = from.saturating_add(MACHINES);
    let page = Page {
        frame,
        id: row.id,
        generation: row.generation.0,
        network: seen.desired.network,
        kubernetes: kubernetes(&seen, now),
        held: row.held.iter().map(waits).collect(),
        intents: seen
            .intents
            .iter()
            .filter(|intent| intent.counts(now))
            .map(|intent| wished(intent, now))
            .collect(),
        pools: pools(&all),
        machines: all
            .iter()
            .skip(from)
            .take(MACHINES)
            .map(|row| line(row, now))
            .collect(),
        next: (all.len() > end).then(|| format!("/projects/{project}/clusters/{name}?from={end}")),
        tasks: task_lists(open, finished, now),
        events: events(&app, &project, &about, now).await?,
        cluster: fleet::Line::new(row, now),
    };
    if query.fragment.is_some() {
        render(&page.as_main())
    } else {
        render(&page)
    }
}

/// What is told of Kubernetes, in the words of the command line.
fn kubernetes(seen: &store::ClusterView, now: Timestamp) -> Vec<(String, String)> {
    let told = KubernetesView::new(&seen.desired, &seen.observed).told(now.into());
    let titled = |(name, text): (&str, String)| {
        let mut letters = name.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        (first.into_iter().chain(letters).collect(), text)
    };
    told.into_iter().map(titled).collect()
}

fn waits(held: &Held) -> Waits {
    let others = if held.machines > 1 {
        format!(" and {} more", held.machines - 1)
    } else {
        String::new()
    };
    Waits {
        what: format!("{} {}{others}", held.kind, held.machine),
        reason: held.reason.to_string(),
        person: held.reason.owner() == Owner::Person,
        next_action: held.next_action(),
    }
}

fn wished(intent: &Intent, now: Timestamp) -> Wished {
    Wished {
        wish: WishView::from(&intent.wish).to_string(),
        author: intent.author.clone(),
        reason: intent.reason.clone(),
        since: Stamp::new(intent.created_at, now),
    }
}

/// Machines that serve of those wanted, pool by pool; the control plane first.
fn pools(machines: &[MachineRow]) -> Vec<Pool> {
    let mut pools: BTreeMap<(Role, &Name), (Bar, BTreeSet<String>)> = BTreeMap::new();
    for row in machines.iter().filter(|row| !row.leaving) {
        let (bar, kinds) = pools
            .entry((row.machine.role, &row.machine.pool))
            .or_default();
        bar.wanted += 1;
        bar.ready += u32::from(serves(row));
        kinds.insert(OriginView::from(&row.machine.origin).made_with());
    }
    let pool = |((role, name), (bar, kinds)): ((Role, &Name), (Bar, BTreeSet<String>))| Pool {
        name: name.clone(),
        role,
        bar,
        made_with: kinds.into_iter().collect::<Vec<_>>().join("; "),
    };
    pools.into_iter().map(pool).collect()
}

/// Whether a machine does what it is for.
fn serves(row: &MachineRow) -> bool {
    match row.machine.role {
        Role::Control | Role::Compute => {
            matches!(
                row.seen.node,
                Some((NodeFact::Joined { ready: true, .. }, _))
            )
        }
        Role::Balancer => balance(row).is_some(),
    }
}

/// The load balancer on a machine, and when it was seen.
fn balance(row: &MachineRow) -> Option<(&BalanceFact, Timestamp)> {
    let (host, at) = row.seen.host.as_ref()?;
    Some((host.balance.as_ref()?, *at))
}

/// How a machine was seen to do what it is for.
fn service(row: &MachineRow, now: Timestamp) -> Seen {
    let age = |at: Timestamp| Stamp::new(at, now);
    match row.machine.role {
        Role::Control | Role::Compute => {
            let (node, at) = row.seen.node.as_ref().map(|(fact, at)| (fact, *at)).unzip();
            let version = match node {
                Some(NodeFact::Joined { version, .. }) => Some(version.to_string()),
                Some(NodeFact::Absent) | None => None,
            };
            Seen {
                state: node.into(),
                note: version,
                at: at.map(age),
            }
        }
        Role::Balancer => {
            let (balance, at) = balance(row).unzip();
            let healthy = balance.map(|balance| {
                let roles = balance.healthy.iter();
                let told = roles.map(|(role, count)| format!("{role}: {count} healthy"));
                told.collect::<Vec<_>>().join(", ")
            });
            Seen {
                state: balance.into(),
                note: healthy,
                at: at.map(age),
            }
        }
    }
}

fn line(row: &MachineRow, now: Timestamp) -> Line {
    let MachineRow {
        machine,
        cluster: _,
        cluster_id: _,
        leaving,
        seen,
    } = row;
    let (provider, provider_at) = seen.machine.as_ref().map(|(fact, at)| (fact, *at)).unzip();
    let age = |at: Timestamp| Stamp::new(at, now);
    let reached = match provider {
        Some(MachineFact::Running { address, .. }) if *address != machine.address => {
            format!("{}, {address}", machine.address)
        }
        Some(
            MachineFact::Running { .. }
            | MachineFact::Absent
            | MachineFact::Booting { .. }
            | MachineFact::Unreachable { .. },
        )
        | None => machine.address.to_string(),
    };
    Line {
        name: machine.name.clone(),
        pool: machine.pool.clone(),
        role: machine.role,
        desired: if *leaving { "to leave" } else { "to stay" },
        provider: Seen {
            state: provider.into(),
            note: None,
            at: provider_at.map(age),
        },
        service: service(row, now),
        address: reached,
    }
}

/// Tasks that are open, and some that ended lately.
async fn tasks(app: &App, of: &ClusterRow) -> Result<(Vec<TaskRow>, Vec<TaskRow>), Problem> {
    let open = open_tasks(app, of).await?;
    let filter = TaskFilter {
        cluster: Some(of.name.clone()),
        state: None,
    };
    let mut recent = app
        .store()
        .tasks(&of.project, filter, extract::page(Some(RECENT), None)?)
        .await?
        .items;
    recent.retain(|row| !row.state.open() && row.task.cluster == of.id);
    Ok((open, recent))
}

fn task_lists(open: Vec<TaskRow>, finished: Vec<TaskRow>, now: Timestamp) -> [Tasks; 2] {
    let lines = |rows: Vec<TaskRow>, max| {
        rows.into_iter()
            .take(max)
            .map(|row| task::Line::new(row, now))
            .collect()
    };
    [
        Tasks {
            title: "Open tasks",
            anchor: "open-tasks",
            nothing: "Nothing is being done.",
            lines: lines(open, OPEN_TASKS),
        },
        Tasks {
            title: "Finished tasks",
            anchor: "finished-tasks",
            nothing: "Nothing was finished lately.",
            lines: lines(finished, FINISHED_TASKS),
        },
    ]
}

/// What happened lately to any of these objects, newest first.
async fn events(
    app: &App,
    project: &Name,
    of: &BTreeSet<String>,
    now: Timestamp,
) -> Result<Vec<Happened>, Problem> {
    let newest = *app.store().subscribe().borrow();
    let after = newest.saturating_sub(u64::from(RECENT));
    let events = app.store().events(Some(project), after, RECENT).await?;
    let ours = events
        .into_iter()
        .rev()
        .filter(|event| of.contains(&event.object));
    let happened = |event: Event| Happened {
        at: Stamp::new(event.at, now),
        kind: event.kind,
        message: event.message,
    };
    Ok(ours.take(EVENTS).map(happened).collect())
}

/// How events name the cluster, its machines and its tasks.
fn objects<'a>(
    cluster: &Name,
    machines: &[MachineRow],
    tasks: impl Iterator<Item = &'a TaskRow>,
) -> BTreeSet<String> {
    let mut objects = BTreeSet::from([format!("cluster/{cluster}")]);
    objects.extend(
        machines
            .iter()
            .map(|row| format!("machine/{}", row.machine.name)),
    );
    objects.extend(tasks.map(|row| format!("task/{}", row.task.id)));
    objects
}
