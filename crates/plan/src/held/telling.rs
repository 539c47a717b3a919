//! Why work waits, in words.

use super::{Ends, Held, Reason, Scope};
use std::fmt;

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.machine)?;
        if self.machines > 1 {
            write!(f, " and {} more", self.machines - 1)?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { .. } => self.tell_of_budget(f),
            Self::Quorum { .. } | Self::Leftover { .. } | Self::Namesake { .. } => {
                self.tell_of_members(f)
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
            Self::Vain { times, .. } => {
                write!(f, "it ended well {times}× and nothing has changed")
            }
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
            Self::Claimed { thing, by, .. } => {
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
            | Self::Data { .. }
            | Self::Unmatched { .. } => self.tell_of_machine(f),
            Self::Quota { what, used, limit } => {
                write!(f, "the project has {used} of at most {limit} {what}")
            }
        }
    }
}

impl Reason {
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

    /// Which members a control plane lacks, and whose nodes are left.
    fn tell_of_members(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Quorum {
            ready,
            needed,
            silent,
            gone,
        } = self
        {
            if *gone == 0 {
                return write!(f, "other control nodes ready: {ready}, needed: {needed}");
            }
            // Whoever does not answer may still come back.
            if ready.saturating_add(*silent) < *needed {
                f.write_str("the control plane is lost: ")?;
            }
            write!(
                f,
                "control machines gone: {gone}, others ready: {ready}, needed: {needed}"
            )
        } else if let Self::Leftover {
            node,
            of,
            heard,
            ends,
        } = self
        {
            let heard = if *heard { "still heard" } else { "not ready" };
            let told = match ends {
                Ends::Told => "; etcd does not tell whether it counts on it",
                Ends::Silence | Ends::Due(_) | Ends::Person => "",
            };
            write!(
                f,
                "node {node} is {heard}, and left of {of}, which is no machine of the cluster{told}"
            )
        } else if let Self::Namesake { of } = self {
            write!(f, "a node of its name is left of {of}")
        } else {
            Ok(())
        }
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
        } else if let Self::Data { kept, modules, .. } = self {
            write!(f, "stays though {modules}: {kept} would go with it")
        } else if let Self::Unable { because, .. } = self {
            f.write_str(because)
        } else if let Self::Unmatched { selector } = self {
            write!(f, "no machine was discovered that has {selector}")
        } else {
            Ok(())
        }
    }
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
