//! Machines of load balancers: their names, their addresses, and when they have to go.

use super::{History, admitted};
use crate::expand::{Change, Known};
use expect_test::expect;
use model::balancer::{Balance, Listener, Protocol};
use model::manifest::Manifest;
use model::task::Action;

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
      - {{name: api, protocol: tcp, port: 6443, targetPort: 6443, targetPools: [brain]}}
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

/// What is remembered of load balancers as they were.
fn former(history: &History) -> String {
    let former = history.desired.iter().flat_map(|desired| &desired.former);
    let told = former.map(|of| {
        let roles: Vec<_> = of.roles.iter().map(|role| role.name.as_str()).collect();
        format!("{}: {}", of.name, roles.join(" "))
    });
    told.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_load_balancer_is_remembered_until_its_machines_are_gone() {
    let gate = manifest(1, "", &FRONT.replace("front", "gate"), 443);
    let history = History::new().apply(&manifest(1, "", FRONT, 443));
    assert_eq!(former(&history), "");
    let history = history.apply(&gate);
    assert_eq!(former(&history), "front: web");
    assert_eq!(history.next(&gate).change, Change::Unchanged);
    let history = history.gone("front-door-02");
    assert_eq!(history.next(&gate).change, Change::Unchanged, "no reason");
    assert_eq!(
        former(&history.apply(&manifest(2, "", "", 443))),
        "gate: web"
    );
}

#[test]
fn who_passed_the_api_on_is_remembered_until_it_does_so_no_more() {
    let front = |roles: &str| {
        let declared = FRONT.replace("[web]", roles);
        manifest(1, "", &declared, 443)
    };
    let told = |mut history: History, roles: &[&str]| {
        let desired = history.desired.as_ref().unwrap();
        let machine = desired.machine_named("front-door-02").unwrap().clone();
        let listener = |role: &&str| Listener {
            role: role.parse().unwrap(),
            protocol: Protocol::Tcp,
            port: 1,
            target_port: 1,
            targets: Vec::new(),
            proxy_protocol: false,
            sticky: false,
        };
        let balance = Balance {
            address: machine.address,
            listeners: roles.iter().map(listener).collect(),
        };
        let balance = Action::Balance { balance };
        crate::predict(&mut history.observed, &machine, &balance, super::NOW);
        history
    };
    // Nobody was led to one that was never told.
    let history = History::new().apply(&front("[web, api]"));
    let history = history.apply(&front("[web]"));
    assert_eq!(former(&history), "");
    let history = History::new().apply(&front("[web, api]"));
    let history = told(history, &["web", "api"]).apply(&front("[web]"));
    assert_eq!(former(&history), "front: api");
    assert_eq!(former(&told(history, &["web"]).apply(&front("[]"))), "");
    // It passes it on again.
    let history = History::new().apply(&front("[web, api]"));
    let history = told(history, &["web", "api"]).apply(&front("[web]"));
    assert_eq!(former(&history.apply(&front("[api]"))), "");
    // It goes as a whole.
    let history = History::new().apply(&front("[web, api]"));
    let history = told(history, &["web", "api"]).apply(&front("[web]"));
    let gone = history.apply(&manifest(1, "", "", 443));
    assert_eq!(former(&gone), "front: web api");
}
