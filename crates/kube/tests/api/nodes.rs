//! Nodes: seen, cordoned, labelled, locked, given up and deleted.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::api::carried::CARE;
use kube::api::node::Taint;
use kube::api::wish::{COMING, GATED, OURS, Wish};
use kube::error::Kind;
use kube_client::Api;
use kube_client::api::{Patch, PatchParams};
use model::host::Fingerprint;
use serde_json::json;

use crate::world::{both, make, node, ready};

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn taint(key: &str, value: &str, effect: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect.to_owned(),
    }
}

#[tokio::test]
async fn a_node_is_seen_as_it_is() {
    let Some(door) = ready("a_node_is_seen_as_it_is").await else {
        return;
    };
    let mut wished = node("seen");
    wished["status"] = json!({
        "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fine" }],
        "addresses": [{ "type": "InternalIP", "address": "10.0.0.7" }],
    });
    make(&door, wished).await;
    let seen = door.node("seen").await.unwrap();
    assert!(seen.ready && !seen.cordoned, "{seen:?}");
    assert_eq!(seen.conditions[0].reason, "KubeletReady");
    let address = ("InternalIP".to_owned(), "10.0.0.7".to_owned());
    assert_eq!(seen.addresses, [address]);
    door.cordon("seen").await.unwrap();
    door.cordon("seen").await.unwrap();
    assert!(door.node("seen").await.unwrap().cordoned);
    door.uncordon("seen").await.unwrap();
    door.uncordon("seen").await.unwrap();
    assert!(!door.node("seen").await.unwrap().cordoned);
    assert!(
        door.nodes()
            .await
            .unwrap()
            .iter()
            .any(|node| node.name == "seen")
    );
    door.delete_node("seen", Some("another")).await.unwrap();
    assert!(door.node("seen").await.is_ok(), "another node was meant");
    door.delete_node("seen", Some(&seen.uid)).await.unwrap();
    door.delete_node("seen", Some(&seen.uid)).await.unwrap();
    door.delete_node("seen", None).await.unwrap();
    for error in [
        door.node("seen").await.unwrap_err(),
        door.cordon("seen").await.unwrap_err(),
        door.bring_node("seen", &Wish::default()).await.unwrap_err(),
        door.refuse_locked("seen").await.unwrap_err(),
    ] {
        assert_eq!(error.kind, Kind::NoNode, "{error}");
    }
}

#[tokio::test]
async fn only_what_is_ours_is_taken_away() {
    let Some(door) = ready("only_what_is_ours_is_taken_away").await else {
        return;
    };
    let mut wished = node("ours");
    wished["metadata"]["labels"] = json!({ "theirs": "1", "both": "same" });
    wished["spec"] = json!({ "taints": [{ "key": "theirs", "effect": "NoSchedule" }] });
    make(&door, wished).await;
    let wish = Wish {
        labels: map(&[("zone", "a"), ("both", "same")]),
        annotations: map(&[("note", "x")]),
        taints: vec![
            taint("dedicated", "db", "NoSchedule"),
            taint("dedicated", "db", "NoExecute"),
        ],
        provider_id: Some("slipway://1".to_owned()),
        ..Wish::default()
    };
    door.bring_node("ours", &wish).await.unwrap();
    let first = door.node("ours").await.unwrap();
    assert_eq!(first.labels["zone"], "a");
    assert_eq!(first.annotations["note"], "x");
    assert_eq!(first.provider_id.as_deref(), Some("slipway://1"));
    for taint in &wish.taints {
        assert!(first.taints.contains(taint), "{first:?}");
    }
    door.bring_node("ours", &wish).await.unwrap();
    assert_eq!(door.node("ours").await.unwrap(), first);
    // Another value, one taint less, no annotation, and nothing said of what both wanted.
    let wish = Wish {
        labels: map(&[("zone", "b")]),
        taints: vec![taint("dedicated", "web", "NoSchedule")],
        ..Wish::default()
    };
    door.bring_node("ours", &wish).await.unwrap();
    let second = door.node("ours").await.unwrap();
    assert_eq!(second.labels["zone"], "b");
    assert_eq!(second.labels["both"], "same", "it was there before us");
    assert!(!second.annotations.contains_key("note"));
    assert!(
        second
            .taints
            .contains(&taint("dedicated", "web", "NoSchedule"))
    );
    assert!(
        !second
            .taints
            .iter()
            .any(|taint| taint.key == "dedicated" && taint.effect == "NoExecute")
    );
    door.bring_node("ours", &Wish::default()).await.unwrap();
    let last = door.node("ours").await.unwrap();
    assert!(!last.labels.contains_key("zone") && !last.annotations.contains_key(OURS));
    assert_eq!(last.labels["theirs"], "1");
    assert!(last.taints.contains(&taint("theirs", "", "NoSchedule")));
    assert!(!last.taints.iter().any(|taint| taint.key == "dedicated"));
    let other = Wish {
        provider_id: Some("slipway://2".to_owned()),
        ..Wish::default()
    };
    let error = door.bring_node("ours", &other).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected, "{error}");
}

#[tokio::test]
async fn a_node_with_gates_to_pass_takes_no_pods_until_it_has() {
    let test = "a_node_with_gates_to_pass_takes_no_pods_until_it_has";
    let Some((door, somebody)) = both(test).await else {
        return;
    };
    let mut comes = node("gated");
    comes["spec"] = json!({ "taints": [{ "key": COMING, "effect": "NoSchedule" }] });
    make(&door, comes).await;
    let told = Fingerprint::of_text("once");
    let wish = Wish {
        told: Some(told.clone()),
        gated: true,
        ..Wish::default()
    };
    for _ in 0..2 {
        door.bring_node("gated", &wish).await.unwrap();
        let seen = door.node("gated").await.unwrap();
        assert!(seen.cordoned && seen.gated(), "{seen:?}");
        assert_eq!(seen.care(), Some(told.clone()), "{seen:?}");
        assert!(!seen.taints.iter().any(|taint| taint.key == COMING));
    }
    // Who is told something else still waits.
    let wish = Wish {
        gated: false,
        ..wish
    };
    door.bring_node("gated", &wish).await.unwrap();
    assert!(door.node("gated").await.unwrap().gated());
    door.uncordon("gated").await.unwrap();
    let seen = door.node("gated").await.unwrap();
    assert!(!seen.cordoned && !seen.gated() && !seen.annotations.contains_key(GATED));
    // Who is cordoned by hand has no gates to pass, nor has who was let pass by hand.
    door.cordon("gated").await.unwrap();
    assert!(!door.node("gated").await.unwrap().gated());
    door.bring_node(
        "gated",
        &Wish {
            gated: true,
            ..wish
        },
    )
    .await
    .unwrap();
    let nodes: Api<Node> = Api::all(somebody);
    let open = Patch::Merge(json!({ "spec": { "unschedulable": null } }));
    nodes
        .patch("gated", &PatchParams::default(), &open)
        .await
        .unwrap();
    assert!(!door.node("gated").await.unwrap().gated());
    door.forget_gates("gated").await.unwrap();
    door.cordon("gated").await.unwrap();
    assert!(!door.node("gated").await.unwrap().gated());
    door.delete_node("gated", None).await.unwrap();
}

#[tokio::test]
async fn a_label_that_cannot_be_is_refused() {
    let Some(door) = ready("a_label_that_cannot_be_is_refused").await else {
        return;
    };
    make(&door, node("picky")).await;
    let wish = Wish {
        labels: map(&[("not a label", "x")]),
        ..Wish::default()
    };
    let error = door.bring_node("picky", &wish).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected, "{error}");
}

#[tokio::test]
async fn a_lock_counts_whatever_it_says() {
    let Some(door) = ready("a_lock_counts_whatever_it_says").await else {
        return;
    };
    for (name, label) in [
        ("locked-1", "slipway.dev/upgrade-lock"),
        ("locked-2", "claudie.io/upgrade-lock"),
    ] {
        make(&door, node(name)).await;
        door.refuse_locked(name).await.unwrap();
        let wish = Wish {
            labels: map(&[(label, "false")]),
            ..Wish::default()
        };
        door.bring_node(name, &wish).await.unwrap();
        let error = door.refuse_locked(name).await.unwrap_err();
        assert_eq!(error.kind, Kind::Locked);
        assert!(error.what.contains(label), "{error}");
    }
}

#[tokio::test]
async fn a_dead_machine_is_said_to_be_out_of_service() {
    let Some(door) = ready("a_dead_machine_is_said_to_be_out_of_service").await else {
        return;
    };
    make(&door, node("dead")).await;
    let wish = Wish {
        taints: vec![taint("ours", "", "NoSchedule")],
        ..Wish::default()
    };
    door.bring_node("dead", &wish).await.unwrap();
    let out = taint(
        "node.kubernetes.io/out-of-service",
        "nodeshutdown",
        "NoExecute",
    );
    for _ in 0..2 {
        door.out_of_service("dead", true).await.unwrap();
        door.bring_node("dead", &wish).await.unwrap();
        let seen = door.node("dead").await.unwrap();
        assert!(seen.taints.contains(&out), "{seen:?}");
    }
    door.out_of_service("dead", false).await.unwrap();
    let seen = door.node("dead").await.unwrap();
    assert!(!seen.taints.contains(&out) && seen.taints.contains(&wish.taints[0]));
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let Some(door) = ready("changes_at_the_same_time_are_all_kept").await else {
        return;
    };
    make(&door, node("busy")).await;
    let out = taint(
        "node.kubernetes.io/out-of-service",
        "nodeshutdown",
        "NoExecute",
    );
    for round in 0..10 {
        let wish = Wish {
            labels: map(&[("round", &round.to_string())]),
            taints: vec![taint("round", &round.to_string(), "NoSchedule")],
            ..Wish::default()
        };
        let dead = round % 2 == 0;
        let (one, other, third) = tokio::join!(
            door.bring_node("busy", &wish),
            door.out_of_service("busy", dead),
            door.cordon("busy"),
        );
        one.and(other).and(third).unwrap();
        let seen = door.node("busy").await.unwrap();
        assert!(seen.taints.contains(&wish.taints[0]), "{seen:?}");
        assert_eq!(seen.taints.contains(&out), dead, "{seen:?}");
        assert!(seen.cordoned);
    }
}

#[tokio::test]
async fn what_a_node_was_told_is_remembered_until_somebody_changes_it() {
    let test = "what_a_node_was_told_is_remembered_until_somebody_changes_it";
    let Some((door, somebody)) = both(test).await else {
        return;
    };
    let nodes: Api<Node> = Api::all(somebody);
    let mut comes = node("told");
    comes["metadata"]["labels"] = json!({ "both": "same" });
    comes["spec"] = json!({ "taints": [{ "key": COMING, "effect": "NoSchedule" }] });
    make(&door, comes).await;
    assert_eq!(door.node("told").await.unwrap().care(), None);
    let told = Fingerprint::of_text("once");
    let wish = Wish {
        labels: map(&[("team", "blue"), ("both", "same")]),
        annotations: map(&[("note", "x")]),
        taints: vec![taint("slow", "", "PreferNoSchedule")],
        provider_id: None,
        told: Some(told.clone()),
        gated: false,
    };
    let bring = async || {
        door.bring_node("told", &wish).await.unwrap();
        let node = door.node("told").await.unwrap();
        assert_eq!(node.care(), Some(told.clone()), "{node:?}");
        assert!(!node.taints.iter().any(|taint| taint.key == COMING));
    };
    bring().await;
    let before = door.node("told").await.unwrap();
    bring().await;
    assert_eq!(
        door.node("told").await.unwrap(),
        before,
        "a second time changes nothing"
    );
    // What others add changes nothing; what they change of ours does, whoever put it there first.
    let change = async |patch: &serde_json::Value| {
        let patch = Patch::Merge(patch);
        let params = PatchParams::default();
        nodes.patch("told", &params, &patch).await.unwrap();
        door.node("told").await.unwrap().care()
    };
    let kept = change(&json!({ "metadata": { "labels": { "theirs": "1" } } })).await;
    assert_eq!(kept, Some(told.clone()), "what is theirs does not matter");
    for drift in [
        json!({ "metadata": { "labels": { "team": "red" } } }),
        json!({ "metadata": { "labels": { "both": null } } }),
        json!({ "metadata": { "annotations": { "note": "y" } } }),
        json!({ "metadata": { "annotations": { CARE: "nonsense" } } }),
        json!({ "spec": { "taints": null } }),
    ] {
        assert_eq!(change(&drift).await, None, "{drift}");
        bring().await;
    }
    door.delete_node("told", None).await.unwrap();
}
