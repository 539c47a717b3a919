//! What manifests say of add-ons.

use super::{HELLO, admit, check, source};
use crate::addon::{AddonName, decided};
use crate::kubernetes::Cni;
use expect_test::expect;

const VERSION: &str = "version: v1.34.1";

#[test]
fn a_cluster_names_its_add_ons() {
    let more = "version: v1.34.1\n        cni: calico\n        addons:\n          - {name: calico, version: v3.29.0}\n          \
                - {name: node-exporter, values: {port: 9200}}\n          - {name: local-path, values: {default: false}}";
    let text = HELLO.replacen(VERSION, more, 1);
    let manifest = admit(&source::parse(&text).unwrap()).unwrap();
    let cluster = &manifest.clusters[0];
    let all = decided(cluster.kubernetes.cni, &cluster.addons, cluster.version);
    let told: Vec<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "calico v3.29.0",
            "node-exporter v1.9.1",
            "local-path v0.0.32"
        ]
    );
    assert_eq!(all[1].value("port"), Some("9200"));
    assert_eq!(all[2].value("default"), Some("false"));
    assert_eq!(cluster.kubernetes.cni, Cni::Calico);
    assert_eq!(cluster.addons[0].name, AddonName::Calico);
}

#[test]
fn all_that_is_wrong_with_add_ons_is_told_at_once() {
    let more = "version: v1.34.1\n        addons:\n          - {name: grafana}\n          - {name: flannel}\n          \
                - {name: prometheus, version: latest, values: {retention: for ever}}\n          \
                - {name: prometheus, values: {colour: blue}}\n          - {name: dashboard, values: {port: 1}}\n          - {version: v1.0.0}";
    check(
        &[(VERSION, more)],
        &expect![[r#"
            spec.kubernetes.clusters[0].addons[0].name: found `grafana`, allowed: flannel, calico, cilium, local-path, longhorn, metrics-server, kube-state-metrics, node-exporter, prometheus, dashboard
            spec.kubernetes.clusters[0].addons[1].name: found `flannel`, which connects pods, beside cni: routed; allowed: what `cni` names
            spec.kubernetes.clusters[0].addons[2].version: found `latest`, allowed: a version such as v1.2.3
            spec.kubernetes.clusters[0].addons[2].values.retention: found `for ever`, allowed: a span of time such as 30s, 12h or 15d
            spec.kubernetes.clusters[0].addons[3].name: found `prometheus` again; a cluster has an add-on once
            spec.kubernetes.clusters[0].addons[3].values.colour: unknown field; allowed: retention, storage
            spec.kubernetes.clusters[0].addons[4].values: found values, allowed: none; nothing of dashboard can be set
            spec.kubernetes.clusters[0].addons[5].name: found nothing; this field is required
        "#]],
    );
}
