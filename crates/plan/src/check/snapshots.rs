//! What a plan must not do to what etcd knows.

use super::{Note, joined, node};
use crate::planner::{Plan, View};
use model::cluster::Role;
use model::intent::Wish;
use model::observed::NodeFact;
use model::task::{Action, Kind, State, Task};
use model::version::Version;

/// What one task breaks by itself.
pub(super) fn check(view: &View<'_>, task: &Task) -> Option<&'static str> {
    let kind = task.action.kind();
    let member = task.machine.role == Role::Control && joined(view, task.machine.id);
    if matches!(kind, Kind::Snapshot | Kind::Restore) && !member {
        return Some("only members of etcd are saved and put back");
    }
    if let Action::Upgrade { version } = task.action
        && task.machine.role == Role::Control
        && view.desired.etcd_backup.is_some()
        && !upgraded(view, version)
        && !saved(view, version)
    {
        return Some("etcd is saved before the first of its members is upgraded");
    }
    if let Action::Restore { restoring } = &task.action {
        let wish = Wish::Restore {
            snapshot: restoring.snapshot.clone(),
        };
        let wished = |id| {
            let mut intents = view.intents.iter();
            intents.any(|intent| intent.id == id && intent.wish == wish)
        };
        // What was begun is finished, also when the wish was withdrawn.
        let begun = view
            .open
            .iter()
            .any(|open| open.attempts > 0 && open.action.kind() == Kind::Restore);
        if !wished(restoring.wish) && !begun {
            return Some("etcd is put back only when somebody wishes it");
        }
    }
    None
}

/// Whether a member of the control plane has this version already.
fn upgraded(view: &View<'_>, version: Version) -> bool {
    let mut control = view
        .desired
        .all()
        .filter(|machine| machine.role == Role::Control);
    control.any(|machine| match node(view, machine.id) {
        Some(NodeFact::Joined { version: runs, .. }) => *runs >= version,
        Some(NodeFact::Absent) | None => false,
    })
}

fn saved(view: &View<'_>, version: Version) -> bool {
    let known = view.observed.snapshots.as_ref();
    known.is_some_and(|(known, _)| known.before(version, view.now))
}

/// Whether something else is done to a cluster while its etcd is put back.
pub(super) fn alone(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let restores = |kind: Kind| kind == Kind::Restore;
    let running = || view.open.iter().filter(|open| open.state == State::Running);
    let planned = plan.tasks.iter().any(|task| restores(task.action.kind()));
    let runs = running().any(|open| restores(open.action.kind()));
    let others = plan.tasks.len() > 1 || running().any(|open| !restores(open.action.kind()));
    let broken = planned && (others || runs) || runs && !plan.tasks.is_empty();
    // Removing a cluster waits for nothing but the machine itself.
    let broken = broken && !view.desired.tombstone;
    let note = Note {
        machine: view.desired.name.clone(),
        broken: "nothing else is done to a cluster while its etcd is put back",
    };
    broken.then_some(note).into_iter().collect()
}
