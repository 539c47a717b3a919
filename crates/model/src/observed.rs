//! What was last seen, by whom, and when.
//!
//! Drivers report [`Observation`]s; [`fold`] turns the newest per object and source into
//! [`Observed`], the planner's only eyes. Absence is itself something that was *seen*: a
//! probe that did not answer leaves the last observation standing, and never means "gone".

mod fact;

pub(crate) use fact::is_false;
pub use fact::{
    AccessFact, CertificatesFact, CommitFact, ControlPlaneFact, Fact, HostFact, MachineFact,
    Member, NodeFact, PortFact, Silence, SilenceFact, Source, UnresolvedFact, Wellbeing,
};

use crate::addon::{AddonFact, AddonName};
use crate::dns::NamesFact;
use crate::id::{ClusterId, MachineId};
use crate::name::Name;
use crate::snapshot::{RestoredFact, SnapshotsFact};
use crate::stray::Stray;
use crate::templates::{Commit, Reference};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// One cluster as it was last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether a control plane was ever started.
    pub initialised: bool,
    /// How its control plane is, and since when we believe so.
    pub wellbeing: Option<(Wellbeing, Timestamp)>,
    /// Why its API tells nothing, where it does not, and since when we believe so.
    pub silence: Option<(Option<Silence>, Timestamp)>,
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

    /// Why the API of the cluster tells nothing, where it was asked and does not.
    pub fn silence(&self) -> Option<&Silence> {
        let (told, _) = self.silence.as_ref()?;
        told.as_ref()
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
            Fact::Silence(fact) => replace(&mut self.silence, fact.silence, at),
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
                    ..Wellbeing::default()
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
