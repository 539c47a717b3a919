//! The way back to a snapshot on one host, cut off after every single command of it.
//!
//! The program is the one that hosts run, in a directory instead of a root, with a containerd that
//! has one etcd and a `systemctl` that only says yes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use kube::kubeadm::{self, Back};
use model::cluster::{Machine, Origin, Role};
use model::id::{self, MachineId};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const WISH: &str = "intent-0c5w3k9qj2m4x";

/// All steps after the first look.
const STEPS: [Back; 4] = [Back::Stop, Back::Load, Back::Start, Back::Clean];

/// A host as far as the program knows it.
struct Host {
    root: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let host = Self {
            root: tempfile::tempdir().unwrap(),
        };
        for directory in ["bin", "etcd/member", "manifests", "slipway/restore", "lock"] {
            std::fs::create_dir_all(host.at(directory)).unwrap();
        }
        for part in ["etcd", "kube-apiserver", "kube-controller-manager"] {
            let file = format!("manifests/{part}.yaml");
            std::fs::write(host.at(&file), "    image: lab/etcd:1\n").unwrap();
        }
        std::fs::write(host.at("etcd/member/data"), "today").unwrap();
        std::fs::write(host.at("slipway/restore/db"), "yesterday").unwrap();
        // Its pods run for as long as their manifests are there.
        host.program(
            "ctr",
            r#"case "$*" in
*'images mount'*) mkdir -p "$root/tools/usr/local/bin"; cp "$root/bin/made" "$root/tools/usr/local/bin/etcdutl" ;;
*'images unmount'*) rm -rf "$root/tools" ;;
*'containers ls'*==etcd*) [ ! -e "$root/manifests/etcd.yaml" ] || echo etcd-1 ;;
*'tasks ls'*) [ ! -e "$root/manifests/etcd.yaml" ] || echo 'etcd-1 7 RUNNING' ;;
esac"#,
        );
        host.program(
            "made",
            r#"while [ "$1" != --data-dir ]; do shift; done
mkdir -p "$2/member" && cp "$root/slipway/restore/db" "$2/member/data""#,
        );
        host.program("systemctl", "exit 0");
        host
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.at("bin").join(name);
        let root = self.root.path().display();
        std::fs::write(&path, format!("#!/bin/sh\nroot={root}\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Takes a step, and is cut off after so many commands; answers what it told, if it came to
    /// its end.
    fn step(&self, step: Back, wish: &str, commands: Option<u32>) -> Option<String> {
        let machine = machine();
        let program = kubeadm::restore(step, (wish, 1_000_000_000), &machine, &[&machine]);
        let at = |path: &str| self.at(path).display().to_string();
        let mut text = program.text.to_string();
        for (from, to) in [
            ("/var/lib/etcd", at("etcd")),
            ("/var/lib/slipway", at("slipway")),
            ("/etc/kubernetes/manifests", at("manifests")),
            ("/run/slipway-etcd", at("tools")),
            ("exec 9</run", format!("exec 9<{}", at("lock"))),
            ("PATH=/usr", format!("PATH={}:/usr", at("bin"))),
        ] {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, &to);
        }
        let cut = commands.map_or(String::new(), |commands| {
            format!(
                "set -T\nleft={commands}\ntrap 'left=$((left - 1)); [ $left -gt 0 ] || kill -KILL $$' DEBUG\n"
            )
        });
        let output = Command::new("bash")
            .args(["-c", &format!("{cut}{text}")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then(|| {
            let told = said.lines().rev();
            let mut told = told.filter_map(|line| line.strip_prefix("::slipway fact restore "));
            told.next().unwrap_or(&said).to_owned()
        })
    }

    /// Takes all steps, undisturbed.
    fn finish(&self, wish: &str) -> Vec<String> {
        let steps = STEPS.into_iter();
        steps
            .map(|step| self.step(step, wish, None).unwrap())
            .collect()
    }

    /// Everything that is there, by name, and what is in it.
    fn picture(&self) -> Vec<String> {
        let mut files = Vec::new();
        for below in ["etcd", "manifests", "slipway", "tools"] {
            walk(&self.at(below), &mut files);
        }
        let root = self.root.path();
        let told = files.iter().map(|file| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            format!(
                "{}: {}",
                file.strip_prefix(root).unwrap().display(),
                text.trim()
            )
        });
        told.collect()
    }
}

fn walk(directory: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, into);
        } else {
            into.push(path);
        }
    }
}

fn machine() -> Machine {
    Machine {
        id: MachineId::derive(id::Origin {
            parent: "test",
            name: "edge",
            ordinal: 1,
            incarnation: 0,
        }),
        name: "edge-01".parse().unwrap(),
        pool: "control".parse().unwrap(),
        role: Role::Control,
        ordinal: 1,
        incarnation: 0,
        address: [10, 8, 0, 1].into(),
        balancer: None,
        origin: Origin::Given {
            endpoint: [192, 0, 2, 1].into(),
            ssh_port: 22,
            username: "root".to_owned(),
            secret: None,
            jump: None,
        },
    }
}

/// How a host looks that has gone back.
fn back(wish: &str) -> Vec<String> {
    vec![
        "etcd/member/data: yesterday".to_owned(),
        "manifests/etcd.yaml: image: lab/etcd:1".to_owned(),
        "manifests/kube-apiserver.yaml: image: lab/etcd:1".to_owned(),
        "manifests/kube-controller-manager.yaml: image: lab/etcd:1".to_owned(),
        format!("slipway/restored: {wish}"),
    ]
}

#[test]
fn a_host_goes_back_step_by_step_and_once() {
    let host = Host::new();
    assert_eq!(host.step(Back::Look, WISH, None).unwrap(), "open");
    assert_eq!(host.finish(WISH), ["stop", "load", "start", "clean"]);
    assert_eq!(host.picture(), back(WISH));
    assert_eq!(host.step(Back::Look, WISH, None).unwrap(), "done");
    assert_eq!(host.finish(WISH), ["done", "done", "done", "done"]);
    assert_eq!(host.picture(), back(WISH));
}

#[test]
fn cut_off_anywhere_the_next_attempt_ends_in_the_same_world() {
    let mut cuts = 0;
    for (at, step) in STEPS.into_iter().enumerate() {
        for commands in 1.. {
            let host = Host::new();
            for before in &STEPS[..at] {
                host.step(*before, WISH, None).unwrap();
            }
            if host.step(step, WISH, Some(commands)).is_some() {
                break;
            }
            cuts += 1;
            host.finish(WISH);
            assert_eq!(
                host.picture(),
                back(WISH),
                "{} cut off after {commands} commands",
                step.as_str()
            );
        }
    }
    assert!(cuts > 100, "only {cuts} places to cut it off");
}

#[test]
fn another_wish_goes_on_where_one_was_left_half_done() {
    let other = "intent-0000000000001";
    for taken in 1..STEPS.len() {
        let host = Host::new();
        for step in &STEPS[..taken] {
            host.step(*step, other, None).unwrap();
        }
        host.finish(WISH);
        assert_eq!(host.picture(), back(WISH), "after {taken} steps");
    }
}

#[test]
fn without_a_snapshot_nothing_is_touched() {
    let host = Host::new();
    std::fs::remove_dir_all(host.at("slipway/restore")).unwrap();
    let before = host.picture();
    assert_eq!(host.step(Back::Stop, WISH, None).unwrap(), "missing");
    assert_eq!(host.picture(), before);
}
