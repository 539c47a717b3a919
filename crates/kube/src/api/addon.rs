//! What a cluster remembers of its add-ons: in which version, what each was told, and of which
//! objects it is made, so that no more is taken away than was brought.
//!
//! Each has a `ConfigMap` of its own in `kube-system`. It is written before anything is brought,
//! with all that may be there then, and again when all of it is there.

use super::manifest::Reference;
use super::workload::Sort;
use super::{Door, MANAGER};
use crate::error::{Error, Kind};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume};
use kube_client::Api;
use kube_client::api::{DeleteParams, ListParams};
use model::addon::{AddonFact, AddonName};
use model::host::Fingerprint;
use serde_json::json;
use std::collections::BTreeMap;

/// Where they are kept.
const SYSTEM: &str = "kube-system";

/// The label by which they are found.
const LABEL: &str = "slipway.dev/addon";

/// The namespaces of Kubernetes itself, which belong to no add-on, whatever its text says.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// What is remembered of an add-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Which.
    pub name: AddonName,
    /// In which version.
    pub version: String,
    /// What it was told.
    pub told: Fingerprint,
    /// Whether all of it is there.
    pub whole: bool,
    /// All that may be there of it, in the order in which it was applied.
    pub objects: Vec<Reference>,
}

impl Memory {
    /// What runs pods, whose state is the add-on's.
    pub fn workloads(&self) -> impl Iterator<Item = (Sort, &str, &str)> {
        self.objects.iter().filter_map(|object| {
            let sort = match (object.api_version.as_str(), object.kind.as_str()) {
                ("apps/v1", "Deployment") => Sort::Deployment,
                ("apps/v1", "DaemonSet") => Sort::DaemonSet,
                ("apps/v1", "StatefulSet") => Sort::StatefulSet,
                _ => return None,
            };
            let namespace = object.namespace.as_deref().unwrap_or("default");
            Some((sort, namespace, object.name.as_str()))
        })
    }

    /// What belongs to it alone, and goes with it.
    pub fn own(&self) -> Vec<Reference> {
        let shared = |object: &&Reference| {
            let name = object.name.as_str();
            object.kind == "Namespace" && NAMESPACES.contains(&name)
        };
        let own = self.objects.iter().filter(|object| !shared(object));
        own.cloned().collect()
    }

    fn read(map: ConfigMap) -> Option<Self> {
        let data = map.data?;
        let text = |key: &str| data.get(key).map(String::as_str);
        let objects = text("objects")?.lines().filter_map(read);
        Some(Self {
            name: text("addon")?.parse().ok()?,
            version: text("version")?.to_owned(),
            told: text("told")?.parse().ok()?,
            whole: text("state") == Some("whole"),
            objects: objects.collect(),
        })
    }
}

/// The name under which an add-on is remembered.
fn called(name: AddonName) -> String {
    format!("slipway-addon-{name}")
}

/// An object on one line.
fn written(object: &Reference) -> String {
    let namespace = object.namespace.as_deref().unwrap_or("-");
    format!(
        "{} {} {namespace} {}",
        object.api_version, object.kind, object.name
    )
}

fn read(line: &str) -> Option<Reference> {
    let words: Vec<&str> = line.split(' ').collect();
    let [api_version, kind, namespace, name] = words.as_slice() else {
        return None;
    };
    Some(Reference {
        api_version: (*api_version).to_owned(),
        kind: (*kind).to_owned(),
        namespace: (*namespace != "-").then(|| (*namespace).to_owned()),
        name: (*name).to_owned(),
    })
}

impl Door {
    /// Every add-on that is remembered, in the order of their names.
    pub async fn addons(&self) -> Result<Vec<Memory>, Error> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), SYSTEM);
        let params = ListParams::default().labels(LABEL);
        let maps = self.ask("list add-ons", maps.list(&params)).await?;
        let mut all: Vec<_> = maps.items.into_iter().filter_map(Memory::read).collect();
        all.sort_by_key(|memory| memory.name);
        Ok(all)
    }

    /// Remembers an add-on.
    pub async fn remember(&self, memory: &Memory) -> Result<(), Error> {
        let objects: Vec<_> = memory.objects.iter().map(written).collect();
        let state = if memory.whole { "whole" } else { "half" };
        self.apply_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "namespace": SYSTEM, "name": called(memory.name),
                "labels": { LABEL: memory.name, "app.kubernetes.io/managed-by": MANAGER },
            },
            "data": {
                "addon": memory.name, "version": memory.version, "told": memory.told,
                "state": state, "objects": objects.join("\n"),
            },
        }))
        .await
    }

    /// Forgets an add-on that is gone.
    pub async fn forget(&self, name: AddonName) -> Result<(), Error> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), SYSTEM);
        let (called, params) = (called(name), DeleteParams::default());
        let what = format!("forget {name}");
        match self.ask(&what, maps.delete(&called, &params)).await {
            Err(error) if error.kind != Kind::Absent => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The volumes that this provisioner has made.
    pub async fn volumes_of(&self, provisioner: &str) -> Result<Vec<String>, Error> {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let params = ListParams::default();
        let asked = self.ask("list volumes", volumes.list(&params));
        let made = |volume: &PersistentVolume| {
            let csi = volume.spec.as_ref().and_then(|spec| spec.csi.as_ref());
            let by = volume.metadata.annotations.as_ref();
            let by = by.and_then(|all| all.get("pv.kubernetes.io/provisioned-by"));
            csi.is_some_and(|csi| csi.driver == provisioner)
                || by.is_some_and(|by| by == provisioner)
        };
        let all = asked.await?.items.into_iter().filter(made);
        Ok(all.filter_map(|volume| volume.metadata.name).collect())
    }

    /// How an add-on is: what of it runs pods must be there, and serve.
    pub async fn wellbeing_of(&self, memory: &Memory) -> Result<AddonFact, Error> {
        let (mut whole, mut wrong) = (memory.whole, Vec::new());
        for (sort, namespace, name) in memory.workloads() {
            match self.rollout(sort, namespace, name).await {
                Ok(state) if state.is_done() => {}
                Ok(state) => {
                    let (available, wanted) = (state.available, state.wanted);
                    let missing = if available < wanted {
                        format!("{available} of {wanted} pods serve")
                    } else {
                        "pods of an older version are left".to_owned()
                    };
                    wrong.push(format!("{sort} {namespace}/{name}: {missing}"));
                }
                Err(error) if error.kind == Kind::Absent => {
                    whole = false;
                    wrong.push(format!("{sort} {namespace}/{name} is gone"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(AddonFact {
            version: memory.version.clone(),
            told: memory.told.clone(),
            whole,
            wrong: (!wrong.is_empty()).then(|| wrong.join(", ")),
        })
    }

    /// How all add-ons are.
    pub async fn addons_seen(&self) -> Result<BTreeMap<AddonName, AddonFact>, Error> {
        let mut seen = BTreeMap::new();
        for memory in self.addons().await? {
            seen.insert(memory.name, self.wellbeing_of(&memory).await?);
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(api_version: &str, kind: &str, namespace: Option<&str>) -> Reference {
        Reference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: "kube-system".to_owned(),
        }
    }

    #[test]
    fn an_object_survives_being_remembered() {
        for object in [
            reference("v1", "Namespace", None),
            reference("apps/v1", "Deployment", Some("a")),
        ] {
            assert_eq!(read(&written(&object)), Some(object));
        }
        assert_eq!(read("v1 Namespace -"), None);
    }

    #[test]
    fn what_belongs_to_all_stays_and_what_runs_pods_is_looked_at() {
        let memory = Memory {
            name: AddonName::NodeExporter,
            version: "v1".to_owned(),
            told: Fingerprint::of_text("a"),
            whole: true,
            objects: vec![
                reference("v1", "Namespace", None),
                reference("apps/v1", "DaemonSet", Some("kube-system")),
                reference("example.com/v1", "Deployment", None),
            ],
        };
        assert_eq!(memory.own(), memory.objects[1..]);
        let runs: Vec<_> = memory.workloads().collect();
        assert_eq!(runs, [(Sort::DaemonSet, "kube-system", "kube-system")]);
        let older = reference("apps/v1beta1", "DaemonSet", Some("kube-system"));
        assert!(older.is_the_same(&memory.objects[1]) && !older.is_the_same(&memory.objects[0]));
    }
}
