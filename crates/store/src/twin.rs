//! A copy of what is stored about one manifest, to rehearse on.

use crate::Store;
use crate::body::{Tx, Value};
use crate::error::Error;
use model::name::Name;

/// What is copied: each table, and which of its rows. `$1` is the project, `$2` the
/// manifest. Of the past only what the future depends on: current generations, open work.
const TABLES: &[(&str, &str)] = &[
    ("manifests", "project = $1 AND name = $2"),
    (
        "manifest_generations",
        "(project, name, generation) IN (SELECT project, name, generation FROM manifests WHERE project = $1 AND name = $2)",
    ),
    ("clusters", "project = $1 AND manifest = $2"),
    (
        "desired",
        "(cluster, generation) IN (SELECT id, generation FROM clusters WHERE project = $1 AND manifest = $2)",
    ),
    (
        "machines",
        "cluster IN (SELECT id FROM clusters WHERE project = $1 AND manifest = $2)",
    ),
    (
        "intents",
        "open = 1 AND cluster IN (SELECT id FROM clusters WHERE project = $1 AND manifest = $2)",
    ),
    (
        "tasks",
        "cluster IN (SELECT id FROM clusters WHERE project = $1 AND manifest = $2)
         AND state IN ('waiting', 'running', 'stuck')",
    ),
    (
        "lanes",
        "cluster IN (SELECT id FROM clusters WHERE project = $1 AND manifest = $2)",
    ),
    (
        "claims",
        "cluster IN (SELECT id FROM clusters WHERE project = $1 AND manifest = $2)",
    ),
    (
        "ledger",
        "cluster IN (SELECT id FROM clusters WHERE project = $1 AND manifest = $2)",
    ),
    (
        "observations",
        "cluster IN (SELECT id FROM clusters WHERE project = $1 AND manifest = $2)",
    ),
];

impl Store {
    /// A store in memory with all that is known of one manifest and its clusters.
    ///
    /// Both have the same tables with the same columns in the same order, because both
    /// were made by the same migrations.
    pub async fn twin(&self, project: &Name, manifest: &Name) -> Result<Self, Error> {
        let params: [Value; 2] = [project.into(), manifest.into()];
        let copied = self.runner.read(move |tx| read(tx, &params)).await?;
        let twin = Self::in_memory()?;
        twin.runner.write(move |tx| write(tx, copied)).await?;
        Ok(twin)
    }
}

type Rows = Vec<Vec<Value>>;

fn read(tx: &mut dyn Tx, params: &[Value]) -> Result<Vec<(&'static str, Rows)>, Error> {
    let mut copied = Vec::with_capacity(TABLES.len());
    for (table, rows) in TABLES {
        let rows = tx.query(&format!("SELECT * FROM {table} WHERE {rows}"), params)?;
        copied.push((
            *table,
            rows.into_iter().map(crate::body::Row::rest).collect(),
        ));
    }
    Ok(copied)
}

fn write(tx: &mut dyn Tx, copied: Vec<(&'static str, Rows)>) -> Result<(), Error> {
    for (table, rows) in copied {
        for row in rows {
            let places: Vec<_> = (1..=row.len()).map(|number| format!("${number}")).collect();
            tx.execute(
                &format!("INSERT INTO {table} VALUES ({})", places.join(", ")),
                &row,
            )?;
        }
    }
    Ok(())
}
