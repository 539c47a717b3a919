//! What must pass before a node that was taken out of service serves again, or one that comes in place
//! of another serves at all, and before the next one is taken out.

use crate::name::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// A check of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Gate {
    /// What people call it.
    pub name: Name,
    /// What is asked.
    pub check: Check,
    /// For how long it is asked again, until it passes.
    pub patience: Duration,
}

/// What a gate asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A program and its arguments, on the machine, as root: it passes when it ends with zero.
    Command(Vec<String>),
    /// A `Job` of the cluster: it passes when that is complete.
    Job(Value),
}

impl Gate {
    /// How long a gate is asked again whose manifest says nothing of it.
    pub const PATIENCE: Duration = Duration::from_mins(10);

    /// The longest that all gates of a cluster together may be asked: less than a task may take.
    pub const PATIENCE_MAX: Duration = Duration::from_mins(50);
}
