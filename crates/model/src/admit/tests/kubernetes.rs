//! What manifests say of pods, of services, and of who connects them.

use super::{HELLO, admit, check, source};
use crate::kubernetes::{Cni, ProxyMode};
use expect_test::expect;

#[test]
fn pods_and_services_have_networks_of_their_own() {
    let more = "version: v1.34.1\n        podNetwork: 10.32.0.0/14\n        serviceNetwork: 10.36.0.0/16\n        \
                cni: cilium\n        kubeProxy: none";
    let text = HELLO.replacen("version: v1.34.1", more, 1);
    let manifest = admit(&source::parse(&text).unwrap()).unwrap();
    let kubernetes = &manifest.clusters[0].kubernetes;
    assert_eq!(kubernetes.pods.to_string(), "10.32.0.0/14");
    assert_eq!(kubernetes.services.to_string(), "10.36.0.0/16");
    assert_eq!(
        (kubernetes.cni, kubernetes.proxy),
        (Cni::Cilium, ProxyMode::None)
    );
}

#[test]
fn no_address_means_two_things() {
    check(
        &[(
            "version: v1.34.1",
            "version: v1.34.1\n        podNetwork: 10.8.0.0/16\n        serviceNetwork: 10.8.128.0/20\n        \
             cni: weave\n        kubeProxy: none",
        )],
        &expect![[r#"
            spec.kubernetes.clusters[0].podNetwork: found 10.8.0.0/16, which overlaps 10.8.0.0/24, the network of machines
            spec.kubernetes.clusters[0].serviceNetwork: found 10.8.128.0/20, which overlaps 10.8.0.0/16, the network of pods
            spec.kubernetes.clusters[0].cni: found `weave`, allowed: routed, flannel, calico, cilium
        "#]],
    );
}

#[test]
fn pods_and_services_are_apart_from_what_machines_have_at_clouds() {
    let over = |more: &'static str| {
        [
            (
                "providerType: simulated",
                "providerType: hetzner, secretRef: {name: account}",
            ),
            ("version: v1.34.1", more),
        ]
    };
    check(
        &over("version: v1.34.1\n        podNetwork: 10.0.0.0/16"),
        &expect![[r#"
            spec.kubernetes.clusters[0].podNetwork: found 10.0.0.0/16, allowed: a network that does not overlap with 10.0.0.0/16, which machines of pool `brain` have at their provider; unless it lives so
        "#]],
    );
    check(
        &over("version: v1.34.1\n        serviceNetwork: 10.0.0.0/20"),
        &expect![[r#"
            spec.kubernetes.clusters[0].serviceNetwork: found 10.0.0.0/20, allowed: a network that does not overlap with 10.0.0.0/16, which machines of pool `brain` have at their provider; unless it lives so
        "#]],
    );
    check(
        &over("version: v1.34.1\n        serviceNetwork: 10.1.0.0/20"),
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    // Who has no machines of a cloud may.
    check(
        &[(
            "version: v1.34.1",
            "version: v1.34.1\n        podNetwork: 10.0.0.0/16",
        )],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
}

#[test]
fn every_host_needs_room_for_its_pods() {
    check(
        &[
            ("providerType: simulated", "providerType: sandbox"),
            ("serverType: small", "serverType: systemd"),
            ("serverType: large", "serverType: systemd"),
            (
                "version: v1.34.1",
                "version: v1.34.1\n        podNetwork: 10.32.0.0/22",
            ),
        ],
        &expect![[r#"
            spec.kubernetes.clusters[0].podNetwork: found 10.32.0.0/22 with room for the pods of 3 machines, allowed: room for 6 machines and one replacement; unless it lives so
        "#]],
    );
}

#[test]
fn one_engine_makes_kubernetes() {
    check(
        &[(
            "version: v1.34.1",
            "version: v1.34.1\n        engine: kubeadm",
        )],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    for other in ["kubeone", "rke"] {
        let text = HELLO.replacen(
            "version: v1.34.1",
            &format!("version: v1.34.1\n        engine: {other}"),
            1,
        );
        let faults = admit(&source::parse(&text).unwrap()).unwrap_err();
        let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [format!(
                "spec.kubernetes.clusters[0].engine: found `{other}`, allowed: kubeadm (this build has hands for kubeadm alone)"
            )]
        );
    }
}
