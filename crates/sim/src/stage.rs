//! A stage for the real loops: a store, a simulated world, and an engine that can be killed.
//!
//! Everything runs on one thread under tokio's paused clock: when nobody has anything to
//! do, time jumps to whatever is due next. Nothing here may wait for another thread.

use crate::chronicle::Chronicle;
use crate::driver::{KUBECONFIG, SSH_KEY, Simulated};
use crate::faults::{Faults, INJECTED};
use crate::world::{Pace, World};
use driver::Clock;
use engine::{Engine, Settings};
use model::endpoint::Endpoint;
use model::intent::Wish;
use model::name::Name;
use model::sealed::{Owner, Place};
use model::task::State;
use model::time::Timestamp;
use plan::{Phase, Reason};
use std::sync::Arc;
use std::time::Duration;
use store::{ClusterFilter, ClusterRow, Draft, Page, Store, TaskFilter, TaskRow};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use vault::Vault;

/// How long it takes to notice that the engine is dead and to start another.
const RESTART_AFTER: Duration = Duration::from_secs(5);

/// How long a person takes to ask again for what got stuck on purpose.
const MENDED_AFTER: Duration = Duration::from_secs(30);

/// The longest that a change of the store without an event goes unnoticed.
const GLANCE_EVERY: Duration = Duration::from_mins(1);

/// How long nothing happens before what another cluster holds counts as at rest:
/// whoever waits notices at its next look, at the latest, that it was given back.
const CLAIMED_FOR: Duration = Duration::from_mins(5);

/// Rows per question.
const PAGE: u32 = 500;

/// A store, a world and an engine, running.
pub(crate) struct Stage {
    pub(crate) project: Name,
    pub(crate) store: Store,
    pub(crate) vault: Vault,
    pub(crate) world: World,
    pub(crate) faults: Arc<Faults>,
    pub(crate) chronicle: Arc<Chronicle>,
    pub(crate) clock: Clock,
    /// Machines of load balancers whose names somebody gave up: those stay behind.
    pub(crate) unnamed: Vec<Name>,
    /// The manifest whose clusters count; all do where none is named.
    pub(crate) manifest: Option<Name>,
    loops: JoinSet<()>,
    stop: CancellationToken,
}

impl Stage {
    /// Sets the stage at `epoch`; the engine starts with [`Stage::start`].
    pub(crate) async fn set(
        project: Name,
        store: Store,
        faults: Faults,
        epoch: Timestamp,
        seed: u64,
    ) -> Self {
        let clock = Clock::starting_at(epoch);
        let vault = Vault::in_memory(store.clone(), Arc::new(move || clock.now())).await;
        Self {
            project,
            store,
            vault,
            world: World::new(clock, Pace::Realistic, seed),
            faults: Arc::new(faults),
            chronicle: Arc::new(Chronicle::new(epoch)),
            clock,
            unnamed: Vec::new(),
            manifest: None,
            loops: JoinSet::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Starts the engine, and whoever starts it again when it is killed.
    pub(crate) fn start(&mut self, settings: Settings) {
        let driver = Simulated::rehearsing(
            self.world.clone(),
            Arc::clone(&self.faults),
            Arc::clone(&self.chronicle),
        );
        let supervisor = Supervisor {
            store: self.store.clone(),
            vault: self.vault.clone(),
            driver: Arc::new(driver),
            clock: self.clock,
            settings,
            faults: Arc::clone(&self.faults),
            chronicle: Arc::clone(&self.chronicle),
        };
        self.loops.spawn(supervisor.run(self.stop.clone()));
        let mender = mend(
            self.project.clone(),
            self.store.clone(),
            self.clock,
            self.stop.clone(),
        );
        self.loops.spawn(mender);
    }

    /// What time it is on the stage.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Says something in the chronicle.
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.chronicle.say(self.now(), text);
    }

    /// Waits until nothing happens any more by itself; `false` when that takes too long.
    ///
    /// What happens within `together` is looked at once: with a thousand clusters, every
    /// look counts.
    pub(crate) async fn settle(
        &self,
        limit: Duration,
        together: Duration,
    ) -> Result<bool, store::Error> {
        let mut news = self.store.subscribe();
        let end = Instant::now() + limit;
        // Whatever was said just before is read first.
        sleep(Duration::from_secs(1)).await;
        loop {
            news.mark_unchanged();
            self.find_the_api().await?;
            match self.rest().await? {
                Rest::Complete => return Ok(true),
                Rest::Claimed => match timeout(CLAIMED_FOR, news.changed()).await {
                    Err(_) => return Ok(true),
                    Ok(_) => continue,
                },
                Rest::None => {}
            }
            tokio::select! {
                biased;
                changed = news.changed() => if changed.is_err() { return Ok(false) },
                () = sleep_until(end) => return Ok(false),
                () = sleep(GLANCE_EVERY) => {}
            }
            if !together.is_zero() {
                sleep(together).await;
            }
        }
    }

    /// Somebody looks for the API of every cluster where a kubeconfig leads.
    async fn find_the_api(&self) -> Result<(), store::Error> {
        if !self.world.has_firewalls() {
            return Ok(());
        }
        for row in self.clusters().await? {
            let Some(view) = self.store.cluster_view(row.id).await? else {
                continue;
            };
            let endpoint = Endpoint::of(&view.desired, &view.observed);
            let machines = endpoint.machines.iter();
            let mut found = machines.filter(|behind| behind.outside.is_some());
            let asked = found.next().filter(|_| view.observed.initialised);
            let machine =
                asked.and_then(|asked| view.desired.machine_named(asked.machine.as_str()));
            if let Some(machine) = machine {
                self.world.look_for_api(row.id, machine);
            }
        }
        Ok(())
    }

    /// Whether all that still waits, waits for a person or for what another cluster holds.
    async fn rest(&self) -> Result<Rest, store::Error> {
        let rows = self.clusters().await?;
        let unplanned = self.store.unplanned().await?;
        if rows.iter().any(|row| unplanned.contains(&row.id)) {
            return Ok(Rest::None);
        }
        let mut rest = Rest::Complete;
        for row in rows {
            let claimed = || {
                let mut held = row.held.iter();
                held.all(|held| matches!(held.reason, Reason::Claimed { .. }))
            };
            match row.summary.phase {
                Phase::Done | Phase::Gone => {}
                Phase::Scheduled if row.summary.tasks == 0 && claimed() => rest = Rest::Claimed,
                Phase::Error if self.waits_for_a_person(&row).await? => {}
                Phase::Error | Phase::Pending | Phase::Scheduled | Phase::Deleting => {
                    return Ok(Rest::None);
                }
            }
        }
        Ok(rest)
    }

    async fn waits_for_a_person(&self, row: &ClusterRow) -> Result<bool, store::Error> {
        let Some(view) = self.store.cluster_view(row.id).await? else {
            return Ok(true);
        };
        let by_itself = view.open.iter().any(|open| {
            let mended = open
                .error
                .as_ref()
                .is_some_and(|error| error.contains(INJECTED));
            open.state != State::Stuck || mended
        });
        Ok(!by_itself)
    }

    /// Every cluster that counts.
    pub(crate) async fn clusters(&self) -> Result<Vec<ClusterRow>, store::Error> {
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let page = Page { limit: PAGE, after };
            let filter = ClusterFilter::default();
            let listed = self.store.clusters(&self.project, filter, page).await?;
            let counts = |row: &ClusterRow| {
                let manifest = self.manifest.as_ref();
                manifest.is_none_or(|manifest| row.manifest == *manifest)
            };
            rows.extend(listed.items.into_iter().filter(counts));
            after = listed.next;
            if after.is_none() {
                return Ok(rows);
            }
        }
    }

    /// Tasks that got stuck.
    pub(crate) async fn stuck(&self) -> Result<Vec<TaskRow>, store::Error> {
        stuck(&self.project, &self.store).await
    }

    /// What is in the store and should not be, or is missing, when everything is at rest.
    pub(crate) async fn leftovers(&self) -> Result<Vec<String>, store::Error> {
        let mut left = Vec::new();
        let counts = self.store.counts().await?;
        for state in [State::Waiting, State::Running] {
            let tasks = counts.tasks.get(&state).copied().unwrap_or(0);
            if tasks > 0 {
                left.push(format!("{tasks} tasks are {}", state.as_str()));
            }
        }
        for row in self.clusters().await? {
            let view = self.store.cluster_view(row.id).await?;
            for slot in view.iter().flat_map(|view| &view.ledger) {
                left.push(format!("{} holds a row of the ledger", slot.name));
            }
        }
        let names = self.world.names();
        let clusters = self.clusters().await?;
        let gone = clusters.iter().all(|row| row.summary.phase == Phase::Gone);
        let given_up = |name: &String| {
            let mut unnamed = self.unnamed.iter();
            unnamed.any(|machine| name.starts_with(&format!("{machine} ")))
        };
        let names = names.into_iter().filter(|name| gone && !given_up(name));
        left.extend(names);
        match self.unsealed().await {
            Ok(wrong) => left.extend(wrong),
            Err(error) => left.push(format!("the vault failed: {error}")),
        }
        Ok(left)
    }

    /// What is wrong with what was sealed: a cluster whose keys are missing, or keys that
    /// belong to nobody.
    async fn unsealed(&self) -> Result<Vec<String>, vault::Error> {
        let mut wrong = Vec::new();
        let mut expected = 0;
        for row in self.clusters().await? {
            let view = self.store.cluster_view(row.id).await?;
            let access = view.is_some_and(|view| view.observed.access.is_some());
            let done = row.summary.phase == Phase::Done;
            for (entry, needed) in [(KUBECONFIG, done), (SSH_KEY, access)] {
                let Ok(name) = entry.parse() else { continue };
                let place = Place {
                    project: self.project.clone(),
                    owner: Owner::Cluster(row.id),
                    entry: name,
                };
                let kept = self.vault.open(&place, &"proof".into()).await?;
                expected += u64::from(kept.is_some());
                if kept.is_none() && needed {
                    wrong.push(format!("{} has lost its {entry}", row.name));
                }
            }
        }
        let page = Page {
            limit: PAGE,
            after: None,
        };
        for secret in self.store.secrets(&self.project, page).await?.items {
            expected += u64::try_from(secret.entries.len()).unwrap_or(u64::MAX);
        }
        let found: u64 = self.vault.keys().await?.iter().map(|key| key.values).sum();
        if found != expected {
            wrong.push(format!(
                "{found} values are sealed, and {expected} belong to somebody"
            ));
        }
        Ok(wrong)
    }

    /// Ends the engine as a person would, and waits for it.
    pub(crate) async fn end(&mut self) {
        self.stop.cancel();
        while self.loops.join_next().await.is_some() {}
    }
}

/// How quiet it is.
enum Rest {
    /// Something happens by itself.
    None,
    /// Somebody waits for what another cluster holds.
    Claimed,
    /// Nothing happens until a person does something.
    Complete,
}

/// What is needed to start an engine, again and again.
struct Supervisor {
    store: Store,
    vault: Vault,
    driver: Arc<Simulated>,
    clock: Clock,
    settings: Settings,
    faults: Arc<Faults>,
    chronicle: Arc<Chronicle>,
}

impl Supervisor {
    /// Runs an engine, and another one whenever it has ended before `stop`.
    async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.faults.revive();
            self.run_once(stop.child_token()).await;
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = sleep(RESTART_AFTER) => {}
            }
        }
    }

    async fn run_once(&self, stop: CancellationToken) {
        let (store, vault) = (self.store.clone(), self.vault.clone());
        let driver = Arc::clone(&self.driver);
        let engine = Engine::new(store, vault, driver, self.clock, self.settings.clone());
        let mut run = Box::pin(engine.run(stop.clone()));
        loop {
            tokio::select! {
                biased;
                () = self.faults.killed() => {
                    self.chronicle.say(self.clock.now(), "the engine is killed");
                    return;
                }
                () = self.faults.restarted() => {
                    self.chronicle.say(self.clock.now(), "the engine is told to end");
                    stop.cancel();
                }
                () = &mut run => return,
            }
        }
    }
}

/// Asks for another attempt at whatever got stuck on purpose, as a person would.
async fn mend(project: Name, store: Store, clock: Clock, stop: CancellationToken) {
    let mut news = store.subscribe();
    loop {
        let waiting = stuck(&project, &store).await.unwrap_or_default();
        let chosen = waiting.into_iter().filter(|row| {
            row.error
                .as_ref()
                .is_some_and(|error| error.contains(INJECTED))
        });
        let chosen: Vec<_> = chosen.collect();
        let mended = !chosen.is_empty();
        if mended {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep(MENDED_AFTER) => {}
            }
        }
        for row in chosen {
            let draft = retry(&row);
            // A task that nobody wants any more by now needs no mending.
            if let Err(error) = store.wish(draft, clock.now()).await {
                tracing::debug!(%error, "no retry of {}: {error}", row.task.id);
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            changed = news.changed() => if changed.is_err() { return },
        }
    }
}

/// The wish for another attempt.
pub(crate) fn retry(row: &TaskRow) -> Draft {
    Draft {
        project: row.task.project.clone(),
        cluster: row.task.cluster_name.clone(),
        wish: Wish::Retry { task: row.task.id },
        author: "ann".into(),
        reason: "the cause is mended".to_owned(),
        expires_at: None,
    }
}

async fn stuck(project: &Name, store: &Store) -> Result<Vec<TaskRow>, store::Error> {
    let filter = TaskFilter {
        cluster: None,
        state: Some(State::Stuck),
    };
    let page = Page {
        limit: PAGE,
        after: None,
    };
    Ok(store.tasks(project, filter, page).await?.items)
}
