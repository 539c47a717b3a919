//! Nodes: what is known of them, whether they take pods, and that they go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use kube_client::Api;
use kube_client::api::{DeleteParams, ListParams, Patch, Preconditions};
use model::id::MachineId;
use model::stray::marked;
use model::time::Timestamp;
use serde_json::{Map, Value, json};

use super::wish::GATED;
use super::{Door, patched};
use crate::error::{Error, Kind};

/// Labels by which somebody says that a node is not to be taken out of service.
pub const LOCKS: [&str; 2] = ["slipway.dev/upgrade-lock", "claudie.io/upgrade-lock"];

/// What Kubernetes taints a node with that is cordoned.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// What a node says that a machine is dead, so that its volumes and pods are let go.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// What kubeadm labels the nodes of the control plane with.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// How often a change is tried again that somebody else came before.
const TRIES: usize = 5;

/// What is known of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Which of all that had this name.
    pub uid: String,
    /// Whether its kubelet says that it is ready, and is heard.
    pub ready: bool,
    /// Since when it is not ready, as far as that is known; nothing while it is.
    pub unready_since: Option<Timestamp>,
    /// Whether it takes no new pods.
    pub cordoned: bool,
    /// Since when it takes none, as Kubernetes writes times, where that is known.
    pub cordoned_since: Option<String>,
    /// The version of its kubelet.
    pub kubelet: String,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// Its addresses by kind (`InternalIP`, `Hostname` …), in its order.
    pub addresses: Vec<(String, String)>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// What its provider calls it.
    pub provider_id: Option<String>,
}

/// One condition of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Of what, such as `Ready` or `DiskPressure`.
    pub of: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// What keeps pods away from a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// Its value; empty is none.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

impl Node {
    /// The label that locks the node, whatever its value is.
    pub fn lock(&self) -> Option<&'static str> {
        LOCKS
            .into_iter()
            .find(|lock| self.labels.contains_key(*lock))
    }

    /// The machine that it was made for, where it bears our mark.
    pub fn machine(&self) -> Option<MachineId> {
        marked(self.provider_id.as_deref()?)
    }

    /// Whether it is one of the control plane.
    pub fn is_control(&self) -> bool {
        self.labels.contains_key(CONTROL_PLANE)
    }

    /// Whether it takes no pods because its gates have not let it pass yet. Who lets it take some by
    /// hand has let it pass.
    pub fn gated(&self) -> bool {
        self.cordoned && self.annotations.contains_key(GATED)
    }
}

impl From<core::Node> for Node {
    fn from(node: core::Node) -> Self {
        let spec = node.spec.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        let told = status.conditions.iter().flatten();
        let ready = told.clone().find(|condition| condition.type_ == "Ready");
        let is_ready = ready.is_some_and(|condition| condition.status == "True");
        let since = ready.and_then(|condition| condition.last_transition_time.as_ref());
        // One that was never heard is silent since it is there.
        let since = since.or(node.metadata.creation_timestamp.as_ref());
        let since = since.map(|time| Timestamp::from_millis(time.0.as_millisecond()));
        let since = since.unwrap_or(Timestamp::from_millis(0));
        let conditions: Vec<Condition> = status
            .conditions
            .unwrap_or_default()
            .into_iter()
            .map(|condition| Condition {
                of: condition.type_,
                status: condition.status,
                reason: condition.reason.unwrap_or_default(),
                message: condition.message.unwrap_or_default(),
            })
            .collect();
        let taints = spec.taints.unwrap_or_default();
        let cordoned_since = taints
            .iter()
            .find(|taint| taint.key == UNSCHEDULABLE)
            .and_then(|taint| taint.time_added.as_ref())
            .map(|time| time.0.to_string());
        Self {
            name: node.metadata.name.unwrap_or_default(),
            uid: node.metadata.uid.unwrap_or_default(),
            ready: is_ready,
            unready_since: (!is_ready).then_some(since),
            cordoned: spec.unschedulable == Some(true),
            cordoned_since,
            kubelet: status
                .node_info
                .map(|info| info.kubelet_version)
                .unwrap_or_default(),
            conditions,
            addresses: status
                .addresses
                .unwrap_or_default()
                .into_iter()
                .map(|address| (address.type_, address.address))
                .collect(),
            labels: node.metadata.labels.unwrap_or_default(),
            annotations: node.metadata.annotations.unwrap_or_default(),
            taints: taints.into_iter().map(Taint::from).collect(),
            provider_id: spec.provider_id.filter(|id| !id.is_empty()),
        }
    }
}

impl From<core::Taint> for Taint {
    fn from(taint: core::Taint) -> Self {
        Self {
            key: taint.key,
            value: taint.value.unwrap_or_default(),
            effect: taint.effect,
        }
    }
}

impl Door {
    /// All nodes, by name.
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let list = self
            .ask("list nodes", self.all_nodes().list(&ListParams::default()))
            .await?;
        let mut nodes: Vec<Node> = list.items.into_iter().map(Node::from).collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(nodes)
    }

    /// One node; that it is not there is an error.
    pub async fn node(&self, name: &str) -> Result<Node, Error> {
        self.raw_node(name).await.map(Node::from)
    }

    /// Lets the node take no new pods.
    pub async fn cordon(&self, name: &str) -> Result<(), Error> {
        self.schedulable(name, "cordon", true).await
    }

    /// Lets the node take pods again, or for the first time.
    pub async fn uncordon(&self, name: &str) -> Result<(), Error> {
        self.schedulable(name, "uncordon", false).await
    }

    /// Forgets that the node has gates to pass since it came: it has served.
    pub async fn forget_gates(&self, name: &str) -> Result<(), Error> {
        let what = format!("change the annotation {GATED} of node {name}");
        self.change_node(name, &what, |node| {
            let annotations = node.metadata.annotations.as_mut();
            annotations.and_then(|annotations| annotations.remove(GATED));
            Ok(())
        })
        .await
    }

    /// Removes the node and all that is known of it; one that is gone already is fine.
    ///
    /// Given which of that name is meant, one that came later is not touched.
    pub async fn delete_node(&self, name: &str, uid: Option<&str>) -> Result<(), Error> {
        let params = DeleteParams {
            preconditions: uid.map(|uid| Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let asked = self
            .ask(
                &format!("delete node {name}"),
                self.all_nodes().delete(name, &params),
            )
            .await;
        match asked {
            Ok(_) => Ok(()),
            Err(error) if error.kind == Kind::Absent => Ok(()),
            Err(error) if error.kind == Kind::Conflict && uid.is_some() => {
                // Another node of the same name: the one that was meant is gone.
                match self.node(name).await {
                    Ok(node) if Some(node.uid.as_str()) == uid => Err(error),
                    Ok(_) => Ok(()),
                    Err(error) if error.kind == Kind::NoNode => Ok(()),
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses if somebody locked the node. That we cannot look is a refusal, too.
    pub async fn refuse_locked(&self, name: &str) -> Result<(), Error> {
        let node = self.node(name).await?;
        let Some(lock) = node.lock() else {
            return Ok(());
        };
        let value = node
            .labels
            .get(lock)
            .map(String::as_str)
            .unwrap_or_default();
        Err(Error::new(
            Kind::Locked,
            format!(
                "may not take node {name} out of service, its label {lock} is set (to {value:?})"
            ),
        ))
    }

    /// Says that the machine of a node is dead, so that its pods and volumes are let go; or that
    /// it lives.
    ///
    /// Nobody may say so of a machine that could still run: two would write to one volume.
    pub async fn out_of_service(&self, name: &str, dead: bool) -> Result<(), Error> {
        let what = format!("taint node {name} as out of service");
        self.change_node(name, &what, |node| {
            let taints = node.spec.get_or_insert_default().taints.take();
            let mut taints = taints.unwrap_or_default();
            let said = taints.iter().any(is_out_of_service);
            if !dead {
                taints.retain(|taint| !is_out_of_service(taint));
            } else if !said {
                taints.push(core::Taint {
                    effect: "NoExecute".to_owned(),
                    key: OUT_OF_SERVICE.to_owned(),
                    time_added: None,
                    value: Some("nodeshutdown".to_owned()),
                });
            }
            node.spec.get_or_insert_default().taints = Some(taints).filter(|all| !all.is_empty());
            Ok(())
        })
        .await
    }

    /// Reads a node, changes it and writes it back unless somebody else wrote in between; then
    /// all is done again. What is as it should be is not written.
    pub(super) async fn change_node(
        &self,
        name: &str,
        what: &str,
        change: impl Fn(&mut core::Node) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let old = self.raw_node(name).await?;
            let mut new = old.clone();
            change(&mut new)?;
            let Some(patch) = difference(&old, &new) else {
                return Ok(());
            };
            let asked = self
                .ask(what, async {
                    let nodes = self.all_nodes();
                    nodes.patch(name, &patched(), &Patch::Merge(patch)).await
                })
                .await;
            tries += 1;
            match asked {
                Err(error) if error.kind == Kind::Conflict && tries < TRIES => {}
                other => return other.map(|_| ()).map_err(|error| no_node(error, name)),
            }
        }
    }

    pub(super) fn all_nodes(&self) -> Api<core::Node> {
        Api::all(self.client.clone())
    }

    async fn raw_node(&self, name: &str) -> Result<core::Node, Error> {
        self.ask(&format!("look at node {name}"), self.all_nodes().get(name))
            .await
            .map_err(|error| no_node(error, name))
    }

    async fn schedulable(&self, name: &str, verb: &str, cordoned: bool) -> Result<(), Error> {
        let mut patch = json!({ "spec": { "unschedulable": cordoned.then_some(true) } });
        if !cordoned {
            // At once: half of it would leave a node of which nobody knows whose it is to serve.
            patch["metadata"] = json!({ "annotations": { GATED: null } });
        }
        let patch = Patch::Merge(patch);
        self.ask(
            &format!("{verb} node {name}"),
            self.all_nodes().patch(name, &patched(), &patch),
        )
        .await
        .map(|_| ())
        .map_err(|error| no_node(error, name))
    }
}

/// Whether the taint says that a machine is dead.
fn is_out_of_service(taint: &core::Taint) -> bool {
    taint.key == OUT_OF_SERVICE && taint.effect == "NoExecute"
}

/// What turns the old version of a node into the new one, where we may write; nothing if nothing
/// differs.
///
/// The whole node is never written: a newer API server knows fields that our types do not.
fn difference(old: &core::Node, new: &core::Node) -> Option<Value> {
    let mut metadata = Map::new();
    let mut spec = Map::new();
    let labels = changes(old.metadata.labels.as_ref(), new.metadata.labels.as_ref());
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    let notes = (&old.metadata.annotations, &new.metadata.annotations);
    let notes = changes(notes.0.as_ref(), notes.1.as_ref());
    if !notes.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(notes));
    }
    let taints = |node: &core::Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
    if taints(old) != taints(new) {
        spec.insert("taints".to_owned(), json!(taints(new)));
    }
    let provider = |node: &core::Node| node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    if provider(old) != provider(new) {
        spec.insert("providerID".to_owned(), json!(provider(new)));
    }
    let closed = |node: &core::Node| node.spec.as_ref().and_then(|spec| spec.unschedulable);
    if closed(old) != closed(new) {
        spec.insert("unschedulable".to_owned(), json!(closed(new)));
    }
    if metadata.is_empty() && spec.is_empty() {
        return None;
    }
    // Without it, taints that somebody else set since would be lost.
    metadata.insert(
        "resourceVersion".to_owned(),
        json!(old.metadata.resource_version),
    );
    Some(json!({ "metadata": metadata, "spec": spec }))
}

/// What differs between two maps, as a merge patch says it.
fn changes(
    old: Option<&BTreeMap<String, String>>,
    new: Option<&BTreeMap<String, String>>,
) -> Map<String, Value> {
    let empty = BTreeMap::new();
    let (old, new) = (old.unwrap_or(&empty), new.unwrap_or(&empty));
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    let set = new
        .iter()
        .filter(|(key, value)| old.get(*key) != Some(value));
    gone.map(|key| (key.clone(), Value::Null))
        .chain(set.map(|(key, value)| (key.clone(), json!(value))))
        .collect()
}

/// A node that is not there, said so.
fn no_node(error: Error, name: &str) -> Error {
    if error.kind == Kind::Absent {
        return Error::new(
            Kind::NoNode,
            format!("could not find node {name}, the cluster has none of that name"),
        );
    }
    error
}
