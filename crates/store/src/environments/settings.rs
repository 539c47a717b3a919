//! What a project says of its environments.

use super::EnvironmentError;
use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::body::{FORMAT, Row, Scope, Tx, encode, first};
use crate::error::Error;
use crate::events::note;
use crate::projects;
use model::environment::settings::{Deploy, Settings};
use model::name::Name;
use model::time::Timestamp;

/// What a project says of its environments, and who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsRow {
    /// What it says.
    pub settings: Settings,
    /// How often that was changed.
    pub version: u64,
    /// Who changed it last.
    pub updated_by: String,
    /// When.
    pub updated_at: Timestamp,
}

impl Store {
    /// What a project says of its environments, where it says anything.
    pub async fn environment_settings(&self, project: &Name) -> Result<Option<SettingsRow>, Error> {
        let project = project.clone();
        let question = move |tx: &mut dyn Tx| {
            let row = first(
                tx,
                "SELECT format, body, version, updated_by, updated_at FROM environment_settings
                 WHERE project = $1",
                &[(&project).into()],
            )?;
            row.map(read).transpose()
        };
        self.runner.read(question).await
    }

    /// Which projects say something of environments, each with how often that was changed.
    pub async fn environment_settings_versions(&self) -> Result<Vec<(Name, u64)>, Error> {
        let question = |tx: &mut dyn Tx| {
            let rows = tx.query(
                "SELECT project, version FROM environment_settings ORDER BY project",
                &[],
            )?;
            let read = |mut row: Row| Ok((row.take()?, row.take()?));
            rows.into_iter().map(read).collect()
        };
        self.runner.read(question).await
    }

    /// Changes what a project says of its environments; what is under way goes on as it was begun.
    pub async fn put_environment_settings(
        &self,
        project: &Name,
        settings: Settings,
        actor: Actor,
        now: Timestamp,
    ) -> Result<u64, EnvironmentError> {
        let project = project.clone();
        self.runner
            .write(Scope::Whole, move |tx| {
                put(tx, &project, &settings, &actor, now)
            })
            .await
    }
}

fn read(mut row: Row) -> Result<SettingsRow, Error> {
    Ok(SettingsRow {
        settings: row.document()?,
        version: row.take()?,
        updated_by: row.take()?,
        updated_at: row.take()?,
    })
}

/// Whether there are environments of more than one project.
pub(super) fn are_several(tx: &mut dyn Tx) -> Result<bool, Error> {
    let projects = tx.query("SELECT project FROM environment_settings LIMIT 2", &[])?;
    Ok(projects.len() > 1)
}

/// Projects that say something of environments, and what; not those that this program cannot read.
pub(super) fn of_all(tx: &mut dyn Tx) -> Result<Vec<(Name, Settings)>, Error> {
    let sql = "SELECT project FROM environment_settings ORDER BY project";
    let mut all = Vec::new();
    for mut row in tx.query(sql, &[])? {
        let project: Name = row.take()?;
        match of_project(tx, &project) {
            Err(error) if error.is_unreadable() => {}
            read => all.extend(read?.map(|settings| (project, settings))),
        }
    }
    Ok(all)
}

/// What a project says, for a question that goes by it.
pub(super) fn of_project(tx: &mut dyn Tx, project: &Name) -> Result<Option<Settings>, Error> {
    let row = first(
        tx,
        "SELECT format, body FROM environment_settings WHERE project = $1",
        &[project.into()],
    )?;
    row.map(|mut row| row.document()).transpose()
}

fn put(
    tx: &mut dyn Tx,
    project: &Name,
    settings: &Settings,
    actor: &Actor,
    now: Timestamp,
) -> Result<u64, EnvironmentError> {
    if projects::quota(tx, project)?.is_none() {
        return Err(EnvironmentError::NoProject {
            project: project.clone(),
        });
    }
    let row = first(
        tx,
        "INSERT INTO environment_settings (project, version, updated_by, updated_at, format, body)
         VALUES ($1, 1, $2, $3, $4, $5)
         ON CONFLICT (project) DO UPDATE SET version = environment_settings.version + 1,
             updated_by = excluded.updated_by, updated_at = excluded.updated_at,
             format = excluded.format, body = excluded.body
         RETURNING version",
        &[
            project.into(),
            (&actor.name).into(),
            now.into(),
            FORMAT.into(),
            encode(settings)?,
        ],
    )?;
    let version = row.map_or(Ok(1), |mut row| row.take::<u64>())?;
    let entry = Entry {
        at: now,
        project: Some(project.clone()),
        actor: actor.clone(),
        action: "environment.settings",
        object: format!("project/{project}"),
        generations: ((version > 1).then(|| version - 1), Some(version)),
        detail: match &settings.deploy {
            Deploy::Scripts => format!("scripts in {}", settings.scripts),
            Deploy::Helm(helm) => format!("chart {}", helm.chart),
        },
    };
    audit::enter(tx, entry);
    let message = format!("{} changed what environments are made with", actor.name);
    let object = format!("project/{project}");
    note(tx, (project, now), "environment.settings", object, message);
    Ok(version)
}
