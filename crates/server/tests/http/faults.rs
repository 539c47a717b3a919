//! What is wrong with a manifest by itself and what is in the eyes of the project are told in one answer.

use crate::world::{HELLO, PROJECT, TOKEN, World};
use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::json;

/// [`HELLO`] after some edits, each of which fits.
fn edited(edits: &[(&str, &str)]) -> String {
    let mut text = HELLO.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from:?} is not in {text}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// The paths of what is wrong, in the order of the answer.
fn paths(told: &serde_json::Value) -> Vec<String> {
    let faults = told["faults"].as_array().cloned().unwrap_or_default();
    let paths = faults.iter().map(|fault| fault["path"].as_str().unwrap());
    paths.map(str::to_owned).collect()
}

/// What is said of all these edits of a cluster that lives, and of each alone, by plan and apply alike.
async fn sums_up(mistakes: &[(&str, &str)]) -> String {
    let world = World::with_hello().await;
    world.settle().await;
    let mut alone = Vec::new();
    for mistake in mistakes {
        let refused = world.submit(&edited(&[*mistake])).await;
        let told = paths(&refused.json());
        assert_eq!(told.len(), 1, "{mistake:?}: {}", refused.text);
        alone.extend(told);
    }
    let all = world.submit(&edited(mistakes)).await;
    let planned = world.post("/plans", &edited(mistakes)).await;
    assert_eq!(planned.picture(), all.picture());
    let rehearsed = world.post("/simulations", &edited(mistakes)).await;
    assert_eq!(rehearsed.picture(), all.picture());
    let mut together = paths(&all.json());
    together.sort();
    alone.sort();
    assert_eq!(together, alone, "{}", all.text);
    all.picture()
}

#[tokio::test]
async fn faults_of_the_file_and_of_the_project_are_one_answer_in_the_order_of_the_file() {
    // The cluster cannot be read whole; its fields and its pools can.
    let told = sums_up(&[
        ("{name: hello}", "{name: hello, namespace: other}"),
        (
            "providerType: simulated",
            "providerType: simulated, secretRef: {name: key, namespace: theirs}",
        ),
        ("serverType: large", "serverType: huge"),
        ("version: v1.34.1", "version: v1.33.0"),
        ("10.8.0.0/24", "10.9.0.0/24"),
        (
            "compute: [muscle]}",
            "compute: [muscle]}\n        engine: rke",
        ),
    ])
    .await;
    expect![[r#"
        422 INPUT-001: the manifest has 6 faults
          metadata.namespace [reference] found `other`, allowed: default, the project of the manifest, or nothing
          spec.providers[0].secretRef.namespace [reference] found `theirs`, allowed: default, the project of the manifest, or nothing; a manifest uses the secrets of its own project
          spec.nodePools.dynamic[1] [immutable] found serverType huge, which was large when first-muscle-01 was made; say replace: true to have the pool's machines replaced, one after the other
          spec.kubernetes.clusters[0].version [immutable] found v1.33.0, allowed: v1.34.1 or newer, which nodes run; Kubernetes cannot be downgraded
          spec.kubernetes.clusters[0].network [immutable] found 10.9.0.0/24, allowed: 10.8.0.0/24, the network the cluster was made with
          spec.kubernetes.clusters[0].engine [unsupported] found `rke`, allowed: kubeadm (this build has hands for kubeadm alone)
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn what_is_wrong_with_one_cluster_hides_nothing_of_another() {
    let world = World::with_hello().await;
    world.settle().await;
    // The second one cannot be read at all, and takes the pool of the first with it in no way.
    let second =
        "      - {name: Second, version: one, network: nowhere, pools: {control: [brain]}}\n";
    let text = edited(&[
        ("version: v1.34.1", "version: v1.33.0"),
        ("image: debian-12", "image: debian-13"),
    ]);
    let refused = world.submit(&format!("{text}{second}")).await;
    expect![[r#"
        422 INPUT-001: the manifest has 5 faults
          spec.nodePools.dynamic[0] [immutable] found image debian-13, which was debian-12 when first-brain-01 was made; say replace: true to have the pool's machines replaced, one after the other
          spec.kubernetes.clusters[0].version [immutable] found v1.33.0, allowed: v1.34.1 or newer, which nodes run; Kubernetes cannot be downgraded
          spec.kubernetes.clusters[1].name [format] found `Second`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `second`
          spec.kubernetes.clusters[1].version [format] found `one`: version is not of the form v1.MINOR.PATCH
          spec.kubernetes.clusters[1].network [format] found `nowhere`: network is not of the form A.B.C.D/PREFIX with a prefix from 8 to 29
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&refused.picture());
}

#[tokio::test]
async fn nothing_is_told_that_only_follows_from_a_fault() {
    let world = World::with_hello().await;
    world.settle().await;
    // Pools that cannot be read have not gone, nor has a cluster whose name cannot, nor those who live at
    // one who cannot be read.
    for (from, to) in [
        ("{name: brain, ", "{name: Brain, "),
        (
            "{name: lab, providerType: simulated}",
            "{name: Lab, providerType: simulated}",
        ),
        ("providerType: simulated", "providerType: somebody"),
        ("name: first", "name: First"),
        ("control: [brain]", "control: [3]"),
        ("{name: hello}", "{name: Hello}"),
    ] {
        let refused = world.submit(&edited(&[(from, to)])).await;
        assert_eq!(paths(&refused.json()).len(), 1, "{to}: {}", refused.text);
    }
}

#[tokio::test]
async fn a_doubt_that_a_cluster_lives_with_is_no_fault_beside_another() {
    let overlap = format!(
        "{HELLO}      - {{name: second, version: v1.34.1, network: 10.8.0.128/25, pools: {{control: [brain], compute: []}}}}\n"
    );
    let world = World::new();
    world.submit_as_before(&overlap).await;
    let typo = overlap.replacen("serverType: large", "serverTyp: large", 1);
    let refused = world.submit(&typo).await;
    expect![[r#"
        422 INPUT-001: the manifest has 2 faults
          spec.nodePools.dynamic[1].serverType [required] found nothing; this field is required
          spec.nodePools.dynamic[1].serverTyp [unknown-field] unknown field; did you mean `serverType`? allowed: name, providerSpec, count, autoscaler, serverType, image, storageDiskSize, machineSpec, spot, disruption, labels, annotations, taints, replace, surge
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&refused.picture());
    // One that is new is told beside it.
    let third = format!(
        "{typo}      - {{name: third, version: v1.34.1, network: 10.8.0.64/26, pools: {{control: [brain], compute: []}}}}\n"
    );
    let refused = world.submit(&third).await;
    assert!(
        paths(&refused.json()).contains(&"spec.kubernetes.clusters[2].network".to_owned()),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn a_secret_that_opens_nothing_and_a_name_that_is_taken_are_told_beside_a_typing_error() {
    let world = World::with_hello().await;
    let path = format!("{PROJECT}/secrets/cloud");
    let entries = json!({"entries": {"credentials": "short"}});
    let set = world.ask(TOKEN, Method::PUT, &path, entries).await;
    assert!(set.status.is_success(), "{}", set.text);
    let text = edited(&[
        ("{name: hello}", "{name: other}"),
        (
            "{name: lab, providerType: simulated}",
            "{name: lab, providerType: hetzner, secretRef: {name: cloud}}",
        ),
        ("serverType: large", "serverTyp: large"),
    ]);
    let refused = world.submit(&text).await;
    expect![[r#"
        422 INPUT-001: the manifest has 4 faults
          spec.providers[0].secretRef [format] found a secret that opens no account of hetzner: credentials is not 64 letters and digits
          spec.nodePools.dynamic[1].serverType [required] found nothing; this field is required
          spec.nodePools.dynamic[1].serverTyp [unknown-field] unknown field; did you mean `serverType`? allowed: name, providerSpec, count, autoscaler, serverType, image, storageDiskSize, machineSpec, spot, disruption, labels, annotations, taints, replace, surge
          spec.kubernetes.clusters[0].name [duplicate] found `first`, allowed: a name that nobody has: cluster first belongs to manifest hello
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&refused.picture());
}

#[tokio::test]
async fn a_protected_cluster_that_is_taken_out_is_told_beside_another_fault() {
    let world = World::new();
    let kept = edited(&[(
        "version: v1.34.1",
        "version: v1.34.1\n        deletionProtection: true",
    )]);
    let accepted = world.submit(&kept).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
    let out = edited(&[
        ("name: first", "name: second"),
        ("version: v1.34.1", "version: one"),
    ]);
    let refused = world.submit(&out).await;
    expect![[r#"
        422 INPUT-001: the manifest has 2 faults
          spec.kubernetes.clusters [immutable] found no cluster first, which is protected, allowed: first; declare it once with deletionProtection: false, then take it out
          spec.kubernetes.clusters[0].version [format] found `one`: version is not of the form v1.MINOR.PATCH
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&refused.picture());
    // Where a cluster's name cannot be read, it may be that one.
    let unread = edited(&[("name: first", "name: First")]);
    assert_eq!(paths(&world.submit(&unread).await.json()).len(), 1);
}
