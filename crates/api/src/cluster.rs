//! Clusters on the wire: what should be, what was seen, and what waits.

use crate::kubernetes::KubernetesView;
use crate::machine::{MachineDesired, MachineView};
use crate::task::{TaskKind, TaskView};
use crate::time::Time;
use model::cluster::{Balancer, Desired};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Where a cluster stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterState {
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

impl ClusterState {
    /// Every state, in the order of a cluster's life.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Scheduled,
        Self::Done,
        Self::Error,
        Self::Deleting,
        Self::Gone,
    ];

    /// The word on the wire.
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
}

impl std::fmt::Display for ClusterState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// How many nodes are ready, of how many that should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// Nodes that were seen ready.
    pub ready: u32,
    /// Nodes that should be.
    pub wanted: u32,
}

impl From<(u32, u32)> for Ready {
    fn from((ready, wanted): (u32, u32)) -> Self {
        Self { ready, wanted }
    }
}

impl std::fmt::Display for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}/{}", self.ready, self.wanted))
    }
}

/// One cluster in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSummary {
    /// What people call it.
    pub name: String,
    /// Where it stands.
    pub state: ClusterState,
    /// Nodes of the control plane.
    pub control: Ready,
    /// Nodes for workloads.
    pub compute: Ready,
    /// Machines that are to go and are not gone yet.
    pub leaving: u32,
    /// Tasks that are not finished.
    pub tasks: u32,
    /// What happens, or what is waited for.
    pub message: String,
}

/// One cluster, without its machines and tasks: what lists show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterHead {
    /// Which cluster, in which of its lives.
    pub id: String,
    /// Who owns it.
    pub project: String,
    /// The manifest that declares it.
    pub manifest: String,
    /// How many clusters of this name there were before.
    pub incarnation: u32,
    /// Which accepted change its desired state is.
    pub generation: u64,
    /// Which Kubernetes it should run.
    pub version: String,
    /// The cluster in one line.
    #[serde(flatten)]
    pub summary: ClusterSummary,
    /// Work that waits, each with its reason.
    pub held: Vec<HeldView>,
    /// When somebody last looked at all of it; null when nobody has.
    pub observed_at: Option<Time>,
    /// When this view last changed.
    pub updated_at: Time,
}

/// One cluster with its machines and what is being done to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// What lists show of it.
    #[serde(flatten)]
    pub head: ClusterHead,
    /// Its settings of Kubernetes, where its API is, and how its control plane was seen to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesView>,
    /// Its load balancers, in the order in which they were declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<LoadBalancerView>,
    /// Newer modules that its pools could be made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newer_modules: Vec<NewerModulesView>,
    /// Nodes that somebody else has joined to it, and that are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strangers: Vec<String>,
    /// What else there is to know, in sentences: such as that a wish holds a pool at another size than the
    /// manifest names, or that an earlier cluster of this name is still being removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its machines: those to stay, then those to leave.
    pub machines: Vec<MachineView>,
    /// Tasks that are not finished.
    pub open_tasks: Vec<TaskView>,
}

/// Newer modules that a pool could be made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewerModulesView {
    /// Which pool.
    pub pool: String,
    /// The tag or the branch that its provider names, such as `github.com/org/modules@main`.
    pub reference: String,
    /// The commit that its machines are made from.
    pub from: String,
    /// The commit to which the tag or the branch leads.
    pub to: String,
    /// Since when it does; null where nobody knows.
    pub since: Option<Time>,
    /// What takes them.
    pub next_action: String,
}

/// A load balancer of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerView {
    /// What people call it.
    pub name: String,
    /// What it listens to, such as `tcp/443`, by the names of its roles.
    pub ports: BTreeMap<String, String>,
    /// The whole name by which it is reached, where it should have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Other whole names by which it is reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternative_endpoints: Vec<String>,
}

impl From<&Balancer> for LoadBalancerView {
    fn from(balancer: &Balancer) -> Self {
        let Balancer { name, roles, dns } = balancer;
        let ports = roles.iter().map(|role| {
            let port = format!("{}/{}", role.protocol.as_str(), role.port);
            (role.name.to_string(), port)
        });
        let others = dns.iter().flat_map(|dns| &dns.alternatives);
        Self {
            name: name.to_string(),
            ports: ports.collect(),
            endpoint: dns.as_ref().map(|dns| dns.endpoint.to_string()),
            alternative_endpoints: others.map(ToString::to_string).collect(),
        }
    }
}

/// Who can end a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// It ends by itself.
    Slipway,
    /// Somebody must act.
    Person,
}

/// Work that waits, always with an owner, a reason and a next action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldView {
    /// What would be done.
    pub kind: TaskKind,
    /// The first machine it would be done to.
    pub machine: String,
    /// How many machines wait for this reason, the first included.
    pub machines: u32,
    /// The reason in one word, for filters.
    pub reason: String,
    /// The whole of it in one sentence, for people.
    pub text: String,
    /// Who can end the wait.
    pub owner: Owner,
    /// What ends it.
    pub next_action: String,
    /// The task that waits, where there is one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// When it is tried again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Time>,
}

/// The causal chain behind where a cluster stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyView {
    /// The links, from what is seen to what ends it.
    pub chain: Vec<CauseView>,
}

/// One link of a causal chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CauseView {
    /// What is the case.
    pub fact: String,
    /// What would change it, where there is something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A cluster as it should have been at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterGeneration {
    /// Which cluster, in which of its lives.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The manifest that declares it.
    pub manifest: String,
    /// Which accepted change.
    pub generation: u64,
    /// Which Kubernetes.
    pub version: String,
    /// The private network of its machines.
    pub network: String,
    /// Whether the whole cluster is to be removed.
    pub deleted: bool,
    /// Every machine it should have.
    pub machines: Vec<MachineDesired>,
    /// Machines it should lose.
    pub leaving: Vec<MachineDesired>,
}

impl From<&Desired> for ClusterGeneration {
    fn from(desired: &Desired) -> Self {
        Self {
            id: desired.cluster.to_string(),
            name: desired.name.to_string(),
            manifest: desired.manifest.to_string(),
            generation: desired.generation.0,
            version: desired.version.to_string(),
            network: desired.network.to_string(),
            deleted: desired.tombstone,
            machines: desired.machines.iter().map(Into::into).collect(),
            leaving: desired.leaving.iter().map(Into::into).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_one_flat_object() {
        let text = r#"{
            "id": "cluster-1", "project": "default", "manifest": "hello", "incarnation": 0,
            "generation": 3, "version": "v1.35.0", "name": "edge", "state": "scheduled",
            "control": {"ready": 2, "wanted": 3}, "compute": {"ready": 0, "wanted": 3},
            "leaving": 0, "tasks": 1, "message": "joining", "held": [], "observedAt": null,
            "updatedAt": "2026-03-01T12:30:00Z", "machines": [], "openTasks": []
        }"#;
        let view: ClusterView = serde_json::from_str(text).unwrap();
        assert_eq!(view.head.summary.control.to_string(), "2/3");
        let again: serde_json::Value = serde_json::to_value(&view).unwrap();
        assert_eq!(
            again,
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        );
    }

    #[test]
    fn every_state_is_the_word_it_says() {
        for state in ClusterState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
