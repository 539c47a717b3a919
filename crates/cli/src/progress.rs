//! What to tell somebody who waits for a manifest; how to draw it is somebody else's matter.
//!
//! Everything is worked out from whole states of the server, never from single events: a
//! state that was missed changes nothing in the end.

use crate::table::{count, plain};
use api::{ClusterState, ClusterSummary, ManifestState, ManifestView, TaskView};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a manifest may be in error before waiting for it ends. Some errors mend
/// themselves within seconds: a machine that came up late, a limit that was hit.
pub(crate) const ERROR_GRACE: Duration = Duration::from_secs(10);

/// More clusters than this are counted instead of told one by one, and no more errors than
/// this are named: nobody reads on.
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

/// How waiting ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
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

    /// Judges a scene that was seen so long after the waiting began; nothing means go on.
    pub(crate) fn judge(&mut self, scene: &Scene, elapsed: Duration) -> Option<Verdict> {
        let manifest = &scene.manifest;
        if manifest.generation < self.generation {
            return None;
        }
        if manifest.deleted != self.deletion {
            return Some(Verdict::Overtaken);
        }
        match manifest.state {
            ManifestState::Done => Some(Verdict::Done),
            ManifestState::Error => {
                let since = *self.failing.get_or_insert(elapsed);
                let long = elapsed.saturating_sub(since) >= ERROR_GRACE;
                long.then_some(Verdict::Failing)
            }
            ManifestState::Pending | ManifestState::Scheduled => {
                self.failing = None;
                None
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

/// A cluster among those of a manifest: its name, and which of several bearers of it. The old
/// one may still be leaving when the new one comes.
type Key = (String, usize);

fn keyed(clusters: &[ClusterSummary]) -> Vec<(Key, &ClusterSummary)> {
    let mut bearers: BTreeMap<&str, usize> = BTreeMap::new();
    clusters
        .iter()
        .map(|cluster| {
            let bearer = bearers.entry(&cluster.name).or_default();
            *bearer += 1;
            ((cluster.name.clone(), *bearer), cluster)
        })
        .collect()
}

/// Plain lines for logs and pipes: only what changed since the last look.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    overall: String,
    told: BTreeMap<Key, String>,
}

impl Lines {
    /// What to say about the scene that was not said before.
    pub(crate) fn changes(&mut self, scene: &Scene) -> Vec<String> {
        let manifest = &scene.manifest;
        let many = manifest.clusters.len() > TOLD_MAX;
        let clusters = keyed(&manifest.clusters);
        let mut news = Vec::new();
        if many {
            let overall = tally_line(manifest);
            if self.overall != overall {
                self.overall.clone_from(&overall);
                news.push(overall);
            }
        }
        let known: BTreeSet<&Key> = clusters.iter().map(|(key, _)| key).collect();
        let gone = self.told.extract_if(.., |key, _| !known.contains(key));
        news.extend(gone.map(|((name, _), _)| format!("{name}: gone")));
        for (key, cluster) in clusters {
            let named = self.told.len() < TOLD_MAX || self.told.contains_key(&key);
            if many && !(cluster.state == ClusterState::Error && named) {
                continue;
            }
            let line = line(cluster);
            if self.told.get(&key) != Some(&line) {
                self.told.insert(key, line.clone());
                news.push(line);
            }
        }
        news
    }
}

fn tally_line(manifest: &ManifestView) -> String {
    let number =
        |of: fn(&ClusterSummary) -> bool| manifest.clusters.iter().filter(|c| of(c)).count();
    let ready = number(finished);
    let failing = match number(|cluster| cluster.state == ClusterState::Error) {
        0 => String::new(),
        failing => format!(", {failing} in error"),
    };
    let tasks: u32 = manifest.clusters.iter().map(|cluster| cluster.tasks).sum();
    let total = count(manifest.clusters.len(), "cluster");
    let tasks = count(wide(tasks), "open task");
    format!(
        "{}: {ready} of {total} ready{failing}, {tasks}",
        manifest.name
    )
}

/// How much of the work is done, in machines that came or went.
///
/// Machines that leave are remembered, so that the share does not fall when they are gone.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    leaving: BTreeMap<Key, u32>,
}

impl Tally {
    /// Done and total after this scene.
    pub(crate) fn count(&mut self, scene: &Scene) -> (u64, u64) {
        let clusters = keyed(&scene.manifest.clusters);
        let known: BTreeSet<&Key> = clusters.iter().map(|(key, _)| key).collect();
        let gone = self.leaving.iter().filter(|(key, _)| !known.contains(key));
        let gone: u64 = gone.map(|(_, leaving)| u64::from(*leaving)).sum();
        let (mut done, mut total) = (gone, gone);
        for (key, cluster) in clusters {
            let (control, compute) = (cluster.control, cluster.compute);
            let leaving = self.leaving.entry(key).or_default();
            *leaving = (*leaving).max(cluster.leaving);
            let ready = control.ready.min(control.wanted) + compute.ready.min(compute.wanted);
            done += u64::from(ready) + u64::from(*leaving - cluster.leaving);
            total += u64::from(control.wanted) + u64::from(compute.wanted) + u64::from(*leaving);
        }
        (done, total)
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
