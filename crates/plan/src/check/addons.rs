//! What a plan must not do with add-ons.

use super::Note;
use crate::planner::{Plan, View};
use model::task::{Action, Kind, Open, Task};

/// What a task breaks by what it installs or removes.
pub(super) fn alone(view: &View<'_>, task: &Task) -> Vec<&'static str> {
    let Action::Install { addons, remove } = &task.action else {
        return Vec::new();
    };
    let wished = &view.desired.addons;
    let mut broken = Vec::new();
    if !view.observed.initialised {
        broken.push("add-ons come when there is a control plane");
    }
    if !addons.iter().all(|addon| wished.contains(addon)) {
        broken.push("only add-ons that are wished are installed");
    }
    let there = view.observed.addons.as_ref();
    let goes = |name| {
        let seen = there.is_some_and(|(seen, _)| seen.contains_key(name));
        seen && !wished.iter().any(|addon| addon.name == *name)
    };
    if view.desired.tombstone || !remove.iter().all(goes) {
        broken.push("only add-ons that are there and not wished are removed");
    }
    broken
}

/// Add-ons are changed by one task at a time: two would undo each other's work.
pub(super) fn together(view: &View<'_>, plan: &Plan) -> Option<Note> {
    let installs = |kind: Kind| kind == Kind::Install;
    let begun = plan
        .tasks
        .iter()
        .filter(|task| installs(task.action.kind()));
    let stays = |open: &&Open| installs(open.action.kind()) && !plan.withdraw.contains(&open.id);
    let begun: Vec<_> = begun.collect();
    let several = begun.len() + view.open.iter().filter(stays).count() > 1;
    let first = begun.first().filter(|_| several)?;
    Some(Note {
        machine: first.machine.name.clone(),
        broken: "add-ons are changed by one task at a time",
    })
}
