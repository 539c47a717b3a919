//! Machines become nodes: the control plane first, one after the other, then the rest.

use super::making::{joinable, replaced};
use super::quorum::{cannot_join, quorum};
use crate::held::Reason;
use crate::planner::draft::Draft;
use crate::planner::survey::{Life, Place, Survey, count};
use crate::planner::tending::Cares;
use crate::planner::{View, strays};
use model::cluster::{Desired, Role};
use model::name::Name;
use model::task::{Action, Kind, Open, State};
use model::upkeep::Roll;
use model::version::Version;

/// The first member of the control plane, then the others one after the other.
pub(in crate::planner) fn start_control_plane(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    ask_again(draft);
    let desired = draft.view.desired;
    let control = |place: &&Place<'_>| place.machine.role == Role::Control && joinable(place);
    let waiting: Vec<_> = draft.survey.wanted().filter(control).collect();
    // What was begun goes on before anything else is begun.
    let begun = |kind: Kind| waiting.iter().find(move |place| place.doing(kind));
    let first = begun(Kind::Init).or_else(|| begun(Kind::Join));
    let first = first.or(waiting.first());
    let Some(first) = first.copied() else {
        // Who comes later must know of it.
        let begun = draft.survey.places.iter().find(|place| starting(place));
        if let Some(begun) = begun.filter(|_| !draft.view.observed.initialised) {
            remember(draft, begun);
        }
        return;
    };
    if let Some(elsewhere) = starting_elsewhere(draft.survey, first) {
        let after = elsewhere.machine.name.clone();
        draft.hold(first, Kind::Init, Reason::Turn { after });
        remember(draft, elsewhere);
    } else if !draft.view.observed.initialised {
        draft.want(
            first,
            Action::Init {
                version: desired.version,
                network: desired.network,
                care: cares.wished(first),
            },
        );
    } else if let Some(reason) =
        cannot_join(draft.survey).or_else(|| strays::namesake(draft.survey, first))
    {
        draft.hold(first, Kind::Join, reason);
    } else {
        draft.want(first, join(draft, cares, first));
    }
    for place in waiting {
        if place.machine.id != first.machine.id {
            draft.hold(
                place,
                Kind::Join,
                Reason::Turn {
                    after: first.machine.name.clone(),
                },
            );
        }
    }
}

/// Keeps the task that started the control plane until it has ended well: what opens the API comes
/// of it, and nobody else can be asked for that.
fn ask_again(draft: &mut Draft<'_>) {
    let begun = |open: &&Open| open.action.kind() == Kind::Init && open.attempts > 0;
    let mut wanted = draft.survey.wanted();
    let place = wanted.find(|place| place.open.as_ref().is_some_and(begun));
    // Its node may be seen before its control plane is.
    let seen = |place: &&Place<'_>| draft.view.observed.initialised || place.node.is_some();
    let Some(place) = place.filter(seen) else {
        return;
    };
    match place.open {
        Some(_) if place.life == Life::Unreachable => draft.let_end(place, Kind::Init),
        Some(open) => draft.want(place, open.action.clone()),
        None => {}
    }
}

/// Keeps the task of a machine that does not answer: without it nobody would remember that a
/// control plane may have been started there.
fn remember(draft: &mut Draft<'_>, place: &Place<'_>) {
    if let Some(open) = place.open
        && place.wanted
        && place.life == Life::Unreachable
    {
        draft.want(place, open.action.clone());
    }
}

/// Whether a control plane may have been started on a machine, though nobody has seen it yet.
fn starting(place: &Place<'_>) -> bool {
    place.open.is_some_and(|open| {
        // That its machine is absent may have been seen before the attempt that runs.
        let may_be = place.life != Life::Absent || open.state == State::Running;
        may_be && open.action.kind() == Kind::Init && open.attempts > 0
    })
}

/// Another machine on which a control plane may have been started: a second one would split
/// the cluster.
fn starting_elsewhere<'s, 'a>(survey: &'s Survey<'a>, but: &Place<'_>) -> Option<&'s Place<'a>> {
    let mut places = survey.places.iter();
    places.find(|place| place.machine.id != but.machine.id && starting(place))
}

/// What a machine joins with: never ahead of the control plane, which is upgraded first.
fn join_version(draft: &Draft<'_>) -> Version {
    let members = draft.survey.members().filter_map(|place| place.node);
    let oldest = members.map(|node| node.version).min();
    oldest.map_or(draft.view.desired.version, |oldest| {
        oldest.min(draft.view.desired.version)
    })
}

/// How a machine joins. One that comes in place of others has gates to pass before it serves.
fn join(draft: &Draft<'_>, cares: &Cares<'_>, place: &Place<'_>) -> Action {
    let desired = draft.view.desired;
    let comes = |roll: &Roll| roll.coming.contains(&place.machine.id);
    Action::Join {
        version: join_version(draft),
        care: cares.wished(place),
        gated: !desired.disruption.gates.is_empty() && desired.rolls.iter().any(comes),
    }
}

/// Workers, all at once, as soon as the control plane can do without one of its members.
pub(in crate::planner) fn join_compute(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    let wanted = count(
        draft
            .survey
            .wanted()
            .filter(|place| place.machine.role == Role::Control),
    );
    let ready = count(
        draft
            .survey
            .places
            .iter()
            .filter(|place| place.ready_control()),
    );
    let missing = draft
        .survey
        .wanted()
        .find(|place| place.machine.role == Role::Control && !place.ready_control());
    let reason = if draft.view.observed.initialised {
        cannot_join(draft.survey).or_else(|| cares.unreached())
    } else {
        unborn(draft.view.desired).filter(|_| wanted == 0)
    };
    for place in draft.survey.wanted() {
        if place.machine.role != Role::Compute || !joinable(place) {
            continue;
        }
        match (&reason, missing) {
            (Some(reason), _) => draft.hold(place, Kind::Join, reason.clone()),
            (None, Some(missing)) if ready < quorum(wanted) => {
                let waiting_for = missing.machine.name.clone();
                draft.hold(place, Kind::Join, Reason::ControlPlane { waiting_for });
            }
            (None, _) if let Some(reason) = strays::namesake(draft.survey, place) => {
                draft.hold(place, Kind::Join, reason);
            }
            (None, Some(_) | None) => {
                draft.want(place, join(draft, cares, place));
            }
        }
    }
}

/// Why nothing can join yet where all of the control plane has still to be discovered.
fn unborn(desired: &Desired) -> Option<Reason> {
    let mut metal = desired.metal.iter();
    let wanted = metal.find(|wanted| wanted.role == Role::Control)?;
    Some(Reason::ControlPlane {
        waiting_for: Name::of_machine(&desired.name, &wanted.pool, 1),
    })
}

/// Nodes that we took out of service and have nothing left to do to, and those that came in place of
/// others and wait at their gates.
pub(in crate::planner) fn uncordon(draft: &mut Draft<'_>) {
    let version = draft.version;
    for place in draft.survey.wanted() {
        let Some(node) = place.node else { continue };
        if place.life == Life::Unreachable {
            continue;
        }
        let due = if place.slot {
            node.cordoned && node.version >= version
        } else {
            node.gated
        };
        if node.ready && due {
            draft.want(place, readmission(draft.view.desired));
        } else if !node.ready && place.open.is_none() {
            let reason = replaced(draft, place, unready(draft.view, place));
            draft.hold(place, Kind::Join, reason);
        }
    }
}

/// Why a node that is there does not serve.
pub(super) fn unready(view: &View<'_>, place: &Place<'_>) -> Reason {
    let told = view.observed.wellbeing.as_ref();
    let trouble = told.and_then(|(told, _)| told.troubles.get(place.machine.name.as_str()));
    trouble.map_or(Reason::NotReady, |because| Reason::Sick {
        because: because.clone(),
    })
}

/// What brings a node back into service.
pub(super) fn readmission(desired: &Desired) -> Action {
    match desired.disruption.gates.as_slice() {
        [] => Action::Uncordon,
        gates => Action::Readmit {
            gates: gates.to_vec(),
        },
    }
}
