//! What names of machines begin with, listed by manifest: two manifests of a project never share one.
//!
//! Whoever declares more is judged by an index, whatever the project has besides. Manifests from before
//! there was the list are read until the next change of the project lists them, too.

use crate::body::{Tx, Value, insert};
use crate::error::Error;
use crate::submit::Clash;
use model::manifest::Manifest;
use model::name::Name;
use std::collections::BTreeMap;

/// Stems of a manifest, each with whose they are and the pool.
type Stems = BTreeMap<String, (Name, Name)>;

fn of(manifest: &Manifest) -> Stems {
    let stems = manifest.stems().into_iter();
    let stems = stems.map(|(stem, (owner, pool))| (stem, (owner.clone(), pool.clone())));
    stems.collect()
}

/// What would call machines as those of another manifest. What it declares already stays: it may be older
/// than this rule.
pub(crate) fn taken(
    tx: &mut dyn Tx,
    project: &Name,
    manifest: &Manifest,
) -> Result<Vec<Clash>, Error> {
    let unlisted = unlisted(tx, project)?;
    let mut wanted = of(manifest);
    for (stem, _) in declared(tx, project, &manifest.name)? {
        wanted.remove(&stem);
    }
    for before in unlisted.iter().filter(|of| of.name == manifest.name) {
        let declared = before.stems();
        wanted.retain(|stem, _| !declared.contains_key(stem));
    }
    let mut clashes = Vec::new();
    for other in unlisted.iter().filter(|of| of.name != manifest.name) {
        for (stem, (owner, pool)) in of(other) {
            if let Some(wants) = wanted.get(&stem) {
                clashes.push(clash(wants, (owner, pool), other.name.clone()));
            }
        }
    }
    let sets: Vec<Vec<Value>> = wanted
        .keys()
        .map(|stem| vec![project.into(), stem.into(), (&manifest.name).into()])
        .collect();
    let found = tx.queries(
        "SELECT manifest, owner, pool FROM stems WHERE project = $1 AND stem = $2 AND manifest <> $3
         ORDER BY manifest LIMIT 1",
        &sets,
    )?;
    for (wants, rows) in wanted.values().zip(found) {
        if let Some(mut row) = rows.into_iter().next() {
            let other = row.take()?;
            clashes.push(clash(wants, (row.take()?, row.take()?), other));
        }
    }
    Ok(clashes)
}

fn clash((owner, pool): &(Name, Name), other: (Name, Name), manifest: Name) -> Clash {
    Clash::Machines {
        owner: owner.clone(),
        pool: pool.clone(),
        other: other.0,
        other_pool: other.1,
        manifest,
    }
}

/// What a manifest is listed with.
fn declared(tx: &mut dyn Tx, project: &Name, manifest: &Name) -> Result<Stems, Error> {
    let rows = tx.query(
        "SELECT stem, owner, pool FROM stems WHERE project = $1 AND manifest = $2",
        &[project.into(), manifest.into()],
    )?;
    rows.into_iter()
        .map(|mut row| Ok((row.take()?, (row.take()?, row.take()?))))
        .collect()
}

/// The living manifests of a project that are not listed yet. One that this program cannot read is left
/// out: it has nothing to say to what others do.
fn unlisted(tx: &mut dyn Tx, project: &Name) -> Result<Vec<Manifest>, Error> {
    let rows = tx.query(
        "SELECT g.format, g.body FROM manifests m
         JOIN manifest_generations g
           ON g.project = m.project AND g.name = m.name AND g.generation = m.generation
         WHERE m.project = $1 AND m.listed = 0 AND m.deleted = 0 ORDER BY m.name",
        &[project.into()],
    )?;
    let read = rows.into_iter().filter_map(|mut row| row.document().ok());
    Ok(read.collect())
}

/// Lists a manifest as it is now, and all of the project that are not listed yet.
pub(crate) fn list(tx: &mut dyn Tx, project: &Name, manifest: &Manifest) -> Result<(), Error> {
    for older in unlisted(tx, project)? {
        write(tx, project, &older)?;
    }
    write(tx, project, manifest)
}

fn write(tx: &mut dyn Tx, project: &Name, manifest: &Manifest) -> Result<(), Error> {
    let (old, new) = (declared(tx, project, &manifest.name)?, of(manifest));
    if old != new {
        forget(tx, project, &manifest.name)?;
        let row = |(stem, (owner, pool)): (&String, &(Name, Name))| {
            let name = &manifest.name;
            vec![
                project.into(),
                stem.into(),
                name.into(),
                owner.into(),
                pool.into(),
            ]
        };
        let rows: Vec<_> = new.iter().map(row).collect();
        insert(
            tx,
            "stems (project, stem, manifest, owner, pool)",
            &rows,
            "",
        )?;
    }
    tx.execute(
        "UPDATE manifests SET listed = 1 WHERE project = $1 AND name = $2 AND listed = 0",
        &[project.into(), (&manifest.name).into()],
    )?;
    Ok(())
}

/// Takes a manifest off the list.
pub(crate) fn forget(tx: &mut dyn Tx, project: &Name, manifest: &Name) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM stems WHERE project = $1 AND manifest = $2",
        &[project.into(), manifest.into()],
    )?;
    Ok(())
}
