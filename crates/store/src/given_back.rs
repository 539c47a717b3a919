//! What was wished and cannot be made is given back, and people are told.

use crate::Store;
use crate::body::{Scope, Tx};
use crate::desired::Cause;
use crate::error::Error;
use crate::events::note;
use crate::{clusters, desired, intents};
use model::id::ClusterId;
use model::time::Timestamp;

impl Store {
    /// Has the pools of a cluster go back to what there is, where somebody wished for more than
    /// can be made; answers whether there was such a pool.
    pub async fn give_back(&self, cluster: ClusterId, now: Timestamp) -> Result<bool, Error> {
        self.runner
            .write(Scope::Whole, move |tx| give_back(tx, cluster, now))
            .await
    }
}

fn give_back(tx: &mut dyn Tx, cluster: ClusterId, now: Timestamp) -> Result<bool, Error> {
    let Some(view) = clusters::view(tx, cluster)? else {
        return Ok(false);
    };
    let Some(back) = plan::give_back(view.known(), now) else {
        return Ok(false);
    };
    for intent in back.ends {
        intents::end(tx, intent, now)?;
    }
    clusters::unplan(tx, cluster)?;
    let because = back.told.join("; ");
    let cause = Cause::by_itself(&because);
    desired::store(tx, &back.desired, Some(&view.desired), cause, now)?;
    for told in back.told {
        note(
            tx,
            (&back.desired.project, now),
            "pool.given-back",
            format!("cluster/{}", back.desired.name),
            told,
        );
    }
    Ok(true)
}
