//! Who owns things, and how much of each kind they may have.

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::body::{Row, Scope, Tx, first};
use crate::clusters;
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use model::name::Name;
use model::time::Timestamp;
use plan::Phase;
use std::collections::BTreeMap;

/// Who waits for a unit of quota, and what they are told when there may be one.
pub(crate) const QUOTA_CHANGED: (&str, &str) = ("quota", "the quota that it waits for has changed");

/// How much a project may have; what is absent has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// Clusters.
    pub clusters: Option<u32>,
    /// Machines, of all clusters together.
    pub machines: Option<u32>,
    /// Environments.
    pub environments: Option<u32>,
}

/// A project, its limits, and how much of them is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRow {
    /// What people call it.
    pub name: Name,
    /// How much it may have.
    pub quota: Quota,
    /// Clusters it has.
    pub clusters: u32,
    /// Machines it holds a unit of its quota for.
    pub machines: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Why a project stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// There is none of that name.
    #[error("there is no project {project}")]
    NotFound {
        /// What was asked for.
        project: Name,
    },
    /// It still has something.
    #[error("project {project} still has {what}")]
    InUse {
        /// Which.
        project: Name,
        /// What it has.
        what: String,
    },
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Projects by name; of those that a token may see, or all.
    pub async fn projects(
        &self,
        only: Option<&Name>,
        page: Page,
    ) -> Result<Listed<ProjectRow>, Error> {
        let only = only.cloned();
        self.runner
            .read(move |tx| list(tx, only.as_ref(), &page))
            .await
    }

    /// One project.
    pub async fn project(&self, name: &Name) -> Result<Option<ProjectRow>, Error> {
        let name = name.clone();
        let question = move |tx: &mut dyn Tx| {
            let row = first(tx, &format!("{COLUMNS} WHERE name = $1"), &[(&name).into()])?;
            row.map(read).transpose()
        };
        self.runner.read(question).await
    }

    /// How the clusters of a project stand; those that are gone are not counted.
    pub async fn phases(&self, name: &Name) -> Result<BTreeMap<Phase, u64>, Error> {
        let name = name.clone();
        let question = move |tx: &mut dyn Tx| {
            let rows = tx.query(
                "SELECT phase, COUNT(*) FROM clusters WHERE project = $1 AND phase <> 'gone' GROUP BY phase",
                &[(&name).into()],
            )?;
            let count = |mut row: Row| Ok((row.take()?, row.take()?));
            rows.into_iter().map(count).collect()
        };
        self.runner.read(question).await
    }

    /// Makes a project, or changes its limits; answers whether it is new.
    ///
    /// Limits below what there is take nothing away: they refuse what would come.
    pub async fn put_project(
        &self,
        name: &Name,
        quota: Quota,
        actor: Actor,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let name = name.clone();
        self.runner
            .write(Scope::Whole, move |tx| put(tx, &name, quota, &actor, now))
            .await
    }

    /// Removes a project that has nothing left.
    pub async fn delete_project(
        &self,
        name: &Name,
        actor: Actor,
        now: Timestamp,
    ) -> Result<(), ProjectError> {
        let name = name.clone();
        self.runner
            .write(Scope::Whole, move |tx| delete(tx, &name, &actor, now))
            .await
    }
}

const COLUMNS: &str = "SELECT name, clusters_max, machines_max, environments_max, created_at, updated_at,
     (SELECT COUNT(*) FROM clusters WHERE clusters.project = projects.name AND phase <> 'gone'),
     (SELECT COUNT(*) FROM machines WHERE machines.project = projects.name AND NOT (leaving = 1 AND absent = 1))
     FROM projects";

fn read(mut row: Row) -> Result<ProjectRow, Error> {
    let name = row.take()?;
    let quota = Quota {
        clusters: row.take()?,
        machines: row.take()?,
        environments: row.take()?,
    };
    let (created_at, updated_at) = (row.take()?, row.take()?);
    Ok(ProjectRow {
        name,
        quota,
        clusters: row.take()?,
        machines: row.take()?,
        created_at,
        updated_at,
    })
}

fn list(tx: &mut dyn Tx, only: Option<&Name>, page: &Page) -> Result<Listed<ProjectRow>, Error> {
    let [after] = page.after("projects", [""])?;
    let rows = match only {
        Some(only) => tx.query(
            &format!("{COLUMNS} WHERE name = $1 AND name > $2"),
            &[only.into(), after.into()],
        )?,
        None => tx.query(
            &format!("{COLUMNS} WHERE name > $1 ORDER BY name LIMIT $2"),
            &[after.into(), page.rows().into()],
        )?,
    };
    let rows = rows.into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(page.cut(rows, |row| cursor("projects", &[&row.name])))
}

/// The limits of a project; none when there is no such project.
pub(crate) fn quota(tx: &mut dyn Tx, project: &Name) -> Result<Option<Quota>, Error> {
    let row = first(
        tx,
        "SELECT clusters_max, machines_max, environments_max FROM projects WHERE name = $1",
        &[project.into()],
    )?;
    let read = |mut row: Row| {
        Ok(Quota {
            clusters: row.take()?,
            machines: row.take()?,
            environments: row.take()?,
        })
    };
    row.map(read).transpose()
}

fn put(
    tx: &mut dyn Tx,
    name: &Name,
    quota: Quota,
    actor: &Actor,
    now: Timestamp,
) -> Result<bool, Error> {
    let known = self::quota(tx, name)?;
    tx.execute(
        "INSERT INTO projects (name, clusters_max, machines_max, environments_max, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $5)
         ON CONFLICT (name) DO UPDATE SET clusters_max = excluded.clusters_max,
             machines_max = excluded.machines_max, environments_max = excluded.environments_max,
             updated_at = excluded.updated_at",
        &[
            name.into(),
            quota.clusters.into(),
            quota.machines.into(),
            quota.environments.into(),
            now.into(),
        ],
    )?;
    // Clusters that wait for a unit may get one now.
    clusters::unplan_waiting_for(tx, name, None, &[QUOTA_CHANGED], now)?;
    let limit = |limit: Option<u32>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
    audit::enter(
        tx,
        Entry {
            at: now,
            project: Some(name.clone()),
            actor: actor.clone(),
            action: "project.put",
            object: format!("project/{name}"),
            generations: (None, None),
            detail: format!(
                "clusters {}, machines {}, environments {}",
                limit(quota.clusters),
                limit(quota.machines),
                limit(quota.environments)
            ),
        },
    );
    Ok(known.is_none())
}

/// What keeps a project from being removed, in the order in which people think of it.
const KEEPS: &[(&str, &str)] = &[
    (
        "manifest",
        "SELECT COUNT(*) FROM manifests WHERE project = $1 AND deleted = 0",
    ),
    (
        "cluster",
        "SELECT COUNT(*) FROM clusters WHERE project = $1 AND phase <> 'gone'",
    ),
    (
        "environment",
        "SELECT COUNT(*) FROM environments WHERE project = $1 AND gone = 0",
    ),
    (
        "sealed value",
        "SELECT COUNT(*) FROM sealed WHERE project = $1",
    ),
    (
        "token",
        "SELECT COUNT(*) FROM tokens WHERE project = $1 AND revoked_at IS NULL",
    ),
];

fn delete(tx: &mut dyn Tx, name: &Name, actor: &Actor, now: Timestamp) -> Result<(), ProjectError> {
    if quota(tx, name)?.is_none() {
        return Err(ProjectError::NotFound {
            project: name.clone(),
        });
    }
    if *name == Name::default_project() {
        return Err(ProjectError::InUse {
            project: name.clone(),
            what: "to be there: it is where everything goes that names no project".to_owned(),
        });
    }
    for (what, sql) in KEEPS {
        let count = first(tx, sql, &[name.into()])?.map_or(Ok(0), |mut row| row.take::<u64>())?;
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            return Err(ProjectError::InUse {
                project: name.clone(),
                what: format!("{count} {what}{plural}"),
            });
        }
    }
    tx.execute("DELETE FROM projects WHERE name = $1", &[name.into()])?;
    for sql in [
        "DELETE FROM environment_settings WHERE project = $1",
        "DELETE FROM git_requests WHERE project = $1",
        "DELETE FROM git_deliveries WHERE project = $1",
        "DELETE FROM environment_inits WHERE project = $1",
        "DELETE FROM environment_deliveries WHERE project = $1",
    ] {
        tx.execute(sql, &[name.into()])?;
    }
    audit::enter(
        tx,
        Entry {
            at: now,
            project: Some(name.clone()),
            actor: actor.clone(),
            action: "project.delete",
            object: format!("project/{name}"),
            generations: (None, None),
            detail: String::new(),
        },
    );
    Ok(())
}
