//! Gates that nodes pass before they serve again.

use super::{HELLO, admit, source};
use crate::fault::Fault;
use crate::gate::{Check, Gate};
use crate::manifest::Manifest;
use expect_test::expect;
use std::time::Duration;

fn admitted(gates: &str) -> Result<Manifest, Vec<Fault>> {
    let more = format!("version: v1.34.1\n        upgradeGates: {gates}");
    let text = HELLO.replacen("version: v1.34.1", &more, 1);
    admit(&source::parse(&text).unwrap())
}

#[test]
fn gates_are_commands_and_jobs() {
    let manifest = admitted(
        "
          - {name: ceph, command: [/usr/local/bin/healthy, '--all'], timeout: 30m}
          - name: smoke
            job:
              apiVersion: batch/v1
              kind: Job
              metadata: {namespace: tests}
              spec: {template: {spec: {containers: [{name: smoke, image: 'smoke:1', args: [1.5, 2, true]}]}}}",
    );
    let gates = &manifest.unwrap().clusters[0].gates;
    let [ceph, smoke] = gates.as_slice() else {
        panic!("{gates:?}")
    };
    let words = ["/usr/local/bin/healthy", "--all"].map(str::to_owned);
    assert_eq!(ceph.check, Check::Command(words.to_vec()));
    assert_eq!(ceph.patience, Duration::from_mins(30));
    assert_eq!(smoke.patience, Gate::PATIENCE);
    let Check::Job(job) = &smoke.check else {
        panic!("{smoke:?}")
    };
    assert_eq!(job["metadata"]["namespace"], "tests");
    let args = job.pointer("/spec/template/spec/containers/0/args");
    assert_eq!(args.unwrap().to_string(), "[1.5,2,true]");
}

#[test]
fn all_faults_of_gates_are_told() {
    let told = |gates: &str| {
        let faults = admitted(gates).unwrap_err();
        let path = "spec.kubernetes.clusters[0].upgradeGates";
        let told = faults.iter();
        let told = told.map(|fault| fault.to_string().replace(path, ""));
        told.collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        : found 60m for all gates together, allowed: at most 50m
        [0].command: found nothing, allowed: a command (a list of words) or a job
        [1].command: found no word, allowed: a program and its arguments
        [2].command[0]: found `1` (a number), allowed: a text
        [2].timeout: found `10s`: a gate is asked for 1m to 50m; a time is a whole number of minutes, such as 30m
        [3].command: found a command and a job, allowed: one of them
        [4].job: found apiVersion: none and kind: Pod, allowed: apiVersion: batch/v1 and kind: Job
        [5].job.spec.template.spec.containers: found no container, allowed: at least one
        [6].job.spec.template.spec.containers[0].name: found no text; this field is required
        [6].job.spec.template.spec.containers[1].image: found no text; this field is required
        [7].job.spec.template.spec.restartPolicy: found a pod that never ends, allowed: Never or OnFailure
        [8].job: found `x` (a text), allowed: a Job as Kubernetes knows it
        [10].name: found `h` again; every gate has a name of its own
        [11].retries: unknown field; allowed: name, command, job, timeout"#]].assert_eq(&told(
        "
          - {name: a}
          - {name: b, command: []}
          - {name: c, command: [1, x], timeout: 10s}
          - {name: d, command: [x], job: {apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{name: a, image: b}]}}}}}
          - {name: e, job: {kind: Pod}}
          - {name: f, job: {apiVersion: batch/v1, kind: Job}}
          - {name: f2, job: {apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{nme: a, image: b}, {name: a, image: 1}]}}}}}
          - {name: f3, job: {apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Always, containers: [{}]}}}}}
          - {name: g, job: x}
          - {name: h, command: [x], timeout: 30m}
          - {name: h, command: [y]}
          - {name: i, command: [x], timeout: 30m, retries: 3}",
    ));
    expect![": found `yes` (a text), allowed: a list"].assert_eq(&told("yes"));
}
