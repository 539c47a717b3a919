//! The least that must work: one machine for the control plane, one for pods, and one pod.

use crate::asking::answered;
use crate::shape::{NODE_PORT, Shape};
use crate::site::{VERSION, foreseen};

#[test]
fn a_cluster_of_two_machines_runs_a_pod_and_goes_without_a_trace() {
    let test = "smoke::a_cluster_of_two_machines_runs_a_pod_and_goes_without_a_trace";
    let shape = Shape::small(VERSION, 1);
    foreseen(test, &[VERSION], |site| {
        site.step("from apply to all nodes ready", |site| site.apply(shape));
        site.step("a pod is there", |site| site.deploy(1));
        site.step("it answers at the compute machine", |site| {
            let at = site.addresses("compute");
            answered(&at[0], NODE_PORT);
        });
        site.step("delete", |site| site.delete());
    });
}
