//! What a plan must not do to the port of the API at clouds.

use super::tending::{answers, given_up};
use crate::planner::View;
use model::cluster::{Desired, Machine};
use model::task::{Action, Kind, Task};

/// What one task breaks by itself.
pub(super) fn alone(view: &View<'_>, task: &Task) -> Option<&'static str> {
    let opens = matches!(task.action, Action::CreateExposed | Action::Expose);
    let shuts = task.action == Action::Shut;
    if (opens || shuts) && !task.machine.has_firewall() {
        Some("only a cloud shuts the port of a control machine")
    } else if opens && held(view, &view.desired.machines) {
        Some("no port opens while a load balancer passes the API on")
    } else if shuts && !held(view, view.desired.all()) {
        Some("a port is shut when a load balancer passes the API on")
    } else {
        None
    }
}

/// Whether one of these is of the load balancer that should pass the API on, and does so. Who is to
/// leave does until others do.
fn held<'a>(view: &View<'_>, machines: impl IntoIterator<Item = &'a Machine>) -> bool {
    let mut machines = machines.into_iter();
    machines.any(|machine| answers(view, machine, Desired::api_role))
}

/// Whether nobody who is led to a machine is kept away there: its port was seen to be open, or
/// somebody said that it need not be opened by us.
pub(super) fn lets_in(view: &View<'_>, machine: &Machine) -> bool {
    let open = view.observed.lets_in(machine.id);
    !machine.has_firewall() || open || given_up(view, machine.id, Kind::Expose)
}
