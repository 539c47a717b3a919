//! An upgrade whose gates are shut: it goes no further than the first node until they let it.

use crate::asking::until;
use crate::shape::Shape;
use crate::site::{NEXT, Site, VERSION, foreseen};

/// A command that passes when somebody says so, and a job that shows that the node runs pods of
/// the new version.
const GATES: &str = "[
        {name: somebody, timeout: 1m, command: [test, -e, /run/let-pass]},
        {name: pods, job: {apiVersion: batch/v1, kind: Job, spec: {template: {spec: {
          containers: [{name: pod, image: 'registry.k8s.io/kube-proxy:v1.35.8', imagePullPolicy: Never,
            command: [/usr/local/bin/kube-proxy, --version]}]}}}}}]";

const CONTROL: &str = "shed-control-01";
const COMPUTE: &str = "shed-compute-01";

#[test]
fn an_upgrade_goes_on_when_its_gates_let_it() {
    let test = "gates::an_upgrade_goes_on_when_its_gates_let_it";
    let shape = Shape::small(VERSION, 1);
    let gated = Shape {
        gates: GATES,
        ..Shape::small(NEXT, 1)
    };
    foreseen(test, &[VERSION, NEXT], |site| {
        site.step("from apply to all nodes ready", |site| site.apply(shape));
        site.declare(gated, &[]);
        site.step("a gate stays shut", |site| {
            site.failing("KUBE-031", "or change the gate in the manifest");
        });
        let nodes = versions(site);
        assert!(nodes.contains(&format!("{CONTROL} {NEXT} true")), "{nodes}");
        assert!(nodes.contains(&format!("{COMPUTE} {VERSION} ")), "{nodes}");
        site.step("a gate is opened, and the next node is upgraded", |site| {
            Site::host(CONTROL)
                .run(&["touch", "/run/let-pass"], b"")
                .unwrap();
            site.retry();
            until("the next node has its version", || {
                let nodes = versions(site);
                nodes.contains(&format!("{COMPUTE} {NEXT}")).then_some(())
            });
        });
        site.step("all of them are open", |site| {
            Site::host(COMPUTE)
                .run(&["touch", "/run/let-pass"], b"")
                .unwrap();
            site.apply(gated);
        });
        for node in [CONTROL, COMPUTE] {
            let heard = said(site, &format!("gate pods lets {node} pass"));
            assert!(heard.contains(&format!("Kubernetes {NEXT}")), "{heard}");
        }
        let jobs = site.kubectl(&["get", "jobs", "--all-namespaces", "--output=name"], "");
        assert_eq!(jobs.unwrap().trim(), "", "jobs of gates are cleared away");
        site.step("delete", |site| site.delete());
    });
}

/// Every node with its version, and whether it is kept from new workloads.
fn versions(site: &mut Site) -> String {
    let columns =
        "custom-columns=N:.metadata.name,V:.status.nodeInfo.kubeletVersion,C:.spec.unschedulable";
    let nodes = site.kubectl(&["get", "nodes", "--no-headers", "--output", columns], "");
    let nodes = nodes.unwrap_or_default();
    let lines = nodes
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The log of the task that said this.
#[track_caller]
fn said(site: &mut Site, what: &str) -> String {
    let tasks = site.told(&["get", "tasks"]);
    let mut logs = tasks
        .iter()
        .filter(|task| task["kind"] == "uncordon")
        .map(|task| site.client(&["task", "log", task["id"].as_str().unwrap()]));
    let heard = logs.find(|log| log.contains(what));
    assert!(heard.is_some(), "nobody said: {what}");
    heard.unwrap()
}
