//! The handle over a store and its keys: what the rest of the program seals and opens with.
//!
//! Several processes may have a vault on one store. Each finds out by itself that another
//! one has put a new data key to use: the store refuses what is sealed with an old one, and
//! a value under a new one does not open until that key is read. Both are tried again after
//! the keys were read afresh.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use model::name::Name;
use model::sealed::{KeyId, Owner, Place, Sealed, Wrapped};
use model::secret::{EntryName, Secret};
use model::time::Timestamp;
use store::{Actor, SealError, SealKeyRow, SealedChange, SecretRow, Store};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::{Error, KeyConfig, KeySource, Sealer};

/// How long a vault that could not be opened is left alone: each try may ask a key service.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// How often keys may change in the middle of one thing before that is given up.
const TRIES_MAX: u32 = 5;

/// Tells the time: that of the world, or that of a rehearsal.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Seals into a store and opens out of it; a clone is another handle on the same vault.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    store: Store,
    config: KeyConfig,
    /// Who draws and rewraps keys.
    own: Actor,
    clock: Clock,
    door: RwLock<Door>,
    /// Held by whoever changes which keys are known.
    turning: Mutex<()>,
    /// Rung when there are values to be moved to another key.
    bell: Notify,
}

/// Whether anything can be sealed or opened.
enum Door {
    Open(Keys),
    Closed { why: Arc<Error>, tried: Instant },
}

/// What it takes to seal.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) sealer: Sealer,
    /// What new values are sealed with.
    pub(crate) in_use: KeyId,
}

/// What is to become of a named secret.
pub struct Changes {
    /// Entries with their new values; those without one go.
    pub entries: Vec<(EntryName, Option<Secret>)>,
    /// Whether entries that are not named go too.
    pub only: bool,
}

/// Opens the vault of a store.
///
/// The first start draws a data key. If the master key is wrong or missing the vault is
/// closed: it says why to everybody who wants something sealed or opened, and looks again now
/// and then whether that was mended. No other key is drawn meanwhile.
///
/// `own` is who draws and rewraps keys.
pub async fn open(store: Store, config: KeyConfig, own: Actor, clock: Clock) -> Vault {
    let vault = Vault(Arc::new(Inner {
        store,
        config,
        own,
        clock,
        door: RwLock::new(Door::Closed {
            why: Arc::new(Error::Unopened),
            tried: Instant::now(),
        }),
        turning: Mutex::new(()),
        bell: Notify::new(),
    }));
    let turn = vault.0.turning.lock().await;
    // What went wrong is told to whoever asks, see `closed`, and to those who will want something.
    drop(vault.unlock().await);
    drop(turn);
    vault
}

impl Vault {
    /// A vault with a key that ends with it: for rehearsals and tests.
    pub async fn in_memory(store: Store, clock: Clock) -> Self {
        let config = KeyConfig::only(KeySource::Memory);
        open(store, config, Actor::new("rehearsal", "memory"), clock).await
    }

    /// Why nothing can be sealed or opened, if that is so.
    pub fn closed(&self) -> Option<Arc<Error>> {
        match &*self.0.door.read().unwrap_or_else(PoisonError::into_inner) {
            Door::Open(_) => None,
            Door::Closed { why, .. } => Some(Arc::clone(why)),
        }
    }

    /// The data keys, with how much is sealed under each; the one in use first.
    pub async fn keys(&self) -> Result<Vec<SealKeyRow>, Error> {
        Ok(self.0.store.seal_key_rows().await?)
    }

    /// Seals a value for one place.
    pub async fn seal(&self, place: &Place, value: &Secret) -> Result<Sealed, Error> {
        let Keys { sealer, in_use } = self.ready().await?;
        match sealer.seal(in_use, value, place) {
            // Its last value was moved to another key, between two lines.
            Err(Error::UnknownKey { .. }) => {
                let Keys { sealer, in_use } = self.reread().await?;
                sealer.seal(in_use, value, place)
            }
            sealed => sealed,
        }
    }

    /// Changes a named secret; all of it, or nothing.
    pub async fn set(
        &self,
        (project, name): (&Name, &Name),
        changes: &Changes,
        actor: &Actor,
    ) -> Result<SecretRow, Error> {
        for _ in 0..TRIES_MAX {
            let mut sealed = Vec::with_capacity(changes.entries.len());
            for (entry, value) in &changes.entries {
                let entry = entry.clone();
                sealed.push(match value {
                    Some(value) => {
                        let place = Place {
                            project: project.clone(),
                            owner: Owner::Secret(name.clone()),
                            entry: entry.clone(),
                        };
                        SealedChange::Set(entry, self.seal(&place, value).await?)
                    }
                    None => SealedChange::Remove(entry),
                });
            }
            let actor = actor.clone();
            let put =
                self.0
                    .store
                    .put_secret((project, name), sealed, changes.only, actor, self.now());
            match put.await {
                Err(SealError::KeyGone { .. }) => self.refresh().await?,
                put => return Ok(put?),
            }
        }
        Err(Error::Overtaken)
    }

    /// Opens the value of one place, if there is one; that somebody did is audited.
    pub async fn open(&self, place: &Place, actor: &Actor) -> Result<Option<Secret>, Error> {
        for _ in 0..TRIES_MAX {
            // Asked first: what cannot be opened is not written down as opened.
            let Keys { sealer, .. } = self.ready().await?;
            let taken = self.0.store.take_sealed(place, actor.clone(), self.now());
            let Some(sealed) = taken.await? else {
                return Ok(None);
            };
            match sealer.open(&sealed, place) {
                Err(Error::UnknownKey { .. }) => {}
                opened => return opened.map(Some),
            }
            let Keys { sealer, .. } = self.reread().await?;
            match sealer.open(&sealed, place) {
                // The value was moved while we looked for its key: it has another one now.
                Err(Error::UnknownKey { key }) if !self.is_stored(key).await? => {}
                Err(Error::UnknownKey { key }) => return Err(self.why_unknown(key).await),
                opened => return opened.map(Some),
            }
        }
        Err(Error::Overtaken)
    }

    /// The one entry of a named secret; none when there is none, or more than one.
    pub async fn only_entry(&self, project: &Name, name: &Name) -> Result<OnlyEntry, Error> {
        let row = self.0.store.secret(project, name).await?;
        let mut entries = row.map(|row| row.entries).unwrap_or_default();
        Ok(match (entries.pop(), entries.is_empty()) {
            (None, _) => OnlyEntry::None,
            (Some(entry), true) => OnlyEntry::One(entry),
            (Some(_), false) => OnlyEntry::Several,
        })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn own(&self) -> Actor {
        self.0.own.clone()
    }

    pub(crate) fn bell(&self) -> &Notify {
        &self.0.bell
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0.clock)()
    }

    /// The keys, if the vault is open or can be opened by now.
    pub(crate) async fn ready(&self) -> Result<Keys, Error> {
        if let Some(known) = self.known() {
            return known;
        }
        let _turn = self.0.turning.lock().await;
        match self.known() {
            Some(known) => known,
            None => self.unlock().await,
        }
    }

    /// What is known of the keys; nothing when it is time to look.
    fn known(&self) -> Option<Result<Keys, Error>> {
        match &*self.0.door.read().unwrap_or_else(PoisonError::into_inner) {
            Door::Open(keys) => Some(Ok(keys.clone())),
            Door::Closed { why, tried } if tried.elapsed() < AGAIN_AFTER => {
                Some(Err(Error::Closed(Arc::clone(why))))
            }
            Door::Closed { .. } => None,
        }
    }

    /// Tries to open the vault. Whoever calls has the turn.
    async fn unlock(&self) -> Result<Keys, Error> {
        match self.unwrapped().await {
            Ok(keys) => {
                if !matches!(self.closed().as_deref(), None | Some(Error::Unopened)) {
                    tracing::info!("secrets can be sealed and opened again");
                }
                self.put(Door::Open(keys.clone()));
                Ok(keys)
            }
            Err(error) => {
                // Who opened the vault tells the first reason; here, only that there is another.
                let before = self.closed();
                if before.is_some_and(|why| {
                    !matches!(*why, Error::Unopened) && why.code() != error.code()
                }) {
                    tracing::error!(
                        error.code = error.code(),
                        hint = %error.hint(),
                        "nothing can be sealed or opened: {error}"
                    );
                }
                let why = Arc::new(error);
                let tried = Instant::now();
                self.put(Door::Closed {
                    why: Arc::clone(&why),
                    tried,
                });
                Err(Error::Closed(why))
            }
        }
    }

    fn put(&self, door: Door) {
        *self.0.door.write().unwrap_or_else(PoisonError::into_inner) = door;
    }

    /// Reads master and data keys; draws the first data key of all.
    async fn unwrapped(&self) -> Result<Keys, Error> {
        let mut stored = self.0.store.seal_keys().await?;
        let sealer = self.0.config.load(!stored.is_empty())?;
        if stored.is_empty() {
            let drawn = sealer.draw().await?;
            let id = drawn.id;
            let used = self
                .0
                .store
                .use_seal_key(drawn, true, self.own(), self.now());
            let used = used.await?;
            if used.id != id {
                sealer.forget(id);
            }
            stored.push(used);
        }
        let in_use = self.admit(&sealer, &stored).await?;
        self.rewrap(&sealer, &stored).await;
        Ok(Keys { sealer, in_use })
    }

    /// Has the sealer know these keys, the one in use first: nothing works without that one.
    /// Another that cannot be unwrapped is missed only by what is sealed with it.
    async fn admit(&self, sealer: &Sealer, stored: &[Wrapped]) -> Result<KeyId, Error> {
        let mut stored = stored.iter();
        let in_use = stored.next().ok_or(Error::NoKey)?;
        sealer.admit(in_use).await?;
        for older in stored {
            if let Err(error) = sealer.admit(older).await {
                tracing::error!(error.code = error.code(), key = %older.id, "an old data key is lost: {error}");
            }
        }
        Ok(in_use.id)
    }

    /// Wraps with the current master key what an older one has wrapped.
    async fn rewrap(&self, sealer: &Sealer, stored: &[Wrapped]) {
        for key in stored.iter().filter(|key| sealer.knows(key.id)) {
            let rewrapped = async {
                if let Some(wrapped) = sealer.rewrap(key).await? {
                    let (own, now) = (self.own(), self.now());
                    self.0.store.rewrap_seal_key(wrapped, own, now).await?;
                    tracing::info!(key = %key.id, "a data key is wrapped by the current master key now");
                }
                Ok::<_, Error>(())
            };
            if let Err(error) = rewrapped.await {
                // It can be unwrapped still; the next start tries again.
                tracing::warn!(error.code = error.code(), key = %key.id, "could not rewrap a data key: {error}");
            }
        }
    }

    /// Reads the data keys again: another process may have drawn one, or dropped one.
    pub async fn refresh(&self) -> Result<(), Error> {
        self.reread().await.map(drop)
    }

    pub(crate) async fn reread(&self) -> Result<Keys, Error> {
        let sealer = self.ready().await?.sealer;
        let _turn = self.0.turning.lock().await;
        let stored = self.0.store.seal_keys().await?;
        let in_use = self.admit(&sealer, &stored).await?;
        for gone in sealer.known() {
            if !stored.iter().any(|key| key.id == gone) {
                sealer.forget(gone);
            }
        }
        let keys = Keys { sealer, in_use };
        self.put(Door::Open(keys.clone()));
        Ok(keys)
    }

    /// Draws a data key and puts it to use.
    pub(crate) async fn turn(&self, actor: &Actor) -> Result<KeyId, Error> {
        let sealer = self.ready().await?.sealer;
        // Nobody reads the keys again before the new one is stored, and then forgets it.
        let _turn = self.0.turning.lock().await;
        let drawn = sealer.draw().await?;
        let in_use = drawn.id;
        let used = self
            .0
            .store
            .use_seal_key(drawn, false, actor.clone(), self.now());
        if let Err(error) = used.await {
            // Whether it was stored is not known: reading the keys tells.
            sealer.forget(in_use);
            return Err(error.into());
        }
        self.put(Door::Open(Keys { sealer, in_use }));
        Ok(in_use)
    }

    pub(crate) async fn is_stored(&self, key: KeyId) -> Result<bool, Error> {
        let stored = self.0.store.seal_keys().await?;
        Ok(stored.iter().any(|wrapped| wrapped.id == key))
    }

    /// Why a key that is stored cannot be used.
    async fn why_unknown(&self, key: KeyId) -> Error {
        let asked = async {
            let Keys { sealer, .. } = self.ready().await?;
            let stored = self.0.store.seal_keys().await?;
            match stored.iter().find(|wrapped| wrapped.id == key) {
                Some(wrapped) => sealer.admit(wrapped).await,
                None => Ok(()),
            }
        };
        asked.await.err().unwrap_or(Error::UnknownKey { key })
    }
}

/// Which entry is meant where none is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnlyEntry {
    /// The secret is not set.
    None,
    /// It has this one entry.
    One(EntryName),
    /// It has several: somebody has to say which.
    Several,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").finish_non_exhaustive()
    }
}
