//! Units of work with every choice already made.

use crate::addon::{Addon, AddonName};
use crate::balancer::Balance;
use crate::care::Care;
use crate::cluster::{Generation, Machine, Origin};
use crate::dns::Naming;
use crate::gate::Gate;
use crate::host::Recipe;
use crate::id::{ClusterId, MachineId, TaskId};
use crate::kubernetes::Kubernetes;
use crate::mesh::Mesh;
use crate::name::Name;
use crate::network::Network;
use crate::observed::is_false;
use crate::secret::SecretRef;
use crate::snapshot::{Destination, Restoring, Taking};
use crate::stray::Leftover;
use crate::time::Timestamp;
use crate::version::Version;
use serde::{Deserialize, Serialize};

/// One piece of work for one driver on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Which task.
    pub id: TaskId,
    /// The project it works for.
    pub project: Name,
    /// The cluster it works for.
    pub cluster: ClusterId,
    /// What people call that cluster.
    pub cluster_name: Name,
    /// The desired state it leads to.
    pub generation: Generation,
    /// The machine it touches, whole.
    pub machine: Machine,
    /// What to do with it.
    pub action: Action,
    /// The cluster around the machine, where what is done touches Kubernetes on hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
}

/// What whoever changes a node must know of the cluster that it is or becomes a part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Around {
    /// The private network of the cluster.
    pub network: Network,
    /// What was decided when the cluster was made.
    pub kubernetes: Kubernetes,
    /// Members of the control plane by which the API is reached, in the order in which they are
    /// tried. Nobody can help the first one.
    pub through: Vec<Machine>,
    /// Whether the machine is the first of the control plane to get its version.
    #[serde(default)]
    pub leads: bool,
    /// What the cluster has besides Kubernetes: whoever comes is brought its images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addons: Vec<Addon>,
    /// The nodes to which images are brought first: of add-ons before they are installed, and of what
    /// runs on every node before the control plane is upgraded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Machine>,
}

impl Task {
    /// The machines that it touches: its own, all that a mesh is changed on, or all nodes where
    /// etcd is put back.
    pub fn touched(&self) -> Vec<Machine> {
        match &self.action {
            Action::Mesh { mesh } => {
                let touched = mesh.members.iter();
                let touched = touched.filter(|member| mesh.to.contains(&member.machine.id));
                touched.map(|member| member.machine.clone()).collect()
            }
            Action::Restore { restoring } => restoring.nodes.clone(),
            Action::Key
            | Action::Create
            | Action::CreateExposed
            | Action::Prepare
            | Action::Equip { .. }
            | Action::Balance { .. }
            | Action::Name { .. }
            | Action::Expose
            | Action::Shut
            | Action::Init { .. }
            | Action::Join { .. }
            | Action::Install { .. }
            | Action::Tend { .. }
            | Action::Drain
            | Action::Upgrade { .. }
            | Action::Renew { .. }
            | Action::Uncordon
            | Action::Readmit { .. }
            | Action::Leave
            | Action::Clear { .. }
            | Action::Snapshot { .. }
            | Action::Delete
            | Action::Release => vec![self.machine.clone()],
        }
    }
}

/// What a task does to its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// Make the key that opens the cluster's machines, before the first of them is made.
    Key,
    /// Have the provider make the machine, and wait until it answers.
    Create,
    /// The same, with the port of the API open to the world from the start.
    CreateExposed,
    /// Take a given machine into use: it answers and is clean.
    Prepare,
    /// Bring a host to what its purpose needs: packages, settings, services, a key for the mesh.
    Equip {
        /// What it is made ready for.
        recipe: Recipe,
    },
    /// Connect the machines of the cluster with each other, all that need it at once.
    Mesh {
        /// The mesh as it should be.
        mesh: Mesh,
    },
    /// Listen, and send what comes to the targets.
    Balance {
        /// To what, and where.
        balance: Balance,
    },
    /// Have names of DNS lead to it, and no others.
    Name {
        /// Which names, and where it answers.
        naming: Naming,
    },
    /// Have the provider let the world reach the API on it.
    Expose,
    /// Have the provider keep the world from the API on it.
    Shut,
    /// Start the first control plane of the cluster on it.
    Init {
        /// Which Kubernetes.
        version: Version,
        /// The cluster's private network.
        network: Network,
        /// What its node carries.
        #[serde(default)]
        care: Care,
    },
    /// Join it to the running cluster, in its role.
    Join {
        /// Which Kubernetes.
        version: Version,
        /// What its node carries, and where it finds the API.
        #[serde(default)]
        care: Care,
        /// Whether it takes no workloads until its gates have let it pass: it comes in place of
        /// another.
        #[serde(default, skip_serializing_if = "is_false")]
        gated: bool,
    },
    /// Have the node carry what it should, and find the API where it is.
    Tend {
        /// What it carries, and where that is.
        care: Care,
    },
    /// Have the cluster have these add-ons as they should be, and not have others; by the API, from
    /// this machine on.
    Install {
        /// What is not there yet, or not as it should be.
        addons: Vec<Addon>,
        /// What is there and should not be.
        remove: Vec<AddonName>,
    },
    /// Move workloads off the node and keep new ones away.
    Drain,
    /// Change the node to another version of Kubernetes, in place.
    Upgrade {
        /// Which Kubernetes.
        version: Version,
    },
    /// Make the certificates of a member of the control plane anew, and have them used.
    Renew {
        /// The day on which the first of them was seen to end: later ones were made since.
        end: Timestamp,
    },
    /// Let workloads come to the node again.
    Uncordon,
    /// The same, when its gates have passed.
    Readmit {
        /// All of them must, one after the other.
        gates: Vec<Gate>,
    },
    /// Take the node out of the cluster, with its etcd member where it has one.
    Leave,
    /// Take nodes out of the cluster that are left of machines it does not have, with their etcd
    /// members where they have any; by the API, from this machine on.
    Clear {
        /// Which.
        leftovers: Vec<Leftover>,
    },
    /// Save what the member of etcd on it knows.
    Snapshot {
        /// For what, and where it goes.
        taking: Taking,
    },
    /// Put a snapshot back on all members of etcd.
    Restore {
        /// Which one, and where.
        restoring: Restoring,
    },
    /// Have the provider destroy the machine and its disk.
    Delete,
    /// Give a given machine back, clean.
    Release,
}

/// The kind of an [`Action`], without its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is the action of the same name")]
pub enum Kind {
    Key,
    Create,
    Prepare,
    Equip,
    Mesh,
    Balance,
    Name,
    Expose,
    Shut,
    Init,
    Join,
    Install,
    Tend,
    Drain,
    Upgrade,
    Renew,
    Uncordon,
    Leave,
    Clear,
    Snapshot,
    Restore,
    Delete,
    Release,
}

/// What a task means for what runs on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Something new comes; nothing that runs is touched.
    Create,
    /// A running node changes and keeps its machine and its disk.
    InPlace,
    /// Workloads move elsewhere.
    Disturb,
    /// The machine and what its disk holds are gone for good.
    DataLoss,
}

/// What it means that a worker vanished in the middle of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLost {
    /// Doing it again does no harm.
    Rerun,
    /// Look first: the effect may be there already.
    Verify,
    /// Nobody but a person can tell.
    Ask,
}

impl Action {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Key => Kind::Key,
            Self::Create | Self::CreateExposed => Kind::Create,
            Self::Prepare => Kind::Prepare,
            Self::Equip { .. } => Kind::Equip,
            Self::Mesh { .. } => Kind::Mesh,
            Self::Balance { .. } => Kind::Balance,
            Self::Name { .. } => Kind::Name,
            Self::Expose => Kind::Expose,
            Self::Shut => Kind::Shut,
            Self::Init { .. } => Kind::Init,
            Self::Join { .. } => Kind::Join,
            Self::Install { .. } => Kind::Install,
            Self::Tend { .. } => Kind::Tend,
            Self::Drain => Kind::Drain,
            Self::Upgrade { .. } => Kind::Upgrade,
            Self::Renew { .. } => Kind::Renew,
            Self::Uncordon | Self::Readmit { .. } => Kind::Uncordon,
            Self::Leave => Kind::Leave,
            Self::Clear { .. } => Kind::Clear,
            Self::Snapshot { .. } => Kind::Snapshot,
            Self::Restore { .. } => Kind::Restore,
            Self::Delete => Kind::Delete,
            Self::Release => Kind::Release,
        }
    }
}

impl Action {
    /// The secrets that it names itself, whatever machine it is about: those that open where
    /// snapshots are kept.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        let place = match self {
            Self::Snapshot { taking } => Some(&taking.to),
            Self::Restore { restoring } => Some(&restoring.from),
            Self::Key
            | Self::Create
            | Self::CreateExposed
            | Self::Prepare
            | Self::Equip { .. }
            | Self::Mesh { .. }
            | Self::Balance { .. }
            | Self::Name { .. }
            | Self::Expose
            | Self::Shut
            | Self::Init { .. }
            | Self::Join { .. }
            | Self::Install { .. }
            | Self::Tend { .. }
            | Self::Drain
            | Self::Upgrade { .. }
            | Self::Renew { .. }
            | Self::Readmit { .. }
            | Self::Uncordon
            | Self::Leave
            | Self::Clear { .. }
            | Self::Delete
            | Self::Release => None,
        };
        place.into_iter().flat_map(Destination::secrets)
    }

    /// The secrets without which it should not be begun on a machine of this origin.
    pub fn needs(&self, origin: &Origin) -> impl Iterator<Item = SecretRef> {
        let mut own: Vec<_> = self.secrets().cloned().collect();
        if let Self::Name { naming } = self {
            own.extend(naming.secrets());
        }
        origin.secrets_for(self.kind()).chain(own)
    }

    /// The version that the node runs afterwards, where the action decides it.
    pub const fn version(&self) -> Option<Version> {
        match self {
            Self::Init { version, .. } | Self::Join { version, .. } | Self::Upgrade { version } => {
                Some(*version)
            }
            Self::Key
            | Self::Create
            | Self::CreateExposed
            | Self::Prepare
            | Self::Equip { .. }
            | Self::Mesh { .. }
            | Self::Balance { .. }
            | Self::Name { .. }
            | Self::Expose
            | Self::Shut
            | Self::Install { .. }
            | Self::Tend { .. }
            | Self::Drain
            | Self::Renew { .. }
            | Self::Uncordon
            | Self::Readmit { .. }
            | Self::Leave
            | Self::Clear { .. }
            | Self::Snapshot { .. }
            | Self::Restore { .. }
            | Self::Delete
            | Self::Release => None,
        }
    }

    /// What a node is told by it, where it is told anything.
    pub const fn care(&self) -> Option<&Care> {
        match self {
            Self::Init { care, .. } | Self::Join { care, .. } | Self::Tend { care } => Some(care),
            Self::Key
            | Self::Create
            | Self::CreateExposed
            | Self::Prepare
            | Self::Equip { .. }
            | Self::Mesh { .. }
            | Self::Balance { .. }
            | Self::Name { .. }
            | Self::Expose
            | Self::Shut
            | Self::Install { .. }
            | Self::Drain
            | Self::Upgrade { .. }
            | Self::Renew { .. }
            | Self::Uncordon
            | Self::Readmit { .. }
            | Self::Leave
            | Self::Clear { .. }
            | Self::Snapshot { .. }
            | Self::Restore { .. }
            | Self::Delete
            | Self::Release => None,
        }
    }
}

impl Kind {
    /// Every kind, in the order of a machine's life.
    pub const ALL: [Self; 23] = [
        Self::Key,
        Self::Create,
        Self::Prepare,
        Self::Equip,
        Self::Mesh,
        Self::Balance,
        Self::Name,
        Self::Expose,
        Self::Shut,
        Self::Init,
        Self::Join,
        Self::Install,
        Self::Tend,
        Self::Drain,
        Self::Upgrade,
        Self::Renew,
        Self::Uncordon,
        Self::Leave,
        Self::Clear,
        Self::Snapshot,
        Self::Restore,
        Self::Delete,
        Self::Release,
    ];

    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Create => "create",
            Self::Prepare => "prepare",
            Self::Equip => "equip",
            Self::Mesh => "mesh",
            Self::Balance => "balance",
            Self::Name => "name",
            Self::Expose => "expose",
            Self::Shut => "shut",
            Self::Init => "init",
            Self::Join => "join",
            Self::Install => "install",
            Self::Tend => "tend",
            Self::Drain => "drain",
            Self::Upgrade => "upgrade",
            Self::Renew => "renew",
            Self::Uncordon => "uncordon",
            Self::Leave => "leave",
            Self::Clear => "clear",
            Self::Snapshot => "snapshot",
            Self::Restore => "restore",
            Self::Delete => "delete",
            Self::Release => "release",
        }
    }

    /// Whether it is done by Kubernetes, or to it.
    pub const fn of_kubernetes(self) -> bool {
        match self {
            Self::Init
            | Self::Join
            | Self::Install
            | Self::Tend
            | Self::Drain
            | Self::Upgrade
            | Self::Renew
            | Self::Uncordon
            | Self::Leave
            | Self::Clear
            | Self::Snapshot
            | Self::Restore => true,
            Self::Key
            | Self::Create
            | Self::Prepare
            | Self::Equip
            | Self::Mesh
            | Self::Balance
            | Self::Name
            | Self::Expose
            | Self::Shut
            | Self::Delete
            | Self::Release => false,
        }
    }

    /// What it means for what runs on the machine.
    pub const fn effect(self) -> Effect {
        match self {
            Self::Key | Self::Create | Self::Prepare | Self::Init | Self::Join | Self::Snapshot => {
                Effect::Create
            }
            Self::Equip
            | Self::Mesh
            | Self::Balance
            | Self::Name
            | Self::Expose
            | Self::Shut
            | Self::Install
            | Self::Tend
            | Self::Upgrade
            | Self::Renew
            | Self::Uncordon
            | Self::Clear => Effect::InPlace,
            Self::Drain | Self::Leave | Self::Release => Effect::Disturb,
            Self::Delete | Self::Restore => Effect::DataLoss,
        }
    }

    /// What a lost attempt means.
    ///
    /// Making a machine costs money and starting a control plane twice splits a cluster,
    /// so these two look before they act again.
    pub const fn on_lost(self) -> OnLost {
        match self {
            Self::Create | Self::Init => OnLost::Verify,
            Self::Key
            | Self::Prepare
            | Self::Equip
            | Self::Mesh
            | Self::Balance
            | Self::Name
            | Self::Expose
            | Self::Shut
            | Self::Join
            | Self::Install
            | Self::Tend
            | Self::Drain
            | Self::Upgrade
            | Self::Renew
            | Self::Uncordon
            | Self::Leave
            | Self::Clear
            | Self::Snapshot
            | Self::Restore
            | Self::Delete
            | Self::Release => OnLost::Rerun,
        }
    }
}

impl Effect {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::InPlace => "in place",
            Self::Disturb => "disturb",
            Self::DataLoss => "data loss",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Waits for a worker, or for its next attempt to be due.
    Waiting,
    /// A worker holds its lease.
    Running,
    /// Will not work until something changes.
    Stuck,
    /// The world is as it asked.
    Done,
    /// Nobody wants it any more.
    Withdrawn,
}

impl State {
    /// The word of the public contract and of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Stuck => "stuck",
            Self::Done => "done",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether the task may still change the world.
    pub const fn open(self) -> bool {
        match self {
            Self::Waiting | Self::Running | Self::Stuck => true,
            Self::Done | Self::Withdrawn => false,
        }
    }
}

impl std::str::FromStr for State {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [
            Self::Waiting,
            Self::Running,
            Self::Stuck,
            Self::Done,
            Self::Withdrawn,
        ]
        .into_iter()
        .find(|state| state.as_str() == text)
        .ok_or(())
    }
}

/// A task that is not finished, as the planner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Which task.
    pub id: TaskId,
    /// The machine it touches.
    pub machine: MachineId,
    /// What it does, whole: a changed wish makes it another task.
    pub action: Action,
    /// How its machine was to be entered when it was begun: so does another way.
    pub origin: Origin,
    /// The members of the control plane by which it was to reach the API.
    pub through: Vec<MachineId>,
    /// Where it stands: waiting, running or stuck.
    pub state: State,
    /// How many attempts were begun.
    pub attempts: u32,
    /// When the next attempt is due.
    pub not_before: Timestamp,
    /// How the last attempt ended, when it did not end well.
    pub error: Option<String>,
    /// Whether a secret that its machine names was set since the last attempt was due: what
    /// failed for want of the right one may work now.
    pub corrected: bool,
}
