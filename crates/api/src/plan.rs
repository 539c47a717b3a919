//! Journeys on the wire: all that would follow, predicted, before anything is touched.

use crate::cluster::HeldView;
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
    /// The journey as people read it, exactly as `slipway plan` prints it.
    pub text: String,
    /// The same per cluster, for programs. Clusters that stay as they are do not appear.
    pub clusters: Vec<JourneyCluster>,
    /// Whether there is nothing to do.
    pub empty: bool,
    /// How long the longest cluster takes, predicted.
    pub minutes: u32,
    /// Why applying it would be refused, if it would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Problem>>,
    /// What would be done to each machine, by machine id: what `apply --plan` compares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effects: BTreeMap<String, Vec<TaskKind>>,
}

/// The journey of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyCluster {
    /// Which cluster.
    pub name: String,
    /// How long it takes, predicted.
    pub minutes: u32,
    /// What happens, round after round; what is within one round happens at once.
    pub rounds: Vec<JourneyRound>,
    /// Work that would still wait at the end, each with its reason.
    pub held: Vec<HeldView>,
    /// Where the cluster would stand at the end, in one sentence.
    pub ends_in: String,
}

/// Steps that happen at once, and how often the like of them follow one another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyRound {
    /// What happens, for people.
    pub title: String,
    /// The steps.
    pub steps: Vec<JourneyStep>,
    /// How many rounds of this kind follow one another, this one included.
    pub repeats: u32,
    /// How long one of them takes, predicted.
    pub minutes: u32,
}

/// The same thing done to one or more machines at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyStep {
    /// What is done.
    pub kind: TaskKind,
    /// What that means for what runs there.
    pub effect: Effect,
    /// The first machine it is done to.
    pub machine: String,
    /// How many machines it is done to.
    pub machines: u32,
    /// How long it takes, predicted.
    pub minutes: u32,
}
