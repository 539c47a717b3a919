//! Rehearses manifests for the server, in the simulator, against a twin of what is stored.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use server::{Rehearsal, RehearsalReport, Rehearse};
use store::Store;

/// Rehearses against twins of one store.
pub(crate) struct Twin {
    store: Store,
}

impl Twin {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }
}

impl Rehearse for Twin {
    fn rehearse(&self, request: Rehearsal) -> BoxFuture<'_, Result<RehearsalReport, String>> {
        let store = self.store.clone();
        async move {
            let Rehearsal { project, manifest, seed, faults } = request;
            let profile = faults.parse().map_err(|error: sim::faults::Error| error.to_string())?;
            let twin = store.twin(&project, &manifest.name).await.map_err(|error| error.to_string())?;
            let rehearsed =
                tokio::task::spawn_blocking(move || sim::rehearse_blocking(twin, project, manifest, seed, profile)).await;
            rehearsed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
        }
        .boxed()
    }
}
