//! What a plan must not do to the versions that nodes run.

use super::{node, ready};
use crate::planner::View;
use model::cluster::{Machine, Role};
use model::id::MachineId;
use model::observed::NodeFact;
use model::task::{Action, Kind, Task};
use model::version::Version;

/// What one task breaks by itself.
pub(super) fn check(view: &View<'_>, task: &Task) -> Vec<&'static str> {
    let mut broken = Vec::new();
    if let Action::Upgrade { version } = task.action {
        let too_far = |runs: Version| version.minor > runs.minor + 1;
        let before = runs(view, task.machine.id);
        if before.is_some_and(|before| version <= before || too_far(before)) {
            broken.push("an upgrade goes forward, one minor release at a time");
        }
        let stay = view.desired.machines.iter();
        let stay = stay.filter(|machine| machine.id != task.machine.id);
        if stay
            .filter_map(|machine| runs(view, machine.id))
            .any(too_far)
        {
            broken.push("nobody goes on before all nodes have come to the minor release before");
        }
        if version > view.desired.version {
            broken.push("an upgrade goes no further than declared");
        }
    }
    let stays = |machine: &Machine| machine.id == task.machine.id;
    let begins = task.action.kind() == Kind::Drain && view.desired.machines.iter().any(stays);
    if begins && !ready(view, task.machine.id) {
        broken.push("an upgrade begins on nodes that serve");
    }
    let follows = task.machine.role == Role::Compute || task.action.kind() == Kind::Join;
    let comes = task.action.version().filter(|_| follows);
    if oldest_control(view).is_some_and(|oldest| comes > Some(oldest)) {
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
    control.filter_map(|machine| runs(view, machine.id)).min()
}

/// The version of a node.
fn runs(view: &View<'_>, machine: MachineId) -> Option<Version> {
    match node(view, machine)? {
        NodeFact::Joined { version, .. } => Some(*version),
        NodeFact::Absent => None,
    }
}
