//! Faults that have nothing to do with each other are all told, in whatever company.

use super::super::admit;
use crate::source;
use proptest::prelude::*;

/// A manifest in which something of everything can be wrong.
const WHOLE: &str = "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: whole}
spec:
  providers:
    - {name: lab, providerType: simulated}
    - {name: rented, providerType: hetzner, secretRef: {name: account}}
  disruption:
    groups: [{name: rack, unavailable: 1}]
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: lab, region: north}, count: 3, serverType: small, image: debian-12}
      - {name: mind, providerSpec: {name: lab, region: north}, count: 1, serverType: small, image: debian-12, disruption: {group: rack}}
      - {name: muscle, providerSpec: {name: rented, region: south}, autoscaler: {min: 1, max: 4}, serverType: large, image: ubuntu}
    static:
      - {name: attic, nodes: [{endpoint: 203.0.113.5}, {endpoint: 203.0.113.6}]}
      - {name: door, sshPort: 2222, nodes: [{endpoint: 203.0.113.7}, {endpoint: 203.0.113.8}]}
  kubernetes:
    clusters:
      - {name: first, version: v1.34.1, network: 10.8.0.0/24, pools: {control: [brain], compute: [muscle, attic]}}
      - {name: second, version: v1.34.2, network: 10.9.0.0/24, podNetwork: 10.64.0.0/16, cni: flannel, pools: {control: [mind], compute: []}}
  loadBalancers:
    roles:
      - {name: web, protocol: tcp, port: 80, targetPort: 8080, targetPools: [muscle]}
      - {name: mail, protocol: tcp, port: 25, targetPort: 2525, targetPools: [attic]}
      - {name: api, protocol: tcp, port: 6443, targetPort: 6443, targetPools: [brain]}
    clusters:
      - {name: front, targetedK8s: first, roles: [web, mail, api], pools: [door]}
";

/// Mistakes of which none is a consequence of another: each is one fault.
const MISTAKES: [(&str, &str); 33] = [
    ("{name: whole}", "{name: Whole}"),
    // A provider, and who names it.
    ("{name: lab, providerType", "{name: Lab, providerType"),
    (
        "providerType: hetzner, secretRef: {name: account}",
        "providerType: hetzner",
    ),
    ("{name: rented, region", "{name: nobody, region"),
    // A group, and who belongs to it.
    (
        "{name: rack, unavailable: 1}",
        "{name: rack, unavailable: 0}",
    ),
    ("{group: rack}", "{group: rock}"),
    // Pools: what they are called, how large they are, what they are made of.
    ("{name: brain, providerSpec", "{name: Brain, providerSpec"),
    ("count: 3, serverType: small", "count: 3, serverType: ''"),
    ("count: 1, serverType: small", "count: 2, serverType: small"),
    (
        "image: debian-12, disruption",
        "imago: debian-12, image: debian-12, disruption",
    ),
    ("{min: 1, max: 4}", "{min: 6, max: 4}"),
    (
        "{name: mind, providerSpec",
        "{spot: true, name: mind, providerSpec",
    ),
    ("{name: attic, nodes", "{name: Attic, nodes"),
    ("{endpoint: 203.0.113.5}", "{endpoint: nowhere}"),
    ("{endpoint: 203.0.113.8}", "{endpoint: 203.0.113.6}"),
    (
        "{endpoint: 203.0.113.7}",
        "{endpoint: 203.0.113.7, username: '-'}",
    ),
    // Clusters: what they are called, what they run, which pools and networks they have.
    ("{name: first, version", "{name: First, version"),
    ("v1.34.1", "v1.20.0"),
    ("v1.34.2", "one"),
    ("control: [brain]", "control: [Brain]"),
    (
        "compute: [muscle, attic]",
        "compute: [muscle, attic, nobody]",
    ),
    ("compute: []", "compute: [door]"),
    ("10.9.0.0/24", "10.9.0.0/33"),
    ("podNetwork: 10.64.0.0/16", "podNetwork: 10.96.0.0/16"),
    ("cni: flannel", "cni: flanel"),
    // Roles and load balancers.
    ("{name: web, protocol", "{name: Web, protocol"),
    ("targetPort: 8080", "targetPort: 0"),
    ("port: 25,", "port: 2222,"),
    ("targetPools: [attic]", "targetPools: [attic, ghost]"),
    ("{name: front", "{name: Front"),
    ("targetedK8s: first", "targetedK8s: fourth"),
    ("mail, api]", "mail, api, none]"),
    ("pools: [door]", "pools: [door, cellar]"),
];

/// The faults of the manifest with some mistakes in it, each by its place.
fn faults(mistakes: &[usize]) -> Vec<String> {
    let mut text = WHOLE.to_owned();
    for at in mistakes {
        let (from, to) = MISTAKES[*at];
        assert_eq!(text.matches(from).count(), 1, "{from:?} in {text}");
        text = text.replacen(from, to, 1);
    }
    let admitted = admit(&source::parse(&text).unwrap());
    let mut told: Vec<_> = match admitted {
        Ok(manifest) => {
            let doubts = manifest.doubts.iter();
            doubts.map(|doubt| doubt.fault.path.clone()).collect()
        }
        Err(faults) => faults.into_iter().map(|fault| fault.path).collect(),
    };
    told.sort();
    told
}

/// The faults of each of these mistakes alone, together.
fn sum(mistakes: &[usize]) -> Vec<String> {
    let mut sum: Vec<_> = mistakes.iter().flat_map(|at| faults(&[*at])).collect();
    sum.sort();
    sum
}

#[test]
fn without_a_mistake_there_is_no_fault_and_one_mistake_is_one() {
    assert_eq!(faults(&[]), [""; 0]);
    for (at, mistake) in MISTAKES.iter().enumerate() {
        let told = faults(&[at]);
        assert_eq!(told.len(), 1, "{mistake:?}: {told:#?}");
    }
}

#[test]
fn no_mistake_hides_another_and_all_are_told_at_once() {
    for one in 0..MISTAKES.len() {
        for other in one + 1..MISTAKES.len() {
            let both = [one, other];
            let names = both.map(|at| MISTAKES[at].1);
            assert_eq!(faults(&both), sum(&both), "{names:?}");
        }
    }
    let all: Vec<_> = (0..MISTAKES.len()).collect();
    assert_eq!(faults(&all), sum(&all));
}

proptest! {
    #[test]
    fn the_faults_of_mistakes_are_the_sum_of_those_of_each(
        mistakes in proptest::sample::subsequence((0..MISTAKES.len()).collect::<Vec<_>>(), 0..MISTAKES.len())
    ) {
        prop_assert_eq!(faults(&mistakes), sum(&mistakes));
    }
}

#[test]
fn faults_are_told_from_the_top_to_the_bottom() {
    let mut text = WHOLE.to_owned();
    for (from, to) in MISTAKES {
        text = text.replacen(from, to, 1);
    }
    let faults = admit(&source::parse(&text).unwrap()).unwrap_err();
    // Every part begins a line of its own, so the parts that are told begin in the order of lines.
    let parts = [
        "metadata",
        "spec.providers",
        "spec.disruption",
        "spec.nodePools",
        "spec.kubernetes",
        "spec.loadBalancers",
    ];
    let of = |path: &str| {
        parts
            .iter()
            .position(|part| path.starts_with(part))
            .unwrap()
    };
    let order: Vec<_> = faults.iter().map(|fault| of(&fault.path)).collect();
    assert!(order.is_sorted(), "{faults:#?}");
    let lists = |fault: &&crate::fault::Fault| fault.path.starts_with("spec.nodePools.dynamic[");
    let pools: Vec<_> = faults
        .iter()
        .filter(lists)
        .map(|fault| &fault.path[..24])
        .collect();
    assert!(pools.is_sorted(), "{pools:#?}");
}
