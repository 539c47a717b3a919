//! Plays a story: says each line to the store or the world, and waits where it says so.

use super::Story;
use super::manifest::{Declared, MODULES};
use super::parse::{Command, Modules};
use crate::faults::{Counted, Faults, Profile, Script};
use crate::stage::{Stage, retry};
use crate::world::{LetGo, Violation};
use engine::Settings;
use model::fault::Fault;
use model::id::{MachineId, Origin};
use model::intent::Wish;
use model::name::Name;
use model::observed::{HostFact, MachineFact, NodeFact, Seen};
use model::secret::{EntryName, Secret};
use model::snapshot::SnapshotsFact;
use model::task::Kind;
use model::templates::Reference;
use model::time::Timestamp;
use plan::Phase;
use std::collections::BTreeMap;
use std::time::Duration;
use store::{ClusterView, Draft, MachineFilter, Page, Store, Submission, SubmitError};
use tokio::time::sleep;
use vault::Changes;

/// When stories begin: noon of the first of January 2030, so that no test depends on today.
const EPOCH: Timestamp = Timestamp::from_millis(1_893_499_200_000);

/// The longest that a story waits for things to settle.
const SETTLE_MAX: Duration = Duration::from_hours(24);

/// How long the world is watched after the end, so that everything is looked at twice.
const AFTERMATH: Duration = Duration::from_secs(250);

/// Nobody but the dead loses a lease in a story, and the dead are known at once: fewer
/// heartbeats than usual keep thousands of runs short.
const LEASE: Duration = Duration::from_mins(2);

/// Looks are rarer than usual: what is known is older, which is harder, and runs are shorter.
const PROBE_EVERY: Duration = Duration::from_mins(2);

/// More than a cluster of a story has machines.
const PER_CLUSTER_MAX: u32 = 8;

/// What goes wrong while a story is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// Nothing but what the story says.
    None,
    /// Exactly this, and what becomes of changes that a dead engine had begun.
    Exactly(Script, LetGo),
    /// Whatever the profile and the seed have in store.
    ByChance(Profile, u64),
}

/// What became of a story.
#[derive(Debug)]
pub struct Told {
    /// What happened, line by line.
    pub text: String,
    /// Whether everything came to rest.
    pub settled: bool,
    /// The world as it was in the end.
    pub picture: String,
    /// What must never happen, and did.
    pub violations: Vec<Violation>,
    /// Machines that were made more than once.
    pub made_again: Vec<MachineId>,
    /// What was in the store in the end and should not have been.
    pub leftovers: Vec<String>,
    /// How many attempts and effects there were: the points at which things can go wrong.
    pub counted: Counted,
}

/// Why a story could not be played on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runtime could not be made.
    #[error("could not start the clock of the story")]
    Clock(#[source] std::io::Error),
    /// The store failed.
    #[error("the store of the story failed")]
    Store(#[from] store::Error),
    /// A line speaks of something that is not there.
    #[error("`{line}`: {why}")]
    Line {
        /// What it says.
        line: String,
        /// Why it makes no sense here.
        why: String,
    },
}

/// Plays a story to its end, on a clock of its own.
pub fn play(story: &Story, disturbance: Disturbance) -> Result<Told, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(Error::Clock)?;
    runtime.block_on(Box::pin(perform(story, disturbance)))
}

async fn perform(story: &Story, disturbance: Disturbance) -> Result<Told, Error> {
    let (faults, let_go, seed) = match disturbance {
        Disturbance::None => (Faults::scripted(Script::default()), LetGo::default(), 0),
        Disturbance::Exactly(script, let_go) => (Faults::scripted(script), let_go, 0),
        Disturbance::ByChance(profile, seed) => {
            (Faults::by_chance(profile, seed), LetGo::Either, seed)
        }
    };
    let mut stage = Stage::set(
        Name::default_project(),
        Store::in_memory()?,
        faults,
        EPOCH,
        seed,
    )
    .await;
    stage.world.when_let_go(let_go);
    stage.start(Settings {
        lease: LEASE,
        per_cluster_max: PER_CLUSTER_MAX,
        probe_every: PROBE_EVERY,
        ..Settings::default()
    });
    let mut player = Player {
        stage,
        declared: BTreeMap::new(),
    };
    for (line, command) in &story.lines {
        player.follow(line, command).await?;
    }
    let stage = &mut player.stage;
    let text = stage.chronicle.lines().join("\n") + "\n";
    stage.faults.calm();
    let mut settled = stage.settle(SETTLE_MAX, Duration::ZERO).await?;
    sleep(AFTERMATH).await;
    settled &= stage.settle(SETTLE_MAX, Duration::ZERO).await?;
    let leftovers = stage.leftovers().await?;
    stage.end().await;
    let made = stage.world.made();
    Ok(Told {
        text,
        settled,
        picture: stage.world.whole_picture(),
        violations: stage.world.violations(),
        made_again: made
            .into_iter()
            .filter(|(_, times)| *times > 1)
            .map(|(machine, _)| machine)
            .collect(),
        leftovers,
        counted: stage.faults.counted(),
    })
}

/// Follows the lines of a story.
struct Player {
    stage: Stage,
    declared: BTreeMap<Name, Declared>,
}

impl Player {
    #[expect(clippy::too_many_lines, reason = "an arm for each command")]
    async fn follow(&mut self, line: &str, command: &Command) -> Result<(), Error> {
        let wrong = |why: String| Error::Line {
            line: line.to_owned(),
            why,
        };
        // Waiting shows in the times, and whoever is killed is told of anyway.
        if !matches!(
            command,
            Command::Settle | Command::Wait(_) | Command::Kill | Command::Restart
        ) {
            self.stage.say(line);
        }
        match command {
            Command::Apply(name, clauses) | Command::Edit(name, clauses) => {
                let declared = self.declared.entry(name.clone()).or_default();
                declared.edit(clauses);
                let declared = declared.clone();
                self.submit(name, &declared).await?;
            }
            Command::Delete(name) => self.delete(name).await.map_err(wrong)?,
            Command::Replace(machine) => {
                let wish = |machine| Wish::Replace { machine };
                self.wish_of(machine, wish).await.map_err(wrong)?;
            }
            Command::Retire(machine) => {
                let wish = |machine| Wish::Retire { machine };
                self.wish_of(machine, wish).await.map_err(wrong)?;
            }
            Command::Scale(name, count) => self.scale(name, *count).await.map_err(wrong)?,
            Command::Insist(name, count) => self.insist(name, *count).await?,
            Command::Pause(name) => self.wish(name, Wish::Pause).await.map_err(wrong)?,
            Command::Resume(name) => self.resume(name).await.map_err(wrong)?,
            Command::Save(name) => self.wish(name, Wish::Snapshot).await.map_err(wrong)?,
            Command::PutBack(name) => self.put_back(name).await.map_err(wrong)?,
            Command::Retry => self.retry().await.map_err(wrong)?,
            Command::Cancel { kind, machine } => {
                self.cancel(*kind, machine).await.map_err(wrong)?;
                if *kind == Kind::Name {
                    self.stage.unnamed.push(machine.clone());
                }
            }
            Command::Power { machine, on } => self.power(machine, *on).await.map_err(wrong)?,
            Command::Offer {
                server_type,
                offered,
            } => self.stage.world.offer(server_type, *offered),
            Command::Destroy(machine) => {
                let row = self.machine(machine).await.map_err(wrong)?;
                self.stage.world.destroy(row.machine.id);
            }
            Command::Stray {
                node,
                cluster,
                left,
            } => self.stray(node, cluster, *left).await.map_err(wrong)?,
            Command::Gate { name, open } => self.stage.world.set_gate(name, *open),
            Command::Modules(what) => self.modules(what),
            Command::Update(name) => self.update(name).await.map_err(wrong)?,
            Command::ShowWhy(name) => self.show_why(name).await?,
            Command::TellFailures => self.stage.chronicle.only_failures(),
            Command::Age { cluster, left } => self.age(cluster, *left).await.map_err(wrong)?,
            Command::Fail {
                attempts,
                kind,
                machine,
            } => {
                let faults = &self.stage.faults;
                faults.fail_next(*kind, machine.clone(), *attempts);
            }
            Command::Kill => self.stage.faults.kill(),
            Command::Restart => self.stage.faults.restart(),
            Command::Set {
                secret,
                entry,
                value,
            } => self.set(secret, entry, value).await.map_err(wrong)?,
            Command::Unset(secret) => self.unset(secret).await.map_err(wrong)?,
            Command::Settle => self.settle().await?,
            Command::Wait(span) => sleep(*span).await,
            Command::ShowClusters => self.show_clusters().await?,
            Command::ShowMachines => self.show_machines().await?,
            Command::ShowPlan(name) => self.show_plan(name).await?,
            Command::ShowSnapshots(name) => self.show_snapshots(name).await.map_err(wrong)?,
        }
        Ok(())
    }

    fn modules(&self, what: &Modules) {
        let world = &self.stage.world;
        match what {
            Modules::Move(branch, commit) => {
                let reference = Reference {
                    repository: MODULES.to_owned(),
                    name: branch.clone(),
                };
                world.lead(reference, commit.clone());
            }
            Modules::Answer(answers) => world.set_repository(MODULES, *answers),
        }
    }

    async fn power(&self, machine: &Name, on: bool) -> Result<(), String> {
        let row = self.machine(machine).await?;
        if on {
            self.stage.world.restore_power(&row.machine);
        } else {
            self.stage.world.cut_power(&row.machine);
        }
        Ok(())
    }

    async fn submit(&self, name: &Name, declared: &Declared) -> Result<(), Error> {
        let text = declared.text(name);
        let admitted = model::source::parse(&text)
            .map_err(|error| error.to_string())
            .and_then(|document| model::admit::admit(&document).map_err(|faults| told(&faults)));
        let manifest = match admitted {
            Ok(manifest) => manifest,
            Err(faults) => {
                self.stage.say(format!("  refused: {faults}"));
                return Ok(());
            }
        };
        let submission = Submission {
            project: Name::default_project(),
            manifest,
            text,
            author: "ann".into(),
            parent: None,
            allow: declared.allowing.into(),
            key: None,
        };
        match self.stage.store.submit(submission, self.stage.now()).await {
            Ok(_) => Ok(()),
            Err(SubmitError::Store(error)) => Err(error.into()),
            Err(SubmitError::Faults(faults)) => {
                self.stage.say(format!("  refused: {}", told(&faults)));
                Ok(())
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
                self.stage.say(format!("  refused: {refused}"));
                Ok(())
            }
        }
    }

    async fn delete(&mut self, name: &Name) -> Result<(), String> {
        self.declared.remove(name);
        let (store, now) = (&self.stage.store, self.stage.now());
        let deleted = store
            .delete_manifest(&Name::default_project(), name, "ann", now)
            .await
            .map_err(|error| error.to_string())?;
        for (cluster, _) in deleted.changed {
            self.stage.world.condemn(cluster);
        }
        Ok(())
    }

    /// Gives the compute pool of a cluster another size.
    async fn scale(&self, name: &Name, count: u32) -> Result<(), String> {
        let pool: Name = "compute".parse().map_err(|_| "no such pool".to_owned())?;
        // The store knows what the manifest says.
        let was = 0;
        self.wish(name, Wish::Scale { pool, count, was }).await
    }

    /// Has the compute pool of a cluster made from newer modules.
    async fn update(&self, name: &Name) -> Result<(), String> {
        let pool: Name = "compute".parse().map_err(|_| "no such pool".to_owned())?;
        // The store knows what is offered.
        let commit = None;
        self.wish(name, Wish::Update { pool, commit }).await
    }

    /// Gives it another size until it has it: what could not be made is given back, and whoever
    /// scales wishes again.
    async fn insist(&self, name: &Name, count: u32) -> Result<(), Error> {
        /// Nothing goes wrong as often as this.
        const TIMES_MAX: u32 = 100;
        for _ in 0..TIMES_MAX {
            let clusters = self.stage.clusters().await?;
            let mut wanted = clusters.iter().filter(|row| row.name == *name);
            if wanted.all(|row| row.summary.compute == (count, count)) {
                break;
            }
            let refused = |why: String| Error::Line {
                line: format!("scale {name} to {count}"),
                why,
            };
            self.scale(name, count).await.map_err(refused)?;
            self.stage.settle(SETTLE_MAX, Duration::ZERO).await?;
        }
        self.show_clusters().await
    }

    /// Lets the certificates of a cluster end after this time.
    async fn age(&self, name: &Name, left: Duration) -> Result<(), String> {
        let project = Name::default_project();
        let found = self.stage.store.cluster(&project, name).await;
        let found = found.map_err(|error| error.to_string())?;
        let row = found.ok_or("there is no such cluster")?;
        self.stage.world.age(row.id, self.stage.now().plus(left));
        Ok(())
    }

    /// A node is in a cluster that is none of its machines'.
    async fn stray(&self, node: &Name, cluster: &Name, left: bool) -> Result<(), String> {
        let project = Name::default_project();
        let found = self.stage.store.cluster(&project, cluster).await;
        let found = found.map_err(|error| error.to_string())?;
        let row = found.ok_or("there is no such cluster")?;
        let of = MachineId::derive(Origin {
            parent: "a story",
            name: node.as_str(),
            ordinal: 0,
            incarnation: 0,
        });
        self.stage.world.stray(row.id, node, left.then_some(of));
        Ok(())
    }

    async fn machine(&self, name: &Name) -> Result<store::MachineRow, String> {
        let project = Name::default_project();
        let found = self.stage.store.machines_named(&project, name).await;
        let found = found.map_err(|error| error.to_string())?;
        let first = found.into_iter().next();
        first.ok_or_else(|| "there is no such machine".to_owned())
    }

    /// Wishes something of a machine.
    async fn wish_of(&self, name: &Name, wish: fn(MachineId) -> Wish) -> Result<(), String> {
        let row = self.machine(name).await?;
        self.wish(&row.cluster, wish(row.machine.id)).await
    }

    async fn wish(&self, cluster: &Name, wish: Wish) -> Result<(), String> {
        let draft = Draft {
            project: Name::default_project(),
            cluster: cluster.clone(),
            wish,
            author: "ann".into(),
            reason: "the story says so".to_owned(),
            expires_at: None,
        };
        let wished = self.stage.store.wish(draft, self.stage.now()).await;
        wished.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn resume(&self, name: &Name) -> Result<(), String> {
        let (project, store) = (Name::default_project(), &self.stage.store);
        let intents = store.intents(&project, Page::default()).await;
        for intent in intents.map_err(|error| error.to_string())?.items {
            if intent.cluster == *name && intent.wish == Wish::Pause {
                let withdrawn = store.withdraw_intent(&project, intent.id, "ann", self.stage.now());
                withdrawn.await.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// All that is known of a cluster.
    async fn cluster_view(&self, name: &Name) -> Result<ClusterView, String> {
        let told = |error: store::Error| error.to_string();
        let project = Name::default_project();
        let found = self.stage.store.cluster(&project, name).await;
        let row = found.map_err(told)?.ok_or("there is no such cluster")?;
        let view = self.stage.store.cluster_view(row.id).await.map_err(told)?;
        view.ok_or_else(|| "there is no such cluster".to_owned())
    }

    /// The snapshots of a cluster.
    async fn snapshots(&self, name: &Name) -> Result<SnapshotsFact, String> {
        let known = self.cluster_view(name).await?.observed.snapshots;
        let (known, _) = known.ok_or("nobody has told of snapshots")?;
        Ok(known)
    }

    async fn put_back(&self, name: &Name) -> Result<(), String> {
        let known = self.snapshots(name).await?;
        let newest = known.kept.last().ok_or("there is no snapshot")?;
        let snapshot = newest.id.clone();
        self.wish(name, Wish::Restore { snapshot }).await
    }

    async fn show_snapshots(&self, name: &Name) -> Result<(), String> {
        for snapshot in self.snapshots(name).await?.kept {
            // Its digest says nothing to anybody.
            let at = snapshot.id.at();
            let before = snapshot.before;
            let before = before.map_or(String::new(), |before| format!(", before {before}"));
            self.stage
                .say(format!("  {at}: {}{before}", snapshot.version));
        }
        Ok(())
    }

    /// Gives up what is tried with a machine, when it has failed.
    async fn cancel(&self, kind: Kind, machine: &Name) -> Result<(), String> {
        /// Nobody waits for longer than this.
        const GLANCES_MAX: u32 = 1000;
        for _ in 0..GLANCES_MAX {
            let row = self.machine(machine).await?;
            let view = self.cluster_view(&row.cluster).await?;
            let mut open = view.open.iter();
            let failed = open.find(|open| {
                let this = open.machine == row.machine.id && open.action.kind() == kind;
                this && open.error.is_some()
            });
            if let Some(failed) = failed {
                let wish = Wish::Cancel {
                    task: failed.id,
                    machine: row.machine.id,
                    kind,
                };
                return self.wish(&row.cluster, wish).await;
            }
            sleep(Duration::from_secs(10)).await;
        }
        Err("nothing has failed there".to_owned())
    }

    async fn retry(&self) -> Result<(), String> {
        let stuck = self.stage.stuck().await;
        for row in stuck.map_err(|error| error.to_string())? {
            let wished = self.stage.store.wish(retry(&row), self.stage.now()).await;
            wished.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    async fn set(&self, secret: &Name, entry: &EntryName, value: &str) -> Result<(), String> {
        let changes = Changes {
            entries: vec![(entry.clone(), Some(Secret::from_text(value.to_owned())))],
            only: false,
        };
        let (project, actor) = (Name::default_project(), "ann".into());
        let set = self.stage.vault.set((&project, secret), &changes, &actor);
        set.await.map(drop).map_err(|error| error.to_string())
    }

    async fn unset(&self, secret: &Name) -> Result<(), String> {
        let (project, now) = (Name::default_project(), self.stage.now());
        let deleted = self
            .stage
            .store
            .delete_secret(&project, secret, "ann".into(), now);
        deleted.await.map(drop).map_err(|error| error.to_string())
    }

    async fn settle(&self) -> Result<(), Error> {
        if self.stage.settle(SETTLE_MAX, Duration::ZERO).await? {
            self.show_clusters().await
        } else {
            self.stage.say("nothing came to rest");
            Ok(())
        }
    }

    async fn show_clusters(&self) -> Result<(), Error> {
        let clusters = self.stage.clusters().await?;
        if clusters.is_empty() {
            self.stage.say("no cluster is left");
        }
        for row in clusters {
            let ((control, of_control), (compute, of_compute)) =
                (row.summary.control, row.summary.compute);
            let nodes = match row.summary.phase {
                Phase::Deleting => format!("{} machines left", row.summary.leaving),
                Phase::Pending | Phase::Scheduled | Phase::Done | Phase::Error | Phase::Gone => {
                    format!("{control}/{of_control} control, {compute}/{of_compute} compute")
                }
            };
            let phase = row.summary.phase.as_str();
            self.stage.say(format!("{} is {phase}: {nodes}", row.name));
            for held in &row.held {
                self.stage.say(format!("  held: {held}"));
            }
        }
        Ok(())
    }

    async fn show_machines(&self) -> Result<(), Error> {
        let page = Page {
            limit: 500,
            after: None,
        };
        let project = Name::default_project();
        let machines = self
            .stage
            .store
            .machines(&project, MachineFilter::default(), page);
        for row in machines.await?.items {
            let leaving = if row.leaving { ", to leave" } else { "" };
            self.stage.say(format!(
                "  {}: {}{leaving}",
                row.machine.name,
                seen(&row.seen)
            ));
        }
        Ok(())
    }

    async fn show_why(&self, name: &Name) -> Result<(), Error> {
        let project = Name::default_project();
        let Some(row) = self.stage.store.cluster(&project, name).await? else {
            return Ok(());
        };
        if let Some(known) = self.stage.store.cluster_view(row.id).await? {
            let view = known.view(self.stage.now());
            for cause in plan::why(&view, &plan::plan(&view)) {
                for line in cause.to_string().lines() {
                    self.stage.say(format!("  {line}"));
                }
            }
        }
        Ok(())
    }

    async fn show_plan(&self, name: &Name) -> Result<(), Error> {
        let project = Name::default_project();
        let Some(row) = self.stage.store.cluster(&project, name).await? else {
            return Ok(());
        };
        if let Some(view) = self.stage.store.cluster_view(row.id).await? {
            let journey = plan::journey(&view.view(self.stage.now())).to_string();
            for line in journey.lines() {
                self.stage.say(format!("  {line}"));
            }
        }
        Ok(())
    }
}

fn told(faults: &[Fault]) -> String {
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    faults.join("; ")
}

/// A host as it describes itself, in words.
fn said(host: &HostFact) -> String {
    let mut words = vec![match (&host.equipped, &host.mesh) {
        (None, _) => "bare".to_owned(),
        (Some(_), None) => "equipped".to_owned(),
        (Some(_), Some(_)) => "in the mesh".to_owned(),
    }];
    let healthy = host.balance.iter().flat_map(|balance| &balance.healthy);
    words.extend(healthy.map(|(role, count)| format!("{role} to {count}")));
    words.join(", ")
}

/// A machine as it was last seen, in words.
fn seen(seen: &Seen) -> String {
    let machine = match seen.machine.as_ref().map(|(fact, _)| fact) {
        None => "not seen yet",
        Some(MachineFact::Absent) => "absent",
        Some(MachineFact::Booting { .. }) => "booting",
        Some(MachineFact::Running { .. }) => "running",
        Some(MachineFact::Unreachable { .. }) => "unreachable",
    };
    let machine = match seen.host.as_ref() {
        Some((host, _)) => format!("{machine}, {}", said(host)),
        None => machine.to_owned(),
    };
    let machine = match seen.port {
        Some((port, _)) if port.open => format!("{machine}, port open"),
        Some(_) => format!("{machine}, port shut"),
        None => machine,
    };
    match seen.node.as_ref().map(|(fact, _)| fact) {
        None | Some(NodeFact::Absent) => machine,
        Some(NodeFact::Joined {
            ready,
            cordoned,
            version,
            care: _,
            asks: _,
            gated,
        }) => {
            let ready = if *ready { "ready" } else { "not ready" };
            let cordoned = match (*gated, *cordoned) {
                (true, _) => ", waits at its gates",
                (false, true) => ", cordoned",
                (false, false) => "",
            };
            format!("{machine}, {ready} node {version}{cordoned}")
        }
    }
}
