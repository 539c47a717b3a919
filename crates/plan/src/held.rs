//! Work that waits, always with an owner, a reason and a next action.

use model::addon::AddonName;
use model::id::{MachineId, TaskId};
use model::name::Name;
use model::secret::{EntryName, SecretRef};
use model::task::Kind;
use model::time::Timestamp;
use model::version::Version;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Work the planner would like to begin but must not begin yet.
///
/// Many machines that wait for the same reason are one `Held`: a thousand nodes that
/// wait for their turn are one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What would be done.
    pub kind: Kind,
    /// The first machine it would be done to.
    pub machine: Name,
    /// How many machines wait for this reason, the first included.
    pub machines: u32,
    /// Why not now.
    pub reason: Reason,
}

/// Why work waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

/// As it stands behind "2 of 3".
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => Ok(()),
            Self::ControlPlane => f.write_str(" of the control plane"),
            Self::Pool(pool) => write!(f, " of pool {pool}"),
            Self::Group(group) => write!(f, " of group {group}"),
        }
    }
}

impl From<SecretRef> for Reason {
    fn from(missing: SecretRef) -> Self {
        let SecretRef { name, key } = missing;
        Self::Secret { name, key }
    }
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

/// What is left to do with a cluster that nobody can mend.
const ANEW: &str =
    "delete the cluster and create it again (its snapshots of etcd cannot be opened after that)";

impl Reason {
    /// Who can end the wait.
    pub const fn owner(&self) -> Owner {
        match self {
            Self::Budget { .. }
            | Self::Quorum { silent: 0, .. }
            | Self::Additions { .. }
            | Self::ControlPlane { .. }
            | Self::Turn { .. }
            | Self::Backoff { .. }
            | Self::Running { .. }
            | Self::NotReady
            | Self::Sick { .. }
            | Self::Unwell { .. }
            | Self::Claimed { .. }
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
            | Self::Quorum { .. }
            | Self::Modules { .. }
            | Self::Secret { .. }
            | Self::SameKey { .. }
            | Self::Locked { .. }
            | Self::Quota { .. }
            | Self::Unnamed { .. }
            | Self::Unable { .. }
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

    /// What ends the wait of a machine that is to be replaced or left alone, or that nobody has.
    fn next_of_machine(&self, machine: &Name) -> String {
        if let Self::Repair { due, .. } = self {
            format!(
                "another takes its place by itself, {due}, unless it serves by then; \
                 `slipway machine replace {machine}` does so at once"
            )
        } else if let Self::TakenBack { due, .. } = self {
            format!(
                "tries again by itself, {due}; or correct the pool in the manifest, which begins anew"
            )
        } else if let Self::Successor { after } = self {
            format!("continues when {after} serves")
        } else if let Self::Locked { label } = self {
            format!("take the label {label} off node {machine} when it may be taken out of service")
        } else if let Self::Unnamed { name, .. } = self {
            format!(
                "make the record of {name} yourself, and take `dns` of the load balancer out of the manifest"
            )
        } else if let Self::Unable { next, .. } = self {
            next.clone()
        } else if let Self::Modules { lasting, .. } = self {
            let mended = if *lasting {
                "mend what is wrong there, or name other modules in the manifest; "
            } else {
                ""
            };
            format!("{mended}continues by itself when somebody has seen it")
        } else {
            "this build discovers no machines: declare them by their addresses in a static pool, \
             or take the pool out of the manifest"
                .to_owned()
        }
    }

    /// How many are out of service, of how many that may be.
    fn tell_of_budget(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Budget {
            scope,
            by,
            unavailable,
            budget,
        } = self
        else {
            return Ok(());
        };
        if unavailable > budget {
            let may = format!("where {budget} may be ({by})");
            return write!(f, "{unavailable}{scope} are out of service, {may}");
        }
        write!(
            f,
            "{unavailable} of {budget}{scope} already out of service ({by})"
        )
    }

    /// Which node is left of which machine, and why that is not cleared.
    fn tell_of_leftover(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Leftover {
            node,
            of,
            heard,
            ends,
        } = self
        else {
            return Ok(());
        };
        let heard = if *heard { "still heard" } else { "not ready" };
        let told = match ends {
            Ends::Told => "; etcd does not tell whether it counts on it",
            Ends::Silence | Ends::Due(_) | Ends::Person => "",
        };
        write!(
            f,
            "node {node} is {heard}, and left of {of}, which is no machine of the cluster{told}"
        )
    }

    /// Why a machine is to be replaced, or is not, or is left alone, or is one that nobody has.
    fn tell_of_machine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Repair { because, .. } = self {
            write!(f, "{because}, and is to be replaced")
        } else if let Self::Successor { after } = self {
            write!(f, "goes when {after} serves in its place")
        } else if let Self::Locked { label } = self {
            write!(f, "the node is locked by its label {label}")
        } else if let Self::TakenBack { times, error, .. } = self {
            write!(
                f,
                "stays: its successor was tried {times}× and taken back: {error}"
            )
        } else if let Self::Unnamed { name, provider } = self {
            write!(
                f,
                "{name} is not looked after: nobody here makes records with {provider}"
            )
        } else if let Self::Modules {
            reference, because, ..
        } = self
        {
            match because {
                Some(because) => write!(f, "{reference} was not looked up: {because}"),
                None => write!(f, "nobody has seen yet to which commit {reference} leads"),
            }
        } else if let Self::Unable { because, .. } = self {
            f.write_str(because)
        } else if let Self::Unmatched { selector } = self {
            write!(f, "no machine was discovered that has {selector}")
        } else {
            Ok(())
        }
    }

    fn next_action(&self, machine: &Name) -> String {
        match self {
            Self::Budget { by, .. } => format!("continues when {by} is back in service"),
            Self::Quorum { silent: 0, .. } => {
                "continues when the other members and their etcd are well".to_owned()
            }
            Self::Quorum { .. } => {
                format!(
                    "switch on the control machines that do not answer: without a quorum nobody can \
                     join or leave; if they are lost, {ANEW}"
                )
            }
            Self::Additions { waiting_for, .. } | Self::ControlPlane { waiting_for } => {
                format!("continues when {waiting_for} is ready")
            }
            Self::Turn { after } => format!("continues after {after}"),
            Self::Backoff { .. } => "tries again by itself".to_owned(),
            Self::Stuck { task, .. } => {
                format!(
                    "correct the manifest, or mend the cause and run `slipway task retry {task}`"
                )
            }
            Self::Cancelled { .. } => "withdraw the cancel intent to let it continue".to_owned(),
            Self::Paused { .. } => "withdraw the pause intent to let it continue".to_owned(),
            Self::Stopped { .. } => {
                "another manifest may get past it; this is a defect of Slipway, please report it"
                    .to_owned()
            }
            Self::ControlPlaneLost => ANEW.to_owned(),
            Self::Running { kind } => format!("continues when {kind} has ended"),
            Self::Unreachable => {
                format!(
                    "switch it on; or, if it is lost, take it out of the manifest where it was given, \
                     and run `slipway machine replace {machine}` where Slipway made it"
                )
            }
            Self::Unusable { .. } => {
                "continues by itself when a look at the machine finds it mended".to_owned()
            }
            Self::NotReady | Self::Sick { .. } => format!(
                "continues when the node is ready; `slipway machine replace {machine}` puts another in its place"
            ),
            Self::Unwell { addon, .. } => format!(
                "continues by itself when it is well again; see what its pods say, or take {addon} out of the manifest"
            ),
            Self::Claimed { by, .. } => {
                format!("continues when {by} gives it back; remove it from one of the manifests")
            }
            Self::Window { opens } => format!("begins by itself when the window opens, {opens}"),
            Self::Snapshot { .. } => {
                "continues when etcd was saved; `slipway backup etcd list` shows the snapshots"
                    .to_owned()
            }
            Self::Secret { name, key } => to_set(name, key.as_ref()),
            Self::SameKey { other, given } => part(machine, other, *given),
            Self::Repair { .. }
            | Self::Successor { .. }
            | Self::TakenBack { .. }
            | Self::Locked { .. }
            | Self::Unnamed { .. }
            | Self::Unable { .. }
            | Self::Modules { .. }
            | Self::Unmatched { .. } => self.next_of_machine(machine),
            Self::Leftover { node, ends, .. } => cleared(node, *ends),
            Self::Namesake { .. } => "continues when that node is cleared".to_owned(),
            Self::Quota { what, .. } => format!(
                "remove some {what}, or ask an administrator for more with `slipway project quota`"
            ),
        }
    }
}

/// What sets a secret that is missing.
fn to_set(name: &Name, key: Option<&EntryName>) -> String {
    let key = key.map_or("KEY", EntryName::as_str);
    format!("run `slipway secret set {name} {key}`, or name another in the manifest")
}

/// How a node goes that is left of a machine.
fn cleared(node: &str, ends: Ends) -> String {
    match ends {
        Ends::Silence => {
            "is cleared by itself when Kubernetes hears no more of it: its machine is gone"
                .to_owned()
        }
        Ends::Due(due) => format!("is cleared by itself, {due}, unless it is heard by then"),
        Ends::Told => format!(
            "is cleared by itself when etcd tells of its members; if it never does, have its member removed \
             with `etcdctl member remove`, where it has one, and run `kubectl delete node {node}`"
        ),
        Ends::Person => format!(
            "if nobody needs it, run `kubectl drain {node}` and `kubectl delete node {node}`, and switch \
             its machine off"
        ),
    }
}

/// How one of two machines gets a mesh key of its own.
fn part(machine: &Name, other: &Name, given: bool) -> String {
    if given {
        format!(
            "remove /etc/wireguard/slipway.key on {machine}, which then makes one of its own; \
             if {other} is the copy, do so there"
        )
    } else {
        format!(
            "run `slipway machine replace {machine}`; if {other} is the copy, have that one replaced"
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { .. } => self.tell_of_budget(f),
            Self::Quorum { ready, needed, .. } => {
                write!(f, "other control nodes ready: {ready}, needed: {needed}")
            }
            Self::Additions {
                waiting_for,
                missing,
            } => {
                write!(
                    f,
                    "additions come first: {missing} not ready yet ({waiting_for})"
                )
            }
            Self::ControlPlane { waiting_for } => {
                write!(f, "the control plane comes first ({waiting_for})")
            }
            Self::Turn { after } => write!(f, "one at a time, after {after}"),
            Self::Backoff {
                attempts, error, ..
            } => write!(f, "tried {attempts}×: {error}"),
            Self::Stuck { error, .. } => write!(f, "stuck: {error}"),
            Self::Cancelled { by } => write!(f, "cancelled by {by}"),
            Self::Paused { by } => write!(f, "paused by {by}"),
            Self::Stopped { rule } => write!(f, "stopped by the checker: {rule}"),
            Self::ControlPlaneLost => f.write_str("every member of the control plane is gone"),
            Self::Running { kind } => write!(f, "{kind} is still running"),
            Self::Unreachable => f.write_str("the machine does not answer"),
            Self::Unusable { because } => write!(f, "the machine cannot be used: {because}"),
            Self::NotReady => f.write_str("the node is not ready"),
            Self::Sick { because } => write!(f, "its node is not well: {because} (KUBE-013)"),
            Self::Unwell { addon, because } => write!(f, "{addon} is not well: {because}"),
            // What it is, and which: `address/203.0.113.5`.
            Self::Claimed { thing, by } => {
                write!(f, "{} is held by {by}", thing.replacen('/', " ", 1))
            }
            Self::Window { opens } => write!(f, "waits for its window, which opens {opens}"),
            Self::Snapshot { before } => {
                write!(f, "a snapshot of etcd comes before {before}")
            }
            Self::Secret { name, key: None } => write!(f, "secret {name} is not set"),
            Self::Secret {
                name,
                key: Some(key),
            } => write!(f, "secret {name}/{key} is not set"),
            Self::SameKey { other, .. } => write!(
                f,
                "it tells the mesh key of {other}, and is left out of the mesh"
            ),
            Self::Repair { .. }
            | Self::Successor { .. }
            | Self::TakenBack { .. }
            | Self::Locked { .. }
            | Self::Unnamed { .. }
            | Self::Unable { .. }
            | Self::Modules { .. }
            | Self::Unmatched { .. } => self.tell_of_machine(f),
            Self::Leftover { .. } => self.tell_of_leftover(f),
            Self::Namesake { of } => write!(f, "a node of its name is left of {of}"),
            Self::Quota { what, used, limit } => {
                write!(f, "the project has {used} of at most {limit} {what}")
            }
        }
    }
}

/// How somebody gives up names that nobody makes or takes back.
fn leave_behind(task: TaskId) -> String {
    format!(
        "if nobody answers for the name any more, `slipway task cancel {task}` gives it up, and what \
         leads there stays behind"
    )
}

impl Held {
    /// What ends the wait.
    pub fn next_action(&self) -> String {
        match (&self.reason, self.kind) {
            (Reason::Backoff { task, .. }, Kind::Release) => format!(
                "tries again by itself; if the machine is lost, `slipway task cancel {task}` gives it up uncleaned"
            ),
            (Reason::Backoff { task, .. }, Kind::Name) => {
                format!("tries again by itself; {}", leave_behind(*task))
            }
            (Reason::Stuck { task, .. }, Kind::Name) => {
                let next = self.reason.next_action(&self.machine);
                format!("{next}; {}", leave_behind(*task))
            }
            (Reason::Backoff { task, .. } | Reason::Stuck { task, .. }, Kind::Expose) => {
                let next = self.reason.next_action(&self.machine);
                format!(
                    "{next}; if somebody else opened the port, `slipway task cancel {task}` says so, and \
                     nodes are led there"
                )
            }
            (Reason::Secret { .. }, Kind::Name) => {
                let next = self.reason.next_action(&self.machine);
                format!(
                    "{next}; if nobody has it any more, set any value, and cancel the task that is refused: \
                     the name stays behind"
                )
            }
            (Reason::Stuck { .. }, _) if self.machines > 1 => {
                let next = self.reason.next_action(&self.machine);
                format!("{next}; `slipway get tasks --state stuck` lists those of the others")
            }
            (reason, _) => reason.next_action(&self.machine),
        }
    }
}

/// What people are told of work that waits: machines that are stuck in the same way are one sentence.
pub fn told(held: &[Held]) -> Vec<Held> {
    let mut told: Vec<Held> = Vec::new();
    for held in held {
        let stuck = |other: &&mut Held| match (&other.reason, &held.reason) {
            (Reason::Stuck { error, .. }, Reason::Stuck { error: same, .. }) => {
                other.kind == held.kind && error == same
            }
            _ => false,
        };
        match told.iter_mut().find(stuck) {
            Some(first) => first.machines += held.machines,
            None => told.push(held.clone()),
        }
    }
    told
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.machine)?;
        if self.machines > 1 {
            write!(f, " and {} more", self.machines - 1)?;
        }
        write!(f, ": {}", self.reason)
    }
}
