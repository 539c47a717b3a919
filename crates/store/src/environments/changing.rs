//! Environments that become another, with all that is said of them: in one transaction.

use super::amending::amend;
use super::beginning::{begin, scope};
use super::{About, ActionDraft, Begun, EnvironmentError};
use crate::Store;
use crate::body::Tx;
use model::time::Timestamp;

impl Store {
    /// Begins something with an environment that is there, and changes what people say of it: both
    /// or neither.
    pub async fn change_environment(
        &self,
        draft: ActionDraft,
        about: About,
        now: Timestamp,
    ) -> Result<Begun, EnvironmentError> {
        let scope = scope(draft.deed);
        self.runner
            .write(scope, move |tx| change(tx, &draft, &about, now))
            .await
    }
}

fn change(
    tx: &mut dyn Tx,
    draft: &ActionDraft,
    about: &About,
    now: Timestamp,
) -> Result<Begun, EnvironmentError> {
    let of = (&draft.project, &draft.name);
    let generation = amend(tx, of, draft.generation, about, &draft.actor, now)?;
    let draft = ActionDraft {
        generation: Some(generation),
        ..draft.clone()
    };
    begin(tx, &draft, now)
}
