//! What the user declares, after admission.
//!
//! Only [`crate::admit`] makes a [`Manifest`], so a reader may rely on what it promises:
//! every reference leads somewhere, every name is usable, every network has room.

use crate::disruption::{PoolBudget, Windows};
use crate::name::Name;
use crate::network::Network;
use crate::secret::SecretRef;
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The largest pool. Four hex digits of ordinal still fit a machine's name, and a plan for a
/// pool of this size is made in milliseconds.
pub const POOL_COUNT_MAX: u32 = 5_000;

/// The largest budget: more machines than this are never out of service at once by intention.
pub const UNAVAILABLE_MAX: u32 = 1_000;

/// A whole admitted declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// What people call it; unique within its project.
    pub name: Name,
    /// Who lends us machines.
    pub providers: BTreeMap<Name, Account>,
    /// Groups of machines alike, by name.
    pub pools: BTreeMap<Name, Pool>,
    /// How many machines of each group may be out of service at once, in all of the project.
    pub groups: BTreeMap<Name, u32>,
    /// The clusters, in the order in which they were written.
    pub clusters: Vec<Cluster>,
}

/// One account with somebody who lends machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Which hands reach them.
    pub via: Provider,
    /// What opens the account.
    pub secret: Option<Named>,
}

/// A secret that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Where it is named, for messages.
    pub path: String,
    /// What is named: a secret of the manifest's own project.
    pub secret: SecretRef,
    /// The namespace that was written beside it. It must be the project; only who knows the
    /// project can tell.
    pub namespace: Option<Name>,
}

/// Whose hands reach a provider's machines.
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
    /// How many of them may be out of service at once.
    pub budget: PoolBudget,
}

/// The machines of a static pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Static {
    /// Where they answer, in the order in which they were written.
    pub hosts: Vec<Host>,
    /// The port of their SSH servers.
    pub ssh_port: u16,
    /// How many of them may be out of service at once.
    pub budget: PoolBudget,
}

/// One given machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its address.
    pub endpoint: Ipv4Addr,
    /// Whom to log in as.
    pub username: String,
    /// What opens the door: the entry of a secret that holds a private SSH key.
    pub secret: Option<Named>,
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
    /// How many of its machines may be out of service at once.
    pub unavailable: u32,
    /// When machines may be taken out of service.
    pub windows: Windows,
}

impl Pool {
    /// How many machines the pool declares.
    pub fn count(&self) -> u32 {
        match self {
            Self::Dynamic(dynamic) => dynamic.count,
            Self::Static(fixed) => u32::try_from(fixed.hosts.len()).unwrap_or(u32::MAX),
        }
    }

    /// How many of its machines may be out of service at once, and the group they belong to.
    pub const fn budget(&self) -> &PoolBudget {
        match self {
            Self::Dynamic(dynamic) => &dynamic.budget,
            Self::Static(fixed) => &fixed.budget,
        }
    }
}
