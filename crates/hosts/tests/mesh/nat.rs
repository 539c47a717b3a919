//! A member that nobody can dial.

use crate::tools::{possible, possible_with};
use crate::world::{Host, World, all_reach_all, bring, mesh_of, meshed};

/// Where a host believes a peer to be.
fn endpoint(host: &Host, peer: &Host) -> String {
    let line = format!("wg show wg0 endpoints | grep -F '{}' | cut -f2", peer.key());
    host.sh(&line).trim().to_owned()
}

#[test]
fn a_host_behind_nat_dials_out_and_is_reached() {
    let test = "a_host_behind_nat_dials_out_and_is_reached";
    if !possible(test) || !possible_with(test, &["nft"]) {
        return;
    }
    let world = World::new();
    let mut hosts = world.hosts(4);
    // Given, too: it tries to dial the hidden one, in vain.
    hosts[2].given = true;
    let (_router, hidden) = world.hidden(9);
    let all: Vec<_> = hosts[..3].iter().chain([&hidden]).collect();
    bring(&mesh_of(&all), &all);
    all_reach_all(&all);
    let learnt: Vec<_> = hosts[..3]
        .iter()
        .map(|host| endpoint(host, &hidden))
        .collect();
    for at in &learnt {
        let (host, port) = at.rsplit_once(':').unwrap();
        assert_eq!(host, "192.0.2.9", "the router's address");
        assert_ne!(port, "51820", "the router chose a port of its own");
    }

    // Another member comes: where the hidden one is must not be forgotten, nor dialled anew.
    let more: Vec<_> = hosts.iter().chain([&hidden]).collect();
    let mesh = mesh_of(&more);
    bring(&mesh, &more);
    let kept: Vec<_> = hosts[..3]
        .iter()
        .map(|host| endpoint(host, &hidden))
        .collect();
    assert_eq!(learnt, kept);
    all_reach_all(&more);
    assert_eq!(bring(&mesh, &more), [0; 5]);
}

#[test]
fn a_peer_that_is_elsewhere_now_is_dialled_there() {
    if !possible("a_peer_that_is_elsewhere_now_is_dialled_there") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(2);
    let (all, mut mesh) = meshed(&hosts);
    hosts[0].reaches(&hosts[1]);
    hosts[1].sh(
        "ip address add 192.0.2.77/24 dev eth0; ip address del 192.0.2.2/24 dev eth0
                 ip address replace 192.0.2.77/24 dev eth0",
    );
    mesh.members[1].at = "192.0.2.77".parse().unwrap();
    assert_eq!(bring(&mesh, &all), [2, 0], "peers and configuration");
    assert_eq!(endpoint(&hosts[0], &hosts[1]), "192.0.2.77:51820");
    hosts[0].reaches(&hosts[1]);
}
