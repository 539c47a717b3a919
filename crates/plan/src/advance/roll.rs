//! A pool on its way to machines of another kind: a few come and serve, as many of the old ones go,
//! and so on. A kind that fails is taken back, and tried again after a pause that grows.

use super::{dismiss, failed, hire, is_gone, joined, listed, serves};
use crate::planner::View;
use model::cluster::{Desired, Machine, Role};
use model::id::MachineId;
use model::time::Timestamp;
use model::upkeep::{Failed, Repair, Roll};
use std::collections::BTreeSet;

/// The next step of the first pool that has one.
pub(super) fn next(view: &View<'_>) -> Option<(Desired, String)> {
    let mut rolls = view.desired.rolls.iter().enumerate();
    rolls.find_map(|(at, roll)| step(view, at, roll))
}

fn step(view: &View<'_>, at: usize, roll: &Roll) -> Option<(Desired, String)> {
    let mut next = view.desired.clone();
    let of_pool: Vec<_> = of_pool(view, roll).collect();
    let (coming, rest): (Vec<_>, Vec<_>) = of_pool
        .into_iter()
        .partition(|machine| roll.coming.contains(&machine.id));
    let failure = coming
        .iter()
        .find_map(|machine| failed_to_come(view, machine));
    if let Some(because) = failure {
        return Some(take_back(view, at, &coming, because));
    }
    let old: Vec<_> = rest
        .iter()
        .filter(|machine| !roll.is_new(machine))
        .collect();
    if !coming.is_empty() {
        if !coming.iter().all(|machine| serves(view, machine)) {
            return None;
        }
        let go = relieved(view, roll, &rest, coming.len());
        let because = format!(
            "{} in place of {}",
            listed(coming),
            listed(go.iter().copied())
        );
        let ids: BTreeSet<_> = go.iter().map(|machine| machine.id).collect();
        dismiss(&mut next, &ids);
        let left = old.iter().any(|machine| !ids.contains(&machine.id));
        settle(&mut next, at, left);
        return Some((next, because));
    }
    let [first, ..] = old.as_slice() else {
        let because = format!("pool {} is of the new kind", roll.pool);
        settle(&mut next, at, false);
        return Some((next, because));
    };
    if !settled(view, roll) || waits(view, roll).is_some() {
        return None;
    }
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

/// How a machine of the new kind failed, where it did.
fn failed_to_come(view: &View<'_>, machine: &Machine) -> Option<String> {
    let sick = || {
        let after = view.desired.repair.after.or(Repair::default().after)?;
        let since = view.observed.sick.get(&machine.id)?;
        let long = !serves(view, machine) && view.now.since(*since) >= after;
        long.then(|| format!("{} does not serve", machine.name))
    };
    failed(view, machine).or_else(sick)
}

/// Those of the new kind that do not serve leave; the old ones were never touched.
fn take_back(
    view: &View<'_>,
    at: usize,
    coming: &[&Machine],
    because: String,
) -> (Desired, String) {
    let mut next = view.desired.clone();
    let useless = coming.iter().filter(|machine| !serves(view, machine));
    let useless: BTreeSet<MachineId> = useless.map(|machine| machine.id).collect();
    dismiss(&mut next, &useless);
    let mut said = because.clone();
    if let Some(roll) = next.rolls.get_mut(at) {
        roll.coming.retain(|id| !useless.contains(id));
        let again = Failed::again(roll.failed.as_ref(), view.now, because);
        said = format!(
            "pool {} stays as it was, tried {}×: {said}",
            roll.pool, again.times
        );
        roll.failed = Some(again);
    }
    (next, said)
}

/// Whom those that came replace: first who does not serve, then old ones by their ordinals.
fn relieved<'a>(
    view: &View<'_>,
    roll: &Roll,
    rest: &[&'a Machine],
    count: usize,
) -> Vec<&'a Machine> {
    let mut go: Vec<_> = rest
        .iter()
        .copied()
        .filter(|machine| !roll.is_new(machine) || !serves(view, machine))
        .collect();
    go.sort_by_key(|machine| (serves(view, machine), roll.is_new(machine), machine.ordinal));
    go.truncate(count);
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

/// Whether those that went serve nobody any more.
fn settled(view: &View<'_>, roll: &Roll) -> bool {
    let stays = |machine: &Machine| match machine.role {
        Role::Control | Role::Compute => joined(view, machine),
        Role::Balancer => !is_gone(view, machine),
    };
    let mut leaving = view.desired.leaving.iter();
    !leaving.any(|machine| roll.holds(machine) && stays(machine))
}

/// When the next try may begin, where that is later.
pub(super) fn waits(view: &View<'_>, roll: &Roll) -> Option<Timestamp> {
    if !roll.coming.is_empty() {
        return None;
    }
    let due = roll.failed.as_ref().map(Failed::due);
    let opens = view.desired.disruption.windows.opens(view.now);
    let later = due.filter(|due| *due > view.now);
    later.max(opens)
}
