//! A cluster is brought back to yesterday, also when the server is killed on the way.

use crate::asking::{answered, until};
use crate::shape::{NAME, NODE_PORT, Shape};
use crate::site::{Site, VERSION, story};
use serde_json::Value;

/// Waits for what is asked, but not for ever.
const WAIT: [&str; 3] = ["--wait", "--timeout", "15m"];

/// Has the API know something under a name.
fn noted(site: &mut Site, name: &str) {
    let words = ["create", "configmap", name, "--from-literal=of=the-story"];
    site.kubectl(&words, "").unwrap();
}

/// The names of all that was noted.
fn notes(site: &mut Site) -> Result<Vec<String>, String> {
    let words = ["get", "configmaps", "-o", "name"];
    let told = site.kubectl(&words, "")?;
    let ours = told
        .lines()
        .filter_map(|line| line.strip_prefix("configmap/"));
    let ours = ours.filter(|name| !name.starts_with("kube-"));
    Ok(ours.map(str::to_owned).collect())
}

/// The snapshots that are kept, the oldest first.
fn snapshots(site: &mut Site) -> Vec<String> {
    let told = site.client(&["backup", "etcd", "list", NAME, "-o", "json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let ids = told.as_array().unwrap().iter();
    ids.map(|snapshot| snapshot["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Saves etcd and waits until that is done; answers which snapshot it is.
fn saved(site: &mut Site) -> String {
    let words = ["backup", "etcd", "create", NAME, "-o", "json"];
    let told = site.client(&[&words[..], &WAIT].concat());
    let told: Value = serde_json::from_str(&told).unwrap();
    let id = told["id"].as_str().unwrap().to_owned();
    assert_eq!(snapshots(site).last(), Some(&id));
    id
}

/// Asks for the way back, and for more.
fn restore(site: &mut Site, snapshot: &str, more: &[&str]) -> String {
    let words = ["backup", "etcd", "restore", NAME, "--snapshot", snapshot];
    site.client(&[&words[..], &["--yes"], more].concat())
}

/// Waits until the wish to go back is fulfilled.
fn fulfilled(site: &mut Site) {
    until("the end of the restore", || {
        let wishes = site.client(&["intent", "list", "-o", "json"]);
        let wishes: Value = serde_json::from_str(&wishes).unwrap();
        wishes["items"].as_array().unwrap().is_empty().then_some(())
    });
}

/// Yesterday's note is there, today's is not, and everything works.
fn is_yesterday(site: &mut Site, nodes: usize) {
    let known = until("an answer of the API", || notes(site).ok());
    assert_eq!(known, ["yesterday"]);
    until("all nodes are ready", || {
        let told = site.kubectl(&["get", "nodes", "--no-headers"], "").ok()?;
        let ready = |line: &&str| line.split_whitespace().nth(1) == Some("Ready");
        (told.lines().filter(ready).count() == nodes).then_some(())
    });
    let told = site.client(&["describe", "cluster", NAME]);
    assert!(told.contains("restored from"), "{told}");
    // Whoever watches sees what happens from now on, on nodes too.
    let again = ["rollout", "restart", "deployment/echo"];
    site.kubectl(&again, "").unwrap();
    site.rolled_out();
    let at = site.addresses("compute");
    answered(&at[0], NODE_PORT);
}

fn told(test: &str, control: usize) {
    let shape = Shape {
        control,
        ..Shape::small(VERSION, 1)
    };
    story(test, &[VERSION], |site| {
        site.step("from apply to all nodes ready", |site| site.apply(shape));
        site.step("a pod is there", |site| site.deploy(1));
        let snapshot = site.step("etcd is saved", |site| {
            noted(site, "yesterday");
            saved(site)
        });
        site.step("what is kept is sealed, and nothing else is left", |site| {
            let kept = site.directory().join("snapshots");
            let text = sealed(&kept);
            let secret = |text: &[u8]| text.windows(9).any(|part| part == b"yesterday");
            assert!(text.len() == 1 && !secret(&text[0]), "one sealed file");
            for name in site.names("control") {
                let left = ["ls", "/var/lib/slipway"];
                let left = Site::host(&name).run(&left, b"").unwrap();
                assert!(!left.contains("snapshot"), "{left}");
            }
        });
        site.step("etcd is put back", |site| {
            site.kubectl(&["delete", "configmap", "yesterday"], "")
                .unwrap();
            noted(site, "today");
            let told = restore(site, &snapshot, &WAIT);
            assert!(
                told.contains(&format!("restored from {snapshot}")),
                "{told}"
            );
        });
        site.step("it is yesterday", |site| is_yesterday(site, control + 1));
        site.step("put back again, killed in the middle", |site| {
            noted(site, "tomorrow");
            restore(site, &snapshot, &[]);
            let first = site.names("control").remove(0);
            let stopped = ["test", "-e", "/var/lib/slipway/restore/stopped"];
            until("the control plane stops", || {
                Site::host(&first).run(&stopped, b"").ok()
            });
            site.start();
            fulfilled(site);
        });
        site.step("it is yesterday again", |site| {
            is_yesterday(site, control + 1);
        });
        site.step("delete", |site| site.delete());
    });
}

/// What is in all files below a directory.
fn sealed(directory: &std::path::Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let texts = entries.flat_map(|entry| {
        if entry.path().is_dir() {
            sealed(&entry.path())
        } else {
            vec![std::fs::read(entry.path()).unwrap()]
        }
    });
    texts.collect()
}

#[test]
fn a_cluster_goes_back_to_a_snapshot_of_its_only_member() {
    told(
        "restore::a_cluster_goes_back_to_a_snapshot_of_its_only_member",
        1,
    );
}

#[test]
fn a_cluster_goes_back_to_a_snapshot_with_three_members() {
    told(
        "restore::a_cluster_goes_back_to_a_snapshot_with_three_members",
        3,
    );
}
