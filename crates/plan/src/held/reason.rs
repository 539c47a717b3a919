//! Why work waits, and who can end that.

use model::addon::AddonName;
use model::id::{MachineId, TaskId};
use model::name::Name;
use model::secret::{EntryName, SecretRef};
use model::task::Kind;
use model::time::Timestamp;
use model::version::Version;
use serde::{Deserialize, Serialize};

/// Why work waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reason {
    /// As many machines as may be are out of service already.
    Budget {
        /// Whose budget is spent.
        #[serde(default)]
        scope: Scope,
        /// One that is out of service; where it is in another cluster, with that cluster.
        by: String,
        /// How many are.
        unavailable: u32,
        /// How many may be.
        budget: u32,
    },
    /// Fewer members of the control plane would be left than etcd needs.
    Quorum {
        /// How many others are ready.
        ready: u32,
        /// How many others must be.
        needed: u32,
        /// How many members do not answer: only a person can bring them back.
        silent: u32,
        /// How many members are counted on whose machines are gone.
        #[serde(default)]
        gone: u32,
    },
    /// Machines still have to come before others may go.
    Additions {
        /// One that is not ready yet.
        waiting_for: Name,
        /// How many are not.
        missing: u32,
    },
    /// The control plane goes first.
    ControlPlane {
        /// The member that is waited for.
        waiting_for: Name,
    },
    /// One after the other.
    Turn {
        /// The machine whose turn it is.
        after: Name,
    },
    /// The last attempt failed; another is due.
    Backoff {
        /// Which task.
        task: TaskId,
        /// How many attempts were made.
        attempts: u32,
        /// When the next one is due.
        due: Timestamp,
        /// How the last one ended.
        error: String,
    },
    /// It will not work until something changes.
    Stuck {
        /// Which task.
        task: TaskId,
        /// How the last attempt ended, with what it waits for.
        error: String,
    },
    /// It ended well again and again, and nothing is as it was to become.
    Vain {
        /// How often.
        times: u32,
        /// When it is tried once more.
        due: Timestamp,
    },
    /// Somebody asked that it be left alone.
    Cancelled {
        /// Who.
        by: String,
    },
    /// Somebody asked that nothing new be begun.
    Paused {
        /// Who.
        by: String,
    },
    /// The checker found that the plan would break a rule.
    Stopped {
        /// Which rule.
        rule: String,
    },
    /// Every member of the control plane is gone; nothing can join or leave.
    ControlPlaneLost,
    /// An earlier task on this machine is still running.
    Running {
        /// What is running.
        kind: Kind,
    },
    /// The machine exists and does not answer.
    Unreachable,
    /// The machine answers, and not as it should.
    Unusable {
        /// What is wrong with it.
        because: String,
    },
    /// The node has joined and is not ready.
    NotReady,
    /// The same, and it is known what is wrong.
    Sick {
        /// What its kubelet says.
        because: String,
    },
    /// An add-on is there as it should be, and does not do its work.
    Unwell {
        /// Which.
        addon: AddonName,
        /// What is wrong with it.
        because: String,
    },
    /// Somebody else holds what it needs.
    Claimed {
        /// What is needed: an address, a slot.
        thing: String,
        /// Who holds it.
        by: String,
        /// Whether that one is going, and gives it back by itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        goes: bool,
    },
    /// Machines are taken out of service only within the cluster's windows.
    Window {
        /// When the next one opens.
        opens: Timestamp,
    },
    /// Somebody locked the node: it is not to be taken out of service.
    Locked {
        /// The label that says so.
        label: String,
    },
    /// Etcd is saved before the first node is upgraded.
    Snapshot {
        /// To which version.
        before: Version,
    },
    /// Nobody has set the secret that it needs.
    Secret {
        /// Which secret.
        name: Name,
        /// Which of its entries, where one is meant.
        key: Option<EntryName>,
    },
    /// It tells the mesh key of another machine, and is left out of the mesh.
    SameKey {
        /// The one that is a member by this key.
        other: Name,
        /// Whether it was given to us, so that there is no other to put in its place.
        given: bool,
    },
    /// It does not serve, and another is to take its place.
    Repair {
        /// What is wrong with it.
        because: String,
        /// When another comes, unless it serves by then.
        due: Timestamp,
    },
    /// It goes when another that is made in the new way serves.
    Successor {
        /// Which comes.
        after: Name,
    },
    /// Machines made in the new way failed and were taken back; it serves on.
    TakenBack {
        /// How often.
        times: u32,
        /// When the next try is due.
        due: Timestamp,
        /// What went wrong last.
        error: String,
    },
    /// A node is left of a machine that the cluster does not have, and may be of use to somebody.
    Leftover {
        /// Which node.
        node: String,
        /// Of which machine.
        of: MachineId,
        /// Whether it is still heard.
        heard: bool,
        /// What ends the wait.
        ends: Ends,
    },
    /// A node that is left of another machine has its name.
    Namesake {
        /// Of which machine.
        of: MachineId,
    },
    /// A load balancer should have a name, and nobody here can give it one.
    Unnamed {
        /// The whole name.
        name: String,
        /// The type of the provider that answers for it.
        provider: String,
    },
    /// Nobody knows what it would be made from.
    Modules {
        /// The tag or the branch that was to be looked up.
        reference: String,
        /// What was said, where somebody has looked.
        because: Option<String>,
        /// Whether looking again will not help.
        lasting: bool,
    },
    /// Newer modules would have others take the place of machines with data, and nobody has agreed to that.
    Data {
        /// What would go with each.
        kept: String,
        /// Which newer ones there are, as a clause.
        modules: String,
        /// The pool, with its cluster: `edge/muscle`.
        pool: String,
    },
    /// Nobody here can do it, and it is known before anybody is asked.
    Unable {
        /// Why.
        because: String,
        /// What a person does about it.
        next: String,
    },
    /// Nobody has discovered the machines that a pool should take.
    Unmatched {
        /// Which labels they should have.
        selector: String,
    },
    /// The project has all that it may have.
    Quota {
        /// Of what: `machines`, `clusters`.
        what: String,
        /// How many there are.
        used: u32,
        /// How many there may be.
        limit: u32,
    },
}

/// When a node is cleared that is left of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ends {
    /// When nothing is heard of it any more: its machine is known to be gone.
    Silence,
    /// Then, unless it is heard by then.
    Due(Timestamp),
    /// When etcd has told whether it counts on it, or somebody has taken it out: as far as anybody knows
    /// the others cannot decide without it.
    Told,
    /// When somebody does so.
    Person,
}

/// Whose budget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The cluster's own.
    #[default]
    Cluster,
    /// That of the members of the control plane: one, whatever is declared.
    ControlPlane,
    /// That of one of its pools.
    Pool(Name),
    /// That of a group, which other clusters may be part of.
    Group(Name),
}

/// Who can end a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// It ends by itself.
    Slipway,
    /// Somebody must act.
    Person,
}

impl From<SecretRef> for Reason {
    fn from(missing: SecretRef) -> Self {
        let SecretRef { name, key } = missing;
        Self::Secret { name, key }
    }
}

impl Reason {
    /// Who can end the wait.
    pub const fn owner(&self) -> Owner {
        match self {
            Self::Budget { .. }
            | Self::Quorum {
                silent: 0, gone: 0, ..
            }
            | Self::Additions { .. }
            | Self::ControlPlane { .. }
            | Self::Turn { .. }
            | Self::Backoff { .. }
            | Self::Running { .. }
            | Self::NotReady
            | Self::Sick { .. }
            | Self::Unwell { .. }
            | Self::Claimed { goes: true, .. }
            | Self::Snapshot { .. }
            | Self::Repair { .. }
            | Self::Successor { .. }
            | Self::TakenBack { .. }
            | Self::Modules { lasting: false, .. }
            | Self::Namesake { .. }
            | Self::Leftover {
                ends: Ends::Silence | Ends::Due(_),
                ..
            }
            | Self::Window { .. } => Owner::Slipway,
            Self::Stuck { .. }
            | Self::Vain { .. }
            | Self::Quorum { .. }
            | Self::Modules { .. }
            | Self::Claimed { .. }
            | Self::Secret { .. }
            | Self::SameKey { .. }
            | Self::Locked { .. }
            | Self::Quota { .. }
            | Self::Unnamed { .. }
            | Self::Unable { .. }
            | Self::Data { .. }
            | Self::Unmatched { .. }
            | Self::Leftover { .. }
            | Self::Unreachable
            | Self::Unusable { .. }
            | Self::Cancelled { .. }
            | Self::Paused { .. }
            | Self::Stopped { .. }
            | Self::ControlPlaneLost => Owner::Person,
        }
    }

    /// A word for metrics and filters.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Budget { .. } => "budget",
            Self::Quorum { .. } => "quorum",
            Self::Additions { .. } => "additions",
            Self::ControlPlane { .. } => "control-plane",
            Self::Turn { .. } => "turn",
            Self::Backoff { .. } => "backoff",
            Self::Stuck { .. } => "stuck",
            Self::Vain { .. } => "vain",
            Self::Cancelled { .. } => "cancelled",
            Self::Paused { .. } => "paused",
            Self::Stopped { .. } => "stopped",
            Self::ControlPlaneLost => "control-plane-lost",
            Self::Running { .. } => "running",
            Self::Unreachable => "unreachable",
            Self::Unusable { .. } => "unusable",
            Self::NotReady | Self::Sick { .. } => "not-ready",
            Self::Unwell { .. } => "unwell",
            Self::Claimed { .. } => "claimed",
            Self::Window { .. } => "window",
            Self::Locked { .. } => "locked",
            Self::Snapshot { .. } => "snapshot",
            Self::Secret { .. } => "secret",
            Self::SameKey { .. } => "same-key",
            Self::Repair { .. } => "repair",
            Self::Successor { .. } => "successor",
            Self::TakenBack { .. } => "taken-back",
            Self::Quota { .. } => "quota",
            Self::Leftover { .. } => "leftover",
            Self::Namesake { .. } => "namesake",
            Self::Unnamed { .. } => "unnamed",
            Self::Unable { .. } => "unable",
            Self::Modules { .. } => "modules",
            Self::Data { .. } => "data",
            Self::Unmatched { .. } => "unmatched",
        }
    }

    /// When a window opens that the work waits for.
    pub(crate) const fn opens(&self) -> Option<Timestamp> {
        if let Self::Window { opens } = self {
            Some(*opens)
        } else {
            None
        }
    }

    /// When the pause is over after which it is tried again.
    pub(crate) const fn paused_until(&self) -> Option<Timestamp> {
        if let Self::TakenBack { due, .. } = self {
            Some(*due)
        } else {
            None
        }
    }

    /// Whether it says that machines of members are gone without which etcd cannot decide now.
    pub(crate) const fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::ControlPlaneLost | Self::Quorum { gone: 1.., .. }
        )
    }

    /// Whether it keeps one machine waiting and says nothing of the next: another pool or
    /// group may have room, another node may not be locked.
    pub(crate) const fn is_local(&self) -> bool {
        matches!(
            self,
            Self::Locked { .. }
                | Self::Budget {
                    scope: Scope::Pool(_) | Scope::Group(_),
                    ..
                }
        )
    }
}
