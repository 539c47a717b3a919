//! Load balancers: what is read, and everything that can be wrong with them.

use super::super::admit;
use crate::name::Name;
use crate::source;
use expect_test::{Expect, expect};
use std::fmt::Write as _;

/// Two clusters behind two load balancers, in the words of the files that people have.
const EDGE: &str = "
apiVersion: claudie.io/v1beta1
kind: InputManifest
metadata: {name: edge}
spec:
  providers:
    - {name: box, providerType: sandbox}
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: box, region: here}, count: 1, serverType: lite, image: debian-12}
      - {name: muscle, providerSpec: {name: box, region: here}, count: 2, serverType: lite, image: debian-12}
      - {name: door, providerSpec: {name: box, region: here}, count: 2, serverType: lite, image: debian-12}
    static:
      - name: attic
        sshPort: 2222
        nodes: [{endpoint: 192.168.7.5, username: ann, secretRef: {name: keys, namespace: default}}]
  kubernetes:
    clusters:
      - name: first
        version: v1.34.1
        network: 10.8.0.0/24
        pools: {control: [brain], compute: [muscle, attic]}
      - name: second
        version: v1.34.1
        network: 10.9.0.0/24
        pools: {control: [brain], compute: []}
  loadBalancers:
    roles:
      - name: web
        protocol: tcp
        port: 443
        targetPort: 30443
        targetPools: [muscle, attic]
        settings: {proxyProtocol: false, stickySessions: true}
      - {name: api, protocol: tcp, port: 6443, targetPort: 6443, targetPools: [brain]}
      - {name: names, protocol: udp, port: 53, targetPort: 30053, targetPools: [muscle]}
      - {name: a-name-longer-than-pools-may-have, protocol: tcp, port: 53, targetPort: 30053, targetPools: [muscle]}
    clusters:
      - name: front
        targetedK8s: first
        pools: [door, muscle]
        roles: [web, names, api, a-name-longer-than-pools-may-have]
      - {name: back, targetedK8s: second, pools: [door], roles: [api]}
";

fn told(edits: &[(&str, &str)]) -> String {
    let mut text = EDGE.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from:?} is not in the manifest");
        text = text.replacen(from, to, 1);
    }
    let mut told = String::new();
    match admit(&source::parse(&text).unwrap()) {
        Ok(manifest) if !manifest.doubts.is_empty() => {
            for doubt in manifest.doubts {
                writeln!(told, "{}; unless it lives so", doubt.fault).unwrap();
            }
        }
        Ok(manifest) => {
            for balancer in manifest.balancers {
                let pools: Vec<_> = balancer.pools.iter().map(Name::as_str).collect();
                let (name, pools) = (balancer.name, pools.join(" "));
                writeln!(told, "{name} for {} on {pools}", balancer.cluster).unwrap();
                for role in balancer.roles {
                    let flags = [(role.proxy_protocol, "PROXY"), (role.sticky, "sticky")];
                    let flags: Vec<_> = flags
                        .iter()
                        .filter(|flag| flag.0)
                        .map(|flag| flag.1)
                        .collect();
                    let pools: Vec<_> = role.target_pools.iter().map(Name::as_str).collect();
                    writeln!(
                        told,
                        "  {} {} -> {} of {} {flags:?} ({})",
                        role.protocol.as_str(),
                        role.port,
                        role.target_port,
                        pools.join(" "),
                        role.name
                    )
                    .unwrap();
                }
            }
        }
        Err(faults) => {
            for fault in faults {
                writeln!(told, "{fault}").unwrap();
            }
        }
    }
    told
}

#[track_caller]
fn check(edits: &[(&str, &str)], expected: &Expect) {
    expected.assert_eq(&told(edits));
}

#[test]
fn load_balancers_are_read_in_the_order_of_ports() {
    check(
        &[],
        &expect![[r#"
        front for first on door muscle
          tcp 53 -> 30053 of muscle ["PROXY"] (a-name-longer-than-pools-may-have)
          udp 53 -> 30053 of muscle [] (names)
          tcp 443 -> 30443 of muscle attic ["sticky"] (web)
          tcp 6443 -> 6443 of brain [] (api)
        back for second on door
          tcp 6443 -> 6443 of brain [] (api)
    "#]],
    );
}

#[test]
fn all_faults_of_load_balancers_are_told_at_once() {
    check(
        &[
            ("name: front", "name: first"),
            ("targetedK8s: first", "targetedK8s: third"),
            ("pools: [door, muscle]", "pools: [door, gate, door, Gate]"),
            ("roles: [web, names,", "roles: [web, web, wob, 7, names,"),
            (
                "{name: back, targetedK8s: second,",
                "{name: back, targetedK8s: second, dns: {dnsZone: Example.org, provider: box},",
            ),
            (
                "targetPools: [muscle]}",
                "targetPools: [muscle, muscel, muscle]}",
            ),
        ],
        &expect![[r#"
            spec.loadBalancers.roles[2].targetPools[1]: found `muscel`, allowed: a pool of this manifest (attic, brain, door, muscle)
            spec.loadBalancers.roles[2].targetPools[2]: found `muscle` twice in one list
            spec.loadBalancers.clusters[0].name: found `first` again; spec.kubernetes.clusters[0] has this name
            spec.loadBalancers.clusters[0].targetedK8s: found `third`, allowed: a cluster of this manifest (first, second)
            spec.loadBalancers.clusters[0].pools[1]: found `gate`, allowed: a pool of this manifest (attic, brain, door, muscle)
            spec.loadBalancers.clusters[0].pools[2]: found `door` twice in one list
            spec.loadBalancers.clusters[0].pools[3]: found `Gate`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `gate`
            spec.loadBalancers.clusters[0].roles[1]: found `web` twice in one list
            spec.loadBalancers.clusters[0].roles[2]: found `wob`, allowed: a role of this manifest (a-name-longer-than-pools-may-have, api, names, web)
            spec.loadBalancers.clusters[0].roles[3]: found `7`, allowed: the name of a role
            spec.loadBalancers.clusters[1].dns.dnsZone: found `Example.org`: a name of DNS is made of labels with dots between them, and here a name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `example`
            spec.loadBalancers.clusters[1].dns.provider: found `box` of type sandbox, allowed: a provider that answers for names, of type simulated, gcp, hetzner, aws, oci, azure, cloudflare, exoscale, ovh
        "#]],
    );
}

#[test]
fn roles_say_what_they_need() {
    check(
        &[
            (
                "protocol: tcp\n        port: 443",
                "protocol: http\n        port: 64512",
            ),
            ("targetPools: [muscle, attic]", "targetPools: []"),
            (
                "{proxyProtocol: false, stickySessions: true}",
                "{proxyProtocol: 'yes', sticky: true}",
            ),
            (
                "port: 6443, targetPort: 6443",
                "port: 443, targetPort: 6443",
            ),
            (
                "name: names, protocol: udp, port: 53",
                "name: api, protocol: udp, port: 0",
            ),
            (
                "targetPort: 30053, targetPools: [muscle]}\n    clusters",
                "targetPort: 65536, targetPools: muscle}\n    clusters",
            ),
        ],
        &expect![[r#"
            spec.loadBalancers.roles[0].protocol: found `http`, allowed: tcp or udp
            spec.loadBalancers.roles[0].port: found `64512`, allowed: a whole number from 1 to 64511
            spec.loadBalancers.roles[0].targetPools: found no pool, allowed: at least one
            spec.loadBalancers.roles[0].settings.stickySessions: found nothing; this field is required
            spec.loadBalancers.roles[0].settings.proxyProtocol: found `yes`, allowed: true or false
            spec.loadBalancers.roles[0].settings.sticky: unknown field; allowed: proxyProtocol, stickySessions
            spec.loadBalancers.roles[1].port: found `443`, allowed: 6443 where the target port is 6443
            spec.loadBalancers.roles[2].name: found `api` again; the role at spec.loadBalancers.roles[1] has this name
            spec.loadBalancers.roles[2].port: found `0`, allowed: a whole number from 1 to 64511
            spec.loadBalancers.roles[3].targetPort: found `65536`, allowed: a whole number from 1 to 65535
            spec.loadBalancers.roles[3].targetPools: found `muscle` (a text), allowed: a list
            spec.loadBalancers.clusters[0].roles[1]: found `names`, allowed: a role of this manifest (a-name-longer-than-pools-may-have, api, web)
            spec.loadBalancers.clusters[1].roles[0]: found role `api` with target pool `muscle`, which its cluster does not use; allowed: a pool of the cluster
        "#]],
    );
}

#[test]
fn the_api_has_one_entrance_and_it_leads_to_control_machines() {
    check(
        &[
            (
                "targetedK8s: second, pools: [door], roles: [api]",
                "targetedK8s: first, pools: [door], roles: [api]",
            ),
            (
                "targetPort: 6443, targetPools: [brain]",
                "targetPort: 6443, targetPools: [brain, muscle]",
            ),
        ],
        &expect![[r#"
            spec.loadBalancers.clusters[0].roles[2]: found role `api` with target pool `muscle`, which has no API server; allowed: control pools of the cluster
            spec.loadBalancers.clusters[1].roles[0]: found role `api` with target pool `muscle`, which has no API server; allowed: control pools of the cluster
            spec.loadBalancers.clusters[1].roles[0]: found a second entrance to the API of `first`; the first is spec.loadBalancers.clusters[0].roles[2]
        "#]],
    );
}

#[test]
fn the_api_is_passed_on_by_tcp_and_by_somebody_who_is_always_there() {
    check(
        &[
            ("name: api, protocol: tcp", "name: api, protocol: udp"),
            ("pools: [door], roles: [api]", "pools: [], roles: [api]"),
            (
                "name: door, providerSpec: {name: box, region: here}, count: 2",
                "name: door, providerSpec: {name: box, region: here}, autoscaler: {min: 0, max: 2}",
            ),
            ("pools: [door, muscle]", "pools: [door]"),
        ],
        &expect![[r#"
            spec.loadBalancers.roles[1].protocol: found `udp`, allowed: tcp where the target port is 6443
            spec.loadBalancers.clusters[0].pools: found no machine that is always there, allowed: at least one where a role leads to port 6443
            spec.loadBalancers.clusters[1].pools: found no machine that is always there, allowed: at least one where a role leads to port 6443
        "#]],
    );
}

#[test]
fn a_pool_of_a_load_balancer_that_cannot_be_read_is_one_fault() {
    check(
        &[(
            "pools: [door], roles: [api]",
            "pools: [a-name-that-is-too-long], roles: [api]",
        )],
        &expect![[r#"
            spec.loadBalancers.clusters[1].pools[0]: found `a-name-that-is-too-long`: name has 23 characters, at most 14 are allowed
        "#]],
    );
}

#[test]
fn no_two_machines_would_have_one_name() {
    check(
        &[
            ("name: front", "name: first-muscle"),
            ("name: door, provider", "name: muscle-door, provider"),
            ("pools: [door, muscle]", "pools: [muscle]"),
            (
                "compute: [muscle, attic]",
                "compute: [muscle, attic, muscle-door]",
            ),
            (
                "pools: [door], roles: [api]",
                "pools: [muscle-door], roles: [api]",
            ),
            ("name: brain, provider", "name: door, provider"),
            (
                "control: [brain], compute: [muscle, attic",
                "control: [door], compute: [muscle, attic",
            ),
            (
                "control: [brain], compute: []",
                "control: [door], compute: []",
            ),
            (
                "targetPort: 6443, targetPools: [brain]",
                "targetPort: 6443, targetPools: [door]",
            ),
            ("pools: [muscle]\n", "pools: [muscle, door]\n"),
        ],
        &expect![[r#"
            spec.loadBalancers.clusters[0].name: found `first-muscle`, whose machines of pool `door` would be called as those of `first` and its pool `muscle-door`
        "#]],
    );
}

#[test]
fn targets_are_pools_of_the_cluster() {
    check(
        &[(
            "pools: [door], roles: [api]",
            "pools: [door], roles: [api, names]",
        )],
        &expect![[r#"
            spec.loadBalancers.clusters[1].roles[1]: found role `names` with target pool `muscle`, which its cluster does not use; allowed: a pool of the cluster
        "#]],
    );
}

#[test]
fn a_static_pool_serves_in_one_place() {
    check(
        &[
            ("pools: [door, muscle]", "pools: [door, muscle, attic]"),
            (
                "pools: [door], roles: [api]",
                "pools: [door, attic], roles: [api]",
            ),
        ],
        &expect![[r#"
            spec.loadBalancers.clusters[0].pools[2]: found static pool `attic` again; its machines are used at spec.kubernetes.clusters[0].pools.compute[1]
            spec.loadBalancers.clusters[1].pools[1]: found static pool `attic` again; its machines are used at spec.loadBalancers.clusters[0].pools[2]
        "#]],
    );
}

/// The machine of the attic serves the load balancer `front`, beside those at the door.
const ATTIC_SERVES: [(&str, &str); 3] = [
    ("compute: [muscle, attic]", "compute: [muscle]"),
    ("targetPools: [muscle, attic]", "targetPools: [muscle]"),
    ("pools: [door, muscle]", "pools: [door, attic]"),
];

#[test]
fn roles_keep_off_the_ports_by_which_machines_are_told() {
    let mut edits = ATTIC_SERVES.to_vec();
    edits.extend([
        ("port: 443\n", "port: 2222\n"),
        ("protocol: udp, port: 53", "protocol: udp, port: 51820"),
        ("protocol: tcp, port: 53", "protocol: tcp, port: 22"),
    ]);
    check(
        &edits,
        &expect![[r#"
        spec.loadBalancers.roles[2].port: found `51820`, allowed: another udp port; every machine has the mesh there
        spec.loadBalancers.roles[3].port: found `22`, allowed: another tcp port; every machine has its SSH server there
        spec.loadBalancers.clusters[0].roles[0]: found role `web` on tcp port 2222, allowed: another port; machines of pool `attic` have their SSH server there
    "#]],
    );
    // The usual port is told once, also where the pool says it too.
    edits.push(("sshPort: 2222", "sshPort: 22"));
    check(
        &edits,
        &expect![[r#"
        spec.loadBalancers.roles[2].port: found `51820`, allowed: another udp port; every machine has the mesh there
        spec.loadBalancers.roles[3].port: found `22`, allowed: another tcp port; every machine has its SSH server there
    "#]],
    );
    // What the other protocol has there is nobody's, nor is the port of machines elsewhere.
    check(
        &[
            ("port: 443\n", "port: 2222\n"),
            ("protocol: udp, port: 53", "protocol: udp, port: 22"),
            ("protocol: tcp, port: 53", "protocol: tcp, port: 51820"),
        ],
        &expect![[r#"
            front for first on door muscle
              udp 22 -> 30053 of muscle [] (names)
              tcp 2222 -> 30443 of muscle attic ["sticky"] (web)
              tcp 6443 -> 6443 of brain [] (api)
              tcp 51820 -> 30053 of muscle ["PROXY"] (a-name-longer-than-pools-may-have)
            back for second on door
              tcp 6443 -> 6443 of brain [] (api)
        "#]],
    );
}

#[test]
fn machines_of_a_load_balancer_leave_it_its_own_ports() {
    for (port, edits) in [
        ("sshPort: 65533", ATTIC_SERVES.as_slice()),
        ("sshPort: 65534", ATTIC_SERVES.as_slice()),
        ("sshPort: 65532", ATTIC_SERVES.as_slice()),
        ("sshPort: 65534", &[]),
    ] {
        let mut edits = edits.to_vec();
        edits.push(("sshPort: 2222", port));
        let told = told(&edits);
        let refused = told.starts_with("spec.nodePools.static[0].sshPort: found `6553");
        let serves = edits.len() > 1;
        assert_eq!(refused, serves && port != "sshPort: 65532", "{told}");
    }
    let mut edits = ATTIC_SERVES.to_vec();
    edits.push(("sshPort: 2222", "sshPort: 65533"));
    check(
        &edits,
        &expect![[r#"
        spec.nodePools.static[0].sshPort: found `65533`, allowed: another than 65533 and 65534 where the pool is one of a load balancer, which listens there
    "#]],
    );
}

#[test]
fn what_cannot_be_read_makes_no_other_faults() {
    // Its pools count where they can be read, and all pools may be meant where they cannot.
    check(
        &[("name: front", "nom: front")],
        &expect![[r#"
        spec.loadBalancers.clusters[0].name: found nothing; this field is required
        spec.loadBalancers.clusters[0].nom: unknown field; allowed: name, targetedK8s, roles, pools, dns
    "#]],
    );
    check(
        &[
            (
                "      - {name: back, targetedK8s: second, pools: [door], roles: [api]}",
                "      - back",
            ),
            ("pools: [door, muscle]", "pools: [muscle]"),
        ],
        &expect![[r#"
            spec.loadBalancers.clusters[1]: found `back` (a text), allowed: a mapping
        "#]],
    );
    check(
        &[("port: 443\n", "port: none\n")],
        &expect![[r#"
            spec.loadBalancers.roles[0].port: found `none` (a text), allowed: a whole number from 1 to 64511
        "#]],
    );
}

#[test]
fn machines_of_load_balancers_count_too() {
    check(
        &[
            ("10.9.0.0/24", "10.9.0.0/29"),
            (
                "name: door, providerSpec: {name: box, region: here}, count: 2",
                "name: door, providerSpec: {name: box, region: here}, count: 5",
            ),
        ],
        &expect![[r#"
            spec.kubernetes.clusters[1].network: found 10.9.0.0/29 with 6 addresses, allowed: room for 6 machines and one replacement; unless it lives so
        "#]],
    );
    let many: String = (0..5)
        .map(|n| {
            format!("      - {{name: lb{n}, targetedK8s: first, pools: [door], roles: [web]}}\n")
        })
        .collect();
    check(
        &[
            ("10.8.0.0/24", "172.16.0.0/12"),
            ("10.9.0.0/24", "10.128.0.0/18"),
            (
                "name: door, providerSpec: {name: box, region: here}, count: 2",
                "name: door, providerSpec: {name: box, region: here}, count: 5000",
            ),
            (
                "    clusters:\n      - name: front",
                &format!("    clusters:\n{many}      - name: front"),
            ),
        ],
        &expect![[r#"
            spec.kubernetes.clusters: found 35007 machines in all, allowed: at most 20000 in one manifest
            spec.kubernetes.clusters[0].podNetwork: found 10.244.0.0/16 with room for the pods of 255 machines, allowed: room for 30006 machines and one replacement
            spec.kubernetes.clusters[1].podNetwork: found 10.244.0.0/16 with room for the pods of 255 machines, allowed: room for 5001 machines and one replacement
        "#]],
    );
}

#[test]
fn a_load_balancer_has_as_many_roles_as_where_files_come_from() {
    let with = |count: u32| {
        let mut roles = String::new();
        for at in 0..count {
            let port = 10_000 + at;
            writeln!(
                roles,
                "      - {{name: r{at}, protocol: tcp, port: {port}, targetPort: 30443, targetPools: [muscle]}}"
            )
            .unwrap();
        }
        let named: Vec<_> = (0..count).map(|at| format!("r{at}")).collect();
        let text = EDGE.replacen("    roles:\n", &format!("    roles:\n{roles}"), 1);
        let text = text.replacen(
            "roles: [web, names,",
            &format!("roles: [{},", named.join(", ")),
            1,
        );
        let admitted = admit(&source::parse(&text).unwrap());
        admitted.map(|manifest| manifest.balancers[0].roles.len())
    };
    // Two more that the load balancer has, and two that it has not.
    assert_eq!(with(1_014).unwrap(), 1_016);
    let faults = with(1_015).unwrap_err();
    let told = faults.iter().map(ToString::to_string).next();
    assert_eq!(
        told.unwrap(),
        "spec.loadBalancers.roles: found 1019 items, allowed: at most 1018"
    );
}
