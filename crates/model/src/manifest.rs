//! What the user declares, after admission.
//!
//! Only [`crate::admit`] makes a [`Manifest`], so a reader may rely on what it promises:
//! every reference leads somewhere, every name is usable, every network has room.

use crate::name::Name;
use crate::network::Network;
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The largest pool. Four hex digits of ordinal still fit a machine's name, and a plan for a
/// pool of this size is made in milliseconds.
pub const POOL_COUNT_MAX: u32 = 5_000;

/// A whole admitted declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[expect(
    clippy::zero_sized_map_values,
    reason = "the simulated provider is the first of many"
)]
pub struct Manifest {
    /// What people call it; unique within its project.
    pub name: Name,
    /// Who lends us machines.
    pub providers: BTreeMap<Name, Provider>,
    /// Groups of machines alike, by name.
    pub pools: BTreeMap<Name, Pool>,
    /// The clusters, in the order in which they were written.
    pub clusters: Vec<Cluster>,
}

/// One account with somebody who lends machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// The simulated world: machines that exist in memory.
    Simulated,
}

/// Machines alike, scaled and replaced together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// Machines we create.
    Dynamic(Dynamic),
    /// Machines given by address.
    Static(Static),
}

/// How the machines of a dynamic pool are made, and how many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dynamic {
    /// Its place in the list of dynamic pools, for messages.
    pub position: usize,
    /// Who lends them.
    pub provider: Name,
    /// Where, in the provider's words.
    pub region: String,
    /// Where within the region; absent means that the provider chooses.
    pub zone: Option<String>,
    /// How many.
    pub count: u32,
    /// Which size, in the provider's words.
    pub server_type: String,
    /// Which operating system image, in the provider's words.
    pub image: String,
}

/// The machines of a static pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Static {
    /// Where they answer, in the order in which they were written.
    pub hosts: Vec<Host>,
    /// The port of their SSH servers.
    pub ssh_port: u16,
}

/// One given machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its address.
    pub endpoint: Ipv4Addr,
    /// Whom to log in as.
    pub username: String,
}

/// One Kubernetes cluster as declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// What people call it; unique within its project.
    pub name: Name,
    /// Which Kubernetes.
    pub version: Version,
    /// The private network its machines share.
    pub network: Network,
    /// Pools whose machines run the control plane.
    pub control: Vec<Name>,
    /// Pools whose machines run workloads.
    pub compute: Vec<Name>,
}

impl Pool {
    /// How many machines the pool declares.
    pub fn count(&self) -> u32 {
        match self {
            Self::Dynamic(dynamic) => dynamic.count,
            Self::Static(fixed) => u32::try_from(fixed.hosts.len()).unwrap_or(u32::MAX),
        }
    }
}
