//! Journeys on the wire: all that would follow, predicted, before anything is touched.

use crate::cluster::{ClusterState, HeldView};
use crate::problem::Problem;
use crate::task::{Effect, TaskKind};
use crate::time::Time;
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
    /// What the manifest says that it was made of, as a digest; `apply --plan` compares it. Comments and
    /// the order of what it lists do not matter.
    #[serde(default)] // What was kept before there was this field allows no manifest.
    #[schema(required = true)]
    pub of: String,
    /// The journey as people read it, exactly as `slipway plan` prints it.
    pub text: String,
    /// The same per cluster, for programs. Clusters that stay as they are do not appear.
    pub clusters: Vec<JourneyCluster>,
    /// Clusters that stay as they are because what is stored of them cannot be read, each with what a
    /// person does about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Whether there is nothing to do.
    pub empty: bool,
    /// How long the longest cluster takes, predicted; clusters do not wait for each other.
    pub minutes: u32,
    /// What the minutes go by; not told where there is nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<JourneyPace>,
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
    /// In which of its lives; `apply --plan` compares it.
    #[serde(default)] // What was kept before there was this field allows no cluster.
    #[schema(required = true)]
    pub id: String,
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
    /// The ids of these machines, by their names: a name can be used again. `apply --plan` compares them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine_ids: BTreeMap<String, Vec<String>>,
    /// The version of Kubernetes that its nodes should have at the end; `apply --plan` compares it, and
    /// all below that adds to what was agreed to.
    #[serde(default)] // What was kept before there was this field allows no version.
    #[schema(required = true)]
    pub version: String,
    /// What machines that come are made of, by pool: each way once, by the fields of the manifest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, Vec<BTreeMap<String, String>>>,
    /// Who is taken out of service on the way, by pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbs: Vec<JourneyDisturbed>,
    /// What nodes must pass on the way before they serve, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// Machines whose port of the API is open to the world at some time, and was not before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<String>,
    /// Machines whose port of the API is shut at some time, and was not before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shuts: Vec<String>,
    /// Names that somebody gave up, each with the machine to which it leads and that goes: they stay
    /// behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<String>,
    /// What its machines cost a month before and after; not told where nobody pays for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<JourneyCost>,
}

/// What predicted minutes go by: how long such tasks took before, or a guess.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyPace {
    /// How many past tasks they were learnt from.
    pub learnt_from: u32,
    /// Kinds of tasks of which too few were done, so that their minutes are a guess.
    pub guessed: Vec<TaskKind>,
}

/// Machines of one pool that are taken out of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyDisturbed {
    /// Which pool.
    pub pool: String,
    /// How many of its machines.
    pub machines: u32,
    /// How many of them at a time, at most.
    pub at_once: u32,
}

/// What the machines of a cluster cost a month: a rough guess.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyCost {
    /// What the cents are of, by ISO 4217: always `USD`.
    pub currency: String,
    /// The time that the prices are about, as whoever wrote them says it.
    pub prices_as_of: String,
    /// Those that are there.
    pub before: JourneyMonth,
    /// Those that will be.
    pub after: JourneyMonth,
}

/// What some machines cost a month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyMonth {
    /// Those whose price is known, with their disks, in cents.
    pub cents: u64,
    /// Those whose price is not: of what, and how many. They are not in `cents`.
    pub unknown: BTreeMap<String, u32>,
}

/// Rounds that follow one another, told once and done `repeats` times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyBlock {
    /// One round, or a pattern of rounds; the steps of a round happen side by side.
    pub rounds: Vec<Vec<JourneyStep>>,
    /// How often.
    pub repeats: u32,
    /// How long all of it takes, predicted; nothing where nobody knows how long a wait takes.
    pub minutes: u32,
    /// The version of Kubernetes that nodes are on their way to, where an upgrade takes several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toward: Option<String>,
    /// What is waited for instead, where nothing can be done: then there are no rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<JourneyWait>,
}

/// What is waited for before a journey goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JourneyWait {
    /// What for.
    pub kind: WaitKind,
    /// Until when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// A machine that others have out of service, or that is to be gone, where that is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// That a window opens.
    Window,
    /// That the pause is over after which a pool's new kind of machine is tried again.
    Pause,
    /// That other clusters bring their machines back into service.
    Others,
    /// That a machine of another cluster of the manifest is gone and gives back what is needed.
    Freed,
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
    /// How long it takes, predicted.
    #[serde(default)] // What was kept before there was this field.
    #[schema(required = true)]
    pub seconds: u32,
}
