//! Judges a finished plan without knowing how it was made.
//!
//! The rules here are written against the world, not against the planner: a plan that
//! breaks one is stopped before it is committed, whoever made it.

use crate::planner::{Plan, UNAVAILABLE_MAX, View};
use model::cluster::Role;
use model::id::MachineId;
use model::name::Name;
use model::observed::{MachineFact, NodeFact};
use model::task::{Action, Kind, State, Task};
use model::version::Version;
use std::collections::BTreeSet;
use std::fmt;

/// Something a plan must not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Which machine, or the cluster where it is about several.
    pub machine: Name,
    /// Which rule is broken.
    pub broken: &'static str,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.machine, self.broken)
    }
}

/// Every rule that `plan` breaks; a plan that breaks none may be committed.
pub fn check(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut touched = BTreeSet::new();
    for task in &plan.tasks {
        let mut note = |broken: &'static str| {
            notes.push(Note {
                machine: task.machine.name.clone(),
                broken,
            });
        };
        if !touched.insert(task.machine.id) || busy(view, plan, task.machine.id) {
            note("one machine, one task at a time");
        }
        for broken in alone(view, task) {
            note(broken);
        }
    }
    notes.extend(together(view, plan));
    notes
}

fn busy(view: &View<'_>, plan: &Plan, machine: MachineId) -> bool {
    view.open.iter().any(|open| {
        open.machine == machine
            && (open.state == State::Running || !plan.withdraw.contains(&open.id))
    })
}

/// What one task breaks by itself.
fn alone(view: &View<'_>, task: &Task) -> Vec<&'static str> {
    let desired = view.desired;
    let wanted = desired
        .machines
        .iter()
        .any(|machine| machine.id == task.machine.id);
    let leaving = desired
        .leaving
        .iter()
        .any(|machine| machine.id == task.machine.id);
    let kind = task.action.kind();
    let mut broken = Vec::new();
    if !wanted && !leaving {
        broken.push("only what desired state names is touched");
    }
    if matches!(kind, Kind::Leave | Kind::Delete | Kind::Release) && !leaving {
        broken.push("only what is to leave is removed");
    }
    if matches!(
        kind,
        Kind::Create | Kind::Prepare | Kind::Init | Kind::Join | Kind::Upgrade | Kind::Uncordon
    ) && !wanted
    {
        broken.push("only what is to stay is built");
    }
    if kind == Kind::Init && (view.observed.initialised || starting(view, task.machine.id)) {
        broken.push("a control plane is started once");
    }
    if kind == Kind::Delete && joined(view, task.machine.id) && !desired.tombstone {
        broken.push("a node leaves its cluster before its machine goes");
    }
    if let Action::Upgrade { version } = task.action
        && let Some(NodeFact::Joined { version: runs, .. }) = node(view, task.machine.id)
        && (version <= *runs || version.minor > runs.minor + 1)
    {
        broken.push("an upgrade goes forward, one minor release at a time");
    }
    if let Action::Join { version } = task.action
        && oldest_control(view).is_some_and(|oldest| version > oldest)
    {
        broken.push("no node is ahead of the control plane");
    }
    broken
}

/// The oldest version that a member of the control plane runs.
fn oldest_control(view: &View<'_>) -> Option<Version> {
    let control = view
        .desired
        .all()
        .filter(|machine| machine.role == Role::Control);
    let versions = control.filter_map(|machine| match node(view, machine.id)? {
        NodeFact::Joined { version, .. } => Some(*version),
        NodeFact::Absent => None,
    });
    versions.min()
}

/// What the tasks of a plan break together.
fn together(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let disturbing = |task: &&Task| {
        matches!(
            task.action.kind(),
            Kind::Drain | Kind::Upgrade | Kind::Leave
        )
    };
    let disturbed: Vec<_> = plan.tasks.iter().filter(disturbing).collect();
    let mut notes = Vec::new();
    if plan
        .tasks
        .iter()
        .filter(|task| task.action.kind() == Kind::Init)
        .count()
        > 1
    {
        notes.push(Note {
            machine: view.desired.name.clone(),
            broken: "a control plane is started once",
        });
    }
    let newly = plan
        .tasks
        .iter()
        .filter(|task| task.action.kind() == Kind::Drain && serves(view, task.machine.id));
    if newly.count() > 1 {
        notes.push(Note {
            machine: view.desired.name.clone(),
            broken: "one machine is taken out of service at a time",
        });
    }
    let kept = view
        .ledger
        .iter()
        .filter(|slot| !plan.release.contains(&slot.machine));
    let rows = kept.count() + plan.disturbs.len();
    if !plan.disturbs.is_empty() && rows > usize::try_from(UNAVAILABLE_MAX).unwrap_or(usize::MAX) {
        notes.push(Note {
            machine: view.desired.name.clone(),
            broken: "the disruption ledger has room",
        });
    }
    if view.desired.tombstone {
        return notes;
    }
    for task in disturbed
        .iter()
        .filter(|task| task.machine.role == Role::Control)
    {
        let members: Vec<_> = view
            .desired
            .all()
            .filter(|machine| machine.role == Role::Control && joined(view, machine.id))
            .collect();
        let left = members.iter().filter(|machine| {
            ready(view, machine.id) && !disturbed.iter().any(|task| task.machine.id == machine.id)
        });
        let after = if task.action.kind() == Kind::Upgrade {
            members.len()
        } else {
            members.len() - 1
        };
        let alone = members.len() == 1 && task.action.kind() != Kind::Leave;
        if !alone && left.count() < after / 2 + 1 {
            notes.push(Note {
                machine: task.machine.name.clone(),
                broken: "etcd keeps its quorum",
            });
        }
    }
    notes
}

/// Whether an attempt to start a control plane is under way on another machine.
fn starting(view: &View<'_>, but: MachineId) -> bool {
    view.open.iter().any(|open| {
        open.machine != but && open.action.kind() == Kind::Init && open.state == State::Running
    })
}

fn node<'a>(view: &View<'a>, machine: MachineId) -> Option<&'a NodeFact> {
    let seen = view.observed.machines.get(&machine)?;
    if matches!(seen.machine, Some((MachineFact::Absent, _))) {
        return None;
    }
    seen.node.as_ref().map(|(fact, _)| fact)
}

fn joined(view: &View<'_>, machine: MachineId) -> bool {
    matches!(node(view, machine), Some(NodeFact::Joined { .. }))
}

fn ready(view: &View<'_>, machine: MachineId) -> bool {
    let reachable = view
        .observed
        .machines
        .get(&machine)
        .is_none_or(|seen| !matches!(seen.machine, Some((MachineFact::Unreachable { .. }, _))));
    reachable
        && matches!(
            node(view, machine),
            Some(NodeFact::Joined { ready: true, .. })
        )
}

fn serves(view: &View<'_>, machine: MachineId) -> bool {
    ready(view, machine)
        && matches!(
            node(view, machine),
            Some(NodeFact::Joined {
                cordoned: false,
                ..
            })
        )
}
