//! The rules of hosts: the key that opens them, what is on them, how they reach each other,
//! what they pass on.
//!
//! They lie between making a machine and joining it to Kubernetes, and never end: a host that
//! drifted from what it was told is told again, in place.

use super::draft::Draft;
use super::survey::{Life, Node, Place, Survey, count};
use crate::held::Reason;
use model::balancer::{API_PORT, Balance, Listener};
use model::cluster::{Forward, Machine, Origin, Role};
use model::host::{Fingerprint, Recipe};
use model::mesh::{Member, Mesh};
use model::observed::MachineFact;
use model::task::{Action, Kind, Open, State};
use std::collections::BTreeMap;

/// Whether a machine must not be made yet, because nothing would open it.
pub(super) fn lacks_key(draft: &Draft<'_>, machine: &Machine) -> bool {
    let made = matches!(machine.origin, Origin::Made { .. });
    made && machine.origin.is_host() && draft.view.observed.access.is_none()
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
            draft.hold(place, Kind::Create, Reason::Turn { after });
        }
    }
}

/// Whether a worker is at work on the machine.
fn under_way(place: &Place<'_>) -> bool {
    place.open.is_some_and(|open| open.state == State::Running)
}

/// Whether the last attempt at its unfinished task failed.
fn failed(place: &Place<'_>) -> bool {
    place.open.is_some_and(|open| open.error.is_some())
}

/// Hosts that lack something of what they are made ready for.
pub(super) fn equip(draft: &mut Draft<'_>) {
    let mut recipes: BTreeMap<(Role, bool), (Recipe, Fingerprint)> = BTreeMap::new();
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
        let has = place.host.and_then(|host| host.equipped.as_ref());
        // All of one role follow one recipe before they join, and one when they have.
        let joined = place.node.is_some();
        let recipe = recipes.entry((place.machine.role, joined));
        let (recipe, print) = recipe.or_insert_with(|| {
            let recipe = draft.view.desired.recipe(place.machine, joined);
            let print = recipe.fingerprint();
            (recipe, print)
        });
        let lacks = has != Some(print) || keyless(place);
        if lacks && returning(draft, place) {
            let kind = Kind::Uncordon;
            draft.hold(place, Kind::Equip, Reason::Running { kind });
        } else if lacks && !later(draft, place) {
            let recipe = recipe.clone();
            draft.want(place, Action::Equip { recipe });
        }
    }
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
fn later(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let failed = place.doing(Kind::Equip) && failed(place);
    // It is ready to serve again.
    let version = draft.view.desired.version;
    let back = |node: Node| node.cordoned && node.ready && node.version >= version;
    let returns = failed && place.slot && place.node.is_some_and(back);
    // It passes on to machines that go. Once that is begun, it stays so until it is done.
    let equipped = place.host.is_some_and(|host| host.equipped.is_some());
    let behind = equipped && (failed || place.doing(Kind::Balance));
    returns || behind && unbalanced(draft, place).is_some()
}

/// Whether a node serves again and its row of the ledger is not given back yet. Work would keep
/// the row, while what it stands for is free for others already.
fn returning(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let mut rows = draft.view.ledger.iter();
    !place.slot && place.node.is_some() && rows.any(|row| row.machine == place.machine.id)
}

/// The mesh, for all whose end of it is not as it should be: one task, many hosts at once.
///
/// Who is about to come is waited for, so that a cluster of a hundred is connected once and
/// not a hundred times; who fails to come is not.
pub(super) fn mesh(draft: &mut Draft<'_>) {
    let mut members: Vec<_> = draft
        .survey
        .places
        .iter()
        .filter_map(|place| member(draft, place))
        .collect();
    // Who comes and who goes changes nothing for the others but itself.
    members.sort_by_key(|member| member.machine.address);
    let mut mesh = Mesh {
        network: draft.view.desired.network,
        members,
        to: Vec::new(),
    };
    let wishes = mesh.wishes();
    let unmet = |place: &&Place<'_>| {
        let seen = place.host.and_then(|host| host.mesh.as_ref());
        place.life == Life::Running && wishes.unmet(place.machine.id, seen)
    };
    let mut stale = Vec::new();
    for place in draft.survey.wanted().filter(unmet) {
        // Who cannot be entered keeps nobody else waiting.
        match locked(draft, place) {
            Some(secret) => draft.hold(place, Kind::Mesh, secret),
            None => stale.push(place),
        }
    }
    mesh.to = stale.iter().map(|place| place.machine.id).collect();
    let Some(anchor) = anchor(draft, &stale) else {
        return;
    };
    if !anchor.wanted {
        if let Some(first) = stale.first() {
            let after = anchor.machine.name.clone();
            draft.hold(first, Kind::Mesh, Reason::Turn { after });
        }
        return;
    }
    let mut coming = draft.survey.wanted().filter(|place| coming(draft, place));
    if let Some(first) = coming.next() {
        let reason = Reason::Additions {
            waiting_for: first.machine.name.clone(),
            missing: 1 + count(coming),
        };
        draft.hold_mesh(anchor, reason);
    } else {
        draft.want(anchor, Action::Mesh { mesh });
    }
}

/// The machine with which the task stands: where one is under way, else with one of those
/// that are to be told.
fn anchor<'s, 'a: 's>(draft: &Draft<'a>, stale: &[&'s Place<'a>]) -> Option<&'s Place<'a>> {
    if stale.is_empty() {
        return None;
    }
    let meshing = |place: &&Place<'_>| place.doing(Kind::Mesh);
    let running = |place: &&Place<'_>| meshing(place) && under_way(place);
    let idle = |place: &&&Place<'_>| {
        !under_way(place) && !draft.is_busy(place) && !returning(draft, place)
    };
    // One that waits or failed stays where it is, unless its machine is as it should be: that
    // one has other things to do than to wait for those that fail.
    let begun = || stale.iter().filter(idle).find(|place| meshing(place));
    let free = || stale.iter().filter(idle).find(|place| place.open.is_none());
    // What fails perhaps does so for want of the mesh.
    let failing = |place: &&&Place<'_>| failed(place) && started(draft, place).is_none();
    let failing = || stale.iter().filter(idle).find(failing);
    // All of them are at something that must not be given up: somebody else tells them, and
    // always the same one.
    let able = |place: &&Place<'_>| {
        let runs = place.wanted && place.life == Life::Running;
        runs && place.machine.origin.is_host() && idle(&place)
    };
    let places = &draft.survey.places;
    let bystander = || {
        let begun = places.iter().filter(able).find(meshing);
        begun.or_else(|| {
            places
                .iter()
                .filter(able)
                .find(|place| place.open.is_none())
        })
    };
    let told = || begun().or_else(free).or_else(failing).copied();
    places.iter().find(running).or_else(told).or_else(bystander)
}

/// Why a machine cannot be told of its peers: nobody has set the secret that opens it.
fn locked(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let mut secrets = place.machine.origin.secrets_for(Kind::Mesh);
    let missing = secrets.find(|secret| draft.view.missing.contains(secret));
    missing.map(Into::into)
}

/// A machine as its peers know it: those on their way out too, for as long as they are there
/// and somebody means to clean them.
fn member(draft: &Draft<'_>, place: &Place<'_>) -> Option<Member> {
    if !place.wanted && draft.given_up(place) {
        return None;
    }
    let host = place.host?;
    let seen = draft.view.observed.machines.get(&place.machine.id);
    let shown = seen.and_then(|seen| match seen.machine.as_ref()?.0 {
        MachineFact::Running { address, .. } => Some(address),
        MachineFact::Absent | MachineFact::Booting { .. } | MachineFact::Unreachable { .. } => None,
    });
    Some(Member {
        machine: place.machine.clone(),
        key: host.mesh_key.clone()?,
        at: host.at.or(shown)?,
    })
}

/// Whether a host is about to be ready for the mesh.
fn coming(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    place.machine.origin.is_host() && keyless(place) && draft.is_busy(place) && !failed(place)
}

/// Load balancers that listen to something else than they should, or send it elsewhere.
pub(super) fn balance(draft: &mut Draft<'_>) {
    for place in draft.survey.wanted() {
        if draft.is_busy(place) {
            continue;
        }
        if let Some(balance) = unbalanced(draft, place) {
            draft.want(place, Action::Balance { balance });
        }
    }
}

/// What a load balancer is to be told, where it could be and was told otherwise.
fn unbalanced(draft: &Draft<'_>, place: &Place<'_>) -> Option<Balance> {
    let serves = place.machine.role == Role::Balancer && place.life == Life::Running;
    if !serves || !place.connected() {
        return None;
    }
    let balance = wished(draft, place.machine);
    let told = place.host.and_then(|host| host.balance.as_ref());
    let differs = told.is_none_or(|fact| fact.told != balance.fingerprint());
    differs.then_some(balance)
}

fn wished(draft: &Draft<'_>, machine: &Machine) -> Balance {
    let balancers = draft.view.desired.balancers.iter();
    let of = balancers.filter(|balancer| Some(&balancer.name) == machine.balancer.as_ref());
    let roles = of.flat_map(|balancer| &balancer.roles);
    let listener = |forward: &Forward| Listener {
        role: forward.name.clone(),
        protocol: forward.protocol,
        port: forward.port,
        target_port: forward.target_port,
        targets: targets(draft.survey, forward),
        proxy_protocol: forward.proxy_protocol,
        sticky: forward.sticky,
    };
    Balance {
        address: machine.address,
        listeners: roles.map(listener).collect(),
    }
}

/// Who answers on a port: nodes that are to stay, or, while none of them is there, those that
/// are to leave. Whether they do answer, the load balancer finds out by itself.
fn targets(survey: &Survey<'_>, forward: &Forward) -> Vec<std::net::Ipv4Addr> {
    let api = u32::from(forward.target_port) == API_PORT;
    let answers = |place: &&Place<'_>| {
        let role = place.machine.role;
        let fits = role == Role::Control || role == Role::Compute && !api;
        fits && place.node.is_some() && forward.target_pools.contains(&place.machine.pool)
    };
    let address = |place: &Place<'_>| place.machine.address;
    let mut targets: Vec<_> = survey.wanted().filter(answers).map(address).collect();
    if targets.is_empty() {
        targets = survey.leaving().filter(answers).map(address).collect();
    }
    targets.sort();
    targets
}

/// Why a machine of a load balancer may not go yet: those that come in its place do not serve.
pub(super) fn still_needed(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let balances = |place: &Place<'_>| place.host.is_some_and(|host| host.balance.is_some());
    let name = place.machine.balancer.as_ref()?;
    if place.life != Life::Running || !balances(place) {
        return None;
    }
    let same = |other: &&Place<'_>| other.machine.balancer.as_ref() == Some(name);
    let others = draft.survey.wanted().filter(same);
    let mut missing = others.filter(|other| !balances(other));
    let first = missing.next()?;
    Some(Reason::Additions {
        waiting_for: first.machine.name.clone(),
        missing: 1 + count(missing),
    })
}
