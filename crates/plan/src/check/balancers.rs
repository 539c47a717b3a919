//! What a plan must not do to load balancers and to those that they send to.

use super::Note;
use crate::planner::{Plan, View};
use model::balancer::BalanceFact;
use model::cluster::{Balancer, Machine, Origin, Role};
use model::id::MachineId;
use model::name::Name;
use model::observed::MachineFact;
use model::task::{Kind, State, Task};
use std::collections::BTreeSet;

/// Every rule about load balancers that `plan` breaks.
///
/// Whom they send to is not judged here: of what a load balancer was told only a fingerprint
/// is seen. The simulated world knows it, and watches.
pub(super) fn check(view: &View<'_>, plan: &Plan) -> Vec<Note> {
    let all = view.desired.all();
    let balancers = all.filter_map(|machine| machine.balancer.as_ref());
    let balancers: BTreeSet<_> = balancers.collect();
    let fewer = balancers
        .into_iter()
        .filter(|balancer| fewer_serve(view, plan, balancer));
    let note = |balancer: &Name| Note {
        machine: balancer.clone(),
        broken: "a load balancer keeps as many machines as it has or should have",
    };
    let early = plan.tasks.iter().filter(|task| comes_late(view, task));
    let early = early.map(|task| Note {
        machine: task.machine.name.clone(),
        broken: "a load balancer goes when the one in its place serves",
    });
    fewer.map(note).chain(early).collect()
}

/// Whether a machine that serves goes, its load balancer is declared no more, and a machine of one
/// that has a role of the same name does not serve yet.
fn comes_late(view: &View<'_>, task: &Task) -> bool {
    let desired = view.desired;
    let goes = matches!(task.action.kind(), Kind::Delete | Kind::Release);
    let name = task.machine.balancer.as_ref();
    let declared = desired.balancers.iter().any(|of| Some(&of.name) == name);
    let told = passing(view, task.machine.id).filter(|_| goes && !declared);
    let Some(told) = told.filter(|_| !makes_room(view, &task.machine)) else {
        return false;
    };
    let comes = |machine: &&Machine| {
        let of_this = |of: &&Balancer| Some(&of.name) == machine.balancer.as_ref();
        let now = desired.balancers.iter().find(of_this);
        let mut roles = now.into_iter().flat_map(|of| &of.roles);
        roles.any(|role| told.healthy.contains_key(&role.name))
    };
    let mut coming = desired.machines.iter().filter(comes);
    coming.any(|machine| passing(view, machine.id).is_none())
}

/// What a machine that answers tells of what it passes on.
pub(super) fn passing<'a>(view: &View<'a>, id: MachineId) -> Option<&'a BalanceFact> {
    let seen = view.observed.machines.get(&id)?;
    let runs = matches!(seen.machine, Some((MachineFact::Running { .. }, _)));
    let (host, _) = seen.host.as_ref().filter(|_| runs)?;
    host.balance.as_ref()
}

/// Whether fewer machines of a load balancer would serve than do, and than should.
fn fewer_serve(view: &View<'_>, plan: &Plan, name: &Name) -> bool {
    let of_this = |machine: &&Machine| {
        machine.role == Role::Balancer && machine.balancer.as_ref() == Some(name)
    };
    let removes = |kind: Kind| matches!(kind, Kind::Delete | Kind::Release);
    let going = |id: MachineId| {
        view.open.iter().any(|open| {
            let begun = open.attempts > 0 || open.state == State::Running;
            open.machine == id && begun && removes(open.action.kind())
        })
    };
    let all = view.desired.all().filter(of_this);
    let serve = all.filter(|machine| passing(view, machine.id).is_some() && !going(machine.id));
    let serve: Vec<_> = serve.collect();
    let begun = |machine: &&&Machine| {
        let mut tasks = plan.tasks.iter();
        tasks.any(|task| task.machine.id == machine.id && removes(task.action.kind()))
    };
    let go: Vec<_> = serve.iter().filter(begun).collect();
    let wanted = view.desired.machines.iter().filter(of_this).count();
    let left = serve.len() - go.len();
    // One that has to make room for its successor is one less for some time.
    let spared = usize::from(go.iter().any(|machine| makes_room(view, machine)));
    !go.is_empty() && left + spared < serve.len().min(wanted)
}

/// Whether somebody is to come who stands at the same address.
fn makes_room(view: &View<'_>, machine: &Machine) -> bool {
    let endpoint = |machine: &Machine| match &machine.origin {
        Origin::Given { endpoint, .. } => Some(*endpoint),
        Origin::Made { .. } => None,
    };
    let mut wanted = view.desired.machines.iter();
    endpoint(machine).is_some() && wanted.any(|other| endpoint(other) == endpoint(machine))
}
