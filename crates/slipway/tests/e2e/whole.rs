//! One manifest makes three control machines, two compute machines and a load balancer before both.

use crate::asking::{answered, api, asked, until};
use crate::shape::{API, NODE_PORT, Shape, WEB};
use crate::site::{Site, VERSION, foreseen};
use std::collections::BTreeSet;

/// The cluster that the larger stories are about.
pub(crate) const WHOLE: Shape = Shape {
    version: VERSION,
    control: 3,
    compute: 2,
    balanced: true,
    addons: "[]",
    marks: "",
    gates: "[]",
};

/// Makes it, with a pod on each compute machine that answers through the load balancer; answers
/// where that is.
pub(crate) fn made(site: &mut Site) -> String {
    site.step("from apply to all nodes ready", |site| site.apply(WHOLE));
    site.step("two pods are there", |site| site.deploy(2));
    let door = site.addresses("balancer").remove(0);
    site.step("both answer through the load balancer", |_| {
        answered(&door, WEB);
        let mut names = BTreeSet::new();
        until("an answer of the second pod", || {
            names.extend(asked(&door, WEB));
            (names.len() == 2).then_some(())
        });
    });
    door
}

/// How many members of etcd are in good health.
pub(crate) fn members(site: &mut Site) -> usize {
    let pods = [
        "-n",
        "kube-system",
        "get",
        "pods",
        "-l",
        "component=etcd",
        "-o",
        "name",
    ];
    let pods = site.kubectl(&pods, "").unwrap();
    let healthy = pods.lines().find_map(|pod| {
        let words = ["-n", "kube-system", "exec", pod, "--", "etcdctl"];
        let keys = [
            "--cacert=/etc/kubernetes/pki/etcd/ca.crt",
            "--cert=/etc/kubernetes/pki/etcd/peer.crt",
            "--key=/etc/kubernetes/pki/etcd/peer.key",
            "endpoint",
            "health",
            "--cluster",
        ];
        site.kubectl(&[&words[..], &keys].concat(), "").ok()
    });
    let told = healthy.unwrap_or_default();
    told.matches("is healthy").count()
}

#[test]
fn pods_and_the_api_of_three_control_machines_answer_through_a_load_balancer() {
    let test = "whole::pods_and_the_api_of_three_control_machines_answer_through_a_load_balancer";
    foreseen(test, &[VERSION], |site| {
        let door = made(site);
        site.step("all nodes and the API answer, too", |site| {
            for at in site.addresses("compute") {
                answered(&at, NODE_PORT);
            }
            until("an answer of the API", || api(&door, API).ok());
            assert_eq!(members(site), 3, "members of etcd");
        });
        site.step("delete", |site| site.delete());
    });
}
