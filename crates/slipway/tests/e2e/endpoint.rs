//! The API moves from a machine to a load balancer and back, and nodes carry what they were told.

use crate::asking::{Asking, api, until};
use crate::hosts_within::Within;
use crate::shape::{API, Shape};
use crate::site::{Site, VERSION, foreseen};
use serde_json::Value;

/// What compute machines carry.
const MARKED: Shape = Shape {
    marks: ", labels: {team: blue, lab/disk: fast}, annotations: {lab/note: two words}, \
            taints: [{key: lab/slow, value: \"yes\", effect: PreferNoSchedule}]",
    ..Shape::small(VERSION, 1)
};

/// The node of a machine, as Kubernetes knows it.
fn node(site: &mut Site, name: &str) -> Value {
    let told = site.kubectl(&["get", "node", name, "-o", "json"], "");
    serde_json::from_str(&told.unwrap()).unwrap()
}

/// The addresses at which programs of that name ask the API, on a host.
fn peers(host: &str, program: &str) -> Vec<String> {
    let dport = format!("dport = :{API}");
    let words = ["ss", "-tnpH", "state", "established", &dport];
    let told = Site::host(host).run(&words, b"").unwrap();
    let of = |line: &&str| line.contains(&format!("\"{program}\""));
    let peer = |line: &str| {
        let peer = line.split_whitespace().nth(3).unwrap();
        peer.rsplit_once(':').unwrap().0.to_owned()
    };
    let mut peers: Vec<_> = told.lines().filter(of).map(peer).collect();
    peers.sort();
    peers.dedup();
    peers
}

/// The address of the one machine that does this, inside the cluster.
fn within(site: &mut Site, role: &str) -> String {
    let machines = site.machines();
    let machine = machines.iter().find(|machine| machine["role"] == role);
    machine.unwrap()["address"].as_str().unwrap().to_owned()
}

/// Waits until whoever runs on a compute machine asks the API there and nowhere else.
fn asks(site: &mut Site, role: &str) {
    let at = vec![within(site, role)];
    let compute = site.names("compute").remove(0);
    for program in ["kubelet", "kube-proxy"] {
        let what = format!("{program} of {compute} asks at {at:?}");
        until(&what, || (peers(&compute, program) == at).then_some(()));
    }
}

fn carries_all(node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let has = |key: &str, value: &str| labels[key] == value;
    let taints = node["spec"]["taints"].as_array().unwrap();
    let taint = |taint: &Value| taint["key"] == "lab/slow" && taint["value"] == "yes";
    has("team", "blue")
        && has("lab/disk", "fast")
        && has("slipway.dev/nodepool", "compute")
        && has("slipway.dev/node-type", "compute")
        && has("slipway.dev/provider", "sandbox")
        && has("slipway.dev/provider-instance", "here")
        && has("topology.kubernetes.io/region", "local")
        && node["metadata"]["annotations"]["lab/note"] == "two words"
        && taints.iter().any(taint)
        && taints.len() == 1
}

/// What a pod has written, as whoever runs `kubectl logs` gets it.
fn logged(site: &mut Site) -> Result<String, String> {
    site.kubectl(&["logs", "deployment/echo"], "")
}

/// Asks on a control machine whether all nodes are ready.
fn all_ready(control: &Within) -> Result<String, String> {
    let admin = "--kubeconfig=/etc/kubernetes/admin.conf";
    let words = ["kubectl", admin, "get", "nodes", "--no-headers"];
    let nodes = control.run(&words, b"")?;
    let ready = |line: &str| line.split_whitespace().nth(1) == Some("Ready");
    if nodes.lines().count() == 2 && nodes.lines().all(ready) {
        Ok(nodes)
    } else {
        Err(nodes)
    }
}

/// Looks whether nodes have the marks of their pools.
fn told(site: &mut Site) {
    let compute = site.names("compute").remove(0);
    let seen = node(site, &compute);
    assert!(carries_all(&seen), "{seen:#}");
    let provider = seen["spec"]["providerID"].as_str().unwrap();
    assert!(provider.starts_with("slipway://machine-"), "{provider}");
    let control = site.names("control").remove(0);
    let seen = node(site, &control);
    assert_eq!(
        seen["metadata"]["labels"]["slipway.dev/node-type"],
        "control"
    );
    let taints = seen["spec"]["taints"].as_array().unwrap();
    assert_eq!(
        taints.len(),
        1,
        "only that of the control plane: {taints:?}"
    );
}

#[test]
fn the_api_moves_to_a_load_balancer_and_back_and_nodes_follow() {
    let test = "endpoint::the_api_moves_to_a_load_balancer_and_back_and_nodes_follow";
    foreseen(test, &[VERSION], |site| {
        site.step("a control machine and a compute machine", |site| {
            site.apply(MARKED);
            asks(site, "control");
        });
        site.step("nodes carry what they were told", told);
        site.step("logs of a pod are read", |site| {
            site.deploy(1);
            logged(site).unwrap();
        });
        let at = site.addresses("control").remove(0);
        let control = Site::host(&site.names("control").remove(0));
        let apis = Asking::begin("the API", move || api(&at, API));
        let nodes = Asking::begin("nodes", move || all_ready(&control));
        site.step("what somebody else changed is mended", |site| {
            let compute = site.names("compute").remove(0);
            let words = [
                "label",
                "node",
                &compute,
                "team=red",
                "lab/disk-",
                "--overwrite",
            ];
            site.kubectl(&words, "").unwrap();
            let words = ["label", "node", &compute, "theirs=stays"];
            site.kubectl(&words, "").unwrap();
            until("the label is mended", || {
                carries_all(&node(site, &compute)).then_some(())
            });
            let seen = node(site, &compute);
            assert_eq!(seen["metadata"]["labels"]["theirs"], "stays");
        });
        let balanced = Shape {
            balanced: true,
            ..MARKED
        };
        site.step("the API is behind a load balancer", |site| {
            site.apply(balanced);
            asks(site, "balancer");
        });
        site.step("the API is on its machine again", |site| {
            site.apply(MARKED);
            asks(site, "control");
            logged(site).unwrap();
        });
        let (apis, nodes) = (apis.end(), nodes.end());
        for (who, heard) in [("the API", &apis), ("nodes", &nodes)] {
            site.figure(&format!("{who} {heard}"));
        }
        assert!(apis.failures.is_empty(), "{apis}");
        assert!(nodes.failures.is_empty(), "{nodes}");
        site.step("delete", |site| site.delete());
    });
}
