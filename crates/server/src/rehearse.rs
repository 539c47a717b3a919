//! What the server needs of the simulator, which it does not know.

use api::SimulationView;
use futures_util::future::BoxFuture;
use model::manifest::Manifest;
use model::name::Name;
use tokio::sync::OwnedSemaphorePermit;

/// Rehearses manifests against a twin of what is stored.
pub trait Rehearse: Send + Sync {
    /// Tells what happened, or why nothing could: an unknown profile, for example.
    ///
    /// Work that goes on after the future is dropped must keep the turn until it ends.
    fn rehearse(&self, request: Rehearsal) -> BoxFuture<'_, Result<SimulationView, String>>;
}

/// The right to rehearse, of which there are few; it is given back when it is dropped.
///
/// The client may leave long before the work ends, so the turn travels with the work and
/// not with the request.
#[derive(Debug)]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Turn {
    pub(crate) const fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit }
    }
}

/// What is to be rehearsed.
#[derive(Debug)]
pub struct Rehearsal {
    /// Whose.
    pub project: Name,
    /// What would be declared.
    pub manifest: Manifest,
    /// The same seed tells the same story.
    pub seed: u64,
    /// Which faults are let loose.
    pub faults: String,
    /// The right to do so.
    pub turn: Turn,
}
