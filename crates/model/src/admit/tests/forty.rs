//! As many faults as there are, all at once: forty of them, each with its place.

use super::super::admit;
use crate::fault::Code;
use crate::source;
use expect_test::{Expect, expect};
use std::collections::BTreeSet;

/// Forty faults, no two of a kind in one place.
const FORTY: &str = "
apiVersion: claudie.io/v2
kind: Manifest
metadata: {name: Forty}
spec:
  providers:
    - {name: lab, providerType: simulated}
    - {name: lab, providerType: simulated, templates: {repository: 'https://github.com/o/m', commit: v1}}
    - {name: cloud, providerType: aws}
    - {name: rented, providerType: hetzner, secretRef: {name: account}}
    - {name: a-provider-with-a-long-name, providerType: nobody, secretRef: {name: s}}
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: lab, region: n}, count: 2, serverType: s, image: i}
      - {name: muscle, providerSpec: {name: lab, region: n}, autoscaler: {min: 5, max: 3}, serverType: s, image: i}
      - {name: spare, providerSpec: {name: rented, region: n}, count: 0, serverType: s, image: i, spot: true, storageDiskSize: 20}
      - {name: heavy, providerSpec: {name: nobody, region: n}, count: 1, image: i, machineSpec: {cpuCount: 4, nvidiaGpu: 1, nvidiaGpuCount: 2}}
      - {name: marked, providerSpec: {name: lab}, count: 1, serverType: s, image: i, annotations: {'a b': c}, taints: [{key: k, effect: Never}]}
    static:
      - {name: attic, sshPort: 70000, nodes: [{endpoint: 203.0.113.5}, {endpoint: 203.0.113.5}, {endpoint: 192.168.7.5}]}
      - {name: cellar, nodes: []}
    metal:
      - {name: iron, selector: {}, count: many}
  kubernetes:
    clusters:
      - {name: edge, version: v1.20.0, network: 10.8.0.0/24, engine: rke, pools: {control: [brain], compute: [muscle, spare, heavy, marked, attic, cellar, iron, ghost]}}
      - {name: Core, version: v1.34.0, network: 300.0.0.0/8, pools: {control: [heavy]}, installationProxy: {mode: On}}
  loadBalancers:
    roles:
      - {name: api, protocol: sctp, port: 443, targetPort: 6443, targetPools: []}
      - {name: web, protocol: tcp, port: 65000, targetPort: 80, targetPools: [muscle]}
    clusters:
      - {name: front, targetedK8s: nobody, roles: [none], dns: {dnsZone: example.org, provider: ghost, hostname: a b}}
";

/// The faults of some kinds, as people see them.
#[track_caller]
fn told(kinds: &[Code], expected: &Expect) {
    let faults = admit(&source::parse(FORTY).unwrap()).unwrap_err();
    let shown = kinds.iter().flat_map(|kind| {
        let of_kind = faults.iter().filter(|fault| fault.code == *kind);
        of_kind.map(|fault| format!("{}: {fault}\n", kind.as_str()))
    });
    expected.assert_eq(&shown.collect::<String>());
}

#[test]
fn forty_faults_are_forty_lines() {
    let faults = admit(&source::parse(FORTY).unwrap()).unwrap_err();
    let places = faults.iter().map(|fault| (&fault.path, fault.code));
    let places: BTreeSet<_> = places.collect();
    assert_eq!((faults.len(), places.len()), (40, 40), "{faults:#?}");
}

#[test]
fn what_is_missing_or_there_twice_is_told() {
    told(
        &[
            Code::Required,
            Code::UnknownField,
            Code::Type,
            Code::Duplicate,
        ],
        &expect![[r#"
            required: spec.providers[2].secretRef: found nothing, allowed: the name of a secret with what opens the account (accesskey, secretkey)
            required: spec.nodePools.dynamic[3].serverType: found nothing; this field is required
            required: spec.nodePools.dynamic[3].machineSpec.memory: found nothing, allowed: a number beside cpuCount
            required: spec.nodePools.dynamic[4].providerSpec.region: found nothing; this field is required
            required: spec.nodePools.static[0].nodes[2].secretRef: found nothing, allowed: the name of a secret that holds a private SSH key
            required: spec.nodePools.static[1].nodes: found no node, allowed: at least one
            required: spec.nodePools.metal[0].selector: found nothing, allowed: at least one label that machines of the pool have
            required: spec.loadBalancers.roles[0].targetPools: found no pool, allowed: at least one
            type: spec.nodePools.metal[0].count: found `many` (a text), allowed: a whole number from 1 to 5000
            duplicate: spec.providers[1].name: found `lab` again; the provider at spec.providers[0] has this name
            duplicate: spec.nodePools.dynamic[3].machineSpec.nvidiaGpu: found 1, allowed: 2, which nvidiaGpuCount says, or nothing
            duplicate: spec.nodePools.static[0].nodes[1].endpoint: found 203.0.113.5 again; it is at spec.nodePools.static[0].nodes[0].endpoint
        "#]],
    );
}

#[test]
fn what_is_too_much_or_leads_nowhere_is_told() {
    told(
        &[
            Code::Range,
            Code::Reference,
            Code::Unused,
            Code::Unsupported,
        ],
        &expect![[r#"
            range: spec.nodePools.dynamic[1].autoscaler.min: found `5`, allowed: at most 3, which is max
            range: spec.nodePools.dynamic[2].count: found `0`, allowed: a whole number from 1 to 5000
            range: spec.nodePools.dynamic[2].storageDiskSize: found 20, allowed: 0 for no disk, or at least 50 (GB)
            range: spec.nodePools.static[0].sshPort: found `70000`, allowed: a whole number from 0 to 65535
            range: spec.kubernetes.clusters[0].pools.control: found 2 control machines, allowed: 1, 3, 5 or 7
            range: spec.loadBalancers.roles[0].port: found `443`, allowed: 6443 where the target port is 6443
            range: spec.loadBalancers.roles[1].port: found `65000`, allowed: a whole number from 1 to 64511
            reference: spec.nodePools.dynamic[3].providerSpec.name: found `nobody`, allowed: a provider of this manifest (cloud, lab, rented)
            reference: spec.kubernetes.clusters[0].pools.compute[7]: found `ghost`, allowed: a pool of this manifest (attic, brain, cellar, heavy, iron, marked, muscle, spare)
            reference: spec.loadBalancers.clusters[0].targetedK8s: found `nobody`, allowed: a cluster of this manifest (edge)
            reference: spec.loadBalancers.clusters[0].roles[0]: found `none`, allowed: a role of this manifest (api, web)
            reference: spec.loadBalancers.clusters[0].dns.provider: found `ghost`, allowed: a provider of this manifest (cloud, lab, rented)
            unsupported: spec.providers[4].providerType: found `nobody`, allowed: simulated, sandbox, gcp, hetzner, aws, oci, azure, cloudflare, openstack, exoscale, cloudrift, verda, ovh
            unsupported: spec.nodePools.dynamic[2].spot: found true on a provider of type hetzner, allowed: on those of type simulated, gcp, aws, oci, azure, verda
            unsupported: spec.kubernetes.clusters[0].engine: found `rke`, allowed: kubeadm (this build has hands for kubeadm alone)
        "#]],
    );
}

#[test]
fn what_is_written_in_a_wrong_form_is_told() {
    told(
        &[Code::Format],
        &expect![[r#"
            format: apiVersion: found `claudie.io/v2`, allowed: slipway.dev/v1 or claudie.io/v1beta1
            format: kind: found `Manifest`, allowed: InputManifest
            format: metadata.name: found `Forty`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `forty`
            format: spec.providers[1].templates.repository: found `https://github.com/o/m`, allowed: a repository without a scheme, for example github.com/org/modules; it is fetched by https
            format: spec.providers[4].name: found `a-provider-with-a-long-name`: name has 27 characters, at most 15 are allowed
            format: spec.nodePools.dynamic[4].annotations[a b]: found `a b`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`, behind a domain and a slash if wished
            format: spec.nodePools.dynamic[4].taints[0].effect: found `Never`, allowed: NoSchedule, PreferNoSchedule, NoExecute
            format: spec.kubernetes.clusters[0].version: found `v1.20.0`: version 1.20 is not supported; allowed are 1.33 to 1.36
            format: spec.kubernetes.clusters[1].name: found `Core`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `core`
            format: spec.kubernetes.clusters[1].network: found `300.0.0.0/8`: network is not of the form A.B.C.D/PREFIX with a prefix from 8 to 29
            format: spec.kubernetes.clusters[1].installationProxy.mode: found `On`, allowed: on, off or default
            format: spec.loadBalancers.roles[0].protocol: found `sctp`, allowed: tcp or udp
            format: spec.loadBalancers.clusters[0].dns.hostname: found `a b`: name has a blank; allowed are a-z, 0-9 and, inside, hyphens
        "#]],
    );
}
