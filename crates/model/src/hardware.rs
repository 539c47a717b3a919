//! What a machine is made with besides its type and its image.

use crate::network::Network;
use crate::templates::Templates;
use serde::{Deserialize, Serialize};

/// The data disk of a compute machine where the manifest says nothing of it, in GB.
pub const DISK_USUAL: u32 = 50;

/// What a machine is made with besides its type and its image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hardware {
    /// The size of its data disk in GB; none where it has no such disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u32>,
    /// Whether it is lent cheaply, and may be taken back at any time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spot: bool,
    /// The network through which others reach it, where its provider has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_network: Option<String>,
    /// The part of its provider's network that the machines of its pool have for themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Network>,
    /// What it has, where its type does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineSpec>,
    /// Whose modules it is made with, where not the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templates: Option<Templates>,
}

/// What a machine has, for those who choose where pods could go before there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Processors; none where only the rest is said.
    pub cpus: Option<u32>,
    /// Memory in GB; said with processors or not at all.
    pub memory: Option<u32>,
    /// Graphics processors.
    #[serde(default)]
    pub gpus: u32,
    /// Which, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
}

impl Hardware {
    /// Whether nothing is special about it.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
