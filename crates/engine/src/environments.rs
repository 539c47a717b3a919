//! The loops of environments: act, look, follow git services, and end what has been there for long
//! enough.
//!
//! They run beside [`crate::Engine`] and know nothing of clusters. What a script does is begun once
//! and outlives us: whoever comes back finds it and follows it to its end.
//!
//! **Invariant:** dropping the future of [`Environments::run`] is a crash, and no crash has two
//! scripts at one environment: an action is claimed before it is begun, and only its place may find
//! or begin it.

mod acting;
mod beating;
mod checking;
mod clearing;
mod configuring;
mod following;
mod initialising;
mod lines;
mod living;
mod remembering;
mod working;

pub use initialising::Inits;

use beating::Beats;
use driver::Clock;
use driver::deploy::Deployer;
use remembering::Remembered;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vault::Vault;

/// Limits and intervals of the loops of environments.
#[derive(Debug, Clone)]
pub struct EnvironmentSettings {
    /// How this worker signs its leases.
    pub worker: String,
    /// How long a worker may stay silent before its actions are given to others.
    pub lease: Duration,
    /// The most actions under way at once: each is a script of somebody's.
    pub running_max: u32,
    /// The most looks under way at once: each may be a script, too, and most are short. A quarter of
    /// them are for environments whose last look did not end in time.
    pub looks_max: u32,
    /// How often somebody looks at least for what has been there for long enough; what is known to
    /// end before is ended then.
    pub living_every: Duration,
    /// How long what is under way has to end when the program is told to.
    pub grace: Duration,
    /// Whether no other process can work on the same store; then every lease found at the start
    /// belongs to the dead.
    pub alone: bool,
    /// Where the jitter comes from.
    pub seed: u64,
}

impl Default for EnvironmentSettings {
    fn default() -> Self {
        Self {
            worker: "worker".to_owned(),
            lease: Duration::from_secs(30),
            running_max: 256,
            looks_max: 128,
            living_every: Duration::from_mins(5),
            grace: Duration::from_secs(10),
            alone: true,
            seed: 0,
        }
    }
}

/// Everything that has environments be as somebody asked.
pub struct Environments<D> {
    shared: Arc<Shared<D>>,
}

/// What the loops have in common.
struct Shared<D> {
    store: Store,
    /// Opens what scripts are given in secret.
    vault: Vault,
    deployer: Arc<D>,
    clock: Clock,
    settings: EnvironmentSettings,
    beats: Beats,
    /// What was opened for looks.
    remembered: Arc<Remembered>,
    /// What was run before everything else.
    inits: Inits,
    /// Rung when there may be something to claim.
    bell: Notify,
}

impl<D: Deployer> Environments<D> {
    /// Puts the loops together; [`Environments::run`] starts them.
    pub fn new(
        store: Store,
        vault: Vault,
        deployer: Arc<D>,
        clock: Clock,
        settings: EnvironmentSettings,
    ) -> Self {
        let shared = Shared {
            store,
            vault,
            deployer,
            clock,
            settings,
            beats: Beats::default(),
            remembered: Arc::default(),
            inits: Inits::default(),
            bell: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// What is run before everything else: whoever asks scripts besides waits for it.
    pub fn inits(&self) -> Inits {
        self.shared.inits.clone()
    }

    /// Runs all loops until `stop`, then lets go of what is under way and returns.
    pub async fn run(self, stop: CancellationToken) {
        let shared = self.shared;
        if shared.settings.alone {
            match shared.store.void_actions(shared.clock.now()).await {
                Ok(0) => {}
                Ok(lost) => tracing::info!(
                    actions = lost,
                    "{lost} actions were under way when the last run ended; they are found again"
                ),
                Err(error) => {
                    tracing::error!(%error, "could not take over the actions of the last run: {error}");
                }
            }
            if let Err(error) = shared.store.void_looks(shared.clock.now()).await {
                // They are due when nobody holds them any more.
                tracing::error!(%error, "could not take over the looks of the last run: {error}");
            }
        }
        let mut loops = JoinSet::new();
        loops.spawn(working::run(shared.clone(), stop.clone()));
        loops.spawn(beating::run(shared.clone(), stop.clone()));
        loops.spawn(checking::run(shared.clone(), stop.clone()));
        loops.spawn(clearing::run(shared.clone(), stop.clone()));
        loops.spawn(following::run(shared.clone(), stop.clone()));
        loops.spawn(initialising::run(shared.clone(), stop.clone()));
        loops.spawn(living::run(shared, stop));
        while let Some(ended) = loops.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a loop of environments ended badly: {error}");
            }
        }
    }
}
