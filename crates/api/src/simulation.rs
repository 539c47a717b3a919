//! Rehearsals on the wire: what happened to a twin of what is stored.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What happened when a manifest was rehearsed in the simulated world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulationView {
    /// What happened, for people.
    pub text: String,
    /// The seed; the same seed tells the same story.
    pub seed: u64,
    /// Which faults were let loose.
    pub faults: String,
    /// Whether the world ended as declared.
    pub converged: bool,
    /// How long it took there, by the simulated clock.
    pub seconds: u64,
    /// Clusters that took part.
    pub clusters: u32,
    /// Machines at the end.
    pub machines: u32,
    /// Tasks that were done.
    pub tasks: u32,
    /// Attempts that were made at them.
    pub attempts: u32,
    /// Attempts that failed.
    pub failures: u32,
}
