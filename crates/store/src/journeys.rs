//! Journeys that were shown to somebody, so that they can be agreed to later.

use crate::Store;
use crate::body::{Scope, first};
use crate::error::Error;
use model::id::JourneyId;
use model::name::Name;
use model::time::Timestamp;

impl Store {
    /// Keeps a journey for a day; the same id again replaces it.
    pub async fn save_journey(
        &self,
        id: JourneyId,
        project: &Name,
        body: String,
        now: Timestamp,
    ) -> Result<(), Error> {
        let project = project.clone();
        let question = move |tx: &mut dyn crate::body::Tx| {
            tx.execute(
                "INSERT INTO journeys (project, id, at, body) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (project, id) DO UPDATE SET at = excluded.at, body = excluded.body",
                &[(&project).into(), id.into(), now.into(), (&body).into()],
            )?;
            Ok(())
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// A journey that was shown within the last day.
    pub async fn journey(&self, project: &Name, id: JourneyId) -> Result<Option<String>, Error> {
        let project = project.clone();
        let question = move |tx: &mut dyn crate::body::Tx| {
            let row = first(
                tx,
                "SELECT body FROM journeys WHERE project = $1 AND id = $2",
                &[(&project).into(), id.into()],
            )?;
            row.map(|mut row| row.take()).transpose()
        };
        self.runner.read(question).await
    }
}
