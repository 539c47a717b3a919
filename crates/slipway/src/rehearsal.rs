//! Rehearses manifests for the server, in the simulator, against a twin of what is stored.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use server::{Rehearsal, Rehearse, SimulationView};
use sim::Profile;
use store::Store;

/// Rehearses against twins of one store.
pub(crate) struct Twin {
    store: Store,
}

impl Twin {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    async fn rehearsed(&self, request: Rehearsal) -> anyhow::Result<SimulationView> {
        let Rehearsal {
            project,
            manifest,
            seed,
            faults,
            turn,
        } = request;
        let profile: Profile = faults.parse()?;
        let twin = self.store.twin(&project, &manifest.name).await?;
        // A rehearsal keeps a core busy until it ends: it has a thread of its own, and with
        // it the turn, because the thread goes on when whoever asked has left.
        let rehearsal = move || {
            let _turn = turn;
            let rehearse = || sim::rehearse_blocking(twin, project, manifest, seed, profile);
            // What happens in a rehearsal is told in its report, and is no news of this server.
            tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::new(), || {
                metrics::with_local_recorder(&metrics::NoopRecorder, rehearse)
            })
        };
        let sim::Report {
            text,
            converged,
            seconds,
            clusters,
            machines,
            tasks,
            attempts,
            failures,
        } = tokio::task::spawn_blocking(rehearsal).await??;
        Ok(SimulationView {
            text,
            seed,
            faults,
            converged,
            seconds,
            clusters,
            machines,
            tasks,
            attempts,
            failures,
        })
    }
}

impl Rehearse for Twin {
    fn rehearse(&self, request: Rehearsal) -> BoxFuture<'_, Result<SimulationView, String>> {
        async move {
            let rehearsed = self.rehearsed(request).await;
            rehearsed.map_err(|error| format!("{error:#}"))
        }
        .boxed()
    }
}
