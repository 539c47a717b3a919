//! Carries messages to somebody outside: claim → carry → record.
//!
//! It runs beside all other loops and shares nothing with them: whoever does not answer delays
//! neither an environment nor anybody else who is told. Of one lane one message is on its way, so
//! that they arrive in their order.
//!
//! **Invariant:** dropping the future of [`Deliveries::run`] is a crash, and no crash loses a
//! message: it is carried again, under the same id, when its lease has run out.

use crate::secrets::Opener;
use driver::deliver::{Carried, Courier, Parcel};
use driver::{Clock, Context, Log};
use futures_util::FutureExt as _;
use model::time::Timestamp;
use plan::notify::{Next, is_sent_once, next};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Actor, DeliveryClaim, DeliveryEnd, Recorded, Store};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use vault::Vault;

/// The longest sleep between two looks at what waits; whatever makes a message due earlier is news.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The pause after something is due that nobody here can take up.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long to wait before an end is recorded again.
const RECORD_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Limits and intervals.
#[derive(Debug, Clone)]
pub struct DeliverySettings {
    /// How this worker signs its leases.
    pub worker: String,
    /// How long one message may take to be carried.
    pub within: Duration,
    /// How long a worker may stay silent before its messages are carried by others; nobody extends
    /// it, so it is longer than [`Self::within`].
    pub lease: Duration,
    /// The most messages on their way at once, each to somebody else.
    pub running_max: u32,
    /// How long what is on its way has to arrive when the program is told to end.
    pub grace: Duration,
    /// Whether no other process can work on the same store; then every lease found at the start
    /// belongs to the dead.
    pub alone: bool,
    /// Where the jitter comes from.
    pub seed: u64,
}

impl Default for DeliverySettings {
    fn default() -> Self {
        Self {
            worker: "worker".to_owned(),
            within: Duration::from_mins(1),
            lease: Duration::from_mins(2),
            running_max: 256,
            grace: Duration::from_secs(5),
            alone: true,
            seed: 0,
        }
    }
}

/// Everything that has people and programs outside told.
pub struct Deliveries<C> {
    shared: Arc<Shared<C>>,
}

struct Shared<C> {
    store: Store,
    /// Opens what leads to those who are told.
    vault: Vault,
    courier: Arc<C>,
    clock: Clock,
    settings: DeliverySettings,
    random: Mutex<fastrand::Rng>,
}

/// What a courier says besides what it answers is for whoever runs the server.
struct Told;

impl Log for Told {
    fn line(&self, _: Timestamp, text: &str) {
        tracing::debug!("{text}");
    }
}

impl<C: Courier> Deliveries<C> {
    /// Puts the loop together; [`Deliveries::run`] starts it.
    pub fn new(
        store: Store,
        vault: Vault,
        courier: Arc<C>,
        clock: Clock,
        settings: DeliverySettings,
    ) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(settings.seed ^ 0x00DE_1177));
        let shared = Shared {
            store,
            vault,
            courier,
            clock,
            settings,
            random,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Carries what is due until `stop`, then gives what is on its way a moment to arrive.
    pub async fn run(self, stop: CancellationToken) {
        let shared = self.shared;
        if shared.settings.alone
            && let Err(error) = shared.store.void_deliveries(shared.clock.now()).await
        {
            tracing::error!(%error, "could not take over the messages of the last run: {error}");
        }
        let mut carried = JoinSet::new();
        let mut news = shared.store.subscribe();
        let mut expired_at = shared.clock.now();
        loop {
            while carried.try_join_next().is_some() {}
            expired_at = shared.expire(expired_at).await;
            news.mark_unchanged();
            if shared.claim(&stop, &mut carried).await > 0 && !stop.is_cancelled() {
                continue;
            }
            let pause = shared.until_due().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = news.changed() => {}
                Some(_) = carried.join_next(), if !carried.is_empty() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        let all = async { while carried.join_next().await.is_some() {} };
        if tokio::time::timeout(shared.settings.grace, all)
            .await
            .is_err()
        {
            tracing::warn!("some messages did not arrive in time; they are sent again");
        }
    }
}

impl<C: Courier> Shared<C> {
    /// Has others' messages carried whose workers fell silent; answers when it last looked.
    async fn expire(&self, expired_at: Timestamp) -> Timestamp {
        let now = self.clock.now();
        if now.since(expired_at) < self.settings.lease / 3 {
            return expired_at;
        }
        match self.store.expire_deliveries(now).await {
            Ok(0) => {}
            Ok(lost) => tracing::warn!(
                deliveries = lost,
                "{lost} messages are taken over from workers that fell silent"
            ),
            Err(error) => {
                tracing::error!(%error, "could not take over messages of silent workers: {error}");
            }
        }
        now
    }

    async fn claim(self: &Arc<Self>, stop: &CancellationToken, carried: &mut JoinSet<()>) -> usize {
        let settings = &self.settings;
        let busy = u32::try_from(carried.len()).unwrap_or(u32::MAX);
        let room = settings.running_max.saturating_sub(busy);
        let now = self.clock.now();
        // A question that writes keeps others waiting, so it is asked only where it may be of use.
        let due = matches!(self.store.next_delivery().await, Ok(Some(due)) if due <= now);
        if room == 0 || !due || stop.is_cancelled() {
            return 0;
        }
        let claimed = self
            .store
            .claim_deliveries(&settings.worker, room, settings.lease, now);
        let claims = match claimed.await {
            Ok(claims) => claims,
            Err(error) => {
                tracing::error!(%error, "could not claim messages: {error}");
                return 0;
            }
        };
        let count = claims.len();
        for claim in claims {
            let span = tracing::info_span!(
                "delivery",
                delivery = %claim.id,
                kind = claim.kind,
                target = claim.target,
                project = %claim.project,
            );
            let (shared, leave) = (self.clone(), stop.child_token());
            carried.spawn(async move { shared.carry(claim, leave).await }.instrument(span));
        }
        count
    }

    /// How long until a message that waits is due.
    async fn until_due(&self) -> Duration {
        let now = self.clock.now();
        match self.store.next_delivery().await {
            Ok(Some(due)) if due <= now => LOOK_AGAIN_AFTER,
            Ok(Some(due)) => due.since(now).min(LOOK_EVERY),
            Ok(None) => LOOK_EVERY,
            Err(error) => {
                tracing::error!(%error, "could not read which messages wait: {error}");
                LOOK_AGAIN_AFTER
            }
        }
    }

    /// Carries one message, and records what became of it.
    async fn carry(&self, claim: DeliveryClaim, leave: CancellationToken) {
        let opener = Opener {
            store: self.store.clone(),
            vault: self.vault.clone(),
            project: claim.project.clone(),
            actor: Actor::new(&self.settings.worker, format!("delivery/{}", claim.id)),
        };
        let cx = Context::new(
            self.clock,
            Arc::new(Told),
            Arc::new(opener),
            leave.clone(),
            0,
        );
        let parcel = Parcel {
            id: claim.id,
            project: claim.project.clone(),
            kind: claim.kind.clone(),
            target: claim.target.clone(),
            environment: claim.environment.clone(),
            document: claim.document.clone(),
            settings: claim.settings.clone(),
        };
        let within = self.settings.within;
        let carrying = AssertUnwindSafe(self.courier.carry(&cx, &parcel)).catch_unwind();
        let carried = match tokio::time::timeout(within, carrying).await {
            Ok(Ok(carried)) => carried,
            Ok(Err(_)) => {
                tracing::error!("a courier broke down; this is a defect of Slipway");
                Carried::later("it broke down; this is a defect of Slipway")
            }
            Err(_) => Carried::later(format!("it took longer than {} seconds", within.as_secs())),
        };
        let end = self.end(&claim, carried);
        self.record(&claim, end, &leave).await;
    }

    /// What is recorded of a message.
    fn end(&self, claim: &DeliveryClaim, carried: Carried) -> DeliveryEnd {
        let Carried { answer, said } = carried;
        let chance = {
            let random = self.random.lock();
            random.unwrap_or_else(PoisonError::into_inner).f64()
        };
        let now = self.clock.now();
        match next(answer, claim.tries + 1, now.since(claim.since), chance) {
            Next::Delivered => DeliveryEnd::Delivered { said },
            Next::Again(_) if is_sent_once(&claim.occasion) => DeliveryEnd::GivenUp { said },
            Next::Again(pause) => DeliveryEnd::Again {
                said,
                due: now.plus(pause),
            },
            Next::GiveUp => {
                let tries = claim.tries + 1;
                tracing::warn!(tries, "a message is given up: {said}");
                DeliveryEnd::GivenUp { said }
            }
            Next::Forget => DeliveryEnd::Forgotten,
        }
    }

    /// Records what became of it, for as long as nobody else may have it.
    async fn record(&self, claim: &DeliveryClaim, end: DeliveryEnd, leave: &CancellationToken) {
        let give_up = self.clock.now().plus(self.settings.lease);
        loop {
            let now = self.clock.now();
            match self.store.record_delivery(claim, end.clone(), now).await {
                Ok(Recorded::Yes) => return,
                Ok(Recorded::LeaseLost) => {
                    tracing::warn!("a message took longer than its lease; it is sent again");
                    return;
                }
                Err(error) => {
                    tracing::error!(%error, "could not record what became of a message: {error}");
                }
            }
            if leave.is_cancelled() || now >= give_up {
                return;
            }
            tokio::time::sleep(RECORD_AGAIN_AFTER).await;
        }
    }
}
