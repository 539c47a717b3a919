//! Sealed values and the wrapped keys they are sealed with: noise without the master key.
//!
//! Who seals and opens is `vault`; here is only where it rests.
//!
//! **Invariant:** a value is stored only under the data key that is in use at its commit.
//! Once another key is put to use, the values under the old one can only become fewer, and
//! when none is left the old key goes without leaving anything behind.

mod keys;
mod secrets;

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::body::{Row, Scope, Tx, first};
use crate::error::Error;
pub use keys::SealKeyRow;
pub(crate) use keys::{check_keys, keys};
use model::id::ClusterId;
use model::name::Name;
use model::sealed::{KeyId, Owner, Place, Sealed};
use model::time::Timestamp;
pub use secrets::{Change, SECRET_ENTRIES_MAX, SecretRow};

/// A sealed value and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// Where it belongs.
    pub place: Place,
    /// The value.
    pub sealed: Sealed,
}

/// Why nothing sealed was stored.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key it was sealed with is not in use any more: seal again with the current one.
    #[error("the data key {key} is no longer in use")]
    KeyGone {
        /// Which key.
        key: KeyId,
    },
    /// There is no such project.
    #[error("there is no project `{project}`")]
    NoProject {
        /// Which one.
        project: Name,
    },
    /// The secret would have too many entries.
    #[error("the secret would have {found} entries, at most {SECRET_ENTRIES_MAX} are allowed")]
    TooMany {
        /// How many it would have.
        found: usize,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// A sealed value, for somebody who is about to open it: that they did is audited.
    pub async fn take_sealed(
        &self,
        place: &Place,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Option<Sealed>, Error> {
        let place = place.clone();
        self.runner
            .write(Scope::Rows, move |tx| take(tx, &place, &actor, now))
            .await
    }
}

fn read(mut row: Row) -> Result<SealedRow, Error> {
    let place = Place {
        project: row.take()?,
        owner: row.take()?,
        entry: row.take()?,
    };
    let sealed = Sealed {
        key: row.take()?,
        text: row.take()?,
    };
    Ok(SealedRow { place, sealed })
}

/// Stores one value in its place; its key is checked already.
pub(crate) fn store(
    tx: &mut dyn Tx,
    SealedRow { place, sealed }: &SealedRow,
    actor: &Actor,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO sealed (project, owner, entry, seal_key, sealed, version, updated_by, updated_at)
         VALUES ($1, $2, $3, $4, $5, 1, $6, $7)
         ON CONFLICT (project, owner, entry) DO UPDATE SET seal_key = excluded.seal_key,
             sealed = excluded.sealed, version = sealed.version + 1,
             updated_by = excluded.updated_by, updated_at = excluded.updated_at",
        &[
            (&place.project).into(),
            place.owner.to_string().into(),
            place.entry.as_str().into(),
            sealed.key.into(),
            (&sealed.text).into(),
            (&actor.name).into(),
            now.into(),
        ],
    )?;
    Ok(())
}

/// Stores what a task has produced; the keys are checked already.
pub(crate) fn store_outputs(
    tx: &mut dyn Tx,
    outputs: &[SealedRow],
    actor: &Actor,
    now: Timestamp,
) -> Result<(), Error> {
    for output in outputs {
        store(tx, output, actor, now)?;
        audit::enter(
            tx,
            Entry {
                at: now,
                project: Some(output.place.project.clone()),
                actor: actor.clone(),
                action: "output.set",
                object: output.place.owner.to_string(),
                generations: (None, None),
                detail: output.place.entry.to_string(),
            },
        );
    }
    Ok(())
}

/// Forgets what was sealed for somebody who is no more.
pub(crate) fn forget(tx: &mut dyn Tx, project: &Name, owner: &Owner) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM sealed WHERE project = $1 AND owner = $2",
        &[project.into(), owner.to_string().into()],
    )?;
    Ok(())
}

/// Forgets what was sealed for a cluster that is gone, and for its machines.
pub(crate) fn forget_cluster(tx: &mut dyn Tx, cluster: ClusterId) -> Result<(), Error> {
    let rows = tx.query(
        "SELECT project, 'cluster/' || id FROM clusters WHERE id = $1
         UNION ALL SELECT project, 'machine/' || id FROM machines WHERE cluster = $1",
        &[cluster.into()],
    )?;
    for mut row in rows {
        let (project, owner) = (row.take()?, row.take()?);
        forget(tx, &project, &owner)?;
    }
    Ok(())
}

fn take(
    tx: &mut dyn Tx,
    place: &Place,
    actor: &Actor,
    now: Timestamp,
) -> Result<Option<Sealed>, Error> {
    let row = first(
        tx,
        "SELECT project, owner, entry, seal_key, sealed FROM sealed
         WHERE project = $1 AND owner = $2 AND entry = $3",
        &[
            (&place.project).into(),
            place.owner.to_string().into(),
            place.entry.as_str().into(),
        ],
    )?;
    let Some(found) = row.map(read).transpose()? else {
        return Ok(None);
    };
    audit::enter(
        tx,
        Entry {
            at: now,
            project: Some(place.project.clone()),
            actor: actor.clone(),
            action: "secret.open",
            object: place.owner.to_string(),
            generations: (None, None),
            detail: place.entry.to_string(),
        },
    );
    Ok(Some(found.sealed))
}
