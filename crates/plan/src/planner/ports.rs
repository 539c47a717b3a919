//! The port of the API at clouds: open to the world where somebody looks for the API on a machine,
//! and at no other time.
//!
//! It opens before anybody is led to a machine, and shuts when a load balancer passes the API on and
//! nobody looks for it on a machine any more. A machine that comes is made as it should be. Who was
//! given to us, or is of the sandbox, has no firewall that we look after: nobody waits for one. What
//! is not known is not guessed: to open what is open and to shut what is shut does no harm.

use super::draft::Draft;
use super::survey::{Life, Place};
use super::tending::{Cares, asker};
use crate::held::Reason;
use model::cluster::Role;
use model::task::{Action, Kind, State};

/// Control machines at clouds whose port is not as it should be, all at once.
pub(super) fn ports(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    let Some(open) = wished(draft, cares) else {
        return;
    };
    let differs = |place: &&Place<'_>| {
        let there = place.machine.has_firewall() && place.life == Life::Running;
        there && seen(place) != Some(open) && !draft.is_busy(place)
    };
    let wrong: Vec<_> = draft.survey.places.iter().filter(differs).collect();
    let asked = wrong.first().filter(|_| !open);
    let asked = asked.and_then(|_| asked_for(draft, cares));
    for place in wrong {
        match &asked {
            Some(reason) => draft.hold(place, Kind::Shut, reason.clone()),
            None if open => draft.want(place, Action::Expose),
            None => draft.want(place, Action::Shut),
        }
    }
}

/// Whether the world should reach the API on machines; nothing where that stays as it is.
///
/// Where a load balancer should pass the API on and does not for a while, nodes stay with it: then
/// nothing is opened, unless somebody has to be led and there is no other way.
fn wished(draft: &Draft<'_>, cares: &Cares<'_>) -> Option<bool> {
    if draft.view.desired.api_balancer().is_none() || cares.needs_port(draft) {
        Some(true)
    } else {
        cares.passes().then_some(false)
    }
}

/// Whether a machine that is to be made is made with its port open: unless it should be shut, or
/// that of another is.
pub(super) fn made_open(draft: &Draft<'_>, cares: &Cares<'_>) -> bool {
    let mut others = draft.survey.places.iter();
    let shut = others.any(|place| seen(place) == Some(false));
    wished(draft, cares).unwrap_or(!shut)
}

/// Whether nodes may be led to a machine: nothing stands before it, its port is open, or somebody
/// said that we need not open it.
pub(super) fn is_open(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let vouched = || draft.cancelled(place.machine.id, Kind::Expose).is_some();
    !place.machine.has_firewall() || seen(place) == Some(true) || vouched()
}

/// Whether the port of a machine is open, where that is known. What was asked for and has not ended
/// may have had its effect or have it yet, and so may what it came in place of.
fn seen(place: &Place<'_>) -> Option<bool> {
    let unsettled = place.doing(Kind::Expose) || place.doing(Kind::Shut);
    place.port.filter(|_| !unsettled)
}

/// Why no port is shut yet: a node looks for the API on a machine, or is being led there.
fn asked_for(draft: &Draft<'_>, cares: &Cares<'_>) -> Option<Reason> {
    let members = || {
        let places = draft.survey.places.iter();
        places.filter(|place| place.machine.role == Role::Control)
    };
    let led = |place: &&Place<'_>| {
        let running = place.open.filter(|open| open.state == State::Running);
        let care = running.and_then(|open| open.action.care());
        let api = care.map(|care| &care.api[..]).unwrap_or_default();
        members().any(|member| api.contains(&member.machine.address))
    };
    let led = draft.survey.places.iter().find(led);
    let asks = || members().find_map(|member| asker(draft, cares, member, true));
    let after = led.or_else(asks)?.machine.name.clone();
    Some(Reason::Turn { after })
}
