//! Each test is one picture: a manifest on the left, its faults on the right.

use super::admit;
use crate::source;
use expect_test::{Expect, expect};

mod addons;
mod balancers;
mod dns;
mod forty;
mod gates;
mod hosts;
mod idle;
mod independent;
mod kubernetes;
mod marks;
mod metal;
mod playbooks;
mod providers;
mod snapshots;
mod templates;

const HELLO: &str = "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: hello}
spec:
  providers:
    - {name: lab, providerType: simulated}
  nodePools:
    dynamic:
      - name: brain
        providerSpec: {name: lab, region: north}
        count: 3
        serverType: small
        image: debian-12
      - name: muscle
        providerSpec: {name: lab, region: north, zone: b}
        count: 2
        serverType: large
        image: debian-12
    static:
      - name: attic
        nodes: [{endpoint: 203.0.113.5}]
  kubernetes:
    clusters:
      - name: first
        version: v1.34.1
        network: 10.8.0.0/24
        pools: {control: [brain], compute: [muscle, attic]}
";

/// Replaces `from` by `to` in the smallest good manifest and shows what admission says.
#[track_caller]
fn check(edits: &[(&str, &str)], expected: &Expect) {
    let mut text = HELLO.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from:?} is not in the manifest");
        text = text.replacen(from, to, 1);
    }
    let told = match admit(&source::parse(&text).unwrap()) {
        Ok(manifest) if !manifest.doubts.is_empty() => {
            let doubts = manifest.doubts.iter();
            let told = doubts.map(|doubt| format!("{}; unless it lives so\n", doubt.fault));
            told.collect()
        }
        Ok(manifest) => format!(
            "admitted: {} clusters, {} pools\n",
            manifest.clusters.len(),
            manifest.pools.len()
        ),
        Err(faults) => faults.iter().map(|fault| format!("{fault}\n")).collect(),
    };
    expected.assert_eq(&told);
}

#[test]
fn a_good_manifest_is_admitted_in_either_dialect() {
    check(
        &[],
        &expect![[r#"
        admitted: 1 clusters, 3 pools
    "#]],
    );
    check(
        &[("slipway.dev/v1", "claudie.io/v1beta1")],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
}

#[test]
fn what_is_written_for_other_tools_is_let_pass() {
    check(
        &[
            ("slipway.dev/v1", "claudie.io/v1beta1"),
            (
                "metadata: {name: hello}",
                "metadata: {name: hello, namespace: default, labels: {team: a}, annotations: {note: b}}",
            ),
        ],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    check(
        &[(
            "metadata: {name: hello}",
            "metadata: {name: hello, namespace: My Team, labels: [a], project: x}",
        )],
        &expect![[r#"
            metadata.namespace: found `My Team`: `M` is upper case; allowed are a-z, 0-9 and, inside, hyphens
            metadata.labels: found a list, allowed: a mapping
            metadata.project: unknown field; allowed: name, namespace, labels, annotations
        "#]],
    );
}

#[test]
fn networks_of_two_clusters_are_apart() {
    let second = "pools: {control: [brain], compute: [muscle, attic]}\n      \
                  - {name: second, version: v1.34.1, network: 10.8.0.128/25, pools: {control: [brain], compute: []}}\n      \
                  - {name: third, version: v1.34.1, network: 10.8.1.0/24, pools: {control: [brain], compute: []}}";
    check(
        &[(
            "pools: {control: [brain], compute: [muscle, attic]}",
            second,
        )],
        &expect![[r#"
            spec.kubernetes.clusters[1].network: found 10.8.0.128/25, allowed: a network that does not overlap with 10.8.0.0/24 of cluster `first`; unless it lives so
        "#]],
    );
}

#[test]
fn all_faults_are_told_at_once() {
    check(
        &[
            ("count: 3", "count: 0"),
            ("count: 2", "count: many"),
            ("image: debian-12", "imagee: debian-12"),
            ("{name: lab, region: north}", "{name: lob, region: north}"),
            ("version: v1.34.1", "version: 1.34"),
            ("203.0.113.5", "10.0.0.5"),
            ("metadata: {name: hello}", "metadata: {name: Hello}"),
        ],
        &expect![[r#"
            metadata.name: found `Hello`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `hello`
            spec.nodePools.dynamic[0].image: found nothing; this field is required
            spec.nodePools.dynamic[0].providerSpec.name: found `lob`, allowed: a provider of this manifest (lab)
            spec.nodePools.dynamic[0].count: found `0`, allowed: a whole number from 1 to 5000
            spec.nodePools.dynamic[0].imagee: unknown field; did you mean `image`? allowed: name, providerSpec, count, autoscaler, serverType, image, storageDiskSize, machineSpec, spot, disruption, labels, annotations, taints, replace, surge
            spec.nodePools.dynamic[1].count: found `many` (a text), allowed: a whole number from 1 to 5000
            spec.nodePools.static[0].nodes[0].secretRef: found nothing, allowed: the name of a secret that holds a private SSH key
            spec.kubernetes.clusters[0].version: found `1.34`: version is not of the form v1.MINOR.PATCH
        "#]],
    );
}

#[test]
fn names_and_references_must_fit_together() {
    check(
        &[
            ("name: muscle", "name: brain"),
            (
                "compute: [muscle, attic]",
                "compute: [nobody, attic, attic]",
            ),
        ],
        &expect![[r#"
            spec.nodePools.dynamic[1].name: found `brain` again; the pool at spec.nodePools.dynamic[0] has this name
            spec.kubernetes.clusters[0].pools.control: found 2 control machines, allowed: 1, 3, 5 or 7
            spec.kubernetes.clusters[0].pools.compute[0]: found `nobody`, allowed: a pool of this manifest (attic, brain)
            spec.kubernetes.clusters[0].pools.compute[2]: found `attic` twice in one list
        "#]],
    );
}

#[test]
fn a_pool_has_a_count_or_is_scaled() {
    check(
        &[("count: 2", "autoscaler: {min: 0, max: 5}")],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    check(
        &[("count: 2", "count: 0\n        autoscaler: {min: 1, max: 1}")],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    check(
        &[
            (
                "count: 2",
                "count: 2\n        autoscaler: {min: 5, max: 3, now: 4}",
            ),
            ("        count: 3\n", ""),
        ],
        &expect![[r#"
            spec.nodePools.dynamic[0].count: found nothing, allowed: a number, or autoscaler with min and max
            spec.nodePools.dynamic[1].autoscaler: found autoscaler beside count, allowed: one of them
            spec.nodePools.dynamic[1].autoscaler.min: found `5`, allowed: at most 3, which is max
            spec.nodePools.dynamic[1].autoscaler.now: unknown field; allowed: min, max
        "#]],
    );
    check(
        &[("count: 2", "autoscaler: {max: 5001}")],
        &expect![[r#"
        spec.nodePools.dynamic[1].autoscaler.min: found nothing; this field is required
        spec.nodePools.dynamic[1].autoscaler.max: found `5001`, allowed: a whole number from 1 to 5000
    "#]],
    );
}

#[test]
fn a_pool_at_a_cloud_has_no_more_machines_than_its_network() {
    const CLOUD: &[(&str, &str)] = &[
        (
            "providerType: simulated",
            "providerType: hetzner, secretRef: {name: account}",
        ),
        ("10.8.0.0/24", "10.8.0.0/20"),
        ("version: v1.34.1", "version: v1.34.1\n        cni: cilium"),
    ];
    let with = |edits: &[(&'static str, &'static str)], expected: &Expect| {
        check(&[CLOUD, edits].concat(), expected);
    };
    with(
        &[("count: 2", "count: 250")],
        &expect![[r#"
        admitted: 1 clusters, 3 pools
    "#]],
    );
    with(
        &[("count: 2", "autoscaler: {min: 0, max: 250}")],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    with(
        &[("count: 2", "count: 251")],
        &expect![[r#"
        spec.nodePools.dynamic[1].count: found 251, allowed: at most 250, the 251 addresses that a pool has with a provider of type hetzner less a surge of 1; unless it lives so
    "#]],
    );
    with(
        &[(
            "count: 2",
            "count: 242\n        replace: true\n        surge: 10",
        )],
        &expect![[r#"
            spec.nodePools.dynamic[1].count: found 242, allowed: at most 241, the 251 addresses that a pool has with a provider of type hetzner less a surge of 10; unless it lives so
        "#]],
    );
    with(
        &[("count: 2", "autoscaler: {min: 0, max: 300}")],
        &expect![[r#"
            spec.nodePools.dynamic[1].autoscaler.max: found 300, allowed: at most 250, the 251 addresses that a pool has with a provider of type hetzner less a surge of 1; unless it lives so
        "#]],
    );
}

#[test]
fn a_control_plane_is_not_scaled_and_networks_have_room_for_the_most() {
    check(
        &[
            ("count: 3", "autoscaler: {min: 1, max: 3}"),
            ("count: 2", "autoscaler: {min: 1, max: 300}"),
        ],
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 10.8.0.0/24 with 254 addresses, allowed: room for 304 machines and one replacement
            spec.kubernetes.clusters[0].pools.control[0]: found `brain`, whose size changes (autoscaler), allowed: a pool with a count; a control plane has 1, 3, 5 or 7 machines
        "#]],
    );
}

#[test]
fn control_machines_are_odd_in_number() {
    check(
        &[("count: 3", "count: 4")],
        &expect![[r#"
        spec.kubernetes.clusters[0].pools.control: found 4 control machines, allowed: 1, 3, 5 or 7
    "#]],
    );
}

#[test]
fn a_network_has_room_and_keeps_off_pods_and_services() {
    check(
        &[("10.8.0.0/24", "10.8.0.0/29")],
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 10.8.0.0/29 with 6 addresses, allowed: room for 6 machines and one replacement; unless it lives so
        "#]],
    );
    check(
        &[("10.8.0.0/24", "10.96.4.0/24")],
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 10.96.4.0/24, which overlaps 10.96.0.0/12, the network of services; unless it lives so
        "#]],
    );
}

#[test]
fn a_pool_nobody_uses_is_a_mistake() {
    check(
        &[("compute: [muscle, attic]", "compute: [muscle]")],
        &expect![[r#"
            spec.nodePools.static[0].name: found `attic`, which no cluster and no load balancer uses; remove it or name it in one
        "#]],
    );
}

#[test]
fn one_mistake_is_one_fault() {
    check(
        &[("name: first", "name: First")],
        &expect![[r#"
            spec.kubernetes.clusters[0].name: found `First`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `first`
        "#]],
    );
    let long = "control: [a-name-that-is-too-long]";
    check(
        &[("control: [brain]", long)],
        &expect![[r#"
        spec.kubernetes.clusters[0].pools.control[0]: found `a-name-that-is-too-long`: name has 23 characters, at most 14 are allowed
    "#]],
    );
}

#[test]
fn what_is_not_a_manifest_says_what_is_missing() {
    let told = |text: &str| -> String {
        let faults = admit(&source::parse(text).unwrap()).expect_err("must be refused");
        faults.iter().map(|fault| format!("{fault}\n")).collect()
    };
    expect![[r#"
        apiVersion: found nothing; this field is required
        kind: found nothing; this field is required
        metadata: found nothing; this field is required
        spec: found nothing; this field is required
    "#]]
    .assert_eq(&told("{}"));
    expect![[r#"
        the document: found `just a text` (a text), allowed: a mapping
    "#]]
    .assert_eq(&told("just a text"));
}

#[test]
fn faults_beside_a_missing_field_are_told_too() {
    check(
        &[
            ("        network: 10.8.0.0/24\n", ""),
            (
                "compute: [muscle, attic]",
                "compute: [muscle, muscle, nope, attic]",
            ),
            ("serverType: large", "serverType: \"large\\t\""),
        ],
        &expect![[r#"
            spec.nodePools.dynamic[1].serverType: found `large\t`, allowed: a text without control characters or outer blanks
            spec.kubernetes.clusters[0].network: found nothing; this field is required
            spec.kubernetes.clusters[0].pools.compute[1]: found `muscle` twice in one list
            spec.kubernetes.clusters[0].pools.compute[2]: found `nope`, allowed: a pool of this manifest (attic, brain, muscle)
        "#]],
    );
}

#[test]
fn networks_that_no_machine_can_have_are_refused() {
    check(
        &[("10.8.0.0/24", "127.0.0.0/8")],
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 127.0.0.0/8, which machines cannot have; allowed: for example 10.10.0.0/24; unless it lives so
        "#]],
    );
    check(
        &[("10.8.0.0/24", "224.1.0.0/24")],
        &expect![[r#"
            spec.kubernetes.clusters[0].network: found 224.1.0.0/24, which machines cannot have; allowed: for example 10.10.0.0/24; unless it lives so
        "#]],
    );
}

#[test]
fn a_typing_error_in_a_count_does_not_become_a_fleet() {
    let pools: String = (0..5)
        .map(|n| format!("      - {{name: p{n}, providerSpec: {{name: lab, region: n}}, count: 5000, serverType: s, image: i}}\n"))
        .collect();
    check(
        &[
            (
                "      - name: muscle",
                &format!("{pools}      - name: muscle"),
            ),
            (
                "compute: [muscle, attic]",
                "compute: [muscle, attic, p0, p1, p2, p3, p4]",
            ),
            ("10.8.0.0/24", "10.0.0.0/10"),
        ],
        &expect![[r#"
            spec.kubernetes.clusters: found 25006 machines in all, allowed: at most 20000 in one manifest
        "#]],
    );
}

/// Edits that use every field about disruption and secrets.
const CAREFUL: [(&str, &str); 5] = [
    (
        "providerType: simulated}",
        "providerType: simulated, secretRef: {name: lab-account, namespace: default}}",
    ),
    (
        "  nodePools:",
        "  disruption:\n    groups: [{name: rack, unavailable: 1}]\n  nodePools:",
    ),
    (
        "count: 2",
        "count: 2\n        disruption: {unavailable: 2, group: rack}",
    ),
    (
        "nodes: [{endpoint: 203.0.113.5}]",
        "nodes: [{endpoint: 203.0.113.5, secretRef: {name: attic-keys}}]\n        disruption: {group: rack}",
    ),
    (
        "version: v1.34.1",
        "version: v1.34.1\n        disruption: {unavailable: 3, windows: [{days: [Sat, Sun], start: 22:00, duration: 4h, offset: \"+02:00\"}, {start: '03:30', duration: 90m}]}",
    ),
];

fn with<'a>(edits: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    edits.iter().chain(more).copied().collect()
}

#[test]
fn budgets_windows_groups_and_secrets_are_read() {
    let mut text = HELLO.to_owned();
    for (from, to) in CAREFUL {
        text = text.replacen(from, to, 1);
    }
    let manifest = admit(&source::parse(&text).unwrap()).unwrap();
    let cluster = &manifest.clusters[0];
    let mut told = format!(
        "cluster {}, groups {:?}\n",
        cluster.unavailable, manifest.groups
    );
    for window in &cluster.windows.0 {
        told += &format!(
            "window {} +{} min, {} ahead, {:?}\n",
            window.start, window.minutes, window.offset, window.days
        );
    }
    for (name, pool) in &manifest.pools {
        let budget = pool.budget();
        told += &format!("pool {name} {:?} {:?}\n", budget.unavailable, budget.group);
    }
    let hosts = manifest.pools.values().filter_map(|pool| match pool {
        crate::manifest::Pool::Static(fixed) => fixed.hosts[0].secret.as_ref(),
        crate::manifest::Pool::Dynamic(_) | crate::manifest::Pool::Metal(_) => None,
    });
    let accounts = manifest
        .providers
        .values()
        .filter_map(|account| account.secret.as_ref());
    for named in accounts.chain(hosts) {
        told += &format!("{} {} {:?}\n", named.path, named.secret, named.namespace);
    }
    expect![[r#"
        cluster 3, groups {Name("rack"): 1}
        window 1320 +240 min, 120 ahead, {Sat, Sun}
        window 210 +90 min, 0 ahead, {Mon, Tue, Wed, Thu, Fri, Sat, Sun}
        pool attic None Some(Name("rack"))
        pool brain None None
        pool muscle Some(2) Some(Name("rack"))
        spec.providers[0].secretRef lab-account Some(Name("default"))
        spec.nodePools.static[0].nodes[0].secretRef attic-keys/privatekey None
    "#]]
    .assert_eq(&told);
}

#[test]
fn without_a_word_one_machine_at_any_time_may_be_out_of_service() {
    let manifest = admit(&source::parse(HELLO).unwrap()).unwrap();
    assert_eq!(manifest.clusters[0].unavailable, 1);
    assert_eq!(manifest.clusters[0].windows.0, []);
}

#[test]
fn budgets_have_bounds() {
    check(
        &with(
            &CAREFUL,
            &[
                (
                    "groups: [{name: rack, unavailable: 1}]",
                    "groups: [{name: rack, unavailable: 0}, {name: rack, unavailable: 2}, {name: Row}]",
                ),
                (
                    "{unavailable: 2, group: rack}",
                    "{unavailable: 1001, group: rick}",
                ),
                (
                    "disruption: {unavailable: 3,",
                    "disruption: {unavailable: many, budget: 2,",
                ),
            ],
        ),
        &expect![[r#"
            spec.disruption.groups[0].unavailable: found `0`, allowed: a whole number from 1 to 1000
            spec.disruption.groups[1].name: found `rack` again; the group at spec.disruption.groups[0] has this name
            spec.disruption.groups[2].unavailable: found nothing; this field is required
            spec.disruption.groups[2].name: found `Row`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `row`
            spec.nodePools.dynamic[1].disruption.unavailable: found `1001`, allowed: a whole number from 1 to 1000
            spec.nodePools.dynamic[1].disruption.group: found `rick`, allowed: a group of this manifest (rack)
            spec.kubernetes.clusters[0].disruption.unavailable: found `many` (a text), allowed: a whole number from 1 to 1000
            spec.kubernetes.clusters[0].disruption.budget: unknown field; allowed: unavailable, windows
        "#]],
    );
}

#[test]
fn a_group_that_no_pool_belongs_to_is_a_mistake() {
    check(
        &with(
            &CAREFUL,
            &[(
                "{name: rack, unavailable: 1}",
                "{name: rack, unavailable: 1}, {name: row, unavailable: 1}",
            )],
        ),
        &expect![[r#"
            spec.disruption.groups[1].name: found `row`, which no pool belongs to; remove it or name it in a pool
        "#]],
    );
}

#[test]
fn windows_say_what_they_need() {
    check(
        &with(
            &CAREFUL,
            &[
                (
                    "days: [Sat, Sun], start: 22:00, duration: 4h, offset: \"+02:00\"",
                    "days: [Sat, sun, Sat, 7], start: 2am, duration: 4, offset: Berlin",
                ),
                (
                    "start: '03:30', duration: 90m",
                    "days: [], duration: 5m, hours: 4",
                ),
            ],
        ),
        &expect![[r#"
            spec.kubernetes.clusters[0].disruption.windows[0].days[1]: found `sun`, allowed: Mon, Tue, Wed, Thu, Fri, Sat, Sun
            spec.kubernetes.clusters[0].disruption.windows[0].days[2]: found `Sat` twice in one list
            spec.kubernetes.clusters[0].disruption.windows[0].days[3]: found `7`, allowed: Mon, Tue, Wed, Thu, Fri, Sat, Sun
            spec.kubernetes.clusters[0].disruption.windows[0].start: found `2am`: a time of day has the form HH:MM, from 00:00 to 23:59
            spec.kubernetes.clusters[0].disruption.windows[0].duration: found `4`: a duration has the form 4h, 90m or 1h30m
            spec.kubernetes.clusters[0].disruption.windows[0].offset: found `Berlin`: an offset from UTC has the form +HH:MM or -HH:MM, from -12:00 to +14:00
            spec.kubernetes.clusters[0].disruption.windows[1].start: found nothing; this field is required
            spec.kubernetes.clusters[0].disruption.windows[1].days: found no day, allowed: at least one, or no list for every day
            spec.kubernetes.clusters[0].disruption.windows[1].duration: found `5m`: a window is open for 10m to 168h
            spec.kubernetes.clusters[0].disruption.windows[1].hours: unknown field; allowed: days, start, duration, offset
        "#]],
    );
}

#[test]
fn a_reference_to_a_secret_is_checked() {
    check(
        &with(
            &CAREFUL,
            &[
                (
                    "{name: lab-account, namespace: default}",
                    "{name: Lab, key: a/b, namespace: A, value: hunter2}",
                ),
                ("secretRef: {name: attic-keys}", "secretRef: attic-keys"),
            ],
        ),
        &expect![[r#"
            spec.providers[0].secretRef.name: found `Lab`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `lab`
            spec.providers[0].secretRef.key: found `a/b`: entry name has `/`; allowed are a-z, A-Z, 0-9, `.`, `_` and `-`
            spec.providers[0].secretRef.namespace: found `A`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `a`
            spec.providers[0].secretRef.value: unknown field; allowed: name, key, namespace
            spec.nodePools.static[0].nodes[0].secretRef: found `attic-keys` (a text), allowed: a mapping
        "#]],
    );
}

#[test]
fn an_empty_zone_is_none_and_blanks_are_no_zone() {
    let of = |zone: &str| {
        let text = HELLO.replacen("zone: b", &format!("zone: {zone}"), 1);
        admit(&source::parse(&text).unwrap())
    };
    let unsaid = HELLO.replacen(", zone: b", "", 1);
    let unsaid = admit(&source::parse(&unsaid).unwrap()).unwrap();
    assert_eq!(of("''").unwrap().pools, unsaid.pools);
    assert_eq!(of("' '").unwrap_err().len(), 1);
}
