//! Nodes of simulated clusters that are none of anybody's machines.

use super::effect::{Computer, Operation};
use super::look::{Refusal, Step};
use super::state::{Kube, Node, State};
use super::watch::Rule;
use model::cluster::{Machine, Role};
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::observed::{Fact, Observed};
use model::stray::{Leftover, Stray, StraysFact};
use model::task::Task;
use model::time::Timestamp;
use model::version::Version;

/// The number of a machine that no provider ever made.
const NOWHERE: Computer = Computer::Vm(0);

impl State {
    /// A node is there that is none of anybody's machines, in a cluster that was started.
    pub(super) fn stray(
        &mut self,
        at: Timestamp,
        cluster: ClusterId,
        name: Name,
        of: Option<MachineId>,
    ) {
        let Some(kube) = self.clusters.get_mut(&cluster) else {
            return;
        };
        let runs = kube.nodes.values().map(|node| node.version).next();
        match (of, runs) {
            (Some(machine), Some(version)) => kube.leave_behind(machine, name, version, at),
            (Some(_) | None, _) => {
                kube.strangers.insert(name);
            }
        }
    }

    /// Whether what is left of machines is still there.
    pub(super) fn step_clear(
        &self,
        task: &Task,
        leftovers: &[Leftover],
        now: Timestamp,
    ) -> Result<Step, Refusal> {
        self.reach(task, now)?;
        let kube = self.clusters.get(&task.cluster);
        let there = |left: &Leftover| {
            let node = kube.and_then(|kube| kube.nodes.get(&left.machine));
            node.is_some_and(|node| node.name.as_str() == left.node)
        };
        if leftovers.iter().any(there) {
            return Ok(Step::Begin(Some(self.computer(&task.machine, now)?)));
        }
        Ok(Step::Done)
    }

    /// Takes nodes out of their cluster.
    pub(super) fn clear(&mut self, at: Timestamp, of: &Operation, leftovers: &[Leftover]) {
        for left in leftovers {
            let kube = self.clusters.get_mut(&of.by.cluster);
            let node = kube.and_then(|kube| kube.nodes.remove(&left.machine));
            if node.is_some_and(|node| self.ready(&node, at)) && self.watches(&of.by) {
                self.violated(at, &of.by, Rule::ClearedAlive);
            }
        }
    }

    /// The nodes that are none of these machines', while the cluster answers. How long those are not
    /// ready that once were on a computer nobody here remembers: for ever.
    pub(crate) fn strays_fact(
        &self,
        cluster: ClusterId,
        machines: &[Machine],
        now: Timestamp,
    ) -> Option<Fact> {
        let kube = self.answering(cluster, now)?;
        let known = |id: &MachineId| machines.iter().any(|machine| machine.id == *id);
        let left = kube.nodes.iter().filter(|(id, _)| !known(id));
        let left = left.map(|(id, node)| {
            let since = node.left_since.unwrap_or(Timestamp::from_millis(0));
            let stray = Stray {
                machine: Some(*id),
                control: node.role == Role::Control,
                unready_since: (!self.ready(node, now)).then_some(since),
            };
            (node.name.to_string(), stray)
        });
        let strangers = kube.strangers.iter();
        let strangers = strangers.map(|name| (name.to_string(), Stray::default()));
        let nodes = left.chain(strangers).collect();
        Some(Fact::Strays(StraysFact { nodes }))
    }
}

impl Kube {
    /// Puts into a cluster the nodes that were found elsewhere and are none of its machines'.
    pub(super) fn furnish_strays(&mut self, observed: &Observed) {
        let Some(version) = self.nodes.values().map(|node| node.version).next() else {
            return;
        };
        for (name, stray) in observed.strays() {
            let Ok(name) = name.parse::<Name>() else {
                continue;
            };
            match stray.machine {
                None => {
                    self.strangers.insert(name);
                }
                // Who is ready is a person's to judge, and who has a vote is not counted here.
                Some(machine) => {
                    if let Some(since) = stray.unready_since.filter(|_| !stray.control) {
                        self.leave_behind(machine, name, version, since);
                    }
                }
            }
        }
    }

    /// A node is there whose machine is not.
    pub(super) fn leave_behind(
        &mut self,
        machine: MachineId,
        name: Name,
        version: Version,
        at: Timestamp,
    ) {
        let mut node = Node::joined(name, Role::Compute, NOWHERE, version);
        node.left_since = Some(at);
        self.nodes.insert(machine, node);
    }
}
