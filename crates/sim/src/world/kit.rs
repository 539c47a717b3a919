//! What is on a host: the recipe it followed, its end of the mesh, what it passes on.
//!
//! Machines of the purely simulated kind have nothing of that, and neither have those that
//! another driver makes.

use super::effect::{Computer, Operation};
use super::state::State;
use crate::made_up::MadeUp;
use model::balancer::{API_PORT, Balance, BalanceFact, Listener};
use model::cluster::Machine;
use model::host::Fingerprint;
use model::id::{ClusterId, MachineId};
use model::mesh::{Mesh, MeshFact, MeshKey};
use model::name::Name;
use model::observed::{HostFact, Observed};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// Bytes of a key of the mesh.
const KEY_BYTES: usize = 32;

/// How full the disk of every simulated host is.
const DISK_USED_PERCENT: u8 = 20;

/// What is on a host.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Kit {
    /// The recipe that it followed last.
    pub(crate) equipped: Option<Fingerprint>,
    /// The key that was born on it.
    pub(crate) mesh_key: Option<MeshKey>,
    /// Its end of the mesh.
    pub(crate) end: Option<End>,
    /// What it passes on.
    pub(crate) passing: Option<Passing>,
    /// How often it was started again.
    pub(crate) starts: u32,
}

/// The end of a mesh on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Whose it is.
    pub(crate) machine: MachineId,
    /// What it tells of it.
    pub(crate) fact: MeshFact,
    /// Its address in the network.
    pub(crate) address: Ipv4Addr,
    /// The keys of the others.
    pub(crate) peers: BTreeSet<MeshKey>,
}

/// What a load balancer passes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passing {
    /// What it was told.
    pub(crate) told: Fingerprint,
    /// To whom, for every role.
    pub(crate) roles: BTreeMap<Name, Targets>,
    /// The role by which nodes find the API there, as far as anybody here knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api: Option<Name>,
}

/// To whom a load balancer passes what it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Targets {
    /// To these addresses in the mesh.
    At(Vec<Ipv4Addr>),
    /// Nobody here knows; where it was observed, so many answered.
    Answered(u32),
}

impl Targets {
    /// Whether what comes is passed to this address.
    pub(super) fn include(&self, address: Ipv4Addr) -> bool {
        match self {
            Self::At(targets) => targets.contains(&address),
            Self::Answered(_) => false,
        }
    }
}

impl Passing {
    pub(crate) fn of(balance: &Balance) -> Self {
        let roles = balance.listeners.iter();
        let api = |listener: &&Listener| listener.is_api() && u32::from(listener.port) == API_PORT;
        let api = roles.clone().find(api);
        let role = |listener: &Listener| {
            let targets = Targets::At(listener.targets.clone());
            (listener.role.clone(), targets)
        };
        Self {
            told: balance.fingerprint(),
            roles: roles.map(role).collect(),
            api: api.map(|listener| listener.role.clone()),
        }
    }
}

/// The ends of a mesh that have to change.
pub(crate) fn ends(mesh: &Mesh) -> Vec<End> {
    let end = |machine: &MachineId| {
        let tunnel = mesh.tunnel(*machine)?;
        Some(End {
            machine: *machine,
            fact: tunnel.fact(),
            address: tunnel.address,
            peers: tunnel.peers.into_iter().map(|peer| peer.key).collect(),
        })
    };
    mesh.to.iter().filter_map(end).collect()
}

impl Kit {
    /// What was observed of a host elsewhere.
    pub(super) fn observed(machine: &Machine, cluster: &Observed) -> Self {
        let seen = cluster.machines.get(&machine.id);
        let Some((fact, _)) = seen.and_then(|seen| seen.host.as_ref()) else {
            return Self::default();
        };
        let others = cluster.machines.iter().filter(|(id, _)| **id != machine.id);
        let peers = others.filter_map(|(_, seen)| seen.host.as_ref()?.0.mesh_key.clone());
        let end = fact.mesh.clone().map(|fact| End {
            machine: machine.id,
            fact,
            address: machine.address,
            peers: peers.collect(),
        });
        let answered = |(role, count): (&Name, &u32)| (role.clone(), Targets::Answered(*count));
        let passing = fact.balance.as_ref().map(|fact| Passing {
            told: fact.told.clone(),
            roles: fact.healthy.iter().map(answered).collect(),
            api: None,
        });
        Self {
            equipped: fact.equipped.clone(),
            mesh_key: fact.mesh_key.clone(),
            end,
            passing,
            starts: 0,
        }
    }
}

impl State {
    /// What is on a computer, where it is a host.
    pub(crate) fn kit(&self, on: Computer) -> Option<&Kit> {
        match on {
            Computer::Vm(number) => self.vms.get(&number)?.kit.as_ref(),
            Computer::Host(address) => self.hosts.get(&address)?.kit.as_ref(),
        }
    }

    fn kit_mut(&mut self, on: Computer) -> Option<&mut Kit> {
        match on {
            Computer::Vm(number) => self.vms.get_mut(&number)?.kit.as_mut(),
            Computer::Host(address) => self.hosts.get_mut(&address)?.kit.as_mut(),
        }
    }

    /// The computer that a machine runs on, if it is taken into use.
    pub(crate) fn whose(&self, machine: MachineId) -> Option<Computer> {
        let made = self.labelled(machine).next();
        made.map(|(number, _)| Computer::Vm(number)).or_else(|| {
            let of = |owner: &super::effect::Bearer| owner.machine == machine;
            let mut hosts = self.hosts.iter();
            let given =
                hosts.find(|(_, host)| host.prepared && host.owner.as_ref().is_some_and(of));
            given.map(|(address, _)| Computer::Host(*address))
        })
    }

    /// A host follows a recipe; a key is born on it where it has none.
    pub(super) fn equip(&mut self, of: &Operation, recipe: &Fingerprint) {
        let life = match of.on {
            Computer::Vm(_) => 0,
            Computer::Host(address) => self.hosts.get(&address).map_or(0, |host| host.lives),
        };
        let name = format!("{} in life {life}", of.on.reference());
        let key = MadeUp::of(&name).base64(KEY_BYTES).parse().ok();
        if let Some(kit) = self.kit_mut(of.on) {
            kit.equipped = Some(recipe.clone());
            kit.mesh_key = kit.mesh_key.take().or(key);
        }
    }

    /// Those of these machines that answer are told of their peers.
    pub(super) fn connect(&mut self, at: Timestamp, ends: &[End]) {
        for end in ends {
            let on = self.whose(end.machine);
            let answering = on.filter(|on| self.answers(*on, at));
            if let Some(kit) = answering.and_then(|on| self.kit_mut(on)) {
                kit.end = Some(end.clone());
            }
        }
    }

    /// A load balancer is told to whom it passes what it is sent.
    pub(super) fn balance(&mut self, of: &Operation, passing: &Passing) {
        if let Some(kit) = self.kit_mut(of.on) {
            kit.passing = Some(passing.clone());
        }
    }

    /// A host starts again: what is on its disk stays.
    pub(super) fn start_again(&mut self, on: Computer) {
        if let Some(kit) = self.kit_mut(on) {
            kit.starts += 1;
        }
    }

    /// What a host says of itself.
    pub(super) fn host_told(
        &self,
        cluster: ClusterId,
        on: Computer,
        now: Timestamp,
    ) -> Option<HostFact> {
        let kit = self.kit(on)?;
        let at = match on {
            Computer::Vm(number) => self.vms.get(&number)?.address,
            Computer::Host(address) => address,
        };
        Some(HostFact {
            at: Some(IpAddr::V4(at)),
            system: "simulated".to_owned(),
            kernel: "simulated".to_owned(),
            boot: format!("{} start {}", on.reference(), kit.starts + 1),
            disk_used_percent: DISK_USED_PERCENT,
            clock_off_seconds: 0,
            equipped: kit.equipped.clone(),
            mesh_key: kit.mesh_key.clone(),
            mesh: kit.end.as_ref().map(|end| end.fact.clone()),
            heard: None,
            balance: self.balance_told(cluster, kit, now),
        })
    }

    pub(super) fn balance_told(
        &self,
        cluster: ClusterId,
        kit: &Kit,
        now: Timestamp,
    ) -> Option<BalanceFact> {
        let passing = kit.passing.as_ref()?;
        let nodes = self.clusters.get(&cluster).into_iter();
        let nodes = nodes.flat_map(|kube| kube.nodes.values());
        let ready = nodes.filter(|node| self.ready(node, now));
        let answering: BTreeSet<_> = ready
            .filter_map(|node| Some(self.kit(node.on)?.end.as_ref()?.address))
            .collect();
        let healthy = |targets: &Targets| match targets {
            Targets::At(targets) => {
                let healthy = targets.iter().filter(|target| answering.contains(target));
                u32::try_from(healthy.count()).unwrap_or(u32::MAX)
            }
            Targets::Answered(count) => *count,
        };
        let roles = passing.roles.iter();
        Some(BalanceFact {
            told: passing.told.clone(),
            healthy: roles
                .map(|(role, targets)| (role.clone(), healthy(targets)))
                .collect(),
        })
    }

    /// What is on a host, as an outsider would draw it: how many tunnels lead somewhere, not
    /// with which keys.
    pub(super) fn drawn(&self, cluster: ClusterId, kit: &Kit, now: Timestamp) -> Vec<String> {
        let mut words = vec![match &kit.equipped {
            None => "bare".to_owned(),
            Some(recipe) => format!("equipped by {recipe}"),
        }];
        if let Some(end) = &kit.end {
            let through = |peer: &&MeshKey| self.answers_to(cluster, peer, kit.mesh_key.as_ref());
            let tunnels = end.peers.iter().filter(through).count();
            words.push(format!("{tunnels} tunnels"));
            let nowhere = end.peers.len() - tunnels;
            if nowhere > 0 {
                words.push(format!("{nowhere} peers that do not know it"));
            }
        }
        if let Some(fact) = self.balance_told(cluster, kit, now) {
            let healthy = fact.healthy.iter();
            words.extend(healthy.map(|(role, count)| format!("{role} to {count}")));
        }
        words
    }

    /// Whether a machine of the cluster has the key `peer` and knows the key `this`.
    fn answers_to(&self, cluster: ClusterId, peer: &MeshKey, this: Option<&MeshKey>) -> bool {
        let made = self.vms.values().filter(|vm| vm.by.cluster == cluster);
        let ours = |host: &&super::state::Host| {
            host.owner.as_ref().is_some_and(|by| by.cluster == cluster)
        };
        let given = self.hosts.values().filter(ours);
        let mut kits = made
            .filter_map(|vm| vm.kit.as_ref())
            .chain(given.filter_map(|host| host.kit.as_ref()));
        kits.any(|kit| {
            let knows = |end: &End| this.is_some_and(|this| end.peers.contains(this));
            kit.mesh_key.as_ref() == Some(peer) && kit.end.as_ref().is_some_and(knows)
        })
    }
}
