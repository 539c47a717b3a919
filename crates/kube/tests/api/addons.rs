//! Add-ons in a real API: what we write is what it accepts, and what is remembered is enough to
//! change an add-on and to take it away.

use crate::world::{both, ready};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume};
use kube::addons::own;
use kube::api::addon::Memory;
use kube::api::manifest::Objects;
use kube_client::Api;
use model::addon::{Addon, AddonName, Named};
use serde_json::json;
use std::collections::BTreeMap;

fn addon(name: AddonName, values: &[(&str, &str)]) -> Addon {
    let values = values.iter();
    let values = values.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let named = Named {
        name,
        version: None,
        values: values.collect::<BTreeMap<_, _>>(),
    };
    named.decided("v1.34.4".parse().unwrap())
}

#[tokio::test]
async fn whatever_we_write_is_accepted() {
    let Some(door) = ready("whatever_we_write_is_accepted").await else {
        return;
    };
    for (name, values) in [
        (AddonName::KubeStateMetrics, &[][..]),
        (AddonName::LocalPath, &[("default", "false")]),
        (AddonName::MetricsServer, &[("replicas", "2")]),
        (AddonName::Prometheus, &[("storage", "1Gi")]),
    ] {
        let objects = Objects::read(&own(&addon(name, values)).unwrap()).unwrap();
        let first = door.apply_all(&objects).await;
        let second = door.apply_all(&objects).await;
        // What is left would be in the way of others who ask this API.
        let removed = door.prune(&objects.references(), &[]).await;
        assert_eq!(first.unwrap(), second.unwrap(), "{name}");
        removed.unwrap();
    }
}

#[tokio::test]
async fn an_add_on_is_remembered_with_all_that_it_brought() {
    let test = "an_add_on_is_remembered_with_all_that_it_brought";
    let Some((door, client)) = both(test).await else {
        return;
    };
    let wished = addon(AddonName::NodeExporter, &[]);
    let objects = Objects::read(&own(&wished).unwrap()).unwrap();
    let applied = door.apply_all(&objects).await.unwrap();
    let mut memory = Memory {
        name: wished.name,
        version: wished.version.clone(),
        told: wished.fingerprint(),
        whole: true,
        objects: applied.clone(),
    };
    door.remember(&memory).await.unwrap();
    let ours = |all: Vec<Memory>| all.into_iter().find(|one| one.name == wished.name);
    let known = ours(door.addons().await.unwrap());
    assert_eq!(known.as_ref(), Some(&memory));
    // Nobody runs pods here: where there is no node none is missing.
    let fact = door.wellbeing_of(&memory).await.unwrap();
    assert!(fact.is(&wished), "{fact:?}");

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let more = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "of-an-older-version", "namespace": "kube-system" } });
    let older = door.apply(&more.to_string()).await.unwrap();
    memory.objects = [applied.clone(), older].concat();
    memory.whole = false;
    door.remember(&memory).await.unwrap();
    let known = ours(door.addons().await.unwrap()).unwrap();
    assert!(!known.whole && known.objects.len() == applied.len() + 1);
    door.prune(&known.own(), &applied).await.unwrap();
    assert!(maps.get_opt("of-an-older-version").await.unwrap().is_none());
    assert_eq!(door.still_there(&known.objects).await.unwrap(), applied);

    door.prune(&applied, &[]).await.unwrap();
    let fact = door.wellbeing_of(&known).await.unwrap();
    let wrong = fact.wrong.unwrap();
    assert_eq!(wrong, "DaemonSet kube-system/node-exporter is gone");
    assert_eq!(door.still_there(&applied).await.unwrap(), []);
    door.forget(wished.name).await.unwrap();
    door.forget(wished.name).await.unwrap();
    assert_eq!(ours(door.addons().await.unwrap()), None);
}

#[tokio::test]
async fn volumes_are_told_by_who_made_them() {
    let Some((door, client)) = both("volumes_are_told_by_who_made_them").await else {
        return;
    };
    let volume = |name: &str, annotations: serde_json::Value, source: serde_json::Value| {
        let mut spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain" });
        spec.as_object_mut()
            .unwrap()
            .extend(source.as_object().unwrap().clone());
        json!({ "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": { "name": name, "annotations": annotations }, "spec": spec })
    };
    let local = volume(
        "volumes-local",
        json!({ "pv.kubernetes.io/provisioned-by": "lab.test/local" }),
        json!({ "hostPath": { "path": "/srv" } }),
    );
    let csi = volume(
        "volumes-csi",
        json!({}),
        json!({ "csi": { "driver": "csi.lab.test", "volumeHandle": "a" } }),
    );
    let all = json!({ "apiVersion": "v1", "kind": "List", "items": [local, csi] }).to_string();
    door.apply(&all).await.unwrap();
    assert_eq!(
        door.volumes_of("lab.test/local").await.unwrap(),
        ["volumes-local"]
    );
    assert_eq!(
        door.volumes_of("csi.lab.test").await.unwrap(),
        ["volumes-csi"]
    );
    assert_eq!(door.volumes_of("nobody").await.unwrap(), [""; 0]);
    let volumes: Api<PersistentVolume> = Api::all(client);
    let bare = json!({ "metadata": { "finalizers": null } });
    for name in ["volumes-local", "volumes-csi"] {
        let patch = kube_client::api::Patch::Merge(&bare);
        volumes
            .patch(name, &kube_client::api::PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    door.remove(&all).await.unwrap();
}
