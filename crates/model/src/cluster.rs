//! One cluster as it should be, down to the last machine.

mod differs;
mod machine;
mod modules;

pub use differs::Difference;
pub use machine::{Jump, LITE, Machine, Origin, Role};

use crate::addon::Addon;
use crate::balancer::Protocol;
use crate::care::Marks;
use crate::disruption::Disruption;
use crate::dns::Names;
use crate::host::{Playbooks, Proxy, Recipe};
use crate::id::ClusterId;
use crate::kubernetes::{API_PORT, Kubernetes};
use crate::name::Name;
use crate::network::Network;
use crate::scaling::Autoscaler;
use crate::snapshot::EtcdBackup;
use crate::upkeep::{Failed, Repair, Roll};
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Counts the accepted changes of one document; it only ever grows, from 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation that follows this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One cluster as it should be; every choice is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Desired {
    /// Which cluster, in which of its lives.
    pub cluster: ClusterId,
    /// Who owns it.
    pub project: Name,
    /// The manifest that declares it.
    pub manifest: Name,
    /// What people call it.
    pub name: Name,
    /// How many clusters of this name there were before.
    pub incarnation: u32,
    /// Which accepted change produced this.
    pub generation: Generation,
    /// Which Kubernetes its nodes should run.
    pub version: Version,
    /// Which they go to first, where that is too far ahead for one upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stone: Option<Version>,
    /// The private network of its machines.
    pub network: Network,
    /// What was decided when it was made: who connects its pods, and where they are.
    #[serde(default)]
    pub kubernetes: Kubernetes,
    /// Every machine it should have: control first, then by pool and ordinal.
    pub machines: Vec<Machine>,
    /// Machines it should have of those that were discovered, and has not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metal: Vec<MetalWanted>,
    /// Machines it had and should lose, until they are seen to be gone.
    pub leaving: Vec<Machine>,
    /// How many machines were ever made per pool, so that no id is used again.
    pub made: BTreeMap<Name, u32>,
    /// Its load balancers, in the order in which they were declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub balancers: Vec<Balancer>,
    /// Load balancers as they were before, as far as something of that may be left: machines that
    /// are to leave, or nodes that look for the API there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<Balancer>,
    /// How its hosts reach package sources and registries, where not directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// What is played on its nodes besides.
    #[serde(default, skip_serializing_if = "Playbooks::is_empty")]
    pub playbooks: Playbooks,
    /// What it has besides Kubernetes, every choice made: who connects its pods comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addons: Vec<Addon>,
    /// What nodes carry besides what all do, by their pool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<Name, Marks>,
    /// Its pools that are scaled, and between which sizes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub autoscalers: BTreeMap<Name, Autoscaler>,
    /// Pools whose data disks somebody asked for, as long as there are machines with such a disk: what
    /// is on them stays somebody's, whatever the manifest says of them by then.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub disks: BTreeSet<Name>,
    /// Pools that say that their machines are replaced when they are to be made in another way.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub replacing: BTreeSet<Name>,
    /// How its etcd is saved; none where that is switched off.
    #[serde(default = "usual_backup", skip_serializing_if = "is_usual_backup")]
    pub etcd_backup: Option<EtcdBackup>,
    /// An explicit wish that the whole cluster be removed.
    pub tombstone: bool,
    /// Whether it is kept, whoever removes it or its manifest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// How many of its machines may be out of service at once, and when that may begin.
    #[serde(default)]
    pub disruption: Disruption,
    /// Pools on their way to machines of another kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rolls: Vec<Roll>,
    /// What is done about machines that do not serve.
    #[serde(default, skip_serializing_if = "Repair::is_usual")]
    pub repair: Repair,
    /// Pools in which machines were replaced because they did not serve.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub repaired: BTreeMap<Name, Failed>,
}

/// How the etcd of a cluster is saved whose document says nothing of it.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it is the default of a field that may be absent"
)]
pub(crate) fn usual_backup() -> Option<EtcdBackup> {
    Some(EtcdBackup::default())
}

#[expect(
    clippy::ref_option,
    reason = "serde passes what it asks about by reference"
)]
fn is_usual_backup(backup: &Option<EtcdBackup>) -> bool {
    *backup == usual_backup()
}

impl Desired {
    /// Which Kubernetes its nodes go to now: the declared one, or a stepping stone on the way.
    pub fn heads_for(&self) -> Version {
        self.stone.unwrap_or(self.version)
    }

    /// The machine of that name, whether it is to stay or to leave.
    pub fn machine_named(&self, name: &str) -> Option<&Machine> {
        self.all().find(|machine| machine.name.as_str() == name)
    }

    /// What a machine of the cluster is made ready for; nodes that have joined get more.
    pub fn recipe(&self, machine: &Machine, joined: bool) -> Recipe {
        let playbooks = if machine.role.is_node() {
            self.playbooks.due(joined)
        } else {
            Vec::new()
        };
        Recipe {
            purpose: machine.role.purpose(),
            proxy: self.proxy.clone(),
            playbooks,
        }
    }

    /// Whether what is played when a machine has joined was declared before it was made: then
    /// it is a part of its coming, and no change to something that serves.
    pub fn comes_with_playbooks(&self, machine: &Machine) -> bool {
        let before = self.playbooks.made_before.get(&machine.pool);
        before.is_none_or(|made| machine.incarnation >= *made)
    }

    /// Where the pods of a machine are, if it has any and the mesh carries them.
    pub fn pods_of(&self, machine: &Machine) -> Option<Network> {
        let pods = self.kubernetes.pods_at(self.network, machine.address);
        pods.filter(|_| machine.role.is_node())
    }

    /// Where nodes that have no API of their own find it: on the machines of the load balancer
    /// that passes it on, else on the first machine that runs one.
    pub fn api(&self) -> Vec<Ipv4Addr> {
        let balancer = self.api_balancer();
        let serves = |machine: &&Machine| match balancer {
            Some(balancer) => machine.balancer.as_ref() == Some(&balancer.name),
            None => machine.role == Role::Control,
        };
        let addresses = self.machines.iter().filter(serves);
        let addresses = addresses.map(|machine| machine.address);
        match balancer {
            Some(_) => addresses.collect(),
            None => addresses.take(1).collect(),
        }
    }

    /// The port by which a machine passes the API on, if it is of the load balancer that does.
    pub fn api_role(&self, machine: &Machine) -> Option<&Forward> {
        let balancer = self.api_balancer()?;
        let of_this = machine.balancer.as_ref() == Some(&balancer.name);
        let mut roles = balancer.roles.iter().filter(|_| of_this);
        roles.find(|role| self.is_api(role))
    }

    /// The port by which a machine passed the API on before, if it is of a load balancer that did
    /// and does so no more.
    pub fn former_api_role(&self, machine: &Machine) -> Option<&Forward> {
        let former = self.former.iter();
        let mut of_this = former.filter(|former| machine.balancer.as_ref() == Some(&former.name));
        of_this.find_map(|former| former.roles.iter().find(|role| role.is_api_door()))
    }

    /// The load balancer that passes the API on.
    pub fn api_balancer(&self) -> Option<&Balancer> {
        let passes = |balancer: &&Balancer| balancer.roles.iter().any(|role| self.is_api(role));
        self.balancers.iter().find(passes)
    }

    /// Whether a port of a load balancer leads to the API, on the port where nodes look for it.
    fn is_api(&self, role: &Forward) -> bool {
        let control = |machine: &Machine| {
            machine.role == Role::Control && role.target_pools.contains(&machine.pool)
        };
        role.is_api_door() && self.machines.iter().any(control)
    }

    /// Every machine this cluster is responsible for: those to stay, then those to leave.
    pub fn all(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().chain(&self.leaving)
    }
}

/// A load balancer of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balancer {
    /// What people call it.
    pub name: Name,
    /// What it listens to, in the order of ports.
    pub roles: Vec<Forward>,
    /// How it is called in the world, where the manifest says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Names>,
}

/// One port of a load balancer, and the pools that answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forward {
    /// What people call it.
    pub name: Name,
    /// What is spoken.
    pub protocol: Protocol,
    /// Where it listens.
    pub port: u16,
    /// Where the targets listen.
    pub target_port: u16,
    /// The pools of the targets.
    pub target_pools: Vec<Name>,
    /// Whether targets are told by the PROXY protocol who is calling.
    pub proxy_protocol: bool,
    /// Whether a caller is always sent to the same target.
    pub sticky: bool,
}

impl Forward {
    /// Whether it leads from the port where nodes look for the API to the one where that listens.
    pub fn is_api_door(&self) -> bool {
        let door = (self.protocol, self.port, self.target_port);
        door == (Protocol::Tcp, API_PORT, API_PORT)
    }
}

/// Machines that are to be taken from those that were discovered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetalWanted {
    /// The pool they will belong to.
    pub pool: Name,
    /// What they will do in the cluster.
    pub role: Role,
    /// The load balancer that they will be part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer: Option<Name>,
    /// How many.
    pub count: u32,
    /// The labels that they have, with their values.
    pub selector: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disruption::Windows;
    use crate::secret::SecretRef;
    use crate::task::Kind;

    /// A document as it was stored before there were budgets, windows and secrets.
    const STORED: &str = r#"{
        "cluster":"cluster-0c5w3k9qj2m4x","project":"default","manifest":"m","name":"edge","incarnation":0,
        "generation":3,"version":"v1.34.0","network":"10.8.0.0/24","machines":[
            {"id":"machine-0c5w3k9qj2m4x","name":"edge-brain-01","pool":"brain","role":"control","ordinal":1,
             "incarnation":0,"address":"10.8.0.1","origin":{"made":{"provider":"lab","via":"simulated",
             "region":"north","zone":null,"server_type":"small","image":"debian-12"}}},
            {"id":"machine-0c5w3k9qj2m4y","name":"edge-attic-01","pool":"attic","role":"compute","ordinal":1,
             "incarnation":0,"address":"10.8.0.2","origin":{"given":{"endpoint":"203.0.113.5","ssh_port":22,
             "username":"root"}}}],
        "leaving":[],"made":{"brain":1,"attic":1},"tombstone":false}"#;

    #[test]
    fn a_document_stored_before_budgets_and_secrets_is_still_read() {
        let read: Desired = serde_json::from_str(STORED).unwrap();
        assert_eq!(read.disruption, Disruption::default());
        assert_eq!(
            (read.disruption.unavailable, read.disruption.windows.clone()),
            (1, Windows::default())
        );
        assert!(
            read.machines
                .iter()
                .all(|machine| machine.origin.secret().is_none())
        );
        assert!(
            read.machines
                .iter()
                .all(|machine| machine.origin.jump().is_none())
        );
        let again = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Desired>(&again).unwrap(), read);
        assert!(
            !again.contains("jump"),
            "what nobody said is not stored: {again}"
        );
    }

    #[test]
    fn a_machine_behind_another_needs_both_keys_and_remembers_the_way() {
        let mut desired: Desired = serde_json::from_str(STORED).unwrap();
        let named = |name: &str| SecretRef {
            name: name.parse().unwrap(),
            key: None,
        };
        let direct = desired.machines[1].origin.clone();
        let direct = direct.with_secret(Some(named("rack")));
        let mut through = direct.clone();
        if let Origin::Given { jump, .. } = &mut through {
            *jump = Some(Jump {
                endpoint: Ipv4Addr::new(203, 0, 113, 1),
                ssh_port: 22,
                username: "root".to_owned(),
                secret: Some(named("front")),
                since: Generation(3),
            });
        }
        let needed: Vec<_> = through.secrets_for(Kind::Equip).collect();
        assert_eq!(needed, [named("rack"), named("front")]);
        assert_eq!(through.secrets_for(Kind::Uncordon).count(), 0);
        assert!(through.entered_like(&through.clone()) && !through.entered_like(&direct));
        desired.machines[1].origin = through;
        let stored = serde_json::to_string(&desired).unwrap();
        assert_eq!(serde_json::from_str::<Desired>(&stored).unwrap(), desired);
    }

    #[test]
    fn what_is_declared_survives_being_stored() {
        let mut desired: Desired = serde_json::from_str(STORED).unwrap();
        desired.disruption = serde_json::from_str(
            r#"{"unavailable":3,"windows":[{"days":["sat","sun"],"start":120,"minutes":240,"offset":-60}],
                "pools":{"brain":{"unavailable":1,"group":"rack"}},"groups":{"rack":2}}"#,
        )
        .unwrap();
        for machine in &mut desired.machines {
            let named = SecretRef {
                name: "keys".parse().unwrap(),
                key: None,
            };
            machine.origin = machine.origin.clone().with_secret(Some(named));
        }
        let stored = serde_json::to_string(&desired).unwrap();
        assert_eq!(serde_json::from_str::<Desired>(&stored).unwrap(), desired);
    }

    #[test]
    fn a_key_is_needed_for_everything_but_the_way_back_into_service() {
        let desired: Desired = serde_json::from_str(STORED).unwrap();
        let named = SecretRef {
            name: "keys".parse().unwrap(),
            key: None,
        };
        let without = |machine: &Machine| -> Vec<&str> {
            let origin = machine.origin.clone().with_secret(Some(named.clone()));
            let free = Kind::ALL
                .into_iter()
                .filter(|kind| origin.secrets_for(*kind).next().is_none());
            free.map(Kind::as_str).collect()
        };
        let made = [
            "key", "prepare", "equip", "mesh", "balance", "name", "init", "join", "install",
            "tend", "drain", "upgrade", "renew", "uncordon", "leave", "clear", "snapshot",
            "restore", "release",
        ];
        assert_eq!(without(&desired.machines[0]), made);
        assert_eq!(without(&desired.machines[1]), ["name", "uncordon"]);
    }
}
