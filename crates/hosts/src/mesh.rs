//! The end of a cluster's private network on one host: a `WireGuard` interface and its peers.
//!
//! Programs are rendered here from a [`Tunnel`], and what hosts tell is read. The key pair is
//! made on the host and only its public half leaves it. Peers are changed while tunnels are up:
//! only those that differ are named, nothing is restarted, and a peer that has moved is kept
//! where it is. What stays for the next start of the machine is a file as `wg-quick` reads it,
//! whose first line says whose it is and which wish came about.

mod read;

pub use read::{heard, key, read};

use crate::program::{Program, quoted};
use model::mesh::{PORT, Peer, Tunnel};
use std::time::Duration;
use zeroize::Zeroizing;

/// The name of the interface.
pub const INTERFACE: &str = "wg0";

/// What an interface lets through at most, in bytes: room for the tunnel's own header on a path
/// of 1460 or more.
pub const MTU: u16 = 1380;

/// Where the interface and its peers are kept, for the next start of the machine.
pub const FILE: &str = "/etc/wireguard/wg0.conf";

/// Where the private key is, readable for root alone.
pub const KEY_FILE: &str = "/etc/wireguard/slipway.key";

/// What brings the mesh up when a machine without systemd starts; to be run by its init.
pub const START_FILE: &str = "/etc/slipway/boot.d/mesh";

/// Serialises the programs on one host.
const LOCK: &str = "/run/slipway-mesh.lock";

const COMMON: &str = include_str!("mesh/common.sh");
const TUNNEL: &str = include_str!("mesh/tunnel.sh");
const DOWN: &str = include_str!("mesh/down.sh");
const LOOK: &str = include_str!("mesh/look.sh");
const DIFFER: &str = include_str!("mesh/differ.awk");
const START: &str = include_str!("mesh/start.sh");

/// What only makes a key.
const KEY: &str = "main() {\n    began=yes\n    needs flock wg timeout\n    alone\n    key\n}\n";

/// The program that makes the host's key pair where there is none, and tells its public half.
pub fn key_program() -> Program {
    let text = [&variables(), COMMON, KEY, &run()].concat();
    program("make the key of the mesh", text, Duration::from_secs(40))
}

/// The program that brings the host's end of the mesh about, and tells it like
/// [`look_snippet`].
pub fn tunnel_program(tunnel: &Tunnel) -> Program {
    let mut program = change_program(tunnel);
    program.text.push_str(LOOK);
    program
}

/// The same for whoever looks afterwards anyway.
pub(crate) fn change_program(tunnel: &Tunnel) -> Program {
    let own = [
        ("address", format!("{}/{}", tunnel.address, tunnel.prefix)),
        (
            "pods",
            tunnel.pods.map(|pods| pods.to_string()).unwrap_or_default(),
        ),
        ("wish", configuration(tunnel).trim_end().to_owned()),
        ("differ", DIFFER.to_owned()),
        ("start", START.trim_end().to_owned()),
    ];
    let own = own.map(|(name, value)| assignment(name, &value)).concat();
    let text = [&variables(), &own, COMMON, TUNNEL, &run()].concat();
    let title = format!("mesh with {} peers", tunnel.peers.len());
    program(&title, text, Duration::from_mins(2))
}

/// The program that takes the host's end of the mesh away, its key included.
pub fn down_program() -> Program {
    let text = [&variables(), COMMON, DOWN, &run()].concat();
    program("leave the mesh", text, Duration::from_mins(2))
}

/// Lines for a program that looks at a host: they tell `mesh-key`, `mesh-told`, `mesh-live`,
/// `mesh-peers` and `mesh-fresh`, as far as there is something to tell.
pub const fn look_snippet() -> &'static str {
    LOOK
}

/// The file that stays on the host, without the private key.
fn configuration(tunnel: &Tunnel) -> String {
    let Tunnel {
        address,
        prefix,
        pods,
        peers,
    } = tunnel;
    let told = tunnel.fact().told;
    // The network's own route comes with the address; `wg-quick` need not add one for each peer.
    let head = format!(
        "# slipway {told}\n# What is changed here by hand is undone.\n[Interface]\n\
         Address = {address}/{prefix}\nListenPort = {PORT}\nMTU = {MTU}\nTable = off\n"
    );
    let pods = pods
        .map(|pods| format!("PostUp = ip -4 route replace {pods} dev {INTERFACE} src {address}\n"));
    let head = head + &pods.unwrap_or_default();
    let peers: String = peers.iter().map(section).collect();
    head + &peers
}

fn section(peer: &Peer) -> String {
    let Peer {
        key,
        endpoint,
        keepalive,
        ..
    } = peer;
    let allowed = peer.allowed(",");
    let mut text = format!("\n[Peer]\nPublicKey = {key}\nAllowedIPs = {allowed}\n");
    if let Some(endpoint) = endpoint {
        text.push_str(&format!("Endpoint = {endpoint}\n"));
    }
    if let Some(seconds) = keepalive {
        text.push_str(&format!("PersistentKeepalive = {seconds}\n"));
    }
    text
}

/// What every program of the mesh begins with.
fn variables() -> String {
    let of = [
        ("interface", INTERFACE.to_owned()),
        ("port", PORT.to_string()),
        ("mtu", MTU.to_string()),
        ("key_file", KEY_FILE.to_owned()),
        ("file", FILE.to_owned()),
        ("start_file", START_FILE.to_owned()),
        ("began", String::new()),
    ];
    of.map(|(name, value)| assignment(name, &value)).concat()
}

fn assignment(name: &str, value: &str) -> String {
    format!("{name}={}\n", quoted(value))
}

/// Runs `main`. A program that came only in part has no such line and does nothing; what it runs
/// cannot read the rest of the text.
fn run() -> String {
    format!(
        "main </dev/null 9>{LOCK}\n[ -n \"$began\" ] || fail HOST-007 'could not write {LOCK}'\n"
    )
}

fn program(title: &str, text: String, limit: Duration) -> Program {
    Program {
        title: title.to_owned(),
        text: Zeroizing::new(text),
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn tunnel() -> Tunnel {
        let peer = |n: u8, endpoint: Option<&str>, keepalive| Peer {
            key: format!("{}=", char::from(b'A' + n).to_string().repeat(43))
                .parse()
                .unwrap(),
            address: [10, 0, 0, n].into(),
            pods: (n == 2).then(|| "10.244.2.0/24".parse().unwrap()),
            endpoint: endpoint.map(|at| at.parse().unwrap()),
            keepalive,
        };
        Tunnel {
            address: [10, 0, 0, 1].into(),
            prefix: 20,
            pods: Some("10.244.0.0/16".parse().unwrap()),
            peers: vec![
                peer(2, Some("192.0.2.2:51820"), Some(25)),
                peer(3, None, None),
            ],
        }
    }

    #[test]
    fn the_file_has_the_networks_prefix_and_no_private_key() {
        expect![[r#"
            # slipway 4ac78cda1656186e
            # What is changed here by hand is undone.
            [Interface]
            Address = 10.0.0.1/20
            ListenPort = 51820
            MTU = 1380
            Table = off
            PostUp = ip -4 route replace 10.244.0.0/16 dev wg0 src 10.0.0.1

            [Peer]
            PublicKey = CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC=
            AllowedIPs = 10.0.0.2/32,10.244.2.0/24
            Endpoint = 192.0.2.2:51820
            PersistentKeepalive = 25

            [Peer]
            PublicKey = DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD=
            AllowedIPs = 10.0.0.3/32
        "#]]
        .assert_eq(&configuration(&tunnel()));
    }

    #[test]
    fn the_look_and_the_start_name_what_the_programs_make() {
        for name in [INTERFACE, FILE, KEY_FILE] {
            assert!(LOOK.contains(name), "{name}");
        }
        assert!(START.contains(INTERFACE));
        assert!(FILE.ends_with(&format!("/{INTERFACE}.conf")));
    }
}
