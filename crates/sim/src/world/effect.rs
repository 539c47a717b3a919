//! What can happen in the simulated world: the lines of its journal.

use super::kit::{End, Passing, ends};
use model::addon::{Addon, AddonName};
use model::care::Care;
use model::cluster::{Machine, Origin, Role};
use model::dns::Naming;
use model::host::Fingerprint;
use model::id::{ClusterId, MachineId, TaskId};
use model::name::Name;
use model::snapshot::{RestoredFact, Taking};
use model::stray::Leftover;
use model::task::{Action, Kind, Task};
use model::templates::{Commit, Reference};
use model::time::Timestamp;
use model::version::Version;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// One thing that happened. The state of the world is nothing but these, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Effect {
    /// The provider accepted an order and made a new machine, whatever there was before.
    Order {
        /// The provider's own number for it.
        vm: u64,
        /// Whose order.
        by: Bearer,
        /// Where it will answer.
        address: Ipv4Addr,
        /// From when on it answers.
        boots_at: Timestamp,
        /// Whether it is a host that somebody enters.
        #[serde(default, skip_serializing_if = "is_false")]
        host: bool,
        /// Whether the world reaches the API on it, where a firewall stands before that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<bool>,
    },
    /// Somebody has the key made that opens the machines of a cluster.
    Key {
        /// Of which cluster.
        cluster: ClusterId,
        /// Its public half.
        public: String,
        /// From when on it is there.
        from: Timestamp,
    },
    /// A machine that another driver made is there from now on, to carry a node.
    Lend {
        /// Where.
        on: Computer,
        /// Whose.
        by: Bearer,
        /// Its address in its cluster's network.
        address: Ipv4Addr,
    },
    /// Such a machine is there no more.
    TakeBack {
        /// Which machine.
        machine: MachineId,
    },
    /// A change of a machine began; it takes effect when its time has come.
    Begin {
        /// Which change.
        operation: u64,
        /// What is changed.
        of: Operation,
    },
    /// Nobody drives a change any more, and it stays half done.
    LetGo {
        /// Which change.
        operation: u64,
    },
    /// Somebody switched a machine off or on.
    Power {
        /// Which machine.
        computer: Computer,
        /// Whether it has power from now on.
        on: bool,
    },
    /// Somebody destroyed a machine that the provider made, by hand.
    Vanish {
        /// The provider's own number for it.
        vm: u64,
    },
    /// A node is there from now on that is none of anybody's machines: of one that is none any more,
    /// where that is known.
    Stray {
        /// In which cluster.
        cluster: ClusterId,
        /// What it is called.
        node: Name,
        /// The machine that it is left of; nothing where somebody else has joined it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<MachineId>,
    },
    /// The provider stopped selling a server type, or sells it again.
    Offer {
        /// Which server type.
        server_type: String,
        /// Whether it is sold from now on.
        offered: bool,
    },
    /// What a gate asks for began to fail, or was mended.
    Gate {
        /// Which gate.
        gate: Name,
        /// Whether it lets nodes pass from now on.
        open: bool,
    },
    /// Somebody moved a tag or a branch of a repository.
    Lead {
        /// Which.
        reference: Reference,
        /// Where it leads from now on.
        commit: Commit,
    },
    /// A repository stopped answering, or answers again.
    Repository {
        /// Which.
        repository: String,
        /// Whether it answers from now on.
        answers: bool,
    },
    /// Time that nobody has passed: the certificates of a control plane end on this day.
    Age {
        /// Of which cluster.
        cluster: ClusterId,
        /// When they end.
        end: Timestamp,
    },
    /// Somebody said that a cluster is to go as a whole.
    Condemn {
        /// Which cluster.
        cluster: ClusterId,
    },
    /// Somebody wants the rules about clusters to be watched.
    Watch,
}

/// Who a machine is for, as its label says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bearer {
    /// Which machine.
    pub(crate) machine: MachineId,
    /// What people call it.
    pub(crate) name: Name,
    /// Of which cluster.
    pub(crate) cluster: ClusterId,
}

/// A computer: one that the provider made, or one that was always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Computer {
    /// Made by the provider.
    Vm(u64),
    /// Given, at its address.
    Host(Ipv4Addr),
}

impl Computer {
    /// The name that the provider, or the address, gives it.
    pub(crate) fn reference(self) -> String {
        match self {
            Self::Vm(number) => format!("vm-{number:06}"),
            Self::Host(address) => format!("host-{address}"),
        }
    }
}

/// A change that takes time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Operation {
    /// Whose machine.
    pub(crate) by: Bearer,
    /// What it does in the cluster.
    pub(crate) role: Role,
    /// The computer it happens on, or that carries the node.
    pub(crate) on: Computer,
    /// What happens.
    pub(crate) change: Change,
    /// When it takes effect.
    pub(crate) until: Timestamp,
    /// Whether the machine is a host that somebody enters.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) host: bool,
}

/// What happens to a machine or its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Change {
    /// A given host is taken into use.
    Prepare,
    /// A host is brought to what its purpose needs.
    Equip { recipe: Fingerprint },
    /// Hosts are connected with each other.
    Mesh { ends: Vec<End> },
    /// A load balancer is told what to do.
    Balance { passing: Passing },
    /// Names lead to a machine from now on, and no others.
    Name { naming: Naming },
    /// The provider lets the world reach the API on a machine.
    Expose,
    /// The provider keeps the world from it.
    Shut,
    /// A control plane is started.
    Init {
        version: Version,
        #[serde(default)]
        told: Told,
    },
    /// A node joins.
    Join {
        version: Version,
        #[serde(default)]
        told: Told,
        /// Whether it takes no workloads before its gates have let it pass.
        #[serde(default, skip_serializing_if = "is_false")]
        gated: bool,
    },
    /// Add-ons come and go.
    Install {
        addons: Vec<Addon>,
        remove: Vec<AddonName>,
    },
    /// A node is told what to carry, and where the API is.
    Tend { told: Told },
    /// Workloads move away.
    Drain,
    /// Another version is installed.
    Upgrade { version: Version },
    /// Certificates are made anew.
    Renew { end: Timestamp },
    /// Workloads may come again.
    Uncordon,
    /// A node is taken out of its cluster.
    Leave,
    /// Nodes that are left of machines are taken out of it.
    Clear { leftovers: Vec<Leftover> },
    /// A member of etcd is saved.
    Snapshot { task: TaskId, taking: Taking },
    /// A snapshot is put back on all members of etcd.
    Restore { restored: RestoredFact },
    /// The provider destroys the machine.
    Delete,
    /// A given host is cleaned.
    Release,
}

/// What a node was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// What it carries; nothing that anybody here knows of where it was told elsewhere.
    pub(crate) care: Option<Fingerprint>,
    /// Where it finds the API, if not on itself and as far as anybody here knows.
    pub(crate) api: Vec<Ipv4Addr>,
}

impl Told {
    pub(crate) fn of(care: &Care) -> Self {
        Self {
            care: Some(care.fingerprint()),
            api: care.api.clone(),
        }
    }
}

impl Change {
    /// The change that a task asks for; making a machine or a key is an order, not a change.
    pub(crate) fn of(task: &Task) -> Option<Self> {
        Some(match &task.action {
            Action::Key | Action::Create | Action::CreateExposed => return None,
            Action::Prepare => Self::Prepare,
            Action::Equip { recipe } => Self::Equip {
                recipe: recipe.fingerprint(),
            },
            Action::Mesh { mesh } => Self::Mesh { ends: ends(mesh) },
            Action::Balance { balance } => Self::Balance {
                passing: Passing::of(balance),
            },
            Action::Name { naming } => Self::Name {
                naming: naming.clone(),
            },
            Action::Expose => Self::Expose,
            Action::Shut => Self::Shut,
            Action::Init {
                version,
                network: _,
                care,
            } => Self::Init {
                version: *version,
                told: Told::of(care),
            },
            Action::Join {
                version,
                care,
                gated,
            } => Self::Join {
                version: *version,
                told: Told::of(care),
                gated: *gated,
            },
            Action::Install { addons, remove } => Self::Install {
                addons: addons.clone(),
                remove: remove.clone(),
            },
            Action::Tend { care } => Self::Tend {
                told: Told::of(care),
            },
            Action::Drain => Self::Drain,
            Action::Upgrade { version } => Self::Upgrade { version: *version },
            Action::Renew { end } => Self::Renew { end: *end },
            Action::Uncordon | Action::Readmit { .. } => Self::Uncordon,
            Action::Leave => Self::Leave,
            Action::Clear { leftovers } => Self::Clear {
                leftovers: leftovers.clone(),
            },
            Action::Snapshot { taking } => Self::Snapshot {
                task: task.id,
                taking: taking.clone(),
            },
            Action::Restore { restoring } => Self::Restore {
                restored: RestoredFact {
                    snapshot: restoring.snapshot.clone(),
                    wish: restoring.wish,
                },
            },
            Action::Delete => Self::Delete,
            Action::Release => Self::Release,
        })
    }

    /// The kind of task that asks for it.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
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
            Self::Uncordon => Kind::Uncordon,
            Self::Leave => Kind::Leave,
            Self::Clear { .. } => Kind::Clear,
            Self::Snapshot { .. } => Kind::Snapshot,
            Self::Restore { .. } => Kind::Restore,
            Self::Delete => Kind::Delete,
            Self::Release => Kind::Release,
        }
    }

    /// Whether it happens on the machine itself, which must answer until the end. A mesh is
    /// told to many: who does not answer then misses it.
    pub(crate) const fn on_the_machine(&self) -> bool {
        match self {
            Self::Prepare
            | Self::Equip { .. }
            | Self::Balance { .. }
            | Self::Init { .. }
            | Self::Join { .. }
            | Self::Tend { .. }
            | Self::Upgrade { .. }
            | Self::Snapshot { .. }
            | Self::Restore { .. }
            | Self::Renew { .. }
            | Self::Release => true,
            Self::Mesh { .. }
            | Self::Name { .. }
            | Self::Expose
            | Self::Shut
            | Self::Install { .. }
            | Self::Drain
            | Self::Uncordon
            | Self::Leave
            | Self::Clear { .. }
            | Self::Delete => false,
        }
    }
}

/// Who a task's machine is for.
pub(crate) fn bearer(task: &Task) -> Bearer {
    Bearer {
        machine: task.machine.id,
        name: task.machine.name.clone(),
        cluster: task.cluster,
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes what it asks about by reference"
)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The address of a machine that was given.
pub(crate) const fn endpoint(machine: &Machine) -> Option<Ipv4Addr> {
    match &machine.origin {
        Origin::Given { endpoint, .. } => Some(*endpoint),
        Origin::Made { .. } => None,
    }
}
