//! Desired state that moves on by itself, because of what was seen.

use crate::Store;
use crate::body::{Scope, Tx, first};
use crate::commit::CommitError;
use crate::desired::Cause;
use crate::error::Error;
use crate::events::note;
use crate::{clusters, desired, intents};
use model::cluster::Generation;
use model::id::ClusterId;
use model::time::Timestamp;
use plan::{Advance, Phase};

/// Events of the project among which the last word on a cluster is looked for: there is no index
/// for it, and what is further back explains little.
const LOOKED_AT: u32 = 5_000;

/// Why a cluster moved on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advanced {
    /// What was seen, or done because of it.
    pub because: String,
    /// Who asked for what this is a step of, and how that came.
    pub follows: Option<(String, Option<String>)>,
}

impl Store {
    /// Stores a step of a cluster that nobody asked for, if what it was made from is still so.
    pub async fn advance(&self, step: Advance, now: Timestamp) -> Result<(), CommitError> {
        let scope = Scope::Cluster(step.desired.cluster);
        self.runner
            .write(scope, move |tx| advance(tx, &step, now))
            .await
    }

    /// Why a cluster became what it should be now, where that came by itself: because of what was seen, or
    /// because what was wished cannot be made; and whose edit it is a step of, if it is.
    pub async fn advanced(&self, cluster: ClusterId) -> Result<Option<Advanced>, Error> {
        self.runner.read(move |tx| advanced(tx, cluster)).await
    }
}

fn advanced(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Option<Advanced>, Error> {
    let own = first(
        tx,
        "SELECT c.project, c.name, c.generation, d.because FROM clusters c
         JOIN desired d ON d.cluster = c.id AND d.generation = c.generation
         WHERE c.id = $1 AND d.author = $2",
        &[cluster.into(), desired::BY_ITSELF.into()],
    )?;
    let Some(mut own) = own else { return Ok(None) };
    let (project, name): (String, String) = (own.take()?, own.take()?);
    let generation = own.take()?;
    let because = match own.take::<Option<String>>()? {
        Some(because) => Some(because),
        None => told(tx, project, &name)?,
    };
    let Some(because) = because else {
        return Ok(None);
    };
    let follows = follows(tx, cluster, generation)?;
    Ok(Some(Advanced { because, follows }))
}

/// The last word on a cluster that moved on before reasons were kept.
fn told(tx: &mut dyn Tx, project: String, name: &str) -> Result<Option<String>, Error> {
    let told = first(
        tx,
        "SELECT message FROM (SELECT id, kind, object, message FROM events WHERE project = $1
                              ORDER BY id DESC LIMIT $3) AS newest
         WHERE object = $2 AND kind IN ('cluster.advanced', 'pool.given-back') ORDER BY id DESC LIMIT 1",
        &[
            project.into(),
            format!("cluster/{name}").into(),
            LOOKED_AT.into(),
        ],
    )?;
    told.map(|mut row| row.take()).transpose()
}

/// Whose edit a generation is a step of, and why that was made.
fn follows(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    generation: Generation,
) -> Result<Option<(String, Option<String>)>, Error> {
    let edit = first(
        tx,
        "SELECT generation, author, because FROM desired WHERE cluster = $1 AND author <> $2
         ORDER BY generation DESC LIMIT 1",
        &[cluster.into(), desired::BY_ITSELF.into()],
    )?;
    let Some(mut edit) = edit else {
        return Ok(None);
    };
    let (edited, author, because): (Generation, String, Option<String>) =
        (edit.take()?, edit.take()?, edit.take()?);
    let before = Generation(generation.0.saturating_sub(1));
    let documents = [edited, before, generation].map(|at| desired::at(tx, cluster, at));
    // What cannot be read says nothing of it.
    let [Ok(Some(edited)), Ok(Some(before)), Ok(Some(now))] = documents else {
        return Ok(None);
    };
    Ok(plan::follows(&edited, &before, &now).then_some((author, because)))
}

fn advance(tx: &mut dyn Tx, step: &Advance, now: Timestamp) -> Result<(), CommitError> {
    let next = &step.desired;
    let row = first(
        tx,
        "SELECT generation, phase FROM clusters WHERE id = $1 FOR UPDATE",
        &[next.cluster.into()],
    )?;
    let Some(mut row) = row else {
        return Err(CommitError::Stale);
    };
    let (generation, phase): (Generation, Phase) = (row.take()?, row.take()?);
    if generation.next() != next.generation || phase == Phase::Gone {
        return Err(CommitError::Stale);
    }
    let Some(view) = clusters::view(tx, next.cluster)? else {
        return Err(CommitError::Stale);
    };
    let cause = Cause::by_itself(&step.because);
    desired::store(tx, next, Some(&view.desired), cause, now)?;
    intents::end_fulfilled_updates(tx, next, &view.intents, now)?;
    note(
        tx,
        (&next.project, now),
        "cluster.advanced",
        format!("cluster/{}", next.name),
        step.because.clone(),
    );
    Ok(())
}
