//! Giving a static machine back: what we wrote is gone, what was there before is as it was.

use crate::recipe::images::STAGED;
use crate::recipe::item::{Item, State, Unit};
use crate::recipe::network::{api_at, kept, proxy_files};
use crate::recipe::{Level, kubeadm, node, services};

/// Takes everything of ours from a host, but for what other parts of the program take away
/// before: their services, files and interfaces.
pub fn removal(level: Level) -> Vec<Item> {
    let mut items = vec![Item::Command {
        name: "reset of Kubernetes".to_owned(),
        unless: format!("[ ! -e {STAGED} ]"),
        run: RESET.to_owned(),
    }];
    items.extend(SERVICES.map(given_back));
    items.extend(kubeadm::given_back());
    items.push(api_at(Vec::new()));
    let mut read = proxy_files(None, level);
    // Before the packages go: dpkg keeps a directory in which there is still something.
    read.extend(node::REPLACED.map(|path| Item::Returned {
        path: path.to_owned(),
    }));
    let names: Vec<String> = read.iter().map(Item::name).collect();
    items.extend(read);
    items.extend(SERVICES.map(|name| kept(name, &names)));
    items.push(Item::Removed { names: None });
    items.extend(node::WRITTEN.map(Item::absent));
    items.extend([
        guests(),
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
        Item::absent("/var/lib/slipway"),
        // Whose the host is goes last: until then whoever comes again finds it to be ours.
        globbed(
            "what was told",
            "/etc/slipway/[!m]* /etc/slipway/m[!a]*",
            "rm -rf \"$one\"",
        ),
        Item::absent("/etc/slipway"),
    ]);
    items
}

/// What takes Kubernetes away, where we brought it.
const RESET: &str = include_str!("reset.sh");

/// Services of packages that we may have started.
const SERVICES: [&str; 2] = ["kubelet", "containerd"];

/// Stops what our own supervision runs, whoever asked for it.
const SERVICE_GONE: &str = "/usr/local/lib/slipway/supervise stop \"${one##*/}\" && rm -f \"$one\"";

/// A service of a package: if we started it, it is stopped before its package goes. One that ran
/// before us goes on.
fn given_back(name: &str) -> Item {
    Item::When {
        condition: format!(
            "[ -e /var/lib/slipway/services/{name} ] && \
             ! {{ read -r sw_was </var/lib/slipway/before/{name} && [ \"$sw_was\" = running1 ]; }}"
        ),
        items: vec![Item::Service {
            name: name.to_owned(),
            unit: Unit::Packaged,
            state: State::Stopped,
            restart_when: Vec::new(),
        }],
    }
}

/// The keys of people who were let in, where the file is still as it was named then.
fn guests() -> Item {
    Item::Command {
        name: "keys of guests".to_owned(),
        unless: "[ ! -e /var/lib/slipway/guests ]".to_owned(),
        run: GUESTS_GONE.to_owned(),
    }
}

/// Takes our lines out of a file of keys, and leaves its owner and mode.
const GUESTS_GONE: &str = "read -r file </var/lib/slipway/guests && \
    { [ ! -e \"$file\" ] || { cp -p \"$file\" \"$file.slipway\" && \
    awk '!match($NF, /^slipway-guest-until-[0-9]+$/)' \"$file\" >\"$file.slipway\" && \
    mv -f \"$file.slipway\" \"$file\"; }; } && rm -f /var/lib/slipway/guests";

/// Does something to each `$one` of the paths that a pattern names.
fn globbed(name: &str, pattern: &str, each: &str) -> Item {
    Item::Command {
        name: name.to_owned(),
        unless: format!("for one in {pattern}; do [ ! -e \"$one\" ] || exit 1; done"),
        run: format!("for one in {pattern}; do [ ! -e \"$one\" ] || {{ {each}; }} || exit 1; done"),
    }
}
