//! What the user declares, after admission.
//!
//! Only [`crate::admit`] makes a [`Manifest`], so a reader may rely on what it promises:
//! every reference leads somewhere, every name is usable, every network has room.

mod fingerprint;
mod partial;

use crate::addon;
use crate::care::Marks;
use crate::cluster::Forward;
use crate::disruption::{PoolBudget, UNAVAILABLE_DEFAULT, Windows};
use crate::dns;
use crate::fault::{Doubt, Fault};
use crate::gate::Gate;
use crate::hardware::Hardware;
use crate::host::{Playbooks, Proxy};
use crate::kubernetes::Kubernetes;
use crate::name::Name;
use crate::network::Network;
use crate::provider::Provider;
use crate::scaling::Autoscaler;
use crate::secret::SecretRef;
use crate::snapshot::EtcdBackup;
use crate::templates::Templates;
use crate::upkeep::{Repair, SURGE_DEFAULT};
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub(crate) use partial::within;
pub use partial::{Glimpse, Partial};

/// The largest pool. Four hex digits of ordinal still fit a machine's name, and a plan for a
/// pool of this size is made in milliseconds.
pub const POOL_COUNT_MAX: u32 = 5_000;

/// How many addresses for machines a pool has at a cloud: a network of 256, of which no cloud keeps more than
/// five to itself.
pub const CLOUD_ADDRESSES: u32 = 251;

/// The largest budget: more machines than this are never out of service at once by intention.
pub const UNAVAILABLE_MAX: u32 = 1_000;

/// A whole admitted declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Manifest {
    /// What people call it; unique within its project.
    pub name: Name,
    /// The namespace that was written beside it. It must be the project; only who knows the
    /// project can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Name>,
    /// Who lends us machines.
    pub providers: BTreeMap<Name, Account>,
    /// Groups of machines alike, by name.
    pub pools: BTreeMap<Name, Pool>,
    /// How many machines of each group may be out of service at once, in all of the project.
    #[serde(default)]
    pub groups: BTreeMap<Name, u32>,
    /// The clusters, in the order in which they were written.
    pub clusters: Vec<Cluster>,
    /// The load balancers, in the order in which they were written.
    #[serde(default)]
    pub balancers: Vec<Balancer>,
    /// What only living clusters may have. Who expands it has judged that, so it is not kept.
    #[serde(skip)]
    pub doubts: Vec<Doubt>,
    /// What was let pass and has no effect; who brings a manifest is told, and it is not kept.
    #[serde(skip)]
    pub remarks: Vec<Fault>,
}

impl Manifest {
    /// What names of machines begin with, before their place in the pool; each with the cluster or the
    /// load balancer whose they are, and the pool.
    pub fn stems(&self) -> BTreeMap<String, (&Name, &Name)> {
        let of_clusters = self.clusters.iter().flat_map(|cluster| {
            let pools = cluster.control.iter().chain(&cluster.compute);
            pools.map(|pool| (&cluster.name, pool))
        });
        let of_balancers = self.balancers.iter().flat_map(|balancer| {
            let pools = balancer.pools.iter();
            pools.map(|pool| (&balancer.name, pool))
        });
        let owned = of_clusters.chain(of_balancers);
        let stem = |(owner, pool): (_, _)| (format!("{owner}-{pool}"), (owner, pool));
        owned.map(stem).collect()
    }
}

/// One load balancer as declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balancer {
    /// What people call it; unique among load balancers and clusters.
    pub name: Name,
    /// The cluster that it serves.
    pub cluster: Name,
    /// What it listens to, in the order of ports.
    pub roles: Vec<Forward>,
    /// The pools of its machines.
    pub pools: Vec<Name>,
    /// How it is called in the world, where the manifest says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<dns::Declared>,
}

/// One account with somebody who lends machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Account {
    /// Which hands reach them.
    pub via: Provider,
    /// What opens the account.
    pub secret: Option<Named>,
    /// Whose modules machines are made with, where not the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates: Option<Templates>,
    /// What opens the repository of these modules, where it is not open to everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates_secret: Option<Named>,
}

/// An account as documents have it: before there were secrets, only whose hands reach it.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives while a document is read"
)]
enum Stored {
    Hands(Provider),
    Whole {
        via: Provider,
        secret: Option<Named>,
        #[serde(default)]
        templates: Option<Templates>,
        #[serde(default)]
        templates_secret: Option<Named>,
    },
}

impl From<Stored> for Account {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Hands(via) => Self {
                via,
                secret: None,
                templates: None,
                templates_secret: None,
            },
            Stored::Whole {
                via,
                secret,
                templates,
                templates_secret,
            } => Self {
                via,
                secret,
                templates,
                templates_secret,
            },
        }
    }
}

/// A secret that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Where it is named, for messages.
    pub path: String,
    /// What is named: a secret of the manifest's own project.
    pub secret: SecretRef,
    /// The namespace that was written beside it. It must be the project; only who knows the
    /// project can tell.
    pub namespace: Option<Name>,
}

/// Machines alike, scaled and replaced together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// Machines we create.
    Dynamic(Dynamic),
    /// Machines given by address.
    Static(Static),
    /// Machines taken from those that were discovered.
    Metal(Metal),
}

/// How the machines of a dynamic pool are made, and how many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dynamic {
    /// Its place in the list of dynamic pools, for messages.
    pub position: usize,
    /// Who lends them.
    pub provider: Name,
    /// Where, in the provider's words.
    pub region: String,
    /// Where within the region; absent means that the provider chooses.
    pub zone: Option<String>,
    /// How many; the fewest, where their number changes.
    pub count: u32,
    /// Between which sizes the pool is scaled, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<Autoscaler>,
    /// Which size, in the provider's words.
    pub server_type: String,
    /// Which operating system image, in the provider's words.
    pub image: String,
    /// What else they are made with; the disk only where it is said, and 0 for none.
    #[serde(default, skip_serializing_if = "Hardware::is_usual")]
    pub hardware: Hardware,
    /// How many of them may be out of service at once.
    #[serde(default)]
    pub budget: PoolBudget,
    /// What their nodes carry.
    #[serde(default, skip_serializing_if = "Marks::is_empty")]
    pub marks: Marks,
    /// How they are replaced when they are to be made in another way; nothing where that is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<Replace>,
}

impl Dynamic {
    /// The most machines that it may have with a provider of this type. At a cloud there must be an address
    /// for those, too, that come in place of others.
    pub fn count_max(via: Provider, replace: Option<Replace>) -> u32 {
        match via {
            Provider::Cloud(_) => CLOUD_ADDRESSES.saturating_sub(replace.unwrap_or_default().surge),
            Provider::Simulated | Provider::Sandbox => POOL_COUNT_MAX,
        }
    }
}

/// How the machines of a pool are replaced by others that are made in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    /// How many come at once before as many go.
    pub surge: u32,
}

impl Default for Replace {
    fn default() -> Self {
        Self {
            surge: SURGE_DEFAULT,
        }
    }
}

/// The machines of a static pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Static {
    /// Where they answer, in the order in which they were written.
    pub hosts: Vec<Host>,
    /// The port of their SSH servers.
    pub ssh_port: u16,
    /// The host through which they are reached, where not directly.
    #[serde(default)]
    pub jump: Option<JumpHost>,
    /// How many of them may be out of service at once.
    #[serde(default)]
    pub budget: PoolBudget,
    /// What their nodes carry.
    #[serde(default, skip_serializing_if = "Marks::is_empty")]
    pub marks: Marks,
}

/// Which of the discovered machines a pool takes, and how many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metal {
    /// The labels that they have, with their values.
    pub selector: BTreeMap<String, String>,
    /// How many.
    pub count: u32,
    /// How many of them may be out of service at once.
    #[serde(default)]
    pub budget: PoolBudget,
    /// What their nodes carry.
    #[serde(default, skip_serializing_if = "Marks::is_empty")]
    pub marks: Marks,
}

/// One given machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its address.
    pub endpoint: Ipv4Addr,
    /// Whom to log in as.
    pub username: String,
    /// What opens the door: the entry of a secret that holds a private SSH key.
    pub secret: Option<Named>,
}

/// The host through which the machines of a static pool are reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JumpHost {
    /// Its address.
    pub endpoint: Ipv4Addr,
    /// The port of its SSH server.
    pub ssh_port: u16,
    /// Whom to log in as.
    pub username: String,
    /// What opens its door: the entry of a secret that holds a private SSH key.
    pub secret: Option<Named>,
}

/// One Kubernetes cluster as declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// What people call it; unique within its project.
    pub name: Name,
    /// Which Kubernetes.
    pub version: Version,
    /// The private network its machines share.
    pub network: Network,
    /// Who connects its pods, and where they are.
    #[serde(default)]
    pub kubernetes: Kubernetes,
    /// Pools whose machines run the control plane.
    pub control: Vec<Name>,
    /// Pools whose machines run workloads.
    pub compute: Vec<Name>,
    /// How many of its machines may be out of service at once.
    #[serde(default = "unavailable")]
    pub unavailable: u32,
    /// When machines may be taken out of service.
    #[serde(default)]
    pub windows: Windows,
    /// What must pass before a node serves again and the next one is taken out of service.
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// How its hosts reach package sources and registries.
    #[serde(default)]
    pub proxy: Option<Proxy>,
    /// What is played on its nodes besides.
    #[serde(default)]
    pub playbooks: Playbooks,
    /// What it has besides Kubernetes.
    #[serde(default)]
    pub addons: Vec<addon::Named>,
    /// How its etcd is saved; none where that is switched off.
    #[serde(default = "crate::cluster::usual_backup")]
    pub etcd_backup: Option<EtcdBackup>,
    /// Whether it is kept, whoever removes it or its manifest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// What is done about machines that do not serve.
    #[serde(default, skip_serializing_if = "Repair::is_usual")]
    pub repair: Repair,
    /// The secret that opens where snapshots are kept, where that needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_secret: Option<Named>,
}

/// The budget of a cluster whose document is from before there were budgets.
const fn unavailable() -> u32 {
    UNAVAILABLE_DEFAULT
}

impl Pool {
    /// How many machines the pool may have at most.
    pub fn most(&self) -> u32 {
        match self {
            Self::Dynamic(dynamic) => dynamic.autoscaler.map_or(dynamic.count, |of| of.max),
            Self::Static(fixed) => u32::try_from(fixed.hosts.len()).unwrap_or(u32::MAX),
            Self::Metal(metal) => metal.count,
        }
    }

    /// How many machines the pool has whatever is wished.
    pub fn least(&self) -> u32 {
        match self {
            Self::Dynamic(dynamic) => dynamic.autoscaler.map_or(dynamic.count, |of| of.min),
            Self::Static(_) | Self::Metal(_) => self.most(),
        }
    }

    /// How many of its machines may be out of service at once, and the group they belong to.
    pub const fn budget(&self) -> &PoolBudget {
        match self {
            Self::Dynamic(dynamic) => &dynamic.budget,
            Self::Static(fixed) => &fixed.budget,
            Self::Metal(metal) => &metal.budget,
        }
    }

    /// What its nodes carry.
    pub const fn marks(&self) -> &Marks {
        match self {
            Self::Dynamic(dynamic) => &dynamic.marks,
            Self::Static(fixed) => &fixed.marks,
            Self::Metal(metal) => &metal.marks,
        }
    }
}

impl Dynamic {
    /// The number that a wish for another size is measured against: another one here ends it.
    /// Where the manifest names none, it is 0, which no count can be.
    pub const fn declared(&self) -> u32 {
        match self.autoscaler {
            Some(_) => 0,
            None => self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document as it was stored before there were budgets, windows and secrets.
    const STORED: &str = r#"{
        "name":"m","providers":{"lab":"simulated"},
        "pools":{
            "attic":{"static":{"hosts":[{"endpoint":"203.0.113.5","username":"root"}],"ssh_port":22}},
            "brain":{"dynamic":{"position":0,"provider":"lab","region":"north","zone":null,"count":1,
                     "server_type":"small","image":"debian-12"}}},
        "clusters":[{"name":"edge","version":"v1.34.0","network":"10.8.0.0/24","control":["brain"],
                     "compute":["attic"]}]}"#;

    #[test]
    fn a_document_stored_before_budgets_and_secrets_is_still_read() {
        let read: Manifest = serde_json::from_str(STORED).unwrap();
        let account = Account {
            via: Provider::Simulated,
            secret: None,
            templates: None,
            templates_secret: None,
        };
        assert!(read.providers.values().all(|found| *found == account));
        let said_nothing = PoolBudget::default();
        assert!(
            read.pools
                .values()
                .all(|pool| *pool.budget() == said_nothing)
        );
        assert!(read.groups.is_empty());
        let cluster = &read.clusters[0];
        assert_eq!(
            (cluster.unavailable, &cluster.windows),
            (1, &Windows::default())
        );
        let again = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&again).unwrap(), read);
    }
}
