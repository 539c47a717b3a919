//! What to tell somebody who waits for a manifest; how to draw it is somebody else's matter.
//!
//! Everything is worked out from whole states of the server, never from single events: a
//! state that was missed changes nothing in the end.

use crate::table::{count, plain};
use api::{ClusterState, ClusterSummary, ManifestState, ManifestView, TaskView};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a manifest may be in error before waiting for it ends. Some errors mend
/// themselves within seconds: a machine that came up late, a limit that was hit.
const ERROR_GRACE: Duration = Duration::from_secs(10);

/// More clusters than this are counted instead of told one by one.
const TOLD_MAX: usize = 20;

/// The width of a cluster's own bar.
const BAR: u32 = 12;

/// The state of a manifest at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    /// The manifest with its clusters.
    pub(crate) manifest: ManifestView,
    /// Tasks that run just now, of these clusters and maybe of others.
    pub(crate) running: Vec<TaskView>,
}

/// What is waited for.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// The generation that must be reached, or a later one.
    pub(crate) generation: u64,
    /// Whether the manifest is to be gone.
    pub(crate) deletion: bool,
    failing: Option<Duration>,
}

/// Whether to go on waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on.
    Working,
    /// All is as declared.
    Done,
    /// It needs a person.
    Failing,
    /// Somebody else declared the opposite.
    Overtaken,
}

impl Goal {
    pub(crate) const fn new(generation: u64, deletion: bool) -> Self {
        Self {
            generation,
            deletion,
            failing: None,
        }
    }

    /// Judges a scene that was seen so long after the waiting began.
    pub(crate) fn judge(&mut self, scene: &Scene, elapsed: Duration) -> Verdict {
        let manifest = &scene.manifest;
        if manifest.generation < self.generation {
            return Verdict::Working;
        }
        if manifest.deleted != self.deletion {
            return Verdict::Overtaken;
        }
        match manifest.state {
            ManifestState::Done => Verdict::Done,
            ManifestState::Error => {
                let since = *self.failing.get_or_insert(elapsed);
                if elapsed.saturating_sub(since) >= ERROR_GRACE {
                    Verdict::Failing
                } else {
                    Verdict::Working
                }
            }
            ManifestState::Pending | ManifestState::Scheduled => {
                self.failing = None;
                Verdict::Working
            }
        }
    }
}

/// A cluster in one plain line.
fn line(cluster: &ClusterSummary) -> String {
    let ClusterSummary {
        name,
        state,
        control,
        compute,
        leaving,
        tasks: _,
        message,
    } = cluster;
    let nodes = format!("{control} control, {compute} compute");
    match state {
        ClusterState::Done => format!("{name}: {nodes} — ready"),
        ClusterState::Gone => format!("{name}: gone"),
        ClusterState::Pending => format!("{name}: {nodes} — not planned yet"),
        ClusterState::Scheduled => format!("{name}: {nodes} — {}", plain(message)),
        ClusterState::Error => format!("{name}: {nodes} — error: {}", plain(message)),
        ClusterState::Deleting => {
            format!(
                "{name}: {} left — {}",
                count(wide(*leaving), "machine"),
                plain(message)
            )
        }
    }
}

fn wide(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn finished(cluster: &ClusterSummary) -> bool {
    match cluster.state {
        ClusterState::Done | ClusterState::Gone => true,
        ClusterState::Pending
        | ClusterState::Scheduled
        | ClusterState::Error
        | ClusterState::Deleting => false,
    }
}

/// Plain lines for logs and pipes: only what changed since the last look.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    told: BTreeMap<String, String>,
}

impl Lines {
    /// What to say about the scene that was not said before.
    pub(crate) fn changes(&mut self, scene: &Scene) -> Vec<String> {
        let manifest = &scene.manifest;
        let many = manifest.clusters.len() > TOLD_MAX;
        let mut now = BTreeMap::new();
        for cluster in &manifest.clusters {
            if !many || cluster.state == ClusterState::Error {
                now.insert(cluster.name.clone(), line(cluster));
            }
        }
        let mut news = Vec::new();
        if many {
            news.push((format!("manifest {}", manifest.name), tally_line(manifest)));
        }
        for cluster in &manifest.clusters {
            news.extend(
                now.get(&cluster.name)
                    .map(|line| (cluster.name.clone(), line.clone())),
            );
        }
        for name in self.told.keys() {
            if !manifest
                .clusters
                .iter()
                .any(|cluster| cluster.name == *name)
                && !name.starts_with("manifest ")
            {
                news.push((name.clone(), format!("{name}: gone")));
            }
        }
        news.retain(|(name, line)| self.told.get(name) != Some(line));
        self.told.extend(news.iter().cloned());
        news.into_iter().map(|(_, line)| line).collect()
    }
}

fn tally_line(manifest: &ManifestView) -> String {
    let ready = manifest
        .clusters
        .iter()
        .filter(|cluster| finished(cluster))
        .count();
    let tasks: u32 = manifest.clusters.iter().map(|cluster| cluster.tasks).sum();
    let total = count(manifest.clusters.len(), "cluster");
    format!(
        "{}: {ready} of {total} ready, {}",
        manifest.name,
        count(wide(tasks), "open task")
    )
}

/// How much of the work is done, in machines that came or went.
///
/// Machines that leave are remembered, so that the share does not fall when they are gone.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    clusters: BTreeMap<String, (u32, u32)>,
}

impl Tally {
    /// Done and total after this scene.
    pub(crate) fn count(&mut self, scene: &Scene) -> (u64, u64) {
        for (name, (wanted, _)) in &mut self.clusters {
            if !scene
                .manifest
                .clusters
                .iter()
                .any(|cluster| cluster.name == *name)
            {
                *wanted = 0;
            }
        }
        let (mut done, mut total) = (0_u64, 0_u64);
        for cluster in &scene.manifest.clusters {
            let (control, compute) = (cluster.control, cluster.compute);
            let (wanted, leaving) = self.clusters.entry(cluster.name.clone()).or_default();
            *wanted = control.wanted.saturating_add(compute.wanted);
            *leaving = (*leaving).max(cluster.leaving);
            let ready = control.ready.min(control.wanted) + compute.ready.min(compute.wanted);
            done += u64::from(ready) + u64::from(*leaving - cluster.leaving);
            total += u64::from(*wanted) + u64::from(*leaving);
        }
        let vanished = self.clusters.iter().filter(|(name, _)| {
            !scene
                .manifest
                .clusters
                .iter()
                .any(|cluster| cluster.name == **name)
        });
        let gone: u64 = vanished.map(|(_, (_, leaving))| u64::from(*leaving)).sum();
        (done + gone, total + gone)
    }
}

/// What a terminal shows below the overall bar, and beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Beside the overall bar.
    pub(crate) headline: String,
    /// One line each, top to bottom.
    pub(crate) rows: Vec<String>,
}

/// The clusters that are not finished with what is being done to them, in at most `height` rows.
pub(crate) fn tree(scene: &Scene, height: usize) -> Tree {
    let manifest = &scene.manifest;
    let mut open: Vec<_> = manifest
        .clusters
        .iter()
        .filter(|cluster| !finished(cluster))
        .collect();
    open.sort_by_key(|cluster| (urgency(cluster.state), cluster.tasks == 0));
    let ready = manifest.clusters.len() - open.len();
    let headline = match (manifest.deleted, manifest.clusters.len()) {
        (true, left) => format!("{} left", count(left, "cluster")),
        (false, total) => format!("{ready} of {} ready", count(total, "cluster")),
    };
    let width = open
        .iter()
        .take(height)
        .map(|cluster| cluster.name.chars().count())
        .max();
    let mut rows = Vec::new();
    // Every cluster gets its line before any gets its tasks: what waits is seen first.
    let shown = if open.len() > height {
        height.saturating_sub(1)
    } else {
        open.len()
    };
    let mut room = height - shown - usize::from(open.len() > shown);
    for cluster in open.iter().take(shown) {
        rows.push(row(cluster, width.unwrap_or(0)));
        let tasks = scene
            .running
            .iter()
            .filter(|task| task.cluster == cluster.name)
            .take(room);
        let before = rows.len();
        rows.extend(tasks.map(|task| {
            let again = if task.attempts > 1 {
                format!(", attempt {}", task.attempts)
            } else {
                String::new()
            };
            format!("  └ {} {}{again}", task.kind, task.machine)
        }));
        room -= rows.len() - before;
    }
    if open.len() > shown {
        rows.push(format!(
            "… and {}",
            count(open.len() - shown, "more cluster")
        ));
    }
    Tree { headline, rows }
}

/// What needs attention comes first.
const fn urgency(state: ClusterState) -> u8 {
    match state {
        ClusterState::Error => 0,
        ClusterState::Scheduled | ClusterState::Deleting => 1,
        ClusterState::Pending => 2,
        ClusterState::Done | ClusterState::Gone => 3,
    }
}

fn row(cluster: &ClusterSummary, width: usize) -> String {
    let ClusterSummary {
        name,
        state,
        control,
        compute,
        leaving,
        tasks: _,
        message,
    } = cluster;
    let (ready, wanted) = (
        control.ready + compute.ready,
        control.wanted + compute.wanted,
    );
    let filled = wide((ready.min(wanted) * BAR).checked_div(wanted).unwrap_or(0));
    let bar: String = (0..wide(BAR))
        .map(|at| if at < filled { '█' } else { '░' })
        .collect();
    let nodes = match state {
        ClusterState::Deleting => format!("{} left", count(wide(*leaving), "machine")),
        ClusterState::Pending
        | ClusterState::Scheduled
        | ClusterState::Done
        | ClusterState::Error
        | ClusterState::Gone => format!("{control} control, {compute} compute"),
    };
    let message = match state {
        ClusterState::Error => format!("error: {}", plain(message)),
        ClusterState::Pending
        | ClusterState::Scheduled
        | ClusterState::Done
        | ClusterState::Deleting
        | ClusterState::Gone => plain(message),
    };
    format!("{name:<width$}  {bar}  {nodes}  {message}")
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests;
