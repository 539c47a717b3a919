//! Machines that are to be taken from those that were discovered.

use super::{History, admitted};
use crate::Change;
use model::cluster::Role;
use model::manifest::Manifest;

fn manifest(metal: &str, compute: &str) -> Manifest {
    admitted(&format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic: [{{name: brain, providerSpec: {{name: lab, region: n}}, count: 1, serverType: s, image: i}}]
    metal: [{metal}]
  kubernetes:
    clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/24, pools: {{control: [brain], compute: [{compute}]}}}}]
"
    ))
}

#[test]
fn what_a_pool_takes_is_known_and_no_machine_is_made_of_it() {
    let two = manifest("{name: iron, selector: {rack: a1}, count: 2}", "iron");
    let first = History::new().apply(&two);
    let desired = first.desired.as_ref().unwrap();
    assert_eq!(desired.machines.len(), 1);
    let [wanted] = desired.metal.as_slice() else {
        panic!("{:?}", desired.metal);
    };
    assert_eq!((wanted.role, wanted.count), (Role::Compute, 2));
    assert_eq!(wanted.selector["rack"], "a1");
    assert_eq!(first.next(&two).change, Change::Unchanged);
    let none = first.next(&manifest("", ""));
    assert_eq!(
        (none.change, none.desired.metal),
        (Change::Changed, Vec::new())
    );
    let stored = serde_json::to_string(desired).unwrap();
    assert_eq!(
        &serde_json::from_str::<model::cluster::Desired>(&stored).unwrap(),
        desired
    );
}
