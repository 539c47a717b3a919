//! Projects: who owns things, and how much of each kind they may have.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much a project may have; what is absent or null has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Quota {
    /// Clusters.
    #[serde(default)]
    pub clusters: Option<u32>,
    /// Machines, of all clusters together.
    #[serde(default)]
    pub machines: Option<u32>,
    /// Environments.
    #[serde(default)]
    pub environments: Option<u32>,
}

/// How much a project has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    /// Clusters.
    pub clusters: u32,
    /// Machines that are declared or still there; those that its limit holds back count too.
    pub machines: u32,
}

/// A project, its limits, and how much of them is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectView {
    /// What people call it.
    pub name: String,
    /// How much it may have.
    pub quota: Quota,
    /// How much it has.
    pub used: Used,
    /// When it was made.
    pub created_at: Time,
    /// When its limits were last changed.
    pub updated_at: Time,
}

/// What a project shall be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectRequest {
    /// How much it may have; limits below what there is take nothing away.
    pub quota: Quota,
}
