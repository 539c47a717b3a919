//! The world as an outsider would draw it: what exists, and nothing about how it came to be.

use super::state::{Duty, Node, State};
use model::id::{ClusterId, MachineId};
use model::time::Timestamp;
use std::collections::BTreeMap;

impl State {
    /// One line per machine that exists or is still a node, by cluster and name.
    ///
    /// References are left out: how often a provider was asked does not matter to whoever
    /// compares two ends.
    pub(crate) fn picture(&self, cluster: Option<ClusterId>, now: Timestamp) -> String {
        let mut lines: BTreeMap<(ClusterId, String, MachineId), Vec<String>> = BTreeMap::new();
        let shown = |id: ClusterId| cluster.is_none_or(|cluster| cluster == id);
        for vm in self.vms.values().filter(|vm| shown(vm.by.cluster)) {
            let by = &vm.by;
            let word = match () {
                () if vm.lent => "lent",
                () if vm.stopping => "stopping",
                () if !vm.powered => "off",
                () if vm.boots_at > now => "booting",
                () => "running",
            };
            let key = (by.cluster, by.name.to_string(), by.machine);
            let line = lines.entry(key).or_default();
            line.push(word.to_owned());
            if let Some(kit) = &vm.kit {
                line.extend(self.drawn(by.cluster, kit, now));
            }
            line.extend(vm.port_drawn());
        }
        for (address, host) in &self.hosts {
            let Some(by) = host.owner.as_ref().filter(|by| shown(by.cluster)) else {
                continue;
            };
            let word = match (host.powered, host.prepared) {
                _ if host.lent => "lent",
                (false, _) => "off",
                (true, true) => "running",
                (true, false) => "in preparation",
            };
            let key = (by.cluster, by.name.to_string(), by.machine);
            let line = lines.entry(key).or_default();
            line.push(format!("at {address}, {word}"));
            if let Some(kit) = &host.kit {
                line.extend(self.drawn(by.cluster, kit, now));
            }
        }
        for (id, kube) in self.clusters.iter().filter(|(id, _)| shown(**id)) {
            for (machine, node) in &kube.nodes {
                let key = (*id, node.name.to_string(), *machine);
                lines.entry(key).or_default().push(self.told(node, now));
            }
        }
        for named in self.names.values().filter(|named| shown(named.by.cluster)) {
            let by = &named.by;
            let key = (by.cluster, by.name.to_string(), by.machine);
            if let Some(drawn) = named.drawn() {
                lines.entry(key).or_default().push(drawn);
            }
        }
        let clusters = self.clusters.keys().filter(|id| shown(**id));
        let drawn = clusters.filter_map(|id| Some(format!("has {}\n", self.addons_drawn(*id)?)));
        let kubes = self.clusters.iter().filter(|(id, _)| shown(**id));
        let strangers = kubes.flat_map(|(_, kube)| &kube.strangers);
        let strangers = strangers.map(|name| format!("{name}: a node of somebody else\n"));
        let drawn: String = drawn.chain(strangers).collect();
        let told = lines
            .into_iter()
            .map(|((_, name, _), facts)| format!("{name}: {}\n", facts.join(", ")));
        told.collect::<Vec<_>>().concat() + &drawn
    }

    fn told(&self, node: &Node, now: Timestamp) -> String {
        let mut line = format!("{} node {}", node.role, node.version);
        for (is, word) in [
            (!self.ready(node, now), ", not ready"),
            (node.duty == Duty::Cordoned, ", cordoned"),
            (node.duty == Duty::Drained, ", drained"),
            (node.duty == Duty::Gated, ", waits at its gates"),
        ] {
            if is {
                line.push_str(word);
            }
        }
        if let Some(care) = &node.told.care {
            line.push_str(&format!(", carries {care}"));
        }
        line
    }
}
