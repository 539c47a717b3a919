//! A new data key, and all values moved to it while everybody goes on.
//!
//! What is left to do is in the store and nowhere else: values under keys that are not in
//! use. Whoever is killed in the middle leaves it there, and any process goes on with it.

use std::time::Duration;

use model::sealed::{KeyId, Place, Sealed};
use store::{Actor, SealError, SealedRow};
use tokio_util::sync::CancellationToken;

use crate::vault::Keys;
use crate::{Error, Vault};

/// Values that are moved in one transaction: few enough to be held in memory when all of them
/// are as large as they may be.
const BATCH: u32 = 8;

/// How often somebody looks whether another process left values behind.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// What became of the values under old keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// How many are sealed with the key in use now.
    pub values: u64,
    /// Which cannot be opened; they stay, and their key with them.
    pub damaged: Vec<Place>,
    /// Keys that are not needed any more, and are gone.
    pub dropped: Vec<KeyId>,
}

impl Vault {
    /// Puts a new data key to use and moves every value to it, while others seal and open.
    ///
    /// `told` hears how many values are left.
    pub async fn rotate(
        &self,
        actor: &Actor,
        told: impl Fn(u64) + Send + Sync,
    ) -> Result<Moved, Error> {
        self.turn(actor).await?;
        self.resume_rotation(told).await
    }

    /// Puts a new data key to use; [`Vault::run`] then moves the values to it.
    pub async fn begin_rotation(&self, actor: &Actor) -> Result<KeyId, Error> {
        let key = self.turn(actor).await?;
        self.bell().notify_one();
        Ok(key)
    }

    /// Moves what is left under old keys, whoever left it there, and drops the keys that
    /// nothing needs any more.
    pub async fn resume_rotation(&self, told: impl Fn(u64) + Send + Sync) -> Result<Moved, Error> {
        let mut moved = Moved::default();
        // Another process may turn to yet another key, behind the place where this one is.
        loop {
            moved.damaged.clear();
            let values = self.pass(&mut moved.damaged, &told).await?;
            moved.values += values;
            if values == 0 {
                break;
            }
        }
        let dropped = self.store().drop_unused_seal_keys(self.own(), self.now());
        moved.dropped = dropped.await?;
        // Others may have dropped some, too.
        self.refresh().await?;
        Ok(moved)
    }

    /// Moves values until it is told to stop: those of a rotation that somebody began here,
    /// and those that another process left.
    pub async fn run(&self, stop: CancellationToken) {
        let mut known = 0;
        loop {
            let looked = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                looked = self.look() => looked,
            };
            match looked {
                Ok(moved) => {
                    if !moved.dropped.is_empty() || moved.values > 0 {
                        tracing::info!(
                            values = moved.values,
                            keys = moved.dropped.len(),
                            "values were sealed with the current data key, and old keys were dropped"
                        );
                    }
                    let damaged = moved.damaged.len();
                    if damaged != known {
                        known = damaged;
                        tracing::error!(
                            damaged,
                            "{damaged} values under old data keys cannot be opened; their keys stay"
                        );
                    }
                }
                // That it is closed is told when it is opened, and not every minute.
                Err(Error::Closed(why)) => tracing::debug!("the vault is closed: {why}"),
                Err(error) => {
                    tracing::warn!(
                        error.code = error.code(),
                        "could not move values to the current data key: {error}"
                    );
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.bell().notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Goes on with a rotation, if there is one.
    async fn look(&self) -> Result<Moved, Error> {
        // A vault that was closed is opened as soon as it can be, not when somebody needs it.
        self.ready().await?;
        if self.store().seal_keys().await?.len() < 2 {
            return Ok(Moved::default());
        }
        self.resume_rotation(|_| {}).await
    }

    /// Goes once through all places; answers how many values it moved.
    async fn pass(
        &self,
        damaged: &mut Vec<Place>,
        told: &(impl Fn(u64) + Send + Sync),
    ) -> Result<u64, Error> {
        let rows = self.keys().await?;
        let mut left: u64 = rows
            .iter()
            .filter(|row| !row.in_use)
            .map(|row| row.values)
            .sum();
        let mut moved = 0;
        let mut after = None;
        told(left);
        loop {
            let old = self.store().sealed_with_old_keys(after, BATCH).await?;
            let Some(last) = old.last() else {
                return Ok(moved);
            };
            after = Some(last.place.clone());
            let count = u64::try_from(old.len()).unwrap_or(u64::MAX);
            moved += self.move_batch(old, damaged).await?;
            left = left.saturating_sub(count);
            told(left);
        }
    }

    async fn move_batch(
        &self,
        mut old: Vec<SealedRow>,
        damaged: &mut Vec<Place>,
    ) -> Result<u64, Error> {
        let mut keys = self.ready().await?;
        loop {
            let mut values = Vec::with_capacity(old.len());
            for row in old {
                match self.again(&mut keys, &row).await {
                    Ok(sealed) => values.push((row, sealed)),
                    Err(Error::Damaged { place }) => damaged.push(place),
                    // Another process was quicker, and has dropped the key since.
                    Err(Error::UnknownKey { key }) if !self.is_stored(key).await? => {}
                    Err(Error::UnknownKey { .. }) => damaged.push(row.place),
                    Err(error) => return Err(error),
                }
            }
            if values.is_empty() {
                return Ok(0);
            }
            let kept = values.iter().map(|(row, _)| row.clone()).collect();
            match self.store().reseal(values).await {
                Ok(stored) => return Ok(u64::try_from(stored).unwrap_or(u64::MAX)),
                // Another process has put yet another key to use: that one, then.
                Err(SealError::KeyGone { .. }) => keys = self.reread().await?,
                Err(error) => return Err(error.into()),
            }
            old = kept;
        }
    }

    /// The value of a row, sealed with the key in use.
    async fn again(&self, keys: &mut Keys, row: &SealedRow) -> Result<Sealed, Error> {
        if !keys.sealer.knows(row.sealed.key) || !keys.sealer.knows(keys.in_use) {
            *keys = self.reread().await?;
        }
        let Keys { sealer, in_use } = &*keys;
        let value = sealer.open(&row.sealed, &row.place)?;
        sealer.seal(*in_use, &value, &row.place)
    }
}
