//! How the pods of a node are connected where the mesh carries them: every pod has a cable to its
//! host, the host knows the way, and only what leaves the cluster wears the host's address.

use super::Node;
use hosts::mesh::MTU;
use hosts::recipe::item::{Item, State, Unit};
use serde_json::json;

/// Where container runtimes look for how to connect pods. The first in the order of names counts.
const CONFIGURATION: &str = "/etc/cni/net.d/10-slipway.conflist";

/// What gives pods the host's address outside the cluster.
const SCRIPT: &str = "/usr/local/lib/slipway/pods";

/// What runs it at each boot.
const SERVICE: &str = "slipway-pods";

const TEXT: &str = include_str!("pods.sh");

/// What connects the pods of a node; nothing where somebody else does.
pub(super) fn items(node: &Node<'_>) -> Vec<Item> {
    let (around, machine) = (node.around, node.machine);
    let kubernetes = &around.kubernetes;
    let Some(part) = kubernetes.pods_at(around.network, machine.address) else {
        return Vec::new();
    };
    let plugins = json!({
        "cniVersion": "1.0.0",
        "name": "slipway",
        "plugins": [
            {
                "type": "ptp",
                "mtu": MTU,
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": part.to_string() }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    });
    let unit = format!(
        "[Unit]\nDescription=Slipway: what pods are called outside the cluster\n\
         After=network.target\nBefore=kubelet.service\n\n[Service]\nType=oneshot\n\
         RemainAfterExit=yes\nExecStart=/bin/sh {SCRIPT} {} {}\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        kubernetes.pods, around.network
    );
    let script = Item::file(SCRIPT, TEXT);
    let unit = Item::file(format!("/etc/systemd/system/{SERVICE}.service"), unit);
    let read = vec![script.name(), unit.name()];
    vec![
        Item::file(CONFIGURATION, format!("{plugins:#}\n")),
        script,
        unit,
        Item::Service {
            name: SERVICE.to_owned(),
            unit: Unit::Packaged,
            state: State::Running,
            restart_when: read,
        },
    ]
}
