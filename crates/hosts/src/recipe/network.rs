//! How a host reaches the world and its peers: the installation proxy, and tools for the mesh.

use crate::recipe::Level;
use crate::recipe::item::{Item, State, Unit};
use model::host::Proxy;

/// The proxy as apt reads it.
const APT: &str = "/etc/apt/apt.conf.d/90slipway-proxy";

/// The file that all programs of a host may read their environment from.
const ENVIRONMENT: &str = "/etc/environment";

/// What tells our lines in it.
const MARKER: &str = "proxy";

/// Services that reach registries.
const REACHING: [&str; 2] = ["containerd", "kubelet"];

/// The installation proxy: on, with other values, or off without a trace. Services that run are
/// restarted when it changed.
pub fn proxy(proxy: Option<&Proxy>, level: Level) -> Vec<Item> {
    let mut items = proxy_files(proxy, level);
    let names: Vec<String> = items.iter().map(Item::name).collect();
    items.extend(REACHING.map(|service| kept(service, &names)));
    items
}

/// A service that does not go on with old settings.
pub(crate) fn kept(service: &str, read: &[String]) -> Item {
    Item::Service {
        name: service.to_owned(),
        unit: Unit::Packaged,
        state: State::Kept,
        restart_when: read.to_vec(),
    }
}

fn drop_in(service: &str) -> String {
    format!("/etc/systemd/system/{service}.service.d/90-slipway-proxy.conf")
}

/// The files of the proxy alone.
pub(crate) fn proxy_files(proxy: Option<&Proxy>, level: Level) -> Vec<Item> {
    let Some(proxy) = proxy else {
        return proxy_off();
    };
    let endpoint = proxy.endpoint.replace(['"', '\n'], "");
    let except = proxy.except.join(",").replace(['"', '\n'], "");
    let mut apt =
        format!("Acquire::http::Proxy \"{endpoint}\";\nAcquire::https::Proxy \"{endpoint}\";\n");
    for host in &proxy.except {
        // apt knows hosts here, and neither networks nor suffixes.
        if !host.is_empty() && !host.contains(['/', '"', '\n', '*']) && !host.starts_with('.') {
            apt.push_str(&format!("Acquire::http::Proxy::{host} \"DIRECT\";\n"));
            apt.push_str(&format!("Acquire::https::Proxy::{host} \"DIRECT\";\n"));
        }
    }
    let values = [
        ("HTTP_PROXY", &endpoint),
        ("HTTPS_PROXY", &endpoint),
        ("NO_PROXY", &except),
    ];
    let both = values.iter().flat_map(|(key, value)| {
        [(*key).to_owned(), key.to_lowercase()].map(|key| format!("{key}=\"{value}\""))
    });
    let mut items = vec![
        Item::file(APT, apt),
        Item::Block {
            path: ENVIRONMENT.to_owned(),
            marker: MARKER.to_owned(),
            lines: both.collect(),
        },
    ];
    match level {
        Level::Systemd => items.extend(REACHING.map(|service| {
            let text = format!("[Service]\nEnvironmentFile=-{ENVIRONMENT}\n");
            Item::file(drop_in(service), text)
        })),
        Level::Lite => {}
    }
    items
}

fn proxy_off() -> Vec<Item> {
    let block = Item::Block {
        path: ENVIRONMENT.to_owned(),
        marker: MARKER.to_owned(),
        lines: Vec::new(),
    };
    let mut items = vec![Item::absent(APT), block];
    items.extend(REACHING.map(|service| Item::absent(drop_in(service))));
    items
}

/// Where a host looks for the API of its cluster; without lines it knows of none.
pub fn api_at(lines: Vec<String>) -> Item {
    Item::Block {
        path: "/etc/hosts".to_owned(),
        marker: "api".to_owned(),
        lines,
    }
}

/// What makes tunnels: the kernel's, else a program. The fact `tunnel` tells which is to be had.
pub fn mesh_tools() -> Vec<Item> {
    vec![
        Item::packages(&["wireguard-tools", "iproute2"]),
        Item::When {
            // One that we brought may be there and yet be only half installed.
            condition: format!(
                "! {KERNEL_TUNNEL} && {{ ! command -v wireguard-go || \
                 grep -qx wireguard-go /var/lib/slipway/packages; }}"
            ),
            items: vec![Item::packages(&["wireguard-go"])],
        },
        Item::Told {
            key: "tunnel".to_owned(),
            print: format!(
                "if {KERNEL_TUNNEL} >/dev/null 2>&1; then echo kernel; \
                 elif command -v wireguard-go >/dev/null && [ -c /dev/net/tun ]; then echo program; \
                 else echo none; fi"
            ),
        },
    ]
}

/// Whether the kernel makes tunnels: it says so, or it makes one that is thrown away.
const KERNEL_TUNNEL: &str = "{ [ -d /sys/module/wireguard ] || \
    { ip link add slipway-try type wireguard && ip link del slipway-try; }; }";
