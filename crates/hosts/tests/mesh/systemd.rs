//! How the programs talk to systemd. It is a stand-in that keeps a list of what it was asked and
//! does what the unit `wg-quick@.service` says; hosts with a real one are tested with the sandbox.

use crate::tools::possible;
use crate::world::{Host, World, bring, mesh_of};
use hosts::mesh;

/// Answers like `systemctl` for one unit.
const STAND_IN: &str = r#"#!/bin/sh
[ "$1" != -q ] || shift
echo "$1" >>/mnt/asked
case $2 in wg-quick@wg0.service) ;; *) exit 4 ;; esac
case $1 in
is-enabled) [ -e /mnt/enabled ] ;;
enable) : >/mnt/enabled ;;
disable) rm /mnt/enabled ;;
restart) wg-quick down wg0 2>/dev/null; wg-quick up wg0 2>/mnt/said ;;
stop) wg-quick down wg0 2>/mnt/said ;;
reset-failed) ;;
*) exit 5 ;;
esac"#;

fn give_systemd(host: &Host) {
    host.sh(&format!(
        "mkdir -p /run/systemd/system; : >/mnt/asked; cat >/mnt/systemctl <<'END'\n{STAND_IN}\nEND
         chmod 755 /mnt/systemctl; mount --bind /mnt/systemctl $(command -v systemctl)"
    ));
}

/// What was asked since the last time, without looks.
fn asked(host: &Host) -> String {
    host.sh("grep -v is-enabled /mnt/asked | tr '\n' ' '; : >/mnt/asked")
}

#[test]
fn the_unit_of_wg_quick_is_enabled_and_brings_the_interface() {
    let test = "the_unit_of_wg_quick_is_enabled_and_brings_the_interface";
    if !possible(test) || !crate::tools::possible_with(test, &["systemctl"]) {
        return;
    }
    let world = World::new();
    let hosts = world.hosts(2);
    let all: Vec<_> = hosts.iter().collect();
    all.iter().copied().for_each(give_systemd);
    let mesh = mesh_of(&all);
    assert_eq!(bring(&mesh, &all), [5, 5]);
    assert_eq!(asked(&hosts[0]), "reset-failed restart enable ");
    hosts[0].reaches(&hosts[1]);
    assert_eq!(bring(&mesh, &all), [0, 0]);
    assert_eq!(asked(&hosts[0]), "");
    let started = hosts[0].sh(&format!("ls {} 2>/dev/null || :", mesh::START_FILE));
    assert_eq!(started, "", "systemd needs no file of ours");

    // Peers change without the unit.
    assert_eq!(bring(&mesh_of(&all[..1]), &all[..1]), [2]);
    assert_eq!(asked(&hosts[0]), "");
    hosts[0].cut();
    assert_eq!(bring(&mesh, &all), [4, 0], "all but the start");
    assert_eq!(asked(&hosts[0]), "reset-failed restart ");

    assert_eq!(hosts[0].well(&mesh::down_program()).changed(), 4);
    assert_eq!(asked(&hosts[0]), "disable stop reset-failed ");
    assert_eq!(hosts[0].well(&mesh::down_program()).changed(), 0);
    hosts[0].daemon_ends();
}
