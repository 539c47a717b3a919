//! Names of DNS that lead to the machines of load balancers.
//!
//! A name leads to a machine when that serves, and is taken back before the machine goes. Another
//! name comes before the old one goes, and a name that moves to another load balancer leads there
//! first: whoever knows one always gets somewhere. Who cannot ask for names says nothing of them,
//! and cannot make any either. What was begun and is not wanted any more may have been made: it is
//! taken back. What nobody can take back a person gives up, and it stays behind.

use super::draft::Draft;
use super::hosts::balancers;
use super::survey::Place;
use crate::held::Reason;
use model::cluster::{Balancer, Machine, Role};
use model::dns::{Entry, Names, Naming};
use model::provider::Provider;
use model::task::{Action, Kind, State};

/// Machines of load balancers that serve, and to which other names lead than should; and those that
/// do not, and to which one may lead that nobody has seen.
pub(super) fn name(draft: &mut Draft<'_>) {
    for place in draft.survey.wanted() {
        if place.machine.role != Role::Balancer || draft.is_busy(place) {
            continue;
        }
        if !balancers::serves(place) {
            if let Some(naming) = as_seen(place) {
                draft.want(place, Action::Name { naming });
            }
            continue;
        }
        match unseen(draft, place) {
            Some(reason) => draft.hold(place, Kind::Name, reason),
            None => {
                if let Some(naming) = wished(draft, place) {
                    draft.want(place, Action::Name { naming });
                }
            }
        }
    }
}

/// Why names of a machine cannot be made: this build has no hands for the DNS of clouds, and a
/// promise that nobody keeps is worse than none.
fn unseen(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let dns = declared(draft, place.machine)?;
    match dns.via {
        Provider::Cloud(cloud) if !place.names.is_some_and(|fact| fact.knows(dns.via)) => {
            Some(Reason::Unnamed {
                name: dns.endpoint.to_string(),
                provider: cloud.as_str().to_owned(),
            })
        }
        Provider::Cloud(_) | Provider::Simulated | Provider::Sandbox => None,
    }
}

/// The names of the load balancer of a machine, where it is declared and has any.
fn declared<'a>(draft: &Draft<'a>, machine: &Machine) -> Option<&'a Names> {
    let mut balancers = draft.view.desired.balancers.iter();
    let of_this = |of: &&Balancer| Some(&of.name) == machine.balancer.as_ref();
    balancers.find(of_this)?.dns.as_ref()
}

/// Every name that should lead to a machine.
fn entries(draft: &Draft<'_>, machine: &Machine) -> Vec<Entry> {
    declared(draft, machine)
        .map(Names::entries)
        .unwrap_or_default()
}

/// Every name that leads to a machine.
fn seen<'a>(place: &Place<'a>) -> &'a [Entry] {
    place.names.map(|fact| &fact.names[..]).unwrap_or_default()
}

/// The unfinished naming of a machine, and whether it was begun.
fn under_way<'a>(place: &Place<'a>) -> Option<(&'a Naming, bool)> {
    let open = place.open?;
    let Action::Name { naming } = &open.action else {
        return None;
    };
    Some((naming, open.attempts > 0 || open.state == State::Running))
}

/// Every name that may lead to a machine though nobody has seen that: what was begun may have been
/// made, and who was asked to take it back is the only one who remembers.
fn begun(place: &Place<'_>) -> Vec<Entry> {
    let Some((naming, begun)) = under_way(place) else {
        return Vec::new();
    };
    let made = naming.names.iter().filter(|_| begun);
    let all = made.chain(&naming.former);
    all.filter(|name| !has(seen(place), name))
        .cloned()
        .collect()
}

/// How a machine that is to be made loses the names that may lead to it though nobody has seen that:
/// whoever makes it would forget them. Nothing where there are none, or somebody gave them up.
pub(super) fn before_it_is_made(draft: &Draft<'_>, place: &Place<'_>) -> Option<Action> {
    let naming = as_seen(place)?;
    let given_up = draft.cancelled(place.machine.id, Kind::Name).is_some();
    (!given_up).then_some(Action::Name { naming })
}

/// What a machine is called that gets no names now, where something else may have been begun.
fn as_seen(place: &Place<'_>) -> Option<Naming> {
    let (naming, _) = under_way(place)?;
    let former = begun(place);
    (!former.is_empty()).then(|| Naming {
        address: naming.address,
        names: seen(place).to_vec(),
        former,
    })
}

fn has(names: &[Entry], name: &Entry) -> bool {
    names.iter().any(|of| of.is(name))
}

/// What a machine is to be called, where it is called otherwise.
fn wished(draft: &Draft<'_>, place: &Place<'_>) -> Option<Naming> {
    let address = place.outside?;
    let mut names = entries(draft, place.machine);
    let old = seen(place).iter().filter(|old| !has(&names, old));
    let (kept, mut former): (Vec<_>, Vec<_>) =
        old.cloned().partition(|old| stays(draft, place, old));
    names.extend(kept);
    let half = begun(place);
    former.extend(half.into_iter().filter(|name| !has(&names, name)));
    let there = place.names.and_then(|fact| fact.address);
    let same = former.is_empty()
        && seen(place).len() == names.len()
        && names.iter().all(|name| has(seen(place), name));
    let moved = !names.is_empty() && there != Some(address);
    (!same || moved).then_some(Naming {
        address,
        names,
        former,
    })
}

/// Whether a name that a machine should not have any more still leads there: those that come in its
/// place do not lead to all who serve yet, or it leads nowhere else yet and should.
fn stays(draft: &Draft<'_>, place: &Place<'_>, old: &Entry) -> bool {
    let coming = |other: &Place<'_>| {
        let same = other.machine.balancer == place.machine.balancer;
        let names = entries(draft, other.machine);
        same && balancers::serves(other) && names.iter().any(|name| !has(seen(other), name))
    };
    draft.survey.wanted().any(coming) || missed(draft, old).is_some()
}

/// A machine to which a name should lead, of a load balancer to which it does not lead yet.
fn missed<'s, 'a>(draft: &'s Draft<'a>, name: &Entry) -> Option<&'s Place<'a>> {
    let should = || {
        let wanted = draft.survey.wanted();
        wanted.filter(|place| has(&entries(draft, place.machine), name))
    };
    let led = should().any(|place| has(seen(place), name));
    should().find(|_| !led)
}

/// Why names cannot be taken back yet from a machine that is to leave, or how that is done; nothing
/// where none leads there, or somebody gave them up.
pub(super) fn taken_back(draft: &Draft<'_>, place: &Place<'_>) -> Option<Result<Action, Reason>> {
    if draft.cancelled(place.machine.id, Kind::Name).is_some() {
        return None;
    }
    let mut former = seen(place).to_vec();
    former.extend(begun(place));
    let there = place.names.and_then(|fact| fact.address);
    let address = there.or_else(|| under_way(place).map(|(naming, _)| naming.address));
    let address = address.filter(|_| !former.is_empty())?;
    let lacks = |other: &&Place<'_>| {
        let names = entries(draft, other.machine);
        let mut here = seen(place).iter().filter(|name| has(&names, name));
        balancers::serves(other) && here.any(|name| !has(seen(other), name))
    };
    let next = draft.survey.wanted().find(lacks);
    let next = next.or_else(|| seen(place).iter().find_map(|name| missed(draft, name)));
    if let Some(next) = next {
        let after = next.machine.name.clone();
        return Some(Err(Reason::Turn { after }));
    }
    Some(Ok(Action::Name {
        naming: Naming {
            address,
            names: Vec::new(),
            former,
        },
    }))
}
