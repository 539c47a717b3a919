//! What environments were last deployed with: that they are, whatever the defaults are by now.

use super::{Effective, Order};
use crate::Store;
use crate::body::{Tx, Value, for_each};
use crate::error::Error;
use model::environment::config::Edits;
use model::id::EnvironmentId;
use std::collections::BTreeMap;

/// How far back is looked: further than anybody has things fail in a row that bring other edits.
const LOOKED_AT: u32 = 100;

impl Store {
    /// What an environment of these edits was last deployed with. None where nobody wrote that
    /// down: nothing was begun here, or with other edits.
    pub async fn deployed_with(
        &self,
        environment: EnvironmentId,
        edits: &Edits,
    ) -> Result<Option<Effective>, Error> {
        let edits = edits.clone();
        self.runner
            .read(move |tx| deployed_with(tx, environment, &edits))
            .await
    }
}

/// What was begun last with each of several environments.
pub(super) struct Begun(BTreeMap<EnvironmentId, Order>);

impl Begun {
    pub(super) fn of(tx: &mut dyn Tx, ids: &[Value]) -> Result<Self, Error> {
        // What was called off before it began never counted.
        let rows = for_each(
            tx,
            "SELECT environment, format, body FROM environment_actions WHERE seq IN (
                 SELECT MAX(seq) FROM environment_actions
                 WHERE environment IN ({}) AND begun_at IS NOT NULL GROUP BY environment)",
            &[],
            ids,
        )?;
        let mut begun = BTreeMap::new();
        for mut row in rows {
            let id = row.take()?;
            begun.extend(row.readable()?.map(|order| (id, order)));
        }
        Ok(Self(begun))
    }

    /// What one of them, which has these edits, was last deployed with.
    pub(super) fn deployed_with(
        &mut self,
        tx: &mut dyn Tx,
        id: EnvironmentId,
        edits: &Edits,
    ) -> Result<Option<Effective>, Error> {
        match self.0.remove(&id) {
            Some(order) if order.edits == *edits => Ok(effective(order)),
            Some(_) => deployed_with(tx, id, edits),
            None => Ok(None),
        }
    }
}

fn deployed_with(
    tx: &mut dyn Tx,
    id: EnvironmentId,
    edits: &Edits,
) -> Result<Option<Effective>, Error> {
    let rows = tx.query(
        "SELECT format, body FROM environment_actions WHERE environment = $1 AND begun_at IS NOT NULL
         ORDER BY seq DESC LIMIT $2",
        &[id.into(), LOOKED_AT.into()],
    )?;
    for mut row in rows {
        let order: Option<Order> = row.readable()?;
        if let Some(order) = order.filter(|order| order.edits == *edits) {
            return Ok(effective(order));
        }
    }
    Ok(None)
}

/// Of what was done elsewhere nobody knows what the defaults were.
fn effective(order: Order) -> Option<Effective> {
    (!order.taken).then_some(Effective {
        application: order.application,
        deployment: order.deployment,
    })
}
