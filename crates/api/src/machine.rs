//! Machines on the wire: as they should be, beside what was last seen of them.

use crate::time::Time;
use model::cluster::{Jump, Machine, Origin};
use model::hardware::Hardware;
use model::id::ClusterId;
use model::name::Name;
use model::observed::{HostFact, MachineFact, NodeFact, Seen};
use model::templates::Templates;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What a machine does in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the control plane and a member of etcd.
    Control,
    /// Runs workloads.
    Compute,
    /// Takes what is sent to the cluster and passes it on.
    Balancer,
}

impl From<model::cluster::Role> for Role {
    fn from(role: model::cluster::Role) -> Self {
        match role {
            model::cluster::Role::Control => Self::Control,
            model::cluster::Role::Compute => Self::Compute,
            model::cluster::Role::Balancer => Self::Balancer,
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Control => "control",
            Self::Compute => "compute",
            Self::Balancer => "balancer",
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
        /// What else it is made with, where anything is special.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hardware: Option<HardwareView>,
    },
    /// It was there before us, and will be after us.
    Given {
        /// Where it answers.
        endpoint: String,
        /// The port of its SSH server.
        ssh_port: u16,
        /// Whom to log in as.
        username: String,
        /// The host through which it is reached, where not directly.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        jump_host: Option<JumpHostView>,
    },
}

/// What a machine is made with besides its type and its image; what is not said is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareView {
    /// The size of its data disk in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<u32>,
    /// Whether it is lent cheaply, and may be taken back at any time.
    #[serde(default)]
    pub spot: bool,
    /// The network through which others reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_network: Option<String>,
    /// Processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// Graphics processors.
    #[serde(default)]
    pub gpus: u32,
    /// Which, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// Whose modules it is made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates: Option<String>,
    /// Whether these may be others tomorrow, because a branch is named and no commit.
    #[serde(default)]
    pub templates_move: bool,
}

impl HardwareView {
    /// What is special, where anything is.
    fn of(hardware: &Hardware) -> Option<Self> {
        let machine = hardware.machine.clone().unwrap_or_default();
        let templates = hardware.templates.as_ref();
        let view = Self {
            disk: hardware.disk,
            spot: hardware.spot,
            external_network: hardware.external_network.clone(),
            cpus: machine.cpus,
            memory: machine.memory,
            gpus: machine.gpus,
            gpu_type: machine.gpu_type,
            templates: templates.map(ToString::to_string),
            templates_move: templates.is_some_and(Templates::moves),
        };
        Some(view).filter(|_| !hardware.is_usual())
    }
}

impl std::fmt::Display for HardwareView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |name: Option<&String>| {
            let name = name.map(|name| format!(" ({name})"));
            name.unwrap_or_default()
        };
        let gpus = (self.gpus > 0).then_some(self.gpus);
        let moves = if self.templates_move {
            ", which may move"
        } else {
            ""
        };
        let templates = self.templates.as_ref();
        let said = [
            self.disk.map(|disk| format!("{disk} GB of disk")),
            self.cpus.map(|cpus| format!("{cpus} processors")),
            self.memory.map(|memory| format!("{memory} GB of memory")),
            gpus.map(|gpus| {
                format!(
                    "{gpus} graphics processors{}",
                    named(self.gpu_type.as_ref())
                )
            }),
            self.spot.then(|| "lent until it is taken back".to_owned()),
            self.external_network
                .as_ref()
                .map(|network| format!("network {network}")),
            templates.map(|templates| format!("modules of {templates}{moves}")),
        ];
        let said: Vec<_> = said.into_iter().flatten().collect();
        f.write_str(&said.join(", "))
    }
}

/// A host through which others are reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JumpHostView {
    /// Where it answers.
    pub endpoint: String,
    /// The port of its SSH server.
    pub ssh_port: u16,
    /// Whom to log in as.
    pub username: String,
}

impl From<&Jump> for JumpHostView {
    fn from(jump: &Jump) -> Self {
        Self {
            endpoint: jump.endpoint.to_string(),
            ssh_port: jump.ssh_port,
            username: jump.username.clone(),
        }
    }
}

impl std::fmt::Display for JumpHostView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            endpoint,
            ssh_port,
            username,
        } = self;
        write!(f, "{username}@{endpoint}:{ssh_port}")
    }
}

impl OriginView {
    /// What the machine is made with, in one line; nothing of where it is.
    pub fn made_with(&self) -> String {
        match self {
            Self::Made {
                server_type,
                image,
                hardware,
                ..
            } => {
                let more = hardware.as_ref().map(|hardware| format!(", {hardware}"));
                format!("{server_type}, {image}{}", more.unwrap_or_default())
            }
            Self::Given { .. } => "given".to_owned(),
        }
    }

    /// The host through which the machine is reached, where not directly.
    pub const fn jump_host(&self) -> Option<&JumpHostView> {
        match self {
            Self::Given { jump_host, .. } => jump_host.as_ref(),
            Self::Made { .. } => None,
        }
    }
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
                hardware,
                secret: _,
            } => Self::Made {
                provider: provider.to_string(),
                region: region.clone(),
                zone: zone.clone(),
                server_type: server_type.clone(),
                image: image.clone(),
                hardware: HardwareView::of(hardware),
            },
            Origin::Given {
                endpoint,
                ssh_port,
                username,
                secret: _,
                jump,
            } => Self::Given {
                endpoint: endpoint.to_string(),
                ssh_port: *ssh_port,
                username: username.clone(),
                jump_host: jump.as_ref().map(Into::into),
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
            MachineFact::Unreachable { reference, .. } => {
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
                care: _,
                asks: _,
                gated: _,
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

/// What a host last said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSeen {
    /// Where it was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its operating system.
    pub system: String,
    /// Its kernel.
    pub kernel: String,
    /// Changes with every start.
    pub boot: String,
    /// How full its fullest disk is.
    pub disk_used_percent: u8,
    /// How far its clock is off.
    pub clock_off_seconds: i64,
    /// Whether it has what its purpose needs.
    pub equipped: bool,
    /// Its public key in the mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_key: Option<String>,
    /// Whether it is part of the mesh.
    pub meshed: bool,
    /// How many peers it has in the mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_peers: Option<u32>,
    /// How many of them it has heard of in the last three minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh_peers_heard: Option<u32>,
    /// For every role of its load balancer, how many targets answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub healthy: BTreeMap<String, u32>,
    /// When it was seen so.
    pub observed_at: Time,
}

impl From<&(HostFact, model::time::Timestamp)> for HostSeen {
    fn from((fact, at): &(HostFact, model::time::Timestamp)) -> Self {
        let healthy = fact.balance.iter().flat_map(|balance| &balance.healthy);
        Self {
            address: fact.at.map(|at| at.to_string()),
            system: fact.system.clone(),
            kernel: fact.kernel.clone(),
            boot: fact.boot.clone(),
            disk_used_percent: fact.disk_used_percent,
            clock_off_seconds: fact.clock_off_seconds,
            equipped: fact.equipped.is_some(),
            mesh_key: fact.mesh_key.as_ref().map(ToString::to_string),
            meshed: fact.mesh.is_some(),
            mesh_peers: fact.heard.map(|heard| heard.peers),
            mesh_peers_heard: fact.heard.map(|heard| heard.lately),
            healthy: healthy.map(|(role, n)| (role.to_string(), *n)).collect(),
            observed_at: (*at).into(),
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
    /// Which cluster that is, in which of its lives.
    #[serde(default)] // Servers from before there was this field do not say it.
    #[schema(required = true)]
    pub cluster_id: String,
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
    /// What the host last said of itself; null when nobody has entered it.
    #[serde(default)]
    pub host: Option<HostSeen>,
    /// The load balancer that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<String>,
    /// What of it is simulated: nothing, its Kubernetes, or the whole machine.
    #[serde(default)]
    pub simulated: Simulated,
}

impl MachineView {
    /// Puts together what should be and what was seen.
    pub fn new(
        (cluster, cluster_id): (&Name, ClusterId),
        machine: &Machine,
        leaving: bool,
        seen: &Seen,
    ) -> Self {
        Self {
            id: machine.id.to_string(),
            name: machine.name.to_string(),
            cluster: cluster.to_string(),
            cluster_id: cluster_id.to_string(),
            pool: machine.pool.to_string(),
            role: machine.role.into(),
            ordinal: machine.ordinal,
            address: machine.address.to_string(),
            origin: (&machine.origin).into(),
            leaving,
            machine: seen.machine.as_ref().map(Into::into),
            node: seen.node.as_ref().map(Into::into),
            host: seen.host.as_ref().map(Into::into),
            balancer: machine.balancer.as_ref().map(ToString::to_string),
            simulated: Simulated::of(machine),
        }
    }
}

/// What of a machine is simulated.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Simulated {
    /// Nothing: it is real.
    #[default]
    Nothing,
    /// The host is real; Kubernetes on it is not.
    Kubernetes,
    /// It exists in the simulated world alone.
    Machine,
}

impl Simulated {
    fn of(machine: &Machine) -> Self {
        if !machine.origin.is_host() {
            Self::Machine
        } else if machine.role.is_node() && machine.origin.pretends() {
            Self::Kubernetes
        } else {
            Self::Nothing
        }
    }
}

impl std::fmt::Display for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Nothing => "nothing",
            Self::Kubernetes => "its Kubernetes",
            Self::Machine => "all of it",
        })
    }
}

/// From then on this was so, as one side saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeView {
    /// When it was seen.
    pub at: Time,
    /// Who saw it: provider, kubernetes, host or certificates.
    pub source: String,
    /// What the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineSeen>,
    /// What Kubernetes said of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeSeen>,
    /// What the host said of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSeen>,
    /// The day on which the first of its certificates ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates_end: Option<Time>,
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
