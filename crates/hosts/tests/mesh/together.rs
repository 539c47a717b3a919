//! A mesh comes about, is complete, and stays as it is.

use crate::tools::possible;
use crate::world::{World, all_reach_all, bring, mesh_of, meshed};
use hosts::mesh;
use std::time::Instant;

#[test]
fn three_hosts_reach_each_other_and_a_second_run_changes_nothing() {
    if !possible("three_hosts_reach_each_other_and_a_second_run_changes_nothing") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(3);
    let all: Vec<_> = hosts.iter().collect();
    let mesh = mesh_of(&all);
    let began = Instant::now();
    assert_eq!(
        bring(&mesh, &all),
        [5, 5, 5],
        "all but the key, which was there"
    );
    all_reach_all(&all);
    println!("mesh of 3, every way pinged: {:?}", began.elapsed());

    for host in &all {
        let address = format!("{}/20", host.address());
        assert!(host.sh("ip -4 -o address show dev wg0").contains(&address));
        let file = host.sh("cat /etc/wireguard/wg0.conf");
        assert!(file.contains(&format!("\nAddress = {address}\n")), "{file}");
        assert!(host.sh("ip link show dev wg0").contains("mtu 1380"));
        let heard = mesh::heard(&host.look()).unwrap().unwrap();
        assert_eq!((heard.peers, heard.lately), (2, 2));
    }

    let before: Vec<_> = all.iter().map(|host| host.state()).collect();
    let daemons: Vec<_> = all.iter().map(|host| host.daemon()).collect();
    let began = Instant::now();
    assert_eq!(bring(&mesh, &all), [0, 0, 0]);
    println!("nothing to do on 3 hosts at once: {:?}", began.elapsed());
    assert_eq!(
        before,
        all.iter().map(|host| host.state()).collect::<Vec<_>>()
    );
    assert_eq!(
        daemons,
        all.iter().map(|host| host.daemon()).collect::<Vec<_>>()
    );
}

#[test]
fn pods_are_reached_through_the_mesh_while_it_carries_them() {
    if !possible("pods_are_reached_through_the_mesh_while_it_carries_them") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(2);
    let (all, without) = meshed(&hosts);
    let mut mesh = without.clone();
    mesh.pods = Some("10.244.0.0/16".parse().unwrap());
    for (n, member) in mesh.members.iter_mut().enumerate() {
        member.pods = Some(format!("10.244.{}.0/24", n + 1).parse().unwrap());
        hosts[n].sh(&format!("ip address add 10.244.{}.9/32 dev lo", n + 1));
    }
    let daemon = hosts[0].daemon();
    assert_eq!(bring(&mesh, &all), [3, 3], "route, peers and file");
    let ping = "ping -n -c 1 -W 5 -I 10.244.1.9 10.244.2.9 >/dev/null && echo answers";
    assert_eq!(hosts[0].sh(ping).trim(), "answers");
    assert_eq!(bring(&mesh, &all), [0, 0]);
    for host in &all {
        let seen = mesh::read(&host.look());
        assert_eq!(seen, Ok(Some(host.tunnel(&mesh).fact())));
    }

    hosts[0].sh("ip route delete 10.244.0.0/16");
    let seen = mesh::read(&hosts[0].look()).unwrap().unwrap();
    assert_ne!(
        seen.live,
        hosts[0].tunnel(&mesh).fact().live,
        "a lost route must show"
    );
    assert_eq!(bring(&mesh, &all), [1, 0]);

    hosts[0].cut();
    hosts[0].sh(&format!("{} 2>/dev/null", mesh::START_FILE));
    assert_eq!(hosts[0].sh(ping).trim(), "answers", "also after a start");
    let now = hosts[0].daemon();
    assert_ne!(daemon, now);
    assert_eq!(bring(&without, &all), [3, 3]);
    assert_eq!(hosts[0].sh("ip route show 10.244.0.0/16").trim(), "");
    assert_eq!(hosts[0].daemon(), now, "nothing was started again");
}

#[test]
fn a_host_that_starts_again_has_its_mesh_back() {
    if !possible("a_host_that_starts_again_has_its_mesh_back") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(2);
    let (all, mesh) = meshed(&hosts);
    let before = hosts[0].state();

    hosts[0].cut();
    let look = mesh::read(&hosts[0].look()).unwrap().unwrap();
    let wish = hosts[0].tunnel(&mesh).fact();
    assert_eq!(look.told, wish.told);
    assert_ne!(look.live, wish.live, "an interface that is gone must show");

    hosts[0].sh(&format!("{} 2>/dev/null", mesh::START_FILE));
    assert_eq!(mesh::read(&hosts[0].look()), Ok(Some(wish)));
    assert_eq!(before, hosts[0].state());
    hosts[0].reaches(&hosts[1]);
    assert_eq!(bring(&mesh, &all), [0, 0]);

    // And without anybody who starts it, the next program does.
    hosts[0].cut();
    assert_eq!(bring(&mesh, &all), [3, 0], "interface, address and peers");
    assert_eq!(before, hosts[0].state());
    hosts[0].reaches(&hosts[1]);
}

#[test]
fn what_is_taken_down_leaves_nothing_and_can_be_brought_back() {
    if !possible("what_is_taken_down_leaves_nothing_and_can_be_brought_back") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(2);
    let (all, first) = meshed(&hosts);
    assert_eq!(hosts[0].well(&mesh::down_program()).changed(), 4);
    let left = "ip -o link show dev wg0 2>/dev/null; ls -A /etc/wireguard /etc/slipway/boot.d /run/wireguard";
    assert_eq!(
        hosts[0].sh(left),
        "/etc/slipway/boot.d:\n\n/etc/wireguard:\n\n/run/wireguard:\n"
    );
    hosts[0].daemon_ends();
    assert_eq!(mesh::read(&hosts[0].look()), Ok(None));
    assert_eq!(hosts[0].well(&mesh::down_program()).changed(), 0);

    let second = mesh_of(&all);
    assert_ne!(first.members[0].key, second.members[0].key);
    bring(&second, &all);
    hosts[1].reaches(&hosts[0]);
}
