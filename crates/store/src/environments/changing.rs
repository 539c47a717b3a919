//! Environments that become another, with all that is said of them: in one transaction.

use super::amending::amend;
use super::beginning::{begin, ready, scope};
use super::{ActionDraft, Amendment, Begun, EnvironmentError};
use crate::Store;
use crate::body::Tx;
use model::time::Timestamp;

impl Store {
    /// Begins something with an environment that is there, and changes what people say of it: both
    /// or neither.
    pub async fn change_environment(
        &self,
        draft: ActionDraft,
        amendment: impl Into<Amendment>,
        now: Timestamp,
    ) -> Result<Begun, EnvironmentError> {
        let amendment = amendment.into();
        let scope = scope(draft.deed);
        self.runner
            .write(scope, move |tx| change(tx, &draft, &amendment, now))
            .await
    }
}

pub(super) fn change(
    tx: &mut dyn Tx,
    draft: &ActionDraft,
    amendment: &Amendment,
    now: Timestamp,
) -> Result<Begun, EnvironmentError> {
    // Before anything is written: whoever is refused holds nobody else up.
    ready(tx, draft)?;
    let of = (&draft.project, &draft.name);
    let generation = amend(tx, of, draft.generation, amendment, &draft.actor, now)?;
    let draft = ActionDraft {
        generation: Some(generation),
        ..draft.clone()
    };
    begin(tx, &draft, now)
}
