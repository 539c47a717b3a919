//! What ends a wait, in words.

use super::{Ends, Held, Reason};
use crate::claims::Claim;
use model::id::TaskId;
use model::name::Name;
use model::secret::EntryName;
use model::task::Kind;

/// What is left to do with a cluster that nobody can mend.
const ANEW: &str =
    "delete the cluster and create it again (its snapshots of etcd cannot be opened after that)";

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

impl Reason {
    fn next_action(&self, machine: &Name) -> String {
        match self {
            Self::Budget { by, .. } => format!("continues when {by} is back in service"),
            Self::Quorum { silent, gone, .. } => regained(*silent, *gone),
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
            Self::Vain { due, .. } => format!(
                "look with `slipway doctor` at what keeps it from taking effect, or take back what asks for \
                 it; begins again when anything of the cluster is seen to change, else {due}"
            ),
            Self::Cancelled { .. } => "withdraw the cancel intent to let it continue".to_owned(),
            Self::Paused { .. } => "withdraw the pause intent to let it continue".to_owned(),
            Self::Stopped { .. } => {
                "another manifest may get past it; this is a defect of Slipway, please report it"
                    .to_owned()
            }
            Self::ControlPlaneLost => ANEW.to_owned(),
            Self::Running { kind } => format!("continues when {kind} has ended"),
            Self::Unreachable => switched_on(machine),
            Self::Unusable { .. } => {
                "continues by itself when a look at the machine finds it mended".to_owned()
            }
            Self::NotReady | Self::Sick { .. } => format!(
                "continues when the node is ready; `slipway machine replace {machine}` puts another in its place"
            ),
            Self::Unwell { addon, .. } => format!(
                "continues by itself when it is well again; see what its pods say, or take {addon} out of the manifest"
            ),
            Self::Claimed { by, goes: true, .. } => {
                format!("continues by itself when {by} is gone")
            }
            Self::Claimed { by, .. } if by == Claim::ELSEWHERE => format!(
                "continues when {by} gives it back; name another one, or ask an administrator, who sees all projects"
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
            | Self::Data { .. }
            | Self::Unmatched { .. } => self.next_of_machine(machine),
            Self::Leftover { node, ends, .. } => cleared(node, *ends),
            Self::Namesake { .. } => "continues when that node is cleared".to_owned(),
            Self::Quota { what, .. } => format!(
                "remove some {what}, or ask an administrator for more with `slipway project quota`"
            ),
        }
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
        } else if let Self::Data { pool, .. } = self {
            format!(
                "move what is on it, then run `slipway pool update {pool}`; or say replace: true of the pool, \
                 and windows do so"
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
}

/// What brings back a machine that does not answer, or another.
fn switched_on(machine: &Name) -> String {
    format!(
        "switch it on; or, if it is lost, take it out of the manifest where it was given, \
         and run `slipway machine replace {machine}` where Slipway made it"
    )
}

/// What gives etcd its quorum back.
fn regained(silent: u32, gone: u32) -> String {
    let back = "put a snapshot back on the control machines that are left, with \
                `slipway backup etcd restore`, and the others are made again";
    match (silent, gone) {
        (0, 0) => "continues when the other members and their etcd are well".to_owned(),
        (0, _) => format!("{back}; or {ANEW}"),
        (_, _) => format!(
            "switch on the control machines that do not answer: without a quorum nobody can \
             join or leave; if they are lost, destroy them at their provider and {back}; or {ANEW}"
        ),
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

/// How somebody gives up names that nobody makes or takes back.
fn leave_behind(task: TaskId) -> String {
    format!(
        "if nobody answers for the name any more, `slipway task cancel {task}` gives it up, and what \
         leads there stays behind"
    )
}
