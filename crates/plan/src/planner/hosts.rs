//! The rules of hosts: the key that opens them, what is on them, how they reach each other,
//! what they pass on.
//!
//! They lie between making a machine and joining it to Kubernetes, and never end: a host that
//! drifted from what it was told is told again, in place.

pub(super) mod balancers;
mod mesh;

pub(super) use mesh::{left_out, mesh};

use super::draft::Draft;
use super::survey::{Life, Node, Place};
use super::tending::Cares;
use crate::held::Reason;
use model::cluster::{Machine, Role};
use model::task::{Action, Kind, Open, State};

/// Whether a machine must not be taken yet: nothing would open one that is made, and one that is
/// given could not be told whose it is.
pub(super) fn lacks_key(draft: &Draft<'_>, machine: &Machine) -> bool {
    machine.origin.is_host() && draft.view.observed.access.is_none()
}

/// One key for all machines of the cluster: one of those that wait for it has it made.
pub(super) fn make_key(draft: &mut Draft<'_>, waiting: &[&Place<'_>]) {
    if waiting.is_empty() {
        return;
    }
    let waits = |place: &Place<'_>| {
        let mut waiting = waiting.iter();
        waiting.any(|other| other.machine.id == place.machine.id)
    };
    let making = |place: &&Place<'_>| place.doing(Kind::Key) && under_way(place);
    // One that is to leave may still be making it: with two of them, one would not fit.
    let elsewhere = draft.survey.places.iter().find(making);
    let first = match elsewhere {
        Some(elsewhere) if !waits(elsewhere) => elsewhere,
        Some(_) | None => {
            let begun = waiting.iter().find(|place| place.doing(Kind::Key));
            let Some(first) = begun.or(waiting.first()).copied() else {
                return;
            };
            draft.want(first, Action::Key);
            first
        }
    };
    for place in waiting {
        if place.machine.id != first.machine.id {
            let after = first.machine.name.clone();
            let kind = super::rules::acquire(place.machine, false).kind();
            draft.hold(place, kind, Reason::Turn { after });
        }
    }
}

/// Whether a worker is at work on the machine.
fn under_way(place: &Place<'_>) -> bool {
    place.open.is_some_and(|open| open.state == State::Running)
}

/// Whether the last attempt at its unfinished task failed.
pub(super) fn failed(place: &Place<'_>) -> bool {
    place.open.is_some_and(|open| open.error.is_some())
}

/// Hosts that lack something of what they are made ready for.
///
/// Those that serve nobody yet are equipped at once and all together. On one that serves, what
/// runs its containers may be started again: it takes a row of the ledger and its turn, and
/// where it fails the others wait, because what fails on one may fail on all.
pub(super) fn equip(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    for place in draft.survey.wanted() {
        if !place.machine.origin.is_host() || place.life != Life::Running {
            continue;
        }
        if let Some(begun) = started(draft, place) {
            // Without an end of the mesh it cannot go on, and nobody else would keep it.
            if !place.connected() {
                draft.want(place, begun);
            }
            continue;
        }
        if !place.lacks() || later(draft, cares, place) {
            continue;
        }
        if let Some(reason) = waits(draft, place) {
            draft.hold(place, Kind::Equip, reason);
        } else if let Some(recipe) = draft.survey.recipe(place).cloned() {
            draft.want(place, Action::Equip { recipe });
        }
    }
}

/// Why a host that serves may not be equipped now.
fn waits(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    // What was begun goes on, also when budgets or windows have changed since.
    if under_way(place) || place.equips() && place.slot {
        return None;
    }
    if place.machine.role == Role::Balancer {
        return balancers::another_is_equipped(draft, place);
    }
    if !place.disturbed_by(Kind::Equip) {
        return None;
    }
    // One that does not serve may do so again when it is equipped.
    let serves = place.in_service();
    let closed = draft.closed().filter(|_| serves);
    closed
        .or_else(|| draft.over_budget(place).filter(|_| serves))
        .or_else(|| draft.member_first(place))
}

fn keyless(place: &Place<'_>) -> bool {
    place.host.is_none_or(|host| host.mesh_key.is_none())
}

/// The unfinished task that may have started a control plane on the machine. It alone
/// remembers that; while it is there none is started elsewhere. Where there is no other
/// machine for it, nothing can go wrong.
fn started(draft: &Draft<'_>, place: &Place<'_>) -> Option<Action> {
    let init = |open: &&Open| open.attempts > 0 && open.action.kind() == Kind::Init;
    let open = place.open.filter(init)?;
    let mut others = draft.survey.places.iter();
    let other = others
        .any(|other| other.machine.role == Role::Control && other.machine.id != place.machine.id);
    (other && !draft.view.observed.initialised).then(|| open.action.clone())
}

/// Whether a host that serves has something more urgent to do than to be equipped, which has
/// failed and may fail for ever.
fn later(draft: &Draft<'_>, cares: &Cares<'_>, place: &Place<'_>) -> bool {
    let failed = place.doing(Kind::Equip) && failed(place);
    // It is ready to serve again.
    let version = draft.version;
    let back = |node: Node| node.cordoned && node.ready && node.version >= version;
    let returns = failed && place.slot && place.node.is_some_and(back);
    // It passes on to machines that go. Once that is begun, it stays so until it is done.
    let equipped = place.host.is_some_and(|host| host.equipped.is_some());
    let behind = equipped && (failed || place.doing(Kind::Balance));
    returns || behind && balancers::is_to_be_told(draft, cares, place)
}
