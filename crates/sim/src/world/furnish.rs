//! A world that begins with what was observed in another.

use super::effect::{Bearer, Computer, endpoint};
use super::kit::Kit;
use super::state::{Duty, Host, Node, State, Vm};
use model::cluster::Machine;
use model::id::ClusterId;
use model::observed::{MachineFact, NodeFact, Observed};
use model::time::Timestamp;

impl State {
    /// Puts into the world what was observed of one machine elsewhere.
    pub(super) fn furnish(
        &mut self,
        cluster: ClusterId,
        machine: &Machine,
        observed: &Observed,
        now: Timestamp,
    ) {
        let Some(seen) = observed.machines.get(&machine.id) else {
            return;
        };
        let fact = seen.machine.as_ref().map(|(fact, _)| fact);
        let node = seen.node.as_ref().map(|(fact, _)| fact);
        let host = machine.origin.is_host();
        let kit = host.then(|| Kit::observed(machine, observed));
        let powered = match fact {
            None | Some(MachineFact::Absent) => return,
            Some(MachineFact::Unreachable { .. }) => false,
            Some(MachineFact::Booting { .. } | MachineFact::Running { .. }) => true,
        };
        let by = Bearer {
            machine: machine.id,
            name: machine.name.clone(),
            cluster,
        };
        if let Some((names, _)) = &seen.names {
            self.furnish_names(by.clone(), names);
        }
        let on = if let Some(address) = endpoint(machine) {
            let host = Host {
                owner: Some(by),
                prepared: matches!(
                    fact,
                    Some(MachineFact::Running { .. } | MachineFact::Unreachable { .. })
                ),
                powered,
                kit,
                lives: 0,
                lent: false,
            };
            self.hosts.insert(address, host);
            Computer::Host(address)
        } else {
            self.vm_last += 1;
            let vm = Vm {
                by,
                address: machine.address,
                boots_at: now,
                powered,
                stopping: false,
                kit,
                lent: false,
                port: seen.port.map(|(port, _)| port.open),
            };
            self.vms.insert(self.vm_last, vm);
            Computer::Vm(self.vm_last)
        };
        if let Some(NodeFact::Joined {
            ready: _,
            cordoned,
            version,
            care,
            // Nobody here asks for certificates.
            asks: _,
            gated,
        }) = node
        {
            let kube = self.clusters.entry(cluster).or_default();
            let mut node = Node::joined(machine.name.clone(), machine.role, on, *version);
            node.told.care.clone_from(care);
            if *gated {
                node.duty = Duty::Gated;
            } else if *cordoned {
                node.duty = Duty::Drained;
            }
            kube.nodes.insert(machine.id, node);
        }
    }
}
