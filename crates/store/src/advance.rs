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

impl Store {
    /// Stores a step of a cluster that nobody asked for, if what it was made from is still so.
    pub async fn advance(&self, step: Advance, now: Timestamp) -> Result<(), CommitError> {
        let scope = Scope::Cluster(step.desired.cluster);
        self.runner
            .write(scope, move |tx| advance(tx, &step, now))
            .await
    }

    /// Why a cluster became what it should be now, where that was nobody's wish: because of what
    /// was seen, or because what was wished cannot be made.
    pub async fn advanced(&self, cluster: ClusterId) -> Result<Option<String>, Error> {
        self.runner.read(move |tx| advanced(tx, cluster)).await
    }
}

fn advanced(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Option<String>, Error> {
    let own = first(
        tx,
        "SELECT c.project, c.name FROM clusters c
         JOIN desired d ON d.cluster = c.id AND d.generation = c.generation
         WHERE c.id = $1 AND d.author = $2",
        &[cluster.into(), desired::BY_ITSELF.into()],
    )?;
    let Some(mut own) = own else { return Ok(None) };
    let (project, name): (String, String) = (own.take()?, own.take()?);
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
