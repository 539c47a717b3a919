//! The cluster around a node, as whoever changes that node must know it.

use super::draft::Draft;
use super::survey::{Life, Place};
use model::cluster::{Machine, Role};
use model::task::{Action, Around, Kind, Open};

/// Whether one of those by whom a task was to reach the API still can.
pub(super) fn reaches(draft: &Draft<'_>, place: &Place<'_>, open: &Open, action: &Action) -> bool {
    let Some(around) = around(draft, place, action) else {
        return true;
    };
    let still = |machine: &Machine| open.through.contains(&machine.id);
    around.through.is_empty() || around.through.iter().any(still)
}

/// The cluster as whoever changes this node must know it; machines of the simulated world know it
/// themselves.
pub(super) fn around(draft: &Draft<'_>, place: &Place<'_>, action: &Action) -> Option<Around> {
    let version = action.version();
    if !action.kind().of_kubernetes() || !place.machine.origin.is_host() {
        return None;
    }
    let desired = draft.view.desired;
    let members = || draft.survey.members();
    let other = |member: &&Place<'_>| member.machine.id != place.machine.id;
    let ready = members().filter(|member| other(member) && member.ready_control());
    // A member that changes helps itself where nobody else can.
    let itself = members().filter(|member| !other(member));
    let through = ready.chain(itself).map(|member| member.machine.clone());
    let newer = |member: &Place<'_>| member.node.map(|node| node.version) >= version;
    Some(Around {
        network: desired.network,
        kubernetes: desired.kubernetes.clone(),
        through: through.collect(),
        leads: version.is_some() && !members().any(newer),
        addons: desired.addons.clone(),
        nodes: nodes(draft, place, action),
    })
}

/// The nodes that need images before this is done: those of add-ons that are installed, and those of
/// what kubeadm has every node run when it has upgraded the control plane. Who comes later is brought
/// them on its way.
fn nodes(draft: &Draft<'_>, place: &Place<'_>, action: &Action) -> Vec<Machine> {
    let leads = place.machine.role == Role::Control;
    let kind = action.kind();
    if kind != Kind::Install && !(kind == Kind::Upgrade && leads) {
        return Vec::new();
    }
    let node = |place: &&Place<'_>| place.node.is_some() && place.life == Life::Running;
    let nodes = draft.survey.wanted().filter(node);
    nodes.map(|place| place.machine.clone()).collect()
}
