//! What hosts are told, as texts that can be read.

use super::*;
use expect_test::expect;
use hosts::program::Program;
use model::kubernetes::{Cni, Kubernetes, ProxyMode};
use std::io::Write as _;
use std::process::{Command, Stdio};

fn machine(role: &str, n: u8) -> Machine {
    let text = format!(
        r#"{{"id":"machine-0c5w3k9qj2m4x","name":"edge-{role}-{n:02}","pool":"p","role":"{role}","ordinal":{n},
        "incarnation":0,"address":"10.8.0.{n}","origin":{{"made":{{"provider":"here","via":"sandbox",
        "region":"r","zone":null,"server_type":"systemd","image":"debian-12"}}}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn around(cni: Cni) -> Around {
    let proxy = match cni {
        Cni::Cilium => ProxyMode::None,
        Cni::Routed | Cni::Flannel | Cni::Calico => ProxyMode::Iptables,
    };
    Around {
        network: "10.8.0.0/24".parse().unwrap(),
        kubernetes: Kubernetes {
            cni,
            proxy,
            ..Kubernetes::default()
        },
        through: Vec::new(),
        leads: true,
        addons: Vec::new(),
        nodes: Vec::new(),
    }
}

fn with<T>(role: &str, cni: Cni, then: impl FnOnce(&Node<'_>) -> T) -> T {
    let (machine, around) = (machine(role, 2), around(cni));
    let care = Care {
        api: vec![[10, 8, 0, 9].into()],
        ..Care::default()
    };
    then(&Node {
        machine: &machine,
        cluster: &"edge".parse().unwrap(),
        around: &around,
        version: "v1.34.4".parse().unwrap(),
        outside: Some([192, 0, 2, 7].into()),
        care: &care,
    })
}

fn documents(text: &str) -> Vec<serde_json::Value> {
    let parts = text.split("---\n");
    parts
        .map(|part| serde_json::from_str(part).unwrap())
        .collect()
}

#[test]
fn a_cluster_is_told_its_one_name_and_its_networks() {
    let text = with("control", Cni::Routed, |node| init_config(node).to_string());
    let all = documents(&text);
    expect![[r#"{"apiServer":{"certSANs":["api.edge.slipway.internal","127.0.0.1","192.0.2.7"],"extraArgs":[{"name":"kubelet-certificate-authority","value":"/etc/kubernetes/pki/ca.crt"},{"name":"shutdown-delay-duration","value":"6s"}]},"apiVersion":"kubeadm.k8s.io/v1beta4","clusterName":"edge","controlPlaneEndpoint":"api.edge.slipway.internal:6443","controllerManager":{"extraArgs":[{"name":"allocate-node-cidrs","value":"false"}]},"kind":"ClusterConfiguration","kubernetesVersion":"v1.34.4","networking":{"podSubnet":"10.244.0.0/16","serviceSubnet":"10.96.0.0/12"},"proxy":{"disabled":false}}"#]]
    .assert_eq(&all[1].to_string());
    assert_eq!(all[0]["localAPIEndpoint"]["advertiseAddress"], "10.8.0.2");
    assert_eq!(all[2]["cgroupDriver"], "systemd");
    assert_eq!(all[3]["mode"], "iptables");
}

#[test]
fn only_members_of_the_control_plane_bring_an_api() {
    for (role, brings) in [("control", true), ("compute", false)] {
        let text = with(role, Cni::Routed, |node| {
            join_config(node, "abcdef.0123456789abcdef").to_string()
        });
        let join = &documents(&text)[0];
        assert_eq!(join.get("controlPlane").is_some(), brings, "{role}");
        assert_eq!(join["nodeRegistration"]["name"], format!("edge-{role}-02"));
    }
}

#[test]
fn who_runs_an_api_asks_its_own_and_the_others_where_it_is() {
    for (role, last) in [("control", 2), ("compute", 9)] {
        with(role, Cni::Routed, |node| {
            assert_eq!(node.api(), [Ipv4Addr::new(10, 8, 0, last)], "{role}");
        });
    }
}

#[test]
fn pods_are_connected_by_us_only_where_the_mesh_carries_them() {
    let names = |cni| {
        with("compute", cni, |node| {
            let items = pods::items(node);
            items.iter().map(Item::name).collect::<Vec<_>>().join("\n")
        })
    };
    assert!(names(Cni::Routed).contains("file /etc/cni/net.d/10-slipway.conflist"));
    assert_eq!(names(Cni::Cilium), "");
    let run = |cni| with("control", cni, |node| node.run(Verb::Init).text.to_string());
    assert!(run(Cni::Cilium).contains("skip='show-join-command,addon/kube-proxy'"));
    assert!(run(Cni::Routed).contains("skip='show-join-command'"));
}

#[test]
fn who_is_to_have_no_kube_proxy_gets_none_from_an_upgrade_either() {
    for (cni, disabled, skip) in [
        (Cni::Cilium, true, "skip='addon/kube-proxy'\n"),
        (Cni::Routed, false, "skip=''\n"),
    ] {
        with("control", cni, |node| {
            let told = documents(&init_config(node));
            assert_eq!(told[1]["proxy"]["disabled"], disabled);
            let upgrade = node.upgrade().text;
            assert!(upgrade.contains(skip), "{}", *upgrade);
        });
    }
}

/// Has a shell read a program without running it.
fn parses(program: &Program) {
    let mut shell = Command::new("sh")
        .arg("-n")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    stdin.write_all(program.text.as_bytes()).unwrap();
    drop(stdin);
    let read = shell.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{}: {said}", program.title);
}

#[test]
fn a_shell_can_read_every_program() {
    let programs = Programs::Programs {
        directory: "/var/lib/slipway/kubernetes/v1.34.4".to_owned(),
        programs: vec![("kubeadm".to_owned(), "0".repeat(64), 1)],
    };
    with("control", Cni::Routed, |node| {
        let api = node.api();
        for program in [
            node.before(&programs, &api, "{}", Vec::new()),
            node.run(Verb::Init),
            node.run(Verb::Join),
            node.after(),
            found(node.cluster, &machine("compute", 3), &api),
            node.newer_kubeadm(&programs),
            node.upgrade(),
            node.newer_kubelet(&programs),
            leave(),
            members(Some(node.machine.into())),
            save(),
            forget_saved(),
            restore(Back::Stop, ("intent-1", 1), node.machine, &[node.machine]),
            restart_kubelet("intent-1"),
            make_known(),
        ] {
            parses(&program);
        }
    });
}

#[test]
fn a_disk_from_which_images_would_be_taken_away_is_told_before_an_upgrade() {
    with("compute", Cni::Routed, |node| {
        let text = node.upgrade().text.replace("full='95'", "full='0'");
        let run = Command::new("sh").args(["-c", &text]).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(
            said.starts_with("::slipway failed HOST-006 the disk of images is "),
            "{said}"
        );
        assert_eq!(run.status.code(), Some(1));
    });
}
