//! Every machine of a cluster, with what is known of it, in the planner's order.

use super::strays::{self, Left};
use super::{View, hosts};
use model::cluster::{Machine, Role};
use model::dns::NamesFact;
use model::host::{Fingerprint, Recipe};
use model::id::MachineId;
use model::intent::Wish;
use model::observed::{HostFact, MachineFact, NodeFact, Seen};
use model::task::{Kind, Open, State};
use model::time::Timestamp;
use model::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// One machine and all that is known of it.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, and any of them may go with any other"
)]
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
    /// Whether it is to stay, and Kubernetes still shows it though its machine is gone.
    pub(super) outlived: bool,
    /// Whether its machine is gone and etcd still counts on its member.
    pub(super) dead_vote: bool,
    /// What the node was last told to carry, if it still does.
    pub(super) care: Option<&'a Fingerprint>,
    /// The names that lead to it, where somebody can ask for them.
    pub(super) names: Option<&'a NamesFact>,
    /// Whether the world reaches the API on it, where somebody was asked.
    pub(super) port: Option<bool>,
    /// Where people find it, while it runs.
    pub(super) outside: Option<IpAddr>,
    /// The unfinished task that touches it.
    pub(super) open: Option<&'a Open>,
    /// What is heard of its member of etcd.
    etcd: Etcd,
    /// The day on which the first of its certificates ends, where it is a control machine.
    pub(super) end: Option<Timestamp>,
    /// Whether it holds a row of the disruption ledger, and still needs it.
    pub(super) slot: bool,
    /// Whether somebody else holds what it needs to begin.
    pub(super) blocked: bool,
    /// Whether they keep it.
    pub(super) shut_out: bool,
    /// Whether it is what its recipe says, where it is a host.
    pub(super) equipment: Equipment,
    /// The machine whose mesh key it tells, where it is no part of the mesh for that.
    pub(super) twin: Option<&'a Machine>,
}

/// What is on a host, against what should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Equipment {
    fit: Fit,
    /// Whether there is an unfinished equipment that goes on.
    goes_on: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Nothing is missing.
    Whole,
    /// It has just joined and lacks nothing but what is played then.
    Newcomer,
    /// It is not what its recipe says.
    Lacking,
}

/// What is heard of a member of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Etcd {
    /// Nothing: the node has to speak for it.
    Unheard,
    /// It runs, and has a vote.
    Counts,
    /// It does not run, or only learns.
    Sick,
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, and any of them may go with any other"
)]
pub(super) struct Node {
    pub(super) ready: bool,
    pub(super) cordoned: bool,
    pub(super) version: Version,
    /// Whether its kubelet asks for a certificate.
    pub(super) asks: bool,
    /// Whether it came in place of another and its gates have not let it pass: it never served.
    pub(super) gated: bool,
}

impl Node {
    /// Whether it serves workloads as it should.
    pub(super) fn serves(self) -> bool {
        self.ready && !self.cordoned
    }
}

impl Place<'_> {
    /// Whether it is a ready member of the control plane, cordoned or not, and its etcd is well.
    pub(super) fn ready_control(&self) -> bool {
        self.machine.role == Role::Control
            && self.reachable()
            && self.etcd != Etcd::Sick
            && self.node.is_some_and(|node| node.ready)
    }

    /// Whether it is a node that should serve and does not, or that we took out of service. One that
    /// waits at its gates never served.
    pub(super) fn out_of_service(&self) -> bool {
        self.node.is_some_and(|node| {
            let missed = !self.reachable() || !node.ready || node.cordoned && !node.gated;
            self.slot || missed
        })
    }

    /// Whether it is a node that does what it should.
    pub(super) fn in_service(&self) -> bool {
        self.reachable() && self.node.is_some_and(Node::serves)
    }

    /// Whether it has an end of the mesh, where it should have one.
    pub(super) fn connected(&self) -> bool {
        let has_end = self.host.is_some_and(|host| host.mesh.is_some());
        !self.machine.origin.is_host() || has_end && self.twin.is_none()
    }

    /// Whether work of this kind keeps the node from its own. Where it is equipped again, what
    /// runs its containers is started again.
    pub(super) fn disturbed_by(&self, kind: Kind) -> bool {
        match kind {
            Kind::Drain | Kind::Upgrade | Kind::Renew | Kind::Leave => true,
            Kind::Equip => self.node.is_some() && self.equipment.fit != Fit::Newcomer,
            Kind::Key
            | Kind::Create
            | Kind::Prepare
            | Kind::Mesh
            | Kind::Balance
            | Kind::Name
            | Kind::Expose
            | Kind::Shut
            | Kind::Init
            | Kind::Join
            | Kind::Install
            | Kind::Tend
            | Kind::Uncordon
            | Kind::Clear
            | Kind::Snapshot
            | Kind::Restore
            | Kind::Delete
            | Kind::Release => false,
        }
    }

    /// Whether its unfinished task is of this kind.
    pub(super) fn doing(&self, kind: Kind) -> bool {
        self.open.is_some_and(|open| open.action.kind() == kind)
    }

    fn reachable(&self) -> bool {
        self.life != Life::Unreachable
    }

    /// Whether it is a host that is not what it should be.
    pub(super) fn lacks(&self) -> bool {
        self.equipment.fit != Fit::Whole
    }

    /// Whether it has an unfinished equipment that goes on.
    pub(super) const fn equips(&self) -> bool {
        self.equipment.goes_on
    }

    /// Compares a host with what it is made ready for.
    fn compared(&self, view: &View<'_>, recipes: &mut Recipes) -> Equipment {
        let (machine, joined) = (self.machine, self.node.is_some());
        let mut is = |joined: bool| {
            let recipe = recipes.entry((machine.role, joined)).or_insert_with(|| {
                let recipe = view.desired.recipe(machine, joined);
                let print = recipe.fingerprint();
                (recipe, print)
            });
            let whole = |host: &HostFact| {
                host.equipped.as_ref() == Some(&recipe.1) && host.mesh_key.is_some()
            };
            self.host.is_some_and(whole)
        };
        let fit = if is(joined) {
            Fit::Whole
        } else if joined && is(false) && view.desired.comes_with_playbooks(machine) {
            Fit::Newcomer
        } else {
            Fit::Lacking
        };
        let goes_on = |open: &Open| {
            let given_up = || cancelled(view, machine.id, Kind::Equip).is_some();
            let wanted = fit != Fit::Whole && !given_up();
            open.action.kind() == Kind::Equip && (wanted || open.state == State::Running)
        };
        Equipment {
            fit,
            goes_on: self.open.is_some_and(goes_on),
        }
    }
}

/// Who asked that this be left undone.
pub(crate) fn cancelled<'a>(view: &View<'a>, machine: MachineId, kind: Kind) -> Option<&'a str> {
    let this = |wish: &Wish| matches!(wish, Wish::Cancel { machine: of, kind: what, .. } if *of == machine && *what == kind);
    let mut wishes = view.intents.iter();
    let found = wishes.find(|intent| this(&intent.wish) && intent.counts(view.now));
    found.map(|intent| intent.author.as_str())
}

/// Whether somebody gave up on cleaning a given machine: it does not answer and never will, and
/// they cancelled its release.
pub(super) fn given_up(view: &View<'_>, place: &Place<'_>) -> bool {
    let running = place.open.is_some_and(|open| open.state == State::Running);
    !running && cancelled(view, place.machine.id, Kind::Release).is_some()
}

/// All machines of a cluster: those to stay in their order, then those to leave.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    pub(super) places: Vec<Place<'a>>,
    /// Nodes that are left of machines that are none of them any more.
    pub(super) left: Vec<Left<'a>>,
    recipes: Recipes,
}

/// What hosts are made ready for: all of one role follow one recipe before they join, and one
/// when they have.
type Recipes = BTreeMap<(Role, bool), (Recipe, Fingerprint)>;

impl<'a> Survey<'a> {
    pub(super) fn of(view: &View<'a>) -> Self {
        let open: BTreeMap<MachineId, &Open> =
            view.open.iter().map(|open| (open.machine, open)).collect();
        let rows: BTreeSet<_> = view.ledger.iter().map(|row| row.machine).collect();
        let blocked: BTreeSet<_> = view.blocked.iter().collect();
        let shut_out: BTreeSet<_> = view.shut_out.iter().collect();
        let mut recipes = Recipes::new();
        let mut place = |machine: &'a Machine, wanted: bool| {
            let seen = view.observed.machines.get(&machine.id);
            let (node, open) = (node(seen), open.get(&machine.id).copied());
            let mut place = Place {
                machine,
                wanted,
                life: life(seen),
                host: host(seen),
                node,
                outlived: wanted && seen.is_some_and(Seen::outlived),
                dead_vote: dead_vote(view, machine, wanted),
                care: carried(seen),
                names: seen
                    .and_then(|seen| seen.names.as_ref())
                    .map(|(fact, _)| fact),
                port: port(seen),
                outside: outside(seen),
                open,
                etcd: etcd(view, machine),
                end: seen
                    .and_then(|seen| seen.certificates.as_ref())
                    .map(|(fact, _)| fact.end),
                slot: false,
                blocked: blocked.contains(&machine.name),
                shut_out: shut_out.contains(&machine.name),
                equipment: Equipment {
                    fit: Fit::Whole,
                    goes_on: false,
                },
                twin: None,
            };
            if machine.origin.is_host() {
                place.equipment = place.compared(view, &mut recipes);
            }
            let row = rows.contains(&machine.id);
            let works = place.equips() || open.is_some() && !place.doing(Kind::Equip);
            place.slot = row && node.is_some_and(|node| works || !node.serves());
            place
        };
        let (stay, leave) = (&view.desired.machines, &view.desired.leaving);
        let mut places: Vec<_> = stay.iter().map(|machine| place(machine, true)).collect();
        places.extend(leave.iter().map(|machine| place(machine, false)));
        let twins = hosts::left_out(view, &places);
        for place in &mut places {
            place.twin = twins.get(&place.machine.id).copied();
        }
        let left = strays::left(view, &places);
        Self {
            places,
            left,
            recipes,
        }
    }

    /// What a host is made ready for.
    pub(super) fn recipe(&self, place: &Place<'_>) -> Option<&Recipe> {
        let recipe = self
            .recipes
            .get(&(place.machine.role, place.node.is_some()));
        recipe.map(|(recipe, _)| recipe)
    }

    pub(super) fn wanted(&self) -> impl Iterator<Item = &Place<'a>> {
        self.places.iter().filter(|place| place.wanted)
    }

    pub(super) fn leaving(&self) -> impl Iterator<Item = &Place<'a>> {
        self.places.iter().filter(|place| !place.wanted)
    }

    /// What the nodes run that are to stay.
    pub(super) fn runs(&self) -> Vec<Version> {
        let nodes = self.wanted().filter_map(|place| place.node);
        nodes.map(|node| node.version).collect()
    }

    /// Members of the control plane, those to leave included.
    pub(super) fn members(&self) -> impl Iterator<Item = &Place<'a>> {
        self.places
            .iter()
            .filter(|place| place.machine.role == Role::Control && place.node.is_some())
    }

    /// Whom etcd counts on: members, and those whose machine is gone until they are taken out.
    pub(super) fn voters(&self) -> impl Iterator<Item = &Place<'a>> {
        let control = self.places.iter();
        let control = control.filter(|place| place.machine.role == Role::Control);
        control.filter(|place| place.node.is_some() || place.dead_vote)
    }
}

/// Whether etcd counts on the member of a machine that is gone: until the API or etcd says otherwise,
/// also of one that nobody wants any more. What was listed since is counted with what is left of others.
fn dead_vote(view: &View<'_>, machine: &Machine, wanted: bool) -> bool {
    let Some(seen) = view.observed.machines.get(&machine.id) else {
        return false;
    };
    let (Some((_, gone_at)), Some((_, node_at)), true) =
        (&seen.machine, &seen.node, seen.outlived())
    else {
        return false;
    };
    let told = view.observed.wellbeing.as_ref();
    let without = told.is_some_and(|(told, at)| {
        let mut names = told.etcd.iter().map(|member| member.name.as_str());
        at >= node_at && !told.etcd.is_empty() && names.all(|name| name != machine.name.as_str())
    });
    let strays = view.observed.strays.as_ref();
    let listed = strays.is_some_and(|(_, at)| at >= gone_at);
    machine.role == Role::Control && !without && (wanted || !listed)
}

/// What is heard of the member of a machine. Whoever is not among those that were told of after it
/// joined has none.
fn etcd(view: &View<'_>, machine: &Machine) -> Etcd {
    let Some((wellbeing, told_at)) = &view.observed.wellbeing else {
        return Etcd::Unheard;
    };
    let seen = view.observed.machines.get(&machine.id);
    let joined = seen.and_then(|seen| seen.node.as_ref());
    let left_out = !wellbeing.etcd.is_empty() && joined.is_some_and(|(_, at)| at < told_at);
    let mut members = wellbeing.etcd.iter();
    match members.find(|member| member.name == machine.name.as_str()) {
        None if left_out => Etcd::Sick,
        None => Etcd::Unheard,
        Some(member) if member.healthy && !member.learner => Etcd::Counts,
        Some(_) => Etcd::Sick,
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

/// Where people find a machine that runs.
fn outside(seen: Option<&Seen>) -> Option<IpAddr> {
    match seen?.machine.as_ref()? {
        (MachineFact::Running { address, .. }, _) => Some(*address),
        (
            MachineFact::Absent | MachineFact::Booting { .. } | MachineFact::Unreachable { .. },
            _,
        ) => None,
    }
}

/// Whether the world reaches the API on a machine, unless that is seen to be gone.
fn port(seen: Option<&Seen>) -> Option<bool> {
    let there = !matches!(life(seen), Life::Unseen | Life::Absent);
    let (port, _) = seen.filter(|_| there)?.port?;
    Some(port.open)
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
            care: _,
            asks,
            gated,
        } => Some(Node {
            ready: *ready,
            cordoned: *cordoned,
            version: *version,
            asks: *asks,
            gated: *gated,
        }),
    }
}

/// What the node was last told to carry, if it still does.
fn carried(seen: Option<&Seen>) -> Option<&Fingerprint> {
    match &seen?.node.as_ref()?.0 {
        NodeFact::Absent => None,
        NodeFact::Joined { care, .. } => care.as_ref(),
    }
}
