//! What a node should carry: labels, annotations, taints and the name its provider gave it.
//!
//! Others put labels and taints on nodes, too. What we put there is remembered in one annotation
//! of the node itself, and only that is ever taken away again.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as core;
use model::host::Fingerprint;
use serde::{Deserialize, Serialize};

use super::Door;
use super::carried::{CARE, memory};
use super::node::{Node, Taint};
use crate::error::{Error, Kind};

/// The annotation that remembers what of a node is ours.
pub const OURS: &str = "slipway.dev/ours";

/// The taint with which nodes come, so that they take no pods before they carry what they should.
pub const COMING: &str = "slipway.dev/coming";

/// The annotation of a node that came in place of another and takes no pods before its gates have let
/// it pass. Without it nobody could tell such a node from one that somebody cordoned.
pub const GATED: &str = "slipway.dev/gated";

/// What a node should carry; what others put there stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// Labels, with their values.
    pub labels: BTreeMap<String, String>,
    /// Annotations, with their values.
    pub annotations: BTreeMap<String, String>,
    /// Taints; one per key and effect.
    pub taints: Vec<Taint>,
    /// What the provider calls the machine; it can be said once.
    pub provider_id: Option<String>,
    /// What the node remembers of having been told all this.
    pub told: Option<Fingerprint>,
    /// Whether it takes no pods until its gates have let it pass; else that stays as it is.
    pub gated: bool,
}

/// What of a node is ours, as it is remembered.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ours {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    labels: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    annotations: BTreeSet<String>,
    /// `KEY:EFFECT` each.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    taints: BTreeSet<String>,
}

impl Door {
    /// Brings a node to what is wished; a second time changes nothing.
    pub async fn bring_node(&self, name: &str, wish: &Wish) -> Result<(), Error> {
        let what = format!("label and taint node {name}");
        self.change_node(name, &what, |node| bring(node, wish))
            .await
    }
}

/// Changes a node to what is wished.
fn bring(node: &mut core::Node, wish: &Wish) -> Result<(), Error> {
    let annotations = node.metadata.annotations.get_or_insert_default();
    let mut ours = annotations
        .remove(OURS)
        // Somebody who broke our memory cannot make us remove what may be theirs.
        .and_then(|text| serde_json::from_str::<Ours>(&text).ok())
        .unwrap_or_default();
    ours.annotations.remove(OURS);
    annotations.remove(CARE);
    merge(annotations, &wish.annotations, &mut ours.annotations);
    let labels = node.metadata.labels.get_or_insert_default();
    merge(labels, &wish.labels, &mut ours.labels);
    let spec = node.spec.get_or_insert_default();
    let taints = spec.taints.get_or_insert_default();
    merge_taints(taints, &wish.taints, &mut ours.taints);
    taints.retain(|taint| taint.key != COMING);
    if wish.gated {
        spec.unschedulable = Some(true);
        annotations.insert(GATED.to_owned(), "true".to_owned());
    }
    name_provider(spec, wish, node.metadata.name.as_deref())?;
    if spec.taints.as_ref().is_some_and(Vec::is_empty) {
        spec.taints = None;
    }
    if ours != Ours::default() {
        let text = serde_json::to_string(&ours).map_err(unwritten)?;
        node.metadata
            .annotations
            .get_or_insert_default()
            .insert(OURS.to_owned(), text);
    }
    if let Some(told) = &wish.told {
        let text = memory(&Node::from(node.clone()), wish, told).map_err(unwritten)?;
        let annotations = node.metadata.annotations.get_or_insert_default();
        annotations.insert(CARE.to_owned(), text);
    }
    node.metadata.annotations = node
        .metadata
        .annotations
        .take()
        .filter(|all| !all.is_empty());
    node.metadata.labels = node.metadata.labels.take().filter(|all| !all.is_empty());
    Ok(())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are handed over by whoever has them"
)]
fn unwritten(error: serde_json::Error) -> Error {
    let what = format!("could not write down what a node was told: {error}");
    Error::new(Kind::Garbage, what)
}

/// Sets what is wished, removes what was ours and is not wished any more.
fn merge(
    have: &mut BTreeMap<String, String>,
    wish: &BTreeMap<String, String>,
    ours: &mut BTreeSet<String>,
) {
    for gone in ours.iter().filter(|key| !wish.contains_key(*key)) {
        have.remove(gone);
    }
    ours.retain(|key| wish.contains_key(key));
    for (key, value) in wish {
        if have.get(key) != Some(value) {
            have.insert(key.clone(), value.clone());
            ours.insert(key.clone());
        }
    }
}

/// The same for taints, of which a node has one per key and effect.
fn merge_taints(have: &mut Vec<core::Taint>, wish: &[Taint], ours: &mut BTreeSet<String>) {
    let wished = |id: &str| {
        wish.iter()
            .any(|taint| id == identity(&taint.key, &taint.effect))
    };
    have.retain(|taint| {
        let id = identity(&taint.key, &taint.effect);
        !ours.contains(&id) || wished(&id)
    });
    ours.retain(|id| wished(id));
    for taint in wish {
        let value = Some(taint.value.clone()).filter(|value| !value.is_empty());
        let found = have
            .iter_mut()
            .find(|other| other.key == taint.key && other.effect == taint.effect);
        match found {
            Some(found) if found.value.as_deref().unwrap_or_default() == taint.value => continue,
            Some(found) => found.value = value,
            None => have.push(core::Taint {
                effect: taint.effect.clone(),
                key: taint.key.clone(),
                time_added: None,
                value,
            }),
        }
        ours.insert(identity(&taint.key, &taint.effect));
    }
}

/// What one taint of a node differs by from its others.
fn identity(key: &str, effect: &str) -> String {
    format!("{key}:{effect}")
}

/// Says what the provider calls the machine, unless somebody said so already.
fn name_provider(spec: &mut core::NodeSpec, wish: &Wish, node: Option<&str>) -> Result<(), Error> {
    let Some(wished) = &wish.provider_id else {
        return Ok(());
    };
    match spec.provider_id.as_deref().filter(|id| !id.is_empty()) {
        Some(has) if has != wished => Err(Error::new(
            Kind::Rejected,
            format!(
                "cannot give node {} the providerID {wished}, it has {has} and cannot change it",
                node.unwrap_or_default()
            ),
        )),
        _ => {
            spec.provider_id = Some(wished.clone());
            Ok(())
        }
    }
}
