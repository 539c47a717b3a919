//! Desired state by generation, and the machines it names as rows that lists can page.
//!
//! **Invariant:** `machines` holds what the newest generation of every cluster that is
//! not gone names. It is changed here, row by row as the document changes, and emptied
//! when the cluster is gone.

use crate::Store;
use crate::body::{FORMAT, Row, Tx, encode, first};
use crate::error::Error;
use crate::events::{count_of, note};
use crate::manifests::GenerationRow;
use crate::page::{Listed, Page, cursor};
use crate::{claims, sealed};
use model::cluster::{Desired, Generation, Machine, Role};
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::sealed::Owner;
use model::time::Timestamp;
use plan::{Phase, Summary};
use std::collections::BTreeMap;

/// Who changes a cluster when nobody asked for it.
pub(crate) const BY_ITSELF: &str = "slipway";

/// Why there is another generation.
#[derive(Clone, Copy)]
pub(crate) struct Cause<'a> {
    /// Who made it so.
    pub(crate) author: &'a str,
    /// Which verb, wish or sight it comes of, as a clause.
    pub(crate) because: &'a str,
}

impl<'a> Cause<'a> {
    /// What nobody asked for, because of what was seen.
    pub(crate) const fn by_itself(because: &'a str) -> Self {
        Self {
            author: BY_ITSELF,
            because,
        }
    }
}

impl Store {
    /// The generations of a cluster's desired state, newest first.
    pub async fn desired_generations(
        &self,
        cluster: ClusterId,
        page: Page,
    ) -> Result<Listed<GenerationRow>, Error> {
        self.runner
            .read(move |tx| generations(tx, cluster, &page))
            .await
    }

    /// A cluster as it should have been in one generation; old ones stay readable.
    pub async fn desired_at(
        &self,
        cluster: ClusterId,
        generation: Generation,
    ) -> Result<Option<Desired>, Error> {
        self.runner
            .read(move |tx| at(tx, cluster, generation))
            .await
    }
}

/// Reads one generation.
pub(crate) fn at(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    generation: Generation,
) -> Result<Option<Desired>, Error> {
    let row = first(
        tx,
        "SELECT format, body FROM desired WHERE cluster = $1 AND generation = $2",
        &[cluster.into(), generation.into()],
    )?;
    row.map(|mut row| row.document()).transpose()
}

fn generations(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    page: &Page,
) -> Result<Listed<GenerationRow>, Error> {
    let before = page.after_number("desired", u64::MAX)?;
    let rows = tx.query(
        "SELECT generation, author, created_at, tombstone, because, brief FROM desired
         WHERE cluster = $1 AND generation < $2 ORDER BY generation DESC LIMIT $3",
        &[cluster.into(), before.into(), page.rows().into()],
    )?;
    let rows: Vec<_> = rows
        .into_iter()
        .map(GenerationRow::read)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(rows, |last| cursor("desired", &[&last.generation])))
}

/// Stores the next generation of a cluster; `before` is absent when it is its first.
pub(crate) fn store(
    tx: &mut dyn Tx,
    next: &Desired,
    before: Option<&Desired>,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    insert(tx, next, cause, (&plan::brief(before, next), now))?;
    match before {
        None => begin(tx, next, now)?,
        Some(_) => renew(tx, next, now)?,
    }
    let old = before.map(rows).unwrap_or_default();
    store_machines(tx, next, old)?;
    tell(tx, next, now);
    Ok(())
}

fn insert(
    tx: &mut dyn Tx,
    next: &Desired,
    cause: Cause<'_>,
    (brief, now): (&str, Timestamp),
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO desired (cluster, generation, author, created_at, tombstone, format, body, because, brief)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[
            next.cluster.into(),
            next.generation.into(),
            cause.author.into(),
            now.into(),
            next.tombstone.into(),
            FORMAT.into(),
            encode(next)?,
            cause.because.into(),
            brief.into(),
        ],
    )?;
    Ok(())
}

/// Stores a generation after one that cannot be read; `known` are the rows that there are of its machines.
pub(crate) fn restore(
    tx: &mut dyn Tx,
    next: &Desired,
    (older, known): (&Desired, &[MachineId]),
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    insert(tx, next, cause, (&plan::brief(Some(older), next), now))?;
    renew(tx, next, now)?;
    let after = rows(next);
    for id in known {
        match after.get(id) {
            Some((machine, leaving)) => write_machine(tx, machine, *leaving)?,
            None => forget_machine(tx, &next.project, *id)?,
        }
    }
    tell(tx, next, now);
    Ok(())
}

/// What follows from another generation, and what is told of it.
fn tell(tx: &mut dyn Tx, next: &Desired, now: Timestamp) {
    claims::settle(tx, next.cluster, now);
    let message = if next.tombstone {
        format!(
            "generation {}: to be removed, with {}",
            next.generation,
            count_of(next.leaving.len(), "machine")
        )
    } else {
        let machines = count_of(next.machines.len(), "machine");
        format!(
            "generation {}: {machines}, Kubernetes {}",
            next.generation, next.version
        )
    };
    note(
        tx,
        (&next.project, now),
        "cluster.changed",
        format!("cluster/{}", next.name),
        message,
    );
}

fn begin(tx: &mut dyn Tx, next: &Desired, now: Timestamp) -> Result<(), Error> {
    let summary = accepted(next, None);
    tx.execute(
        "INSERT INTO clusters (id, project, manifest, name, incarnation, generation, version, tombstone,
                               phase, plans, unplanned, format, summary, held, probed_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 1, $10, $11, '[]', NULL, $12)",
        &[
            next.cluster.into(),
            (&next.project).into(),
            (&next.manifest).into(),
            (&next.name).into(),
            next.incarnation.into(),
            next.generation.into(),
            next.version.into(),
            next.tombstone.into(),
            summary.phase.as_str().into(),
            FORMAT.into(),
            encode(&summary)?,
            now.into(),
        ],
    )?;
    Ok(())
}

fn renew(tx: &mut dyn Tx, next: &Desired, now: Timestamp) -> Result<(), Error> {
    let before = first(
        tx,
        "SELECT format, summary FROM clusters WHERE id = $1",
        &[next.cluster.into()],
    )?;
    let before = before
        .map(|mut row| row.readable::<Summary>())
        .transpose()?;
    let summary = accepted(next, before.flatten().as_ref());
    tx.execute(
        "UPDATE clusters SET generation = $2, version = $3, tombstone = $4, phase = $5, unplanned = 1,
                             format = $6, summary = $7, held = '[]', updated_at = $8 WHERE id = $1",
        &[
            next.cluster.into(),
            next.generation.into(),
            next.version.into(),
            next.tombstone.into(),
            summary.phase.as_str().into(),
            FORMAT.into(),
            encode(&summary)?,
            now.into(),
        ],
    )?;
    Ok(())
}

/// What can be said before the next plan: whoever waits for `done` must not see an old one.
fn accepted(next: &Desired, before: Option<&Summary>) -> Summary {
    let wanted = |role: Role| {
        let count = next
            .machines
            .iter()
            .filter(|machine| machine.role == role)
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    let ready = before.map_or((0, 0), |before| (before.control.0, before.compute.0));
    Summary {
        phase: if next.tombstone {
            Phase::Deleting
        } else {
            Phase::Pending
        },
        control: (ready.0, wanted(Role::Control)),
        compute: (ready.1, wanted(Role::Compute)),
        leaving: u32::try_from(next.leaving.len()).unwrap_or(u32::MAX),
        tasks: before.map_or(0, |before| before.tasks),
        message: "accepted, not planned yet".to_owned(),
    }
}

fn store_machines(
    tx: &mut dyn Tx,
    next: &Desired,
    mut old: BTreeMap<MachineId, (&Machine, bool)>,
) -> Result<(), Error> {
    for (id, (machine, leaving)) in rows(next) {
        match old.remove(&id) {
            Some(known) if known == (machine, leaving) => {}
            Some(_) => write_machine(tx, machine, leaving)?,
            None => insert_machine(tx, next, machine, leaving)?,
        }
    }
    for id in old.into_keys() {
        forget_machine(tx, &next.project, id)?;
    }
    Ok(())
}

fn write_machine(tx: &mut dyn Tx, machine: &Machine, leaving: bool) -> Result<(), Error> {
    tx.execute(
        "UPDATE machines SET leaving = $2, format = $3, body = $4 WHERE id = $1",
        &[
            machine.id.into(),
            leaving.into(),
            FORMAT.into(),
            encode(machine)?,
        ],
    )?;
    Ok(())
}

fn forget_machine(tx: &mut dyn Tx, project: &Name, machine: MachineId) -> Result<(), Error> {
    tx.execute("DELETE FROM machines WHERE id = $1", &[machine.into()])?;
    sealed::forget(tx, project, &Owner::Machine(machine))
}

fn rows(desired: &Desired) -> BTreeMap<MachineId, (&Machine, bool)> {
    let staying = desired
        .machines
        .iter()
        .map(|machine| (machine.id, (machine, false)));
    let leaving = desired
        .leaving
        .iter()
        .map(|machine| (machine.id, (machine, true)));
    staying.chain(leaving).collect()
}

fn insert_machine(
    tx: &mut dyn Tx,
    desired: &Desired,
    machine: &Machine,
    leaving: bool,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO machines (id, project, cluster, cluster_name, name, leaving, absent, format, body)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8)",
        &[
            machine.id.into(),
            (&desired.project).into(),
            desired.cluster.into(),
            (&desired.name).into(),
            (&machine.name).into(),
            leaving.into(),
            FORMAT.into(),
            encode(machine)?,
        ],
    )?;
    Ok(())
}

impl GenerationRow {
    /// Reads generation, author, point in time, whether that was the end, why, and what changed.
    pub(crate) fn read(mut row: Row) -> Result<Self, Error> {
        Ok(Self {
            generation: row.take()?,
            author: row.take()?,
            at: row.take()?,
            deleted: row.take()?,
            because: row.take()?,
            brief: row.take()?,
        })
    }
}
