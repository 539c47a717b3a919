//! Clears away what is left here of actions that have ended.
//!
//! Whoever records an end clears up after it. What is found here was recorded by somebody who died
//! right then, or elsewhere, while this place was silent: nobody follows it any more.

use super::Shared;
use driver::deploy::Deployer;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often somebody looks what is left.
const EVERY: Duration = Duration::from_mins(10);

/// Clears up now, and every now and then.
pub(super) async fn run<D: Deployer>(shared: Arc<Shared<D>>, stop: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clear(&shared) => {}
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn clear<D: Deployer>(shared: &Shared<D>) {
    let left = shared.deployer.left().await;
    if left.is_empty() {
        return;
    }
    match shared.store.ended_actions(left).await {
        Ok(ended) => {
            for action in ended {
                tracing::info!(%action, "{action} has ended; what is left of it is cleared away");
                shared.deployer.forget(action).await;
            }
        }
        Err(error) => tracing::error!(%error, "could not read which actions have ended: {error}"),
    }
}
