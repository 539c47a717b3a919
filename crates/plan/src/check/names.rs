//! What a plan must not do to names.

use super::balancers::passing;
use super::tending::given_up;
use crate::planner::View;
use model::cluster::{Balancer, Machine, Role};
use model::dns::Entry;
use model::id::MachineId;
use model::task::{Action, Kind, State, Task};

/// What one task breaks by itself.
pub(super) fn alone(view: &View<'_>, task: &Task) -> Option<&'static str> {
    let seen = names(view, task.machine.id);
    let goes = matches!(task.action.kind(), Kind::Delete | Kind::Release);
    if goes && !seen.is_empty() && !given_up(view, task.machine.id, Kind::Name) {
        return Some("no name leads to a machine that goes");
    }
    let comes = matches!(task.action.kind(), Kind::Create | Kind::Prepare);
    if comes && half_made(view, task.machine.id) && !given_up(view, task.machine.id, Kind::Name) {
        return Some("no machine is made to which a name may lead that nobody has seen");
    }
    let Action::Name { naming } = &task.action else {
        return None;
    };
    let is_among = |names: &[Entry], name: &Entry| names.iter().any(|of| of.is(name));
    let new = naming.names.iter().any(|name| !is_among(seen, name));
    let mut lost = seen.iter().filter(|name| !is_among(&naming.names, name));
    if task.machine.role != Role::Balancer {
        Some("only a load balancer has names")
    } else if new && passing(view, task.machine.id).is_none() {
        Some("a name leads to a load balancer that serves")
    } else if lost.any(|name| leads_nowhere(view, &task.machine, name)) {
        Some("a name leads elsewhere before it is taken back")
    } else {
        None
    }
}

/// Whether a name may lead to a machine though nobody has seen that: somebody began to make it, or was
/// asked to take it back.
fn half_made(view: &View<'_>, machine: MachineId) -> bool {
    let seen = names(view, machine);
    let unseen = |name: &Entry| !seen.iter().any(|of| of.is(name));
    let mut open = view.open.iter().filter(|open| open.machine == machine);
    open.any(|open| {
        let begun = open.attempts > 0 || open.state == State::Running;
        let Action::Name { naming } = &open.action else {
            return false;
        };
        begun && naming.names.iter().any(unseen) || naming.former.iter().any(unseen)
    })
}

/// Whether a name that a load balancer should have leads to none of its machines but this one.
fn leads_nowhere(view: &View<'_>, but: &Machine, name: &Entry) -> bool {
    let called = |of: &&Balancer| {
        let names = of.dns.iter().flat_map(model::dns::Names::entries);
        names.into_iter().any(|of| of.is(name))
    };
    let mut balancers = view.desired.balancers.iter().filter(called);
    balancers.any(|of| {
        let machines = view.desired.machines.iter();
        let machines = machines.filter(|machine| machine.balancer.as_ref() == Some(&of.name));
        let mut others = machines.clone().filter(|machine| machine.id != but.id);
        let led = others.any(|machine| names(view, machine.id).iter().any(|of| of.is(name)));
        machines.count() > 0 && !led
    })
}

fn names<'a>(view: &View<'a>, machine: MachineId) -> &'a [Entry] {
    let seen = view.observed.machines.get(&machine);
    let names = seen.and_then(|seen| seen.names.as_ref());
    names.map(|(fact, _)| &fact.names[..]).unwrap_or_default()
}
