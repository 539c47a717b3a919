//! Objects that are applied and taken away, and what is seen of what runs.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret as Kept};
use kube::api::workload::Sort;
use kube::error::Kind;
use kube_client::Api;
use kube_client::api::{Patch, PatchParams};
use model::secret::Secret;
use serde_json::json;

use crate::world::{both, context, ready};

const ADD_ON: &str = r#"
apiVersion: lab.test/v1
kind: Thing
metadata:
  name: first
  namespace: addon
spec: { size: 0644 }
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: { name: listed, namespace: addon }
  data: { answer: "yes" }
---
# nothing but a comment
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: things.lab.test }
spec:
  group: lab.test
  scope: Namespaced
  names: { plural: things, singular: thing, kind: Thing }
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: { type: integer }
---
apiVersion: v1
kind: Namespace
metadata: { name: addon }
"#;

#[tokio::test]
async fn a_text_of_objects_is_applied_in_the_right_order() {
    let Some((door, client)) = both("a_text_of_objects_is_applied_in_the_right_order").await else {
        return;
    };
    let applied = door.apply(ADD_ON).await.unwrap();
    let kinds: Vec<&str> = applied.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "CustomResourceDefinition",
            "Thing",
            "ConfigMap"
        ]
    );
    let maps: Api<ConfigMap> = Api::namespaced(client, "addon");
    let first = maps.get("listed").await.unwrap();
    assert_eq!(first.data.as_ref().unwrap()["answer"], "yes");
    door.apply(ADD_ON).await.unwrap();
    let second = maps.get("listed").await.unwrap();
    assert_eq!(
        first.metadata.resource_version,
        second.metadata.resource_version
    );
    let manager = second.metadata.managed_fields.unwrap()[0].manager.clone();
    assert_eq!(manager.as_deref(), Some("slipway"));
    door.remove(ADD_ON).await.unwrap();
    assert!(maps.get_opt("listed").await.unwrap().is_none());
    door.remove(ADD_ON).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_applied_is_told_apart() {
    let Some(door) = ready("what_cannot_be_applied_is_told_apart").await else {
        return;
    };
    for (text, kind) in [
        ("{", Kind::BadObjects),
        ("kind: ConfigMap", Kind::BadObjects),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {}",
            Kind::BadObjects,
        ),
        (
            "apiVersion: v1\nkind: Nothing\nmetadata: { name: a }",
            Kind::UnknownKind,
        ),
        (
            "apiVersion: no.such/v1\nkind: Nothing\nmetadata: { name: a }",
            Kind::UnknownKind,
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: Not_A_Name }",
            Kind::Rejected,
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a, namespace: nowhere }",
            Kind::Absent,
        ),
    ] {
        let error = door.apply(text).await.unwrap_err();
        assert_eq!(error.kind, kind, "{text}: {error}");
    }
}

#[tokio::test]
async fn values_are_kept_and_never_quoted() {
    let Some((door, client)) = both("values_are_kept_and_never_quoted").await else {
        return;
    };
    let entries = BTreeMap::from([("token".to_owned(), Secret::from_text("hush".to_owned()))]);
    for _ in 0..2 {
        door.apply_secret("default", "kept", "Opaque", &entries)
            .await
            .unwrap();
    }
    let secrets: Api<Kept> = Api::namespaced(client.clone(), "default");
    let kept = secrets.get("kept").await.unwrap();
    assert_eq!(kept.data.unwrap()["token"].0, b"hush");
    let error = door
        .apply_secret("default", "kept", "kubernetes.io/tls", &entries)
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert!(error.what.contains("left out"), "{error}");
    let entries = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
    door.apply_config_map("default", "plain", &entries)
        .await
        .unwrap();
    door.apply_config_map("default", "plain", &BTreeMap::new())
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    assert_eq!(
        maps.get("plain").await.unwrap().data.unwrap_or_default(),
        BTreeMap::new()
    );
}

#[tokio::test]
async fn an_endpoint_is_written_down_once() {
    let Some((door, client)) = both("an_endpoint_is_written_down_once").await else {
        return;
    };
    let error = door.point_kubeadm("api.test:6443", &[]).await.unwrap_err();
    assert_eq!(error.kind, Kind::Absent);
    let info = "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    certificate-authority-data: AAAA\n    server: https://10.0.0.1:6443\n  name: \"\"\n";
    let config = "apiServer:\n  timeoutForControlPlane: 4m0s\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.4\nnetworking:\n  podSubnet: \"10.244.0.0/16\"\n";
    door.apply(&format!(
        "{}\n---\n{}\n---\n{}",
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "kube-public" } }),
        json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": "kube-public", "name": "cluster-info" },
            "data": { "kubeconfig": info } }),
        json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": "kube-system", "name": "kubeadm-config" },
            "data": { "ClusterConfiguration": config } }),
    ))
    .await
    .unwrap();
    let names = ["api.test".to_owned(), "10.0.0.2".to_owned()];
    for new in [true, false] {
        let server = "https://api.test:6443";
        assert_eq!(door.point_cluster_info(server).await.unwrap(), new);
        assert_eq!(
            door.point_kubeadm("api.test:6443", &names).await.unwrap(),
            new
        );
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-public");
    let info = maps.get("cluster-info").await.unwrap().data.unwrap();
    assert!(
        info["kubeconfig"].contains("server: https://api.test:6443"),
        "{info:?}"
    );
    assert!(info["kubeconfig"].contains("certificate-authority-data: AAAA"));
    let maps: Api<ConfigMap> = Api::namespaced(client, "kube-system");
    let config = maps.get("kubeadm-config").await.unwrap().data.unwrap();
    let config = &config["ClusterConfiguration"];
    for part in [
        "controlPlaneEndpoint: api.test:6443",
        "10.0.0.2",
        "4m0s",
        "10.244.0.0/16",
    ] {
        assert!(config.contains(part), "{config}");
    }
    assert!(door.point_kubeadm("api.test:6443", &[]).await.unwrap());
}

fn workload(kind: &str, name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "namespace": "default", "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "lab.test/none" }] },
            },
        },
    })
}

#[tokio::test]
async fn what_was_rolled_out_serves_in_its_newest_version() {
    let Some((door, client)) = both("what_was_rolled_out_serves_in_its_newest_version").await
    else {
        return;
    };
    door.apply(&workload("Deployment", "web").to_string())
        .await
        .unwrap();
    let state = door
        .rollout(Sort::Deployment, "default", "web")
        .await
        .unwrap();
    assert!(!state.is_done() && !state.seen, "{state:?}");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let says = |status| Patch::Merge(json!({ "status": status }));
    let params = PatchParams::default();
    let old = says(
        json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1 }),
    );
    deployments
        .patch_status("web", &params, &old)
        .await
        .unwrap();
    let state = door
        .rollout(Sort::Deployment, "default", "web")
        .await
        .unwrap();
    assert!(
        !state.is_done(),
        "one of an older version is left: {state:?}"
    );
    let done = says(json!({ "replicas": 1 }));
    deployments
        .patch_status("web", &params, &done)
        .await
        .unwrap();
    let (cx, _cancel, _) = context();
    let cap = Duration::from_secs(30);
    door.await_rollout(&cx, Sort::Deployment, "default", "web", cap)
        .await
        .unwrap();
    door.apply(&workload("DaemonSet", "agent").to_string())
        .await
        .unwrap();
    let daemons: Api<DaemonSet> = Api::namespaced(client, "default");
    let some = says(
        json!({ "observedGeneration": 1, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 1, "numberMisscheduled": 0, "updatedNumberScheduled": 2, "numberAvailable": 1 }),
    );
    daemons.patch_status("agent", &params, &some).await.unwrap();
    let late = door
        .await_rollout(&cx, Sort::DaemonSet, "default", "agent", Duration::ZERO)
        .await;
    assert_eq!(late.unwrap_err().kind, Kind::NotReady);
    let state = door.rollout(Sort::StatefulSet, "default", "absent").await;
    assert_eq!(state.unwrap_err().kind, Kind::Absent);
}

#[tokio::test]
async fn an_image_that_cannot_be_had_is_named() {
    let Some((door, client)) = both("an_image_that_cannot_be_had_is_named").await else {
        return;
    };
    door.apply(&workload("Deployment", "lacking").to_string())
        .await
        .unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "default", "name": "lacking-1", "labels": { "app": "lacking" } },
        "spec": { "nodeName": "nowhere", "containers": [{ "name": "main", "image": "lab.test/none" }] },
    });
    door.apply(&pod.to_string()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let status = Patch::Merge(json!({ "status": { "containerStatuses": [{
        "name": "main", "image": "lab.test/none", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "ImagePullBackOff", "message": "no such host" } },
    }] } }));
    pods.patch_status("lacking-1", &PatchParams::default(), &status)
        .await
        .unwrap();
    let seen = door.pods(Some("default"), "app=lacking").await.unwrap();
    assert_eq!(seen.len(), 1);
    assert!(
        !seen[0].ready && seen[0].lacks_image().is_some(),
        "{seen:?}"
    );
    let (cx, _cancel, _) = context();
    let late = door
        .await_rollout(&cx, Sort::Deployment, "default", "lacking", Duration::ZERO)
        .await;
    let error = late.unwrap_err();
    assert_eq!(error.kind, Kind::NoImage);
    assert!(error.what.contains("lab.test/none"), "{error}");
}
