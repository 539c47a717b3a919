//! What was set aside of a cluster because it could not be read, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What could not be read of a cluster was set aside; the work follows by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryView {
    /// The cluster.
    pub cluster: String,
    /// Its generation now.
    pub generation: u64,
    /// What was set aside, and what becomes of it.
    pub set_aside: Vec<String>,
    /// Machines that nobody looks after any more.
    pub left: Vec<String>,
    /// The path to look at to see how it goes.
    pub follow: String,
}
