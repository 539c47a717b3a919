//! Certificates of the control plane, renewed before they end.
//!
//! A member whose certificates are made anew starts its parts of the control plane again: it takes
//! its turn and a row of the ledger like one that is upgraded, and keeps its workloads.

use super::View;
use super::draft::Draft;
use super::rules::{After, quorum_at_risk};
use super::survey::{Life, Place, Survey};
use crate::held::Reason;
use model::task::{Action, Kind, State};
use model::time::Timestamp;
use std::time::Duration;

/// How long before their end they are renewed: several windows of any cluster lie in between.
const EARLY: Duration = Duration::from_hours(30 * 24);

/// How long before their end no window is waited for any more: without them there is no API.
const URGENT: Duration = Duration::from_hours(7 * 24);

/// Whether certificates that end then are so near their end that no window is waited for.
fn is_urgent(end: Timestamp, now: Timestamp) -> bool {
    end <= now.plus(URGENT)
}

/// Whether certificates that end then are renewed.
fn is_due(end: Timestamp, now: Timestamp) -> bool {
    end <= now.plus(EARLY)
}

/// When the next certificates become due, or urgent: nothing else happens then.
pub(super) fn times(view: &View<'_>, survey: &Survey<'_>) -> impl Iterator<Item = Timestamp> {
    let now = view.now;
    let stays = |place: &&Place<'_>| place.wanted && !view.desired.tombstone;
    let ends = survey.members().filter(stays).filter_map(|place| place.end);
    let times: Vec<_> = ends
        .flat_map(|end| [end.minus(EARLY), end.minus(URGENT)])
        .filter(|at| *at > now)
        .collect();
    times.into_iter()
}

/// Members of the control plane whose certificates end soon, those that end first before others.
pub(super) fn renew(draft: &mut Draft<'_>) {
    let now = draft.view.now;
    let due = |place: &Place<'_>| {
        // What was begun is ended, also when some certificates were seen to be new already.
        let begun = place.open.filter(|open| open.attempts > 0);
        let begun = begun.and_then(|open| {
            let Action::Renew { end } = open.action else {
                return None;
            };
            Some(end)
        });
        let end = begun.or(place.end.filter(|end| is_due(*end, now)))?;
        let here = place.wanted && place.life == Life::Running;
        (here && !upgraded_anyway(draft, place, end)).then_some(end)
    };
    let members = draft.survey.members();
    let mut due: Vec<_> = members
        .filter_map(|place| Some((due(place)?, place)))
        .collect();
    // What was begun goes on before anything else is begun.
    due.sort_by_key(|(end, place)| (!place.doing(Kind::Renew), *end));
    for (end, place) in due {
        match waits(draft, place, end) {
            Some(reason) => draft.hold(place, Kind::Renew, reason),
            None => draft.want(place, Action::Renew { end }),
        }
    }
}

/// Whether an upgrade is about to come, which renews them on its way.
fn upgraded_anyway(draft: &Draft<'_>, place: &Place<'_>, end: Timestamp) -> bool {
    let version = draft.view.desired.version;
    let outdated = place.node.is_some_and(|node| node.version < version);
    let begun = place.slot && !place.doing(Kind::Renew);
    outdated && (begun || !is_urgent(end, draft.view.now))
}

/// Why a member may not be renewed now.
fn waits(draft: &Draft<'_>, place: &Place<'_>, end: Timestamp) -> Option<Reason> {
    let begun = place.open.filter(|_| place.doing(Kind::Renew));
    if begun.is_some_and(|open| open.state == State::Running) {
        return None;
    }
    // One that does not serve may do so again when it is renewed, and harms nobody.
    let risk = quorum_at_risk(draft.survey, place, After::Same);
    let risk = risk.filter(|_| place.ready_control());
    if begun.is_some() && place.slot {
        return draft.member_first(place).or(risk);
    }
    let serves = place.in_service();
    let closed = draft.closed().filter(|_| !is_urgent(end, draft.view.now));
    closed
        .or_else(|| draft.over_budget(place))
        .filter(|_| serves)
        .or_else(|| draft.member_first(place))
        .or(risk)
}
