//! Pools whose size may change without another word in the manifest.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Between how many machines a pool is scaled by wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Autoscaler {
    /// The fewest machines; there may be none at all.
    pub min: u32,
    /// The most machines.
    pub max: u32,
}

impl Autoscaler {
    /// The allowed size that is next to a wished one.
    ///
    /// A stored range whose ends were swapped is one that admission never let in; its smaller
    /// end then decides.
    pub fn nearest(self, count: u32) -> u32 {
        count.max(self.min).min(self.max)
    }

    /// Whether a pool may have so many machines.
    pub fn allows(self, count: u32) -> bool {
        (self.min..=self.max).contains(&count)
    }
}

/// As it stands behind "allowed".
impl fmt::Display for Autoscaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.min, self.max)
    }
}
