//! Where an environment is reached.

use serde::{Deserialize, Serialize};

/// One way to reach an environment, as its scripts tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What people call it; empty where the address says it all.
    pub name: String,
    /// The address.
    pub url: String,
}
