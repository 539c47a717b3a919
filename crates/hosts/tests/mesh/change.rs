//! A mesh changes while it is used, and what others changed is mended.

use crate::stream::Stream;
use crate::tools::{possible, possible_with};
use crate::world::{Host, World, all_reach_all, bring, mesh_of, meshed};
use hosts::mesh;
use std::time::Instant;

/// The last handshake with each peer.
fn handshakes(host: &Host) -> String {
    host.sh("wg show wg0 latest-handshakes | sort")
}

#[test]
fn a_member_comes_and_goes_while_a_stream_runs() {
    let test = "a_member_comes_and_goes_while_a_stream_runs";
    if !possible(test) || !possible_with(test, &["socat"]) {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(4);
    let (four, three) = (
        hosts.iter().collect::<Vec<_>>(),
        hosts[..3].iter().collect::<Vec<_>>(),
    );
    let small = mesh_of(&three);
    bring(&small, &three);
    all_reach_all(&three);
    let mut stream = Stream::start(&hosts[0], &hosts[1]);
    let ping = hosts[2]
        .command(
            "ping",
            &[
                "-q",
                "-i",
                "0.01",
                "-c",
                "100",
                "-W",
                "20",
                &hosts[0].address(),
            ],
        )
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let daemons: Vec<_> = three.iter().map(|host| host.daemon()).collect();
    let before: Vec<_> = three.iter().map(|host| handshakes(host)).collect();

    let large = mesh_of(&four);
    let began = Instant::now();
    let changed = stream.during(|| bring(&large, &four));
    println!("a fourth member under load: {:?}", began.elapsed());
    assert_eq!(
        changed,
        [2, 2, 2, 5],
        "peers and configuration of those that were there"
    );
    all_reach_all(&four);
    let after: Vec<_> = three.iter().map(|host| handshakes(host)).collect();
    for (before, after) in before.iter().zip(&after) {
        assert!(
            before.lines().all(|line| after.contains(line)),
            "{before} became {after}"
        );
    }

    let changed = stream.during(|| bring(&small, &three));
    assert_eq!(changed, [2, 2, 2]);
    let gone = format!("ping -q -c 1 -W 1 {}", hosts[3].address());
    assert!(
        !hosts[0]
            .command("sh", &["-c", &gone])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(
        daemons,
        three.iter().map(|host| host.daemon()).collect::<Vec<_>>()
    );
    let said = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("100 received"), "{said}");
    println!("{} lines of 1001 bytes arrived", stream.end());
}

#[test]
fn an_address_that_changes_leaves_the_old_one() {
    if !possible("an_address_that_changes_leaves_the_old_one") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let mut wish = host.tunnel(&mesh_of(&[&host]));
    host.well(&mesh::tunnel_program(&wish));
    let daemon = host.daemon();
    for (address, prefix) in [
        ([10, 8, 1, 1], 24),
        ([10, 8, 1, 7], 24),
        ([10, 9, 0, 1], 29),
    ] {
        (wish.address, wish.prefix) = (address.into(), prefix);
        let report = host.well(&mesh::tunnel_program(&wish));
        assert_eq!(report.changed(), 2, "address and configuration");
        assert_eq!(mesh::read(&report).unwrap(), Some(wish.fact()));
        let live = host.sh("ip -4 -o address show dev wg0 | awk '{ print $4 }'");
        assert_eq!(live, format!("{}/{prefix}\n", wish.address));
        assert_eq!(
            host.sh("sed -n 's/^Address = //p' /etc/wireguard/wg0.conf"),
            live
        );
    }
    assert_eq!(daemon, host.daemon());
}

#[test]
fn what_somebody_changed_by_hand_is_seen_and_mended() {
    if !possible("what_somebody_changed_by_hand_is_seen_and_mended") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(2);
    let (_, mesh) = meshed(&hosts);
    let (host, peer) = (&hosts[0], hosts[1].key());
    let (wish, right) = (host.tunnel(&mesh), host.state());
    let stranger = "peer KJnqmMPIIJCTpqTtsGCuTHn1b4SAaQd5bYVPnHYCzS8= allowed-ips 10.8.9.9/32";
    // What is done, whether a look must see it, and how many items must change.
    let hands = [
        (format!("wg set wg0 peer {peer} remove"), true, 1),
        (format!("wg set wg0 {stranger}"), true, 1),
        (
            format!("wg set wg0 peer {peer} allowed-ips 10.8.9.0/24"),
            true,
            1,
        ),
        (
            format!("wg set wg0 peer {peer} persistent-keepalive 1"),
            false,
            1,
        ),
        (
            format!("wg genpsk >/mnt/psk; wg set wg0 peer {peer} preshared-key /mnt/psk"),
            false,
            1,
        ),
        (
            "wg genkey >/mnt/key; wg set wg0 private-key /mnt/key".to_owned(),
            true,
            1,
        ),
        ("wg set wg0 listen-port 999".to_owned(), false, 1),
        ("ip address add 10.8.14.1/20 dev wg0".to_owned(), true, 1),
        ("ip address flush dev wg0".to_owned(), true, 1),
        ("ip link set wg0 down".to_owned(), true, 1),
        ("ip link set wg0 mtu 1280".to_owned(), false, 1),
        ("ip link delete wg0".to_owned(), true, 3),
        (
            "echo '# mine' >>/etc/wireguard/wg0.conf".to_owned(),
            false,
            1,
        ),
        (
            "chmod 644 /etc/wireguard/wg0.conf /etc/wireguard/slipway.key".to_owned(),
            false,
            2,
        ),
        (format!("rm {}", mesh::START_FILE), false, 1),
    ];
    for (hand, seen, items) in hands {
        host.sh(&hand);
        let look = mesh::read(&host.look()).unwrap();
        assert_eq!(look != Some(wish.fact()), seen, "{hand}");
        assert_eq!(
            host.well(&mesh::tunnel_program(&wish)).changed(),
            items,
            "{hand}"
        );
        assert_eq!(host.state(), right, "{hand}");
        assert_eq!(
            host.well(&mesh::tunnel_program(&wish)).changed(),
            0,
            "{hand}"
        );
    }
    host.reaches(&hosts[1]);
}
