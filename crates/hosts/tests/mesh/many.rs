//! A mesh of a hundred, as one of them sees it.

use crate::tools::possible;
use crate::world::{World, mesh_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hosts::mesh;
use model::mesh::Peer;
use std::time::Instant;

#[test]
fn one_more_than_a_hundred_peers_is_a_small_change() {
    if !possible("one_more_than_a_hundred_peers_is_a_small_change") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let peer = |n: u8| Peer {
        key: STANDARD.encode([n; 32]).parse().unwrap(),
        address: [10, 8, 5, n].into(),
        pods: None,
        endpoint: Some(([192, 0, 2, 200], 51820).into()),
        keepalive: Some(25),
    };
    let mut wish = host.tunnel(&mesh_of(&[&host]));
    wish.peers = (1..=100).map(peer).collect();
    let began = Instant::now();
    let program = mesh::tunnel_program(&wish);
    println!(
        "100 peers: {} bytes, made in {:?}",
        program.text.len(),
        began.elapsed()
    );
    let timed = |program: &hosts::program::Program, what: &str| {
        let began = Instant::now();
        let report = host.well(program);
        println!("{what}: {:?}", began.elapsed());
        report
    };
    assert_eq!(timed(&program, "100 peers from nothing").changed(), 5);
    let daemon = host.daemon();
    assert_eq!(timed(&program, "100 peers, nothing to do").changed(), 0);
    timed_look(&host);
    wish.peers.push(peer(101));
    let report = timed(&mesh::tunnel_program(&wish), "the 101st peer");
    assert_eq!(report.changed(), 2);
    assert!(
        report
            .tail
            .contains(&"peers: 1 added, 0 changed, 0 removed".to_owned()),
        "{report:?}"
    );
    assert_eq!(mesh::read(&report), Ok(Some(wish.fact())));
    wish.peers.clear();
    let report = timed(&mesh::tunnel_program(&wish), "no peers any more");
    assert_eq!(mesh::read(&report), Ok(Some(wish.fact())));
    assert_eq!(mesh::heard(&report).unwrap().unwrap().peers, 0);
    assert_eq!(host.daemon(), daemon);
}

fn timed_look(host: &crate::world::Host) {
    let began = Instant::now();
    let report = host.look();
    println!("a look at 100 peers: {:?}", began.elapsed());
    assert_eq!(mesh::heard(&report).unwrap().unwrap().peers, 100);
}
