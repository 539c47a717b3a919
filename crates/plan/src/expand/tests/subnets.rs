//! The part of its provider's network that each pool has: there are 256.

use super::{History, admitted};
use expect_test::expect;
use model::manifest::Manifest;

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
