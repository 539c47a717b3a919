//! Machines on the wire: as they should be, beside what was last seen of them.

use crate::time::Time;
use model::cluster::{Machine, Origin};
use model::observed::{MachineFact, NodeFact, Seen};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a machine does in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the control plane and a member of etcd.
    Control,
    /// Runs workloads.
    Compute,
}

impl From<model::cluster::Role> for Role {
    fn from(role: model::cluster::Role) -> Self {
        match role {
            model::cluster::Role::Control => Self::Control,
            model::cluster::Role::Compute => Self::Compute,
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Control => "control",
            Self::Compute => "compute",
        })
    }
}

/// Where a machine comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OriginView {
    /// We create it.
    Made {
        /// The provider's name in the manifest.
        provider: String,
        /// Where, in the provider's words.
        region: String,
        /// Where within the region; null when the provider chose.
        zone: Option<String>,
        /// Which size.
        server_type: String,
        /// Which operating system image.
        image: String,
    },
    /// It was there before us, and will be after us.
    Given {
        /// Where it answers.
        endpoint: String,
        /// The port of its SSH server.
        ssh_port: u16,
        /// Whom to log in as.
        username: String,
    },
}

impl From<&Origin> for OriginView {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::Made {
                provider,
                via: _,
                region,
                zone,
                server_type,
                image,
                secret: _,
            } => Self::Made {
                provider: provider.to_string(),
                region: region.clone(),
                zone: zone.clone(),
                server_type: server_type.clone(),
                image: image.clone(),
            },
            Origin::Given {
                endpoint,
                ssh_port,
                username,
                secret: _,
            } => Self::Given {
                endpoint: endpoint.to_string(),
                ssh_port: *ssh_port,
                username: username.clone(),
            },
        }
    }
}

/// A machine as its provider shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MachineState {
    /// The provider was asked and has no such machine.
    Absent,
    /// It exists and is starting.
    Booting,
    /// It runs and answers.
    Running,
    /// It exists, and does not answer.
    Unreachable,
}

impl std::fmt::Display for MachineState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Absent => "absent",
            Self::Booting => "booting",
            Self::Running => "running",
            Self::Unreachable => "unreachable",
        })
    }
}

/// What the one who lends a machine last said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSeen {
    /// How it was seen.
    pub state: MachineState,
    /// The provider's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Where it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// When it was seen so.
    pub observed_at: Time,
}

impl From<&(MachineFact, model::time::Timestamp)> for MachineSeen {
    fn from((fact, at): &(MachineFact, model::time::Timestamp)) -> Self {
        let (state, reference, address) = match fact {
            MachineFact::Absent => (MachineState::Absent, None, None),
            MachineFact::Booting { reference } => (MachineState::Booting, Some(reference), None),
            MachineFact::Running { reference, address } => (
                MachineState::Running,
                Some(reference),
                Some(address.to_string()),
            ),
            MachineFact::Unreachable { reference } => {
                (MachineState::Unreachable, Some(reference), None)
            }
        };
        Self {
            state,
            reference: reference.cloned(),
            address,
            observed_at: (*at).into(),
        }
    }
}

/// What Kubernetes last said of a machine's node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSeen {
    /// Whether there is such a node.
    pub joined: bool,
    /// Whether it can run workloads.
    pub ready: bool,
    /// Whether it takes no new workloads.
    pub cordoned: bool,
    /// Which Kubernetes it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it was seen so.
    pub observed_at: Time,
}

impl From<&(NodeFact, model::time::Timestamp)> for NodeSeen {
    fn from((fact, at): &(NodeFact, model::time::Timestamp)) -> Self {
        let observed_at = (*at).into();
        match fact {
            NodeFact::Absent => Self {
                joined: false,
                ready: false,
                cordoned: false,
                version: None,
                observed_at,
            },
            NodeFact::Joined {
                ready,
                cordoned,
                version,
            } => Self {
                joined: true,
                ready: *ready,
                cordoned: *cordoned,
                version: Some(version.to_string()),
                observed_at,
            },
        }
    }
}

/// One machine, as it should be and as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineView {
    /// Which machine, in which of its lives.
    pub id: String,
    /// Its host name and the name of its node.
    pub name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// The pool it belongs to.
    pub pool: String,
    /// What it does in the cluster.
    pub role: Role,
    /// Its place in the pool, counted from 1.
    pub ordinal: u32,
    /// Its address in the cluster's private network.
    pub address: String,
    /// Where it comes from.
    pub origin: OriginView,
    /// Whether it is to go.
    pub leaving: bool,
    /// What its provider last said; null when nobody has looked.
    pub machine: Option<MachineSeen>,
    /// What Kubernetes last said; null when nobody has looked.
    pub node: Option<NodeSeen>,
}

impl MachineView {
    /// Puts together what should be and what was seen.
    pub fn new(cluster: &model::name::Name, machine: &Machine, leaving: bool, seen: &Seen) -> Self {
        Self {
            id: machine.id.to_string(),
            name: machine.name.to_string(),
            cluster: cluster.to_string(),
            pool: machine.pool.to_string(),
            role: machine.role.into(),
            ordinal: machine.ordinal,
            address: machine.address.to_string(),
            origin: (&machine.origin).into(),
            leaving,
            machine: seen.machine.as_ref().map(Into::into),
            node: seen.node.as_ref().map(Into::into),
        }
    }
}

/// From then on this was so, as one side saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeView {
    /// When it was seen.
    pub at: Time,
    /// Who saw it: provider or kubernetes.
    pub source: String,
    /// What the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineSeen>,
    /// What Kubernetes said of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeSeen>,
}

/// One machine as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDesired {
    /// Which machine, in which of its lives.
    pub id: String,
    /// Its host name and the name of its node.
    pub name: String,
    /// The pool it belongs to.
    pub pool: String,
    /// What it does in the cluster.
    pub role: Role,
    /// Its address in the cluster's private network.
    pub address: String,
    /// Where it comes from.
    pub origin: OriginView,
}

impl From<&Machine> for MachineDesired {
    fn from(machine: &Machine) -> Self {
        Self {
            id: machine.id.to_string(),
            name: machine.name.to_string(),
            pool: machine.pool.to_string(),
            role: machine.role.into(),
            address: machine.address.to_string(),
            origin: (&machine.origin).into(),
        }
    }
}
