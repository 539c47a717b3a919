//! What etcd can decide, and what it could no more.

use crate::held::Reason;
use crate::planner::draft::Draft;
use crate::planner::strays;
use crate::planner::survey::{Life, Place, Survey, count};
use model::cluster::{Origin, Role};
use model::task::{Kind, Open};

/// How many of `members` must be ready so that etcd can decide.
pub(in crate::planner) const fn quorum(members: u32) -> u32 {
    members / 2 + 1
}

/// Why nothing can join a control plane that was started.
pub(in crate::planner) fn cannot_join(survey: &Survey<'_>) -> Option<Reason> {
    let members = count(survey.voters());
    let ready = count(survey.members().filter(|place| place.ready_control()));
    let (votes, counting) = strays::votes(&survey.left);
    let (ready, needed) = (ready + counting, quorum(members + votes));
    if survey.members().next().is_none() {
        Some(Reason::ControlPlaneLost)
    } else if ready < needed {
        Some(outnumbered(survey, ready, needed))
    } else {
        None
    }
}

/// The machine that stands at the address of a given one and has to give it back first.
pub(in crate::planner) fn at_its_address<'s, 'a>(
    survey: &'s Survey<'a>,
    place: &Place<'_>,
) -> Option<&'s Place<'a>> {
    let Origin::Given { endpoint, .. } = &place.machine.origin else {
        return None;
    };
    survey.leaving().find(|leaving| {
        remains(leaving)
            && matches!(&leaving.machine.origin, Origin::Given { endpoint: other, .. } if other == endpoint)
    })
}

/// How many members the control plane has after a change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::planner) enum After {
    /// As many as before.
    Same,
    /// One less.
    Less,
}

/// Whether etcd could lose its quorum while a member is changed or removed.
pub(in crate::planner) fn quorum_at_risk(
    survey: &Survey<'_>,
    place: &Place<'_>,
    after: After,
) -> Option<Reason> {
    if place.machine.role != Role::Control {
        return None;
    }
    // Whoever is left of others still has a vote.
    let (votes, counting) = strays::votes(&survey.left);
    let members = count(survey.voters()) + votes;
    let ready = survey
        .members()
        .filter(|other| other.machine.id != place.machine.id && other.ready_control());
    let others = count(ready) + counting;
    let needed = match after {
        // The only member has nobody to keep a quorum with, and can still be changed in place.
        After::Same if members == 1 => 0,
        After::Same => quorum(members),
        // Etcd decides on the removal as it is now, and on everything else as it is then.
        After::Less => {
            let now = quorum(members).saturating_sub(u32::from(place.ready_control()));
            let now = if half_removed(place) { 0 } else { now };
            now.max(quorum(members.saturating_sub(1)))
        }
    };
    (others < needed).then(|| outnumbered(survey, others, needed))
}

/// Whether a member was begun to be taken out and is not well since: etcd may have decided on that
/// already, and nothing but its end makes it whole.
fn half_removed(place: &Place<'_>) -> bool {
    let left = |open: &Open| open.action.kind() == Kind::Leave && open.attempts > 0;
    place.open.is_some_and(left) && !place.ready_control()
}

/// Etcd cannot decide: fewer members are ready than it needs, because of those that do not answer,
/// or never will.
pub(in crate::planner) fn outnumbered(survey: &Survey<'_>, ready: u32, needed: u32) -> Reason {
    let silent = survey
        .voters()
        .filter(|place| place.life == Life::Unreachable);
    let gone = survey.voters().filter(|place| place.dead_vote);
    Reason::Quorum {
        ready,
        needed,
        silent: count(silent),
        gone: count(gone),
    }
}

/// Says that the control plane is lost where nothing else that waits says so: those whose machines are
/// gone are perhaps wanted by nobody any more, and what was last seen of the others is long past.
pub(in crate::planner) fn tell_lost(draft: &mut Draft<'_>) {
    let lost = cannot_join(draft.survey).filter(Reason::is_loss);
    let control = |place: &&Place<'_>| place.machine.role == Role::Control;
    let first = draft.survey.wanted().find(control);
    let Some((reason, first)) = lost.zip(first) else {
        return;
    };
    if draft.view.observed.initialised && !draft.is_told_lost() {
        draft.hold(first, Kind::Join, reason);
    }
}

/// Whether something of a machine may be left.
///
/// An unfinished attempt may have made it since it was last seen to be absent; removing
/// what is not there does no harm, forgetting what is there does.
pub(super) fn remains(place: &Place<'_>) -> bool {
    place.life != Life::Absent || place.open.is_some_and(|open| open.attempts > 0)
}
