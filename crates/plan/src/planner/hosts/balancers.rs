//! Load balancers: what they are told, who answers, and how their machines are replaced.
//!
//! A load balancer never loses what it has before there is something in its place. A node is
//! its target until it is taken out of service and none any more when it leaves; a role that
//! works is not told to send nowhere while somebody comes; machines that go wait for those
//! that come, one after the other, and there are never fewer of them that serve. One that is to
//! pass the API on no more does so until no node looks for it there, and one that is declared no
//! more serves as a whole until all machines of those do that took over its roles.

use crate::held::Reason;
use crate::planner::draft::Draft;
use crate::planner::hosts::failed;
use crate::planner::rules::at_its_address;
use crate::planner::survey::{Life, Place, count};
use crate::planner::tending::{Cares, still_asked, to_open};
use model::balancer::{API_PORT, Balance, BalanceFact, Listener};
use model::cluster::{Balancer, Forward, Machine, Role};
use model::host::Fingerprint;
use model::task::{Action, Kind, State};
use std::net::Ipv4Addr;

/// Load balancers that listen to something else than they should, or send it elsewhere.
pub(in crate::planner) fn balance(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    for place in &draft.survey.places {
        if draft.is_busy(place) || !is_heard(draft, cares, place) {
            continue;
        }
        match untold(draft, cares, place) {
            Some(Ok(balance)) => draft.want(place, Action::Balance { balance }),
            Some(Err(reason)) => draft.hold(place, Kind::Balance, reason),
            None => {}
        }
    }
}

/// Whether a machine is one of a load balancer that serves for some time to come.
fn is_kept(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let balancer = place.machine.role == Role::Balancer;
    balancer && (place.wanted || still_needed(draft, place).is_some())
}

/// Whether somebody may still be sent to nodes by a machine of a load balancer: it serves for some
/// time to come, or until those are led away who look for the API there.
fn is_heard(draft: &Draft<'_>, cares: &Cares<'_>, place: &Place<'_>) -> bool {
    let desired = draft.view.desired;
    let declared = || of_machine(&desired.balancers, place.machine);
    let known = || declared().or_else(|| of_machine(&desired.former, place.machine));
    let asked = || serves(place) && still_asked(draft, cares, place).is_some();
    is_kept(draft, place) || known().is_some() && asked()
}

/// Whether a load balancer is to be told something now.
pub(in crate::planner) fn is_to_be_told(
    draft: &Draft<'_>,
    cares: &Cares<'_>,
    place: &Place<'_>,
) -> bool {
    place.machine.role == Role::Balancer && matches!(untold(draft, cares, place), Some(Ok(_)))
}

/// What a load balancer is to be told, where it could be and was told otherwise; or why it is
/// not told yet.
fn untold(
    draft: &Draft<'_>,
    cares: &Cares<'_>,
    place: &Place<'_>,
) -> Option<Result<Balance, Reason>> {
    if place.life != Life::Running || !place.connected() {
        return None;
    }
    let (roles, told) = (roles(draft, cares, place), told(place));
    let (balance, print) = wished(draft, place, &roles);
    if told.is_some_and(|fact| fact.told == print) {
        return None;
    }
    let first = told.is_none() && balance.listeners.iter().all(idle);
    let works = |listener: &Listener| {
        let healthy = told.and_then(|fact| fact.healthy.get(&listener.role));
        healthy.is_some_and(|targets| *targets > 0)
    };
    let roles = roles.into_iter().zip(&balance.listeners);
    let waiting = roles.filter(|(_, listener)| idle(listener) && (first || works(listener)));
    let mut waiting = waiting.filter_map(|(forward, _)| coming(draft, forward));
    Some(waiting.next().map_or(Ok(balance), Err))
}

/// Whether a machine of a load balancer passes the API on to somebody who answers.
pub(in crate::planner) fn passes_api(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let answers = healthy_api(draft, place).is_some_and(|targets| targets > 0);
    answers && place.life == Life::Running
}

/// Whether a machine of a load balancer was told to pass the API on, and serves for some time to
/// come.
pub(in crate::planner) fn knows_api(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    healthy_api(draft, place).is_some()
}

/// Whether a machine of a load balancer still passes the API on to somebody who answers, though
/// another load balancer should.
pub(in crate::planner) fn passed_api(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let answers = former_api(draft, place).is_some_and(|targets| targets > 0);
    answers && serves(place)
}

/// Whether a machine of a load balancer was told to pass the API on, though another load balancer
/// should.
pub(in crate::planner) fn knew_api(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    former_api(draft, place).is_some() && !goes(place)
}

/// Whether a machine of a load balancer passes the API on that is to be found on a machine instead.
pub(in crate::planner) fn gives_up_api(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let desired = draft.view.desired;
    let moves = desired.api_balancer().is_some();
    let role = desired.former_api_role(place.machine);
    let role = role.filter(|_| !moves && serves(place));
    let passes = |role: &Forward| told(place).is_some_and(|of| of.healthy.contains_key(&role.name));
    role.is_some_and(passes)
}

/// How many answer to whom a machine of a load balancer passes the API on that moves to another, or
/// to a machine before which the ports are still to open.
fn former_api(draft: &Draft<'_>, place: &Place<'_>) -> Option<u32> {
    let desired = draft.view.desired;
    let moves = desired.api_balancer().is_some() || to_open(draft).is_some();
    let role = desired.former_api_role(place.machine).filter(|_| moves)?;
    // Who comes stands at its address: nobody is led there any more, or it could never go.
    let waited_for = |other: &Place<'_>| {
        let there = at_its_address(draft.survey, other);
        there.is_some_and(|there| there.machine.id == place.machine.id)
    };
    if draft.survey.wanted().any(waited_for) {
        return None;
    }
    told(place)?.healthy.get(&role.name).copied()
}

/// How many answer to whom a machine of a load balancer passes the API on, where it was told to.
fn healthy_api(draft: &Draft<'_>, place: &Place<'_>) -> Option<u32> {
    let role = draft.view.desired.api_role(place.machine)?;
    let fact = told(place).filter(|_| is_kept(draft, place))?;
    fact.healthy.get(&role.name).copied()
}

/// The machine of a load balancer that is about to pass the API on: who would be led elsewhere now
/// would be led back at once.
pub(in crate::planner) fn api_to_come<'s, 'a>(
    draft: &'s Draft<'a>,
    cares: &Cares<'_>,
) -> Option<&'s Place<'a>> {
    let comes = |place: &&Place<'_>| {
        let api = draft.view.desired.api_role(place.machine).is_some();
        let lacks = api && !failed(place) && healthy_api(draft, place).is_none();
        lacks && is_to_be_told(draft, cares, place)
    };
    draft.survey.wanted().find(comes)
}

/// Whether a machine of a load balancer passes on anything.
pub(in crate::planner) fn is_told(place: &Place<'_>) -> bool {
    told(place).is_some()
}

fn told<'a>(place: &Place<'a>) -> Option<&'a BalanceFact> {
    place.host.and_then(|host| host.balance.as_ref())
}

/// Whether what is sent to it reaches nobody.
fn idle(listener: &Listener) -> bool {
    listener.targets.is_empty()
}

/// The load balancer of that machine, among these.
fn of_machine<'a>(balancers: &'a [Balancer], machine: &Machine) -> Option<&'a Balancer> {
    let mut balancers = balancers.iter();
    balancers.find(|balancer| Some(&balancer.name) == machine.balancer.as_ref())
}

/// What a machine of a load balancer listens to: its roles; all that it had where it is declared
/// no more; and the API for as long as a node may look for it there, whatever else should be on
/// that port.
fn roles<'a>(draft: &Draft<'a>, cares: &Cares<'_>, place: &Place<'_>) -> Vec<&'a Forward> {
    let desired = draft.view.desired;
    let former = of_machine(&desired.former, place.machine);
    let Some(now) = of_machine(&desired.balancers, place.machine) else {
        return former.map_or(Vec::new(), |was| was.roles.iter().collect());
    };
    let passes = |role: &&Forward| {
        let told = told(place).is_some_and(|fact| fact.healthy.contains_key(&role.name));
        told && still_asked(draft, cares, place).is_some()
    };
    let mut roles: Vec<_> = former.into_iter().flat_map(|was| &was.roles).collect();
    roles.retain(passes);
    let door = |role: &Forward| (role.protocol, role.port);
    for role in &now.roles {
        if !roles.iter().any(|kept| door(kept) == door(role)) {
            roles.push(role);
        }
    }
    roles.sort_by_key(|role| role.port);
    roles
}

/// What a machine of a load balancer should be told, and what it then tells.
///
/// Who is being drained is no target any more, unless the load balancer reaches nobody else
/// yet: then it is one until it is drained. What was taken away is not brought back.
fn wished(draft: &Draft<'_>, place: &Place<'_>, roles: &[&Forward]) -> (Balance, Fingerprint) {
    let listener = |forward: &&Forward| Listener {
        role: forward.name.clone(),
        protocol: forward.protocol,
        port: forward.port,
        target_port: forward.target_port,
        targets: targets(draft, forward, |node| still_answers(draft, node)),
        proxy_protocol: forward.proxy_protocol,
        sticky: forward.sticky,
    };
    let mut balance = Balance {
        address: place.machine.address,
        listeners: roles.iter().map(listener).collect(),
    };
    let print = balance.fingerprint();
    let Some(fact) = told(place).filter(|fact| fact.told != print) else {
        return (balance, print);
    };
    let mut kept = false;
    for (listener, forward) in balance.listeners.iter_mut().zip(roles) {
        let drains = |node: &Place<'_>| still_answers(draft, node) || is_drained(draft, node);
        let with = targets(draft, forward, drains);
        let going = with.len() - listener.targets.len();
        let healthy = fact.healthy.get(&listener.role).copied().unwrap_or(0);
        if (1..=going).contains(&usize::try_from(healthy).unwrap_or(usize::MAX)) {
            listener.targets = with;
            kept = true;
        }
    }
    let print = if kept { balance.fingerprint() } else { print };
    (balance, print)
}

/// Whether nodes on a machine would answer on a port.
fn fits(forward: &Forward, machine: &Machine) -> bool {
    let api = u32::from(forward.target_port) == API_PORT;
    let role = match machine.role {
        Role::Control => true,
        Role::Compute => !api,
        Role::Balancer => false,
    };
    role && forward.target_pools.contains(&machine.pool)
}

/// Who answers on a port: nodes that are to stay, and such that are to leave. Whether they do
/// answer, the load balancer finds out by itself.
fn targets(
    draft: &Draft<'_>,
    forward: &Forward,
    leaving: impl Fn(&Place<'_>) -> bool,
) -> Vec<Ipv4Addr> {
    let answers = |place: &&Place<'_>| {
        let node = place.node.is_some() && (place.wanted || leaving(place));
        node && fits(forward, place.machine)
    };
    let places = draft.survey.places.iter().filter(answers);
    let mut targets: Vec<_> = places.map(|place| place.machine.address).collect();
    targets.sort();
    targets
}

/// Whether a node that is to leave serves, and nobody has begun to take it out of service.
pub(super) fn still_answers(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let going = place.slot || place.doing(Kind::Leave) || is_drained(draft, place);
    place.in_service() && !going && !draft.is_doing(place, Kind::Leave)
}

/// Whether a node that answers is being drained.
fn is_drained(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let answers = place.life != Life::Unreachable && place.node.is_some_and(|node| node.ready);
    answers && (place.doing(Kind::Drain) || draft.is_doing(place, Kind::Drain))
}

/// Why a role is not told that nobody answers: somebody is about to.
fn coming(draft: &Draft<'_>, forward: &Forward) -> Option<Reason> {
    let comes = |place: &&Place<'_>| {
        let can = !place.blocked && at_its_address(draft.survey, place).is_none();
        can && place.node.is_none() && fits(forward, place.machine)
    };
    let mut coming = draft.survey.wanted().filter(comes);
    let first = coming.next()?;
    Some(Reason::Additions {
        waiting_for: first.machine.name.clone(),
        missing: 1 + count(coming),
    })
}

/// Why no node that is to leave is drained or taken out now: a load balancer does not know yet
/// who came in its place, or still sends to it.
pub(in crate::planner) fn not_told_yet(draft: &Draft<'_>, cares: &Cares<'_>) -> Option<Reason> {
    let differs = |place: &&Place<'_>| {
        let heard = || place.life == Life::Running && is_heard(draft, cares, place);
        let told = told(place).filter(|_| heard());
        let given_up = || draft.cancelled(place.machine.id, Kind::Balance).is_some();
        let differs = |fact: &BalanceFact| {
            let (_, wished) = wished(draft, place, &roles(draft, cares, place));
            fact.told != wished
        };
        told.is_some_and(differs) && !given_up()
    };
    let mut balancers = draft.survey.places.iter().filter(differs);
    Some(Reason::Turn {
        after: balancers.next()?.machine.name.clone(),
    })
}

/// Whether somebody has begun to remove a machine.
fn goes(place: &Place<'_>) -> bool {
    place.open.is_some_and(|open| {
        let begun = open.attempts > 0 || open.state == State::Running;
        begun && matches!(open.action.kind(), Kind::Delete | Kind::Release)
    })
}

/// Whether a machine passes on what it is sent, and goes on to.
pub(in crate::planner) fn serves(place: &Place<'_>) -> bool {
    place.life == Life::Running && told(place).is_some() && !goes(place)
}

/// Whether `other` serves as well as `place`: no role that works here reaches nobody there.
fn serves_like(other: &Place<'_>, place: &Place<'_>) -> bool {
    let (Some(there), Some(here)) = (told(other), told(place)) else {
        return false;
    };
    let works = |role, targets: u32| targets > 0 || here.healthy.get(role).is_none_or(|n| *n == 0);
    let mut roles = there.healthy.iter();
    serves(other) && roles.all(|(role, targets)| works(role, *targets))
}

/// The machines of the load balancer that a machine is part of: those to stay, those to leave.
/// Where it is declared no more, those stay that took over one of its roles.
fn beside<'s, 'a>(
    draft: &'s Draft<'a>,
    place: &Place<'_>,
) -> (Vec<&'s Place<'a>>, Vec<&'s Place<'a>>) {
    let same = |other: &Place<'_>| other.machine.balancer == place.machine.balancer;
    let beside = |other: &&Place<'_>| same(other) || takes_over(draft, other, place);
    let all = draft.survey.places.iter().filter(beside);
    all.partition(|other| other.wanted)
}

/// Whether a machine that is to stay is of a load balancer that took over a role of the one that
/// another was part of, which is declared no more.
fn takes_over(draft: &Draft<'_>, machine: &Place<'_>, of: &Place<'_>) -> bool {
    let desired = draft.view.desired;
    let declared = of_machine(&desired.balancers, of.machine).is_some();
    let was = of_machine(&desired.former, of.machine).filter(|_| !declared);
    let now = of_machine(&desired.balancers, machine.machine).filter(|_| machine.wanted);
    let had = |role: &Forward| {
        let mut roles = was.into_iter().flat_map(|was| &was.roles);
        roles.any(|had| had.name == role.name)
    };
    now.is_some_and(|now| now.roles.iter().any(had))
}

/// Why a machine of a load balancer may not go yet: fewer would serve than there should be.
pub(in crate::planner) fn still_needed(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    if place.machine.role != Role::Balancer || !serves(place) {
        return None;
    }
    let (stay, leave) = beside(draft, place);
    let (ready, missing): (Vec<_>, Vec<_>) = stay
        .iter()
        .copied()
        .partition(|other| serves_like(other, place));
    let (stuck, coming): (Vec<_>, Vec<_>) = missing
        .into_iter()
        .partition(|other| at_its_address(draft.survey, other).is_some());
    let one_goes = leave.iter().any(|other| goes(other));
    let leave: Vec<_> = leave.into_iter().filter(|other| serves(other)).collect();
    let of_this = |other: &&Place<'_>| other.machine.id == place.machine.id;
    // They go in their order, as many of them as there are too many; those of a load balancer that
    // is declared no more when all have come.
    let ahead = leave.iter().position(of_this)?;
    let all_come = coming.is_empty();
    let declared = of_machine(&draft.view.desired.balancers, place.machine).is_some();
    let spare = (ready.len() + leave.len()).saturating_sub(stay.len());
    let spare = if declared || all_come { spare } else { 0 };
    // Who comes in its place stands at its address: there is no other way than one by one.
    let in_place = ahead == 0 && all_come && !one_goes;
    let first = coming.first().or(stuck.first())?;
    (ahead >= spare && !in_place).then(|| Reason::Additions {
        waiting_for: first.machine.name.clone(),
        missing: count(coming.iter().chain(&stuck)),
    })
}

/// Why a machine of a load balancer may not be made yet: those that it comes in place of go
/// one after the other, so that there is only ever one more than there should be.
pub(in crate::planner) fn not_its_turn(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let there = |other: &Place<'_>| {
        let seen = !matches!(other.life, Life::Unseen | Life::Absent);
        seen || other.open.is_some() || draft.is_busy(other)
    };
    if place.machine.role != Role::Balancer || there(place) {
        return None;
    }
    let (stay, leave) = beside(draft, place);
    let leave: Vec<_> = leave.into_iter().filter(|other| serves(other)).collect();
    let made: Vec<_> = stay.iter().filter(|other| there(other)).collect();
    let coming = made.iter().find(|other| !serves(other));
    let after = coming.map_or(*leave.first()?, |other| **other);
    (made.len() + leave.len() > stay.len()).then(|| Reason::Turn {
        after: after.machine.name.clone(),
    })
}

/// Why a machine of a load balancer may not be equipped now: another one of it is.
pub(super) fn another_is_equipped(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    if !serves(place) || place.equips() {
        return None;
    }
    let equips = |other: &&Place<'_>| {
        let this = other.machine.id == place.machine.id;
        !this && serves(other) && (other.equips() || draft.is_busy(other))
    };
    let mut others = draft.survey.places.iter().filter(equips);
    let same = |other: &&Place<'_>| other.machine.balancer == place.machine.balancer;
    Some(Reason::Turn {
        after: others.find(same)?.machine.name.clone(),
    })
}
