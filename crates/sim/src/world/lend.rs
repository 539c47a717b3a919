//! Machines that another driver made: here they only carry the nodes of simulated clusters.

use super::effect::{Bearer, Computer};
use super::state::State;
use model::id::MachineId;
use model::time::Timestamp;
use std::net::Ipv4Addr;

impl State {
    /// Puts a running computer into the world that another driver made.
    pub(super) fn lend(&mut self, at: Timestamp, on: Computer, by: Bearer, address: Ipv4Addr) {
        match on {
            Computer::Vm(number) => {
                self.put(number, by, address, at);
                if let Some(vm) = self.vms.get_mut(&number) {
                    vm.lent = true;
                }
            }
            Computer::Host(endpoint) => {
                let before = self.hosts.get(&endpoint).filter(|host| host.lent);
                let before = before.and_then(|host| host.owner.as_ref());
                if let Some(before) = before.map(|owner| owner.machine) {
                    self.take_back(at, before);
                }
                let host = self.host_mut(endpoint);
                host.owner = Some(by);
                host.prepared = true;
                host.powered = true;
                host.lent = true;
            }
        }
    }

    /// Where a machine is that another driver made, if it is here, and whose it is.
    pub(super) fn lent(&self, machine: MachineId) -> Option<(Computer, &Bearer)> {
        let mut made = self.labelled(machine).filter(|(_, vm)| vm.lent);
        let made = made
            .next()
            .map(|(number, vm)| (Computer::Vm(number), &vm.by));
        made.or_else(|| {
            let mut hosts = self.hosts.iter().filter(|(_, host)| host.lent);
            hosts.find_map(|(address, host)| {
                let by = host.owner.as_ref().filter(|by| by.machine == machine)?;
                Some((Computer::Host(*address), by))
            })
        })
    }

    /// Removes such a computer, with its node and with whatever was happening to it.
    pub(super) fn take_back(&mut self, at: Timestamp, machine: MachineId) {
        let Some((on, by)) = self.lent(machine) else {
            return;
        };
        let by = by.clone();
        if let Some((operation, _)) = self.under_way(machine) {
            self.forget(operation);
        }
        self.watch_take_back(at, &by);
        if let Some(kube) = self.clusters.get_mut(&by.cluster) {
            kube.nodes.remove(&machine);
        }
        match on {
            Computer::Vm(number) => self.destroy(number),
            Computer::Host(address) => self.clean(address),
        }
        self.bury(by.cluster);
    }
}
