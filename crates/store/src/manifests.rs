//! Manifests as they were written, with all their generations.

use crate::Store;
use crate::body::{Row, Tx, first};
use crate::clusters;
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use model::cluster::Generation;
use model::manifest::Manifest;
use model::name::Name;
use model::provider::{Cloud, Provider};
use model::time::Timestamp;
use plan::Summary;

/// One generation of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestRow {
    /// Who owns it.
    pub project: Name,
    /// What people call it.
    pub name: Name,
    /// Which generation.
    pub generation: Generation,
    /// Who submitted it.
    pub author: String,
    /// When.
    pub created_at: Timestamp,
    /// Whether this generation says that all of it is to be removed.
    pub deleted: bool,
    /// The text as it was written; lists leave it empty.
    pub text: String,
    /// Its clusters that are not gone, by name, as they stand now.
    pub clusters: Vec<(Name, Summary)>,
}

/// One generation of a document, without its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationRow {
    /// Which generation.
    pub generation: Generation,
    /// Who made it.
    pub author: String,
    /// When.
    pub at: Timestamp,
    /// Whether it says that all is to be removed.
    pub deleted: bool,
    /// Which verb, wish or sight it comes of; empty where it is older than that is kept.
    pub because: String,
    /// What it changed, in short; empty where it is older than that is kept.
    pub brief: String,
}

impl Store {
    /// Manifests of a project by name; one that was deleted until its clusters are gone.
    pub async fn manifests(
        &self,
        project: &Name,
        page: Page,
    ) -> Result<Listed<ManifestRow>, Error> {
        let project = project.clone();
        self.runner.read(move |tx| list(tx, &project, &page)).await
    }

    /// The current generation of a manifest, also when that says that it is deleted.
    pub async fn manifest(
        &self,
        project: &Name,
        name: &Name,
    ) -> Result<Option<ManifestRow>, Error> {
        let (project, name) = (project.clone(), name.clone());
        let question = move |tx: &mut dyn Tx| {
            let Some(head) = head(tx, &project, &name)? else {
                return Ok(None);
            };
            at(tx, &project, &name, head.generation)
        };
        self.runner.read(question).await
    }

    /// The generations of a manifest, newest first.
    pub async fn manifest_generations(
        &self,
        project: &Name,
        name: &Name,
        page: Page,
    ) -> Result<Listed<GenerationRow>, Error> {
        let (project, name) = (project.clone(), name.clone());
        self.runner
            .read(move |tx| generations(tx, &project, &name, &page))
            .await
    }

    /// One generation of a manifest; old ones stay readable.
    pub async fn manifest_at(
        &self,
        project: &Name,
        name: &Name,
        generation: Generation,
    ) -> Result<Option<ManifestRow>, Error> {
        let (project, name) = (project.clone(), name.clone());
        self.runner
            .read(move |tx| at(tx, &project, &name, generation))
            .await
    }
}

impl Store {
    /// The manifests of a project that open accounts of clouds with a secret, each with whose.
    pub async fn accounts(
        &self,
        project: &Name,
        secret: &Name,
    ) -> Result<Vec<(Name, Cloud)>, Error> {
        let (project, secret) = (project.clone(), secret.clone());
        self.runner
            .read(move |tx| accounts(tx, &project, &secret))
            .await
    }
}

/// The manifests of a project that are not deleted, by name.
///
/// One that this program cannot read is left out: it has nothing to say to what others do.
pub(crate) fn living(tx: &mut dyn Tx, project: &Name) -> Result<Vec<Manifest>, Error> {
    let rows = tx.query(
        "SELECT g.format, g.body FROM manifests m
         JOIN manifest_generations g
           ON g.project = m.project AND g.name = m.name AND g.generation = m.generation
         WHERE m.project = $1 AND m.deleted = 0 ORDER BY m.name",
        &[project.into()],
    )?;
    let read = rows.into_iter().filter_map(|mut row| row.document().ok());
    Ok(read.collect())
}

fn accounts(tx: &mut dyn Tx, project: &Name, secret: &Name) -> Result<Vec<(Name, Cloud)>, Error> {
    let mut found = Vec::new();
    for manifest in living(tx, project)? {
        let opened = manifest.providers.values().filter_map(|account| {
            let named = account.secret.as_ref()?;
            match account.via {
                Provider::Cloud(cloud) if named.secret.name == *secret => Some(cloud),
                Provider::Cloud(_) | Provider::Simulated | Provider::Sandbox => None,
            }
        });
        found.extend(opened.map(|cloud| (manifest.name.clone(), cloud)));
    }
    found.dedup();
    Ok(found)
}

/// The current generation of a manifest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) generation: Generation,
    pub(crate) deleted: bool,
}

/// Which generation of a manifest is current.
pub(crate) fn head(tx: &mut dyn Tx, project: &Name, name: &Name) -> Result<Option<Head>, Error> {
    let row = first(
        tx,
        "SELECT generation, deleted FROM manifests WHERE project = $1 AND name = $2",
        &[project.into(), name.into()],
    )?;
    row.map(|mut row| {
        Ok(Head {
            generation: row.take()?,
            deleted: row.take()?,
        })
    })
    .transpose()
}

/// Whether a generation has this text, and a document that can be read: who applies it again replaces one
/// that cannot.
pub(crate) fn is(
    tx: &mut dyn Tx,
    project: &Name,
    name: &Name,
    (generation, text): (Generation, &str),
) -> Result<bool, Error> {
    let row = first(
        tx,
        "SELECT text, format, body FROM manifest_generations WHERE project = $1 AND name = $2 AND generation = $3",
        &[project.into(), name.into(), generation.into()],
    )?;
    let mut row = row.ok_or_else(missing)?;
    Ok(row.take::<String>()? == text && row.readable::<Manifest>()?.is_some())
}

/// The document of one generation, as admitted.
pub(crate) fn document(
    tx: &mut dyn Tx,
    project: &Name,
    name: &Name,
    generation: Generation,
) -> Result<Manifest, Error> {
    let row = first(
        tx,
        "SELECT format, body FROM manifest_generations WHERE project = $1 AND name = $2 AND generation = $3",
        &[project.into(), name.into(), generation.into()],
    )?;
    row.map_or_else(|| Err(missing()), |mut row| row.document())
}

fn missing() -> Error {
    Error::odd("a manifest", "a generation that should be there is not")
}

fn at(
    tx: &mut dyn Tx,
    project: &Name,
    name: &Name,
    generation: Generation,
) -> Result<Option<ManifestRow>, Error> {
    let found = first(
        tx,
        "SELECT project, name, generation, author, created_at, deleted, text FROM manifest_generations
         WHERE project = $1 AND name = $2 AND generation = $3",
        &[project.into(), name.into(), generation.into()],
    )?;
    found.map(|found| row(tx, found)).transpose()
}

fn row(tx: &mut dyn Tx, mut row: Row) -> Result<ManifestRow, Error> {
    let (project, name) = (row.take()?, row.take()?);
    let clusters = summaries(tx, &project, &name)?;
    Ok(ManifestRow {
        project,
        name,
        generation: row.take()?,
        author: row.take()?,
        created_at: row.take()?,
        deleted: row.take()?,
        text: row.take()?,
        clusters,
    })
}

fn summaries(
    tx: &mut dyn Tx,
    project: &Name,
    manifest: &Name,
) -> Result<Vec<(Name, Summary)>, Error> {
    let rows = tx.query(
        "SELECT name, format, summary FROM clusters
         WHERE project = $1 AND manifest = $2 AND phase <> 'gone' ORDER BY name, incarnation",
        &[project.into(), manifest.into()],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok((
                row.take()?,
                row.readable()?.unwrap_or_else(clusters::unread),
            ))
        })
        .collect()
}

fn list(tx: &mut dyn Tx, project: &Name, page: &Page) -> Result<Listed<ManifestRow>, Error> {
    let [after] = page.after("manifests", [""])?;
    // Texts are left out: a page of the largest ones would be hundreds of megabytes.
    let rows = tx.query(
        "SELECT m.project, m.name, g.generation, g.author, g.created_at, g.deleted, ''
         FROM manifests m
         JOIN manifest_generations g ON g.project = m.project AND g.name = m.name AND g.generation = m.generation
         WHERE m.project = $1 AND m.name > $2
           AND (m.deleted = 0 OR EXISTS (SELECT 1 FROM clusters c
                WHERE c.project = m.project AND c.manifest = m.name AND c.phase <> 'gone'))
         ORDER BY m.name LIMIT $3",
        &[project.into(), after.into(), page.rows().into()],
    )?;
    let mut manifests = Vec::with_capacity(rows.len());
    for found in rows {
        manifests.push(row(tx, found)?);
    }
    Ok(page.cut(manifests, |last| cursor("manifests", &[&last.name])))
}

fn generations(
    tx: &mut dyn Tx,
    project: &Name,
    name: &Name,
    page: &Page,
) -> Result<Listed<GenerationRow>, Error> {
    let before = page.after_number("generations", u64::MAX)?;
    let rows = tx.query(
        "SELECT generation, author, created_at, deleted, because, brief FROM manifest_generations
         WHERE project = $1 AND name = $2 AND generation < $3 ORDER BY generation DESC LIMIT $4",
        &[
            project.into(),
            name.into(),
            before.into(),
            page.rows().into(),
        ],
    )?;
    let rows: Vec<_> = rows
        .into_iter()
        .map(GenerationRow::read)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(rows, |last| cursor("generations", &[&last.generation])))
}
