//! What manifests say that nodes carry.

use super::{HELLO, admit, check, source};
use crate::care::{Taint, TaintEffect};
use crate::manifest::{Manifest, Pool};
use expect_test::expect;

const POOL: &str = "count: 2\n";

fn with(fields: &str) -> String {
    format!("count: 2\n{fields}")
}

fn admitted(edits: &[(&str, &str)]) -> Manifest {
    let mut text = HELLO.to_owned();
    for (from, to) in edits {
        text = text.replacen(from, to, 1);
    }
    admit(&source::parse(&text).unwrap()).unwrap()
}

#[test]
fn nodes_of_a_pool_carry_what_kubernetes_would_take() {
    let more = "        labels: {team: blue, example.org/Disk_1.a: '', slipway.dev/upgrade-lock: ann}\n        \
                annotations: {Example.org/Note: 'two words: and more'}\n        \
                taints: [{key: gpu, effect: NoExecute}, {key: example.org/db, value: 'yes', effect: NoSchedule}, {key: gpu, value: '', effect: NoSchedule}]\n";
    let manifest = admitted(&[(POOL, &with(more))]);
    let marks = manifest.pools[&"muscle".parse().unwrap()].marks();
    assert_eq!(marks.labels["team"], "blue");
    assert_eq!(marks.labels["example.org/Disk_1.a"], "");
    assert_eq!(marks.annotations["Example.org/Note"], "two words: and more");
    let taint = |key: &str, value: &str, effect| Taint {
        key: key.to_owned(),
        effect,
        value: value.to_owned(),
    };
    let wished = [
        taint("example.org/db", "yes", TaintEffect::NoSchedule),
        taint("gpu", "", TaintEffect::NoSchedule),
        taint("gpu", "", TaintEffect::NoExecute),
    ];
    assert_eq!(
        marks.taints, wished,
        "in one order, however they are written"
    );
    assert!(manifest.pools[&"brain".parse().unwrap()].marks().is_empty());
    let stored = serde_json::to_string(&manifest).unwrap();
    assert_eq!(serde_json::from_str::<Manifest>(&stored).unwrap(), manifest);
}

#[test]
fn every_fault_of_what_nodes_carry_is_told() {
    let long = "x".repeat(64);
    let more = format!(
        "        labels: {{'': a, -a: a, a/b/c: a, Up.org/a: a, {long}: a, ok: 'two words', n: 1, kubernetes.io/os: linux, slipway.dev/nodepool: other, slipway.dev/provider: mine}}\n        \
         annotations: {{slipway.dev/ours: x, 'a b': x, list: [x]}}\n        \
         taints: [{{key: a, effect: Never}}, {{key: a, effect: NoSchedule}}, {{key: a, value: b, effect: NoSchedule}}, {{key: node.kubernetes.io/not-ready, value: '-', effect: NoExecute}}, {{effect: NoExecute, wert: x}}]\n"
    );
    check(
        &[(POOL, &with(&more))],
        &expect![[r#"
            spec.nodePools.dynamic[1].labels[]: found ``, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`, behind a domain and a slash if wished
            spec.nodePools.dynamic[1].labels[-a]: found `-a`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`, behind a domain and a slash if wished
            spec.nodePools.dynamic[1].labels[a/b/c]: found `a/b/c`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`, behind a domain and a slash if wished
            spec.nodePools.dynamic[1].labels[Up.org/a]: found `Up.org/a`, allowed before the slash: a domain of at most 253 small letters, digits, `-` and `.`
            spec.nodePools.dynamic[1].labels[xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]: found `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`, behind a domain and a slash if wished
            spec.nodePools.dynamic[1].labels[ok]: found `two words`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`
            spec.nodePools.dynamic[1].labels[n]: found `1` (a number), allowed: a text
            spec.nodePools.dynamic[1].labels[kubernetes.io/os]: found `kubernetes.io/os`, allowed: a name that neither Slipway nor Kubernetes keeps to itself
            spec.nodePools.dynamic[1].labels[slipway.dev/nodepool]: found `slipway.dev/nodepool`, allowed: a name that neither Slipway nor Kubernetes keeps to itself
            spec.nodePools.dynamic[1].labels[slipway.dev/provider]: found `slipway.dev/provider`, allowed: a name that neither Slipway nor Kubernetes keeps to itself
            spec.nodePools.dynamic[1].annotations[slipway.dev/ours]: found `slipway.dev/ours`, allowed: a name that neither Slipway nor Kubernetes keeps to itself
            spec.nodePools.dynamic[1].annotations[a b]: found `a b`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`, behind a domain and a slash if wished
            spec.nodePools.dynamic[1].annotations[list]: found a list, allowed: a text
            spec.nodePools.dynamic[1].taints[0].effect: found `Never`, allowed: NoSchedule, PreferNoSchedule, NoExecute
            spec.nodePools.dynamic[1].taints[2]: found a with NoSchedule a second time
            spec.nodePools.dynamic[1].taints[3].key: found `node.kubernetes.io/not-ready`, allowed: a name that neither Slipway nor Kubernetes keeps to itself
            spec.nodePools.dynamic[1].taints[3].value: found `-`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`
            spec.nodePools.dynamic[1].taints[4].key: found nothing; this field is required
            spec.nodePools.dynamic[1].taints[4].wert: unknown field; allowed: key, value, effect
        "#]],
    );
}

#[test]
fn what_is_no_mapping_or_too_much_is_told() {
    let many: Vec<_> = (0..101).map(|n| format!("l{n}: a")).collect();
    let more = format!(
        "        labels: {{{}}}\n        annotations: [a]\n        taints: none\n",
        many.join(", ")
    );
    check(
        &[(POOL, &with(&more))],
        &expect![[r#"
        spec.nodePools.dynamic[1].labels: found 101 entries, allowed: at most 100
        spec.nodePools.dynamic[1].annotations: found a list, allowed: a mapping
        spec.nodePools.dynamic[1].taints: found `none` (a text), allowed: a list
    "#]],
    );
    let huge = "x".repeat(256 * 1024);
    check(
        &[(
            POOL,
            &with(&format!("        annotations: {{a: {huge}}}\n")),
        )],
        &expect![[r#"
            spec.nodePools.dynamic[1].annotations: found 262145 bytes, allowed: at most 262144 in all
        "#]],
    );
}

#[test]
fn who_was_given_a_machine_may_say_where_it_stands() {
    let said = "name: attic\n        labels: {slipway.dev/provider: rack, topology.kubernetes.io/zone: cellar}";
    let manifest = admitted(&[("name: attic", said)]);
    let Pool::Static(pool) = &manifest.pools[&"attic".parse().unwrap()] else {
        panic!("attic is given");
    };
    assert_eq!(pool.marks.labels["slipway.dev/provider"], "rack");
    check(
        &[(
            "name: attic",
            "name: attic\n        labels: {slipway.dev/node-type: x}",
        )],
        &expect![[r#"
            spec.nodePools.static[0].labels[slipway.dev/node-type]: found `slipway.dev/node-type`, allowed: a name that neither Slipway nor Kubernetes keeps to itself
        "#]],
    );
}
