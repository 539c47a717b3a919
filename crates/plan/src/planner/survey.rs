//! Every machine of a cluster, with what is known of it, in the planner's order.

use super::View;
use model::cluster::{Machine, Role};
use model::id::MachineId;
use model::observed::{HostFact, MachineFact, NodeFact, Seen};
use model::task::{Kind, Open};
use model::version::Version;
use std::collections::BTreeMap;

/// One machine and all that is known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The machine as it should be, or as it was while it should be.
    pub(super) machine: &'a Machine,
    /// Whether it is to stay.
    pub(super) wanted: bool,
    /// As its provider shows it.
    pub(super) life: Life,
    /// As it describes itself.
    pub(super) host: Option<&'a HostFact>,
    /// As Kubernetes shows it.
    pub(super) node: Option<Node>,
    /// The unfinished task that touches it.
    pub(super) open: Option<&'a Open>,
    /// Whether it holds a row of the disruption ledger, and still needs it.
    pub(super) slot: bool,
    /// Whether somebody else holds what it needs to begin.
    pub(super) blocked: bool,
}

/// How far a machine has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Nobody has looked yet.
    Unseen,
    /// Seen not to exist.
    Absent,
    /// Exists, does not run yet.
    Booting,
    /// Runs and answers.
    Running,
    /// Exists and does not answer.
    Unreachable,
}

/// A joined node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) ready: bool,
    pub(super) cordoned: bool,
    pub(super) version: Version,
}

impl Node {
    /// Whether it serves workloads as it should.
    pub(super) fn serves(self) -> bool {
        self.ready && !self.cordoned
    }
}

impl Place<'_> {
    /// Whether it is a ready member of the control plane, cordoned or not.
    pub(super) fn ready_control(&self) -> bool {
        self.machine.role == Role::Control
            && self.reachable()
            && self.node.is_some_and(|node| node.ready)
    }

    /// Whether it is a node that should serve and does not, or that we took out of service.
    pub(super) fn out_of_service(&self) -> bool {
        self.node.is_some()
            && (self.slot || !self.reachable() || !self.node.is_some_and(Node::serves))
    }

    /// Whether it is a node that does what it should.
    pub(super) fn in_service(&self) -> bool {
        self.reachable() && self.node.is_some_and(Node::serves)
    }

    /// Whether it has an end of the mesh, where it should have one.
    pub(super) fn connected(&self) -> bool {
        !self.machine.origin.is_host() || self.host.is_some_and(|host| host.mesh.is_some())
    }

    /// Whether its unfinished task is of this kind.
    pub(super) fn doing(&self, kind: Kind) -> bool {
        self.open.is_some_and(|open| open.action.kind() == kind)
    }

    fn reachable(&self) -> bool {
        self.life != Life::Unreachable
    }
}

/// All machines of a cluster: those to stay in their order, then those to leave.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    pub(super) places: Vec<Place<'a>>,
}

impl<'a> Survey<'a> {
    pub(super) fn of(view: &View<'a>) -> Self {
        let open: BTreeMap<MachineId, &Open> =
            view.open.iter().map(|open| (open.machine, open)).collect();
        let place = |machine: &'a Machine, wanted: bool| {
            let seen = view.observed.machines.get(&machine.id);
            let (node, open) = (node(seen), open.get(&machine.id).copied());
            let slot = view.ledger.iter().any(|slot| slot.machine == machine.id);
            let needed = node.is_some_and(|node| open.is_some() || !node.serves());
            Place {
                machine,
                wanted,
                life: life(seen),
                host: host(seen),
                node,
                open,
                slot: slot && needed,
                blocked: view.blocked.contains(&machine.name),
            }
        };
        let wanted = view
            .desired
            .machines
            .iter()
            .map(|machine| place(machine, true));
        let leaving = view
            .desired
            .leaving
            .iter()
            .map(|machine| place(machine, false));
        Self {
            places: wanted.chain(leaving).collect(),
        }
    }

    pub(super) fn wanted(&self) -> impl Iterator<Item = &Place<'a>> {
        self.places.iter().filter(|place| place.wanted)
    }

    pub(super) fn leaving(&self) -> impl Iterator<Item = &Place<'a>> {
        self.places.iter().filter(|place| !place.wanted)
    }

    /// Members of the control plane, those to leave included.
    pub(super) fn members(&self) -> impl Iterator<Item = &Place<'a>> {
        self.places
            .iter()
            .filter(|place| place.machine.role == Role::Control && place.node.is_some())
    }
}

/// How many there are.
pub(super) fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

fn life(seen: Option<&Seen>) -> Life {
    match seen
        .and_then(|seen| seen.machine.as_ref())
        .map(|(fact, _)| fact)
    {
        None => Life::Unseen,
        Some(MachineFact::Absent) => Life::Absent,
        Some(MachineFact::Booting { .. }) => Life::Booting,
        Some(MachineFact::Running { .. }) => Life::Running,
        Some(MachineFact::Unreachable { .. }) => Life::Unreachable,
    }
}

/// What a host says of itself, unless it is seen to be gone.
fn host(seen: Option<&Seen>) -> Option<&HostFact> {
    let there = matches!(life(seen), Life::Running | Life::Unreachable);
    let (host, _) = seen.filter(|_| there)?.host.as_ref()?;
    Some(host)
}

/// The node, unless its machine is seen to be gone: Kubernetes keeps the names of the dead.
fn node(seen: Option<&Seen>) -> Option<Node> {
    let seen = seen?;
    if matches!(seen.machine, Some((MachineFact::Absent, _))) {
        return None;
    }
    match &seen.node.as_ref()?.0 {
        NodeFact::Absent => None,
        NodeFact::Joined {
            ready,
            cordoned,
            version,
        } => Some(Node {
            ready: *ready,
            cordoned: *cordoned,
            version: *version,
        }),
    }
}
