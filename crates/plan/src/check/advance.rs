//! Judges a step of desired state that nobody asked for.

use super::Note;
use crate::advance::{Advance, is_gone, serves};
use crate::expand::growing::Stand;
use crate::planner::View;
use model::cluster::{Machine, Origin};
use model::name::Name;
use std::collections::BTreeSet;

/// Every rule that a step breaks; one that breaks none may be stored.
pub fn check_advance(view: &View<'_>, step: &Advance) -> Vec<Note> {
    let (before, after) = (view.desired, &step.desired);
    let mut notes = Vec::new();
    let mut note = |machine: &Name, broken: &'static str| {
        notes.push(Note {
            machine: machine.clone(),
            broken,
        });
    };
    let known: BTreeSet<_> = after.all().map(|machine| machine.id).collect();
    for machine in before.all().filter(|machine| !known.contains(&machine.id)) {
        let stayed = before.machines.iter().any(|other| other.id == machine.id);
        if stayed || !is_gone(view, machine) {
            note(&machine.name, "nothing is forgotten that may be there");
        }
    }
    let stays = |machine: &&Machine| after.machines.iter().any(|other| other.id == machine.id);
    for machine in before.machines.iter().filter(|machine| !stays(machine)) {
        if matches!(machine.origin, Origin::Given { .. }) {
            note(&machine.name, "only what we made is replaced");
        }
        let stand = Stand::of(machine);
        let mut others = after.machines.iter().filter(|other| stand.holds(other));
        if serves(view, machine) && !others.all(|other| serves(view, other)) {
            note(
                &machine.name,
                "who serves goes when all others of its pool do",
            );
        }
    }
    let old: BTreeSet<_> = before.all().map(|machine| machine.id).collect();
    for new in after.all().filter(|machine| !old.contains(&machine.id)) {
        let mut others = after.all().filter(|other| other.id != new.id);
        if others.any(|other| other.address == new.address) {
            note(&new.name, "no address is given twice");
        }
    }
    notes
}
