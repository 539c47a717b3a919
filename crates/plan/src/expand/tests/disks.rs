//! Data disks that somebody asked for: what is on them goes with consent, whatever the manifest says of
//! them by then.

use super::{History, admitted};
use crate::loss;
use expect_test::{Expect, expect};
use model::manifest::Manifest;

/// A cluster at a cloud with a pool for workloads that says this of itself, where it has one.
fn manifest(muscle: &str) -> Manifest {
    let pool = |name: &str, more: &str| {
        format!(
            "{{name: {name}, providerSpec: {{name: hetz, region: n}}, {more}, serverType: cpx31, image: i}}"
        )
    };
    let (brain, brawn) = (pool("brain", "count: 1"), pool("brawn", "count: 1"));
    let (muscle, compute) = match muscle {
        "" => (String::new(), "brawn"),
        more => (pool("muscle", more), "brawn, muscle"),
    };
    admitted(&format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: hetz, providerType: hetzner, secretRef: {{name: account}}}}]
  nodePools: {{dynamic: [{brain}, {brawn}, {muscle}]}}
  kubernetes:
    clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/24, pools: {{control: [brain], compute: [{compute}]}}}}]
"
    ))
}

/// What the last of these manifests would lose, where machines have served since the first.
#[track_caller]
fn check(edits: &[&str], expected: &Expect) {
    let [first, between @ .., last] = edits else {
        panic!("there are two at least");
    };
    let history = History::new().apply(&manifest(first)).joined();
    let history = between
        .iter()
        .fold(history, |history, edit| history.apply(&manifest(edit)));
    let next = manifest(last);
    let lost = loss(
        history.desired.as_ref().unwrap(),
        &history.observed,
        &history.next(&next).desired,
        Some(&next),
    );
    expected.assert_eq(&lost.map(|lost| lost.to_string()).unwrap_or_default());
}

const ASKED: &str = "count: 3, storageDiskSize: 50";

#[test]
fn a_disk_of_the_usual_size_that_was_asked_for_is_somebodys() {
    let all = expect![
        "cluster edge would lose edge-muscle-01, edge-muscle-02, edge-muscle-03 with what is on data disks"
    ];
    check(&[ASKED, ""], &all);
    let last = expect!["cluster edge would lose edge-muscle-03 with what is on data disks"];
    check(&[ASKED, "count: 2, storageDiskSize: 50"], &last);
    check(&[ASKED, "count: 2"], &last);
    // Also when the line was dropped before.
    check(&[ASKED, "count: 3", "count: 2"], &last);
    check(&["count: 3", ASKED, ""], &all);
}

#[test]
fn a_disk_that_clouds_give_unasked_is_nobodys() {
    check(&["count: 3", ""], &expect![""]);
    check(&["count: 3", "count: 2"], &expect![""]);
    check(
        &[
            "count: 3, storageDiskSize: 0",
            "count: 2, storageDiskSize: 0",
        ],
        &expect![""],
    );
    // Who asked is forgotten with the last machine.
    let other = History::new()
        .apply(&manifest(ASKED))
        .apply(&manifest("count: 3"));
    assert_eq!(other.desired.unwrap().disks.len(), 1);
    let gone = History::new().apply(&manifest(ASKED));
    let gone = ["edge-muscle-01", "edge-muscle-02", "edge-muscle-03"]
        .iter()
        .fold(gone.apply(&manifest("")), |history, name| {
            history.gone(name)
        });
    let again = gone.apply(&manifest("count: 3"));
    assert!(again.desired.unwrap().disks.is_empty());
}

#[test]
fn what_is_asked_for_alone_is_a_generation_of_its_own() {
    let history = History::new().apply(&manifest("count: 3"));
    assert_eq!(
        history.next(&manifest(ASKED)).change,
        crate::Change::Changed
    );
    let asked = history.apply(&manifest(ASKED));
    assert_eq!(
        asked.next(&manifest(ASKED)).change,
        crate::Change::Unchanged
    );
    // It is remembered.
    assert_eq!(
        asked.next(&manifest("count: 3")).change,
        crate::Change::Unchanged
    );
}
