//! Work of the hands that belongs to no task: what they say goes to our own log.

use driver::{Clock, Context, Log, Open};
use model::name::Name;
use model::time::Timestamp;
use std::sync::Arc;
use store::{Actor, Store};
use tokio_util::sync::CancellationToken;
use vault::Vault;

struct Aside;

impl Log for Aside {
    fn line(&self, _: Timestamp, text: &str) {
        tracing::debug!(line = text, "beside all tasks");
    }
}

/// What the hands get besides a machine: keys of the project are opened in the name of the actor.
pub(crate) fn context(
    (store, vault, clock): (&Store, &Vault, Clock),
    (project, actor): (Name, Actor),
    stop: CancellationToken,
) -> Context {
    let secrets = engine::opener(store.clone(), vault.clone(), project, actor);
    context_with(clock, secrets, stop)
}

/// The same with somebody else who opens secrets.
pub(crate) fn context_with(
    clock: Clock,
    secrets: Arc<dyn Open>,
    stop: CancellationToken,
) -> Context {
    Context::new(clock, Arc::new(Aside), secrets, stop, 0)
}
