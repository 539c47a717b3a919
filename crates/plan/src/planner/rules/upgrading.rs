//! Nodes become of another version, on a topology that stands still.

use super::joining::{readmission, unready};
use super::making::{out_of_reach, replaced};
use super::quorum::{After, at_its_address, quorum_at_risk};
use super::removing::draining;
use crate::held::Reason;
use crate::planner::draft::Draft;
use crate::planner::snapshots;
use crate::planner::survey::{Life, Place, Survey, count};
use model::cluster::Role;
use model::task::{Action, Kind, Open};
use model::version::Version;

/// Nodes on another version: the control plane first and one at a time, then the workers, as
/// many at once as may be, on a stable topology.
pub(in crate::planner) fn upgrade(draft: &mut Draft<'_>) {
    let outdated: Vec<_> = older(draft.survey.wanted(), draft.version).collect();
    if outdated.is_empty() {
        paused_halfway(draft);
    }
    let (begun, fresh): (Vec<_>, Vec<_>) = outdated.into_iter().partition(|place| place.slot);
    // What was begun goes on, also when budgets or windows have changed since.
    for place in &begun {
        if let Some(member) = drained_early(draft, place) {
            if place.node.is_some_and(|node| node.cordoned) && able(place) {
                draft.want(place, readmission(draft.view.desired));
            } else {
                let after = member.machine.name.clone();
                draft.hold(place, Kind::Upgrade, Reason::Turn { after });
            }
        } else if kept_waiting(draft, place) {
            draft.want(place, readmission(draft.view.desired));
        } else {
            upgrade_node(draft, place, None);
        }
    }
    let control = begun
        .iter()
        .chain(&fresh)
        .find(|place| place.machine.role == Role::Control);
    let one_by_one = control.is_some() || one_by_one(draft);
    let (unsettled, member) = (unsettled(draft.survey), member_out(draft.survey));
    let (gated, mut first) = (gated(draft), begun.first().copied());
    for place in &fresh {
        let after = match (first, control) {
            _ if gated.is_some() => gated,
            (Some(first), _) if one_by_one => Some(first),
            // Every member waits for something of its own.
            (None, Some(control)) if place.machine.role == Role::Compute => Some(*control),
            (Some(_) | None, _) => None,
        };
        if let Some(reason) = draft.closed() {
            draft.hold(place, Kind::Upgrade, reason);
        } else if let Some(after) = after {
            let after = after.machine.name.clone();
            draft.hold(place, Kind::Upgrade, Reason::Turn { after });
        } else {
            let worker = place.machine.role == Role::Compute;
            let sick = sick(draft, place);
            let refused = unsettled
                .clone()
                .or_else(|| sick.clone())
                .or_else(|| draft.locked(place))
                .or_else(|| draft.over_budget(place))
                .or_else(|| member.clone().filter(|_| worker));
            // Others need not wait for one that may never serve again, where the budgets let them.
            let local = |reason: &Reason| reason.is_local() || sick.as_ref() == Some(reason);
            let local = refused.as_ref().is_some_and(local);
            upgrade_node(draft, place, refused);
            first = first.or((!local).then_some(*place));
        }
    }
}

/// Nodes that have an older version than this.
fn older<'s, 'a: 's>(
    places: impl Iterator<Item = &'s Place<'a>>,
    version: Version,
) -> impl Iterator<Item = &'s Place<'a>> {
    places.filter(move |place| place.node.is_some_and(|node| node.version < version))
}

/// Tells of an upgrade that has come to a stepping stone and does not go on from there, because
/// somebody asked that nothing be begun.
fn paused_halfway(draft: &mut Draft<'_>) {
    if let Some(reason) = draft.pause() {
        for place in older(draft.survey.wanted(), draft.view.desired.version) {
            draft.hold(place, Kind::Upgrade, reason.clone());
        }
    }
}

/// The member of the control plane for which a worker has to wait, though it was drained: the version
/// was raised since, or the member comes late. It serves until then.
fn drained_early<'a>(draft: &Draft<'a>, place: &Place<'_>) -> Option<&'a Place<'a>> {
    let worker = place.machine.role == Role::Compute;
    let mut members = older(draft.survey.members(), draft.version);
    members.next().filter(|_| worker)
}

/// A node that has come to its gates: what is wrong with it may be wrong with the next.
fn gated<'a>(draft: &Draft<'a>) -> Option<Place<'a>> {
    let there = |place: &&Place<'_>| {
        let node = place.node.filter(|node| node.version >= draft.version);
        place.slot && node.is_some_and(|node| node.cordoned)
    };
    let gates = !draft.view.desired.disruption.gates.is_empty();
    let mut places = draft.survey.wanted().filter(|_| gates);
    places.find(there).copied()
}

/// Why workers must wait: a member of the control plane is not back in service.
fn member_out(survey: &Survey<'_>) -> Option<Reason> {
    let mut members = survey.members();
    let out = members.find(|member| member.wanted && member.slot)?;
    Some(Reason::ControlPlane {
        waiting_for: out.machine.name.clone(),
    })
}

/// Whether one machine of the cluster is taken out of service after the other.
pub(super) fn one_by_one(draft: &Draft<'_>) -> bool {
    draft.view.desired.disruption.unavailable == 1
}

/// Whether a member was drained and cannot be upgraded, because etcd would lose its quorum. Nobody
/// knows how long that lasts, and others may have to leave first: it serves until then.
fn kept_waiting(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let idle = place.open.is_none() || place.doing(Kind::Uncordon);
    let drained = place.node.is_some_and(|node| node.cordoned);
    drained && idle && able(place) && quorum_at_risk(draft.survey, place, After::Same).is_some()
}

/// Whether a node could serve if it were let.
fn able(place: &Place<'_>) -> bool {
    place.life == Life::Running && place.node.is_some_and(|node| node.ready)
}

fn upgrade_node(draft: &mut Draft<'_>, place: &Place<'_>, refused: Option<Reason>) {
    let version = draft.version;
    let drained = place.slot && place.node.is_some_and(|node| node.cordoned) && !draining(place);
    let refused = refused.or_else(|| sick(draft, place));
    let refused = refused.or_else(|| draft.member_first(place));
    let refused = refused.or_else(|| quorum_at_risk(draft.survey, place, After::Same));
    match refused.or_else(|| snapshots::comes_first(draft, place)) {
        Some(reason) => draft.hold(place, Kind::Upgrade, reason),
        None if drained => draft.want(place, Action::Upgrade { version }),
        None => draft.want(place, Action::Drain),
    }
}

/// Why an upgrade does not begin on this node: it does not serve, and has to be mended or replaced
/// before. What has changed a node already goes on: perhaps that is why it does not.
fn sick(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let upgrades = |open: &Open| open.action.kind() == Kind::Upgrade && open.attempts > 0;
    if place.open.is_some_and(upgrades) {
        return None;
    }
    let node = place.node?;
    let emptied = place.slot && node.cordoned;
    let reason = if place.life == Life::Unreachable {
        out_of_reach(draft, place)
    } else if node.ready || emptied {
        return None;
    } else {
        unready(draft.view, place)
    };
    Some(replaced(draft, place, reason))
}

/// Why the topology is not stable enough for an upgrade to begin.
fn unsettled(survey: &Survey<'_>) -> Option<Reason> {
    let leaving = survey.leaving().find(|place| place.node.is_some());
    missing(survey, |place| !place.blocked).or_else(|| {
        leaving.map(|place| Reason::Turn {
            after: place.machine.name.clone(),
        })
    })
}

/// Machines that should be nodes and are not, and that count, unless they have to wait for somebody of the
/// cluster itself to go.
pub(super) fn missing(survey: &Survey<'_>, counts: impl Fn(&Place<'_>) -> bool) -> Option<Reason> {
    let mut missing = survey.wanted().filter(|place| {
        let comes = place.machine.role.is_node() && counts(place);
        comes && place.node.is_none() && at_its_address(survey, place).is_none()
    });
    let first = missing.next()?;
    Some(Reason::Additions {
        waiting_for: first.machine.name.clone(),
        missing: 1 + count(missing),
    })
}
