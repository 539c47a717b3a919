//! What has no effect is let pass, and told.

use super::{HELLO, admit, check, source};
use expect_test::{Expect, expect};

/// Shows what is remarked of the smallest good manifest with these edits.
#[track_caller]
fn remarked(edits: &[(&str, &str)], expected: &Expect) {
    let mut text = HELLO.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from:?} is not in the manifest");
        text = text.replacen(from, to, 1);
    }
    let manifest = admit(&source::parse(&text).unwrap()).unwrap();
    let told = manifest.remarks.iter().map(|remark| format!("{remark}\n"));
    expected.assert_eq(&told.collect::<String>());
}

const DOOR: &str = "
    static:
      - name: door
        nodes: [{endpoint: 203.0.113.9}]";

#[test]
fn of_what_everybody_uses_nothing_is_remarked() {
    remarked(&[], &expect![""]);
}

#[test]
fn only_compute_machines_have_a_data_disk() {
    let disk = [
        ("count: 3", "count: 3\n        storageDiskSize: 100"),
        ("count: 2", "count: 2\n        storageDiskSize: 100"),
    ];
    remarked(
        &disk,
        &expect![[r#"
            spec.nodePools.dynamic[0].storageDiskSize: found 100, which has no effect: only compute machines have a data disk, and this pool has none
        "#]],
    );
    remarked(
        &[("count: 3", "count: 3\n        storageDiskSize: 0")],
        &expect![""],
    );
}

#[test]
fn roles_providers_and_load_balancers_that_do_nothing_are_told() {
    let balancers = "compute: [muscle, attic]}
  loadBalancers:
    roles:
      - {name: web, protocol: tcp, port: 80, targetPort: 80, targetPools: [muscle]}
    clusters:
      - {name: front, targetedK8s: first, roles: [], pools: [door]}";
    remarked(
        &[
            (
                "{name: lab, providerType: simulated}",
                "{name: lab, providerType: simulated}\n    - {name: spare, providerType: simulated}",
            ),
            ("\n    static:", DOOR),
            ("compute: [muscle, attic]}", balancers),
        ],
        &expect![[r#"
            spec.providers[1].name: found `spare`, which has no effect: no pool and no load balancer names it
            spec.loadBalancers.roles[0].name: found `web`, which has no effect: no load balancer has it
            spec.loadBalancers.clusters[0].roles: found no role: it has machines, and listens to nothing
        "#]],
    );
}

#[test]
fn nobody_says_of_a_node_that_it_has_a_control_plane() {
    check(
        &[(
            "count: 2",
            "count: 2\n        labels: {node-role.kubernetes.io/control-plane: '', node-role.kubernetes.io/worker: ''}",
        )],
        &expect![[r#"
            spec.nodePools.dynamic[1].labels[node-role.kubernetes.io/control-plane]: found `node-role.kubernetes.io/control-plane`, allowed: a name that neither Slipway nor Kubernetes keeps to itself
        "#]],
    );
}

#[test]
fn a_number_with_a_fraction_is_no_count() {
    check(
        &[("count: 3", "count: 3.0")],
        &expect![[r#"
            spec.nodePools.dynamic[0].count: found `3.0` (a number with a fraction), allowed: a whole number from 1 to 5000
        "#]],
    );
}
