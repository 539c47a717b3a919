//! Emptying nodes whose pods are objects without a kubelet.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::Door;
use kube::api::drain::{Drained, Draining, Why};
use kube::error::Kind;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube_client::{Api, Client};
use serde_json::{Value, json};

use crate::world::{both, context, make, node, until};

/// Looks often, and gives up soon.
pub(crate) const HASTY: Draining = Draining {
    cap: Duration::from_secs(4),
    patience: Duration::from_mins(2),
    at_once: 4,
    pause: Duration::from_millis(100),
};

/// Looks often, and gives up so late that only a fault makes it.
const PATIENT: Draining = Draining {
    cap: Duration::from_mins(2),
    ..HASTY
};

/// A pod that leaves at once when it is asked to.
pub(crate) fn pod(namespace: &str, name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": namespace, "name": name, "labels": { "app": namespace } },
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "main", "image": "lab.test/none" }],
        },
    })
}

pub(crate) async fn namespace(door: &Door, name: &str) {
    make(
        door,
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }),
    )
    .await;
}

/// A pod that runs, and serves or not.
async fn running(door: &Door, client: &Client, object: Value, ready: bool) {
    let namespace = object["metadata"]["namespace"].as_str().unwrap().to_owned();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    make(door, object).await;
    let status = if ready { "True" } else { "False" };
    let patch = json!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": status }],
    } });
    status_of::<Pod>(client, &namespace, &name, patch).await;
}

/// Sets the status of a pod, as a kubelet does.
async fn status_of<K>(client: &Client, namespace: &str, name: &str, patch: Value)
where
    K: kube_client::Resource<DynamicType = (), Scope = kube_client::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let params = PatchParams::default();
    api.patch_status(name, &params, &Patch::Merge(patch))
        .await
        .unwrap();
}

/// A budget, once the real controller has counted so many healthy pods.
async fn budget(door: &Door, client: &Client, namespace: &str, least: i32, healthy: i32) {
    make(
        door,
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "namespace": namespace, "name": "careful" },
            "spec": { "minAvailable": least, "selector": { "matchLabels": { "app": namespace } } },
        }),
    )
    .await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), namespace);
    until("the budget is counted", async || {
        let status = budgets.get("careful").await.unwrap().status;
        status.is_some_and(|status| {
            status.observed_generation.is_some() && status.current_healthy == healthy
        })
    })
    .await;
}

pub(crate) async fn drain(door: &Door, node: &str, how: Draining) -> (Drained, Vec<String>) {
    let (cx, _cancel, lines) = context();
    let drained = door.drain(&cx, node, how).await.unwrap();
    (drained, lines.all())
}

#[tokio::test]
async fn a_node_is_emptied_of_what_must_leave() {
    let Some((door, client)) = both("a_node_is_emptied_of_what_must_leave").await else {
        return;
    };
    namespace(&door, "leave").await;
    make(&door, node("leave")).await;
    for number in 0..10 {
        make(&door, pod("leave", &format!("plain-{number}"), "leave")).await;
    }
    let mut daemon = pod("leave", "daemon", "leave");
    daemon["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": true,
    }]);
    make(&door, daemon).await;
    let mut mirror = pod("leave", "mirror", "leave");
    mirror["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "x" });
    make(&door, mirror).await;
    make(&door, pod("leave", "ended", "leave")).await;
    status_of::<Pod>(
        &client,
        "leave",
        "ended",
        json!({ "status": { "phase": "Succeeded" } }),
    )
    .await;
    make(&door, pod("leave", "elsewhere", "other")).await;
    let (drained, lines) = drain(&door, "leave", PATIENT).await;
    assert_eq!((drained.gone, drained.left.len()), (10, 0), "{lines:?}");
    assert!(drained.into_result().is_ok());
    assert!(
        lines.contains(&"pod leave/plain-3 is gone".to_owned()),
        "{lines:?}"
    );
    assert!(door.node("leave").await.unwrap().cordoned);
    let pods: Api<Pod> = Api::namespaced(client, "leave");
    let left = pods.list(&ListParams::default()).await.unwrap();
    let mut left: Vec<String> = left
        .items
        .into_iter()
        .filter_map(|pod| pod.metadata.name)
        .collect();
    left.sort();
    assert_eq!(left, ["daemon", "elsewhere", "ended", "mirror"]);
    let (again, _) = drain(&door, "leave", PATIENT).await;
    assert_eq!(again.gone, 0);
}

#[tokio::test]
async fn a_budget_lets_pods_leave_as_it_allows() {
    let Some((door, client)) = both("a_budget_lets_pods_leave_as_it_allows").await else {
        return;
    };
    namespace(&door, "allowed").await;
    make(&door, node("allowed")).await;
    for number in 0..3 {
        let one = pod("allowed", &format!("one-{number}"), "allowed");
        running(&door, &client, one, true).await;
    }
    running(&door, &client, pod("allowed", "other", "elsewhere"), true).await;
    budget(&door, &client, "allowed", 3, 4).await;
    // One may leave; then the budget is used up for good, because nobody makes pods anew.
    let (drained, lines) = drain(&door, "allowed", HASTY).await;
    assert_eq!((drained.gone, drained.left.len()), (1, 2), "{lines:?}");
    budget(&door, &client, "allowed", 1, 3).await;
    let (drained, lines) = drain(&door, "allowed", PATIENT).await;
    assert_eq!((drained.gone, drained.left.len()), (2, 0), "{lines:?}");
}

#[tokio::test]
async fn a_budget_that_allows_none_is_named() {
    let Some((door, client)) = both("a_budget_that_allows_none_is_named").await else {
        return;
    };
    for (name, ready, kind) in [
        ("never", true, Kind::BudgetForbids),
        ("notyet", false, Kind::BudgetSpent),
    ] {
        namespace(&door, name).await;
        make(&door, node(name)).await;
        running(&door, &client, pod(name, "one", name), true).await;
        running(&door, &client, pod(name, "two", "elsewhere"), ready).await;
        let least = if ready { 2 } else { 1 };
        budget(&door, &client, name, least, least).await;
        let (drained, lines) = drain(&door, name, HASTY).await;
        let why = &drained.left[0].why;
        assert!(
            matches!(why, Why::Budget { budget, .. } if budget == "careful"),
            "{why:?}"
        );
        assert!(lines[0].contains("careful"), "{lines:?}");
        assert_eq!(lines.len(), 1, "what does not change is said once");
        let error = drained.into_result().unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
}

#[tokio::test]
async fn a_pod_that_does_not_end_says_why() {
    let Some((door, client)) = both("a_pod_that_does_not_end_says_why").await else {
        return;
    };
    namespace(&door, "stay").await;
    make(&door, node("stay")).await;
    let mut held = pod("stay", "held", "stay");
    held["metadata"]["finalizers"] = json!(["lab.test/hold"]);
    make(&door, held).await;
    let mut slow = pod("stay", "slow", "stay");
    slow["spec"]["terminationGracePeriodSeconds"] = json!(600);
    make(&door, slow).await;
    let (drained, _) = drain(&door, "stay", HASTY).await;
    let why: Vec<&Why> = drained.left.iter().map(|left| &left.why).collect();
    let hold = Why::Finalizers(vec!["lab.test/hold".to_owned()]);
    assert_eq!(why, [&hold, &Why::Ending(600)]);
    let error = drained.into_result().unwrap_err();
    assert_eq!(error.kind, Kind::PodHeld);
    assert!(error.what.contains("one pod more"), "{error}");
    let pods: Api<Pod> = Api::namespaced(client, "stay");
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    pods.patch("held", &PatchParams::default(), &free)
        .await
        .unwrap();
    let (drained, _) = drain(&door, "stay", HASTY).await;
    assert_eq!(drained.into_result().unwrap_err().kind, Kind::PodLingers);
}

#[tokio::test]
async fn who_can_do_nothing_says_so_soon() {
    let Some((door, client)) = both("who_can_do_nothing_says_so_soon").await else {
        return;
    };
    namespace(&door, "held").await;
    make(&door, node("held")).await;
    let mut held = pod("held", "held", "held");
    held["metadata"]["finalizers"] = json!(["lab.test/hold"]);
    make(&door, held).await;
    let how = Draining {
        cap: Duration::from_hours(1),
        patience: Duration::ZERO,
        ..HASTY
    };
    let (drained, _) = drain(&door, "held", how).await;
    assert_eq!(drained.into_result().unwrap_err().kind, Kind::PodHeld);
    // One that may still leave by itself is waited for.
    let mut slow = pod("held", "slow", "held");
    slow["spec"]["terminationGracePeriodSeconds"] = json!(600);
    make(&door, slow).await;
    let short = Draining {
        cap: Duration::from_secs(2),
        ..how
    };
    let (drained, lines) = drain(&door, "held", short).await;
    assert_eq!(drained.left.len(), 2, "{lines:?}");
    let pods: Api<Pod> = Api::namespaced(client, "held");
    let now = DeleteParams::default().grace_period(0);
    pods.delete("slow", &now).await.unwrap();
    let (drained, _) = drain(&door, "held", how).await;
    assert_eq!(drained.into_result().unwrap_err().kind, Kind::PodHeld);
}

#[tokio::test]
async fn a_drain_ends_when_it_is_told_to() {
    let Some((door, _)) = both("a_drain_ends_when_it_is_told_to").await else {
        return;
    };
    namespace(&door, "told").await;
    make(&door, node("told")).await;
    let mut held = pod("told", "held", "told");
    held["metadata"]["finalizers"] = json!(["lab.test/hold"]);
    make(&door, held).await;
    let (cx, cancel, lines) = context();
    let how = Draining {
        cap: Duration::from_hours(1),
        pause: Duration::from_hours(1),
        ..HASTY
    };
    let work = door.drain(&cx, "told", how);
    let end = async {
        until("the drain waits", async || !lines.all().is_empty()).await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(work, end);
    assert_eq!(ended.unwrap_err().kind, Kind::Cancelled);
    let (cx, cancel, _) = context();
    cancel.cancel();
    let ended = door.drain(&cx, "absent", HASTY).await;
    assert_eq!(ended.unwrap_err().kind, Kind::Cancelled);
    let (cx, _cancel, _) = context();
    let ended = door.drain(&cx, "absent", HASTY).await;
    assert_eq!(ended.unwrap_err().kind, Kind::NoNode);
}

#[tokio::test]
async fn a_policy_in_the_way_is_named() {
    let Some((door, _)) = both("a_policy_in_the_way_is_named").await else {
        return;
    };
    namespace(&door, "policed").await;
    make(&door, node("policed")).await;
    make(&door, pod("policed", "one", "policed")).await;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "nobody-leaves" },
        "spec": {
            "matchConstraints": {
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "policed" } },
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                    "resources": ["pods/eviction"],
                }],
            },
            "validations": [{ "expression": "false", "message": "not today" }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "nobody-leaves" },
        "spec": { "policyName": "nobody-leaves", "validationActions": ["Deny"] },
    });
    door.apply(&format!("{policy}\n---\n{binding}"))
        .await
        .unwrap();
    let mut tries = 0;
    let error = loop {
        // The API server hears of policies a moment later.
        match drain(&door, "policed", HASTY).await.0.into_result() {
            Err(error) => break error,
            Ok(()) => make(&door, pod("policed", "one", "policed")).await,
        }
        tries += 1;
        assert!(tries < 1000, "the policy was never followed");
    };
    assert_eq!(error.kind, Kind::Webhook, "{error}");
    assert!(
        error.what.contains("nobody-leaves") && error.what.contains("not today"),
        "{error}"
    );
}

#[tokio::test]
async fn two_budgets_for_one_pod_are_for_a_person() {
    let Some((door, client)) = both("two_budgets_for_one_pod_are_for_a_person").await else {
        return;
    };
    namespace(&door, "twice").await;
    make(&door, node("twice")).await;
    running(&door, &client, pod("twice", "one", "twice"), true).await;
    budget(&door, &client, "twice", 0, 1).await;
    make(
        &door,
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "namespace": "twice", "name": "another" },
            "spec": { "minAvailable": 0, "selector": { "matchLabels": { "app": "twice" } } },
        }),
    )
    .await;
    let error = drain(&door, "twice", HASTY)
        .await
        .0
        .into_result()
        .unwrap_err();
    assert_eq!(error.kind, Kind::BudgetForbids, "{error}");
}
