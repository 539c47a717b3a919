//! Programs that are killed at any moment: the next one ends in the same world.

use crate::tools::possible;
use crate::world::{Host, World, mesh_of};
use hosts::mesh;
use hosts::program::Program;
use model::mesh::{Peer, Tunnel};
use rustix::process::{Pid, Signal, kill_process_group};
use std::time::{Duration, Instant};

/// How many moments.
const MOMENTS: u32 = 30;

/// Starts a program and kills it and all it started after a while.
fn kill_after(host: &Host, program: &Program, moment: Duration) {
    let mut child = host.start(program);
    std::thread::sleep(moment);
    let group = Pid::from_child(&child);
    kill_process_group(group, Signal::KILL).unwrap();
    drop(child.wait());
}

/// Leaves the other wish, an interface that died, or nothing but the key; how many items a program
/// changes that begins there.
fn begin_from(host: &Host, from: usize) -> usize {
    match from {
        0 => return 3,
        1 => host.cut(),
        _ => drop(host.sh("ip link delete wg0; rm /etc/wireguard/wg0.conf")),
    }
    4
}

/// Two wishes that differ in everything that can.
fn wishes(host: &Host) -> [Tunnel; 2] {
    let peer = |letter: &str, n: u8, at: Option<&str>, keepalive| Peer {
        key: format!("{}A=", letter.repeat(42)).parse().unwrap(),
        address: [10, 8, 3, n].into(),
        pods: None,
        endpoint: at.map(|at| at.parse().unwrap()),
        keepalive,
    };
    let mut first = host.tunnel(&mesh_of(&[host]));
    let mut second = first.clone();
    first.peers = vec![
        peer("a", 1, Some("192.0.2.50:51820"), Some(25)),
        peer("b", 2, None, None),
        peer("c", 3, Some("192.0.2.51:51820"), None),
    ];
    (second.address, second.prefix) = ([10, 8, 4, 4].into(), 21);
    second.peers = vec![
        peer("a", 1, Some("192.0.2.60:51820"), None),
        peer("c", 2, Some("192.0.2.51:51820"), Some(25)),
        peer("d", 3, Some("[fd00::1]:51820"), None),
    ];
    [first, second]
}

#[test]
fn a_program_that_was_killed_is_finished_by_the_next() {
    if !possible("a_program_that_was_killed_is_finished_by_the_next") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let wishes = wishes(&host);
    let programs = wishes.each_ref().map(mesh::tunnel_program);
    let states = programs.each_ref().map(|program| {
        host.well(program);
        host.state()
    });
    let key = host.key();
    let (mut half_way, mut first) = (0, 0);
    let whole = [0, 1, 2].map(|from| {
        begin_from(&host, from);
        let began = Instant::now();
        host.well(&programs[first]);
        first = 1 - first;
        began.elapsed()
    });
    for (moment, from) in (0..MOMENTS).zip([0, 1, 2].into_iter().cycle()) {
        let items = begin_from(&host, from);
        kill_after(
            &host,
            &programs[first],
            whole[from] * (moment + 1) / MOMENTS,
        );
        let report = host.well(&programs[first]);
        half_way += usize::from((1..items).contains(&report.changed()));
        assert_eq!(mesh::read(&report), Ok(Some(wishes[first].fact())));
        assert_eq!(host.state(), states[first], "killed at moment {moment}");
        assert_eq!(host.well(&programs[first]).changed(), 0);
        first = 1 - first;
    }
    assert_eq!(host.key(), key, "the key survives");
    assert!(half_way > 0, "no kill came in between");
    println!("{half_way} of {MOMENTS} kills came in between, in {whole:?}");
    assert_ne!(states[0], states[1]);
}

#[test]
fn a_removal_that_was_killed_is_finished_by_the_next() {
    if !possible("a_removal_that_was_killed_is_finished_by_the_next") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let [wish, _] = wishes(&host);
    for moment in 1..8 {
        host.well(&mesh::tunnel_program(&wish));
        kill_after(
            &host,
            &mesh::down_program(),
            Duration::from_millis(8) * moment,
        );
        host.well(&mesh::down_program());
        let left = host
            .sh("ip -o link show dev wg0 2>/dev/null; find /etc/wireguard /etc/slipway -type f");
        assert_eq!(left, "");
        assert_eq!(host.well(&mesh::down_program()).changed(), 0);
    }
}

#[test]
fn a_key_whose_making_was_killed_is_whole_or_not_there() {
    if !possible("a_key_whose_making_was_killed_is_whole_or_not_there") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let file = mesh::KEY_FILE;
    for moment in 0..10 {
        host.sh(&format!("rm -f {file}"));
        kill_after(
            &host,
            &mesh::key_program(),
            Duration::from_millis(4) * moment,
        );
        let there = host.sh(&format!("[ ! -e {file} ] || wg pubkey <{file}"));
        let key = host.key().to_string();
        assert!(
            there.is_empty() || there.trim() == key,
            "{there} became {key}"
        );
        assert_eq!(
            host.sh(&format!("stat -c %a {file}; ls /etc/wireguard")),
            "600\nslipway.key\n"
        );
    }
}
