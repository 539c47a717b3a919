//! Machines of load balancers: their names, their addresses, and when they have to go.

use super::{History, admitted};
use crate::expand::{Change, Known};
use expect_test::expect;
use model::manifest::Manifest;

/// A cluster behind load balancers; `clusters` are theirs, `more` is written into the cluster.
fn manifest(door: u32, more: &str, clusters: &str, port: u16) -> Manifest {
    let text = format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: box, providerType: sandbox}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: box, region: n}}, count: 1, serverType: lite, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: box, region: n}}, count: 1, serverType: lite, image: debian-12}}
      - {{name: door, providerSpec: {{name: box, region: n}}, count: {door}, serverType: lite, image: debian-12}}
  kubernetes:
    clusters:
      - {{name: edge, version: v1.34.0, network: 10.8.0.0/24, pools: {{control: [brain], compute: [muscle, door]}}{more}}}
  loadBalancers:
    roles:
      - {{name: web, protocol: tcp, port: {port}, targetPort: 30443, targetPools: [muscle]}}
    clusters: [{clusters}]
"
    );
    admitted(&text)
}

const FRONT: &str = "{name: front, targetedK8s: edge, pools: [door], roles: [web]}";
const BACK: &str = "{name: back, targetedK8s: edge, pools: [door, muscle], roles: []}";

fn both() -> String {
    format!("{FRONT}, {BACK}")
}

#[test]
fn their_machines_bear_their_names_and_share_the_ordinals_of_the_pool() {
    History::new()
        .apply(&manifest(1, "", &both(), 443))
        .check(&expect![[r#"
            generation 1 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-door-01 10.8.0.3 life 0
              edge-muscle-01 10.8.0.2 life 0
              back-door-03 10.8.0.5 life 2
              back-muscle-02 10.8.0.6 life 1
              front-door-02 10.8.0.4 life 1
        "#]]);
}

#[test]
fn a_pool_grows_wherever_it_is_used() {
    History::new()
        .apply(&manifest(1, "", FRONT, 443))
        .apply(&manifest(2, "", FRONT, 443))
        .check(&expect![[r#"
            generation 2 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-door-01 10.8.0.3 life 0
              edge-door-03 10.8.0.5 life 2
              edge-muscle-01 10.8.0.2 life 0
              front-door-02 10.8.0.4 life 1
              front-door-04 10.8.0.6 life 3
        "#]]);
}

#[test]
fn without_their_load_balancer_machines_leave_and_keep_their_addresses() {
    History::new()
        .apply(&manifest(1, "", &both(), 443))
        .apply(&manifest(1, "", BACK, 443))
        .check(&expect![[r#"
            generation 2 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-door-01 10.8.0.3 life 0
              edge-muscle-01 10.8.0.2 life 0
              back-door-03 10.8.0.5 life 2
              back-muscle-02 10.8.0.6 life 1
              front-door-02 10.8.0.4 leaves
        "#]]);
    // Under another name it is another one.
    History::new()
        .apply(&manifest(1, "", FRONT, 443))
        .apply(&manifest(1, "", &FRONT.replace("front", "gate"), 443))
        .check(&expect![[r#"
            generation 2 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-door-01 10.8.0.3 life 0
              edge-muscle-01 10.8.0.2 life 0
              gate-door-03 10.8.0.5 life 2
              front-door-02 10.8.0.4 leaves
        "#]]);
}

#[test]
fn another_role_proxy_or_playbook_is_another_generation_with_the_same_machines() {
    let history = History::new().apply(&manifest(1, "", FRONT, 443));
    let before = history.desired.clone().unwrap();
    let proxy = ", installationProxy: {mode: on, endpoint: 'http://proxy.example.org'}";
    let playbook = ", playbooks: {afterJoining: [{name: label, text: '- {hosts: all}'}]}";
    let changes = [
        manifest(1, "", FRONT, 443),
        manifest(1, "", FRONT, 8443),
        manifest(1, proxy, FRONT, 443),
        manifest(1, ", installationProxy: {mode: off}", FRONT, 443),
        manifest(1, playbook, FRONT, 443),
        manifest(
            1,
            "",
            &format!("{FRONT}, {{name: idle, targetedK8s: edge}}"),
            443,
        ),
    ];
    let change = |next: &Manifest| {
        let next = history.next(next);
        assert_eq!(next.desired.machines, before.machines);
        assert_eq!(next.desired.leaving, []);
        (next.change, next.desired.generation.0)
    };
    let told: Vec<_> = changes.iter().map(change).collect();
    assert_eq!(
        told,
        [
            (Change::Unchanged, 1),
            (Change::Changed, 2),
            (Change::Changed, 2),
            (Change::Unchanged, 1),
            (Change::Changed, 2),
            (Change::Changed, 2)
        ]
    );
}

#[test]
fn what_is_played_after_joining_is_a_change_only_to_the_machines_that_were_there() {
    let playing = |text: &str| {
        format!(", playbooks: {{afterJoining: [{{name: label, text: '- {{hosts: {text}}}'}}]}}")
    };
    let comes_with_it = |history: &History| {
        let desired = history.desired.as_ref().unwrap();
        let machines = desired.machines.iter();
        let machines = machines.filter(|machine| desired.comes_with_playbooks(machine));
        let names: Vec<_> = machines.map(|machine| machine.name.to_string()).collect();
        names.join(" ")
    };
    let history = History::new().apply(&manifest(1, &playing("all"), "", 443));
    assert_eq!(
        comes_with_it(&history),
        "edge-brain-01 edge-door-01 edge-muscle-01"
    );
    let history = history.apply(&manifest(2, &playing("all"), "", 443));
    assert_eq!(
        comes_with_it(&history),
        "edge-brain-01 edge-door-01 edge-door-02 edge-muscle-01"
    );
    let history = history.apply(&manifest(3, &playing("none"), "", 443));
    assert_eq!(comes_with_it(&history), "edge-door-03");
}

#[test]
fn a_load_balancer_goes_with_its_cluster() {
    let history = History::new().apply(&manifest(1, "", FRONT, 443));
    let desired = history.desired.as_ref().unwrap();
    let retired = crate::retire(Known {
        desired,
        observed: &history.observed,
        intents: &[],
        open: &[],
    });
    assert!(retired.tombstone && retired.machines.is_empty());
    let left: Vec<_> = retired
        .leaving
        .iter()
        .map(|machine| machine.name.as_str())
        .collect();
    assert_eq!(
        left,
        [
            "edge-brain-01",
            "edge-door-01",
            "edge-muscle-01",
            "front-door-02"
        ]
    );
}
