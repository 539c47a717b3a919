//! Everything there is in the simulated world, and how effects change it.
//!
//! Changes take time: they begin, which is often visible at once, and take effect when
//! their time has come, whether or not anybody still waits for them. Nothing runs in the
//! meantime: whoever looks settles first what has become due, so an idle world costs
//! nothing.
//!
//! **Invariant:** equal effects at equal times give equal states; the journal relies on it.

use super::effect::{Bearer, Change, Computer, Effect, Operation, Told};
use super::kit::Kit;
use super::modules::Modules;
use super::names::Named;
use super::saved::Saved;
use super::watch::Violation;
use model::addon::{AddonFact, AddonName};
use model::cluster::Role;
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::time::Timestamp;
use model::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Everything there is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) vms: BTreeMap<u64, Vm>,
    /// Given hosts that somebody has touched; all others are there too, clean and running.
    pub(crate) hosts: BTreeMap<Ipv4Addr, Host>,
    pub(crate) clusters: BTreeMap<ClusterId, Kube>,
    pub(crate) operations: BTreeMap<u64, Operation>,
    /// The keys that open the machines of clusters. Nothing in the world ends with them: they
    /// are kept where secrets are.
    #[serde(default)]
    pub(crate) keys: BTreeMap<ClusterId, Key>,
    /// The names that lead to machines.
    #[serde(default)]
    pub(crate) names: BTreeMap<MachineId, Named>,
    /// The last number that the provider gave to a machine.
    pub(crate) vm_last: u64,
    /// The last number of a change.
    pub(crate) operation_last: u64,
    /// How often a machine was made for each label.
    pub(crate) made: BTreeMap<MachineId, u32>,
    /// Server types that the provider does not sell for now.
    pub(crate) refused: BTreeSet<String>,
    /// Gates that let nobody pass for now.
    #[serde(default)]
    pub(crate) shut: BTreeSet<Name>,
    /// What was said of repositories of modules.
    #[serde(default)]
    pub(crate) modules: Modules,
    /// Clusters that are to go as a whole.
    pub(crate) condemned: BTreeSet<ClusterId>,
    /// Rules that were broken, in the order in which it happened.
    pub(crate) violations: Vec<Violation>,
    /// Whether the rules about clusters are watched: somebody must then tell who is condemned.
    pub(crate) watched: bool,
    #[serde(skip)]
    labels: BTreeMap<MachineId, BTreeSet<u64>>,
    #[serde(skip)]
    due: BTreeSet<(Timestamp, u64)>,
    #[serde(skip)]
    busy: BTreeMap<MachineId, u64>,
}

/// A machine that the provider made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Vm {
    pub(crate) by: Bearer,
    pub(crate) address: Ipv4Addr,
    pub(crate) boots_at: Timestamp,
    pub(crate) powered: bool,
    pub(crate) stopping: bool,
    /// What is on it, where it is a host.
    #[serde(default)]
    pub(crate) kit: Option<Kit>,
    /// Whether another driver made it.
    #[serde(default)]
    pub(crate) lent: bool,
    /// Whether the world reaches the API on it, where a firewall stands before that.
    #[serde(default)]
    pub(crate) port: Option<bool>,
}

/// What opens the machines of a cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) public: String,
    /// From when on it is there.
    pub(crate) from: Timestamp,
}

/// A machine that was always there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) owner: Option<Bearer>,
    pub(crate) prepared: bool,
    pub(crate) powered: bool,
    /// What is on it, where it is a host that somebody enters.
    #[serde(default)]
    pub(crate) kit: Option<Kit>,
    /// How often it was given back: what is born on it anew is not what was there before.
    #[serde(default)]
    pub(crate) lives: u32,
    /// Whether another driver takes care of it.
    #[serde(default)]
    pub(crate) lent: bool,
}

/// A cluster as Kubernetes itself sees it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Kube {
    /// Where the control plane was first started.
    pub(crate) started: Option<MachineId>,
    pub(crate) nodes: BTreeMap<MachineId, Node>,
    /// Nodes that somebody else has joined.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) strangers: BTreeSet<Name>,
    /// What was installed, where anything ever was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) addons: Option<BTreeMap<AddonName, AddonFact>>,
    /// What was saved of its etcd, and put back.
    #[serde(default)]
    pub(crate) saved: Saved,
}

/// A machine's face in its cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: Name,
    pub(crate) role: Role,
    pub(crate) on: Computer,
    pub(crate) version: Version,
    pub(crate) duty: Duty,
    pub(crate) course: Course,
    #[serde(default)]
    pub(crate) told: Told,
    /// The day on which its certificates end, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<Timestamp>,
    /// Since when it was there without a computer, where it was never on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_since: Option<Timestamp>,
}

/// What a node does for workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Duty {
    /// It runs them.
    Serves,
    /// It takes no new ones, and still has old ones.
    Cordoned,
    /// They have moved elsewhere.
    Drained,
    /// None were ever let onto it: its gates have not let it pass yet.
    Gated,
}

/// What is being done to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Course {
    /// Nothing.
    Steady,
    /// An upgrade was begun and has not ended.
    Changing,
    /// It was begun to be taken out and is not out yet.
    Leaving,
}

impl Node {
    /// A node as it has just joined.
    pub(crate) fn joined(name: Name, role: Role, on: Computer, version: Version) -> Self {
        Self {
            name,
            role,
            on,
            version,
            duty: Duty::Serves,
            course: Course::Steady,
            told: Told::default(),
            end: None,
            left_since: None,
        }
    }

    /// Gives a member of the control plane certificates for a year, told to the day.
    pub(crate) fn certify(&mut self, at: Timestamp) {
        if self.role == Role::Control {
            let end = at.plus(CERTIFIED).as_millis();
            let day = end.div_euclid(DAY_MILLIS) * DAY_MILLIS;
            self.end = Some(Timestamp::from_millis(day));
        }
    }
}

/// How long certificates are good for.
const CERTIFIED: Duration = Duration::from_hours(365 * 24);

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

impl State {
    /// Rebuilds what is not written down, after reading.
    pub(crate) fn reindex(&mut self) {
        self.labels.clear();
        for (number, vm) in &self.vms {
            let label = self.labels.entry(vm.by.machine).or_default();
            label.insert(*number);
        }
        let operations = self.operations.iter();
        self.due = operations.clone().map(|(id, of)| (of.until, *id)).collect();
        self.busy = operations.map(|(id, of)| (of.by.machine, *id)).collect();
    }

    /// Lets everything take effect that is due at `now`, and says when the last of it was.
    pub(crate) fn settle(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut last = None;
        while let Some((until, operation)) = self.due.first().copied()
            && until <= now
        {
            if let Some(of) = self.forget(operation) {
                self.finish(until, &of);
            }
            last = Some(until);
        }
        last
    }

    /// Lets one thing happen.
    pub(crate) fn take(&mut self, at: Timestamp, effect: Effect) {
        self.settle(at);
        match effect {
            Effect::Order {
                vm,
                by,
                address,
                boots_at,
                host,
                port,
            } => {
                *self.made.entry(by.machine).or_insert(0) += 1;
                self.watch_order(at, &by, host);
                self.put(vm, by, address, boots_at);
                if let Some(vm) = self.vms.get_mut(&vm) {
                    vm.kit = host.then(Kit::default);
                    vm.port = port;
                }
            }
            Effect::Key {
                cluster,
                public,
                from,
            } => {
                self.keys.entry(cluster).or_insert(Key { public, from });
            }
            Effect::Lend { on, by, address } => self.lend(at, on, by, address),
            Effect::TakeBack { machine } => self.take_back(at, machine),
            Effect::Begin { operation, of } => self.begin(at, operation, of),
            Effect::LetGo { operation } => {
                self.forget(operation);
            }
            Effect::Power { computer, on } => self.power(at, computer, on),
            Effect::Vanish { vm } => self.vanish(at, vm),
            Effect::Stray { cluster, node, of } => self.stray(at, cluster, node, of),
            Effect::Offer {
                server_type,
                offered: true,
            } => {
                self.refused.remove(&server_type);
            }
            Effect::Offer {
                server_type,
                offered: false,
            } => {
                self.refused.insert(server_type);
            }
            Effect::Gate { gate, open: true } => {
                self.shut.remove(&gate);
            }
            Effect::Gate { gate, open: false } => {
                self.shut.insert(gate);
            }
            Effect::Lead { reference, commit } => self.modules.lead(reference, commit),
            Effect::Repository {
                repository,
                answers,
            } => self.modules.answer(repository, answers),
            Effect::Age { cluster, end } => {
                let kube = self.clusters.get_mut(&cluster).into_iter();
                let nodes = kube.flat_map(|kube| kube.nodes.values_mut());
                for node in nodes.filter(|node| node.role == Role::Control) {
                    node.end = Some(end);
                }
            }
            Effect::Condemn { cluster } => {
                self.condemned.insert(cluster);
            }
            Effect::Watch => self.watched = true,
        }
    }

    /// Puts a machine that the provider made into the world.
    pub(super) fn put(&mut self, number: u64, by: Bearer, address: Ipv4Addr, boots_at: Timestamp) {
        self.vm_last = self.vm_last.max(number);
        let label = self.labels.entry(by.machine).or_default();
        label.insert(number);
        let vm = Vm {
            by,
            address,
            boots_at,
            powered: true,
            stopping: false,
            kit: None,
            lent: false,
            port: None,
        };
        self.vms.insert(number, vm);
    }

    fn begin(&mut self, at: Timestamp, operation: u64, of: Operation) {
        self.operation_last = self.operation_last.max(operation);
        // A machine that is destroyed takes along whatever was happening to it.
        if let Some(other) = self.busy.get(&of.by.machine).copied() {
            self.forget(other);
        }
        let had_quorum = self.quorum(of.by.cluster, at);
        self.start(at, &of);
        self.watch_begin(at, &of, had_quorum);
        self.due.insert((of.until, operation));
        self.busy.insert(of.by.machine, operation);
        self.operations.insert(operation, of);
    }

    pub(super) fn forget(&mut self, operation: u64) -> Option<Operation> {
        let of = self.operations.remove(&operation)?;
        self.due.remove(&(of.until, operation));
        self.busy.remove(&of.by.machine);
        Some(of)
    }

    /// What is visible of a change as soon as it begins, and stays if nobody ends it.
    fn start(&mut self, at: Timestamp, of: &Operation) {
        match &of.change {
            Change::Prepare => {
                if let Computer::Host(address) = of.on {
                    let host = self.host_mut(address);
                    host.owner = Some(of.by.clone());
                    host.prepared = false;
                    host.kit = of.host.then(Kit::default);
                }
            }
            // The first of them know already while the others are still being told.
            Change::Mesh { ends } => self.connect(at, &ends[..ends.len() / 2]),
            Change::Install { addons, .. } => self.begin_install(of, addons),
            Change::Equip { .. }
            | Change::Balance { .. }
            | Change::Name { .. }
            | Change::Expose
            | Change::Shut
            | Change::Init { .. }
            | Change::Join { .. }
            | Change::Tend { .. }
            | Change::Snapshot { .. }
            | Change::Restore { .. }
            | Change::Clear { .. }
            | Change::Uncordon => {}
            Change::Drain => self.edit(of, |node| {
                if matches!(node.duty, Duty::Serves | Duty::Gated) {
                    node.duty = Duty::Cordoned;
                }
            }),
            Change::Upgrade { .. } | Change::Renew { .. } => {
                self.edit(of, |node| node.course = Course::Changing);
            }
            Change::Leave => self.edit(of, |node| node.course = Course::Leaving),
            Change::Delete => {
                if let Computer::Vm(number) = of.on
                    && let Some(vm) = self.vms.get_mut(&number)
                {
                    vm.stopping = true;
                }
            }
            Change::Release => {
                if let Computer::Host(address) = of.on {
                    self.host_mut(address).prepared = false;
                }
            }
        }
    }

    /// What a change leads to.
    #[expect(clippy::too_many_lines, reason = "an arm for each kind of task")]
    fn finish(&mut self, at: Timestamp, of: &Operation) {
        if of.change.on_the_machine() && !self.answers(of.on, at) {
            return;
        }
        match &of.change {
            Change::Prepare => {
                if let Computer::Host(address) = of.on {
                    self.host_mut(address).prepared = true;
                }
            }
            Change::Equip { recipe } => self.equip(of, recipe),
            Change::Mesh { ends } => self.connect(at, ends),
            Change::Balance { passing } => self.balance(of, passing),
            Change::Name { naming } => self.name(at, of, naming),
            Change::Expose => self.set_port(of, true),
            Change::Shut => {
                self.watch_shut(at, of);
                self.set_port(of, false);
            }
            Change::Init { version, told } => {
                self.watch_init(at, of);
                let kube = self.clusters.entry(of.by.cluster).or_default();
                kube.started = Some(of.by.machine);
                kube.saved.since = at;
                self.join(at, of, *version, told);
            }
            Change::Join {
                version,
                told,
                gated,
            } => {
                self.join(at, of, *version, told);
                if *gated {
                    self.edit(of, |node| node.duty = Duty::Gated);
                }
            }
            Change::Tend { told } => {
                self.watch_led(at, of, told);
                self.edit(of, |node| node.told = told.clone());
            }
            Change::Install { addons, remove } => self.install(of, addons, remove),
            Change::Drain => self.edit(of, |node| node.duty = Duty::Drained),
            Change::Upgrade { version } => {
                self.edit(of, |node| {
                    node.course = Course::Steady;
                    node.version = *version;
                    node.certify(at);
                });
                self.watch_upgraded(at, of);
            }
            Change::Renew { .. } => self.edit(of, |node| {
                node.course = Course::Steady;
                node.certify(at);
            }),
            Change::Uncordon => self.edit(of, |node| node.duty = Duty::Serves),
            Change::Snapshot { task, taking } => {
                let kube = self.clusters.entry(of.by.cluster).or_default();
                kube.saved.take(*task, taking, at);
            }
            Change::Restore { restored } => {
                self.without_the_dead(of.by.cluster);
                let kube = self.clusters.entry(of.by.cluster).or_default();
                kube.saved.restored = Some(restored.clone());
            }
            Change::Leave => {
                if let Some(kube) = self.clusters.get_mut(&of.by.cluster) {
                    kube.nodes.remove(&of.by.machine);
                }
            }
            Change::Clear { leftovers } => self.clear(at, of, leftovers),
            Change::Delete => {
                if let Computer::Vm(number) = of.on {
                    self.destroy(number);
                }
                self.forget_names(of.by.machine);
                self.bury(of.by.cluster);
            }
            Change::Release => {
                if let Computer::Host(address) = of.on {
                    self.clean(address);
                }
                self.forget_names(of.by.machine);
                self.bury(of.by.cluster);
            }
        }
    }

    fn join(&mut self, at: Timestamp, of: &Operation, version: Version, told: &Told) {
        self.watch_led(at, of, told);
        let mut node = Node::joined(of.by.name.clone(), of.role, of.on, version);
        node.told = told.clone();
        node.certify(at);
        let kube = self.clusters.entry(of.by.cluster).or_default();
        kube.nodes.insert(of.by.machine, node);
    }

    /// Etcd is made anew with the members that are there: whose machine is gone is none of them, and no
    /// node either.
    fn without_the_dead(&mut self, cluster: ClusterId) {
        let vms = &self.vms;
        let there = |node: &Node| match node.on {
            Computer::Vm(number) => vms.contains_key(&number),
            Computer::Host(_) => true,
        };
        if let Some(kube) = self.clusters.get_mut(&cluster) {
            let stays = |node: &Node| node.role != Role::Control || there(node);
            kube.nodes.retain(|_, node| stays(node));
        }
    }

    /// Somebody destroys a machine by hand: what was happening on it ends, and whoever makes it again
    /// makes it for the first time.
    fn vanish(&mut self, at: Timestamp, number: u64) {
        self.power(at, Computer::Vm(number), false);
        if let Some(vm) = self.vms.get(&number)
            && let Some(made) = self.made.get_mut(&vm.by.machine)
        {
            *made = made.saturating_sub(1);
        }
        self.destroy(number);
    }

    pub(super) fn destroy(&mut self, number: u64) {
        if let Some(vm) = self.vms.remove(&number)
            && let Some(label) = self.labels.get_mut(&vm.by.machine)
        {
            label.remove(&number);
            if label.is_empty() {
                self.labels.remove(&vm.by.machine);
            }
        }
    }

    /// A given host is as it was before anybody came.
    pub(super) fn clean(&mut self, address: Ipv4Addr) {
        let host = self.host_mut(address);
        host.owner = None;
        host.prepared = false;
        host.kit = None;
        host.lent = false;
        host.lives += 1;
    }

    /// A cluster is gone when the last computer that carried it is.
    pub(super) fn bury(&mut self, cluster: ClusterId) {
        let exists = |node: &Node| match node.on {
            Computer::Vm(number) => self.vms.contains_key(&number),
            Computer::Host(address) => self
                .hosts
                .get(&address)
                .and_then(|host| host.owner.as_ref())
                .is_some_and(|owner| owner.cluster == cluster),
        };
        let lives = self.clusters.get(&cluster);
        if lives.is_some_and(|kube| !kube.nodes.values().any(exists)) {
            self.clusters.remove(&cluster);
        }
    }

    fn power(&mut self, at: Timestamp, computer: Computer, on: bool) {
        match computer {
            Computer::Vm(number) => {
                if let Some(vm) = self.vms.get_mut(&number) {
                    vm.powered = on;
                }
            }
            Computer::Host(address) => self.host_mut(address).powered = on,
        }
        if on {
            self.start_again(computer);
        }
        // What was happening on the machine is cut off, half done.
        let cut: Vec<_> = self
            .operations
            .iter()
            .filter(|(_, of)| of.on == computer && of.change.on_the_machine() && of.until > at)
            .map(|(operation, _)| *operation)
            .collect();
        for operation in cut {
            self.forget(operation);
        }
    }

    fn edit(&mut self, of: &Operation, edit: impl FnOnce(&mut Node)) {
        let node = self
            .clusters
            .get_mut(&of.by.cluster)
            .and_then(|kube| kube.nodes.get_mut(&of.by.machine));
        if let Some(node) = node {
            edit(node);
        }
    }

    pub(super) fn host_mut(&mut self, address: Ipv4Addr) -> &mut Host {
        self.hosts.entry(address).or_insert(Host {
            owner: None,
            prepared: false,
            powered: true,
            kit: None,
            lives: 0,
            lent: false,
        })
    }

    /// The machines that bear this label, oldest first.
    pub(crate) fn labelled(&self, machine: MachineId) -> impl Iterator<Item = (u64, &Vm)> {
        let numbers = self.labels.get(&machine).into_iter().flatten();
        numbers.filter_map(|number| self.vms.get(number).map(|vm| (*number, vm)))
    }

    /// The change that is happening to a machine.
    pub(crate) fn under_way(&self, machine: MachineId) -> Option<(u64, &Operation)> {
        let operation = self.busy.get(&machine)?;
        Some((*operation, self.operations.get(operation)?))
    }

    /// Whether a computer has power.
    pub(crate) fn powered(&self, computer: Computer) -> bool {
        match computer {
            Computer::Vm(number) => self.vms.get(&number).is_some_and(|vm| vm.powered),
            Computer::Host(address) => self.hosts.get(&address).is_none_or(|host| host.powered),
        }
    }

    /// Whether a computer runs and answers.
    pub(crate) fn answers(&self, computer: Computer, now: Timestamp) -> bool {
        match computer {
            Computer::Vm(number) => self
                .vms
                .get(&number)
                .is_some_and(|vm| vm.powered && !vm.stopping && vm.boots_at <= now),
            Computer::Host(address) => self.hosts.get(&address).is_none_or(|host| host.powered),
        }
    }

    /// Whether the node's machine answers and nothing is being done to it.
    pub(crate) fn ready(&self, node: &Node, now: Timestamp) -> bool {
        node.course == Course::Steady && self.carries(node, now)
    }

    /// Whether the computer under a node is still the one it joined on, and answers.
    pub(crate) fn carries(&self, node: &Node, now: Timestamp) -> bool {
        let ours = match node.on {
            Computer::Vm(_) => true,
            Computer::Host(address) => self.hosts.get(&address).is_some_and(|host| host.prepared),
        };
        ours && self.answers(node.on, now)
    }

    /// Whether etcd can decide, so that the cluster answers.
    pub(crate) fn quorum(&self, cluster: ClusterId, now: Timestamp) -> bool {
        let Some(kube) = self.clusters.get(&cluster) else {
            return false;
        };
        let voters = || {
            let nodes = kube.nodes.values();
            nodes.filter(|node| node.role == Role::Control && node.course != Course::Leaving)
        };
        let ready = voters().filter(|node| self.ready(node, now)).count();
        ready > voters().count() / 2
    }
}
