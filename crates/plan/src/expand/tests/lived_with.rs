//! What clusters live with that no new one may have: rules that came after them keep nobody from
//! changing something else.

use super::{NOW, admitted};
use crate::expand::{Known, expand};
use expect_test::{Expect, expect};
use model::cluster::Desired;
use model::manifest::Manifest;
use model::name::Name;
use model::observed::Observed;
use std::collections::BTreeMap;

/// A manifest of clusters, each a name with a network, and a host in each where one is given.
fn manifest(clusters: &[(&str, &str)], hosts: &[&str], count: u32) -> Manifest {
    let nodes = hosts.iter().map(|host| format!("{{endpoint: {host}}}"));
    let nodes: Vec<_> = nodes.collect();
    let fixed = if nodes.is_empty() {
        String::new()
    } else {
        format!("static: [{{name: attic, nodes: [{}]}}]", nodes.join(", "))
    };
    let clusters = clusters.iter().enumerate().map(|(at, (name, network))| {
        let compute = if at == 0 && !nodes.is_empty() {
            "attic"
        } else {
            ""
        };
        format!(
            "      - {{name: {name}, version: v1.34.0, network: {network}, pools: {{control: [brain], compute: [{compute}]}}}}\n"
        )
    });
    let clusters: String = clusters.collect();
    admitted(&format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: {count}, serverType: small, image: debian-12}}
    {fixed}
  kubernetes:
    clusters:
{clusters}"
    ))
}

/// The clusters of a manifest as they were made before there were rules.
fn living(mut manifest: Manifest) -> Vec<Desired> {
    manifest.doubts.clear();
    let project = Name::default_project();
    let expanded = expand(&project, &manifest, &[], &BTreeMap::new(), NOW).unwrap();
    expanded.into_iter().map(|of| of.desired).collect()
}

#[track_caller]
fn check(living: &[Desired], next: &Manifest, expected: &Expect) {
    let observed = Observed::default();
    let known = living.iter().map(|desired| Known {
        desired,
        observed: &observed,
        intents: &[],
        open: &[],
    });
    let known: Vec<_> = known.collect();
    let project = Name::default_project();
    let told = match expand(&project, next, &known, &BTreeMap::new(), NOW) {
        Ok(expanded) => {
            let told = expanded.iter().map(|of| {
                let (desired, change) = (&of.desired, of.change);
                format!("{}: {change:?}, {}\n", desired.name, desired.machines.len())
            });
            told.collect()
        }
        Err(faults) => {
            let told = faults.iter().map(|fault| format!("{fault}\n"));
            told.collect::<String>()
        }
    };
    expected.assert_eq(&told);
}

const WIDE: (&str, &str) = ("wide", "10.8.0.0/16");
const INSIDE: (&str, &str) = ("inside", "10.8.4.0/24");

#[test]
fn networks_that_overlap_are_refused_unless_both_clusters_live() {
    let both = manifest(&[WIDE, INSIDE], &[], 1);
    let refused = expect![[r#"
        spec.kubernetes.clusters[1].network: found 10.8.4.0/24, allowed: a network that does not overlap with 10.8.0.0/16 of cluster `wide`
    "#]];
    check(&[], &both, &refused);
    check(&living(manifest(&[WIDE], &[], 1)), &both, &refused);
    check(
        &living(manifest(&[INSIDE], &[], 1)),
        &both,
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 10.8.0.0/16, allowed: a network that does not overlap with 10.8.4.0/24 of cluster `inside`
        "#]],
    );
    let two = living(both);
    check(
        &two,
        &manifest(&[WIDE, INSIDE], &[], 3),
        &expect![[r#"
            wide: Changed, 3
            inside: Changed, 3
        "#]],
    );
    // One of them can go, and a third is as new as ever, wherever it is written.
    check(
        &two,
        &manifest(&[INSIDE], &[], 1),
        &expect![[r#"
            inside: Unchanged, 1
            wide: Removed, 0
        "#]],
    );
    check(
        &two,
        &manifest(&[("third", "10.8.9.0/24"), WIDE, INSIDE], &[], 1),
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 10.8.9.0/24, allowed: a network that does not overlap with 10.8.0.0/16 of cluster `wide`
        "#]],
    );
}

#[test]
fn a_network_over_that_of_services_stays_with_the_cluster_that_has_it() {
    let over = |count| manifest(&[("over", "10.96.4.0/24")], &[], count);
    check(
        &[],
        &over(1),
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 10.96.4.0/24, which overlaps 10.96.0.0/12, the network of services
        "#]],
    );
    check(
        &living(over(1)),
        &over(3),
        &expect![[r#"
            over: Changed, 3
        "#]],
    );
}

#[test]
fn a_host_within_a_network_stays_and_another_does_not_come() {
    let hosts = |hosts: &[&str]| manifest(&[("wide", "192.0.2.0/24")], hosts, 1);
    check(
        &[],
        &hosts(&["192.0.2.7"]),
        &expect![[r#"
        spec.nodePools.static[0].nodes[0].endpoint: found 192.0.2.7, allowed: an address outside 192.0.2.0/24, the private network of cluster `wide`
    "#]],
    );
    let lives = living(hosts(&["192.0.2.7"]));
    check(
        &lives,
        &hosts(&["192.0.2.7", "203.0.113.9"]),
        &expect![[r#"
            wide: Changed, 3
        "#]],
    );
    check(
        &lives,
        &hosts(&["192.0.2.7", "192.0.2.8"]),
        &expect![[r#"
        spec.nodePools.static[0].nodes[1].endpoint: found 192.0.2.8, allowed: an address outside 192.0.2.0/24, the private network of cluster `wide`
    "#]],
    );
}

#[test]
fn a_network_that_is_full_lets_machines_go_and_no_more_come() {
    let of = |hosts: &[&str], count| manifest(&[("small", "10.8.0.0/29")], hosts, count);
    let full = living(of(&["192.0.2.7"], 5));
    check(
        &full,
        &of(&["192.0.2.8"], 5),
        &expect![[r#"
        spec.kubernetes.clusters[0].network: found 10.8.0.0/29 with 6 addresses, allowed: room for 6 machines and 1 that are leaving; wait until those are gone, or ask for fewer
    "#]],
    );
    check(
        &full,
        &of(&[], 5),
        &expect![[r#"
        small: Changed, 5
    "#]],
    );
    check(
        &full,
        &of(&["192.0.2.7", "192.0.2.8"], 5),
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 10.8.0.0/29 with 6 addresses, allowed: room for 7 machines and one replacement
        "#]],
    );
}

/// A pool at a cloud that two clusters use, each of which it is in by its own name.
fn large(size: &str, clusters: &str) -> Manifest {
    let clusters = clusters.split_whitespace().map(|at| {
        format!(
            "      - {{name: edge{at}, version: v1.34.0, network: 10.{at}.0.0/20, cni: cilium, pools: {{control: [brain], compute: [muscle]}}}}\n"
        )
    });
    let clusters: String = clusters.collect();
    admitted(&format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: hetz, providerType: hetzner, secretRef: {{name: account}}}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: hetz, region: n}}, count: 1, serverType: cpx31, image: i}}
      - {{name: muscle, providerSpec: {{name: hetz, region: n}}, {size}, serverType: cpx31, image: i}}
  kubernetes:
    clusters:
{clusters}"
    ))
}

#[test]
fn a_pool_at_a_cloud_that_is_too_large_stays_and_grows_no_more() {
    let refused = expect![[r#"
        spec.nodePools.dynamic[1].count: found 300, allowed: at most 250, the 251 addresses that a pool has with a provider of type hetzner less a surge of 1
    "#]];
    check(&[], &large("count: 300", "7 8"), &refused);
    check(
        &living(large("count: 300", "7")),
        &large("count: 300", "7 8"),
        &refused,
    );
    let lives = living(large("count: 300", "7"));
    check(
        &lives,
        &large("count: 299", "7"),
        &expect![[r#"
        edge7: Changed, 300
    "#]],
    );
    check(
        &lives,
        &large("count: 301", "7"),
        &expect![[r#"
        spec.nodePools.dynamic[1].count: found 301, allowed: at most 250, the 251 addresses that a pool has with a provider of type hetzner less a surge of 1
    "#]],
    );
    let scaled = living(large("autoscaler: {min: 1, max: 300}", "7"));
    check(
        &scaled,
        &large("autoscaler: {min: 2, max: 300}", "7"),
        &expect![[r#"
            edge7: Changed, 3
        "#]],
    );
    check(
        &scaled,
        &large("autoscaler: {min: 1, max: 301}", "7"),
        &expect![[r#"
            spec.nodePools.dynamic[1].autoscaler.max: found 301, allowed: at most 250, the 251 addresses that a pool has with a provider of type hetzner less a surge of 1
        "#]],
    );
}
