//! What a project says of its environments: who deploys them, where, and for how long.

use super::config::Key;
use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How scripts are given what is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretDelivery {
    /// As files in a directory that `SLIPWAY_SECRETS` names, one per setting.
    File,
    /// As environment variables.
    Env,
    /// As arguments, which everybody on the machine can read, for scripts that know nothing else.
    Argv,
}

/// Which arguments scripts are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contract {
    /// Those that scripts have been given since the tag became one setting among others.
    #[default]
    Current,
    /// The same, and the tag as an argument of its own.
    Legacy,
}

/// What is said to every script, whatever it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// What the product is called.
    pub project_name: String,
    /// Below which name environments are reached.
    pub base_domain: String,
    /// The namespace of Kubernetes that they are placed in.
    pub namespace: Name,
    /// The cluster that they are placed on, where it is one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Name>,
}

/// What a project says of its environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What is said to every script.
    pub place: Place,
    /// The directory of the scripts, an absolute path on the server.
    pub scripts: String,
    /// Which arguments they are given.
    #[serde(default)]
    pub contract: Contract,
    /// Which setting of the application its tag is.
    pub tag: Key,
    /// How scripts are given what is secret. Without it nothing secret is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_delivery: Option<SecretDelivery>,
    /// How long things may take.
    pub patience: Patience,
    /// How long an environment rests in the archive before it is removed.
    pub retention: Duration,
    /// How many environments may be up at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_max: Option<u32>,
}

/// How long things may take, and how often they are looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// A script that changes something.
    pub action: Duration,
    /// A script that looks.
    pub check: Duration,
    /// An environment that is about to become another, from the end of its script on.
    pub pending: Duration,
    /// Between two looks at one environment.
    pub every: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            action: Duration::from_mins(30),
            check: Duration::from_mins(1),
            pending: Duration::from_mins(10),
            every: Duration::from_secs(15),
        }
    }
}

impl Settings {
    /// How long an environment rests in the archive unless the project says otherwise.
    pub const RETENTION: Duration = Duration::from_hours(336);

    /// Which setting is the tag unless the project says otherwise.
    pub const TAG: &str = "image.tag";
}
