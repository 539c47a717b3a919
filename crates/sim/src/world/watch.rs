//! Rules that the world itself watches, whoever acts: what must never have happened.
//!
//! Most rules do not hold while a cluster is torn down as a whole. The world cannot know
//! that by itself; a rehearsal tells it with `condemn`. A world on a file, where nobody may
//! tell it, watches only that nothing is made or started twice, until somebody asks for more.

use super::effect::{Bearer, Change, Computer, Operation, Told};
use super::kit::{Kit, Targets};
use super::state::{Course, Duty, State};
use model::cluster::Role;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that must never happen, and did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// When.
    pub at: Timestamp,
    /// To which machine.
    pub machine: String,
    /// Which rule was broken.
    pub rule: Rule,
    /// How, where the rule alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
}

/// What must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Two machines live that were made for the same place.
    MadeTwice,
    /// Two control planes were started in one cluster.
    StartedTwice,
    /// Etcd lost its quorum because of us.
    QuorumLost,
    /// More than one node of a cluster is out of service because of us.
    BudgetExceeded,
    /// A machine was destroyed that was still a node.
    NodeDestroyed,
    /// A node was changed or removed with its workloads on it.
    NotDrained,
    /// A node runs a newer version than the control plane.
    Ahead,
    /// A node was upgraded by more than one minor release at once.
    Skipped,
    /// A host was made before there was a key that opens it.
    Keyless,
    /// A host was to become a node before it was equipped.
    NotEquipped,
    /// A host was to become a node before it was part of the mesh.
    NotConnected,
    /// A node was taken out of its cluster while a load balancer sent to it.
    StillTarget,
    /// A node was led to a machine that does not pass the API on.
    LedNowhere,
    /// A node was led to a machine on which the world is kept from the API.
    LedToShut,
    /// A person was led to such a machine.
    SentToShut,
    /// A machine went, or passed the API on no more, while a node looked for it there.
    StillAsked,
    /// Something else was done to a cluster while its etcd was put back.
    WhileRestored,
    /// A task led elsewhere than was foreseen.
    Unforeseen,
    /// A name led to a machine that passed nothing on.
    NamedEarly,
    /// A name led to machines of two clusters.
    NamedTwice,
    /// A machine went while a name led there.
    StillNamed,
    /// A node that served was cleared as if it were left of nobody.
    ClearedAlive,
}

impl Rule {
    /// What happened, in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MadeTwice => "was made while another of it lived",
            Self::StartedTwice => "started a second control plane",
            Self::QuorumLost => "was changed and etcd lost its quorum",
            Self::BudgetExceeded => "went out of service while another was",
            Self::NodeDestroyed => "was destroyed while it was a node",
            Self::NotDrained => "was changed with workloads on it",
            Self::Ahead => "runs a newer version than its control plane",
            Self::Skipped => "was upgraded by more than one minor release",
            Self::Keyless => "was made before there was a key that opens it",
            Self::NotEquipped => "was to become a node before it was equipped",
            Self::NotConnected => "was to become a node before it was part of the mesh",
            Self::StillTarget => "left while a load balancer sent to it",
            Self::LedNowhere => "was led to a machine that does not pass the API on",
            Self::LedToShut => "was led to a machine whose port is shut",
            Self::SentToShut => "is where people look for the API, and its port is shut",
            Self::StillAsked => "went while a node looked for the API there",
            Self::WhileRestored => "was changed while etcd was put back",
            Self::Unforeseen => "became other than foreseen",
            Self::NamedEarly => "got a name before it passed anything on",
            Self::NamedTwice => "got a name that another cluster has",
            Self::StillNamed => "went while a name led there",
            Self::ClearedAlive => "was cleared while it served",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.machine, self.rule.as_str())?;
        match &self.how {
            Some(how) => write!(f, ": {how}"),
            None => Ok(()),
        }
    }
}

/// A node that is to be changed, and those beside it.
struct Beside {
    /// How many nodes of its cluster are out of service because of us.
    out: usize,
    /// Whether another one is being equipped again.
    equipped: bool,
    /// What it does for workloads.
    duty: Duty,
    /// Whether it has none.
    drained: bool,
    /// Whether it can have any.
    serves: bool,
}

impl Beside {
    /// What a change to it breaks.
    fn broken_by(&self, change: &Change) -> Option<Rule> {
        let Self {
            out,
            equipped,
            duty,
            drained,
            serves,
        } = *self;
        let in_service = duty == Duty::Serves;
        let exceeds = match change {
            Change::Delete => return Some(Rule::NodeDestroyed),
            Change::Upgrade { .. } | Change::Leave if !drained => return Some(Rule::NotDrained),
            Change::Upgrade { .. } | Change::Leave => serves && out > 1,
            Change::Drain => out > 1 || equipped,
            Change::Equip { .. } => serves && in_service && (out > 0 || equipped),
            // It counts itself as soon as it is begun.
            Change::Renew { .. } => in_service && (out > 1 || equipped),
            Change::Prepare
            | Change::Mesh { .. }
            | Change::Balance { .. }
            | Change::Name { .. }
            | Change::Expose
            | Change::Shut
            | Change::Init { .. }
            | Change::Join { .. }
            | Change::Install { .. }
            | Change::Tend { .. }
            | Change::Uncordon
            | Change::Clear { .. }
            | Change::Snapshot { .. }
            | Change::Restore { .. }
            | Change::Release => false,
        };
        exceeds.then_some(Rule::BudgetExceeded)
    }
}

impl State {
    pub(super) fn violated(&mut self, at: Timestamp, by: &Bearer, rule: Rule) {
        self.violations.push(Violation {
            at,
            machine: by.name.to_string(),
            rule,
            how: None,
        });
    }

    /// A task led elsewhere than was foreseen.
    pub(super) fn unforeseen(&mut self, at: Timestamp, by: &Bearer, how: String) {
        self.violations.push(Violation {
            at,
            machine: by.name.to_string(),
            rule: Rule::Unforeseen,
            how: Some(how),
        });
    }

    pub(super) fn watches(&self, by: &Bearer) -> bool {
        self.watched && !self.condemned.contains(&by.cluster)
    }

    /// A machine is being made.
    pub(super) fn watch_order(&mut self, at: Timestamp, by: &Bearer, host: bool) {
        if self.labelled(by.machine).next().is_some() {
            self.violated(at, by, Rule::MadeTwice);
        }
        let key = self.keys.get(&by.cluster);
        if host && self.watched && key.is_none_or(|key| key.from > at) {
            self.violated(at, by, Rule::Keyless);
        }
    }

    /// A machine that another driver made is taken back.
    pub(super) fn watch_take_back(&mut self, at: Timestamp, by: &Bearer) {
        let kube = self.clusters.get(&by.cluster);
        let node = kube.is_some_and(|kube| kube.nodes.contains_key(&by.machine));
        if node && self.watches(by) {
            self.violated(at, by, Rule::NodeDestroyed);
        }
    }

    /// What a host lacks that is to become a node.
    fn unready(&self, on: Computer) -> Vec<Rule> {
        let Some(kit) = self.kit(on) else {
            return Vec::new();
        };
        let lacks = [
            (kit.equipped.is_none(), Rule::NotEquipped),
            (kit.end.is_none(), Rule::NotConnected),
        ];
        let lacks = lacks.into_iter().filter(|(lacks, _)| *lacks);
        lacks.map(|(_, rule)| rule).collect()
    }

    /// A control plane has been started.
    pub(super) fn watch_init(&mut self, at: Timestamp, of: &Operation) {
        let started = self
            .clusters
            .get(&of.by.cluster)
            .and_then(|kube| kube.started);
        if started.is_some() {
            self.violated(at, &of.by, Rule::StartedTwice);
        }
    }

    /// A change has just begun.
    pub(super) fn watch_begin(&mut self, at: Timestamp, of: &Operation, had_quorum: bool) {
        if !self.watches(&of.by) {
            return;
        }
        self.watch_restore(at, of);
        self.watch_coming(at, of);
        self.watch_upgrade(at, of);
        self.watch_named(at, of);
        if self.is_asked(of, at) {
            self.violated(at, &of.by, Rule::StillAsked);
        }
        let Some(kube) = self.clusters.get(&of.by.cluster) else {
            return;
        };
        let Some(node) = kube.nodes.get(&of.by.machine) else {
            return;
        };
        let (serves, control) = (self.carries(node, at), node.role == Role::Control);
        let members = kube.nodes.values();
        let alone = members.filter(|node| node.role == Role::Control).count() == 1;
        let out = kube.nodes.values().filter(|node| {
            let idle = node.duty != Duty::Serves || node.course != Course::Steady;
            // Who never served is missed by nobody.
            idle && node.duty != Duty::Gated && self.carries(node, at)
        });
        let empty = matches!(node.duty, Duty::Drained | Duty::Gated);
        let beside = Beside {
            out: out.count(),
            equipped: self.equipped_beside(of, at),
            duty: node.duty,
            drained: empty || !serves,
            serves,
        };
        let mut broken = Vec::new();
        if matches!(of.change, Change::Leave) && self.is_target(of, at) {
            broken.push(Rule::StillTarget);
        }
        broken.extend(beside.broken_by(&of.change));
        // The only member has nobody to keep a quorum with, and is changed in place.
        let in_place = alone && matches!(of.change, Change::Upgrade { .. } | Change::Renew { .. });
        if control && had_quorum && !in_place && !self.quorum(of.by.cluster, at) {
            broken.push(Rule::QuorumLost);
        }
        for rule in broken {
            self.violated(at, &of.by, rule);
        }
    }

    /// Notices when a host is to become a node that is not ready for it.
    fn watch_coming(&mut self, at: Timestamp, of: &Operation) {
        if matches!(of.change, Change::Init { .. } | Change::Join { .. }) {
            for rule in self.unready(of.on) {
                self.violated(at, &of.by, rule);
            }
        }
    }

    /// Notices when a node is upgraded by more than kubeadm can.
    fn watch_upgrade(&mut self, at: Timestamp, of: &Operation) {
        let kube = self.clusters.get(&of.by.cluster);
        let node = kube.and_then(|kube| kube.nodes.get(&of.by.machine));
        let runs = node.map(|node| node.version.minor);
        if let (Change::Upgrade { version }, Some(runs)) = (&of.change, runs)
            && version.minor > runs + 1
        {
            self.violated(at, &of.by, Rule::Skipped);
        }
    }

    /// Notices when etcd is put back while something else is done to the cluster.
    fn watch_restore(&mut self, at: Timestamp, of: &Operation) {
        let restores = |of: &Operation| matches!(of.change, Change::Restore { .. });
        let others = self.operations.values();
        let mut others = others.filter(|other| other.by.cluster == of.by.cluster);
        let beside = others
            .any(|other| other.by.machine != of.by.machine && (restores(of) || restores(other)));
        if beside {
            self.violated(at, &of.by, Rule::WhileRestored);
        }
    }

    /// Whether another node that serves is being equipped.
    fn equipped_beside(&self, of: &Operation, at: Timestamp) -> bool {
        let Some(kube) = self.clusters.get(&of.by.cluster) else {
            return false;
        };
        self.operations.values().any(|other| {
            let equips = matches!(other.change, Change::Equip { .. });
            let node = kube.nodes.get(&other.by.machine);
            let serves = node.is_some_and(|node| self.carries(node, at));
            equips && serves && other.by.machine != of.by.machine
        })
    }

    /// Whether a load balancer that answers sends to the node of a machine.
    fn is_target(&self, of: &Operation, at: Timestamp) -> bool {
        let end = self.kit(of.on).and_then(|kit| kit.end.as_ref());
        let Some(address) = end.map(|end| end.address) else {
            return false;
        };
        let vms = self
            .vms
            .iter()
            .filter(|(_, vm)| vm.by.cluster == of.by.cluster && !vm.stopping);
        let answering = vms.filter(|(number, _)| self.answers(Computer::Vm(**number), at));
        let mut passing = answering.filter_map(|(_, vm)| vm.kit.as_ref()?.passing.as_ref());
        passing.any(|passing| {
            passing
                .roles
                .values()
                .any(|targets| targets.include(address))
        })
    }

    /// Whether a machine goes, or is told to pass the API on no more, on which a node that answers
    /// looks for it.
    fn is_asked(&self, of: &Operation, at: Timestamp) -> bool {
        let passing = self.kit(of.on).and_then(|kit| kit.passing.as_ref());
        let closes = if let Change::Balance { passing: told } = &of.change {
            passing.is_some_and(|passing| passing.api.is_some()) && told.api.is_none()
        } else {
            false
        };
        let goes = matches!(of.change, Change::Leave | Change::Delete | Change::Release) || closes;
        let end = self.kit(of.on).and_then(|kit| kit.end.as_ref());
        let Some(address) = end.map(|end| end.address).filter(|_| goes) else {
            return false;
        };
        let kube = self.clusters.get(&of.by.cluster);
        let mut nodes = kube.into_iter().flat_map(|kube| &kube.nodes);
        nodes.any(|(machine, node)| {
            let other = *machine != of.by.machine && node.told.api.contains(&address);
            other && self.carries(node, at)
        })
    }

    /// A node is led to where it is to find the API.
    pub(super) fn watch_led(&mut self, at: Timestamp, of: &Operation, told: &Told) {
        let kits = self.vms.iter().filter_map(|(number, vm)| {
            let here = vm.by.cluster == of.by.cluster;
            let answers = self.answers(Computer::Vm(*number), at);
            vm.kit.as_ref().filter(|_| here && answers)
        });
        let nowhere = |kit: &Kit| {
            let end = kit.end.as_ref();
            let led = end.is_some_and(|end| told.api.contains(&end.address));
            let balancer = kit.passing.as_ref();
            let passes = balancer.is_some_and(|passing| {
                let mut roles = passing.roles.values();
                roles.any(|targets| self.has_member(of, targets))
            });
            led && balancer.is_some() && !passes
        };
        if kits.into_iter().any(nowhere) && self.watches(&of.by) {
            self.violated(at, &of.by, Rule::LedNowhere);
        }
        if self.watches(&of.by) && self.is_led_to_shut(of, told) {
            self.violated(at, &of.by, Rule::LedToShut);
        }
    }

    /// Whether a member of the control plane is among those to whom something is passed.
    fn has_member(&self, of: &Operation, targets: &Targets) -> bool {
        let kube = self.clusters.get(&of.by.cluster);
        let mut nodes = kube.into_iter().flat_map(|kube| kube.nodes.values());
        nodes.any(|node| {
            let end = self.kit(node.on).and_then(|kit| kit.end.as_ref());
            let address = end.map(|end| end.address);
            node.role == Role::Control && address.is_some_and(|at| targets.include(at))
        })
    }

    /// A node runs another version now.
    pub(super) fn watch_upgraded(&mut self, at: Timestamp, of: &Operation) {
        let Some(kube) = self.clusters.get(&of.by.cluster) else {
            return;
        };
        let control = kube
            .nodes
            .values()
            .filter(|node| node.role == Role::Control)
            .map(|node| node.version)
            .min();
        let ahead = kube.nodes.get(&of.by.machine).is_some_and(|node| {
            node.role == Role::Compute && control.is_some_and(|control| node.version > control)
        });
        if ahead && self.watches(&of.by) {
            self.violated(at, &of.by, Rule::Ahead);
        }
    }
}
