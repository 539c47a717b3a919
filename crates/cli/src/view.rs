//! What people see of the things on a server: tables for many, descriptions of one.
//!
//! Every column says whose view it is: what somebody DESIRED, what was OBSERVED, by whom and
//! how long ago. Time is a value, so that tests can pin the text.

mod access;
mod describe;
mod environment;
mod secret;
mod setting;

pub(crate) use access::{audit, projects, tokens};
pub(crate) use describe::{cluster, intent, lines, machine, manifest, task};
pub(crate) use environment::{
    configuration, deliveries, environment, environment_settings, environments,
};
pub(crate) use secret::{keys, secrets};
pub(crate) use setting::setting_keys;

use crate::table::{Table, plain};
use api::time::{brief, left};
use api::{
    CauseView, ClusterHead, EventView, GenerationView, HeldView, HostSeen, IntentView, MachineSeen,
    MachineView, ManifestView, NodeSeen, Role, TaskView, Time, WishView,
};
use std::collections::BTreeMap;

/// How far `time` is from `now`, in words.
pub(crate) fn ago(time: Time, now: Time) -> String {
    if time > now {
        format!("in {}", left(now.age(time)))
    } else {
        format!("{} ago", brief(time.age(now)))
    }
}

fn observed(time: Option<Time>, now: Time) -> String {
    // Before the first look at the whole, what is known was seen by tasks on their way.
    time.map_or_else(|| "by tasks".to_owned(), |time| ago(time, now))
}

pub(crate) fn manifests(manifests: &[ManifestView], now: Time) -> String {
    let mut table = Table::new([
        "NAME",
        "STATE",
        "DESIRED",
        "DECLARED BY",
        "DECLARED",
        "CLUSTERS DONE",
    ]);
    for view in manifests {
        let done = view
            .clusters
            .iter()
            .filter(|of| of.state == api::ClusterState::Done)
            .count();
        let desired = if view.deleted { "deleted" } else { "declared" };
        table.row([
            view.name.clone(),
            view.state.to_string(),
            format!("{desired}, generation {}", view.generation),
            view.author.clone(),
            ago(view.created_at, now),
            format!("{done}/{}", view.clusters.len()),
        ]);
    }
    table.render()
}

pub(crate) fn clusters(clusters: &[ClusterHead], now: Time) -> String {
    let mut table = Table::new([
        "NAME", "MANIFEST", "STATE", "DESIRED", "CONTROL", "COMPUTE", "OBSERVED", "MESSAGE",
    ]);
    let mut bearers: BTreeMap<&str, usize> = BTreeMap::new();
    for head in clusters {
        *bearers.entry(&head.summary.name).or_default() += 1;
    }
    for head in clusters {
        let name = &head.summary.name;
        // An old one may still be leaving, or be remembered, when a new one bears its name.
        let shared = bearers
            .get(name.as_str())
            .is_some_and(|bearers| *bearers > 1);
        table.row([
            if shared {
                format!("{name} (life {})", u64::from(head.incarnation) + 1)
            } else {
                name.clone()
            },
            head.manifest.clone(),
            head.summary.state.to_string(),
            format!("{}, generation {}", head.version, head.generation),
            head.summary.control.to_string(),
            head.summary.compute.to_string(),
            observed(head.observed_at, now),
            head.summary.message.clone(),
        ]);
    }
    table.render()
}

fn provider_says(seen: Option<&MachineSeen>, now: Time) -> String {
    seen.map_or_else(
        || "never looked".to_owned(),
        |seen| format!("{} {}", seen.state, ago(seen.observed_at, now)),
    )
}

fn kubernetes_says(view: &MachineView, now: Time) -> String {
    match (&view.node, view.role) {
        (Some(seen), _) => format!("{} {}", node_words(seen), ago(seen.observed_at, now)),
        (None, Role::Balancer) => "nothing to do with it".to_owned(),
        (None, Role::Control | Role::Compute) => "never looked".to_owned(),
    }
}

/// How a node was seen, without when.
fn node_words(seen: &NodeSeen) -> String {
    let state = match (seen.joined, seen.ready) {
        (false, _) => "no node",
        (true, false) => "not ready",
        (true, true) => "ready",
    };
    let mut words = vec![state.to_owned()];
    words.extend(seen.cordoned.then(|| "cordoned".to_owned()));
    words.extend(seen.version.clone());
    words.join(" ")
}

/// How far a host has come, without when.
fn host_words(seen: &HostSeen) -> String {
    let mut words = vec![if seen.equipped { "equipped" } else { "bare" }.to_owned()];
    words.extend(seen.meshed.then(|| "in the mesh".to_owned()));
    let healthy = seen.healthy.iter();
    words.extend(healthy.map(|(role, count)| format!("{role}: {count} healthy")));
    words.join(", ")
}

pub(crate) fn machines(machines: &[MachineView], now: Time) -> String {
    let mut table = Table::new([
        "NAME",
        "CLUSTER",
        "POOL",
        "ROLE",
        "DESIRED",
        "OBSERVED BY PROVIDER",
        "OBSERVED BY KUBERNETES",
    ]);
    let mut bearers: BTreeMap<&str, u32> = BTreeMap::new();
    for view in machines {
        *bearers.entry(&view.name).or_default() += 1;
    }
    for view in machines {
        // A name that was used again, while its former bearer is still there.
        let shared = bearers.get(&*view.name).is_some_and(|bearers| *bearers > 1);
        let or_id = |name: &str, id: &str| {
            if shared && !id.is_empty() {
                format!("{name} ({id})")
            } else {
                name.to_owned()
            }
        };
        table.row([
            or_id(&view.name, &view.id),
            or_id(&view.cluster, &view.cluster_id),
            view.pool.clone(),
            view.role.to_string(),
            if view.leaving { "to leave" } else { "to stay" }.to_owned(),
            provider_says(view.machine.as_ref(), now) + &way(view),
            kubernetes_says(view, now),
        ]);
    }
    table.render()
}

/// How a machine is reached, behind whatever else is said of it; nothing where directly.
pub(crate) fn way(view: &MachineView) -> String {
    let jump = view.origin.jump_host();
    jump.map_or_else(String::new, |jump| format!(", by way of {jump}"))
}

/// One machine in one sentence.
pub(crate) fn standing(view: &MachineView, now: Time) -> String {
    format!(
        "machine {} is {}; its provider: {}; Kubernetes: {}",
        view.name,
        if view.leaving { "to leave" } else { "to stay" },
        provider_says(view.machine.as_ref(), now),
        kubernetes_says(view, now),
    )
}

pub(crate) fn tasks(tasks: &[TaskView], now: Time) -> String {
    let mut table = Table::new([
        "ID",
        "CLUSTER",
        "KIND",
        "MACHINE",
        "STATE",
        "ATTEMPTS",
        "CHANGED",
        "LAST ERROR",
    ]);
    for view in tasks {
        let due = view.due_at.filter(|due| *due > now && view.attempts > 0);
        table.row([
            view.id.clone(),
            view.cluster.clone(),
            view.kind.to_string(),
            view.machine.clone(),
            due.map_or_else(
                || view.state.to_string(),
                |due| format!("again {}", ago(due, now)),
            ),
            view.attempts.to_string(),
            ago(view.updated_at, now),
            view.error.clone().unwrap_or_default(),
        ]);
    }
    table.render()
}

/// What ends a wish that has no last day and is not withdrawn.
const fn ends(wish: &WishView) -> &'static str {
    match wish {
        WishView::Scale { was: 0, .. } => "when another size is wished",
        WishView::Scale { .. } => "when the manifest names another count",
        WishView::Replace { .. }
        | WishView::Retire { .. }
        | WishView::Retry { .. }
        | WishView::Cancel { .. }
        | WishView::Snapshot {}
        | WishView::Restore { .. }
        | WishView::Update { .. } => "when fulfilled",
        WishView::Pause {} => "when withdrawn",
    }
}

pub(crate) fn intents(intents: &[IntentView], now: Time) -> String {
    let mut table = Table::new(["ID", "CLUSTER", "WISH", "BY", "SINCE", "ENDS", "REASON"]);
    for view in intents {
        table.row([
            view.id.clone(),
            view.cluster.clone(),
            view.told(),
            view.author.clone(),
            ago(view.created_at, now),
            view.expires_at
                .map_or_else(|| ends(&view.wish).to_owned(), |end| ago(end, now)),
            view.reason.clone(),
        ]);
    }
    table.render()
}

pub(crate) fn events(events: &[EventView], now: Time) -> String {
    let mut table = Table::new(["ID", "WHEN", "KIND", "OBJECT", "MESSAGE"]);
    for view in events {
        table.row([
            view.id.to_string(),
            ago(view.at, now),
            view.kind.clone(),
            view.object.clone(),
            view.message.clone(),
        ]);
    }
    table.render()
}

/// One event as it happens.
pub(crate) fn event(event: &EventView) -> String {
    format!(
        "{}  {} {}: {}\n",
        event.at.aligned(),
        event.kind,
        plain(&event.object),
        plain(&event.message)
    )
}

pub(crate) fn generations(generations: &[GenerationView], now: Time) -> String {
    let mut table = Table::new(["GENERATION", "SINCE", "BY", "BECAUSE", "CHANGED"]);
    for view in generations {
        // What was stored before reasons were kept.
        let unsaid = if view.deleted { "deleted" } else { "declared" };
        table.row([
            view.generation.to_string(),
            ago(view.at, now),
            view.author.clone().unwrap_or_else(|| "-".to_owned()),
            view.because.clone().unwrap_or_else(|| unsaid.to_owned()),
            view.changed.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.render()
}

/// Work that waits: what and why, then what ends it.
pub(crate) fn held(held: &[HeldView]) -> String {
    held.iter().fold(String::new(), |text, held| {
        text + &format!("{}\n  → {}\n", plain(&held.text), plain(&held.next_action))
    })
}

/// A causal chain: what is the case, then what would change it.
pub(crate) fn chain(chain: &[CauseView]) -> String {
    chain.iter().fold(String::new(), |text, cause| {
        let next = cause
            .next
            .as_ref()
            .map(|next| format!("  → {}\n", plain(next)));
        text + &plain(&cause.fact) + "\n" + &next.unwrap_or_default()
    })
}
