//! One cluster in one line: what lists, trees and pages show.

use serde::{Deserialize, Serialize};

/// Where a cluster or a manifest stands; a view derived from the plan, never a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Accepted, not planned yet.
    Pending,
    /// Work is under way.
    Scheduled,
    /// Seen to be as declared.
    Done,
    /// Something waits for a person, or keeps failing.
    Error,
    /// Being removed.
    Deleting,
    /// Removed, seen to be so.
    Gone,
}

impl Phase {
    /// The word of the public contract and of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Scheduled => "scheduled",
            Self::Done => "done",
            Self::Error => "error",
            Self::Deleting => "deleting",
            Self::Gone => "gone",
        }
    }

    /// A manifest's phase from those of its clusters: the one that most needs attention.
    ///
    /// A manifest without clusters has nothing left to do.
    pub fn of_manifest(clusters: impl IntoIterator<Item = Self>) -> Self {
        let weight = |phase: &Self| match phase {
            Self::Error => 5,
            Self::Scheduled => 4,
            Self::Deleting => 3,
            Self::Pending => 2,
            Self::Done => 1,
            Self::Gone => 0,
        };
        match clusters.into_iter().max_by_key(weight) {
            None | Some(Self::Gone) => Self::Done,
            Some(Self::Deleting) => Self::Scheduled,
            Some(phase) => phase,
        }
    }
}

impl std::str::FromStr for Phase {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [
            Self::Pending,
            Self::Scheduled,
            Self::Done,
            Self::Error,
            Self::Deleting,
            Self::Gone,
        ]
        .into_iter()
        .find(|phase| phase.as_str() == text)
        .ok_or(())
    }
}

/// What a list shows of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Where it stands.
    pub phase: Phase,
    /// Control nodes ready, and wanted. Who is to go counts until then, in the place of those to come.
    pub control: (u32, u32),
    /// Compute nodes ready, and wanted; counted likewise.
    pub compute: (u32, u32),
    /// Machines that are to go and are not gone yet.
    pub leaving: u32,
    /// Open tasks, those begun by this plan included.
    pub tasks: u32,
    /// One sentence on what happens or what is waited for.
    pub message: String,
}
