//! Giving a static machine back: what we wrote is gone, what was there before is as it was.

use crate::recipe::item::{Item, State, Unit};
use crate::recipe::network::proxy_files;
use crate::recipe::{Level, node, services};

/// Takes everything of ours from a host. `first` are what other parts of the program take away
/// before: their services, files and interfaces.
pub fn removal(level: Level, first: Vec<Item>) -> Vec<Item> {
    let mut items = first;
    items.push(Item::Command {
        name: "reset of Kubernetes".to_owned(),
        unless: "! command -v kubeadm || ! [ -e /etc/kubernetes/kubelet.conf ]".to_owned(),
        run: "timeout 120 kubeadm reset --force && rm -rf /etc/kubernetes /etc/cni/net.d"
            .to_owned(),
    });
    items.extend(["kubelet", "containerd"].map(given_back));
    items.extend(proxy_files(None, level));
    // Before the packages go: dpkg keeps a directory in which there is still something.
    items.extend(node::REPLACED.map(|path| Item::Returned {
        path: path.to_owned(),
    }));
    items.push(Item::Removed { names: None });
    items.extend(node::WRITTEN.map(Item::absent));
    items.extend([
        Item::Restored,
        globbed(
            "programs that were placed",
            "/var/lib/slipway/placed/*",
            // Each file's second word is what it remembers.
            "read -r word path rest <\"$one\" && rm -f \"$path\" \"$one\"",
        ),
        globbed(
            "mirrors",
            "/etc/apt/sources.list.d/slipway-* /etc/apt/keyrings/slipway-*",
            "rm -f \"$one\"",
        ),
        globbed("services", "/etc/slipway/services/*", SERVICE_GONE),
        Item::absent(services::DIRECTORY),
        Item::absent("/run/slipway"),
        Item::absent("/var/log/slipway"),
        Item::absent("/etc/slipway"),
        Item::absent("/var/lib/slipway"),
    ]);
    items
}

/// Stops what our own supervision runs, whoever asked for it.
const SERVICE_GONE: &str = "/usr/local/lib/slipway/supervise stop \"${one##*/}\" && rm -f \"$one\"";

/// A service of a package: if we started it, it is stopped before its package goes.
fn given_back(name: &str) -> Item {
    Item::When {
        condition: format!("[ -e /var/lib/slipway/services/{name} ]"),
        items: vec![Item::Service {
            name: name.to_owned(),
            unit: Unit::Packaged,
            state: State::Stopped,
            restart_when: Vec::new(),
        }],
    }
}

/// Does something to each `$one` of the paths that a pattern names.
fn globbed(name: &str, pattern: &str, each: &str) -> Item {
    Item::Command {
        name: name.to_owned(),
        unless: format!("for one in {pattern}; do [ ! -e \"$one\" ] || exit 1; done"),
        run: format!("for one in {pattern}; do [ ! -e \"$one\" ] || {{ {each}; }} || exit 1; done"),
    }
}
