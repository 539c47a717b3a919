//! Nodes and machines that should not be any more.

use super::quorum::{After, quorum_at_risk, remains};
use super::upgrading::{missing, one_by_one};
use crate::held::Reason;
use crate::planner::draft::Draft;
use crate::planner::hosts::balancers;
use crate::planner::names;
use crate::planner::survey::{Life, Node, Place, count};
use crate::planner::tending::{Cares, still_asked};
use model::cluster::{Machine, MetalWanted, Origin, Role};
use model::name::Name;
use model::task::{Action, Kind};

fn dispose(machine: &Machine) -> Action {
    match machine.origin {
        Origin::Made { .. } => Action::Delete,
        Origin::Given { .. } => Action::Release,
    }
}

/// Machines that should go: out of service, out of the cluster, out of the world.
pub(in crate::planner) fn remove(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    let nodes: Vec<_> = draft
        .survey
        .leaving()
        .filter(|place| place.node.is_some())
        .collect();
    let control = |place: &&Place<'_>| place.machine.role == Role::Control;
    let members: Vec<_> = nodes.iter().copied().filter(control).collect();
    let (first, first_member) = (first_of(&nodes), first_of(&members));
    let one_by_one = one_by_one(draft);
    // Who waits for what somebody gives back by itself comes later. Who needs what others keep may never come.
    let missing = missing(draft.survey, |place| !place.blocked || place.shut_out);
    // Nobody else waits until load balancers are told.
    let untold = first.and_then(|_| balancers::not_told_yet(draft, cares));
    for place in draft.survey.leaving() {
        let named = names::taken_back(draft, place);
        if !remains(place) && named.is_none() || draft.given_up(place) {
            continue;
        }
        // Members of the control plane go one at a time, whatever the budget.
        let ahead = match (one_by_one, place.machine.role) {
            (true, _) => first,
            (false, Role::Control) => first_member,
            (false, Role::Compute | Role::Balancer) => None,
        };
        let closed = draft.closed().filter(|_| !out_already(place));
        match (place.node, ahead) {
            (None, _)
                if let Some(reason) = balancers::still_needed(draft, place)
                    .or_else(|| undiscovered(draft, place).filter(|_| balancers::serves(place)))
                    .or_else(|| still_asked(draft, cares, place)) =>
            {
                draft.hold(place, dispose(place.machine).kind(), reason);
            }
            (None, _) => match named {
                Some(Err(reason)) => draft.hold(place, dispose(place.machine).kind(), reason),
                Some(Ok(action)) => draft.want(place, action),
                None => draft.want(place, dispose(place.machine)),
            },
            (Some(_), _) if let Some(reason) = closed => draft.hold(place, Kind::Drain, reason),
            (Some(_), Some(ahead)) if ahead.machine.id != place.machine.id => {
                draft.hold(
                    place,
                    Kind::Drain,
                    Reason::Turn {
                        after: ahead.machine.name.clone(),
                    },
                );
            }
            (Some(_), Some(_) | None) => {
                let told = untold.clone().or_else(|| still_asked(draft, cares, place));
                let additions = missing.clone().or_else(|| undiscovered(draft, place));
                remove_node(draft, place, (additions, told));
            }
        }
    }
}

/// The node whose turn it is: one that serves nobody any more, or else the first.
fn first_of<'s, 'a>(nodes: &[&'s Place<'a>]) -> Option<&'s Place<'a>> {
    let out = nodes.iter().find(|place| out_already(place));
    out.or(nodes.first()).copied()
}

/// Machines that should do what this one does, and that nobody has discovered: none of them may ever come.
/// Nobody waits for them where enough others stay that serve.
fn undiscovered(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let (desired, machine) = (draft.view.desired, place.machine);
    let alike = |of: &&MetalWanted| (of.role, &of.balancer) == (machine.role, &machine.balancer);
    let mut metal = desired.metal.iter().filter(alike);
    let first = metal.next()?;
    let missing = metal.fold(first.count, |sum, of| sum.saturating_add(of.count));
    let stay = || {
        draft.survey.wanted().filter(|other| {
            let other = other.machine;
            (other.role, &other.balancer) == (machine.role, &machine.balancer)
        })
    };
    let serve = count(stay().filter(|other| match machine.role {
        Role::Control | Role::Compute => other.in_service(),
        Role::Balancer => balancers::serves(other),
    }));
    let all = count(stay()).saturating_add(missing);
    let enough = match machine.role {
        Role::Control => all / 2 + 1,
        Role::Compute | Role::Balancer => 1,
    };
    let stem = first.balancer.as_ref().unwrap_or(&desired.name);
    (serve < enough).then(|| Reason::Additions {
        waiting_for: Name::of_machine(stem, &first.pool, 1),
        missing,
    })
}

/// Whether the node serves nobody any more, or was told not to.
fn out_already(place: &Place<'_>) -> bool {
    let idle = |node: Node| !node.ready || node.gated;
    place.slot || place.life == Life::Unreachable || place.node.is_some_and(idle)
}

/// Whether a drain was begun and has not ended: the node takes no new workloads, and may
/// still have old ones. One that does not answer has nothing left to move.
pub(super) fn draining(place: &Place<'_>) -> bool {
    let answers = place.life != Life::Unreachable && place.node.is_some_and(|node| node.ready);
    answers
        && place
            .open
            .is_some_and(|open| open.action.kind() == Kind::Drain)
}

/// Whether its pods may still run: who is dead is not disturbed, whatever its label says.
fn may_run(place: &Place<'_>) -> bool {
    !matches!(place.life, Life::Unreachable | Life::Absent)
}

fn remove_node(
    draft: &mut Draft<'_>,
    place: &Place<'_>,
    (missing, untold): (Option<Reason>, Option<Reason>),
) {
    let begun = out_already(place);
    let locked = || draft.locked(place).filter(|_| may_run(place));
    let refused = if begun {
        // What is under way is not left half done.
        locked().filter(|_| !place.doing(Kind::Drain) && !place.doing(Kind::Leave))
    } else {
        missing.or_else(locked).or_else(|| draft.over_budget(place))
    };
    // Who never served has nothing to be moved off, whatever was begun.
    let idle = !place.slot && place.node.is_some_and(|node| node.gated);
    let drained = begun && !place.in_service() && (idle || !draining(place));
    let action = if drained {
        Action::Leave
    } else {
        Action::Drain
    };
    let refused = refused.or_else(|| draft.member_first(place));
    // Without a quorum nobody can be led away, and whoever should be waits for the same.
    let refused = refused.or_else(|| quorum_at_risk(draft.survey, place, After::Less));
    match refused.or_else(|| untold.filter(|_| drained || !begun)) {
        Some(reason) => draft.hold(place, action.kind(), reason),
        None => draft.want(place, action),
    }
}

/// Everything goes: workers first, so that their departure can still be recorded.
pub(in crate::planner) fn tear_down(draft: &mut Draft<'_>) {
    let remaining: Vec<_> = draft
        .survey
        .leaving()
        .filter(|place| remains(place) || names::taken_back(draft, place).is_some())
        .filter(|place| !draft.given_up(place))
        .collect();
    // A given machine that does not answer may never: nobody waits for it.
    let silent = |place: &Place<'_>| {
        place.life == Life::Unreachable && matches!(place.machine.origin, Origin::Given { .. })
    };
    let worker = remaining
        .iter()
        .find(|place| place.machine.role == Role::Compute && !silent(place));
    for place in &remaining {
        match worker {
            Some(worker) if place.machine.role == Role::Control => {
                let after = worker.machine.name.clone();
                draft.hold(place, dispose(place.machine).kind(), Reason::Turn { after });
            }
            Some(_) | None => match names::taken_back(draft, place) {
                Some(Ok(action)) => draft.want(place, action),
                Some(Err(_)) | None => draft.want(place, dispose(place.machine)),
            },
        }
    }
}
