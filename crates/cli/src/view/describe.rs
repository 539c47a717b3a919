//! One thing with all that is known of it.

use super::{
    ago, ends, held, host_words, kubernetes_says, machines, node_words, observed, provider_says,
    tasks, way,
};
use crate::table::{Table, count, indent, plain};
use api::{
    ChangeView, ClusterView, HostSeen, IntentView, LoadBalancerView, LogLine, MachineView,
    ManifestView, NewerModulesView, OriginView, Role, Simulated, TaskView, Time, WishView,
};
use std::collections::BTreeMap;

/// Lines of `name value`, aligned; values that are not there are left out.
struct Facts(Vec<(&'static str, String)>);

impl Facts {
    fn text(self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        self.0
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .fold(String::new(), |text, (name, value)| {
                text + &format!("{name:<width$}  {}\n", plain(&value))
            })
    }
}

/// A headed part of a description; nothing when it is empty.
fn section(head: &str, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("\n{head}\n{}", indent(text))
    }
}

pub(crate) fn manifest(view: &ManifestView, now: Time) -> String {
    let desired = if view.deleted { "deleted" } else { "declared" };
    let facts = Facts(vec![
        ("manifest", view.name.clone()),
        ("project", view.project.clone()),
        ("state", view.state.to_string()),
        (
            "desired",
            format!("{desired} by {} {}", view.author, ago(view.created_at, now)),
        ),
        ("generation", view.generation.to_string()),
    ]);
    let mut clusters = Table::new(["NAME", "STATE", "CONTROL", "COMPUTE", "LEAVING", "MESSAGE"]);
    for cluster in &view.clusters {
        clusters.row([
            cluster.name.clone(),
            cluster.state.to_string(),
            cluster.control.to_string(),
            cluster.compute.to_string(),
            cluster.leaving.to_string(),
            cluster.message.clone(),
        ]);
    }
    facts.text() + &section("CLUSTERS", &clusters.render())
}

pub(crate) fn cluster(view: &ClusterView, now: Time) -> String {
    let head = &view.head;
    let summary = &head.summary;
    let facts = Facts(vec![
        ("cluster", summary.name.clone()),
        ("id", head.id.clone()),
        ("project", head.project.clone()),
        ("manifest", head.manifest.clone()),
        ("state", format!("{}: {}", summary.state, summary.message)),
        (
            "desired",
            format!(
                "{}, {} control and {} compute nodes, generation {}",
                head.version, summary.control.wanted, summary.compute.wanted, head.generation
            ),
        ),
        (
            "observed",
            format!(
                "{}: {} control and {} compute nodes ready, {} leaving",
                observed(head.observed_at, now),
                summary.control.ready,
                summary.compute.ready,
                count(
                    usize::try_from(summary.leaving).unwrap_or(usize::MAX),
                    "machine"
                ),
            ),
        ),
    ]);
    let kubernetes = view.kubernetes.as_ref();
    let kubernetes = kubernetes.map(|kubernetes| Facts(kubernetes.told(now)).text());
    facts.text()
        + &section("KUBERNETES", &kubernetes.unwrap_or_default())
        + &section("LOAD BALANCERS", &load_balancers(&view.load_balancers))
        + &section("NEWER MODULES", &newer_modules(&view.newer_modules, now))
        + &section("NODES OF OTHERS", &strangers(&view.strangers))
        + &section("NOTES", &notes(&view.notes))
        + &section("HELD", &held(&head.held))
        + &section("OPEN TASKS", &tasks(&view.open_tasks, now))
        + &section("POOLS", &pools(&view.machines))
        + &section("MACHINES", &machines(&view.machines, now))
}

/// Pools with what their machines are made with; several kinds while they are replaced.
fn pools(machines: &[MachineView]) -> String {
    let mut pools: BTreeMap<(Role, &str, String), usize> = BTreeMap::new();
    for machine in machines.iter().filter(|machine| !machine.leaving) {
        let kind = (machine.role, &*machine.pool, machine.origin.made_with());
        *pools.entry(kind).or_default() += 1;
    }
    if pools.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["NAME", "ROLE", "MACHINES", "MADE WITH"]);
    for ((role, name, made_with), machines) in pools {
        table.row([
            name.to_owned(),
            role.to_string(),
            machines.to_string(),
            made_with,
        ]);
    }
    table.render()
}

fn notes(notes: &[String]) -> String {
    let told = notes.iter();
    told.map(|note| format!("{}\n", plain(note))).collect()
}

fn strangers(nodes: &[String]) -> String {
    let told = nodes.iter();
    told.map(|node| {
        format!(
            "{}: somebody else has joined it, and it is left alone\n",
            plain(node)
        )
    })
    .collect()
}

fn newer_modules(views: &[NewerModulesView], now: Time) -> String {
    views.iter().fold(String::new(), |text, view| {
        let since = view.since.map(|since| format!(", {}", ago(since, now)));
        let lines = format!(
            "{}: {} moved from {:.10} to {:.10}{}\n  → {}\n",
            plain(&view.pool),
            plain(&view.reference),
            plain(&view.from),
            plain(&view.to),
            since.unwrap_or_default(),
            plain(&view.next_action)
        );
        text + &lines
    })
}

fn load_balancers(views: &[LoadBalancerView]) -> String {
    if views.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["NAME", "LISTENS TO", "CALLED"]);
    for view in views {
        let ports = view
            .ports
            .iter()
            .map(|(role, port)| format!("{role} {port}"));
        let names = view.endpoint.iter().chain(&view.alternative_endpoints);
        table.row([
            view.name.clone(),
            ports.collect::<Vec<_>>().join(", "),
            names.cloned().collect::<Vec<_>>().join(", "),
        ]);
    }
    table.render()
}

pub(crate) fn machine(view: &MachineView, changes: &[ChangeView], now: Time) -> String {
    let origin = match &view.origin {
        OriginView::Made {
            provider,
            region,
            zone,
            server_type,
            image,
            hardware: _,
        } => {
            let place = zone
                .as_ref()
                .map_or_else(|| region.clone(), |zone| format!("{region}/{zone}"));
            format!("made by {provider} in {place}: {server_type}, {image}")
        }
        OriginView::Given {
            endpoint,
            ssh_port,
            username,
            jump_host: _,
        } => {
            format!("given: {username}@{endpoint}:{ssh_port}{}", way(view))
        }
    };
    let reference = view
        .machine
        .as_ref()
        .and_then(|seen| seen.reference.clone());
    let answers = view.machine.as_ref().and_then(|seen| seen.address.clone());
    let simulated = match view.simulated {
        Simulated::Nothing => String::new(),
        Simulated::Kubernetes | Simulated::Machine => view.simulated.to_string(),
    };
    let mut facts = Facts(vec![
        ("machine", view.name.clone()),
        ("id", view.id.clone()),
        ("cluster", view.cluster.clone()),
        ("load balancer", view.balancer.clone().unwrap_or_default()),
        ("simulated", simulated),
        ("pool", format!("{}, place {}", view.pool, view.ordinal)),
        ("role", view.role.to_string()),
        (
            "desired",
            if view.leaving { "to leave" } else { "to stay" }.to_owned(),
        ),
        ("origin", origin),
        ("made with", made_with(&view.origin)),
        ("private address", view.address.clone()),
        (
            "observed by provider",
            provider_says(view.machine.as_ref(), now),
        ),
        ("known there as", reference.unwrap_or_default()),
        ("answers at", answers.unwrap_or_default()),
        ("observed by kubernetes", kubernetes_says(view, now)),
    ]);
    if let Some(host) = &view.host {
        facts.0.extend(host_says(host, now));
    }
    facts.text() + &section("LAST CHANGES", &seen_to_change(changes))
}

/// What a machine is made with, where anything is special.
fn made_with(origin: &OriginView) -> String {
    match origin {
        OriginView::Made { hardware, .. } => {
            let hardware = hardware.as_ref().map(ToString::to_string);
            hardware.unwrap_or_default()
        }
        OriginView::Given { .. } => String::new(),
    }
}

/// What a host said of itself.
fn host_says(host: &HostSeen, now: Time) -> Vec<(&'static str, String)> {
    let said = |is: bool, yes: &str| if is { yes } else { "no" }.to_owned();
    let mesh = host.mesh_key.as_ref().filter(|_| host.meshed);
    let heard = host.mesh_peers_heard.zip(host.mesh_peers);
    let heard = heard.map(|(heard, peers)| format!("; hears {heard} of {peers} peers"));
    let heard = heard.unwrap_or_default();
    let mesh = mesh.map_or_else(|| "no".to_owned(), |key| format!("yes, as {key}{heard}"));
    let healthy = host.healthy.iter();
    let healthy = healthy.map(|(role, count)| format!("{role}: {count} targets answer"));
    let mut facts = vec![
        ("observed by itself", ago(host.observed_at, now)),
        ("system", format!("{}, kernel {}", host.system, host.kernel)),
        ("started as", host.boot.clone()),
        ("fullest disk", format!("{} % used", host.disk_used_percent)),
        ("equipped", said(host.equipped, "yes")),
        ("in the mesh", mesh),
        ("balances", healthy.collect::<Vec<_>>().join(", ")),
    ];
    if host.clock_off_seconds != 0 {
        facts.push(("clock", format!("{} s off", host.clock_off_seconds)));
    }
    facts
}

/// What was seen to change, each with its time and who saw it.
fn seen_to_change(changes: &[ChangeView]) -> String {
    changes.iter().fold(String::new(), |text, change| {
        let machine = change.machine.as_ref().map(|seen| seen.state.to_string());
        let said = machine.or_else(|| change.node.as_ref().map(node_words));
        let said = said.or_else(|| change.host.as_ref().map(host_words));
        let day = |end: &Time| format!("certificates end {}", end.timestamp().to_day());
        let said = said.or_else(|| change.certificates_end.as_ref().map(day));
        text + &format!(
            "{}  {:<10}  {}\n",
            change.at.aligned(),
            plain(&change.source),
            plain(&said.unwrap_or_default())
        )
    })
}

pub(crate) fn task(view: &TaskView, log: &[LogLine], now: Time) -> String {
    let facts = Facts(vec![
        ("task", view.id.clone()),
        ("does", format!("{} {}", view.kind, view.machine)),
        ("cluster", view.cluster.clone()),
        ("generation", view.generation.to_string()),
        ("state", view.state.to_string()),
        ("attempts", view.attempts.to_string()),
        (
            "due",
            view.due_at.map(|due| ago(due, now)).unwrap_or_default(),
        ),
        ("worker", view.worker.clone().unwrap_or_default()),
        (
            "lease",
            view.lease_until
                .map(|end| ago(end, now))
                .unwrap_or_default(),
        ),
        ("last error", view.error.clone().unwrap_or_default()),
        ("planned", ago(view.created_at, now)),
        ("changed", ago(view.updated_at, now)),
    ]);
    facts.text() + &section("LOG", &lines(log))
}

/// Lines of a task's log, each with its time and its attempt.
pub(crate) fn lines(log: &[LogLine]) -> String {
    log.iter().fold(String::new(), |text, line| {
        text + &format!(
            "{}  attempt {}  {}\n",
            line.at.aligned(),
            line.attempt,
            plain(&line.text)
        )
    })
}

pub(crate) fn intent(view: &IntentView, now: Time) -> String {
    let end = view.expires_at.map_or_else(
        || match &view.wish {
            WishView::Pause {} => ends(&view.wish).to_owned(),
            WishView::Scale { .. }
            | WishView::Replace { .. }
            | WishView::Retire { .. }
            | WishView::Retry { .. }
            | WishView::Cancel { .. }
            | WishView::Snapshot {}
            | WishView::Restore { .. }
            | WishView::Update { .. } => format!("{} or withdrawn", ends(&view.wish)),
        },
        |end| ago(end, now),
    );
    Facts(vec![
        ("intent", view.id.clone()),
        ("cluster", view.cluster.clone()),
        ("wish", view.told()),
        ("by", view.author.clone()),
        ("reason", view.reason.clone()),
        ("since", ago(view.created_at, now)),
        ("ends", end),
    ])
    .text()
}
