//! What a node carries and where it finds the API: labels, annotations, taints and addresses.
//!
//! What a manifest gives to the nodes of a pool are [`Marks`]; with what all nodes carry, and with
//! the way to the API, they are the [`Care`] that a node is told. Wish and sight are compared by
//! [`Fingerprint`].

use crate::host::Fingerprint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// What all nodes carry that are ours: their pool.
pub const POOL: &str = "slipway.dev/nodepool";

/// The kind of provider that lends the machine.
pub const PROVIDER: &str = "slipway.dev/provider";

/// The account by which it does, as the manifest calls it.
pub const INSTANCE: &str = "slipway.dev/provider-instance";

/// What the machine does: `control` or `compute`.
pub const NODE_TYPE: &str = "slipway.dev/node-type";

/// The region of the machine, where Kubernetes looks for it.
pub const REGION: &str = "topology.kubernetes.io/region";

/// The zone of the machine, where Kubernetes looks for it.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// What the nodes of a pool are marked with, besides what all are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// Labels, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Taints, in the order of their keys and effects; one for each of these pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// What keeps pods away that do not tolerate it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// What it does to pods.
    pub effect: TaintEffect,
    /// Its value; empty is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaintEffect {
    /// They do not come.
    NoSchedule,
    /// They come only where there is no better place.
    PreferNoSchedule,
    /// They do not come, and those that are there go.
    NoExecute,
}

/// What a node is told: what it carries, and where it finds the API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Care {
    /// What it carries.
    #[serde(flatten)]
    pub marks: Marks,
    /// Where it finds the API, in the order in which it tries; nowhere where it has its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api: Vec<Ipv4Addr>,
}

/// A care as documents have it. What is flattened cannot refuse what it does not know, so its
/// fields are named once more.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Stored {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    taints: Vec<Taint>,
    api: Vec<Ipv4Addr>,
}

impl From<Stored> for Care {
    fn from(stored: Stored) -> Self {
        let Stored {
            labels,
            annotations,
            taints,
            api,
        } = stored;
        let marks = Marks {
            labels,
            annotations,
            taints,
        };
        Self { marks, api }
    }
}

impl TaintEffect {
    /// Every one, as Kubernetes lists them.
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// The word of Kubernetes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl Marks {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty() && self.taints.is_empty()
    }
}

impl Care {
    /// What a node remembers that was told so.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self)
    }
}

/// A text of a provider as the value of a label: small letters, and no letter that labels cannot
/// have; nothing where nothing of it is left.
pub fn sanitised(text: &str) -> Option<String> {
    /// The longest value of a label.
    const LEN_MAX: usize = 63;
    let letter = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '.' | '-') => letter,
        _ => '-',
    };
    let text: String = text.chars().map(letter).take(LEN_MAX).collect();
    let text = text.trim_matches(['-', '.']);
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_providers_say_becomes_the_value_of_a_label() {
        let told = |text: &str| sanitised(text).unwrap_or_default();
        assert_eq!(told("eu-west-1a"), "eu-west-1a");
        assert_eq!(told("West Europe:2_b"), "west-europe-2-b");
        assert_eq!(told("_nord.é_"), "nord");
        assert_eq!(told("__"), "");
        assert_eq!(told(&"x".repeat(99)).len(), 63);
    }

    #[test]
    fn a_care_is_known_by_all_that_it_says() {
        let plain = Care::default();
        let mut led = plain.clone();
        led.api.push([10, 8, 0, 1].into());
        let mut tainted = plain.clone();
        tainted.marks.taints.push(Taint {
            key: "a".to_owned(),
            effect: TaintEffect::NoExecute,
            value: String::new(),
        });
        let mut moved = tainted.clone();
        moved.marks.taints[0].effect = TaintEffect::NoSchedule;
        let prints = [&plain, &led, &tainted, &moved].map(Care::fingerprint);
        let different: std::collections::BTreeSet<_> = prints.iter().collect();
        assert_eq!(different.len(), 4);
        let stored = serde_json::to_string(&tainted).unwrap();
        assert_eq!(serde_json::from_str::<Care>(&stored).unwrap(), tainted);
        assert_eq!(serde_json::to_string(&plain).unwrap(), "{}");
        assert!(serde_json::from_str::<Care>(r#"{"quark":"up"}"#).is_err());
    }
}
