//! Runs what a project wants to be run before everything else: once for each directory of scripts
//! and what they are told of the project, here, since the program began.
//!
//! How it ends stops nothing: it is recorded, and people are told.

use super::Shared;
use super::configuring::context;
use driver::deploy::Deployer;
use futures_util::FutureExt as _;
use model::environment::settings::{Deploy, Settings};
use model::name::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OnceCell, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The shortest pause between two looks at what projects say, however much happens.
const LOOK_MIN: Duration = Duration::from_millis(250);

/// The longest: what changes is news.
const LOOK_EVERY: Duration = Duration::from_mins(5);

/// The pause after a look that did not succeed.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long to wait before an end is recorded again.
const RECORD_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How often that is tried.
const RECORDS_MAX: u32 = 30;

/// Whose, and what it depends on.
type Which = (Name, String);

/// What is run before everything else of projects, here: what has ended is not run again. A clone is
/// another view of the same.
#[derive(Clone, Default)]
pub struct Inits {
    cells: Arc<Mutex<BTreeMap<Which, Arc<OnceCell<()>>>>>,
    /// Rung when one has ended.
    bell: Arc<watch::Sender<()>>,
    /// Completes when it is known whose there are.
    looked: CancellationToken,
    wanted: Arc<Wanted>,
}

/// Whose is to be run because somebody waits for it.
#[derive(Default)]
struct Wanted {
    queue: Mutex<Vec<(Name, Settings)>>,
    bell: Notify,
}

impl Inits {
    /// Has that ended, for whoever is asked about environments of these settings, when this
    /// completes.
    pub async fn ended(&self, settings: &Settings) {
        let depends = depends(settings);
        let mut bell = self.bell.subscribe();
        let waits = || {
            let cells = self.lock();
            let mut of = cells.iter().filter(|((_, on), _)| *on == depends);
            settings.deploy == Deploy::Scripts && !of.any(|(_, cell)| cell.initialized())
        };
        // Whoever rings goes when we do.
        while waits() && bell.changed().await.is_ok() {}
    }

    /// Has somebody looked whose there are, when this completes.
    pub(super) async fn looked(&self) {
        self.looked.cancelled().await;
    }

    /// Projects of which one has not ended.
    pub(super) fn early(&self) -> BTreeSet<Name> {
        let cells = self.lock();
        let early = cells.iter().filter(|(_, of)| !of.initialized());
        early.map(|((project, _), _)| project.clone()).collect()
    }

    /// Rings when one has ended.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.bell.subscribe()
    }

    /// Has it be run, unless it was, and waits for its end. Whoever leaves ends nothing: others wait, too.
    async fn want(&self, project: &Name, settings: &Settings) {
        let mut bell = self.bell.subscribe();
        if self.has_ended(project, settings) {
            return;
        }
        let one = (project.clone(), settings.clone());
        self.wanted.lock().push(one);
        self.wanted.bell.notify_one();
        // Whoever rings goes when we do.
        while !self.has_ended(project, settings) && bell.changed().await.is_ok() {}
    }

    fn has_ended(&self, project: &Name, settings: &Settings) -> bool {
        let which = (project.clone(), depends(settings));
        self.lock().get(&which).is_some_and(|of| of.initialized())
    }

    fn of(&self, project: &Name, settings: &Settings) -> Arc<OnceCell<()>> {
        let which = (project.clone(), depends(settings));
        self.lock().entry(which).or_default().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Which, Arc<OnceCell<()>>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wanted {
    fn lock(&self) -> MutexGuard<'_, Vec<(Name, Settings)>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// On what it depends: a directory of scripts, and what they are told of the project.
fn depends(settings: &Settings) -> String {
    format!("{}\0{:?}", settings.scripts, settings.place)
}

/// Runs it for every project at the start, and again when one says something else.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    let mut known: BTreeMap<Name, u64> = BTreeMap::new();
    let mut running = JoinSet::new();
    let mut news = shared.store.subscribe();
    loop {
        news.mark_unchanged();
        while running.try_join_next().is_some() {}
        let every = if look(&shared, &stop, &mut known, &mut running).await {
            shared.inits.looked.cancel();
            LOOK_EVERY
        } else {
            LOOK_AGAIN_AFTER
        };
        let pause = async {
            tokio::time::sleep(LOOK_MIN).await;
            tokio::select! {
                biased;
                _ = news.changed() => {}
                () = tokio::time::sleep(every) => {}
            }
        };
        let asked = async {
            loop {
                shared.inits.wanted.bell.notified().await;
                for (project, settings) in std::mem::take(&mut *shared.inits.wanted.lock()) {
                    running.spawn(run_once(shared.clone(), project, settings, stop.clone()));
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = asked => {}
            () = pause => {}
        }
    }
}

/// Has those be run that were not; answers whether it is known whose there are.
async fn look<D: Deployer>(
    shared: &Arc<Shared<D>>,
    stop: &CancellationToken,
    known: &mut BTreeMap<Name, u64>,
    running: &mut JoinSet<()>,
) -> bool {
    let versions = match shared.store.environment_settings_versions().await {
        Ok(versions) => versions,
        Err(error) => {
            tracing::error!(%error, "could not read what projects say of environments: {error}");
            return false;
        }
    };
    for (project, version) in versions {
        if known.get(&project) == Some(&version) {
            continue;
        }
        match shared.store.environment_settings(&project).await {
            Ok(Some(row)) => {
                known.insert(project.clone(), version);
                if row.settings.deploy == Deploy::Scripts {
                    // Whoever asks from now on knows that it is to be run.
                    shared.inits.of(&project, &row.settings);
                }
                running.spawn(run_once(
                    shared.clone(),
                    project,
                    row.settings,
                    stop.clone(),
                ));
            }
            Ok(None) => {}
            // It is read when somebody writes it anew.
            Err(error) => {
                known.insert(project.clone(), version);
                tracing::error!(%error, %project, "could not read what {project} says: {error}");
            }
        }
    }
    true
}

/// Whether it has been run, here and for these settings, or need not be.
pub(super) fn is_initialised<D>(shared: &Shared<D>, project: &Name, settings: &Settings) -> bool {
    settings.deploy != Deploy::Scripts || shared.inits.has_ended(project, settings)
}

/// Has it been run, here and for these settings, when this completes.
pub(super) async fn initialised<D>(shared: &Shared<D>, project: &Name, settings: &Settings) {
    if settings.deploy == Deploy::Scripts {
        shared.inits.want(project, settings).await;
    }
}

async fn run_once<D: Deployer>(
    shared: Arc<Shared<D>>,
    project: Name,
    settings: Settings,
    stop: CancellationToken,
) {
    if settings.deploy != Deploy::Scripts {
        return;
    }
    let (shared, project, settings) = (&*shared, &project, &settings);
    let cell = shared.inits.of(project, settings);
    cell.get_or_init(async || {
        let origin = format!("project/{project}");
        let cx = context(shared, project, origin, (stop.child_token(), 0));
        let ran = AssertUnwindSafe(shared.deployer.init(&cx, settings)).catch_unwind();
        let error = match ran.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("it broke down; this is a defect of Slipway".to_owned()),
        };
        if let Some(error) = &error {
            tracing::warn!(%project, "the script init of {project} failed: {error}");
        }
        record(shared, project, error).await;
    })
    .await;
    shared.inits.bell.send_replace(());
    shared.bell.notify_one();
}

async fn record<D: Deployer>(shared: &Shared<D>, project: &Name, error: Option<String>) {
    let place = shared.deployer.place();
    for _ in 0..RECORDS_MAX {
        let now = shared.clock.now();
        match shared
            .store
            .record_init(project, place, error.clone(), now)
            .await
        {
            Ok(()) => return,
            Err(error) => {
                tracing::error!(%error, "could not record how a script init ended: {error}");
            }
        }
        tokio::time::sleep(RECORD_AGAIN_AFTER).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::environment::settings::Place;

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_besides_waits_until_it_has_ended() {
        let place = Place {
            project_name: "Shop".to_owned(),
            base_domain: "shop.example.org".to_owned(),
            namespace: Name::default_project(),
            cluster: None,
        };
        let settings = Settings::usual(place, "/scripts");
        let inits = Inits::default();
        let waits = async || {
            let ended = tokio::time::timeout(Duration::from_secs(9), inits.ended(&settings));
            ended.await.is_err()
        };
        assert!(waits().await, "nobody has begun it");
        let cell = inits.of(&Name::default_project(), &settings);
        assert!(waits().await);
        let ended = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            cell.set(()).unwrap();
            inits.bell.send_replace(());
        };
        let (waited, ()) = tokio::join!(waits(), ended);
        assert!(!waited);
        assert!(!waits().await);
    }
}
