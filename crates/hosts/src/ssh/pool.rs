//! All connections: one per door, opened once, shared, and closed when nobody needs it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connection::{self, Connection};
use super::{Door, Keys, Limits, key};
use crate::error::{Error, Kind};

/// The connections to hosts; a clone is another hold on the same ones.
#[derive(Clone)]
pub struct Connections {
    pub(super) inner: Arc<Inner>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Connections {
    /// None yet.
    pub fn new(limits: Limits) -> Self {
        let inner = Inner {
            limits,
            slots: Mutex::default(),
            opening: Semaphore::new(limits.at_once),
            programs: Arc::new(Semaphore::new(limits.at_once)),
            tasks: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        let slots = self.inner.slots().clone();
        let open = |slot: &&Arc<Slot>| {
            // Whoever holds it is about to open one.
            let state = slot.state.try_lock();
            state.is_ok_and(|state| state.live.as_ref().is_some_and(|live| live.alive()))
        };
        slots.values().filter(open).count()
    }
}

/// What is behind all clones.
pub(super) struct Inner {
    pub limits: Limits,
    slots: Mutex<HashMap<Address, Arc<Slot>>>,
    /// Bounds the connections that are being opened.
    opening: Semaphore,
    /// Bounds the programs that run.
    pub programs: Arc<Semaphore>,
    /// What nobody waits for: the sweeper, and channels to be closed.
    tasks: Mutex<JoinSet<()>>,
}

/// Which connection: what is behind a door depends on who enters.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Address {
    scope: String,
    door: Door,
}

/// The place of one connection. Whoever holds its state opens it; the others wait.
#[derive(Default)]
struct Slot {
    state: tokio::sync::Mutex<State>,
    /// How many attempts to open it have ended.
    attempts: AtomicU64,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Connection>>,
    /// How the last attempt failed, for those who waited for it.
    failed: Option<Error>,
}

/// A connection on its way; boxed, because a jump host's is opened within.
type Getting<'a> = Pin<Box<dyn Future<Output = Result<Arc<Connection>, Error>> + Send + 'a>>;

impl Inner {
    fn slots(&self) -> MutexGuard<'_, HashMap<Address, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets something run that nobody waits for; it ends with the last hold on the connections.
    pub(super) fn background(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime there are no connections any more either.
        if let Ok(runtime) = Handle::try_current() {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            while tasks.try_join_next().is_some() {}
            tasks.spawn_on(task, &runtime);
        }
    }

    fn slot(self: &Arc<Self>, address: Address) -> Arc<Slot> {
        let mut slots = self.slots();
        if slots.is_empty() {
            let tick = (self.limits.idle / 4).max(Duration::from_millis(10));
            self.background(sweep(Arc::downgrade(self), tick));
        }
        Arc::clone(slots.entry(address).or_default())
    }

    /// The connection of a door: the open one, or a new one.
    pub(super) fn connection<'a>(
        self: &'a Arc<Self>,
        door: &'a Door,
        keys: &'a dyn Keys,
    ) -> Getting<'a> {
        Box::pin(async move {
            let slot = self.slot(Address {
                scope: keys.scope(door),
                door: door.clone(),
            });
            let before = slot.attempts.load(Ordering::Acquire);
            keys.waiting(false);
            let mut state = slot.state.lock().await;
            if let Some(live) = usable(state.live.take(), door, keys)? {
                state.live = Some(Arc::clone(&live));
                return Ok(live);
            }
            // An attempt that failed while we waited was ours, too.
            if slot.attempts.load(Ordering::Acquire) != before
                && let Some(error) = &state.failed
            {
                return Err(error.clone());
            }
            let opened = self.fresh(door, keys).await;
            slot.attempts.fetch_add(1, Ordering::AcqRel);
            state.failed = opened.as_ref().err().cloned();
            let opened = Arc::new(opened?);
            state.live = Some(Arc::clone(&opened));
            Ok(opened)
        })
    }

    async fn fresh(self: &Arc<Self>, door: &Door, keys: &dyn Keys) -> Result<Connection, Error> {
        let via = match &door.jump {
            Some(jump) => Some(self.passage(door, jump, keys).await?),
            None => None,
        };
        keys.waiting(false);
        let _turn = self.opening.acquire().await.map_err(|_| {
            let what = format!("could not connect to {door}: all connections are closed");
            Error::new(Kind::Lost, what)
        })?;
        keys.waiting(true);
        connection::open(self, door, keys, via).await
    }

    /// The connection of the host in front of a door. One that is open and does not answer is
    /// opened anew: nobody notices before using it, and then the host behind would be blamed.
    pub(super) async fn passage(
        self: &Arc<Self>,
        door: &Door,
        jump: &Door,
        keys: &dyn Keys,
    ) -> Result<Arc<Connection>, Error> {
        let in_front = |error: Error| {
            let what = format!(
                "could not reach {}, because of its jump host: {}",
                door.near(),
                error.what
            );
            Error::new(error.kind, what)
        };
        let via = self.connection(jump, keys).await.map_err(in_front)?;
        if via.answers(self.limits.ending).await {
            return Ok(via);
        }
        self.discard(keys.scope(jump), jump, &via).await;
        self.connection(jump, keys).await.map_err(in_front)
    }

    /// Lets go of a connection that turned out to be dead.
    pub(super) async fn discard(&self, scope: String, door: &Door, dead: &Arc<Connection>) {
        let address = Address {
            scope,
            door: door.clone(),
        };
        let slot = self.slots().get(&address).cloned();
        if let Some(slot) = slot {
            let mut state = slot.state.lock().await;
            if state
                .live
                .as_ref()
                .is_some_and(|live| Arc::ptr_eq(live, dead))
            {
                state.live = None;
            }
        }
    }

    /// Closes what nobody used for long, and forgets what is closed; tells whether all is.
    async fn swept(&self) -> bool {
        let slots = self.slots().clone();
        for slot in slots.into_values() {
            // Whoever holds the state is using it.
            let Ok(mut state) = slot.state.try_lock() else {
                continue;
            };
            let spare = |live: &mut Arc<Connection>| {
                !live.alive() || (Arc::strong_count(live) == 1 && live.unused() >= self.limits.idle)
            };
            let ended = state.live.take_if(spare);
            drop(state);
            if let Some(ended) = ended {
                ended.close().await;
            }
        }
        // Only the map holds it, and it is empty.
        let spare = |slot: &Arc<Slot>| {
            Arc::strong_count(slot) == 1
                && slot
                    .state
                    .try_lock()
                    .is_ok_and(|state| state.live.is_none())
        };
        let mut slots = self.slots();
        slots.retain(|_, slot| !spare(slot));
        slots.is_empty()
    }
}

/// The open connection, if it still may be used by whoever asks.
fn usable(
    live: Option<Arc<Connection>>,
    door: &Door,
    keys: &dyn Keys,
) -> Result<Option<Arc<Connection>>, Error> {
    let Some(live) = live.filter(|live| live.alive()) else {
        return Ok(None);
    };
    match connection::pinned(door, keys)? {
        // Another key was pinned meanwhile: the host must show it.
        Some(pinned) if pinned.key_data() != live.key.key_data() => {
            tracing::debug!(%door, key = key::fingerprint(&live.key), "not the pinned host");
            return Ok(None);
        }
        Some(_) => {}
        None => keys.first_seen(door, &live.line),
    }
    // The same holds for the host in front.
    if let (Some(jump), Some(via)) = (&door.jump, &live.via)
        && usable(Some(Arc::clone(via)), jump, keys)?.is_none()
    {
        return Ok(None);
    }
    live.touch();
    Ok(Some(live))
}

/// Looks after connections until nobody has any, or may have any.
async fn sweep(inner: Weak<Inner>, tick: Duration) {
    loop {
        tokio::time::sleep(tick).await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        if inner.swept().await {
            return;
        }
    }
}
