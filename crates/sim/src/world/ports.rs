//! The firewalls of clouds: whether the world reaches the API on a control machine.

use super::effect::{Computer, Operation, Told};
use super::look::{Refusal, Step, silent};
use super::state::{State, Vm};
use super::watch::Rule;
use model::cluster::Machine;
use model::observed::{Fact, PortFact};
use model::time::Timestamp;

impl State {
    /// How far the world is with the port of a machine.
    pub(super) fn step_port(&self, machine: &Machine, open: bool) -> Result<Step, Refusal> {
        match self.labelled(machine.id).next() {
            None => Err(silent(machine)),
            Some((_, vm)) if vm.port == Some(open) => Ok(Step::Done),
            Some((number, _)) => Ok(Step::Begin(Some(Computer::Vm(number)))),
        }
    }

    /// The port of a machine is open or shut from now on.
    pub(super) fn set_port(&mut self, of: &Operation, open: bool) {
        if let Computer::Vm(number) = of.on
            && let Some(vm) = self.vms.get_mut(&number)
        {
            vm.port = Some(open);
        }
    }

    /// What the firewall before a machine says, where there is one and the machine is there.
    pub(super) fn port_fact(&self, machine: &Machine) -> Option<Fact> {
        let (_, vm) = self.labelled(machine.id).next()?;
        let open = vm.port.unwrap_or_default();
        let fact = Fact::Port(machine.id, PortFact { open });
        machine.has_firewall().then_some(fact)
    }

    /// Notices when a port is shut at which somebody looks for the API.
    pub(super) fn watch_shut(&mut self, at: Timestamp, of: &Operation) {
        if self.watches(&of.by) && self.is_looked_for(of, at) {
            self.violated(at, &of.by, Rule::StillAsked);
        }
    }

    /// Whether a node that answers looks for the API on a machine.
    fn is_looked_for(&self, of: &Operation, at: Timestamp) -> bool {
        let Computer::Vm(number) = of.on else {
            return false;
        };
        let Some(vm) = self.vms.get(&number) else {
            return false;
        };
        let kube = self.clusters.get(&of.by.cluster);
        let mut nodes = kube.into_iter().flat_map(|kube| kube.nodes.values());
        nodes.any(|node| node.told.api.contains(&vm.address) && self.carries(node, at))
    }

    /// Whether somebody is led to a machine at which the world is kept from the API.
    pub(super) fn is_led_to_shut(&self, of: &Operation, told: &Told) -> bool {
        let shut = |vm: &Vm| vm.by.cluster == of.by.cluster && vm.port == Some(false);
        let mut shut = self.vms.values().filter(|vm| shut(vm));
        shut.any(|vm| told.api.contains(&vm.address))
    }

    /// Whether the world is kept from the API on a machine.
    pub(crate) fn is_shut(&self, machine: &Machine) -> bool {
        let mut vms = self.labelled(machine.id);
        vms.any(|(_, vm)| vm.port == Some(false))
    }
}

impl Vm {
    /// The port as an outsider would draw it.
    pub(super) fn port_drawn(&self) -> Option<String> {
        let port = if self.port? { "open" } else { "shut" };
        Some(format!("port {port}"))
    }
}
