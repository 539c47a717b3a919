//! The handle that others hold: master keys, and the data keys that were opened with them.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use model::sealed::{KeyId, Place, Sealed, Wrapped};
use model::secret::Secret;

use crate::master::{self, Master};
use crate::seal::{self, Bound};
use crate::{Error, text};

/// Seals and opens; a clone is another handle on the same keys.
///
/// It knows no store. Whoever composes it with one admits the data keys that the store
/// holds at the start, and again when [`Error::UnknownKey`] says that another server has
/// drawn a new one.
#[derive(Clone)]
pub struct Sealer(Arc<Inner>);

struct Inner {
    current: Master,
    older: Vec<Master>,
    keys: RwLock<BTreeMap<KeyId, Arc<Secret>>>,
}

impl Sealer {
    /// A sealer that wraps with `current`, and unwraps with `older` ones too: those
    /// that an installation is moving away from.
    pub fn new(current: Master, older: Vec<Master>) -> Self {
        Self(Arc::new(Inner {
            current,
            older,
            keys: RwLock::default(),
        }))
    }

    /// Draws a new data key and remembers it. It seals nothing that lasts until the caller
    /// has stored what this returns.
    pub async fn draw(&self) -> Result<Wrapped, Error> {
        let data_key = text::draw_key()?;
        let id = master::id_of(&data_key);
        let wrapped = self.0.current.wrap(id, &data_key).await?;
        self.remember(id, data_key);
        Ok(wrapped)
    }

    /// Unwraps a data key and remembers it. One that is known already costs nothing.
    pub async fn admit(&self, wrapped: &Wrapped) -> Result<(), Error> {
        if !self.knows(wrapped.id) {
            let data_key = self.unwrap(wrapped).await?;
            self.remember(wrapped.id, data_key);
        }
        Ok(())
    }

    /// Wraps the same data key with the current master; nothing if it is already. What was
    /// sealed under it stays as it is.
    pub async fn rewrap(&self, wrapped: &Wrapped) -> Result<Option<Wrapped>, Error> {
        if wrapped.by == self.0.current.label() {
            return Ok(None);
        }
        let data_key = self.unwrap(wrapped).await?;
        self.0.current.wrap(wrapped.id, &data_key).await.map(Some)
    }

    /// Whether the data key was drawn or admitted.
    pub fn knows(&self, key: KeyId) -> bool {
        self.key(key).is_ok()
    }

    /// The data keys that were drawn or admitted.
    pub fn known(&self) -> Vec<KeyId> {
        let keys = self.0.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.keys().copied().collect()
    }

    /// Forgets a data key under which nothing is sealed any more.
    pub fn forget(&self, key: KeyId) {
        let mut keys = self.0.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys.remove(&key);
    }

    /// Seals a value under a data key, for one place.
    pub fn seal(&self, key: KeyId, value: &Secret, place: &Place) -> Result<Sealed, Error> {
        let data_key = self.key(key)?;
        let text = seal::seal(&data_key, value.expose(), &Bound::value(key, place))?;
        Ok(Sealed { key, text })
    }

    /// Opens a value that was sealed for this place.
    pub fn open(&self, sealed: &Sealed, place: &Place) -> Result<Secret, Error> {
        let data_key = self.key(sealed.key)?;
        seal::open(&data_key, &sealed.text, &Bound::value(sealed.key, place)).ok_or_else(|| {
            Error::Damaged {
                place: place.clone(),
            }
        })
    }

    fn key(&self, key: KeyId) -> Result<Arc<Secret>, Error> {
        let keys = self.0.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(&key).cloned().ok_or(Error::UnknownKey { key })
    }

    fn remember(&self, id: KeyId, data_key: Secret) {
        let mut keys = self.0.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys.insert(id, Arc::new(data_key));
    }

    /// Asks everybody who says that the data key is theirs, until one can open it.
    async fn unwrap(&self, wrapped: &Wrapped) -> Result<Secret, Error> {
        let masters = || std::iter::once(&self.0.current).chain(&self.0.older);
        let mut failed = None;
        for master in masters() {
            match master.unwrap(wrapped).await {
                // A seal of ours cannot open into another key; a row of the store may lie.
                Some(Ok(data_key)) if master::id_of(&data_key) == wrapped.id => {
                    return Ok(data_key);
                }
                Some(Ok(_)) => failed = Some(Error::DamagedKey { key: wrapped.id }),
                Some(Err(error)) => failed = Some(error),
                None => {}
            }
        }
        Err(failed.unwrap_or_else(|| Error::WrongKey {
            key: wrapped.id,
            by: master::named(&wrapped.by),
            had: masters()
                .map(Master::describe)
                .collect::<Vec<_>>()
                .join(", and "),
        }))
    }
}
