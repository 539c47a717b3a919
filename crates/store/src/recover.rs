//! The way out for a cluster of which something is stored that this program cannot read.
//!
//! What can be made anew is set aside: what was seen is looked at again, an unfinished task is planned
//! again, a wish is made again by whoever had it. The desired state is no such thing: it is made
//! from the newest generation that can be read, else from what the manifest said then, and from the rows of the machines, of which none is left
//! out unless somebody names it. What was set aside stays in the database where it is a
//! generation, a task or a wish.

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::blast::Allowed;
use crate::body::{FORMAT, Scope, Tx, encode, first};
use crate::desired::Cause;
use crate::error::Error;
use crate::events::{count_of, note};
use crate::observations::FORGOTTEN;
use crate::wish::{Consent, WishError, refused, reshape};
use crate::{clusters, commit, desired, intents, manifests, queue};
use model::cluster::{Desired, Generation, Machine};
use model::id::{ClusterId, IntentId, MachineId, TaskId};
use model::intent::Intent;
use model::manifest::Manifest;
use model::name::Name;
use model::observed::{ControlPlaneFact, Fact, Source};
use model::task::{State, Task};
use model::time::Timestamp;
use model::version::Version;
use plan::Remembered;
use std::collections::BTreeMap;

/// That what cannot be read of a cluster is set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Who owns the cluster.
    pub project: Name,
    /// Which cluster.
    pub cluster: Name,
    /// Machines that are known by name alone, and are left to themselves.
    pub leave: Vec<Name>,
    /// Whether the cluster is given up as a whole, with all its machines left to themselves.
    pub abandon: bool,
    /// What its manifest may then take away.
    pub allow: Allowed,
    /// Who asks for it.
    pub author: Actor,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Which generation is current now.
    pub generation: Generation,
    /// What was set aside, a clause each.
    pub aside: Vec<String>,
    /// Machines that nobody looks after any more.
    pub left: Vec<Name>,
}

impl Store {
    /// Sets aside what this program cannot read of a cluster, so that it is looked after again.
    pub async fn recover(
        &self,
        recovery: Recovery,
        now: Timestamp,
    ) -> Result<Recovered, WishError> {
        self.runner
            .write(Scope::Whole, move |tx| recover(tx, &recovery, now))
            .await
    }
}

/// The row of a cluster, as far as it is columns.
struct Head {
    id: ClusterId,
    manifest: Name,
    incarnation: u32,
    generation: Generation,
    version: Version,
    tombstone: bool,
}

fn recover(tx: &mut dyn Tx, recovery: &Recovery, now: Timestamp) -> Result<Recovered, WishError> {
    let head = head(tx, recovery)?;
    let mut aside = wishes(tx, head.id, now)?;
    aside.extend(tasks(tx, head.id, now)?);
    aside.extend(sights(tx, head.id)?);
    let known = desired::at(tx, head.id, head.generation);
    let lost = match known {
        Ok(_) => None,
        Err(error) if error.is_unreadable() => Some(error),
        Err(error) => return Err(error.into()),
    };
    if aside.is_empty() && lost.is_none() {
        return Err(refused(format!(
            "all that is stored of cluster {} can be read",
            recovery.cluster
        )));
    }
    let mut recovered = Recovered {
        generation: head.generation,
        aside,
        left: Vec::new(),
    };
    match lost {
        Some(_) if recovery.abandon => abandon(tx, &head, &mut recovered, now)?,
        Some(error) => restore(tx, recovery, &head, (&error, &mut recovered), now)?,
        None if recovery.abandon => {
            return Err(refused(format!(
                "the machines of cluster {} are known; recover it, then delete it",
                recovery.cluster
            )));
        }
        None => {}
    }
    if !recovery.abandon {
        again(tx, head.id)?;
    }
    tell(tx, recovery, &head, &recovered, now);
    Ok(recovered)
}

fn head(tx: &mut dyn Tx, recovery: &Recovery) -> Result<Head, WishError> {
    let row = first(
        tx,
        "SELECT id, manifest, incarnation, generation, version, tombstone FROM clusters
         WHERE project = $1 AND name = $2 AND phase <> 'gone' ORDER BY tombstone, incarnation DESC LIMIT 1",
        &[(&recovery.project).into(), (&recovery.cluster).into()],
    )?;
    let Some(mut row) = row else {
        return Err(WishError::NotFound {
            what: "cluster",
            name: recovery.cluster.to_string(),
        });
    };
    Ok(Head {
        id: row.take()?,
        manifest: row.take()?,
        incarnation: row.take()?,
        generation: row.take()?,
        version: row.take()?,
        tombstone: row.take()?,
    })
}

/// Ends the wishes that cannot be read.
fn wishes(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) -> Result<Vec<String>, Error> {
    let rows = tx.query(
        "SELECT id, format, body FROM intents WHERE cluster = $1 AND open = 1 ORDER BY seq",
        &[cluster.into()],
    )?;
    let mut ended = Vec::new();
    for mut row in rows {
        let id: IntentId = row.take()?;
        if row.readable::<Intent>()?.is_none() {
            intents::end(tx, id, now)?;
            ended.push(format!("wish {id}, make it again"));
        }
    }
    Ok(ended)
}

/// Withdraws the unfinished tasks that cannot be read; not one that somebody works on, who can.
fn tasks(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) -> Result<Vec<String>, WishError> {
    let rows = tx.query(
        "SELECT id, state, lease_until, format, body FROM tasks
         WHERE cluster = $1 AND state IN ('waiting', 'running', 'stuck') ORDER BY seq",
        &[cluster.into()],
    )?;
    let mut withdrawn = Vec::new();
    for mut row in rows {
        let (id, state): (TaskId, State) = (row.take()?, row.take()?);
        let lease: Option<Timestamp> = row.take()?;
        if row.readable::<Task>()?.is_some() {
            continue;
        }
        if state == State::Running && lease.is_some_and(|until| until > now) {
            return Err(refused(format!(
                "task {id} is being worked on by a program that can read it; wait until it has ended"
            )));
        }
        tx.execute(
            "UPDATE tasks SET state = 'withdrawn', worker = NULL, lease_until = NULL, updated_at = $2
             WHERE id = $1",
            &[id.into(), now.into()],
        )?;
        withdrawn.push(format!("task {id}, it is planned again"));
    }
    if !withdrawn.is_empty() {
        queue::refresh(tx, cluster);
    }
    Ok(withdrawn)
}

/// Forgets what was seen and cannot be read: it is looked at again. That a control plane was started is
/// known by there being such a row, and is not forgotten: a second one would split the cluster.
fn sights(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Vec<String>, Error> {
    let rows = tx.query(
        "SELECT object, source, format, fact FROM observations WHERE cluster = $1 ORDER BY object, source",
        &[cluster.into()],
    )?;
    let mut forgotten = Vec::new();
    for mut row in rows {
        let (object, source): (String, String) = (row.take()?, row.take()?);
        if row.readable::<Fact>()?.is_some() {
            continue;
        }
        forgotten.push(format!(
            "what {source} said of {object}, it is looked at again"
        ));
        let of: [_; 3] = [
            cluster.into(),
            object.as_str().into(),
            source.as_str().into(),
        ];
        if object == cluster.to_string() && source == Source::Kubernetes.as_str() {
            let started = encode(&Fact::ControlPlane(ControlPlaneFact::started()))?;
            let values = of.into_iter().chain([FORMAT.into(), started]);
            tx.execute(
                "UPDATE observations SET format = $4, fact = $5
                 WHERE cluster = $1 AND object = $2 AND source = $3",
                &values.collect::<Vec<_>>(),
            )?;
        } else {
            tx.execute(
                "DELETE FROM observations WHERE cluster = $1 AND object = $2 AND source = $3",
                &of,
            )?;
        }
    }
    Ok(forgotten)
}

/// Makes the next generation from the newest one that can be read, and from the rows of machines; then
/// what the manifest says now.
fn restore(
    tx: &mut dyn Tx,
    recovery: &Recovery,
    head: &Head,
    (error, recovered): (&Error, &mut Recovered),
    now: Timestamp,
) -> Result<(), WishError> {
    let (older, whence) = if let Some(older) = newest_readable(tx, head)? {
        let whence = format!("generation {}", older.generation);
        (older, whence)
    } else if let Some(declared) = declared_then(tx, recovery, head, now)? {
        (declared, "what its manifest said then".to_owned())
    } else {
        return Err(refused(format!(
            "no generation of cluster {} can be read ({error}), nor what its manifest said then; with \
             `--abandon` it is given up and its machines are left to themselves",
            recovery.cluster
        )));
    };
    let (ids, machines) = machines(tx, recovery, (head, &older), recovered)?;
    let declared = manifests::head(tx, &recovery.project, &head.manifest)?;
    let pools = match declared.filter(|declared| !declared.deleted) {
        Some(declared) => {
            let generation = declared.generation;
            let manifest = manifests::document(tx, &recovery.project, &head.manifest, generation);
            manifest?.pools.into_keys().collect()
        }
        None => Vec::new(),
    };
    let known = Remembered {
        generation: head.generation,
        version: head.version,
        tombstone: head.tombstone,
        machines,
        pools,
    };
    let next = plan::recovered(&older, known);
    let because = format!("recovered from {whence}");
    let cause = Cause {
        author: &recovery.author.name,
        because: &because,
    };
    desired::restore(tx, &next, (&older, &ids), cause, now)?;
    recovered.aside.push(format!(
        "generation {}, what is desired was made from {whence}",
        head.generation
    ));
    // What it was to become by then, the manifest says; unless it says that it is to go.
    if declared.is_some_and(|declared| !declared.deleted) {
        let consent = Consent::Withdrawn(recovery.allow);
        reshape(tx, head.id, cause, consent, now)?;
    }
    let row = first(
        tx,
        "SELECT generation FROM clusters WHERE id = $1",
        &[head.id.into()],
    )?;
    recovered.generation = row.map_or(Ok(next.generation), |mut row| row.take())?;
    Ok(())
}

fn newest_readable(tx: &mut dyn Tx, head: &Head) -> Result<Option<Desired>, Error> {
    let mut before = head.generation;
    loop {
        let row = first(
            tx,
            "SELECT generation, format, body FROM desired WHERE cluster = $1 AND generation < $2
             ORDER BY generation DESC LIMIT 1",
            &[head.id.into(), before.into()],
        )?;
        let Some(mut row) = row else { return Ok(None) };
        before = row.take()?;
        if let Some(read) = row.readable()? {
            return Ok(Some(read));
        }
    }
}

/// The cluster as its manifest declared it when the newest generation was made, before its first machine:
/// which there are, their rows say. For a cluster that never had a generation that can be read.
fn declared_then(
    tx: &mut dyn Tx,
    recovery: &Recovery,
    head: &Head,
    now: Timestamp,
) -> Result<Option<Desired>, Error> {
    let row = first(
        tx,
        "SELECT format, body FROM manifest_generations
         WHERE project = $1 AND name = $2 AND deleted = 0 AND created_at <=
               (SELECT created_at FROM desired WHERE cluster = $3 AND generation = $4)
         ORDER BY generation DESC LIMIT 1",
        &[
            (&recovery.project).into(),
            (&head.manifest).into(),
            head.id.into(),
            head.generation.into(),
        ],
    )?;
    let manifest = row.map(|mut row| row.readable::<Manifest>()).transpose()?;
    let Some(mut manifest) = manifest.flatten() else {
        return Ok(None);
    };
    manifest
        .clusters
        .retain(|cluster| cluster.name == recovery.cluster);
    let lives = BTreeMap::from([(recovery.cluster.clone(), head.incarnation)]);
    let expanded = plan::expand(&recovery.project, &manifest, &[], &lives, now);
    let mut expanded = expanded.unwrap_or_default().into_iter();
    let declared = expanded.find(|expansion| expansion.desired.cluster == head.id);
    Ok(declared.map(|expansion| {
        let mut desired = expansion.desired;
        desired.generation = Generation(0);
        desired.machines.clear();
        desired
    }))
}

/// Which machines there are, and those that are known, each with whether it leaves.
type Rows = (Vec<MachineId>, Vec<(Machine, bool)>);

/// The machines that the newest generation names, by their rows: which there are, and those that are
/// known. One that no document tells of is an obstacle, unless it is to be left.
fn machines(
    tx: &mut dyn Tx,
    recovery: &Recovery,
    (head, older): (&Head, &Desired),
    recovered: &mut Recovered,
) -> Result<Rows, WishError> {
    let rows = tx.query(
        "SELECT id, name, leaving, absent, format, body FROM machines WHERE cluster = $1 ORDER BY name, id",
        &[head.id.into()],
    )?;
    let (mut ids, mut known, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for mut row in rows {
        let (id, name): (MachineId, Name) = (row.take()?, row.take()?);
        let (leaving, absent): (bool, bool) = (row.take()?, row.take()?);
        ids.push(id);
        let before = || older.all().find(|machine| machine.id == id).cloned();
        match row.readable::<Machine>()?.or_else(before) {
            Some(machine) => known.push((machine, leaving)),
            // There is nothing left to lose.
            None if leaving && absent => {}
            None if recovery.leave.contains(&name) => recovered.left.push(name),
            None => unknown.push(name),
        }
    }
    if unknown.is_empty() {
        return Ok((ids, known));
    }
    let names: Vec<_> = unknown.iter().map(Name::as_str).collect();
    let flags: Vec<_> = names.iter().map(|name| format!("--leave {name}")).collect();
    Err(refused(format!(
        "nothing that can be read tells where {} {}; with `{}` they are left to themselves",
        names.join(", "),
        if names.len() == 1 { "is" } else { "are" },
        flags.join(" ")
    )))
}

/// Gives a cluster up: nobody looks after its machines any more, and its name is free.
fn abandon(
    tx: &mut dyn Tx,
    head: &Head,
    recovered: &mut Recovered,
    now: Timestamp,
) -> Result<(), Error> {
    let rows = tx.query(
        "SELECT name FROM machines WHERE cluster = $1 AND NOT (leaving = 1 AND absent = 1) ORDER BY name, id",
        &[head.id.into()],
    )?;
    for mut row in rows {
        recovered.left.push(row.take()?);
    }
    let mut summary = clusters::unread();
    summary.phase = plan::Phase::Gone;
    summary.message = format!(
        "given up; {} left to themselves",
        count_of(recovered.left.len(), "machine")
    );
    tx.execute(
        "UPDATE tasks SET state = 'withdrawn', worker = NULL, lease_until = NULL, updated_at = $2
         WHERE cluster = $1 AND state IN ('waiting', 'running', 'stuck')",
        &[head.id.into(), now.into()],
    )?;
    tx.execute(
        "UPDATE clusters SET tombstone = 1, phase = $2, plans = plans + 1, unplanned = 0, format = $3,
                             summary = $4, held = '[]', wake_at = NULL, updated_at = $5 WHERE id = $1",
        &[
            head.id.into(),
            summary.phase.as_str().into(),
            FORMAT.into(),
            encode(&summary)?,
            now.into(),
        ],
    )?;
    recovered.aside.push("all that is stored of it".to_owned());
    commit::forget(tx, head.id, now)
}

/// Has a cluster looked at before it is planned again.
fn again(tx: &mut dyn Tx, cluster: ClusterId) -> Result<(), Error> {
    tx.execute(
        "UPDATE observations SET at = $2, since = NULL WHERE cluster = $1",
        &[cluster.into(), FORGOTTEN.into()],
    )?;
    tx.execute(
        "UPDATE clusters SET probed_at = NULL WHERE id = $1",
        &[cluster.into()],
    )?;
    clusters::unplan(tx, cluster)
}

fn tell(tx: &mut dyn Tx, recovery: &Recovery, head: &Head, recovered: &Recovered, now: Timestamp) {
    let mut message = format!("set aside: {}", recovered.aside.join("; "));
    if !recovered.left.is_empty() {
        let left: Vec<_> = recovered.left.iter().map(Name::as_str).collect();
        message = format!("{message}; left to themselves: {}", left.join(", "));
    }
    let object = format!("cluster/{}", recovery.cluster);
    let kind = "cluster.recovered";
    note(
        tx,
        (&recovery.project, now),
        kind,
        object.clone(),
        message.clone(),
    );
    audit::enter(
        tx,
        Entry {
            at: now,
            project: Some(recovery.project.clone()),
            actor: recovery.author.clone(),
            action: "cluster.recover",
            object,
            generations: (Some(head.generation.0), Some(recovered.generation.0)),
            detail: message,
        },
    );
}
