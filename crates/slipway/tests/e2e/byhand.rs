//! The same hosts twice: nodes made by somebody who types what kubeadm's manual says, without a
//! pause and on all hosts at once where that is possible, and nodes made by us.
//!
//! Who types gets no mesh, no checks and nothing that survives a mistake. `cargo xtask bench
//! kubernetes` compares the two.

use crate::apart::Lab;
use crate::asking::until;
use crate::hosts_within::Within;
use crate::shape::NAME;
use crate::site::{READY_MAX, Site, VERSION, story};
use hosts::sandbox::{Level, Made, Sandbox};
use std::path::Path;
use std::process::{Command, Stdio};

/// The hosts; the first is the control machine.
const HOSTS: [&str; 3] = ["brain", "left", "right"];

/// What a person types.
const TYPED: &str = include_str!("byhand.sh");

#[test]
fn it_takes_hardly_longer_than_by_hand() {
    let test = "byhand::it_takes_hardly_longer_than_by_hand";
    story(test, &[VERSION], |site| {
        let sandbox = wait(site.lab.open());
        let made = hosts(&sandbox, &site.lab);
        site.step("by hand, from hosts to all nodes ready", |site| {
            by_hand(&made, &site.lab, &site.mirror);
        });
        wait(sandbox.clear()).unwrap();
        let made = hosts(&sandbox, &site.lab);
        let key = format!("privatekey={}", site.lab.dir.join("key").display());
        site.client(&["secret", "set", "door", &key]);
        site.step("by Slipway, from hosts to all nodes ready", |site| {
            site.declare_text(&manifest(&made), &["--wait", "--timeout", READY_MAX]);
        });
        all_ready();
        site.step("delete", Site::delete);
        wait(sandbox.clear()).unwrap();
    });
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Handle::current().block_on(work)
}

/// Fresh hosts.
fn hosts(sandbox: &Sandbox, lab: &Lab) -> Vec<Made> {
    let made = HOSTS.iter().map(|name| {
        let host = wait(sandbox.create(&lab.order(name, Level::Systemd))).unwrap();
        until("a host answers", || lab.ssh(&host, "true").ok());
        host
    });
    made.collect()
}

/// Makes nodes of the hosts, as their makers tell people to.
fn by_hand(made: &[Made], lab: &Lab, mirror: &Path) {
    let typed = |host: &Made, words: &str| {
        let typed = lab.ssh(host, &format!("sh /root/stage/typed {words}"));
        typed.unwrap()
    };
    std::thread::scope(|scope| {
        for (at, host) in made.iter().enumerate() {
            scope.spawn(move || {
                bring(host, at == 0, lab, mirror);
                typed(host, &format!("prepare 10.244.{at}.0/24"));
            });
        }
    });
    let join = &typed(&made[0], &format!("init {VERSION}"));
    std::thread::scope(|scope| {
        for host in &made[1..] {
            scope.spawn(move || typed(host, &format!("join {join}")));
        }
    });
    all_ready();
}

/// Copies to a host what it needs.
fn bring(host: &Made, control: bool, lab: &Lab, mirror: &Path) {
    let of = mirror.join(format!(
        "kubernetes/{VERSION}/{}",
        lab::kubernetes::platform()
    ));
    let stage = lab.dir.join(format!("stage-{}", host.address));
    std::fs::create_dir_all(stage.join("images")).unwrap();
    std::fs::write(stage.join("typed"), TYPED).unwrap();
    let link = |file: &str| std::os::unix::fs::symlink(of.join(file), stage.join(file)).unwrap();
    for program in ["kubeadm", "kubelet", "kubectl"] {
        link(program);
    }
    let mut images = vec!["kube-proxy", "coredns", "pause"];
    if control {
        images.extend([
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "etcd",
        ]);
    }
    for image in images {
        link(&format!("images/{image}.tar"));
    }
    let mut tar = Command::new("tar")
        .args(["-ch", "-C"])
        .arg(&stage)
        .arg(".")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = lab
        .ssh_command(
            "root",
            host,
            "mkdir -p /root/stage && tar -x -C /root/stage",
        )
        .stdin(tar.stdout.take().unwrap())
        .status();
    assert!(status.unwrap().success() && tar.wait().unwrap().success());
    std::fs::remove_dir_all(stage).unwrap();
}

/// Waits until the control machine calls all of them ready.
fn all_ready() {
    until("all nodes are ready", || {
        let host = Within::find(&format!("host-{}", HOSTS[0]))?;
        let words = [
            "kubectl",
            "--kubeconfig=/etc/kubernetes/admin.conf",
            "get",
            "nodes",
            "--no-headers",
        ];
        let nodes = host.run(&words, b"").ok()?;
        let ready = |line: &str| line.split_whitespace().nth(1) == Some("Ready");
        (nodes.lines().count() == HOSTS.len() && nodes.lines().all(ready)).then_some(())
    });
}

/// The hosts as a cluster.
fn manifest(made: &[Made]) -> String {
    let node = |host: &Made| format!("{{endpoint: {}, secretRef: {{name: door}}}}", host.address);
    let nodes: Vec<String> = made.iter().map(node).collect();
    format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: {NAME}}}
spec:
  nodePools:
    static:
      - {{name: brain, nodes: [{}]}}
      - {{name: hands, nodes: [{}]}}
  kubernetes:
    clusters:
      - {{name: {NAME}, version: {VERSION}, network: 10.20.0.0/24, pools: {{control: [brain], compute: [hands]}}}}
",
        nodes[0],
        nodes[1..].join(", ")
    )
}
