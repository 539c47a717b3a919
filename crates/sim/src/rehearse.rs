//! `slipway simulate`: somebody's manifest, rehearsed on a twin of what is stored.
//!
//! The twin is a store in memory that holds what is known of the manifest and its
//! clusters. The world is furnished with what was last observed of them; then the real
//! loops run on a virtual clock, with as many faults as somebody asked for, and what
//! happened is told.

use crate::chronicle::{Chronicle, Tally};
use crate::faults::{Counted, Faults, Profile};
use crate::stage::Stage;
use crate::world::LetGo;
use driver::Clock;
use engine::Settings;
use model::manifest::Manifest;
use model::name::Name;
use model::secret::Secret;
use model::task::Kind;
use model::time::Timestamp;
use plan::Phase;
use std::collections::BTreeMap;
use std::time::Duration;
use store::{ClusterRow, Page, Store, Submission, SubmitError};
use vault::Changes;

/// The longest that a rehearsal goes on, by its own clock.
const LIMIT: Duration = Duration::from_hours(24);

/// What happens within this time is looked at once.
const TOGETHER: Duration = Duration::from_secs(1);

/// Lines that are told from the beginning and from the end when there are too many.
const LINES_SHOWN: usize = 16;

/// Clusters that are named when they are not as declared.
const CLUSTERS_SHOWN: usize = 6;

/// What happened in a rehearsal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What happened, for people.
    pub text: String,
    /// Whether every cluster of the manifest ended as declared.
    pub converged: bool,
    /// How long it took, by the virtual clock.
    pub seconds: u64,
    /// Clusters of the manifest.
    pub clusters: u32,
    /// Machines that there were in the end.
    pub machines: u32,
    /// Tasks that were done.
    pub tasks: u32,
    /// Attempts that were made at them.
    pub attempts: u32,
    /// Attempts that failed.
    pub failures: u32,
}

/// Why a manifest could not be rehearsed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runtime could not be made.
    #[error("could not start the clock of the rehearsal")]
    Clock(#[source] std::io::Error),
    /// The twin failed.
    #[error("the twin of the store failed")]
    Store(#[from] store::Error),
    /// Nothing could be sealed for it.
    #[error("nothing can be sealed in the rehearsal")]
    Vault(#[from] vault::Error),
    /// What there is does not allow it.
    #[error("the manifest cannot be rehearsed: {reason}")]
    Refused {
        /// Why, as one clause.
        reason: String,
    },
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Clock(_) => "SIM-005",
            Self::Vault(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Refused { .. } => "SIM-004",
        }
    }
}

/// Rehearses `manifest` on `twin`, to the end or for a day of virtual time.
///
/// Blocks its thread and runs everything on it; within an asynchronous program it belongs
/// on a thread for blocking work.
pub fn rehearse_blocking(
    twin: Store,
    project: Name,
    manifest: Manifest,
    seed: u64,
    profile: Profile,
) -> Result<Report, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(Error::Clock)?;
    runtime.block_on(Box::pin(rehearse(twin, project, manifest, seed, profile)))
}

async fn rehearse(
    twin: Store,
    project: Name,
    manifest: Manifest,
    seed: u64,
    profile: Profile,
) -> Result<Report, Error> {
    let epoch = begin(&twin).await?;
    let faults = Faults::by_chance(profile, seed);
    let mut stage = Stage::set(project.clone(), twin, faults, epoch, seed).await;
    stage.world.when_let_go(LetGo::Either);
    furnish(&stage).await?;
    stand_in(&stage).await?;
    let name = manifest.name.clone();
    // What is wrong with somebody else's clusters is not for this rehearsal to tell.
    stage.manifest = Some(name.clone());
    submit(&stage, project, manifest).await?;
    condemn(&stage).await?;
    stage.start(Settings {
        worker: "rehearsal".to_owned(),
        seed,
        ..Settings::default()
    });
    let settled = stage.settle(LIMIT, TOGETHER).await?;
    let ended = if settled {
        stage.chronicle.last()
    } else {
        stage.now()
    };
    let clusters = stage.clusters().await?;
    stage.end().await;
    let told = Telling {
        title: format!("rehearsal of {name} with seed {seed} and faults: {profile}"),
        chronicle: &stage.chronicle,
        counted: stage.faults.counted(),
        clusters: &clusters,
        settled,
        end: stage.chronicle.clock(ended),
        violations: stage
            .world
            .violations()
            .iter()
            .map(ToString::to_string)
            .collect(),
    };
    let tallies = stage.chronicle.tallies();
    let sum = |of: fn(&Tally) -> u32| tallies.values().map(of).sum::<u32>();
    Ok(Report {
        text: told.text(&tallies),
        converged: settled && clusters.iter().all(as_declared),
        seconds: ended.since(epoch).as_secs(),
        clusters: count(clusters.len()),
        machines: count(stage.world.machines() + stage.world.hosts()),
        tasks: sum(|tally| tally.done),
        attempts: sum(|tally| tally.done + tally.retried + tally.stuck),
        failures: sum(|tally| tally.retried + tally.stuck),
    })
}

/// When a rehearsal begins: now, because what is stored speaks of today (attempts that are
/// due, wishes that end); and not before anything that was seen, lest the past seem newer.
async fn begin(twin: &Store) -> Result<Timestamp, store::Error> {
    let mut begin = Clock::System.now();
    for live in twin.live_clusters().await? {
        if let Some(view) = twin.cluster_view(live.id).await? {
            let seen = view.observed.machines.values().flat_map(|seen| {
                let machine = seen.machine.as_ref().map(|(_, at)| *at);
                machine
                    .into_iter()
                    .chain(seen.node.as_ref().map(|(_, at)| *at))
                    .chain(seen.host.as_ref().map(|(_, at)| *at))
            });
            begin = seen.chain(live.probed_at).fold(begin, Timestamp::max);
        }
    }
    Ok(begin)
}

/// Puts into the world what was last observed.
async fn furnish(stage: &Stage) -> Result<(), store::Error> {
    for live in stage.store.live_clusters().await? {
        if let Some(view) = stage.store.cluster_view(live.id).await? {
            let machines: Vec<_> = view.desired.all().collect();
            stage.world.furnish(live.id, &machines, &view.observed);
        }
    }
    Ok(())
}

/// Gives every secret that is set a made-up value: the real ones stay where they are.
async fn stand_in(stage: &Stage) -> Result<(), Error> {
    let mut page = Page::default();
    loop {
        let listed = stage.store.secrets(&stage.project, page.clone()).await?;
        for row in listed.items {
            let made_up = || Some(Secret::from_text("made up".to_owned()));
            let entries = row.entries.into_iter();
            let changes = Changes {
                entries: entries.map(|entry| (entry, made_up())).collect(),
                only: true,
            };
            let place = (&stage.project, &row.name);
            stage
                .vault
                .set(place, &changes, &"rehearsal".into())
                .await?;
        }
        if listed.next.is_none() {
            return Ok(());
        }
        page.after = listed.next;
    }
}

async fn submit(stage: &Stage, project: Name, manifest: Manifest) -> Result<(), Error> {
    let submission = Submission {
        project,
        // The twin does not keep what was written, only what it means.
        text: format!("rehearsal of {}", manifest.name),
        manifest,
        author: "rehearsal".into(),
        parent: None,
        // Nothing is lost in a rehearsal; the plan tells how much would be.
        allow: store::Allowed::EVERYTHING,
        key: None,
    };
    match stage.store.submit(submission, stage.now()).await {
        Ok(_) => Ok(()),
        Err(SubmitError::Store(error)) => Err(error.into()),
        Err(SubmitError::Faults(faults)) => {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            let reason = faults.join("; ");
            Err(Error::Refused { reason })
        }
        Err(
            refused @ (SubmitError::Blast { .. }
            | SubmitError::DataLoss(_)
            | SubmitError::Conflict { .. }
            | SubmitError::Taken { .. }
            | SubmitError::KeyReused { .. }
            | SubmitError::Protected { .. }
            | SubmitError::NoProject { .. }
            | SubmitError::Quota { .. }
            | SubmitError::NotFound { .. }),
        ) => {
            let reason = refused.to_string();
            Err(Error::Refused { reason })
        }
    }
}

/// Tells the world which clusters are to go as a whole.
async fn condemn(stage: &Stage) -> Result<(), store::Error> {
    for live in stage.store.live_clusters().await? {
        let view = stage.store.cluster_view(live.id).await?;
        if view.is_some_and(|view| view.desired.tombstone) {
            stage.world.condemn(live.id);
        }
    }
    Ok(())
}

fn as_declared(row: &ClusterRow) -> bool {
    row.summary.phase == Phase::Done
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What is needed to tell of a rehearsal.
struct Telling<'a> {
    title: String,
    chronicle: &'a Chronicle,
    counted: Counted,
    clusters: &'a [ClusterRow],
    settled: bool,
    end: String,
    violations: Vec<String>,
}

impl Telling<'_> {
    fn text(&self, tallies: &BTreeMap<Kind, Tally>) -> String {
        let mut lines = vec![
            self.title.clone(),
            "times are those of a virtual clock, hours before minutes where there are any"
                .to_owned(),
            String::new(),
        ];
        let happened = self.chronicle.lines();
        if happened.len() <= 2 * LINES_SHOWN {
            lines.extend(happened);
        } else {
            let hidden = happened.len() - 2 * LINES_SHOWN;
            lines.extend_from_slice(&happened[..LINES_SHOWN]);
            lines.push(format!("       … {hidden} lines are left out …"));
            lines.extend_from_slice(&happened[happened.len() - LINES_SHOWN..]);
        }
        if !tallies.is_empty() {
            lines.push(String::new());
            lines.push(row(["", "done", "failed", "stuck", "first", "last"]));
        }
        for (kind, tally) in tallies {
            let clock = |at: Option<_>| at.map_or(String::new(), |at| self.chronicle.clock(at));
            let cells = [
                kind.to_string(),
                tally.done.to_string(),
                tally.retried.to_string(),
                tally.stuck.to_string(),
                clock(tally.first),
                clock(tally.last),
            ];
            lines.push(row(cells.each_ref().map(String::as_str)));
        }
        lines.push(String::new());
        if self.counted.kills > 0 {
            lines.push(format!(
                "the engine was killed {} times",
                self.counted.kills
            ));
        }
        for violation in &self.violations {
            lines.push(format!("must never happen, and did: {violation}"));
        }
        lines.extend(self.ending());
        lines.join("\n") + "\n"
    }

    /// What it ended in, and what it still waits for.
    fn ending(&self) -> Vec<String> {
        let (clusters, end) = (self.clusters.len(), &self.end);
        let waiting: Vec<_> = self
            .clusters
            .iter()
            .filter(|row| !as_declared(row))
            .collect();
        if waiting.is_empty() {
            return vec![format!(
                "ends after {end}: {clusters} of {clusters} clusters are as declared"
            )];
        }
        let mut lines = vec![if self.settled {
            format!(
                "ends after {end}: {} of {clusters} clusters wait",
                waiting.len()
            )
        } else {
            format!(
                "goes on after {end}: {} of {clusters} clusters are not as declared",
                waiting.len()
            )
        }];
        for row in waiting.iter().take(CLUSTERS_SHOWN) {
            let phase = row.summary.phase.as_str();
            lines.push(format!(
                "  {} is {phase}: {}",
                row.name, row.summary.message
            ));
            if let Some(held) = row.held.first() {
                lines.push(format!("    {}", held.next_action()));
            }
        }
        if waiting.len() > CLUSTERS_SHOWN {
            lines.push(format!("  and {} more", waiting.len() - CLUSTERS_SHOWN));
        }
        lines
    }
}

fn row(cells: [&str; 6]) -> String {
    let [kind, done, failed, stuck, first, last] = cells;
    format!("  {kind:<9} {done:>6} {failed:>7} {stuck:>6} {first:>8} {last:>8}")
}
