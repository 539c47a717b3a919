//! What was last seen, by whom, and when.
//!
//! Drivers report [`Observation`]s; [`fold`] turns the newest per object and source into
//! [`Observed`], the planner's only eyes. Absence is itself something that was *seen*: a
//! probe that did not answer leaves the last observation standing, and never means "gone".

use crate::addon::{AddonFact, AddonName, AddonsFact};
use crate::balancer::BalanceFact;
use crate::dns::NamesFact;
use crate::host::Fingerprint;
use crate::id::{ClusterId, MachineId};
use crate::mesh::{Heard, MeshFact, MeshKey};
use crate::name::Name;
use crate::snapshot::{RestoredFact, SnapshotsFact};
use crate::stray::{Stray, StraysFact};
use crate::templates::{Commit, Reference};
use crate::time::Timestamp;
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// One thing seen in the world, by a probe or by a driver on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The cluster it belongs to.
    pub cluster: ClusterId,
    /// What was seen.
    pub fact: Fact,
    /// When the looking began: what is older than what we know is dropped.
    pub at: Timestamp,
}

/// A fact about one object from one source; the newest of each kind per object counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    /// What the one who lends the machine says of it.
    Machine(MachineId, MachineFact),
    /// What Kubernetes says of the machine's node.
    Node(MachineId, NodeFact),
    /// What is known of the control plane as a whole.
    ControlPlane(ControlPlaneFact),
    /// What a host says of itself.
    Host(MachineId, HostFact),
    /// What opens the machines of the cluster.
    Access(AccessFact),
    /// The certificates of a control machine.
    Certificates(MachineId, CertificatesFact),
    /// The add-ons that are in the cluster.
    Addons(AddonsFact),
    /// The nodes that are there beside those of the cluster's machines, where all of these were looked
    /// for.
    Strays(StraysFact),
    /// The snapshots of the cluster's etcd.
    Snapshots(SnapshotsFact),
    /// The snapshot that was last put back.
    Restored(RestoredFact),
    /// The names that lead to a machine of a load balancer.
    Names(MachineId, NamesFact),
    /// Whether the world reaches the API on a control machine.
    Port(MachineId, PortFact),
    /// The commit to which a tag or a branch of a repository leads.
    Commit(Reference, CommitFact),
    /// That a tag or a branch could not be looked up.
    Unresolved(Reference, UnresolvedFact),
}

/// Who saw a fact; with the object it names the row that a newer one replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The provider of the machine, or the machine itself where it was given.
    Provider,
    /// The Kubernetes API of the cluster.
    Kubernetes,
    /// The host itself, entered by SSH.
    Host,
    /// Whoever keeps the keys.
    Keeper,
    /// Whoever reads certificates on their hosts.
    Certificates,
    /// Whoever asks what was installed in the cluster.
    Addons,
    /// Whoever looks for nodes that are nobody's.
    Strays,
    /// Whoever takes snapshots of etcd.
    Snapshots,
    /// Whoever puts snapshots back.
    Restores,
    /// Whoever answers for names of DNS.
    Names,
    /// The firewall of the provider.
    Firewall,
    /// Whoever keeps a repository of modules.
    Repository,
    /// Whoever asks there, where nobody answers.
    Lookup,
}

impl Source {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Kubernetes => "kubernetes",
            Self::Host => "host",
            Self::Keeper => "keeper",
            Self::Certificates => "certificates",
            Self::Addons => "addons",
            Self::Strays => "strays",
            Self::Snapshots => "snapshots",
            Self::Restores => "restores",
            Self::Names => "names",
            Self::Firewall => "firewall",
            Self::Repository => "repository",
            Self::Lookup => "lookup",
        }
    }
}

impl Fact {
    /// The machine that does not serve as it should, by what was seen.
    pub const fn sick(&self) -> Option<MachineId> {
        match self {
            Self::Machine(machine, MachineFact::Unreachable { .. })
            | Self::Node(machine, NodeFact::Joined { ready: false, .. }) => Some(*machine),
            Self::Machine(..)
            | Self::Node(..)
            | Self::ControlPlane(_)
            | Self::Host(..)
            | Self::Access(_)
            | Self::Certificates(..)
            | Self::Addons(_)
            | Self::Strays(_)
            | Self::Snapshots(_)
            | Self::Restored(_)
            | Self::Names(..)
            | Self::Port(..)
            | Self::Commit(..)
            | Self::Unresolved(..) => None,
        }
    }

    /// The tag or the branch it is about, where it is about one.
    pub const fn reference(&self) -> Option<&Reference> {
        if let Self::Commit(reference, _) | Self::Unresolved(reference, _) = self {
            Some(reference)
        } else {
            None
        }
    }

    /// The machine it is about, unless it is about the cluster.
    pub const fn machine(&self) -> Option<MachineId> {
        match self {
            Self::Machine(machine, _)
            | Self::Node(machine, _)
            | Self::Host(machine, _)
            | Self::Certificates(machine, _)
            | Self::Names(machine, _)
            | Self::Port(machine, _) => Some(*machine),
            Self::ControlPlane(_)
            | Self::Access(_)
            | Self::Addons(_)
            | Self::Strays(_)
            | Self::Snapshots(_)
            | Self::Restored(_)
            | Self::Commit(..)
            | Self::Unresolved(..) => None,
        }
    }

    /// Who saw it.
    pub const fn source(&self) -> Source {
        match self {
            Self::Machine(..) => Source::Provider,
            Self::Node(..) | Self::ControlPlane(_) => Source::Kubernetes,
            Self::Host(..) => Source::Host,
            Self::Access(_) => Source::Keeper,
            Self::Certificates(..) => Source::Certificates,
            Self::Addons(_) => Source::Addons,
            Self::Strays(_) => Source::Strays,
            Self::Snapshots(_) => Source::Snapshots,
            Self::Restored(_) => Source::Restores,
            Self::Names(..) => Source::Names,
            Self::Port(..) => Source::Firewall,
            Self::Commit(..) => Source::Repository,
            Self::Unresolved(..) => Source::Lookup,
        }
    }
}

/// A machine as its provider shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MachineFact {
    /// The provider was asked and has no such machine.
    Absent,
    /// It exists and is starting.
    Booting {
        /// The provider's own name for it.
        reference: String,
    },
    /// It runs and answers.
    Running {
        /// The provider's own name for it.
        reference: String,
        /// Where it answers.
        address: IpAddr,
    },
    /// It exists, and does not answer, or not so that we could use it.
    Unreachable {
        /// The provider's own name for it.
        reference: String,
        /// What is wrong with its answer, where it gives one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
}

/// A node as Kubernetes shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum NodeFact {
    /// Kubernetes was asked and has no such node.
    Absent,
    /// The machine has joined.
    Joined {
        /// Whether it can run workloads.
        ready: bool,
        /// Whether it takes no new workloads.
        cordoned: bool,
        /// What it runs.
        version: Version,
        /// What it was last told to carry and where to find the API, if it still carries it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        care: Option<Fingerprint>,
        /// Whether its kubelet asks for a certificate to serve with, and nobody has answered.
        #[serde(default, skip_serializing_if = "is_false")]
        asks: bool,
        /// Whether it came in place of another, and takes no workloads because its gates have not let
        /// it pass yet.
        #[serde(default, skip_serializing_if = "is_false")]
        gated: bool,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes what it asks about by reference"
)]
pub(crate) const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The control plane as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlPlaneFact {
    /// Whether a first member was ever started; starting a second one would split the cluster.
    pub initialised: bool,
    /// How it is, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wellbeing: Option<Wellbeing>,
}

impl ControlPlaneFact {
    /// A control plane that was started, and of which nothing else is known.
    pub const fn started() -> Self {
        Self {
            initialised: true,
            wellbeing: None,
        }
    }
}

/// How a control plane is, as one of its members tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wellbeing {
    /// Checks of its API server that fail, in the order of their names.
    pub failing: Vec<String>,
    /// The members of etcd, in the order of their names; none where nobody told of them.
    pub etcd: Vec<Member>,
    /// What is wrong with nodes, by their names; those that are well are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub troubles: BTreeMap<String, String>,
    /// Nodes that somebody locked, by their names, each with the label that says so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locks: BTreeMap<String, String>,
}

/// A member of etcd, as another one sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// What it is called: as its machine, or by its address before it has started.
    pub name: String,
    /// Whether it runs and answers.
    pub healthy: bool,
    /// Whether it only learns, and does not count yet.
    pub learner: bool,
}

/// The certificates with which a control machine serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificatesFact {
    /// The day on which the first of them ends: only changes are worth telling.
    pub end: Timestamp,
}

/// The port of the API on a control machine, as the firewall of its provider has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortFact {
    /// Whether the world reaches it.
    pub open: bool,
}

/// To which commit a tag or a branch leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitFact {
    /// The commit.
    pub commit: Commit,
}

/// Why nobody knows to which commit a tag or a branch leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnresolvedFact {
    /// What was said, and what would help.
    pub because: String,
    /// Whether somebody must change something; else it is looked up again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lasting: bool,
}

/// A tag or a branch as it was last looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Followed {
    /// The commit to which it leads, and when that was last seen.
    pub commit: Option<(Commit, Timestamp)>,
    /// Since when it leads there.
    pub since: Option<Timestamp>,
    /// Why it could not be looked up, and when.
    pub unresolved: Option<(UnresolvedFact, Timestamp)>,
}

impl Followed {
    /// What is wrong with the repository, unless it has answered since.
    pub fn trouble(&self) -> Option<&UnresolvedFact> {
        let (trouble, at) = self.unresolved.as_ref()?;
        let answered = self.commit.as_ref().is_some_and(|(_, seen)| seen >= at);
        (!answered).then_some(trouble)
    }
}

/// What opens the machines of a cluster: the public half of a key that is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessFact {
    /// As it is written into a machine's list of authorised keys.
    pub public: String,
}

/// A host as it describes itself.
///
/// What moves all the time is rounded: only changes are worth telling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFact {
    /// Where it was entered.
    pub at: Option<IpAddr>,
    /// Its operating system.
    pub system: String,
    /// Its kernel.
    pub kernel: String,
    /// Changes with every start.
    pub boot: String,
    /// How full its fullest disk is, in steps of five percent.
    pub disk_used_percent: u8,
    /// How far its clock is off, in whole seconds.
    pub clock_off_seconds: i64,
    /// The recipe that it followed.
    pub equipped: Option<Fingerprint>,
    /// The key that was born on it.
    pub mesh_key: Option<MeshKey>,
    /// Its end of the mesh.
    pub mesh: Option<MeshFact>,
    /// Whether its tunnels are in use, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Heard>,
    /// Its load balancer.
    pub balance: Option<BalanceFact>,
}

/// One cluster as it was last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether a control plane was ever started.
    pub initialised: bool,
    /// How its control plane is, and since when we believe so.
    pub wellbeing: Option<(Wellbeing, Timestamp)>,
    /// The public half of the key that opens its machines.
    pub access: Option<String>,
    /// The add-ons that are in it, and since when we believe so; nothing when nobody has asked.
    pub addons: Option<(BTreeMap<AddonName, AddonFact>, Timestamp)>,
    /// The nodes that were found beside those of its machines, and since when we believe so; nothing
    /// when nobody has looked.
    pub strays: Option<(BTreeMap<String, Stray>, Timestamp)>,
    /// The snapshots of its etcd, and since when we believe so.
    pub snapshots: Option<(SnapshotsFact, Timestamp)>,
    /// The snapshot that was last put back, and since when we believe so.
    pub restored: Option<(RestoredFact, Timestamp)>,
    /// Every machine that was reported.
    pub machines: BTreeMap<MachineId, Seen>,
    /// Machines that do not serve as they should, and since when.
    pub sick: BTreeMap<MachineId, Timestamp>,
    /// Tags and branches of the repositories whose modules machines are made with.
    pub followed: BTreeMap<Reference, Followed>,
}

/// One machine as it was last seen, from every side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// As its provider shows it, and since when we believe so.
    pub machine: Option<(MachineFact, Timestamp)>,
    /// As Kubernetes shows it, and since when we believe so.
    pub node: Option<(NodeFact, Timestamp)>,
    /// As it describes itself, and since when we believe so.
    pub host: Option<(HostFact, Timestamp)>,
    /// Its certificates, where it is a control machine, and since when we believe so.
    pub certificates: Option<(CertificatesFact, Timestamp)>,
    /// The names that lead to it, where it is one of a load balancer and somebody can ask for them,
    /// and since when we believe so.
    pub names: Option<(NamesFact, Timestamp)>,
    /// Whether the world reaches the API on it, where a provider decides that and was asked, and
    /// since when we believe so.
    pub port: Option<(PortFact, Timestamp)>,
}

impl Seen {
    /// Whether it is a node of its cluster, ready or not. Kubernetes keeps the names of the dead: who
    /// is seen to be gone is none.
    pub const fn is_node(&self) -> bool {
        let there = !matches!(self.machine, Some((MachineFact::Absent, _)));
        there && matches!(self.node, Some((NodeFact::Joined { .. }, _)))
    }

    /// Whether it is still a node though its machine is seen to be gone: nobody has taken it out of
    /// its cluster, and etcd may count on its member.
    pub const fn outlived(&self) -> bool {
        let gone = matches!(self.machine, Some((MachineFact::Absent, _)));
        gone && matches!(self.node, Some((NodeFact::Joined { .. }, _)))
    }

    /// Whether names lead to it, there or not: they must be taken back.
    pub fn is_named(&self) -> bool {
        let names = self.names.as_ref();
        names.is_some_and(|(fact, _)| !fact.names.is_empty())
    }
}

impl FromIterator<Observation> for Observed {
    /// What is known when these are all that was seen.
    fn from_iter<T: IntoIterator<Item = Observation>>(seen: T) -> Self {
        let mut observed = Self::default();
        for seen in seen {
            observed.see(seen);
        }
        observed
    }
}

impl Observed {
    /// The label by which somebody said that a node is to be left alone.
    pub fn lock_of(&self, machine: &Name) -> Option<&str> {
        let (told, _) = self.wellbeing.as_ref()?;
        told.locks.get(machine.as_str()).map(String::as_str)
    }

    /// Nodes that are there and were none of those that were looked for, by their names. Who was
    /// seen since to be no node any more is none of them.
    pub fn strays(&self) -> impl Iterator<Item = (&str, &Stray)> {
        let strays = self.strays.iter();
        strays.flat_map(|(nodes, at)| {
            let gone = |stray: &Stray| {
                let seen = stray.machine.and_then(|of| self.machines.get(&of));
                let node = seen.and_then(|seen| seen.node.as_ref());
                node.is_some_and(|(fact, seen)| *fact == NodeFact::Absent && seen >= at)
            };
            let there = nodes.iter().filter(move |(_, stray)| !gone(stray));
            there.map(|(name, stray)| (name.as_str(), stray))
        })
    }

    /// Whether the firewall before a machine was seen to let the world reach the API.
    pub fn lets_in(&self, machine: MachineId) -> bool {
        let port = self.machines.get(&machine).and_then(|seen| seen.port);
        port.is_some_and(|(port, _)| port.open)
    }

    /// The commit to which a tag or a branch leads, as far as anybody knows.
    pub fn commit_of(&self, reference: &Reference) -> Option<&Commit> {
        let (commit, _) = self.followed.get(reference)?.commit.as_ref()?;
        Some(commit)
    }

    /// Takes in one more observation unless something newer is known.
    pub fn see(&mut self, observation: Observation) {
        let Observation {
            cluster: _,
            fact,
            at,
        } = observation;
        match fact {
            // Whether it *ever* was: no later look can undo that.
            Fact::ControlPlane(fact) => {
                self.initialised |= fact.initialised;
                if let Some(wellbeing) = fact.wellbeing {
                    replace(&mut self.wellbeing, wellbeing, at);
                }
            }
            Fact::Certificates(machine, fact) => {
                replace(
                    &mut self.machines.entry(machine).or_default().certificates,
                    fact,
                    at,
                );
            }
            Fact::Names(machine, fact) => {
                replace(
                    &mut self.machines.entry(machine).or_default().names,
                    fact,
                    at,
                );
            }
            Fact::Port(machine, fact) => {
                replace(
                    &mut self.machines.entry(machine).or_default().port,
                    fact,
                    at,
                );
            }
            Fact::Commit(reference, fact) => {
                let followed = self.followed.entry(reference).or_default();
                replace(&mut followed.commit, fact.commit, at);
            }
            Fact::Unresolved(reference, fact) => {
                let followed = self.followed.entry(reference).or_default();
                replace(&mut followed.unresolved, fact, at);
            }
            Fact::Addons(fact) => replace(&mut self.addons, fact.addons, at),
            Fact::Strays(fact) => replace(&mut self.strays, fact.nodes, at),
            Fact::Snapshots(fact) => replace(&mut self.snapshots, fact, at),
            Fact::Restored(fact) => replace(&mut self.restored, fact, at),
            // A key is made once in the life of a cluster.
            Fact::Access(fact) => self.access = Some(fact.public),
            Fact::Host(machine, fact) => {
                replace(
                    &mut self.machines.entry(machine).or_default().host,
                    fact,
                    at,
                );
            }
            Fact::Machine(machine, fact) => {
                replace(
                    &mut self.machines.entry(machine).or_default().machine,
                    fact,
                    at,
                );
            }
            Fact::Node(machine, fact) => {
                replace(
                    &mut self.machines.entry(machine).or_default().node,
                    fact,
                    at,
                );
            }
        }
    }
}

fn replace<T>(slot: &mut Option<(T, Timestamp)>, fact: T, at: Timestamp) {
    if slot.as_ref().is_none_or(|(_, known)| *known <= at) {
        *slot = Some((fact, at));
    }
}

/// Turns observations, in any order, into what is known.
pub fn fold(observations: impl IntoIterator<Item = Observation>) -> Observed {
    let mut observed = Observed::default();
    for observation in observations {
        observed.see(observation);
    }
    observed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Origin;

    #[test]
    fn an_observation_that_comes_late_does_not_undo_a_newer_one() {
        let origin = Origin {
            parent: "a",
            name: "b",
            ordinal: 1,
            incarnation: 0,
        };
        let machine = MachineId::derive(origin);
        let cluster = ClusterId::derive(origin);
        let seen = |fact, millis| Observation {
            cluster,
            fact: Fact::Machine(machine, fact),
            at: Timestamp::from_millis(millis),
        };
        let booting = MachineFact::Booting {
            reference: "vm-1".to_owned(),
        };
        let observed = fold([seen(booting.clone(), 20), seen(MachineFact::Absent, 10)]);
        assert_eq!(
            observed.machines[&machine].machine,
            Some((booting, Timestamp::from_millis(20)))
        );
    }

    #[test]
    fn a_repository_that_does_not_answer_leaves_what_it_said_before() {
        let origin = Origin {
            parent: "a",
            name: "b",
            ordinal: 1,
            incarnation: 0,
        };
        let reference = Reference {
            repository: "example.org/a/b".to_owned(),
            name: "main".to_owned(),
        };
        let commit = Commit::to_come();
        let trouble = UnresolvedFact {
            because: "it does not answer".to_owned(),
            lasting: false,
        };
        let seen = |fact, millis| Observation {
            cluster: ClusterId::derive(origin),
            fact,
            at: Timestamp::from_millis(millis),
        };
        let led = |millis| {
            let commit = commit.clone();
            let fact = Fact::Commit(reference.clone(), CommitFact { commit });
            seen(fact, millis)
        };
        let silent = seen(Fact::Unresolved(reference.clone(), trouble.clone()), 20);
        for (at, told) in [(10, Some(&trouble)), (20, None), (30, None)] {
            for order in [[silent.clone(), led(at)], [led(at), silent.clone()]] {
                let observed = fold(order);
                assert_eq!(observed.commit_of(&reference), Some(&commit));
                assert_eq!(observed.followed[&reference].trouble(), told, "{at}");
            }
        }
    }

    /// Facts as they were stored before anybody asked how a control plane is.
    #[test]
    fn what_was_stored_of_a_control_plane_before_is_still_read() {
        let stored = r#"{"control-plane":{"initialised":true}}"#;
        let read: Fact = serde_json::from_str(stored).unwrap();
        assert_eq!(read, Fact::ControlPlane(ControlPlaneFact::started()));
        let again = serde_json::to_string(&read).unwrap();
        assert_eq!(again, stored, "what nobody asked is not stored");
    }

    #[test]
    fn a_port_is_stored_beside_what_else_is_seen_of_a_machine() {
        let machine: MachineId = "machine-0c5w3k9qj2m4x".parse().unwrap();
        let fact = Fact::Port(machine, PortFact { open: true });
        let stored = serde_json::to_string(&fact).unwrap();
        assert_eq!(
            stored,
            r#"{"port":["machine-0c5w3k9qj2m4x",{"open":true}]}"#
        );
        assert_eq!(serde_json::from_str::<Fact>(&stored).unwrap(), fact);
        assert_eq!(
            (fact.machine(), fact.source()),
            (Some(machine), Source::Firewall)
        );
    }

    #[test]
    fn a_control_plane_stays_started_and_as_it_was_last_seen() {
        let origin = Origin {
            parent: "a",
            name: "b",
            ordinal: 1,
            incarnation: 0,
        };
        let seen = |initialised, healthy: Option<bool>, millis| Observation {
            cluster: ClusterId::derive(origin),
            fact: Fact::ControlPlane(ControlPlaneFact {
                initialised,
                wellbeing: healthy.map(|healthy| Wellbeing {
                    failing: Vec::new(),
                    etcd: vec![Member {
                        name: "one".to_owned(),
                        healthy,
                        learner: false,
                    }],
                    troubles: BTreeMap::new(),
                    locks: BTreeMap::new(),
                }),
            }),
            at: Timestamp::from_millis(millis),
        };
        let late = [
            seen(true, Some(true), 20),
            seen(true, Some(false), 10),
            seen(false, None, 30),
        ];
        let observed = fold(late);
        let (wellbeing, at) = observed.wellbeing.unwrap();
        assert!(observed.initialised && wellbeing.etcd[0].healthy);
        assert_eq!(at, Timestamp::from_millis(20));
    }
}
