//! Machines that have not served for long: another takes the place of each, one at a time.
//!
//! Nobody is touched while the API cannot be read, while etcd has no quorum, or while so many do
//! not serve that the fault is hardly theirs. A machine that was given to us is nobody's to replace.

use super::{
    LOOK_AGAIN, SEEN_LATELY, balances, dismiss, hire, is_crowded, is_gone, is_well, joined,
};
use crate::blast::Limits;
use crate::expand::growing::Stand;
use crate::planner::View;
use model::cluster::{Desired, Machine, Origin, Role};
use model::observed::{MachineFact, NodeFact};
use model::task::{Open, State};
use model::time::Timestamp;
use model::upkeep::{Failed, Roll};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a look at those that do not serve finds.
pub(super) enum Look<'a> {
    /// This one is replaced now; it has not served for so long.
    Due(&'a Machine, Duration),
    /// Nobody is, and when to look again, where that can be said.
    Later(Option<Timestamp>),
}

/// Looks for a machine to replace.
pub(super) fn look<'a>(view: &View<'a>) -> Look<'a> {
    let Some(after) = view
        .desired
        .repair
        .after
        .filter(|_| !view.observed.sick.is_empty())
    else {
        return Look::Later(None);
    };
    let mut again: Option<Timestamp> = None;
    for machine in &view.desired.machines {
        match when(view, machine, after) {
            None => {}
            Some(at) if at > view.now => again = Some(again.map_or(at, |known| known.min(at))),
            Some(_) => return Look::Due(machine, after),
        }
    }
    Look::Later(again)
}

/// When a machine is to be replaced, where nothing changes until then.
pub(super) fn when(view: &View<'_>, machine: &Machine, after: Duration) -> Option<Timestamp> {
    let since = *view.observed.sick.get(&machine.id)?;
    let seen_at = silent_at(view, machine)?;
    let made = matches!(machine.origin, Origin::Made { .. });
    let comes = |roll: &Roll| roll.coming.contains(&machine.id);
    let ours = view.desired.rolls.iter().any(comes);
    let locked = view.observed.lock_of(&machine.name).is_some();
    if !made || ours || locked || at_work(view, machine) {
        return None;
    }
    if too_many(view) || !decided(view, machine) || !alone(view, machine) || is_crowded(view) {
        return None;
    }
    let due = since.plus(after);
    let before = view.desired.repaired.get(&machine.pool);
    let due = before.map_or(due, |before| due.max(before.due()));
    Some(seen_again(view, seen_at, due))
}

/// What is due, or when to look again: who was not seen lately may have come back.
pub(super) fn seen_again(view: &View<'_>, seen_at: Timestamp, due: Timestamp) -> Timestamp {
    let stale = due <= view.now && view.now.since(seen_at) > SEEN_LATELY;
    if stale {
        view.now.plus(LOOK_AGAIN)
    } else {
        due
    }
}

/// Whether somebody works on it, or we took it out of service. We take nobody's power: who does not
/// answer at all is lost, even in the middle of an upgrade.
fn at_work(view: &View<'_>, machine: &Machine) -> bool {
    let running = |open: &&Open| open.state == State::Running;
    let mut running = view.open.iter().filter(running);
    let mut rows = view.ledger.iter();
    let seen = view.observed.machines.get(&machine.id);
    let seen = seen.and_then(|seen| seen.machine.as_ref());
    let lost = matches!(seen, Some((MachineFact::Unreachable { .. }, _)));
    let ours = !lost && rows.any(|row| row.machine == machine.id);
    ours || running.any(|open| open.machine == machine.id)
}

/// When it was last seen that it does not serve. A node that is ready does, whoever cannot enter
/// its machine.
pub(super) fn silent_at(view: &View<'_>, machine: &Machine) -> Option<Timestamp> {
    let seen = view.observed.machines.get(&machine.id)?;
    match (&seen.machine, &seen.node) {
        // What is missing is made again at once.
        (Some((MachineFact::Absent, _)) | None, _) => None,
        (_, Some((NodeFact::Joined { ready, .. }, at))) => (!ready).then_some(*at),
        (Some((MachineFact::Unreachable { .. }, at)), _) => Some(*at),
        (Some((MachineFact::Booting { .. } | MachineFact::Running { .. }, _)), _) => None,
    }
}

/// Whether so many do not serve that a network or a provider is more likely to be at fault.
fn too_many(view: &View<'_>) -> bool {
    let nodes = || view.desired.machines.iter().filter(|of| joined(view, of));
    let sick = nodes().filter(|machine| !is_well(view, machine)).count();
    let limit = usize::from(Limits::default().cluster);
    sick > 1 && sick * 100 > nodes().count() * limit
}

/// Whether the others of the control plane can decide without it.
fn decided(view: &View<'_>, but: &Machine) -> bool {
    let members = view
        .desired
        .all()
        .filter(|machine| machine.role == Role::Control && joined(view, machine));
    let members: Vec<_> = members.collect();
    let well = members
        .iter()
        .filter(|machine| machine.id != but.id && is_well(view, machine));
    well.count() > members.len() / 2
}

/// Whether nobody else of its pool is on the way. Who goes and is well goes for another reason, and
/// may wait for this one.
fn alone(view: &View<'_>, machine: &Machine) -> bool {
    let stand = Stand::of(machine);
    let comes = |other: &Machine| {
        let there = match other.role {
            Role::Control | Role::Compute => joined(view, other),
            Role::Balancer => balances(view, other),
        };
        stand.holds(other) && other.id != machine.id && !there
    };
    let goes = |other: &Machine| {
        let there = match other.role {
            Role::Control | Role::Compute => joined(view, other),
            Role::Balancer => !is_gone(view, other),
        };
        stand.holds(other) && there && !is_well(view, other)
    };
    !view.desired.machines.iter().any(comes) && !view.desired.leaving.iter().any(goes)
}

/// Another takes its place.
pub(super) fn replaced(view: &View<'_>, machine: &Machine, after: Duration) -> (Desired, String) {
    let mut next = view.desired.clone();
    let minutes = after.as_secs() / 60;
    let what = match machine.role {
        Role::Control | Role::Compute if joined(view, machine) => "its node was not ready",
        Role::Control | Role::Compute | Role::Balancer => "it did not answer",
    };
    let told = view.observed.wellbeing.as_ref();
    let trouble = told.and_then(|(told, _)| told.troubles.get(machine.name.as_str()));
    let trouble = trouble.map_or_else(String::new, |trouble| format!(" ({trouble})"));
    let mut because = format!("{}: {what} for {minutes} min{trouble}", machine.name);
    let before = view.desired.repaired.get(&machine.pool);
    let noted = Failed::again(before, view.now, because.clone());
    next.repaired.insert(machine.pool.clone(), noted);
    match hire(&mut next, machine, &machine.origin) {
        Some(new) => {
            dismiss(&mut next, &BTreeSet::from([machine.id]));
            because = format!("{because}; {} takes its place", new.name);
        }
        None => because = format!("{because}; network {} has no address left", next.network),
    }
    (next, because)
}
