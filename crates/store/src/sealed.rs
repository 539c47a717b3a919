//! Sealed values and the wrapped keys they are sealed with: noise without the master key.
//!
//! Who seals and opens is `vault`; here is only where it rests.
//!
//! **Invariant:** a value is stored only under the data key that is in use at its commit.
//! Once another key is put to use, the values under the old one can only become fewer, and
//! when none is left the old key goes without leaving anything behind.

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::body::{Row, Scope, Tx, first};
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use crate::projects;
use model::id::ClusterId;
use model::name::Name;
use model::sealed::{KeyId, Owner, Place, Sealed, Wrapped};
use model::secret::EntryName;
use model::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What everybody who changes which keys there are must have for itself.
const KEYS: &str = "seal-keys";

/// Entries of one secret: more than anything needs that is used together.
pub const SECRET_ENTRIES_MAX: usize = 100;

/// A sealed value and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// Where it belongs.
    pub place: Place,
    /// The value.
    pub sealed: Sealed,
}

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

/// A named secret as people see it: its entries, never their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRow {
    /// What people call it.
    pub name: Name,
    /// Its entries, by name.
    pub entries: Vec<EntryName>,
    /// How often it was changed.
    pub version: u64,
    /// Who changed it last.
    pub updated_by: String,
    /// When.
    pub updated_at: Timestamp,
}

/// What is to become of one entry of a named secret.
#[derive(Debug, Clone)]
pub enum Change {
    /// It gets this value.
    Set(EntryName, Sealed),
    /// It goes.
    Remove(EntryName),
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

    /// Changes entries of a named secret; all of them, or none. With `only`, entries that are
    /// not set here go.
    pub async fn put_secret(
        &self,
        (project, name): (&Name, &Name),
        changes: Vec<Change>,
        only: bool,
        actor: Actor,
        now: Timestamp,
    ) -> Result<SecretRow, SealError> {
        let (project, name) = (project.clone(), name.clone());
        self.runner
            .write(Scope::Whole, move |tx| {
                put(tx, (&project, &name), (&changes, only), &actor, now)
            })
            .await
    }

    /// Removes a named secret with all its entries; answers whether there was one.
    pub async fn delete_secret(
        &self,
        project: &Name,
        name: &Name,
        actor: Actor,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let (project, name) = (project.clone(), name.clone());
        self.runner
            .write(Scope::Whole, move |tx| {
                delete(tx, &project, &name, &actor, now)
            })
            .await
    }

    /// Named secrets of a project, with the names of their entries.
    pub async fn secrets(&self, project: &Name, page: Page) -> Result<Listed<SecretRow>, Error> {
        let project = project.clone();
        self.runner.read(move |tx| list(tx, &project, &page)).await
    }

    /// One named secret, with the names of its entries.
    pub async fn secret(&self, project: &Name, name: &Name) -> Result<Option<SecretRow>, Error> {
        let (project, name) = (project.clone(), name.clone());
        self.runner
            .read(move |tx| secret(tx, &project, &name))
            .await
    }

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

/// Stores one value in its place; its key is checked already.
fn store(
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

fn put(
    tx: &mut dyn Tx,
    (project, name): (&Name, &Name),
    (changes, only): (&[Change], bool),
    actor: &Actor,
    now: Timestamp,
) -> Result<SecretRow, SealError> {
    check_keys(
        tx,
        changes.iter().filter_map(|change| match change {
            Change::Set(_, sealed) => Some(sealed.key),
            Change::Remove(_) => None,
        }),
    )?;
    if projects::quota(tx, project)?.is_none() {
        return Err(SealError::NoProject {
            project: project.clone(),
        });
    }
    let before = secret(tx, project, name)?;
    let known: BTreeSet<_> = before.iter().flat_map(|row| row.entries.clone()).collect();
    let (set, removed) = sorted(changes, only.then_some(&known));
    let found = known
        .difference(&removed)
        .filter(|entry| !set.contains_key(*entry));
    let found = found.count() + set.len();
    if found > SECRET_ENTRIES_MAX {
        return Err(SealError::TooMany { found });
    }
    for (entry, sealed) in &set {
        let place = Place {
            project: project.clone(),
            owner: Owner::Secret(name.clone()),
            entry: entry.clone(),
        };
        let sealed = (*sealed).clone();
        store(tx, &SealedRow { place, sealed }, actor, now)?;
    }
    for entry in &removed {
        remove(tx, (project, name), entry)?;
    }
    let was = before.map(|secret| secret.version);
    let after = settle(tx, (project, name), was, actor, now)?;
    audit::enter(
        tx,
        Entry {
            at: now,
            project: Some(project.clone()),
            actor: actor.clone(),
            action: "secret.set",
            object: Owner::Secret(name.clone()).to_string(),
            generations: (was, Some(after.version)),
            detail: told(set.keys(), &removed),
        },
    );
    crate::clusters::unplan_waiting_for(tx, project, None, "secret", now)?;
    Ok(after)
}

/// What is set and what is removed in the end; with `all`, everything goes that is not set.
fn sorted<'a>(
    changes: &'a [Change],
    all: Option<&BTreeSet<EntryName>>,
) -> (BTreeMap<EntryName, &'a Sealed>, BTreeSet<EntryName>) {
    let mut set = BTreeMap::new();
    let mut removed = all.cloned().unwrap_or_default();
    for change in changes {
        match change {
            Change::Set(entry, sealed) => {
                removed.remove(entry);
                set.insert(entry.clone(), sealed);
            }
            Change::Remove(entry) => {
                set.remove(entry);
                removed.insert(entry.clone());
            }
        }
    }
    (set, removed)
}

fn remove(
    tx: &mut dyn Tx,
    (project, name): (&Name, &Name),
    entry: &EntryName,
) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM sealed WHERE project = $1 AND owner = $2 AND entry = $3",
        &[
            project.into(),
            Owner::Secret(name.clone()).to_string().into(),
            entry.as_str().into(),
        ],
    )?;
    Ok(())
}

/// Signs what is left of a secret: version, author and time are those of the whole, so that a
/// removal shows too.
fn settle(
    tx: &mut dyn Tx,
    (project, name): (&Name, &Name),
    was: Option<u64>,
    actor: &Actor,
    now: Timestamp,
) -> Result<SecretRow, Error> {
    let version = was.unwrap_or(0) + 1;
    tx.execute(
        "UPDATE sealed SET version = $3, updated_by = $4, updated_at = $5 WHERE project = $1 AND owner = $2",
        &[
            project.into(),
            Owner::Secret(name.clone()).to_string().into(),
            version.into(),
            (&actor.name).into(),
            now.into(),
        ],
    )?;
    let left = secret(tx, project, name)?;
    Ok(left.unwrap_or_else(|| SecretRow {
        name: name.clone(),
        entries: Vec::new(),
        version,
        updated_by: actor.name.clone(),
        updated_at: now,
    }))
}

/// What was done to which entries, in the words of the audit.
fn told<'a>(set: impl Iterator<Item = &'a EntryName>, removed: &'a BTreeSet<EntryName>) -> String {
    let names = |entries: Vec<&str>| entries.join(", ");
    let set = names(set.map(EntryName::as_str).collect());
    let removed = names(removed.iter().map(EntryName::as_str).collect());
    match (set.as_str(), removed.as_str()) {
        (set, "") => format!("set {set}"),
        ("", removed) => format!("removed {removed}"),
        (set, removed) => format!("set {set}, removed {removed}"),
    }
}

fn delete(
    tx: &mut dyn Tx,
    project: &Name,
    name: &Name,
    actor: &Actor,
    now: Timestamp,
) -> Result<bool, Error> {
    let owner = Owner::Secret(name.clone()).to_string();
    let before = secret(tx, project, name)?.map(|secret| secret.version);
    let gone = tx.execute(
        "DELETE FROM sealed WHERE project = $1 AND owner = $2",
        &[project.into(), (&owner).into()],
    )?;
    if gone > 0 {
        audit::enter(
            tx,
            Entry {
                at: now,
                project: Some(project.clone()),
                actor: actor.clone(),
                action: "secret.delete",
                object: owner,
                generations: (before, None),
                detail: String::new(),
            },
        );
    }
    Ok(gone > 0)
}

fn list(tx: &mut dyn Tx, project: &Name, page: &Page) -> Result<Listed<SecretRow>, Error> {
    let [after] = page.after("secrets", [""])?;
    let owners = tx.query(
        "SELECT DISTINCT owner FROM sealed
         WHERE project = $1 AND owner LIKE 'secret/%' AND owner > $2 ORDER BY owner LIMIT $3",
        &[
            project.into(),
            format!("secret/{after}").into(),
            page.rows().into(),
        ],
    )?;
    let mut secrets = Vec::with_capacity(owners.len());
    for mut row in owners {
        if let Owner::Secret(name) = row.take()? {
            secrets.extend(secret(tx, project, &name)?);
        }
    }
    Ok(page.cut(secrets, |secret| cursor("secrets", &[&secret.name])))
}

fn secret(tx: &mut dyn Tx, project: &Name, name: &Name) -> Result<Option<SecretRow>, Error> {
    let owner = Owner::Secret(name.clone()).to_string();
    let rows = tx.query(
        "SELECT entry, version, updated_by, updated_at FROM sealed WHERE project = $1 AND owner = $2 ORDER BY entry",
        &[project.into(), owner.into()],
    )?;
    let mut secret: Option<SecretRow> = None;
    for mut row in rows {
        let entry = row.take()?;
        match &mut secret {
            Some(known) => known.entries.push(entry),
            None => {
                secret = Some(SecretRow {
                    name: name.clone(),
                    entries: vec![entry],
                    version: row.take()?,
                    updated_by: row.take()?,
                    updated_at: row.take()?,
                });
            }
        }
    }
    Ok(secret)
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
