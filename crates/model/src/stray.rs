//! Nodes that a cluster has and that are none of its machines'.
//!
//! A *leftover* bears the mark with which our nodes come, and its machine is none of the cluster's
//! any more. A *stranger* bears none: somebody else has joined it, and it is theirs.

use crate::id::MachineId;
use crate::observed::is_false;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What nodes of ours say that their provider calls them, before the id of their machine.
const MARK: &str = "slipway://";

/// What the node of a machine says that its provider calls it.
pub fn mark(machine: MachineId) -> String {
    format!("{MARK}{machine}")
}

/// The machine that a node was made for, by what it says that its provider calls it.
pub fn marked(provider_id: &str) -> Option<MachineId> {
    provider_id.strip_prefix(MARK)?.parse().ok()
}

/// All nodes that were found beside those that were looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StraysFact {
    /// By their names.
    pub nodes: BTreeMap<String, Stray>,
}

/// A node that is none of those that were looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stray {
    /// The machine that it was made for, where it bears our mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Whether it is one of the control plane, and may have a member of etcd.
    #[serde(default, skip_serializing_if = "is_false")]
    pub control: bool,
    /// Since when it is not ready; nothing while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready_since: Option<Timestamp>,
}

/// A node to be taken out of a cluster, which is left of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leftover {
    /// What the node is called.
    pub node: String,
    /// The machine that it was made for.
    pub machine: MachineId,
    /// Whether its member of etcd goes with it, if there is one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub control: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_ours_is_known_by_its_mark_alone() {
        let machine: MachineId = "machine-0c5w3k9qj2m4x".parse().unwrap();
        assert_eq!(marked(&mark(machine)), Some(machine));
        for other in [
            "",
            "slipway://",
            "slipway://1",
            "aws:///eu-1/i-0c5w3k9qj2m4x",
            "machine-0c5w3k9qj2m4x",
        ] {
            assert_eq!(marked(other), None, "{other}");
        }
    }

    #[test]
    fn of_a_stray_only_what_is_so_is_stored() {
        let fact = StraysFact {
            nodes: [("a".to_owned(), Stray::default())].into(),
        };
        let stored = serde_json::to_string(&fact).unwrap();
        assert_eq!(stored, r#"{"nodes":{"a":{}}}"#);
        assert_eq!(serde_json::from_str::<StraysFact>(&stored).unwrap(), fact);
    }
}
