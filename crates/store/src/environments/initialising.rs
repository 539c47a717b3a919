//! What came of the script that is run before all others.

use crate::Store;
use crate::audit;
use crate::body::{Row, Scope, Tx};
use crate::error::Error;
use crate::events::note;
use model::name::Name;
use model::time::Timestamp;

/// What came of the script that is run before all others, at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitRow {
    /// Where.
    pub place: String,
    /// When.
    pub at: Timestamp,
    /// What went wrong; none where it went well.
    pub error: Option<String>,
}

impl Store {
    /// Records what came of the script that is run before all others.
    pub async fn record_init(
        &self,
        project: &Name,
        place: &str,
        error: Option<String>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let (project, place) = (project.clone(), place.to_owned());
        let question = move |tx: &mut dyn Tx| {
            let error = error.clone().map(audit::kept);
            tx.execute(
                "INSERT INTO environment_inits (project, place, at, error) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (project, place) DO UPDATE SET at = excluded.at, error = excluded.error",
                &[
                    (&project).into(),
                    (&place).into(),
                    now.into(),
                    error.clone().into(),
                ],
            )?;
            if let Some(error) = error {
                let message = audit::kept(format!("the script init failed: {error}"));
                let object = format!("project/{project}");
                note(tx, (&project, now), "environment.init", object, message);
            }
            Ok(())
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// What came of that script of a project, by place.
    pub async fn inits(&self, project: &Name) -> Result<Vec<InitRow>, Error> {
        let project = project.clone();
        let question = move |tx: &mut dyn Tx| {
            let rows = tx.query(
                "SELECT place, at, error FROM environment_inits WHERE project = $1 ORDER BY place",
                &[(&project).into()],
            )?;
            let read = |mut row: Row| {
                Ok(InitRow {
                    place: row.take()?,
                    at: row.take()?,
                    error: row.take()?,
                })
            };
            rows.into_iter().map(read).collect()
        };
        self.runner.read(question).await
    }
}
