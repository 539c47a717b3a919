//! Named secrets: what people set and remove, entry by entry.

use super::{SealError, SealedRow, check_keys, store};
use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::body::{Scope, Tx};
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use crate::{clusters, projects};
use model::name::Name;
use model::sealed::{Owner, Place, Sealed};
use model::secret::EntryName;
use model::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Entries of one secret: more than anything needs that is used together.
pub const SECRET_ENTRIES_MAX: usize = 100;

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

impl Store {
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
    let kinds = [
        ("secret", "the secret that it waits for has changed"),
        (
            "stuck",
            "a secret was set; what is stuck may have waited for it",
        ),
    ];
    clusters::unplan_waiting_for(tx, project, None, &kinds, now)?;
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
