//! Manifests on the wire: what was declared, by whom, and where it stands.

pub use model::admit::{API_VERSIONS, KIND};

use crate::cluster::ClusterSummary;
use crate::time::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The largest manifest a server reads, and so the largest worth sending: 1 MiB.
///
/// A thousand clusters fit with room to spare; what is larger is a mistake.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// A change was stored; the work follows by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The manifest.
    pub manifest: String,
    /// Its generation now; the same as before when nothing changed.
    pub generation: u64,
    /// Clusters that will change.
    pub changed: Vec<String>,
    /// How many clusters stay as they are.
    pub unchanged: u32,
    /// The path to look at to see how it goes.
    pub follow: String,
    /// What else there is to know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Where a manifest stands: what its neediest cluster says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ManifestState {
    /// Accepted, not planned yet.
    Pending,
    /// Work is under way.
    Scheduled,
    /// Seen to be as declared.
    Done,
    /// Something waits for a person, or keeps failing.
    Error,
}

impl ManifestState {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Scheduled => "scheduled",
            Self::Done => "done",
            Self::Error => "error",
        }
    }
}

impl std::fmt::Display for ManifestState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A manifest and where its clusters stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestView {
    /// Who owns it.
    pub project: String,
    /// What people call it.
    pub name: String,
    /// How many changes were accepted.
    pub generation: u64,
    /// Who made the last one.
    pub author: String,
    /// When that was.
    pub created_at: Time,
    /// Whether that was its removal.
    pub deleted: bool,
    /// Where it stands.
    pub state: ManifestState,
    /// What was declared, as it was written.
    pub text: String,
    /// Its clusters that are not gone.
    pub clusters: Vec<ClusterSummary>,
}

/// One accepted change in the history of a manifest or a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerationView {
    /// Which one, counted from 1.
    pub generation: u64,
    /// Who made it, where that is recorded.
    pub author: Option<String>,
    /// When.
    pub at: Time,
    /// Whether it removed the thing.
    pub deleted: bool,
    /// Why it came: the verb, the wish or what was seen; absent where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What it changed, in short; absent where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
}

/// A manifest as it was declared at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestGeneration {
    /// Who owns it.
    pub project: String,
    /// What people call it.
    pub name: String,
    /// Which change.
    pub generation: u64,
    /// Who made it.
    pub author: String,
    /// When.
    pub created_at: Time,
    /// Whether it was its removal.
    pub deleted: bool,
    /// What was declared, as it was written.
    pub text: String,
}
