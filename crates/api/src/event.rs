//! Events on the wire. They say "look soon", and tell people what happened.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a live stream of events.
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventView {
    /// Grows with every event; where to resume.
    pub id: u64,
    /// When.
    pub at: Time,
    /// Whose.
    pub project: String,
    /// What happened, in one word for programs: task.done, task.stuck, manifest.submitted and so on.
    #[serde(default)] // Servers before this field said nothing here.
    #[schema(required = true)]
    pub what: String,
    /// What kind of thing it is about: manifest, cluster, machine, task, intent.
    pub kind: String,
    /// Which thing, by its name or id.
    pub object: String,
    /// What happened, for people.
    pub message: String,
}
