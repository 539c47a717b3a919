//! The part of its provider's network that each pool has: there are 256.

use super::{Change, History, admitted};
use expect_test::{Expect, expect};
use model::cluster::Origin;
use model::manifest::Manifest;
use model::time::Timestamp;
use model::upkeep::Failed;
use std::fmt::Write as _;

/// A cluster with so many pools in one region of a cloud, its control plane included.
fn manifest(pools: u32) -> Manifest {
    let pool = |at: u32| {
        format!(
            "{{name: p{at}, providerSpec: {{name: hetz, region: n}}, count: 1, serverType: cpx31, image: i}}"
        )
    };
    let all: Vec<_> = (0..pools).map(pool).collect();
    let compute: Vec<_> = (1..pools).map(|at| format!("p{at}")).collect();
    let (all, compute) = (all.join(", "), compute.join(", "));
    admitted(&format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: hetz, providerType: hetzner, secretRef: {{name: account}}}}]
  nodePools: {{dynamic: [{all}]}}
  kubernetes:
    clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/22, cni: cilium, pools: {{control: [p0], compute: [{compute}]}}}}]
"
    ))
}

#[test]
fn the_pool_for_which_no_part_is_left_is_refused() {
    let full = History::new().apply(&manifest(256));
    let machines = &full.desired.as_ref().unwrap().machines;
    let model::cluster::Origin::Made { hardware, .. } = &machines.last().unwrap().origin else {
        panic!("it is made");
    };
    let part = hardware.subnet.unwrap();
    assert!(model::network::Network::AT_CLOUDS.overlaps(part));
    full.refuse(
        &manifest(257),
        &expect![[r#"
            spec.nodePools.dynamic[256]: found no free network in 10.0.0.0/16, allowed: fewer pools with provider hetz in region n
        "#]],
    );
    // Whoever has one keeps it.
    full.apply(&manifest(255)).apply(&manifest(255));
}

/// A cluster with these pools, each `name region`, whose machines are replaced where they become others.
fn moved(pools: &str) -> Manifest {
    let pools: Vec<_> = pools
        .split(", ")
        .filter_map(|of| of.split_once(' '))
        .collect();
    let pool = |(name, region): &(&str, &str)| {
        format!(
            "{{name: {name}, providerSpec: {{name: hetz, region: {region}}}, count: 1, serverType: cpx31, image: i, replace: true}}"
        )
    };
    let all: Vec<_> = pools.iter().map(pool).collect();
    let compute: Vec<_> = pools.iter().skip(1).map(|(name, _)| *name).collect();
    let (all, compute) = (all.join(", "), compute.join(", "));
    admitted(&format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: hetz, providerType: hetzner, secretRef: {{name: account}}}}]
  nodePools: {{dynamic: [{all}]}}
  kubernetes:
    clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/22, cni: cilium, pools: {{control: [{}], compute: [{compute}]}}}}]
",
        pools[0].0
    ))
}

impl History {
    /// Where machines are, and where those will be that come in their place.
    #[track_caller]
    fn networks(self, expected: &Expect) -> Self {
        let desired = self.desired.as_ref().unwrap();
        let mut told = String::new();
        let mut tell = |name: &str, origin: &Origin| {
            let Origin::Made {
                region, hardware, ..
            } = origin
            else {
                panic!("{name} is made");
            };
            writeln!(told, "{name} {region} {}", hardware.subnet.unwrap()).unwrap();
        };
        for machine in &desired.machines {
            tell(machine.name.as_str(), &machine.origin);
        }
        for roll in &desired.rolls {
            tell(&format!("{} to", roll.pool), &roll.origin);
        }
        expected.assert_eq(&told);
        self
    }
}

#[test]
fn pools_that_move_into_one_region_have_networks_of_their_own() {
    let there = History::new().apply(&moved("a fsn1, b fsn1")).joined();
    let both = there.apply(&moved("a nbg1, b nbg1")).networks(&expect![[r#"
            edge-a-01 fsn1 10.0.0.0/24
            edge-b-01 fsn1 10.0.1.0/24
            a to nbg1 10.0.0.0/24
            b to nbg1 10.0.1.0/24
        "#]]);
    // The same text again changes nothing, also while one of them waits.
    let mut both = both;
    let rolls = &mut both.desired.as_mut().unwrap().rolls;
    let failed = Failed::again(None, Timestamp::from_millis(4), "no room".to_owned());
    rolls[1].failed = Some(failed);
    let again = both.next(&moved("a nbg1, b nbg1"));
    assert_eq!(again.change, Change::Unchanged);
    assert_eq!(Some(&again.desired), both.desired.as_ref());
}

#[test]
fn a_pool_that_comes_takes_no_network_of_those_that_are_on_their_way() {
    let there = History::new().apply(&moved("a fsn1, b fsn1")).joined();
    let one = there.apply(&moved("a fsn1, b nbg1"));
    one.apply(&moved("a fsn1, c nbg1, b nbg1"))
        .networks(&expect![[r#"
            edge-a-01 fsn1 10.0.0.0/24
            edge-b-01 fsn1 10.0.1.0/24
            edge-c-01 nbg1 10.0.1.0/24
            b to nbg1 10.0.0.0/24
        "#]]);
}
