//! Judges a step of desired state that nobody asked for.

use super::Note;
use crate::advance::{Advance, is_gone, serves};
use crate::expand::growing::Stand;
use crate::loss::kept_on;
use crate::planner::View;
use model::cluster::{Desired, Machine, Origin};
use model::intent::{Intent, Wish};
use model::name::Name;
use model::observed::NodeFact;
use model::upkeep::{Failed, Roll};
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
        if others.any(|other| other.address == new.address || other.name == new.name) {
            note(&new.name, "no name and no address is given twice");
        }
    }
    let machines = before.machines.iter().chain(&after.machines);
    let stands = machines.map(|of| (&of.pool, of.role, of.balancer.as_ref()));
    for (pool, role, balancer) in stands.collect::<BTreeSet<_>>() {
        let stand = Stand {
            pool,
            role,
            balancer,
        };
        if size(before, stand) != size(after, stand) {
            note(pool, "a pool keeps its size");
        }
    }
    for (name, broken) in of_newcomers(view, after) {
        note(name, broken);
    }
    if leads_nowhere(view, step) {
        note(&before.name, "what was tried in vain is tried again later");
    }
    // What is declared comes after every stone.
    let (from, to) = (before.heads_for(), after.heads_for());
    let onward = after.stone == before.stone || from < to && to <= after.version;
    if after.version != before.version || !onward {
        note(&after.name, "an upgrade goes on to what is declared");
    }
    notes
}

/// What is wrong with those that come, and with what they are made from.
fn of_newcomers<'a>(view: &View<'a>, after: &'a Desired) -> Vec<(&'a Name, &'static str)> {
    let gated = past_its_gates(view, after).map(|newcomer| {
        let broken = "nobody goes for one that has not passed its gates";
        (&newcomer.name, broken)
    });
    let rolls = after.rolls.iter().filter(|roll| !is_due(view, roll));
    let rolls = rolls.map(|roll| {
        let broken =
            "newer modules are taken in a window where no data goes along, or when somebody asks";
        (&roll.pool, broken)
    });
    let others = after.all().filter(|machine| !is_as_made(view, machine));
    let others = others.map(|machine| (&machine.name, "a machine stays what it is made from"));
    gated.chain(rolls).chain(others).collect()
}

/// Those that stand for others from now on, and wait at their gates.
fn past_its_gates<'a>(view: &View<'a>, after: &'a Desired) -> impl Iterator<Item = &'a Machine> {
    let comes = |desired: &Desired, machine: &Machine| {
        let mut rolls = desired.rolls.iter();
        rolls.any(|roll| roll.coming.contains(&machine.id))
    };
    let (before, observed) = (view.desired, view.observed);
    let waits = |machine: &&Machine| {
        let seen = observed.machines.get(&machine.id);
        let node = seen.and_then(|seen| seen.node.as_ref());
        matches!(node, Some((NodeFact::Joined { gated: true, .. }, _)))
    };
    let machines = after.machines.iter().filter(waits);
    machines.filter(move |machine| comes(before, machine) && !comes(after, machine))
}

/// Whether a pool may go to machines of this kind: it did before, or this is what its branch leads to
/// and the cluster may be worked on and loses nothing, or failed before, or somebody asks for it.
fn is_due(view: &View<'_>, roll: &Roll) -> bool {
    let same = |other: &&Roll| {
        let place = |of: &Roll| (of.pool.clone(), of.role, of.balancer.clone());
        place(other) == place(roll)
    };
    let before = view.desired.rolls.iter().find(same);
    if before.is_some_and(|before| is_settled(view, &before.origin, &roll.origin)) {
        return true;
    }
    let kind = |origin: &Origin| origin.declared_like(&roll.origin);
    let mut machines = view.desired.machines.iter();
    let known = match before {
        Some(before) => kind(&before.origin),
        None => machines.any(|machine| roll.holds(machine) && kind(&machine.origin)),
    };
    let Some(commit) = roll.origin.pinned().filter(|_| known) else {
        return false;
    };
    let windows = &view.desired.disruption.windows;
    let open = !windows.0.is_empty() && windows.opens(view.now).is_none();
    let failed = before.is_some_and(|before| before.failed.is_some() && before.coming.is_empty());
    let led = roll.origin.reference();
    let led = led.is_some_and(|of| view.observed.commit_of(&of) == Some(&commit));
    let asked = |intent: &Intent| {
        let wish = Wish::Update {
            pool: roll.pool.clone(),
            commit: Some(commit.clone()),
        };
        intent.wish == wish && intent.counts(view.now)
    };
    let mut machines = view.desired.machines.iter();
    let agreed = view.desired.replacing.contains(&roll.pool);
    let loses = |machine: &Machine| kept_on(view.desired, view.observed, machine).is_some();
    let loses = !agreed && machines.any(|machine| roll.holds(machine) && loses(machine));
    led && (open && before.is_none() && !loses || failed) || view.intents.iter().any(asked)
}

/// Whether a machine that was there before is to be made as it was.
fn is_as_made(view: &View<'_>, machine: &Machine) -> bool {
    let before = view.desired.all().find(|before| before.id == machine.id);
    before.is_none_or(|before| is_settled(view, &before.origin, &machine.origin))
}

/// Whether two say the same, or the second also says to which commit a branch led: the one that was
/// seen, or that others have.
fn is_settled(view: &View<'_>, before: &Origin, after: &Origin) -> bool {
    let pinned = || {
        let (commit, reference) = (after.pinned(), after.reference());
        let seen = reference.and_then(|of| view.observed.commit_of(&of).cloned());
        let mut others = view.desired.machines.iter();
        commit == seen || others.any(|other| other.origin.pinned() == commit)
    };
    let noted = before.lacks_commit() && after.declared_like(before) && pinned();
    before == after || noted
}

/// How many machines there are without those that come in place of others.
fn size(desired: &Desired, stand: Stand<'_>) -> usize {
    let comes = |machine: &Machine| {
        let mut rolls = desired.rolls.iter();
        rolls.any(|roll| roll.coming.contains(&machine.id))
    };
    let machines = desired.machines.iter();
    let stay = machines.filter(|machine| stand.holds(machine) && !comes(machine));
    stay.count()
}

/// Whether a step moves nobody, begins and ends no roll, leads to no other version, and would be made again at
/// once.
fn leads_nowhere(view: &View<'_>, step: &Advance) -> bool {
    let (before, after) = (view.desired, &step.desired);
    let tried = |desired: &Desired| {
        let rolls = desired.rolls.iter().filter_map(|roll| roll.failed.clone());
        let repaired = desired.repaired.values().cloned();
        rolls.chain(repaired).collect::<Vec<_>>()
    };
    let (known, noted) = (tried(before), tried(after));
    let later = |failed: &Failed| !known.contains(failed) && failed.due() > view.now;
    let waited = known
        .iter()
        .all(|failed| noted.contains(failed) || failed.due() <= view.now);
    let kinds = |desired: &Desired| {
        let kinds = desired.rolls.iter().map(|roll| roll.origin.clone());
        kinds.collect::<Vec<_>>()
    };
    let moved = before.machines != after.machines
        || before.stone != after.stone
        || kinds(before) != kinds(after);
    let noted_in_time = waited && noted.iter().any(later);
    !moved && !noted_in_time
}
