//! The lives of one name: a cluster that is on its way out may have a successor that is called as it was.

use crate::Store;
use crate::body::{Tx, first};
use crate::clusters::{COLUMNS, ClusterRow, row};
use crate::error::Error;
use model::id::ClusterId;
use model::name::Name;

impl Store {
    /// A cluster of a project by its id, also when it is gone.
    pub async fn cluster_of_id(
        &self,
        project: &Name,
        id: ClusterId,
    ) -> Result<Option<ClusterRow>, Error> {
        let project = project.clone();
        let question = move |tx: &mut dyn Tx| {
            let sql = format!("{COLUMNS} WHERE project = $1 AND id = $2");
            let found = first(tx, &sql, &[(&project).into(), id.into()])?;
            found.map(row).transpose()
        };
        self.runner.read(question).await
    }

    /// Clusters that were called so before this one and are not gone yet, oldest first.
    pub async fn earlier_lives(&self, of: &ClusterRow) -> Result<Vec<ClusterRow>, Error> {
        let (project, name, incarnation) = (of.project.clone(), of.name.clone(), of.incarnation);
        let question = move |tx: &mut dyn Tx| {
            let mut lives = leaving(tx, &project)?;
            lives.retain(|life| life.name == name && life.incarnation < incarnation);
            Ok(lives)
        };
        self.runner.read(question).await
    }
}

impl ClusterRow {
    /// What is said of a cluster that its successor does not show.
    pub fn still_leaving(&self) -> (String, String) {
        let Self {
            name, id, summary, ..
        } = self;
        (
            format!(
                "an earlier cluster {name}, {id}, is still being removed: {}",
                summary.message
            ),
            format!("`slipway why cluster {id}` says what it waits for"),
        )
    }
}

/// The clusters of a project that are on their way out; never many.
pub(crate) fn leaving(tx: &mut dyn Tx, project: &Name) -> Result<Vec<ClusterRow>, Error> {
    let sql = format!(
        "{COLUMNS} WHERE project = $1 AND tombstone = 1 AND phase <> 'gone' ORDER BY name, incarnation"
    );
    let rows = tx.query(&sql, &[project.into()])?;
    rows.into_iter().map(row).collect()
}

/// Whether a name could be the id of a cluster.
pub(crate) fn is_id(name: &Name) -> bool {
    name.as_str().parse::<ClusterId>().is_ok()
}
