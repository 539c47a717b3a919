//! The wrapped data keys, and how values pass from one to the next.

use super::{SealError, SealedRow, read};
use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::body::{Row, Scope, Tx, first};
use crate::error::Error;
use model::sealed::{KeyId, Place, Sealed, Wrapped};
use model::time::Timestamp;
use std::collections::BTreeSet;

/// What everybody who changes which keys there are must have for itself.
const KEYS: &str = "seal-keys";

/// A data key and what depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealKeyRow {
    /// The key, as its master has wrapped it.
    pub wrapped: Wrapped,
    /// Whether new values are sealed with it.
    pub in_use: bool,
    /// Since when it is there.
    pub created_at: Timestamp,
    /// Values that are sealed with it.
    pub values: u64,
}

impl Store {
    /// The wrapped data keys, the one in use first.
    pub async fn seal_keys(&self) -> Result<Vec<Wrapped>, Error> {
        self.runner.read(keys).await
    }

    /// Puts a new data key to use; when `first` it stays unused if there is any key already.
    /// Answers the key that is in use afterwards.
    pub async fn use_seal_key(
        &self,
        wrapped: Wrapped,
        first: bool,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Wrapped, Error> {
        self.runner
            .write(Scope::Rows, move |tx| {
                use_key(tx, &wrapped, first, &actor, now)
            })
            .await
    }

    /// The data keys with what depends on each, the one in use first.
    pub async fn seal_key_rows(&self) -> Result<Vec<SealKeyRow>, Error> {
        self.runner.read(key_rows).await
    }

    /// Stores a data key as another master key has wrapped it.
    pub async fn rewrap_seal_key(
        &self,
        wrapped: Wrapped,
        actor: Actor,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.runner
            .write(Scope::Rows, move |tx| rewrap(tx, &wrapped, &actor, now))
            .await
    }

    /// Forgets data keys that are not in use and seal nothing any more; answers which.
    pub async fn drop_unused_seal_keys(
        &self,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Vec<KeyId>, Error> {
        self.runner
            .write(Scope::Rows, move |tx| drop_unused(tx, &actor, now))
            .await
    }

    /// Values that are not sealed with the key in use, in the order of their places, some at
    /// a time: those after the place where the last question ended.
    pub async fn sealed_with_old_keys(
        &self,
        after: Option<Place>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, Error> {
        self.runner
            .read(move |tx| with_old_keys(tx, after.as_ref(), limit))
            .await
    }

    /// Stores values that were sealed again, each unless it was changed meanwhile; answers
    /// how many were.
    pub async fn reseal(&self, values: Vec<(SealedRow, Sealed)>) -> Result<usize, SealError> {
        self.runner
            .write(Scope::Rows, move |tx| reseal(tx, &values))
            .await
    }
}

pub(crate) fn keys(tx: &mut dyn Tx) -> Result<Vec<Wrapped>, Error> {
    let rows = tx.query(
        "SELECT id, wrapped_by, wrapped FROM seal_keys ORDER BY in_use DESC, created_at DESC, id",
        &[],
    )?;
    let key = |mut row: Row| {
        Ok(Wrapped {
            id: row.take()?,
            by: row.take()?,
            text: row.take()?,
        })
    };
    rows.into_iter().map(key).collect()
}

fn key_rows(tx: &mut dyn Tx) -> Result<Vec<SealKeyRow>, Error> {
    let rows = tx.query(
        "SELECT id, wrapped_by, wrapped, in_use, created_at,
                (SELECT COUNT(*) FROM sealed WHERE sealed.seal_key = seal_keys.id)
         FROM seal_keys ORDER BY in_use DESC, created_at DESC, id",
        &[],
    )?;
    let key = |mut row: Row| {
        let wrapped = Wrapped {
            id: row.take()?,
            by: row.take()?,
            text: row.take()?,
        };
        Ok(SealKeyRow {
            wrapped,
            in_use: row.take()?,
            created_at: row.take()?,
            values: row.take()?,
        })
    };
    rows.into_iter().map(key).collect()
}

fn rewrap(tx: &mut dyn Tx, wrapped: &Wrapped, actor: &Actor, now: Timestamp) -> Result<(), Error> {
    let changed = tx.execute(
        "UPDATE seal_keys SET wrapped_by = $2, wrapped = $3 WHERE id = $1",
        &[
            wrapped.id.into(),
            (&wrapped.by).into(),
            (&wrapped.text).into(),
        ],
    )?;
    if changed > 0 {
        let detail = format!("wrapped by {}", wrapped.by);
        audit::enter(tx, of_key("key.rewrap", wrapped.id, detail, actor, now));
    }
    Ok(())
}

fn drop_unused(tx: &mut dyn Tx, actor: &Actor, now: Timestamp) -> Result<Vec<KeyId>, Error> {
    tx.hold(KEYS)?;
    let rows = tx.query(
        "DELETE FROM seal_keys WHERE in_use = 0
           AND NOT EXISTS (SELECT 1 FROM sealed WHERE sealed.seal_key = seal_keys.id) RETURNING id",
        &[],
    )?;
    let mut dropped = Vec::with_capacity(rows.len());
    for mut row in rows {
        let key = row.take()?;
        audit::enter(tx, of_key("key.drop", key, String::new(), actor, now));
        dropped.push(key);
    }
    Ok(dropped)
}

/// What somebody did to a data key.
fn of_key(
    action: &'static str,
    key: KeyId,
    detail: String,
    actor: &Actor,
    now: Timestamp,
) -> Entry {
    Entry {
        at: now,
        project: None,
        actor: actor.clone(),
        action,
        object: format!("key/{key}"),
        generations: (None, None),
        detail,
    }
}

fn with_old_keys(
    tx: &mut dyn Tx,
    after: Option<&Place>,
    limit: u32,
) -> Result<Vec<SealedRow>, Error> {
    let (project, owner, entry) = match after {
        Some(place) => (
            place.project.as_str(),
            place.owner.to_string(),
            place.entry.as_str(),
        ),
        None => ("", String::new(), ""),
    };
    let rows = tx.query(
        "SELECT project, owner, entry, seal_key, sealed FROM sealed
         WHERE seal_key IN (SELECT id FROM seal_keys WHERE in_use = 0)
           AND (project, owner, entry) > ($1, $2, $3)
         ORDER BY project, owner, entry LIMIT $4",
        &[project.into(), owner.into(), entry.into(), limit.into()],
    )?;
    rows.into_iter().map(read).collect()
}

fn reseal(tx: &mut dyn Tx, values: &[(SealedRow, Sealed)]) -> Result<usize, SealError> {
    check_keys(tx, values.iter().map(|(_, new)| new.key))?;
    let mut stored = 0;
    for (old, new) in values {
        stored += tx.execute(
            "UPDATE sealed SET seal_key = $5, sealed = $6
             WHERE project = $1 AND owner = $2 AND entry = $3 AND sealed = $4",
            &[
                (&old.place.project).into(),
                old.place.owner.to_string().into(),
                old.place.entry.as_str().into(),
                (&old.sealed.text).into(),
                new.key.into(),
                (&new.text).into(),
            ],
        )?;
    }
    Ok(stored)
}

fn use_key(
    tx: &mut dyn Tx,
    wrapped: &Wrapped,
    first_of_all: bool,
    actor: &Actor,
    now: Timestamp,
) -> Result<Wrapped, Error> {
    tx.hold(KEYS)?;
    if first_of_all && let Some(known) = keys(tx)?.into_iter().next() {
        return Ok(known);
    }
    tx.execute("UPDATE seal_keys SET in_use = 0 WHERE in_use = 1", &[])?;
    tx.execute(
        "INSERT INTO seal_keys (id, wrapped_by, wrapped, in_use, created_at) VALUES ($1, $2, $3, 1, $4)",
        &[
            wrapped.id.into(),
            (&wrapped.by).into(),
            (&wrapped.text).into(),
            now.into(),
        ],
    )?;
    let detail = format!("wrapped by {}", wrapped.by);
    audit::enter(tx, of_key("key.use", wrapped.id, detail, actor, now));
    Ok(wrapped.clone())
}

/// Refuses what is sealed with a key that is not in use. None of the keys can go out of use
/// before this transaction ends.
pub(crate) fn check_keys(
    tx: &mut dyn Tx,
    keys: impl Iterator<Item = KeyId>,
) -> Result<(), SealError> {
    let keys: BTreeSet<KeyId> = keys.collect();
    for key in keys {
        let used = first(
            tx,
            "SELECT 1 FROM seal_keys WHERE id = $1 AND in_use = 1 FOR SHARE",
            &[key.into()],
        )?;
        if used.is_none() {
            return Err(SealError::KeyGone { key });
        }
    }
    Ok(())
}
