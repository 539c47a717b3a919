//! The names of the simulated world, and to which machines they lead.
//!
//! Whoever answers for a zone is asked, whatever becomes of the machine meanwhile: a name leads
//! somewhere until somebody takes it back.

use super::effect::{Bearer, Change, Computer, Operation};
use super::look::Step;
use super::state::State;
use super::watch::Rule;
use model::cluster::{Machine, Role};
use model::dns::{Entry, NamesFact, Naming};
use model::id::MachineId;
use model::observed::Fact;
use model::provider::Provider;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The names that lead to one machine; none any more, where they were taken back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) by: Bearer,
    address: IpAddr,
    names: Vec<Entry>,
}

impl Named {
    /// As an outsider would draw it.
    pub(super) fn drawn(&self) -> Option<String> {
        let name = |of: &Entry| match of.via {
            Provider::Cloud(cloud) => format!("{} with {}", of.name, cloud.as_str()),
            Provider::Simulated | Provider::Sandbox => of.name.to_string(),
        };
        let names: Vec<_> = self.names.iter().map(name).collect();
        (!names.is_empty()).then(|| format!("called {}", names.join(" and ")))
    }
}

impl State {
    /// How far the world is with the names of a machine.
    pub(super) fn step_name(&self, machine: &Machine, naming: &Naming) -> Step {
        let named = self.names.get(&machine.id);
        let none = named.is_none_or(|named| named.names.is_empty());
        let same = named
            .is_some_and(|named| (named.address, &named.names) == (naming.address, &naming.names));
        let done = same || none && naming.names.is_empty();
        // A machine that somebody else made, or that is gone, has none here.
        let on = self.whose(machine.id).unwrap_or(Computer::Vm(0));
        if done {
            Step::Done
        } else {
            Step::Begin(Some(on))
        }
    }

    /// Names lead to a machine, and no others.
    pub(super) fn name(&mut self, at: Timestamp, of: &Operation, naming: &Naming) {
        let taken = |other: &Named| {
            let mut names = other.names.iter();
            let same = names.any(|of| naming.names.iter().any(|name| name.name == of.name));
            other.by.cluster != of.by.cluster && same
        };
        if self.watches(&of.by) && self.names.values().any(taken) {
            self.violated(at, &of.by, Rule::NamedTwice);
        }
        let named = Named {
            by: of.by.clone(),
            address: naming.address,
            names: naming.names.clone(),
        };
        self.names.insert(of.by.machine, named);
    }

    /// Notices when a name leads to a machine that does not serve, or to one that goes.
    pub(super) fn watch_named(&mut self, at: Timestamp, of: &Operation) {
        let goes = matches!(of.change, Change::Delete | Change::Release);
        let named = self.names.get(&of.by.machine);
        if goes && named.is_some_and(|named| !named.names.is_empty()) {
            self.violated(at, &of.by, Rule::StillNamed);
        }
        let named = if let Change::Name { naming } = &of.change {
            let had = self.names.get(&of.by.machine).map(|named| &named.names);
            let new = |name: &Entry| had.is_none_or(|had| !had.contains(name));
            naming.names.iter().any(new)
        } else {
            false
        };
        let kit = self.kit(of.on).filter(|_| named);
        if kit.is_some_and(|kit| kit.passing.is_none()) {
            self.violated(at, &of.by, Rule::NamedEarly);
        }
    }

    /// Puts names into the world that were observed elsewhere.
    pub(super) fn furnish_names(&mut self, by: Bearer, seen: &NamesFact) {
        if let Some(address) = seen.address {
            let names = seen.names.clone();
            let machine = by.machine;
            let named = Named { by, address, names };
            self.names.insert(machine, named);
        }
    }

    /// The names that lead to a machine of a load balancer. That there are none is seen, too, where
    /// there were any or somebody would have to answer for them: a cloud, or whoever does for given
    /// machines.
    pub(super) fn names_fact(&self, machine: &Machine) -> Option<Fact> {
        let named = self.names.get(&machine.id);
        let told = match machine.origin.via() {
            Some(Provider::Simulated | Provider::Sandbox) => named.is_some(),
            Some(Provider::Cloud(_)) | None => true,
        };
        let fact = named.map_or_else(NamesFact::default, |named| NamesFact {
            address: (!named.names.is_empty()).then_some(named.address),
            names: named.names.clone(),
            // Who asks here knows whom they reach.
            asked: Vec::new(),
        });
        let balancer = machine.role == Role::Balancer && told;
        balancer.then_some(Fact::Names(machine.id, fact))
    }

    /// Every name, each with the machine it leads to.
    pub(super) fn named(&self) -> Vec<String> {
        let named = self.names.values();
        let told = |named: &Named| Some(format!("{} is {}", named.by.name, named.drawn()?));
        named.filter_map(told).collect()
    }

    /// Nobody asks for the names of a machine that is gone, when none leads there.
    pub(super) fn forget_names(&mut self, machine: MachineId) {
        let named = self.names.get(&machine);
        if named.is_some_and(|named| named.names.is_empty()) {
            self.names.remove(&machine);
        }
    }
}
