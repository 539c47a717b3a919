//! What becomes of declared budgets, windows, groups and secrets.

use super::{History, admitted};
use expect_test::{Expect, expect};
use model::manifest::Manifest;
use std::fmt::Write as _;

/// A cluster with a pool in a group, and a given machine with a key.
const TEXT: &str = "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: m}
spec:
  providers: [{name: lab, providerType: simulated, secretRef: {name: account}}]
  disruption: {groups: [{name: rack, unavailable: 1}, {name: row, unavailable: 5}]}
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: lab, region: n}, count: 1, serverType: small, image: debian-12}
      - {name: muscle, providerSpec: {name: lab, region: n}, count: 1, serverType: small, image: debian-12, disruption: {unavailable: 2, group: rack}}
      - {name: brawn, providerSpec: {name: lab, region: n}, count: 1, serverType: small, image: debian-12, disruption: {group: row}}
    static:
      - {name: attic, nodes: [{endpoint: 203.0.113.9, secretRef: {name: keys, namespace: default}}]}
  kubernetes:
    clusters:
      - name: edge
        version: 1.34.0
        network: 10.8.0.0/24
        disruption: {unavailable: 3, windows: [{days: [Sat], start: '02:00', duration: 2h}]}
        pools: {control: [brain], compute: [muscle, attic, brawn]}
";

/// The manifest after some edits.
fn edited(edits: &[(&str, &str)]) -> Manifest {
    let mut text = TEXT.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from:?} is not in the manifest");
        text = text.replacen(from, to, 1);
    }
    admitted(&text)
}

/// Pool `brawn` and its group are no longer declared.
const NO_BRAWN: [(&str, &str); 3] = [
    (", {name: row, unavailable: 5}", ""),
    (
        "      - {name: brawn, providerSpec: {name: lab, region: n}, count: 1, serverType: small, image: debian-12, disruption: {group: row}}\n",
        "",
    ),
    (", brawn]", "]"),
];

#[track_caller]
fn check(history: &History, expected: &Expect) {
    let desired = history.desired.as_ref().unwrap();
    let allowed = &desired.disruption;
    let mut told = format!(
        "generation {}: {} at once, {} windows\n",
        desired.generation,
        allowed.unavailable,
        allowed.windows.0.len()
    );
    for (pool, budget) in &allowed.pools {
        let group = budget.group.as_ref().map_or("-", |group| group.as_str());
        writeln!(
            told,
            "  pool {pool}: {:?}, group {group}",
            budget.unavailable
        )
        .unwrap();
    }
    for (group, budget) in &allowed.groups {
        writeln!(told, "  group {group}: {budget}").unwrap();
    }
    for machine in desired.all() {
        let secret = machine.origin.secret().unwrap();
        let leaves = if desired.leaving.contains(machine) {
            " leaves"
        } else {
            ""
        };
        writeln!(told, "  {}: {secret}{leaves}", machine.name).unwrap();
    }
    expected.assert_eq(&told);
}

#[test]
fn a_cluster_knows_what_its_manifest_allows() {
    let once = History::new().apply(&edited(&[]));
    check(
        &once,
        &expect![[r#"
        generation 1: 3 at once, 1 windows
          pool brawn: None, group row
          pool muscle: Some(2), group rack
          group rack: 1
          group row: 5
          edge-brain-01: account
          edge-attic-01: keys/privatekey
          edge-brawn-01: account
          edge-muscle-01: account
    "#]],
    );
    check(
        &once.apply(&edited(&[])),
        &expect![[r#"
        generation 1: 3 at once, 1 windows
          pool brawn: None, group row
          pool muscle: Some(2), group rack
          group rack: 1
          group row: 5
          edge-brain-01: account
          edge-attic-01: keys/privatekey
          edge-brawn-01: account
          edge-muscle-01: account
    "#]],
    );
}

#[test]
fn a_changed_budget_or_window_is_a_generation_that_touches_no_machine() {
    let changed = History::new().apply(&edited(&[])).joined().apply(&edited(&[
        ("unavailable: 3", "unavailable: 1"),
        ("{days: [Sat], start: '02:00', duration: 2h}", ""),
        ("{unavailable: 2, group: rack}", "{group: row}"),
        (
            "{name: rack, unavailable: 1}, {name: row, unavailable: 5}",
            "{name: row, unavailable: 4}",
        ),
    ]));
    check(
        &changed,
        &expect![[r#"
        generation 2: 1 at once, 0 windows
          pool brawn: None, group row
          pool muscle: None, group row
          group row: 4
          edge-brain-01: account
          edge-attic-01: keys/privatekey
          edge-brawn-01: account
          edge-muscle-01: account
    "#]],
    );
}

#[test]
fn machines_on_their_way_out_stay_in_their_group() {
    let leaving = History::new().apply(&edited(&[])).apply(&edited(&NO_BRAWN));
    check(
        &leaving,
        &expect![[r#"
        generation 2: 3 at once, 1 windows
          pool brawn: None, group row
          pool muscle: Some(2), group rack
          group rack: 1
          group row: 5
          edge-brain-01: account
          edge-attic-01: keys/privatekey
          edge-muscle-01: account
          edge-brawn-01: account leaves
    "#]],
    );
    let gone = leaving.gone("edge-brawn-01").apply(&edited(&NO_BRAWN));
    check(
        &gone,
        &expect![[r#"
        generation 2: 3 at once, 1 windows
          pool brawn: None, group row
          pool muscle: Some(2), group rack
          group rack: 1
          group row: 5
          edge-brain-01: account
          edge-attic-01: keys/privatekey
          edge-muscle-01: account
          edge-brawn-01: account leaves
    "#]],
    );
    let mut later = NO_BRAWN.to_vec();
    later.push(("unavailable: 3", "unavailable: 4"));
    let later = gone.apply(&edited(&later));
    check(
        &later,
        &expect![[r#"
        generation 3: 4 at once, 1 windows
          pool muscle: Some(2), group rack
          group rack: 1
          edge-brain-01: account
          edge-attic-01: keys/privatekey
          edge-muscle-01: account
    "#]],
    );
}

#[test]
fn another_secret_is_another_key_for_the_same_machines() {
    let renamed = [
        (
            "secretRef: {name: account}",
            "secretRef: {name: account-2, key: token}",
        ),
        ("{name: keys, namespace: default}", "{name: keys-2}"),
    ];
    let mut both = renamed.to_vec();
    both.extend(NO_BRAWN);
    let changed = History::new()
        .apply(&edited(&[]))
        .joined()
        .apply(&edited(&both));
    check(
        &changed,
        &expect![[r#"
        generation 2: 3 at once, 1 windows
          pool brawn: None, group row
          pool muscle: Some(2), group rack
          group rack: 1
          group row: 5
          edge-brain-01: account-2/token
          edge-attic-01: keys-2/privatekey
          edge-muscle-01: account-2/token
          edge-brawn-01: account-2/token leaves
    "#]],
    );
}

#[test]
fn a_secret_of_another_project_is_refused() {
    let foreign = edited(&[
        (
            "secretRef: {name: account}",
            "secretRef: {name: account, namespace: claudie}",
        ),
        ("namespace: default", "namespace: other"),
        (
            "version: 1.34.0",
            "version: 1.34.0\n        etcdBackup: {to: {s3: {endpoint: https://s3.example.org, bucket: etcd, secretRef: {name: store, namespace: claudie}}}}",
        ),
    ]);
    History::new()
        .apply(&edited(&[]))
        .refuse(&foreign, &expect![[r#"
            spec.providers[0].secretRef.namespace: found `claudie`, allowed: default, the project of the manifest, or nothing; a manifest uses the secrets of its own project
            spec.nodePools.static[0].nodes[0].secretRef.namespace: found `other`, allowed: default, the project of the manifest, or nothing; a manifest uses the secrets of its own project
            spec.kubernetes.clusters[0].etcdBackup.to.s3.secretRef.namespace: found `claudie`, allowed: default, the project of the manifest, or nothing; a manifest uses the secrets of its own project
        "#]]);
}

/// The way to the given machine, with the generation and the machine's id.
fn way(history: &History) -> String {
    let desired = history.desired.as_ref().unwrap();
    let machine = desired.machine_named("edge-attic-01").unwrap();
    let jump = machine.origin.jump();
    let jump = jump.map_or_else(
        || "directly".to_owned(),
        |jump| {
            let secret = jump.secret.as_ref().map(ToString::to_string);
            format!(
                "{}@{}:{} with {}, since {}",
                jump.username,
                jump.endpoint,
                jump.ssh_port,
                secret.unwrap_or_default(),
                jump.since
            )
        },
    );
    let stays = desired.machines.contains(machine);
    format!(
        "generation {}: {} stays: {stays}, {jump}\n",
        desired.generation, machine.id
    )
}

#[test]
fn another_way_to_a_machine_is_a_generation_that_replaces_nothing() {
    let nodes = "nodes: [{endpoint: 203.0.113.9";
    let behind = |jump: &str| edited(&[(nodes, &format!("jumpHost: {{{jump}}}, {nodes}"))]);
    let front = "endpoint: 203.0.113.1, secretRef: {name: front}";
    let mut told = String::new();
    let mut history = History::new().apply(&edited(&[])).joined();
    for manifest in [
        edited(&[]),
        behind(front),
        behind(front),
        // The same host, entered in another way: its host key is the one that was.
        behind("endpoint: 203.0.113.1, username: ann, secretRef: {name: front, key: id}"),
        // Another host, and another one at the same address.
        behind("endpoint: 203.0.113.1, sshPort: 2222, secretRef: {name: front}"),
        behind("endpoint: 203.0.113.2, secretRef: {name: front}"),
        // Taken out and put back.
        edited(&[]),
        behind("endpoint: 203.0.113.2, secretRef: {name: front}"),
    ] {
        history = history.apply(&manifest);
        told.push_str(&way(&history));
    }
    expect![[r#"
        generation 1: machine-fwbzvtdf0b4mm stays: true, directly
        generation 2: machine-fwbzvtdf0b4mm stays: true, root@203.0.113.1:22 with front/privatekey, since 2
        generation 2: machine-fwbzvtdf0b4mm stays: true, root@203.0.113.1:22 with front/privatekey, since 2
        generation 3: machine-fwbzvtdf0b4mm stays: true, ann@203.0.113.1:22 with front/id, since 2
        generation 4: machine-fwbzvtdf0b4mm stays: true, root@203.0.113.1:2222 with front/privatekey, since 4
        generation 5: machine-fwbzvtdf0b4mm stays: true, root@203.0.113.2:22 with front/privatekey, since 5
        generation 6: machine-fwbzvtdf0b4mm stays: true, directly
        generation 7: machine-fwbzvtdf0b4mm stays: true, root@203.0.113.2:22 with front/privatekey, since 7
    "#]].assert_eq(&told);
}

/// Who bears the name of a provider that was there before is not asked to take its machines away.
#[test]
fn machines_on_their_way_out_keep_what_opens_their_own_provider() {
    let other = [
        ("providerType: simulated", "providerType: hetzner"),
        ("secretRef: {name: account}", "secretRef: {name: other}"),
    ];
    let moved = History::new().apply(&edited(&[])).apply(&edited(&other));
    check(
        &moved,
        &expect![[r#"
        generation 2: 3 at once, 1 windows
          pool brawn: None, group row
          pool muscle: Some(2), group rack
          group rack: 1
          group row: 5
          edge-brain-02: other
          edge-attic-01: keys/privatekey
          edge-brawn-02: other
          edge-muscle-02: other
          edge-brain-01: account leaves
          edge-muscle-01: account leaves
          edge-brawn-01: account leaves
    "#]],
    );
}

#[test]
fn other_modules_are_another_way_of_making_machines() {
    let with = |templates: &str| {
        let text = format!(
            "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: simulated{templates}}}]
  nodePools:
    dynamic: [{{name: brain, providerSpec: {{name: lab, region: n}}, count: 1, serverType: s, image: i}}]
  kubernetes:
    clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/24, pools: {{control: [brain]}}}}]
"
        );
        admitted(&text)
    };
    let at = |commit: &str| {
        with(&format!(
            ", templates: {{repository: github.com/o/m, commit: {commit}}}"
        ))
    };
    let first = History::new().apply(&at("v1"));
    assert_eq!(first.next(&at("v1")).change, crate::Change::Unchanged);
    for other in [at("v2"), at("main"), with("")] {
        let next = first.next(&other);
        assert_eq!(next.change, crate::Change::Changed);
        assert_eq!(
            next.desired.leaving.len(),
            1,
            "what was not made yet is made anew"
        );
    }
}
