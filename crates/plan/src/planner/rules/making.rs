//! Machines that should be and are not, or cannot be used.

use super::quorum::{After, at_its_address, cannot_join, quorum_at_risk};
use crate::held::Reason;
use crate::planner::draft::Draft;
use crate::planner::hosts::balancers;
use crate::planner::survey::{Life, Place, Survey};
use crate::planner::tending::Cares;
use crate::planner::{View, hosts, names, ports};
use model::cluster::{Machine, Origin, Role};
use model::observed::{Followed, MachineFact};
use model::task::{Action, Kind, State};

/// Machines that should be and are not.
pub(in crate::planner) fn create(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    let open = ports::made_open(draft, cares);
    let mut keyless = Vec::new();
    for place in draft.survey.wanted() {
        match place.life {
            // Nobody is made in the place of one that still has its name, and its vote.
            _ if place.outlived => forget(draft, place),
            Life::Unseen | Life::Absent | Life::Booting
                if hosts::lacks_key(draft, place.machine) =>
            {
                keyless.push(place);
            }
            Life::Unseen | Life::Absent | Life::Booting
                if let Some(reason) = unresolved(draft.view, place.machine) =>
            {
                draft.hold(place, Kind::Create, reason);
            }
            Life::Unseen | Life::Absent | Life::Booting => {
                if let Some(action) = names::before_it_is_made(draft, place) {
                    draft.want(place, action);
                }
                let action = acquire(place.machine, open);
                match at_its_address(draft.survey, place) {
                    Some(other) if !place.doing(action.kind()) => {
                        let after = other.machine.name.clone();
                        draft.hold(place, action.kind(), Reason::Turn { after });
                    }
                    _ if let Some(turn) = balancers::not_its_turn(draft, place) => {
                        draft.hold(place, action.kind(), turn);
                    }
                    Some(_) | None => draft.want(place, action),
                }
            }
            // Whoever makes it waits until it answers, and says so if it never does.
            Life::Unreachable if being_made(place) => draft.let_end(place, Kind::Create),
            Life::Unreachable => {
                let reason = outvoted(draft.survey, place);
                let reason = reason.unwrap_or_else(|| out_of_reach(draft, place));
                let reason = replaced(draft, place, reason);
                draft.hold(place, serves_by(place), reason);
            }
            Life::Running => {}
        }
    }
    hosts::make_key(draft, &keyless);
}

/// Takes a node out whose machine is gone.
fn forget(draft: &mut Draft<'_>, place: &Place<'_>) {
    let refused = undecided(draft, place).or_else(|| draft.member_first(place));
    match refused {
        Some(reason) => draft.hold(place, Kind::Leave, reason),
        None => draft.want(place, Action::Leave),
    }
}

/// Why etcd cannot decide that a node goes whose machine is gone.
fn undecided(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let refused = cannot_join(draft.survey);
    refused.or_else(|| quorum_at_risk(draft.survey, place, After::Less))
}

/// Why nobody knows what a machine would be made from.
fn unresolved(view: &View<'_>, machine: &Machine) -> Option<Reason> {
    let reference = machine.origin.reference()?;
    let followed = view.observed.followed.get(&reference);
    let trouble = followed.and_then(Followed::trouble);
    machine.origin.lacks_commit().then(|| Reason::Modules {
        reference: reference.to_string(),
        because: trouble.map(|trouble| trouble.because.clone()),
        lasting: trouble.is_some_and(|trouble| trouble.lasting),
    })
}

/// Whether somebody makes it right now.
fn being_made(place: &Place<'_>) -> bool {
    place.doing(Kind::Create) && place.open.is_some_and(|open| open.state == State::Running)
}

/// Why nobody can do without a member that does not answer: too few others do.
fn outvoted(survey: &Survey<'_>, place: &Place<'_>) -> Option<Reason> {
    let member = place.machine.role == Role::Control && place.node.is_some();
    let several = survey.voters().nth(1).is_some();
    cannot_join(survey).filter(|_| member && several)
}

/// Why a machine that is there is of no use.
pub(super) fn out_of_reach(draft: &Draft<'_>, place: &Place<'_>) -> Reason {
    let seen = draft.view.observed.machines.get(&place.machine.id);
    match seen.and_then(|seen| seen.machine.as_ref()) {
        Some((MachineFact::Unreachable { because, .. }, _)) => match because {
            Some(because) => Reason::Unusable {
                because: because.clone(),
            },
            None => Reason::Unreachable,
        },
        Some((
            MachineFact::Absent | MachineFact::Booting { .. } | MachineFact::Running { .. },
            _,
        ))
        | None => Reason::Unreachable,
    }
}

/// The work that lets a machine serve.
fn serves_by(place: &Place<'_>) -> Kind {
    match place.machine.role {
        Role::Control | Role::Compute => Kind::Join,
        Role::Balancer => Kind::Balance,
    }
}

/// What makes a machine one of ours. The port of the API is open on one that comes to a cloud where
/// it should be.
pub(in crate::planner) fn acquire(machine: &Machine, open: bool) -> Action {
    match machine.origin {
        Origin::Made { .. } if open && machine.has_firewall() => Action::CreateExposed,
        Origin::Made { .. } => Action::Create,
        Origin::Given { .. } => Action::Prepare,
    }
}

/// Whether a machine runs and waits to become a node.
pub(in crate::planner) fn joinable(place: &Place<'_>) -> bool {
    place.wanted && place.node.is_none() && place.life == Life::Running && place.connected()
}

/// Whether somebody else takes the place of one that does not serve.
pub(super) fn replaced(draft: &Draft<'_>, place: &Place<'_>, reason: Reason) -> Reason {
    match draft.replaced_at(place) {
        Some(due) => Reason::Repair {
            because: reason.to_string(),
            due,
        },
        None => reason,
    }
}
