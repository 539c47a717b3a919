//! Whole recipes: a second run changes nothing, and what is given back is as it was.

use crate::packages::{distribution, repository};
use crate::world::{World, possible, same};
use hosts::program::Program;
use hosts::recipe::{
    Level, container_runtime, mesh_tools, node_requirements, prepare, proxy, removal, render,
    storage,
};
use model::host::{Proxy, Purpose, Recipe};
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(2);

/// A world in which every package of the recipes is to be had.
fn supplied() -> World {
    let world = World::new();
    let names = [
        "containerd",
        "open-iscsi",
        "nfs-common",
        "wireguard-tools",
        "wireguard-go",
        "iproute2",
    ];
    repository(&world, "all", &names.map(|name| (name, "9:1.0", "")));
    distribution(&world, "all");
    world
}

fn wish(endpoint: &str) -> Proxy {
    Proxy {
        endpoint: endpoint.to_owned(),
        except: ["127.0.0.1/8", "localhost", ".svc", "10.0.0.7"]
            .map(str::to_owned)
            .to_vec(),
    }
}

fn prepared(purpose: Purpose, proxy: Option<Proxy>, level: Level) -> Program {
    let recipe = Recipe {
        purpose,
        proxy,
        playbooks: Vec::new(),
    };
    render(&prepare(&recipe, level), "test", LIMIT)
}

#[test]
fn a_second_run_of_every_recipe_changes_nothing() {
    if !possible("a_second_run_of_every_recipe_changes_nothing") {
        return;
    }
    let world = supplied();
    for level in [Level::Systemd, Level::Lite] {
        let recipes = [
            node_requirements(level),
            container_runtime(level, &[]),
            storage(),
            mesh_tools(),
            proxy(Some(&wish("http://a.example:1")), level),
            proxy(Some(&wish("http://b.example:1")), level),
            proxy(None, level),
        ];
        for recipe in recipes {
            let program = render(&recipe, "test", LIMIT);
            world.apply(&program);
            assert_eq!(world.apply(&program), 0);
        }
        for purpose in [Purpose::Node, Purpose::Balancer] {
            let program = prepared(purpose, Some(wish("http://a.example:1")), level);
            assert!(world.apply(&program) > 0);
            assert_eq!(world.apply(&program), 0);
        }
    }
}

#[test]
fn what_cannot_be_set_here_is_told_and_no_failure() {
    if !possible("what_cannot_be_set_here_is_told_and_no_failure") {
        return;
    }
    let world = World::new();
    let report = world.run(&render(&node_requirements(Level::Lite), "test", LIMIT));
    assert!(hosts::recipe::done(&report).is_ok(), "{report:#?}");
    // The network is the namespace's own; the rest of the kernel is not.
    assert_eq!(world.sh("cat /proc/sys/net/ipv4/tcp_fin_timeout"), "30");
    assert_eq!(world.sh("cat /proc/sys/net/ipv4/ip_forward"), "1");
    assert!(report.fact("swap").is_some());
    assert_eq!(
        report.fact("sysctl.net.ipv4.ip_local_port_range"),
        None,
        "it was set"
    );
    if world.sh("cat /proc/sys/fs/inotify/max_queued_events") != "65535" {
        let told = report.fact("sysctl.fs.inotify.max_queued_events").unwrap();
        assert!(told.starts_with("cannot be set here"), "{told}");
    }
}

#[test]
fn the_proxy_goes_without_a_trace() {
    if !possible("the_proxy_goes_without_a_trace") {
        return;
    }
    let world = World::new();
    world.sh(
        "printf 'PATH=/bin\\n' >/etc/environment; rm -rf /etc/systemd/system/kubelet.service.d",
    );
    // What is remembered is not a trace: the first run makes its place.
    let off = render(&proxy(None, Level::Systemd), "test", LIMIT);
    assert_eq!(world.apply(&off), 0);
    let before = world.snapshot();
    let on = |endpoint| render(&proxy(Some(&wish(endpoint)), Level::Systemd), "test", LIMIT);
    assert_eq!(world.apply(&on("http://a.example:1")), 4);
    assert_eq!(world.apply(&on("http://b.example:1")), 2);
    let environment = world.sh("cat /etc/environment");
    for line in [
        "PATH=/bin",
        "HTTPS_PROXY=\"http://b.example:1\"",
        "https_proxy=\"http://b.example:1\"",
        "no_proxy=\"127.0.0.1/8,localhost,.svc,10.0.0.7\"",
    ] {
        assert!(environment.lines().any(|one| one == line), "{environment}");
    }
    assert!(!environment.contains("a.example"), "{environment}");
    assert!(
        world
            .sh("apt-config dump")
            .contains("Acquire::http::Proxy \"http://b.example:1\"")
    );
    assert_eq!(world.apply(&off), 4);
    assert_eq!(world.apply(&off), 0);
    world.sh("rm -r /var/lib/slipway");
    same(&world.snapshot(), &before, "the proxy is off");
}

#[test]
fn a_host_that_is_given_back_is_as_it_was() {
    if !possible("a_host_that_is_given_back_is_as_it_was") {
        return;
    }
    let world = supplied();
    world.sh("mkdir -p /etc/containerd; echo theirs >/etc/containerd/config.toml; echo A=1 >/etc/environment");
    let before = world.snapshot();
    let port_range = "cat /proc/sys/net/ipv4/ip_local_port_range /proc/sys/net/ipv4/ip_forward";
    let settings = world.sh(port_range);
    let program = prepared(
        Purpose::Node,
        Some(wish("http://a.example:1")),
        Level::Systemd,
    );
    assert!(world.apply(&program) > 20);
    assert_ne!(world.sh(port_range), settings);
    let gone = render(&removal(Level::Systemd), "test", LIMIT);
    assert!(world.apply(&gone) > 10);
    same(&world.snapshot(), &before, "given back");
    assert_eq!(world.sh(port_range), settings);
    assert_eq!(world.apply(&gone), 0);
    same(&world.snapshot(), &before, "given back twice");
}

#[test]
fn systems_that_we_do_not_know_are_refused_in_one_sentence() {
    if !possible("systems_that_we_do_not_know_are_refused_in_one_sentence") {
        return;
    }
    let world = supplied();
    let program = prepared(Purpose::Balancer, None, Level::Lite);
    let system = |text: &str| {
        world.sh(&format!(
            "rm /etc/os-release; printf '{text}' >/etc/os-release"
        ))
    };
    let before = world.sh("ls /etc");
    for text in [
        "ID=fedora\\nVERSION_ID=41\\n",
        "ID=debian\\nVERSION_ID=\"11\"\\n",
        "ID=ubuntu\\nVERSION_ID=\"20.04\"\\n",
        "ID=ubuntu\\nVERSION_ID=\"later\"\\n",
        "",
    ] {
        system(text);
        let (code, what) = world.refuse(&program);
        assert_eq!(code, "HOST-009", "{what}");
    }
    assert_eq!(world.sh("ls /etc"), before, "nothing was changed");
    for text in [
        "ID=debian\\nVERSION_ID=\"12\"\\n",
        "ID=ubuntu\\nVERSION_ID=\"22.04\"\\n",
        "ID='debian'\\nVERSION_CODENAME=forky\\n",
    ] {
        system(text);
        world.apply(&program);
    }
}

#[test]
fn a_marker_is_believed_only_as_far_as_it_holds() {
    if !possible("a_marker_is_believed_only_as_far_as_it_holds") {
        return;
    }
    let world = World::new();
    world.sh("printf 'ID=flatcar\\nVERSION_ID=4000\\n' >/tmp/r; rm /etc/os-release; mv /tmp/r /etc/os-release; mkdir -p /etc/slipway/prepared.d");
    let program = prepared(Purpose::Balancer, None, Level::Lite);
    let marker = |lines: &str| {
        world.sh(&format!("printf '{lines}' >/etc/slipway/prepared.d/image"));
    };
    let good = "slipway-prepared-1\\npurpose balancer\\nprogram ip\\nprogram wg\\nfile /etc/passwd\\nsysctl net.ipv4.tcp_syncookies 1\\n";
    world.sh("for p in wg containerd; do printf '#!/bin/sh\\n' >/usr/local/bin/$p; chmod 755 /usr/local/bin/$p; done");
    for lines in [
        "",
        "prepared\\n",
        "slipway-prepared-1\\npurpose node\\nprogram ip\\nprogram wg\\nprogram containerd\\n",
        "slipway-prepared-1\\npurpose balancer\\nprogram ip\\n",
        &format!("{good}program not-there\\n"),
        &format!("{good}file /not/there\\n"),
        &format!("{good}sysctl net.ipv4.tcp_syncookies 7\\n"),
        &format!("{good}module not_there\\n"),
        &format!("{good}wonders many\\n"),
    ] {
        marker(lines);
        let (code, what) = world.refuse(&program);
        assert_eq!(code, "HOST-016", "{lines}: {what}");
    }
    marker(good);
    let report = world.run(&program);
    assert!(hosts::recipe::done(&report).is_ok(), "{report:#?}");
    assert_eq!(report.fact("prepared-by"), Some("image"));
    // Its stamp is all that was written.
    assert_eq!(report.changed(), 1, "{report:#?}");
    assert_eq!(world.apply(&program), 0);
    world.sh("[ ! -e /etc/security/limits.d/90-slipway.conf ]");
}
