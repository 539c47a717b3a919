//! Hosts on which something is wrong: each has its own error, and nothing is lost.

use crate::tools::possible;
use crate::world::{Host, World, bring, mesh_of, meshed};
use hosts::error::Kind;
use hosts::mesh;
use hosts::program::Program;
use zeroize::Zeroizing;

/// The kind of error that a program ends with; the lines for people must say something.
fn failure(host: &Host, program: &Program) -> Kind {
    let report = host.run(program);
    let (code, what) = report.failure().unwrap_or_else(|| panic!("{report:?}"));
    assert!(what.len() > 10, "{what}");
    assert_ne!(report.status, Some(0));
    Kind::of_code(code).unwrap()
}

/// Puts another program in the place of `wg`.
fn replace_wg(host: &Host, text: &str) {
    host.sh(&format!(
        "cat >/mnt/wg <<'END'\n#!/bin/sh\n{text}\nEND\nchmod 755 /mnt/wg; mount --bind /mnt/wg $(command -v wg)"
    ));
}

#[test]
fn a_missing_tool_is_named() {
    if !possible("a_missing_tool_is_named") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let wish = host.tunnel(&mesh_of(&[&host]));
    host.sh("mount --bind /dev/null $(command -v wg)");
    for program in [mesh::key_program(), mesh::tunnel_program(&wish)] {
        let report = host.run(&program);
        assert_eq!(report.failure(), Some(("HOST-008", "wg is not installed")));
    }
    assert_eq!(mesh::read(&host.look()), Ok(None));
}

#[test]
fn a_wg_that_prints_garbage_is_not_believed() {
    if !possible("a_wg_that_prints_garbage_is_not_believed") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(3);
    let (_, mesh) = meshed(&hosts[..2]);
    let (host, wish) = (&hosts[0], hosts[0].tunnel(&mesh));
    let (before, real) = (host.state(), "/mnt/real-wg");
    host.sh(&format!("cp $(command -v wg) {real}"));
    for text in [
        "echo lorem ipsum".to_owned(),
        "head -c 1000000 /dev/urandom".to_owned(),
        "exit 0".to_owned(),
        "exit 1".to_owned(),
        format!("case $1 in pubkey) exec {real} \"$@\";; *) echo lorem ipsum;; esac"),
        format!("case $1 in pubkey) exec {real} \"$@\";; *) exit 0;; esac"),
        format!("case $1 in pubkey) exec {real} \"$@\";; *) {real} \"$@\"; echo lorem;; esac"),
    ] {
        replace_wg(host, &text);
        assert_eq!(
            failure(host, &mesh::tunnel_program(&wish)),
            Kind::Garbage,
            "{text}"
        );
        assert_ne!(
            mesh::read(&host.look()).unwrap(),
            Some(wish.fact()),
            "{text}"
        );
        host.sh("umount $(command -v wg)");
    }
    assert_eq!(before, host.state());
    replace_wg(host, "echo lorem ipsum");
    assert_eq!(mesh::key(&host.look()).unwrap_err().kind, Kind::Garbage);
    replace_wg(&hosts[2], "echo lorem ipsum");
    assert_eq!(failure(&hosts[2], &mesh::key_program()), Kind::Garbage);
    assert_eq!(hosts[2].sh("ls -A /etc/wireguard 2>/dev/null || :"), "");
}

#[test]
fn a_wg_that_does_nothing_is_found_out() {
    if !possible("a_wg_that_does_nothing_is_found_out") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(2);
    let all: Vec<_> = hosts.iter().collect();
    bring(&mesh_of(&all[..1]), &all[..1]);
    let wish = hosts[0].tunnel(&mesh_of(&all));
    hosts[0].sh("cp $(command -v wg) /mnt/real-wg");
    replace_wg(
        &hosts[0],
        "case $1 in set) ;; *) exec /mnt/real-wg \"$@\";; esac",
    );
    assert_eq!(
        failure(&hosts[0], &mesh::tunnel_program(&wish)),
        Kind::Garbage
    );
    assert_ne!(
        mesh::read(&hosts[0].look()).unwrap().unwrap().told,
        wish.fact().told
    );
}

#[test]
fn without_kernel_module_and_tun_there_is_no_tunnel() {
    if !possible("without_kernel_module_and_tun_there_is_no_tunnel") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    if host.sh("ip link add wgx type wireguard 2>/dev/null && echo kernel || :") == "kernel\n" {
        let why = "not possible here: the kernel has wireguard";
        return lab::skip("without_kernel_module_and_tun_there_is_no_tunnel", why);
    }
    let program = mesh::tunnel_program(&host.tunnel(&mesh_of(&[&host])));
    host.sh("mount -t tmpfs none /dev/net");
    assert_eq!(failure(&host, &program), Kind::NoTunnel);
    assert_eq!(mesh::read(&host.look()), Ok(None), "no wish has come about");
    let path = host.sh("umount /dev/net; command -v wireguard-go");
    host.sh(&format!("mount --bind /dev/null {path}"));
    assert_eq!(failure(&host, &program), Kind::NoTunnel);
    host.sh(&format!("umount {path}"));
    assert_eq!(
        host.well(&program).changed(),
        5,
        "a file that names no wish was there"
    );
}

#[test]
fn what_others_made_is_not_touched() {
    if !possible("what_others_made_is_not_touched") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let program = mesh::tunnel_program(&host.tunnel(&mesh_of(&[&host])));
    host.sh("wireguard-go wg0 >/dev/null 2>&1; wg set wg0 listen-port 999; ip address add 10.1.1.1/24 dev wg0");
    let look =
        "ip -4 -o address show dev wg0; wg show wg0; cat /etc/wireguard/wg0.conf 2>/dev/null || :";
    let theirs = host.sh(look);
    assert_eq!(failure(&host, &program), Kind::Foreign);
    host.well(&mesh::down_program());
    assert_eq!(theirs, host.sh(look));

    host.key();
    host.sh("printf '[Interface]\\nListenPort = 999\\n' >/etc/wireguard/wg0.conf");
    let theirs = host.sh(look);
    assert_eq!(failure(&host, &program), Kind::Foreign);
    host.well(&mesh::down_program());
    assert_eq!(theirs, host.sh(look));
    assert_eq!(mesh::read(&host.look()), Ok(None));
}

#[test]
fn a_disk_that_takes_nothing_loses_nothing() {
    if !possible("a_disk_that_takes_nothing_loses_nothing") {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(2);
    let all: Vec<_> = hosts.iter().collect();
    let host = &hosts[0];
    host.sh("mkdir -p /etc/wireguard; mount -t tmpfs -o size=16k none /etc/wireguard");
    let small = mesh_of(&all[..1]);
    bring(&small, &all[..1]);
    let (before, wish) = (
        host.sh("cat /etc/wireguard/wg0.conf"),
        host.tunnel(&mesh_of(&all)),
    );

    host.sh("dd if=/dev/zero of=/etc/wireguard/full bs=1k 2>/dev/null || :");
    assert_eq!(failure(host, &mesh::tunnel_program(&wish)), Kind::DiskFull);
    assert_eq!(before, host.sh("cat /etc/wireguard/wg0.conf"));
    host.sh("rm /etc/wireguard/full; mount -o remount,ro /etc/wireguard");
    assert_eq!(failure(host, &mesh::tunnel_program(&wish)), Kind::ReadOnly);
    assert_eq!(before, host.sh("cat /etc/wireguard/wg0.conf"));
    let unchanged = host.run(&mesh::tunnel_program(&host.tunnel(&small)));
    assert_eq!(
        unchanged.failure(),
        None,
        "what is right needs no writing: {unchanged:?}"
    );

    host.sh("mount -o remount,rw /etc/wireguard");
    let report = host.well(&mesh::tunnel_program(&wish));
    assert_eq!(mesh::read(&report), Ok(Some(wish.fact())));
    assert_eq!(host.sh("ls /etc/wireguard"), "slipway.key\nwg0.conf\n");
}

#[test]
fn a_key_file_that_holds_no_key_is_left_for_a_person() {
    if !possible("a_key_file_that_holds_no_key_is_left_for_a_person") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    host.sh("mkdir -p /etc/wireguard; echo lorem >/etc/wireguard/slipway.key");
    assert_eq!(failure(&host, &mesh::key_program()), Kind::Garbage);
    assert_eq!(host.sh("cat /etc/wireguard/slipway.key"), "lorem\n");
    // An empty one is what a power cut leaves: nothing is lost with it.
    host.sh(": >/etc/wireguard/slipway.key");
    host.key();
}

#[test]
fn a_wireguard_that_hangs_hangs_nobody() {
    if !possible("a_wireguard_that_hangs_hangs_nobody") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let wish = host.tunnel(&mesh_of(&[&host]));
    host.well(&mesh::tunnel_program(&wish));
    host.sh(&format!("kill -STOP {}", host.daemon()));
    assert_eq!(failure(&host, &mesh::tunnel_program(&wish)), Kind::Service);
    assert_ne!(mesh::read(&host.look()).unwrap(), Some(wish.fact()));
    host.sh(&format!("kill -CONT {}", host.daemon()));
    assert_eq!(host.well(&mesh::tunnel_program(&wish)).changed(), 0);
}

#[test]
fn a_program_that_came_in_part_does_nothing() {
    if !possible("a_program_that_came_in_part_does_nothing") {
        return;
    }
    let world = World::new();
    let host = world.host(1);
    let whole = mesh::tunnel_program(&host.tunnel(&mesh_of(&[&host])));
    let before = host
        .sh("find /etc/wireguard /etc/slipway -type f 2>/dev/null | xargs sha256sum; ip -o link");
    let end = whole.text.find("\nmain </dev/null").unwrap();
    for part in 0..20 {
        let text = Zeroizing::new(whole.text[..end * (part + 1) / 20].to_owned());
        let report = host.run(&Program {
            title: whole.title.clone(),
            text,
            limit: whole.limit,
        });
        assert_eq!(report.marks, []);
    }
    let after = host
        .sh("find /etc/wireguard /etc/slipway -type f 2>/dev/null | xargs sha256sum; ip -o link");
    assert_eq!(before, after);
}
