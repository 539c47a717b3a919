//! What goes wrong while a cluster is made: each trouble has its own error with a hint that says
//! who must act, and once somebody did the same cluster goes on.

use crate::asking::until;
use crate::hosts_within::Within;
use crate::shape::Shape;
use crate::site::{Site, VERSION, story};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A version that nobody released.
const UNKNOWN: &str = "v1.34.99";

/// The machines.
const CONTROL: &str = "shed-control-01";
const COMPUTE: &str = "shed-compute-01";
const SECOND: &str = "shed-compute-02";

#[test]
fn each_trouble_is_told_and_can_be_mended() {
    let test = "bad::each_trouble_is_told_and_can_be_mended";
    let shape = Shape::small(VERSION, 1);
    story(test, &[VERSION], |site| {
        let mirror = Mirror::copy(site);
        site.mirror.clone_from(&mirror.0);
        site.start();
        let kubelet = mirror.spoil("kubelet");
        let image = mirror.hide("images/kube-apiserver.tar");

        site.declare(Shape::small(UNKNOWN, 1), &[]);
        site.step("a version that does not exist", |site| {
            site.failing("ARTIFACT-008", "set a version that was released");
        });
        site.declare(shape, &[]);
        site.step("a program that is not what was promised", |site| {
            site.failing("ARTIFACT-001", "fetch it again");
            mirror.mend(&kubelet);
            site.retry();
        });
        site.step("an image that cannot be had", |site| {
            site.failing("KUBE-015", "give a mirror that holds the image");
            mirror.mend(&image);
            site.retry();
        });
        full_disk(site);
        expired(site);
        never_ready(site);
        site.step("all nodes are ready", |site| site.apply(shape));
        clocks(site);
        site.step("delete", |site| site.delete());
    });
}

/// A host without room for what it is sent.
fn full_disk(site: &mut Site) {
    site.step("a full disk", |site| {
        let host = until("the compute machine runs", || Within::find(COMPUTE));
        let staged = "/var/lib/slipway/kubernetes";
        let full = format!("mkdir -p {staged} && mount -t tmpfs -o size=1m none {staged}");
        host.run(&["sh", "-c", &full], b"").unwrap();
        site.failing("HOST-006", "make room");
        host.run(&["umount", staged], b"").unwrap();
        site.retry();
    });
}

/// An invitation that ends before it is used, and another one that is not.
fn expired(site: &mut Site) {
    site.step("an invitation that has expired", |site| {
        let withdraw = "while [ -e /run/withdraw ]; do kubectl --kubeconfig=/etc/kubernetes/admin.conf \
            -n kube-system delete secret --field-selector type=bootstrap.kubernetes.io/token --ignore-not-found; done";
        let control = until("the control machine runs", || Within::find(CONTROL));
        control.run(&["touch", "/run/withdraw"], b"").unwrap();
        let unit = ["systemd-run", "--quiet", "--unit=withdraw", "sh", "-c", withdraw];
        control.run(&unit, b"").unwrap();
        site.failing("KUBE-024", "with another invitation");
        // The one that comes next is to find this.
        let compute = Site::host(COMPUTE);
        compute.run(&["tee", BROKEN], b"{").unwrap();
        control.run(&["rm", "/run/withdraw"], b"").unwrap();
    });
}

/// What another network of pods left behind, and what keeps a node from being ready.
const BROKEN: &str = "/etc/cni/net.d/00-left-behind.conflist";

/// A node that never becomes ready.
fn never_ready(site: &mut Site) {
    site.step("a node that never becomes ready", |site| {
        site.failing("KUBE-013", "another takes its place by itself");
        Site::host(COMPUTE).run(&["rm", BROKEN], b"").unwrap();
    });
}

/// A machine that thinks it is an hour later. It is no hour of the whole machine: what tells the time
/// there does so wrongly.
fn clocks(site: &mut Site) {
    let two = Shape::small(VERSION, 2);
    site.step("clocks that are apart by an hour", |site| {
        site.declare(two, &[]);
        let host = until("the second compute machine runs", || Within::find(SECOND));
        let late = format!(
            "printf '#!/bin/sh\\nexec /usr/bin/date -d \"+1 hour\" \"$@\"\\n' > {DATE} && chmod +x {DATE}"
        );
        host.run(&["sh", "-c", &late], b"").unwrap();
        site.failing("HOST-011", "set the machine's clock");
        host.run(&["rm", DATE], b"").unwrap();
        site.retry();
    });
    site.step("it has joined", |site| site.apply(two));
}

/// What is asked for the time before the one of the system.
const DATE: &str = "/usr/local/bin/date";

/// A mirror of the story's own, whose files can be spoiled.
struct Mirror(PathBuf);

/// What was changed: a file, and what was in it.
struct Changed(PathBuf, Vec<u8>);

impl Mirror {
    fn copy(site: &Site) -> Self {
        let to = site.directory().join("mirror");
        let mut copy = Command::new("cp");
        copy.args(["-rL", "--reflink=auto"])
            .arg(&site.mirror)
            .arg(&to);
        assert!(copy.status().unwrap().success());
        Self(to)
    }

    fn of(version: &str) -> PathBuf {
        Path::new("kubernetes")
            .join(version)
            .join(lab::kubernetes::platform())
    }

    /// Changes a byte of a file.
    fn spoil(&self, file: &str) -> Changed {
        let path = self.0.join(Self::of(VERSION)).join(file);
        let right = std::fs::read(&path).unwrap();
        let mut wrong = right.clone();
        *wrong.last_mut().unwrap() ^= 1;
        std::fs::write(&path, wrong).unwrap();
        Changed(path, right)
    }

    /// Takes a file out of the index.
    fn hide(&self, file: &str) -> Changed {
        let path = self.0.join("index.json");
        let right = std::fs::read_to_string(&path).unwrap();
        let mut index: serde_json::Value = serde_json::from_str(&right).unwrap();
        let name = Self::of(VERSION).join(file);
        let listed = index["artifacts"].as_array_mut().unwrap();
        listed.retain(|entry| entry["name"].as_str() != name.to_str());
        std::fs::write(&path, index.to_string()).unwrap();
        Changed(path, right.into_bytes())
    }

    fn mend(&self, changed: &Changed) {
        assert!(changed.0.starts_with(&self.0));
        std::fs::write(&changed.0, &changed.1).unwrap();
    }
}
