//! Machines as lists show them: as they should be, and as they were last seen.

use crate::Store;
use crate::body::{Row, Tx, Value};
use crate::error::Error;
use crate::lives;
use crate::page::{Listed, Page, cursor};
use model::cluster::Machine;
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::observed::{Fact, Observation, Seen, fold};
use model::time::Timestamp;

/// Which machines a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineFilter {
    /// Only those of clusters of this name, or of the one that has it for its id.
    pub cluster: Option<Name>,
}

/// What a list shows of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineRow {
    /// As it should be.
    pub machine: Machine,
    /// What people call its cluster.
    pub cluster: Name,
    /// Which cluster that is.
    pub cluster_id: ClusterId,
    /// Whether it is to go.
    pub leaving: bool,
    /// As it was last seen.
    pub seen: Seen,
}

impl Store {
    /// Machines of a project by name, those that are gone left out.
    pub async fn machines(
        &self,
        project: &Name,
        filter: MachineFilter,
        page: Page,
    ) -> Result<Listed<MachineRow>, Error> {
        let project = project.clone();
        self.runner
            .read(move |tx| list(tx, &project, &filter, &page))
            .await
    }

    /// The machines of that name, those that are to stay before those that are to go. Of those that
    /// stay there is one, unless the store is older than the rule that says so. An id in place of the name
    /// finds the one that has it.
    pub async fn machines_named(
        &self,
        project: &Name,
        name: &Name,
    ) -> Result<Vec<MachineRow>, Error> {
        let (project, name) = (project.clone(), name.clone());
        let question = move |tx: &mut dyn Tx| {
            let ask = |what: &str| {
                format!(
                    "{COLUMNS} WHERE m.project = $1 AND {what} = $2 {STILL_THERE} ORDER BY m.leaving, m.id"
                )
            };
            let mut rows = tx.query(&ask("m.name"), &[(&project).into(), (&name).into()])?;
            if let (true, Ok(id)) = (rows.is_empty(), name.as_str().parse::<MachineId>()) {
                rows = tx.query(&ask("m.id"), &[(&project).into(), id.into()])?;
            }
            let read = |row| machine(row)?.1;
            rows.into_iter().map(read).collect()
        };
        self.runner.read(question).await
    }
}

const COLUMNS: &str = "SELECT m.name, m.id, m.cluster, m.cluster_name, m.leaving, m.format, m.body,
        p.at, p.format, p.fact, k.at, k.format, k.fact, h.at, h.format, h.fact
    FROM machines m
    LEFT JOIN observations p ON p.cluster = m.cluster AND p.object = m.id AND p.source = 'provider'
    LEFT JOIN observations k ON k.cluster = m.cluster AND k.object = m.id AND k.source = 'kubernetes'
    LEFT JOIN observations h ON h.cluster = m.cluster AND h.object = m.id AND h.source = 'host'";

/// A machine that should go and was seen to be gone is history, though its cluster's
/// newest generation still names it.
const STILL_THERE: &str = "AND NOT (m.leaving = 1 AND m.absent = 1)";

/// Where a machine stands in the list, by name and id.
type Place = (Name, MachineId);

/// One row: its place, and the machine or why that cannot be read.
fn machine(mut found: Row) -> Result<(Place, Result<MachineRow, Error>), Error> {
    let place = (found.take()?, found.take()?);
    match row(found) {
        Err(error) if !error.is_unreadable() => Err(error),
        read => Ok((place, read)),
    }
}

fn row(mut row: Row) -> Result<MachineRow, Error> {
    let cluster_id = row.take()?;
    let (cluster, leaving) = (row.take()?, row.take()?);
    let machine: Machine = row.document()?;
    let mut observations = Vec::new();
    for _ in 0..3 {
        let at = row.take::<Option<Timestamp>>()?;
        let fact = row.maybe_document::<Fact>()?;
        observations.extend(at.zip(fact).map(|(at, fact)| Observation {
            cluster: cluster_id,
            fact,
            at,
        }));
    }
    let seen = fold(observations)
        .machines
        .remove(&machine.id)
        .unwrap_or_default();
    Ok(MachineRow {
        machine,
        cluster,
        cluster_id,
        leaving,
        seen,
    })
}

fn list(
    tx: &mut dyn Tx,
    project: &Name,
    filter: &MachineFilter,
    page: &Page,
) -> Result<Listed<MachineRow>, Error> {
    let [name, id] = page.after("machines", ["", ""])?;
    let mut params: Vec<Value> = vec![project.into(), name.into(), id.into(), page.rows().into()];
    let mut sql =
        format!("{COLUMNS} WHERE m.project = $1 AND (m.name, m.id) > ($2, $3) {STILL_THERE}");
    if let Some(cluster) = &filter.cluster {
        params.push(cluster.into());
        sql.push_str(if lives::is_id(cluster) {
            " AND (m.cluster_name = $5 OR m.cluster = $5)"
        } else {
            " AND m.cluster_name = $5"
        });
    }
    sql.push_str(" ORDER BY m.name, m.id LIMIT $4");
    let rows: Vec<_> = tx
        .query(&sql, &params)?
        .into_iter()
        .map(machine)
        .collect::<Result<_, _>>()?;
    let Listed { items, next } = page.cut(rows, |((name, id), _)| cursor("machines", &[name, id]));
    // One that cannot be read keeps nobody from the others; its cluster says so.
    let items = items.into_iter().filter_map(|(_, row)| row.ok());
    Ok(Listed {
        items: items.collect(),
        next,
    })
}
