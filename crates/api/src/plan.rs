//! Journeys on the wire: all that would follow, predicted, before anything is touched.

use crate::cluster::{ClusterState, HeldView};
use crate::problem::Problem;
use crate::task::{Effect, TaskKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// All that would follow if a manifest were applied and nothing went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyView {
    /// Which journey: what `apply --plan` takes.
    pub id: String,
    /// Whether it was kept, so that `apply --plan` can refer to it; not when there is no room.
    #[serde(default = "kept")] // What was shown before this field had been kept.
    #[schema(required = true)]
    pub kept: bool,
    /// The journey as people read it, exactly as `slipway plan` prints it.
    pub text: String,
    /// The same per cluster, for programs. Clusters that stay as they are do not appear.
    pub clusters: Vec<JourneyCluster>,
    /// Whether there is nothing to do.
    pub empty: bool,
    /// How long the longest cluster takes, predicted; clusters do not wait for each other.
    pub minutes: u32,
    /// What else there is to know, as the text says it: such as that the project's quota will
    /// hold back some of the machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why applying it would be refused, if it would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Problem>>,
}

const fn kept() -> bool {
    true
}

/// The journey of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyCluster {
    /// Which cluster.
    pub name: String,
    /// How long it takes, predicted.
    pub minutes: u32,
    /// What happens, in order.
    pub blocks: Vec<JourneyBlock>,
    /// Work that would still wait at the end, each with its reason.
    pub held: Vec<HeldView>,
    /// Where the cluster would stand at the end.
    pub ends_in: ClusterState,
    /// What happens to each machine, by its name: what `apply --plan` compares.
    pub effects: BTreeMap<String, Vec<Effect>>,
}

/// Rounds that follow one another, told once and done `repeats` times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyBlock {
    /// One round, or a pattern of rounds; the steps of a round happen side by side.
    pub rounds: Vec<Vec<JourneyStep>>,
    /// How often.
    pub repeats: u32,
    /// How long all of it takes, predicted.
    pub minutes: u32,
    /// The version of Kubernetes that nodes are on their way to, where an upgrade takes several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toward: Option<String>,
}

/// The same thing done to machines of one pool at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyStep {
    /// What is done.
    pub kind: TaskKind,
    /// What that means for what runs there.
    pub effect: Effect,
    /// The pool of the machines.
    pub pool: String,
    /// The first machine it is done to.
    pub machine: String,
    /// How many machines it is done to.
    pub machines: u32,
}
