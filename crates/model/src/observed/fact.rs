//! What can be seen of a cluster, and where.

use crate::addon::AddonsFact;
use crate::balancer::BalanceFact;
use crate::dns::NamesFact;
use crate::host::Fingerprint;
use crate::id::MachineId;
use crate::mesh::{Heard, MeshFact, MeshKey};
use crate::snapshot::{RestoredFact, SnapshotsFact};
use crate::stray::StraysFact;
use crate::templates::{Commit, Reference};
use crate::time::Timestamp;
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A fact about one object from one source; the newest of each kind per object counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    /// What the one who lends the machine says of it.
    Machine(MachineId, MachineFact),
    /// What Kubernetes says of the machine's node.
    Node(MachineId, NodeFact),
    /// What is known of the control plane as a whole.
    ControlPlane(ControlPlaneFact),
    /// What a host says of itself.
    Host(MachineId, HostFact),
    /// Whether its API could be asked.
    Silence(SilenceFact),
    /// What opens the machines of the cluster.
    Access(AccessFact),
    /// The certificates of a control machine.
    Certificates(MachineId, CertificatesFact),
    /// The add-ons that are in the cluster.
    Addons(AddonsFact),
    /// The nodes that are there beside those of the cluster's machines, where all of these were looked
    /// for.
    Strays(StraysFact),
    /// The snapshots of the cluster's etcd.
    Snapshots(SnapshotsFact),
    /// The snapshot that was last put back.
    Restored(RestoredFact),
    /// The names that lead to a machine of a load balancer.
    Names(MachineId, NamesFact),
    /// Whether the world reaches the API on a control machine.
    Port(MachineId, PortFact),
    /// The commit to which a tag or a branch of a repository leads.
    Commit(Reference, CommitFact),
    /// That a tag or a branch could not be looked up.
    Unresolved(Reference, UnresolvedFact),
}

/// Who saw a fact; with the object it names the row that a newer one replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The provider of the machine, or the machine itself where it was given.
    Provider,
    /// The Kubernetes API of the cluster.
    Kubernetes,
    /// The host itself, entered by SSH.
    Host,
    /// Whoever keeps the keys.
    Keeper,
    /// Whoever reads certificates on their hosts.
    Certificates,
    /// Whoever asks what was installed in the cluster.
    Addons,
    /// Whoever looks for nodes that are nobody's.
    Strays,
    /// Whoever takes snapshots of etcd.
    Snapshots,
    /// Whoever puts snapshots back.
    Restores,
    /// Whoever answers for names of DNS.
    Names,
    /// The firewall of the provider.
    Firewall,
    /// Whoever keeps a repository of modules.
    Repository,
    /// Whoever asks there, where nobody answers.
    Lookup,
    /// Whoever asks the API whether it can be asked.
    Entrance,
}

impl Source {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Kubernetes => "kubernetes",
            Self::Host => "host",
            Self::Keeper => "keeper",
            Self::Certificates => "certificates",
            Self::Addons => "addons",
            Self::Strays => "strays",
            Self::Snapshots => "snapshots",
            Self::Restores => "restores",
            Self::Names => "names",
            Self::Firewall => "firewall",
            Self::Repository => "repository",
            Self::Lookup => "lookup",
            Self::Entrance => "entrance",
        }
    }
}

impl Fact {
    /// The machine that does not serve as it should, by what was seen.
    pub const fn sick(&self) -> Option<MachineId> {
        match self {
            Self::Machine(machine, MachineFact::Unreachable { .. })
            | Self::Node(machine, NodeFact::Joined { ready: false, .. }) => Some(*machine),
            Self::Machine(..)
            | Self::Node(..)
            | Self::ControlPlane(_)
            | Self::Silence(_)
            | Self::Host(..)
            | Self::Access(_)
            | Self::Certificates(..)
            | Self::Addons(_)
            | Self::Strays(_)
            | Self::Snapshots(_)
            | Self::Restored(_)
            | Self::Names(..)
            | Self::Port(..)
            | Self::Commit(..)
            | Self::Unresolved(..) => None,
        }
    }

    /// The tag or the branch it is about, where it is about one.
    pub const fn reference(&self) -> Option<&Reference> {
        if let Self::Commit(reference, _) | Self::Unresolved(reference, _) = self {
            Some(reference)
        } else {
            None
        }
    }

    /// The machine it is about, unless it is about the cluster.
    pub const fn machine(&self) -> Option<MachineId> {
        match self {
            Self::Machine(machine, _)
            | Self::Node(machine, _)
            | Self::Host(machine, _)
            | Self::Certificates(machine, _)
            | Self::Names(machine, _)
            | Self::Port(machine, _) => Some(*machine),
            Self::ControlPlane(_)
            | Self::Silence(_)
            | Self::Access(_)
            | Self::Addons(_)
            | Self::Strays(_)
            | Self::Snapshots(_)
            | Self::Restored(_)
            | Self::Commit(..)
            | Self::Unresolved(..) => None,
        }
    }

    /// Who saw it.
    pub const fn source(&self) -> Source {
        match self {
            Self::Machine(..) => Source::Provider,
            Self::Node(..) | Self::ControlPlane(_) => Source::Kubernetes,
            Self::Host(..) => Source::Host,
            Self::Silence(_) => Source::Entrance,
            Self::Access(_) => Source::Keeper,
            Self::Certificates(..) => Source::Certificates,
            Self::Addons(_) => Source::Addons,
            Self::Strays(_) => Source::Strays,
            Self::Snapshots(_) => Source::Snapshots,
            Self::Restored(_) => Source::Restores,
            Self::Names(..) => Source::Names,
            Self::Port(..) => Source::Firewall,
            Self::Commit(..) => Source::Repository,
            Self::Unresolved(..) => Source::Lookup,
        }
    }
}

/// A machine as its provider shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MachineFact {
    /// The provider was asked and has no such machine.
    Absent,
    /// It exists and is starting.
    Booting {
        /// The provider's own name for it.
        reference: String,
    },
    /// It runs and answers.
    Running {
        /// The provider's own name for it.
        reference: String,
        /// Where it answers.
        address: IpAddr,
    },
    /// It exists, and does not answer, or not so that we could use it.
    Unreachable {
        /// The provider's own name for it.
        reference: String,
        /// What is wrong with its answer, where it gives one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
}

/// A node as Kubernetes shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum NodeFact {
    /// Kubernetes was asked and has no such node.
    Absent,
    /// The machine has joined.
    Joined {
        /// Whether it can run workloads.
        ready: bool,
        /// Whether it takes no new workloads.
        cordoned: bool,
        /// What it runs.
        version: Version,
        /// What it was last told to carry and where to find the API, if it still carries it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        care: Option<Fingerprint>,
        /// Whether its kubelet asks for a certificate to serve with, and nobody has answered.
        #[serde(default, skip_serializing_if = "is_false")]
        asks: bool,
        /// Whether it came in place of another, and takes no workloads because its gates have not let
        /// it pass yet.
        #[serde(default, skip_serializing_if = "is_false")]
        gated: bool,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes what it asks about by reference"
)]
pub(crate) const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The control plane as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlPlaneFact {
    /// Whether a first member was ever started; starting a second one would split the cluster.
    pub initialised: bool,
    /// How it is, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wellbeing: Option<Wellbeing>,
}

impl ControlPlaneFact {
    /// A control plane that was started, and of which nothing else is known.
    pub const fn started() -> Self {
        Self {
            initialised: true,
            wellbeing: None,
        }
    }
}

/// How a control plane is, as one of its members tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wellbeing {
    /// Checks of its API server that fail, in the order of their names.
    pub failing: Vec<String>,
    /// The members of etcd, in the order of their names; none where nobody told of them.
    pub etcd: Vec<Member>,
    /// What is wrong with nodes, by their names; those that are well are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub troubles: BTreeMap<String, String>,
    /// Nodes that somebody locked, by their names, each with the label that says so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locks: BTreeMap<String, String>,
}

/// Whether the API of a cluster could be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SilenceFact {
    /// Why it could not, where it could not.
    pub silence: Option<Silence>,
}

/// Why the API of a cluster tells nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// What is the case, in words that stay the same while it is, with the code of the error.
    pub because: String,
    /// What would help.
    pub hint: String,
}

/// A member of etcd, as another one sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// What it is called: as its machine, or by its address before it has started.
    pub name: String,
    /// Whether it runs and answers.
    pub healthy: bool,
    /// Whether it only learns, and does not count yet.
    pub learner: bool,
}

/// The certificates with which a control machine serves, and that with which it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificatesFact {
    /// The day on which the first of them ends: only changes are worth telling.
    pub end: Timestamp,
}

/// The port of the API on a control machine, as the firewall of its provider has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortFact {
    /// Whether the world reaches it.
    pub open: bool,
}

/// To which commit a tag or a branch leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitFact {
    /// The commit.
    pub commit: Commit,
}

/// Why nobody knows to which commit a tag or a branch leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnresolvedFact {
    /// What was said, and what would help.
    pub because: String,
    /// Whether somebody must change something; else it is looked up again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lasting: bool,
}

/// What opens the machines of a cluster: the public half of a key that is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessFact {
    /// As it is written into a machine's list of authorised keys.
    pub public: String,
}

/// A host as it describes itself.
///
/// What moves all the time is rounded: only changes are worth telling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFact {
    /// Where it was entered.
    pub at: Option<IpAddr>,
    /// Its operating system.
    pub system: String,
    /// Its kernel.
    pub kernel: String,
    /// Changes with every start.
    pub boot: String,
    /// How full its fullest disk is, in steps of five percent.
    pub disk_used_percent: u8,
    /// How far its clock is off, in whole seconds.
    pub clock_off_seconds: i64,
    /// The recipe that it followed.
    pub equipped: Option<Fingerprint>,
    /// The key that was born on it.
    pub mesh_key: Option<MeshKey>,
    /// Its end of the mesh.
    pub mesh: Option<MeshFact>,
    /// Whether its tunnels are in use, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Heard>,
    /// Its load balancer.
    pub balance: Option<BalanceFact>,
}
