//! A copy of what is stored about one manifest, to rehearse on.
//!
//! Of what belongs to others it holds only what can be in the way: the names of their
//! clusters and their claims.

use crate::Store;
use crate::body::{Scope, Tx, Value};
use crate::error::Error;
use model::name::Name;

/// What is copied: each table, and which of its rows. `$1` is the project, `$2` the
/// manifest. Of the past only what the future depends on: current generations, open work.
const TABLES: &[(&str, &str)] = &[
    ("projects", "name = $1"),
    // Which secrets there are; what they are sealed with stays behind.
    ("sealed", "project = $1 AND owner LIKE 'secret/%'"),
    ("manifests", "project = $1 AND name = $2"),
    (
        "manifest_generations",
        "(project, name, generation) IN (SELECT project, name, generation FROM manifests WHERE project = $1 AND name = $2)",
    ),
    ("clusters", "project = $1"),
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
    ("claims", "1 = 1"),
    ("ledger", "project = $1"),
    (
        "observations",
        "cluster IN (SELECT id FROM clusters WHERE project = $1 AND manifest = $2)",
    ),
];

impl Store {
    /// A store in memory with all that is known of one manifest and its clusters, and with
    /// what others hold: names of clusters and claims. Nobody looks after others' clusters
    /// in it, so what they hold stays theirs.
    ///
    /// Both have the same tables with the same columns in the same order, because both
    /// were made by the same migrations.
    pub async fn twin(&self, project: &Name, manifest: &Name) -> Result<Self, Error> {
        let manifest: Value = manifest.into();
        let params: [Value; 2] = [project.into(), manifest.clone()];
        let copied = self.runner.read(move |tx| read(tx, &params)).await?;
        let twin = Self::in_memory()?;
        let question = move |tx: &mut dyn Tx| {
            tx.execute("DELETE FROM projects", &[])?;
            write(tx, &copied)?;
            set_aside_others(tx, manifest.clone())
        };
        twin.runner.write(Scope::Whole, question).await?;
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

fn write(tx: &mut dyn Tx, copied: &[(&'static str, Rows)]) -> Result<(), Error> {
    for (table, rows) in copied {
        for row in rows {
            let places: Vec<_> = (1..=row.len()).map(|number| format!("${number}")).collect();
            tx.execute(
                &format!("INSERT INTO {table} VALUES ({})", places.join(", ")),
                row,
            )?;
        }
    }
    Ok(())
}

/// Lets nobody list, plan or probe the clusters of other manifests.
///
/// A name is free when its cluster has a tombstone, so theirs stay taken.
fn set_aside_others(tx: &mut dyn Tx, manifest: Value) -> Result<(), Error> {
    tx.execute(
        "UPDATE clusters SET phase = 'gone', unplanned = 0, held = '[]' WHERE manifest <> $1",
        &[manifest],
    )?;
    Ok(())
}
