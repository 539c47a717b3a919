//! What a node was told to carry, and whether it still does.
//!
//! One annotation remembers the fingerprint of what it was told, which keys that had, and the
//! fingerprint of what they held: whoever looks at the node needs to know no more.

use std::collections::{BTreeMap, BTreeSet};

use model::host::Fingerprint;
use serde::{Deserialize, Serialize};

use super::node::{Node, Taint};
use super::wish::{COMING, Wish};

/// The annotation that remembers what a node was told.
pub const CARE: &str = "slipway.dev/care";

#[derive(Serialize, Deserialize)]
struct Memory {
    told: Fingerprint,
    carried: Fingerprint,
    #[serde(flatten)]
    keys: Keys,
}

/// What was told, without values.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Keys {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    labels: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    annotations: BTreeSet<String>,
    /// Key and effect of each.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    taints: BTreeSet<(String, String)>,
}

impl Keys {
    /// What a node has of them.
    fn held(&self, node: &Node) -> Fingerprint {
        fn some<'a>(
            all: &'a BTreeMap<String, String>,
            keys: &BTreeSet<String>,
        ) -> BTreeMap<&'a String, &'a String> {
            all.iter().filter(|(key, _)| keys.contains(*key)).collect()
        }
        let ours = |taint: &&Taint| {
            let id = (taint.key.clone(), taint.effect.clone());
            self.taints.contains(&id)
        };
        let taints = node.taints.iter().filter(ours);
        let taints: BTreeSet<_> = taints
            .map(|taint| (&taint.key, &taint.effect, &taint.value))
            .collect();
        let labels = some(&node.labels, &self.labels);
        let annotations = some(&node.annotations, &self.annotations);
        Fingerprint::of(&(labels, annotations, taints))
    }
}

impl Node {
    /// What it was last told to carry; nothing where it does not carry that any more.
    pub fn care(&self) -> Option<Fingerprint> {
        let memory: Memory = serde_json::from_str(self.annotations.get(CARE)?).ok()?;
        let comes = self.taints.iter().any(|taint| taint.key == COMING);
        (!comes && memory.keys.held(self) == memory.carried).then_some(memory.told)
    }
}

/// What is remembered of a wish that a node fulfils.
pub(super) fn memory(
    node: &Node,
    wish: &Wish,
    told: &Fingerprint,
) -> Result<String, serde_json::Error> {
    let taints = wish.taints.iter();
    let keys = Keys {
        labels: wish.labels.keys().cloned().collect(),
        annotations: wish.annotations.keys().cloned().collect(),
        taints: taints
            .map(|taint| (taint.key.clone(), taint.effect.clone()))
            .collect(),
    };
    serde_json::to_string(&Memory {
        told: told.clone(),
        carried: keys.held(node),
        keys,
    })
}
