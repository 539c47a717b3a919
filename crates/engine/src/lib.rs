//! The loops: plan → commit, claim → apply → record, probe, sweep.
//!
//! Each loop is a thin shell around a question to the store, a pure function of `plan`
//! and a call to a driver; nothing is decided here. Loops tell one another only "look
//! soon", never what to do, so that a restart, a lost wake-up and a happy day take the
//! same path. No loop holds a transaction while a driver works, none polls faster than
//! the next thing is due, and work of one cluster never waits for another's.
//!
//! **Invariant:** dropping the future of [`Engine::run`] is a crash: whatever it had begun
//! ends there. `sim` does so at every point of every story.

mod agenda;
mod alarm;
mod attempt;
mod deliveries;
mod environments;
mod lease;
mod planning;
mod probing;
mod secrets;
mod settings;
mod sweeping;
mod working;

pub use deliveries::{Deliveries, DeliverySettings};
pub use environments::{EnvironmentSettings, Environments, Inits};
pub use secrets::{given, opener};
pub use settings::Settings;

use agenda::Agenda;
use alarm::Alarm;
use driver::{Clock, Driver};
use lease::Leases;
use std::sync::Arc;
use store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vault::Vault;

/// Everything that turns plans into work and work into observations.
pub struct Engine<D> {
    shared: Arc<Shared<D>>,
}

/// What the loops have in common.
struct Shared<D> {
    store: Store,
    /// Opens what drivers need, and seals what they leave.
    vault: Vault,
    driver: Arc<D>,
    clock: Clock,
    settings: Settings,
    agenda: Agenda,
    leases: Leases,
    /// Rung when a cluster is to be looked at sooner than anybody would.
    alarm: Alarm,
    /// Rung when there may be something to claim.
    bell: tokio::sync::Notify,
    /// Rung when there may be a cluster that nobody has looked at.
    probe_bell: tokio::sync::Notify,
}

impl<D: Driver> Engine<D> {
    /// Puts an engine together; [`Engine::run`] starts it.
    pub fn new(
        store: Store,
        vault: Vault,
        driver: Arc<D>,
        clock: Clock,
        settings: Settings,
    ) -> Self {
        let shared = Shared {
            store,
            vault,
            driver,
            clock,
            settings,
            agenda: Agenda::default(),
            leases: Leases::default(),
            alarm: Alarm::default(),
            bell: tokio::sync::Notify::new(),
            probe_bell: tokio::sync::Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Runs all loops until `stop`, then gives back what is under way and returns.
    pub async fn run(self, stop: CancellationToken) {
        let shared = self.shared;
        if shared.settings.alone {
            match shared.store.void_leases(shared.clock.now()).await {
                Ok(0) => {}
                Ok(lost) => tracing::info!(
                    tasks = lost,
                    "{lost} tasks were under way when the last run ended; they go on"
                ),
                Err(error) => {
                    tracing::error!(%error, "could not take over the tasks of the last run: {error}");
                }
            }
        }
        let mut loops = JoinSet::new();
        loops.spawn(planning::run(shared.clone(), stop.clone()));
        loops.spawn(planning::listen(shared.clone(), stop.clone()));
        loops.spawn(working::run(shared.clone(), stop.clone()));
        loops.spawn(lease::run(shared.clone(), stop.clone()));
        loops.spawn(probing::run(shared.clone(), stop.clone()));
        loops.spawn(sweeping::run(shared, stop));
        while let Some(ended) = loops.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a loop of the engine ended badly: {error}");
            }
        }
    }
}
