//! What a plan must not do to nodes that look for the API.

use super::{Note, joined, ports};
use crate::care::care;
use crate::planner::{Plan, View};
use model::balancer::{API_PORT, Listener};
use model::cluster::{Desired, Forward, Machine, Role};
use model::id::MachineId;
use model::intent::Wish;
use model::observed::{MachineFact, NodeFact};
use model::task::{Action, Kind, Open, State, Task};
use std::net::Ipv4Addr;

/// What one task breaks by itself.
pub(super) fn alone(view: &View<'_>, task: &Task) -> Option<&'static str> {
    let kind = task.action.kind();
    if kind == Kind::Tend && !joined(view, task.machine.id) {
        return Some("only a node is tended");
    }
    // Where there is no API yet nobody is led to it.
    let care = task.action.care().filter(|_| kind != Kind::Init)?;
    let nowhere = task.machine.role == Role::Compute && care.api.is_empty();
    let leads = |at: &Ipv4Addr| {
        let mut all = view.desired.all();
        let there = all.find(|machine| machine.address == *at);
        there.is_some_and(|machine| match machine.role {
            Role::Control => joined(view, machine.id) && ports::lets_in(view, machine),
            Role::Balancer => WAYS.iter().any(|role| answers(view, machine, *role)),
            Role::Compute => false,
        })
    };
    (nowhere || !care.api.iter().all(leads)).then_some("nodes are led to where the API is")
}

/// Whether somebody goes to whom nodes may be led.
pub(super) fn check(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let goes = |task: &&Task| match (task.machine.role, task.action.kind()) {
        // Nobody finds anything at a machine that is gone.
        (Role::Control, Kind::Leave) => joined(view, task.machine.id),
        (Role::Control, kind) => kind == Kind::Shut,
        (Role::Balancer, kind) => {
            let removed = matches!(kind, Kind::Delete | Kind::Release);
            removed && serves(view, task.machine.id) || closes(view, task)
        }
        (Role::Compute, _) => false,
    };
    let leaves = plan.tasks.iter().filter(goes);
    let early = leaves.filter(|task| {
        let mut nodes = view.desired.all();
        let shuts = task.action.kind() == Kind::Shut;
        nodes.any(|node| asks(view, node, &task.machine))
            || shuts && view.open.iter().any(|open| leads(open, &task.machine))
    });
    let note = |task: &Task| Note {
        machine: task.machine.name.clone(),
        broken: "nodes are led away before what they were led to goes",
    };
    early.map(note).collect()
}

/// Whether somebody is being led to a machine at this moment.
fn leads(open: &Open, there: &Machine) -> bool {
    let care = open.action.care();
    let led = care.is_some_and(|care| care.api.contains(&there.address));
    led && open.state == State::Running
}

/// Whether a machine that passes the API on is told to do so no more.
fn closes(view: &View<'_>, task: &Task) -> bool {
    let Action::Balance { balance } = &task.action else {
        return false;
    };
    let api = |listener: &Listener| listener.is_api() && u32::from(listener.port) == API_PORT;
    let passes = WAYS
        .iter()
        .find_map(|role| passes(view, &task.machine, *role));
    passes.is_some() && !balance.listeners.iter().any(api)
}

/// Whether a node that answers may look for the API on a machine.
fn asks(view: &View<'_>, node: &Machine, there: &Machine) -> bool {
    let seen = view.observed.machines.get(&node.id);
    let runs =
        seen.is_some_and(|seen| matches!(seen.machine, Some((MachineFact::Running { .. }, _))));
    let Some(NodeFact::Joined { care: told, .. }) = super::node(view, node.id) else {
        return false;
    };
    let elsewhere = |api: &Vec<Ipv4Addr>| {
        let print = care(view.desired, node, api).fingerprint();
        !api.contains(&there.address) && told.as_ref() == Some(&print)
    };
    let alone = node.role != Role::Compute || !runs || given_up(view, node.id, Kind::Tend);
    !alone && !places(view).iter().any(elsewhere)
}

/// All that nodes may have been told of where the API is.
fn places(view: &View<'_>) -> Vec<Vec<Ipv4Addr>> {
    let members = view.desired.all().filter(|machine| {
        let member = machine.role == Role::Control;
        member && joined(view, machine.id)
    });
    let mut places: Vec<_> = members.map(|machine| vec![machine.address]).collect();
    let ways = WAYS.iter().flat_map(|role| [(*role, true), (*role, false)]);
    for (role, answering) in ways {
        let passes = |machine: &&Machine| {
            if answering {
                answers(view, machine, role)
            } else {
                passes(view, machine, role).is_some()
            }
        };
        let address = |machine: &Machine| machine.address;
        let stay = view.desired.machines.iter().filter(passes).map(address);
        let stay: Vec<_> = stay.collect();
        let leave = view.desired.leaving.iter().filter(passes).map(address);
        let leave: Vec<_> = leave.collect();
        // Those to leave are asked until others can be, one less each time: those first that serve
        // no better than others.
        for some in some_of(&leave) {
            let mut place: Vec<_> = stay.iter().copied().chain(some).collect();
            place.sort();
            places.push(place);
        }
    }
    places
}

/// Every choice of some of them; where there are very many, those that are left when they go in
/// their order.
fn some_of(all: &[Ipv4Addr]) -> Vec<Vec<Ipv4Addr>> {
    const MANY: usize = 6;
    if all.len() > MANY {
        return (0..=all.len()).map(|first| all[first..].to_vec()).collect();
    }
    let mut choices = vec![Vec::new()];
    for one in all {
        let with = choices.iter().map(|choice: &Vec<_>| {
            let mut choice = choice.clone();
            choice.push(*one);
            choice
        });
        choices.extend(with.collect::<Vec<_>>());
    }
    choices
}

/// The role by which a machine passes the API on, if it has one.
type Way = for<'a> fn(&'a Desired, &Machine) -> Option<&'a Forward>;

/// The one that it should have, and the one that it had before the API moved elsewhere.
const WAYS: [Way; 2] = [Desired::api_role, Desired::former_api_role];

/// Whether a machine that answers passes the API on to somebody who does.
pub(super) fn answers(view: &View<'_>, machine: &Machine, role: Way) -> bool {
    serves(view, machine.id) && passes(view, machine, role).is_some_and(|targets| targets > 0)
}

/// How many answer to whom a machine passes the API on, where it was told to.
fn passes(view: &View<'_>, machine: &Machine, role: Way) -> Option<u32> {
    let role = role(view.desired, machine)?;
    let seen = view.observed.machines.get(&machine.id)?;
    let there = matches!(
        seen.machine,
        Some((
            MachineFact::Running { .. } | MachineFact::Unreachable { .. },
            _
        ))
    );
    let (host, _) = seen.host.as_ref().filter(|_| there)?;
    host.balance.as_ref()?.healthy.get(&role.name).copied()
}

/// Whether a machine that answers passes on anything.
fn serves(view: &View<'_>, id: MachineId) -> bool {
    super::balancers::passing(view, id).is_some()
}

/// Whether somebody asked that this be left undone.
pub(super) fn given_up(view: &View<'_>, id: MachineId, what: Kind) -> bool {
    view.intents.iter().any(|intent| {
        let cancels = matches!(
            &intent.wish,
            Wish::Cancel { machine, kind, .. } if *machine == id && *kind == what
        );
        cancels && intent.counts(view.now)
    })
}
