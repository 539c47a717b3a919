//! One cluster as it should be, down to the last machine.

use crate::id::{ClusterId, MachineId};
use crate::manifest::Provider;
use crate::name::Name;
use crate::network::Network;
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Counts the accepted changes of one document; it only ever grows, from 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation that follows this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One cluster as it should be; every choice is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desired {
    /// Which cluster, in which of its lives.
    pub cluster: ClusterId,
    /// Who owns it.
    pub project: Name,
    /// The manifest that declares it.
    pub manifest: Name,
    /// What people call it.
    pub name: Name,
    /// How many clusters of this name there were before.
    pub incarnation: u32,
    /// Which accepted change produced this.
    pub generation: Generation,
    /// Which Kubernetes its nodes should run.
    pub version: Version,
    /// The private network of its machines.
    pub network: Network,
    /// Every machine it should have: control first, then by pool and ordinal.
    pub machines: Vec<Machine>,
    /// Machines it had and should lose, until they are seen to be gone.
    pub leaving: Vec<Machine>,
    /// How many machines were ever made per pool, so that no id is used again.
    pub made: BTreeMap<Name, u32>,
    /// An explicit wish that the whole cluster be removed.
    pub tombstone: bool,
}

impl Desired {
    /// The machine of that name, whether it is to stay or to leave.
    pub fn machine_named(&self, name: &str) -> Option<&Machine> {
        self.all().find(|machine| machine.name.as_str() == name)
    }

    /// Every machine this cluster is responsible for: those to stay, then those to leave.
    pub fn all(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().chain(&self.leaving)
    }
}

/// One machine as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Which machine, in which of its lives.
    pub id: MachineId,
    /// Its host name and the name of its node.
    pub name: Name,
    /// The pool it belongs to.
    pub pool: Name,
    /// What it does in the cluster.
    pub role: Role,
    /// Its place in the pool, counted from 1.
    pub ordinal: u32,
    /// How many machines the pool had made before this one.
    pub incarnation: u32,
    /// Its address in the cluster's private network.
    pub address: Ipv4Addr,
    /// Where it comes from.
    pub origin: Origin,
}

/// What a machine does in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the control plane and a member of etcd.
    Control,
    /// Runs workloads.
    Compute,
}

impl Role {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Compute => "compute",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a machine comes from, with all that its maker must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// We create it.
    Made {
        /// The provider's name in the manifest.
        provider: Name,
        /// Which hands reach that provider.
        via: Provider,
        /// Where, in the provider's words.
        region: String,
        /// Where within the region.
        zone: Option<String>,
        /// Which size.
        server_type: String,
        /// Which operating system image.
        image: String,
    },
    /// It was there before us, and will be after us.
    Given {
        /// Where it answers.
        endpoint: Ipv4Addr,
        /// The port of its SSH server.
        ssh_port: u16,
        /// Whom to log in as.
        username: String,
    },
}
