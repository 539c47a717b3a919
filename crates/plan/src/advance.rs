//! What desired state becomes because of what was seen: nobody has asked, and nothing was declared
//! anew.
//!
//! Four things move it on. A pool whose machines are to be made in another way goes there by a few at
//! a time, and back when the new kind fails; a machine that has not served for long is replaced.
//! Both only add machines, or move some from those that stay to those that leave. An upgrade over
//! several minor releases goes from one stepping stone to the next. And where modules are named by a
//! branch, the commit that somebody saw is noted with what is made from it, and a newer one is taken
//! when it may be. What follows is the planner's, with all its rules.

mod hop;
mod modules;
mod repair;
mod roll;

pub use modules::{Offer, Taken, offers};
pub(crate) use modules::{foreseen, spared};

use crate::check::Note;
use crate::expand::growing::{Births, Stand, key};
use crate::held::{Held, Reason};
use crate::planner::{Plan, View, cancelled, restores};
use model::cluster::{Desired, Machine, Origin, Role};
use model::id::MachineId;
use model::intent::Wish;
use model::observed::{MachineFact, NodeFact, Seen};
use model::task::{Kind, State};
use model::time::Timestamp;
use model::upkeep::Roll;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::time::Duration;

pub(crate) use repair::Ward;
pub(crate) use roll::after;

/// The next generation of a cluster that moves on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// As it should be from now on.
    pub desired: Desired,
    /// Why, in one sentence.
    pub because: String,
}

/// Whether the step from `before` to `now` is one of those that somebody's edit began, which is in
/// `edited`: a pool becomes another kind, or an upgrade goes on to its next minor release.
pub fn follows(edited: &Desired, before: &Desired, now: &Desired) -> bool {
    let begun = |roll: &Roll| {
        let place = |of: &Roll| (of.pool.clone(), of.role, of.balancer.clone());
        let mut rolls = edited.rolls.iter();
        rolls.any(|of| place(of) == place(roll) && of.origin == roll.origin)
    };
    let went_on = |roll: &&Roll| !now.rolls.contains(roll);
    let rolled = before.rolls.iter().filter(went_on).any(begun);
    rolled || edited.stone.is_some() && before.stone != now.stone
}

impl Advance {
    /// What people are told of a step that the checker stops.
    pub fn stopped(&self, notes: &[Note]) -> Vec<Held> {
        let named = |machine: &&Machine, note: &Note| machine.name == note.machine;
        let held = notes.iter().map(|note| {
            let mut goes = self.desired.leaving.iter();
            let mut stays = self.desired.machines.iter();
            let kind = match goes.find(|machine| named(machine, note)) {
                Some(machine) if machine.role == Role::Balancer => Kind::Delete,
                None if stays.any(|machine| machine.name == note.machine) => Kind::Create,
                Some(_) | None => Kind::Drain,
            };
            Held {
                kind,
                machine: note.machine.clone(),
                machines: 1,
                reason: Reason::Stopped {
                    rule: format!("{} (in the step: {})", note.broken, self.because),
                },
            }
        });
        held.collect()
    }
}

/// Attempts after which a failure is one of the machine, not of the hour.
const ATTEMPTS_MAX: u32 = 5;

/// What was seen longer ago than this says nothing of now: whoever looks every minute has failed
/// to, three times.
const SEEN_LATELY: Duration = Duration::from_mins(3);

/// How long to wait for somebody to see it again.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// One step, where there is one to make now.
pub fn advance(view: &View<'_>) -> Option<Advance> {
    let idle = view.desired.rolls.is_empty() && view.desired.stone.is_none();
    let unseen = view.observed.sick.is_empty() && view.observed.followed.is_empty();
    let mut wishes = view.intents.iter().map(|intent| &intent.wish);
    let asked = wishes.any(|wish| matches!(wish, Wish::Update { .. }));
    if idle && unseen && !asked {
        return None;
    }
    if view.desired.tombstone || is_paused(view) || restores(view) {
        return None;
    }
    if let Some((mut desired, because)) = modules::pin(view) {
        desired.generation = desired.generation.next();
        return Some(Advance { desired, because });
    }
    if !view.observed.initialised {
        return None;
    }
    // Who is gone keeps neither a name nor an address from those that come.
    let mut before = Cow::Borrowed(view.desired);
    if before.leaving.iter().any(|machine| is_gone(view, machine)) {
        let leaving = &mut before.to_mut().leaving;
        leaving.retain(|machine| !is_gone(view, machine));
    }
    let view = &View {
        desired: &before,
        ..*view
    };
    let (mut desired, because) = match repair::look(view, &Ward::of(view)) {
        repair::Look::Due(machine, after) => repair::replaced(view, machine, after),
        repair::Look::Later(_) => modules::next(view)
            .or_else(|| roll::next(view))
            .or_else(|| hop::next(view))?,
    };
    desired.generation = desired.generation.next();
    desired.machines.sort_by(|a, b| key(a).cmp(&key(b)));
    Some(Advance { desired, because })
}

/// When to look for a step again, though nothing may have happened.
pub(crate) fn wake(view: &View<'_>, ward: &Ward<'_>) -> Option<Timestamp> {
    if view.desired.tombstone || !view.observed.initialised {
        return None;
    }
    let sick = match repair::look(view, ward) {
        repair::Look::Due(..) => None,
        repair::Look::Later(at) => at,
    };
    let rolls = view.desired.rolls.iter();
    sick.into_iter()
        .chain(rolls.filter_map(|roll| roll::wakes(view, roll)))
        .chain(modules::wake(view))
        .min()
}

/// When another takes the place of a machine that does not serve, where nothing changes until then.
pub(crate) fn replaced_at(
    view: &View<'_>,
    ward: &Ward<'_>,
    machine: &Machine,
) -> Option<Timestamp> {
    let there = !view.desired.tombstone && !is_paused(view) && view.observed.initialised;
    ward.when(view, machine).filter(|_| there)
}

fn is_paused(view: &View<'_>) -> bool {
    let mut wishes = view.intents.iter();
    wishes.any(|intent| matches!(intent.wish, Wish::Pause) && intent.counts(view.now))
}

/// Whether a machine does what it is there for.
pub(crate) fn serves(view: &View<'_>, machine: &Machine) -> bool {
    let seen = view.observed.machines.get(&machine.id);
    let node = seen.and_then(|seen| seen.node.as_ref());
    let out = matches!(node, Some((NodeFact::Joined { cordoned: true, .. }, _)));
    is_well(view, machine) && !out
}

/// Whether a machine could do what it is there for: one that was taken out of service is well.
fn is_well(view: &View<'_>, machine: &Machine) -> bool {
    let Some(seen) = view.observed.machines.get(&machine.id) else {
        return false;
    };
    let runs = matches!(seen.machine, Some((MachineFact::Running { .. }, _)));
    let does = match machine.role {
        Role::Control | Role::Compute => {
            matches!(seen.node, Some((NodeFact::Joined { ready: true, .. }, _)))
        }
        Role::Balancer => balances(view, machine),
    };
    runs && does
}

/// Whether a machine of a load balancer was told its targets, by what was last seen.
fn balances(view: &View<'_>, machine: &Machine) -> bool {
    let seen = view.observed.machines.get(&machine.id);
    let host = seen.and_then(|seen| seen.host.as_ref());
    host.is_some_and(|(host, _)| host.balance.is_some())
}

/// Whether a machine is a node, ready or not, by what was last seen.
fn joined(view: &View<'_>, machine: &Machine) -> bool {
    let seen = view.observed.machines.get(&machine.id);
    seen.is_some_and(Seen::is_node)
}

/// Whether a machine was seen to be gone, and nothing is under way that could have made it since.
pub(crate) fn is_gone(view: &View<'_>, machine: &Machine) -> bool {
    let seen = view.observed.machines.get(&machine.id);
    let absent = seen.is_some_and(|seen| matches!(seen.machine, Some((MachineFact::Absent, _))));
    let named = seen.is_some_and(Seen::is_named);
    absent && !named && !view.open.iter().any(|open| open.machine == machine.id)
}

/// How the work that lets a machine serve failed, where it did for good or again and again. What
/// nobody wants any more was done by somebody else, and what is begun anew may still go well.
fn failed(
    view: &View<'_>,
    planned: &impl Deref<Target = Plan>,
    machine: &Machine,
) -> Option<String> {
    let mut open = view.open.iter();
    let open = open.find(|open| open.machine == machine.id)?;
    let error = open.error.as_ref()?;
    let given_up = match open.state {
        State::Stuck => true,
        State::Waiting => open.attempts >= ATTEMPTS_MAX,
        State::Running | State::Done | State::Withdrawn => false,
    };
    if !given_up || !is_of_coming(open.action.kind()) {
        return None;
    }
    let goes_on = planned.withdraw.contains(&open.id) || planned.reopen.contains(&open.id);
    (!goes_on).then(|| format!("{} {}: {error}", open.action.kind(), machine.name))
}

/// Whether work of this kind is a part of a machine's own coming. The rest is done with one machine
/// for the sake of all.
const fn is_of_coming(kind: Kind) -> bool {
    match kind {
        Kind::Create
        | Kind::Prepare
        | Kind::Equip
        | Kind::Balance
        | Kind::Join
        | Kind::Tend
        | Kind::Uncordon => true,
        Kind::Key
        | Kind::Mesh
        | Kind::Name
        | Kind::Expose
        | Kind::Shut
        | Kind::Init
        | Kind::Install
        | Kind::Drain
        | Kind::Upgrade
        | Kind::Renew
        | Kind::Snapshot
        | Kind::Restore
        | Kind::Leave
        | Kind::Clear
        | Kind::Delete
        | Kind::Release => false,
    }
}

/// Whether there is no address for anybody to come, though somebody is about to give one back: who
/// leaves, or who has come in place of one that then leaves. Who cannot be cleaned may never.
fn is_crowded(view: &View<'_>) -> bool {
    let desired = view.desired;
    let stay = desired.machines.iter();
    let leave = || {
        let leaving = desired.leaving.iter();
        leaving.filter(|machine| !is_gone(view, machine))
    };
    let taken: BTreeSet<_> = stay.chain(leave()).map(|of| of.address).collect();
    if desired.network.hosts().any(|free| !taken.contains(&free)) {
        return false;
    }
    let given_up = |machine: &Machine| cancelled(view, machine.id, Kind::Release).is_some();
    let mut rolls = desired.rolls.iter();
    let comes = rolls.any(|roll| roll::coming(view, roll).next().is_some());
    comes || leave().any(|machine| !given_up(machine))
}

/// Moves machines from those that stay to those that leave.
fn dismiss(desired: &mut Desired, who: &BTreeSet<MachineId>) {
    let (leave, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut desired.machines)
        .into_iter()
        .partition(|machine| who.contains(&machine.id));
    desired.machines = stay;
    desired.leaving.extend(leave);
}

/// Adds a machine where another stands; answers which, or nothing where the network has no address
/// left.
fn hire(desired: &mut Desired, beside: &Machine, origin: &Origin) -> Option<Machine> {
    let bearers = desired.all().filter(|machine| machine.pool == beside.pool);
    let taken: BTreeSet<_> = bearers.map(|machine| machine.ordinal).collect();
    let ordinal = (1..=u32::MAX).find(|ordinal| !taken.contains(ordinal))?;
    let mut births = Births::among(desired, &[]);
    let mut next = desired.clone();
    let new = births.machine(&mut next, Stand::of(beside), ordinal, origin.clone());
    if new.address.is_unspecified() {
        return None;
    }
    next.machines.push(new.clone());
    *desired = next;
    Some(new)
}

/// Names in a sentence.
fn listed<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> String {
    let names: Vec<_> = machines
        .into_iter()
        .map(|machine| machine.name.as_str())
        .collect();
    match names.as_slice() {
        [several @ .., last] if !several.is_empty() => {
            format!("{} and {last}", several.join(", "))
        }
        names => names.join(""),
    }
}

#[cfg(test)]
mod tests;
