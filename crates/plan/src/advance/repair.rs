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
use model::id::MachineId;
use model::observed::{MachineFact, NodeFact};
use model::task::State;
use model::time::Timestamp;
use model::upkeep::Failed;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What is the same for everybody who does not serve: looked up once, however many fell sick.
#[derive(Default)]
pub(crate) struct Ward<'a> {
    /// How long one may not serve; nothing where everybody does, or people see to it.
    after: Option<Duration>,
    /// Whether nobody can be replaced, whoever it is.
    closed: bool,
    /// How many members the control plane has, and which of them are well.
    members: usize,
    well: BTreeSet<MachineId>,
    /// How many of each pool are on the way.
    coming: BTreeMap<Stand<'a>, usize>,
    /// Pools of which one goes that is not well.
    going: BTreeSet<Stand<'a>>,
    /// Machines that somebody works on.
    busy: BTreeSet<MachineId>,
    /// Machines that we took out of service.
    out: BTreeSet<MachineId>,
    /// Machines that come in place of others.
    newcomers: BTreeSet<MachineId>,
}

impl<'a> Ward<'a> {
    /// Looks up what there is to know where anybody does not serve.
    pub(crate) fn of(view: &View<'a>) -> Self {
        let desired = view.desired;
        let sick = !view.observed.sick.is_empty();
        let Some(after) = desired.repair.after.filter(|_| sick) else {
            return Self::default();
        };
        let mut ward = Self {
            after: Some(after),
            closed: too_many(view) || is_crowded(view),
            ..Self::default()
        };
        let members = desired.all();
        let members = members.filter(|of| of.role == Role::Control && joined(view, of));
        for member in members {
            ward.members += 1;
            if is_well(view, member) {
                ward.well.insert(member.id);
            }
        }
        for machine in desired.machines.iter().filter(|of| comes(view, of)) {
            *ward.coming.entry(Stand::of(machine)).or_default() += 1;
        }
        let going = desired.leaving.iter().filter(|of| goes(view, of));
        ward.going = going.map(Stand::of).collect();
        let running = view.open.iter();
        let running = running.filter(|open| open.state == State::Running);
        ward.busy = running.map(|open| open.machine).collect();
        ward.out = view.ledger.iter().map(|row| row.machine).collect();
        let rolls = desired.rolls.iter();
        ward.newcomers = rolls.flat_map(|roll| roll.coming.iter().copied()).collect();
        ward
    }

    /// When a machine is to be replaced, where nothing changes until then.
    pub(super) fn when(&self, view: &View<'_>, machine: &Machine) -> Option<Timestamp> {
        let since = *view.observed.sick.get(&machine.id)?;
        let (after, seen_at) = (self.after?, silent_at(view, machine)?);
        let made = matches!(machine.origin, Origin::Made { .. });
        let locked = view.observed.lock_of(&machine.name).is_some();
        let spared = locked || self.newcomers.contains(&machine.id);
        if !made || spared || self.closed || self.is_at_work(view, machine) {
            return None;
        }
        if !self.decides_without(machine) || !self.is_alone(view, machine) {
            return None;
        }
        let due = since.plus(after);
        let before = view.desired.repaired.get(&machine.pool);
        let due = before.map_or(due, |before| due.max(before.due()));
        Some(seen_again(view, seen_at, due))
    }

    /// Whether somebody works on it, or we took it out of service. We take nobody's power: who does
    /// not answer at all is lost, even in the middle of an upgrade.
    fn is_at_work(&self, view: &View<'_>, machine: &Machine) -> bool {
        let seen = view.observed.machines.get(&machine.id);
        let seen = seen.and_then(|seen| seen.machine.as_ref());
        let lost = matches!(seen, Some((MachineFact::Unreachable { .. }, _)));
        let ours = !lost && self.out.contains(&machine.id);
        ours || self.busy.contains(&machine.id)
    }

    /// Whether the others of the control plane can decide without it.
    fn decides_without(&self, machine: &Machine) -> bool {
        let well = self.well.len() - usize::from(self.well.contains(&machine.id));
        well > self.members / 2
    }

    /// Whether nobody else of its pool is on the way. Who goes and is well goes for another reason,
    /// and may wait for this one.
    fn is_alone(&self, view: &View<'_>, machine: &Machine) -> bool {
        let stand = Stand::of(machine);
        let coming = self.coming.get(&stand).copied().unwrap_or_default();
        coming == usize::from(comes(view, machine)) && !self.going.contains(&stand)
    }
}

/// What a look at those that do not serve finds.
pub(super) enum Look<'a> {
    /// This one is replaced now; it has not served for so long.
    Due(&'a Machine, Duration),
    /// Nobody is, and when to look again, where that can be said.
    Later(Option<Timestamp>),
}

/// Looks for a machine to replace.
pub(super) fn look<'a>(view: &View<'a>, ward: &Ward<'_>) -> Look<'a> {
    let Some(after) = ward.after else {
        return Look::Later(None);
    };
    let mut again: Option<Timestamp> = None;
    for machine in &view.desired.machines {
        match ward.when(view, machine) {
            None => {}
            Some(at) if at > view.now => again = Some(again.map_or(at, |known| known.min(at))),
            Some(_) => return Look::Due(machine, after),
        }
    }
    Look::Later(again)
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

/// Whether a machine that is to stay is on the way.
fn comes(view: &View<'_>, machine: &Machine) -> bool {
    match machine.role {
        Role::Control | Role::Compute => !joined(view, machine),
        Role::Balancer => !balances(view, machine),
    }
}

/// Whether a machine that leaves is not gone yet, and not well.
fn goes(view: &View<'_>, machine: &Machine) -> bool {
    let there = match machine.role {
        Role::Control | Role::Compute => joined(view, machine),
        Role::Balancer => !is_gone(view, machine),
    };
    there && !is_well(view, machine)
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
