//! A pool on its way to machines of another kind: a few come and serve, as many of the old ones go,
//! and so on. A kind that fails is taken back, and tried again after a pause that grows.

use super::repair::{seen_again, silent_at};
use super::{dismiss, failed, hire, is_crowded, is_gone, is_of_coming, joined, listed, serves};
use crate::planner::{Plan, View, plan};
use model::cluster::{Desired, Machine, Role};
use model::id::MachineId;
use model::task::Open;
use model::time::Timestamp;
use model::upkeep::{Failed, Repair, Roll};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// The next step of the first pool that has one.
pub(super) fn next(view: &View<'_>) -> Option<(Desired, String)> {
    let mut rolls = view.desired.rolls.iter().enumerate();
    // What the planner would do is the same for all of them, and mostly nobody needs to know.
    let planned = LazyCell::new(|| plan(view));
    rolls.find_map(|(at, roll)| step(view, &planned, at, roll))
}

fn step(
    view: &View<'_>,
    planned: &impl Deref<Target = Plan>,
    at: usize,
    roll: &Roll,
) -> Option<(Desired, String)> {
    let (coming, rest): (Vec<_>, Vec<_>) =
        of_pool(view, roll).partition(|machine| roll.coming.contains(&machine.id));
    let failures = coming
        .iter()
        .filter_map(|machine| Some((machine.id, failed_to_come(view, planned, machine)?)));
    let failures: BTreeMap<_, _> = failures.collect();
    if !failures.is_empty() {
        return take_back(view, at, &coming, failures);
    }
    let old: Vec<_> = rest
        .iter()
        .filter(|machine| !roll.is_new(machine))
        .collect();
    if !coming.is_empty() {
        if !have_come(view, planned, &coming) {
            return None;
        }
        let go = relieved(view, roll, &rest, &coming);
        let because = format!(
            "{} in place of {}",
            listed(coming),
            listed(go.iter().copied())
        );
        let ids: BTreeSet<_> = go.iter().map(|machine| machine.id).collect();
        if are_missed(view, roll, &ids) {
            return None;
        }
        let mut next = view.desired.clone();
        dismiss(&mut next, &ids);
        let left = old.iter().any(|machine| !ids.contains(&machine.id));
        settle(&mut next, at, left);
        return Some((next, because));
    }
    let [first, ..] = old.as_slice() else {
        let because = format!("pool {} is of the new kind", roll.pool);
        let mut next = view.desired.clone();
        settle(&mut next, at, false);
        return Some((next, because));
    };
    if unsettled(view, roll).is_some() || waits(view, roll).is_some() || is_crowded(view) {
        return None;
    }
    let mut next = view.desired.clone();
    let surge = usize::try_from(roll.surge).unwrap_or(usize::MAX);
    let new: Vec<_> = (0..surge.min(old.len()))
        .map_while(|_| hire(&mut next, first, &roll.origin))
        .collect();
    let rolls = next.rolls.get_mut(at)?;
    if new.is_empty() {
        let because = format!("network {} has no address left", view.desired.network);
        let again = Failed::again(roll.failed.as_ref(), view.now, because.clone());
        rolls.failed = Some(again);
        return Some((next, because));
    }
    rolls.coming = new.iter().map(|machine| machine.id).collect();
    let because = format!(
        "{} to come, made as pool {} now says",
        listed(&new),
        roll.pool
    );
    Some((next, because))
}

/// The machines of the pool that are to stay.
fn of_pool<'a>(view: &View<'a>, roll: &Roll) -> impl Iterator<Item = &'a Machine> {
    let machines = view.desired.machines.iter();
    machines.filter(|machine| roll.holds(machine))
}

/// Those of the pool that have come, or are to, and for which nobody has gone yet.
pub(super) fn coming<'a>(view: &View<'a>, roll: &Roll) -> impl Iterator<Item = &'a Machine> {
    of_pool(view, roll).filter(|machine| roll.coming.contains(&machine.id))
}

/// Whether those of the new kind serve, which they do when their gates have let them pass, and
/// nothing of their coming is left to be done.
fn have_come(view: &View<'_>, planned: &impl Deref<Target = Plan>, coming: &[&Machine]) -> bool {
    if !coming.iter().all(|machine| serves(view, machine)) {
        return false;
    }
    let kept = |open: &&Open| !planned.withdraw.contains(&open.id);
    let open = view.open.iter().filter(kept);
    let open = open.map(|open| (open.machine, open.action.kind()));
    let begun = planned.tasks.iter();
    let begun = begun.map(|task| (task.machine.id, task.action.kind()));
    let mut left = open.chain(begun).filter(|(_, kind)| is_of_coming(*kind));
    !left.any(|(id, _)| coming.iter().any(|machine| machine.id == id))
}

/// How a machine of the new kind failed, where it did.
fn failed_to_come(
    view: &View<'_>,
    planned: &impl Deref<Target = Plan>,
    machine: &Machine,
) -> Option<String> {
    let sick = || {
        let due = given_up_at(view, machine)?;
        (due <= view.now).then(|| format!("{} does not serve", machine.name))
    };
    failed(view, planned, machine).or_else(sick)
}

/// When a machine of the new kind that does not serve is given up, where nothing changes until then.
fn given_up_at(view: &View<'_>, machine: &Machine) -> Option<Timestamp> {
    let after = view.desired.repair.after.or(Repair::default().after)?;
    let since = *view.observed.sick.get(&machine.id)?;
    let seen_at = silent_at(view, machine)?;
    Some(seen_again(view, seen_at, since.plus(after)))
}

/// Those of the new kind that failed leave, and with them whoever does not serve yet; the old ones
/// were never touched. Who serves all the same goes when nobody else is missing.
fn take_back(
    view: &View<'_>,
    at: usize,
    coming: &[&Machine],
    failures: BTreeMap<MachineId, String>,
) -> Option<(Desired, String)> {
    let mut next = view.desired.clone();
    let roll = next.rolls.get_mut(at)?;
    let useless = |machine: &Machine| {
        let comes = coming.iter().any(|other| other.id == machine.id);
        comes && (failures.contains_key(&machine.id) || !serves(view, machine))
    };
    let go = of_pool(view, roll).filter(|machine| useless(machine));
    let go: BTreeSet<_> = go.map(|machine| machine.id).collect();
    if are_missed(view, roll, &go) {
        return None;
    }
    let because = failures.into_values().next()?;
    let again = Failed::again(roll.failed.as_ref(), view.now, because);
    let said = format!(
        "pool {} stays as it was, tried {}×: {}",
        roll.pool, again.times, again.because
    );
    roll.failed = Some(again);
    roll.coming.retain(|id| !go.contains(id));
    dismiss(&mut next, &go);
    Some((next, said))
}

/// Whether one of these serves while another that stays does not.
fn are_missed(view: &View<'_>, roll: &Roll, go: &BTreeSet<MachineId>) -> bool {
    let (go, stay): (Vec<_>, Vec<_>) =
        of_pool(view, roll).partition(|machine| go.contains(&machine.id));
    let all = stay.iter().all(|machine| serves(view, machine));
    !all && go.iter().any(|machine| serves(view, machine))
}

/// Whom those that came replace: first who does not serve any more, then old ones by their ordinals;
/// and some of themselves where fewer are left than came.
fn relieved<'a>(
    view: &View<'_>,
    roll: &Roll,
    rest: &[&'a Machine],
    coming: &[&'a Machine],
) -> Vec<&'a Machine> {
    let sick = |machine: &Machine| joined(view, machine) && !serves(view, machine);
    let rest = rest.iter().copied();
    let rest = rest.filter(|machine| !roll.is_new(machine) || sick(machine));
    let mut go: Vec<_> = rest.chain(coming.iter().copied()).collect();
    go.sort_by_cached_key(|machine| (serves(view, machine), roll.is_new(machine), machine.ordinal));
    go.truncate(coming.len());
    go
}

/// A batch is over, and with the last one the roll.
fn settle(next: &mut Desired, at: usize, left: bool) {
    if left {
        if let Some(roll) = next.rolls.get_mut(at) {
            roll.coming.clear();
            roll.failed = None;
        }
    } else {
        next.rolls.remove(at);
    }
}

/// One of those that went and still serve somebody, where there is one.
fn unsettled<'a>(view: &View<'a>, roll: &Roll) -> Option<&'a Machine> {
    let stays = |machine: &Machine| match machine.role {
        Role::Control | Role::Compute => joined(view, machine),
        Role::Balancer => !is_gone(view, machine),
    };
    let mut leaving = view.desired.leaving.iter();
    leaving.find(|machine| roll.holds(machine) && stays(machine))
}

/// Who has to be gone before the next try begins, though its time has come.
pub(crate) fn after<'a>(view: &View<'a>, roll: &Roll) -> Option<&'a Machine> {
    let crowding = || {
        let mut leaving = view.desired.leaving.iter();
        let first = leaving.find(|machine| !is_gone(view, machine));
        first.filter(|_| is_crowded(view))
    };
    unsettled(view, roll).or_else(crowding)
}

/// When the next try may begin, where that is later.
fn waits(view: &View<'_>, roll: &Roll) -> Option<Timestamp> {
    if coming(view, roll).next().is_some() {
        return None;
    }
    let due = roll.failed.as_ref().map(Failed::due);
    let opens = view.desired.disruption.windows.opens(view.now);
    let later = due.filter(|due| *due > view.now);
    later.max(opens)
}

/// When to look for a step again: the next try may begin, or one that comes is given up.
pub(super) fn wakes(view: &View<'_>, roll: &Roll) -> Option<Timestamp> {
    let sick = coming(view, roll).filter_map(|machine| given_up_at(view, machine));
    let sick = sick.filter(|due| *due > view.now);
    sick.chain(waits(view, roll)).min()
}
