//! Desired state that moves on by itself, because of what was seen.

use crate::Store;
use crate::body::{Scope, Tx, first};
use crate::commit::CommitError;
use crate::events::note;
use crate::{clusters, desired};
use model::cluster::Generation;
use model::time::Timestamp;
use plan::{Advance, Phase};

/// Who moves it on.
const AUTHOR: &str = "slipway";

impl Store {
    /// Stores a step of a cluster that nobody asked for, if what it was made from is still so.
    pub async fn advance(&self, step: Advance, now: Timestamp) -> Result<(), CommitError> {
        let scope = Scope::Cluster(step.desired.cluster);
        self.runner
            .write(scope, move |tx| advance(tx, &step, now))
            .await
    }
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
    desired::store(tx, next, Some(&view.desired), AUTHOR, now)?;
    note(
        tx,
        (&next.project, now),
        "cluster.advanced",
        format!("cluster/{}", next.name),
        step.because.clone(),
    );
    Ok(())
}
