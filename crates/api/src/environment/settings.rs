//! What a project says of its environments, on the wire.

use crate::time::Time;
use model::environment::settings;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How scripts are given what is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecretDelivery {
    /// As files in a directory that `SLIPWAY_SECRETS` names, one per setting.
    File,
    /// As environment variables.
    Env,
    /// As arguments, which everybody on the machine can read.
    Argv,
}

impl SecretDelivery {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Env => "env",
            Self::Argv => "argv",
        }
    }
}

impl From<settings::SecretDelivery> for SecretDelivery {
    fn from(delivery: settings::SecretDelivery) -> Self {
        match delivery {
            settings::SecretDelivery::File => Self::File,
            settings::SecretDelivery::Env => Self::Env,
            settings::SecretDelivery::Argv => Self::Argv,
        }
    }
}

impl From<SecretDelivery> for settings::SecretDelivery {
    fn from(delivery: SecretDelivery) -> Self {
        match delivery {
            SecretDelivery::File => Self::File,
            SecretDelivery::Env => Self::Env,
            SecretDelivery::Argv => Self::Argv,
        }
    }
}

/// Which arguments scripts are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Contract {
    /// Those that scripts have been given since the tag became one setting among others.
    #[default]
    Current,
    /// The same, and the tag as an argument of its own.
    Legacy,
}

impl Contract {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Legacy => "legacy",
        }
    }
}

impl From<settings::Contract> for Contract {
    fn from(contract: settings::Contract) -> Self {
        match contract {
            settings::Contract::Current => Self::Current,
            settings::Contract::Legacy => Self::Legacy,
        }
    }
}

impl From<Contract> for settings::Contract {
    fn from(contract: Contract) -> Self {
        match contract {
            Contract::Current => Self::Current,
            Contract::Legacy => Self::Legacy,
        }
    }
}

/// What a project says of its environments; what is left out is as usual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvironmentSettings {
    /// What the product is called, as scripts are told.
    pub project_name: String,
    /// Below which name environments are reached.
    pub base_domain: String,
    /// The namespace of Kubernetes that they are placed in.
    pub namespace: String,
    /// The cluster that they are placed on, where it is one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The directory of the scripts, an absolute path on the server.
    pub scripts: String,
    /// Which arguments they are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// Which setting of the application its tag is; `image.tag` as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag_key: Option<String>,
    /// How scripts are given what is secret; without it nothing secret is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_delivery: Option<SecretDelivery>,
    /// How long a script that changes something may take; 1800 as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_seconds: Option<u32>,
    /// How long a script that looks may take; 60 as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_seconds: Option<u32>,
    /// How long an environment may be about to become another; 600 as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_seconds: Option<u32>,
    /// Between two looks at one environment; 15 as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<u32>,
    /// How long an environment rests in the archive before it is removed; 14 days as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_seconds: Option<u32>,
    /// How many environments may be up at once; without it, any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_max: Option<u32>,
}

/// What a project says of its environments, and who said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSettingsView {
    /// What it says, all of it.
    pub settings: EnvironmentSettings,
    /// How often that was changed.
    pub version: u64,
    /// Who changed it last.
    pub updated_by: String,
    /// When.
    pub updated_at: Time,
    /// What whoever reads this should know.
    pub warnings: Vec<String>,
}

impl From<settings::Settings> for EnvironmentSettings {
    fn from(settings: settings::Settings) -> Self {
        let settings::Settings {
            place,
            scripts,
            contract,
            tag,
            secret_delivery,
            patience,
            retention,
            up_max,
        } = settings;
        let settings::Place {
            project_name,
            base_domain,
            namespace,
            cluster,
        } = place;
        let settings::Patience {
            action,
            check,
            pending,
            every,
        } = patience;
        let seconds =
            |span: std::time::Duration| Some(u32::try_from(span.as_secs()).unwrap_or(u32::MAX));
        Self {
            project_name,
            base_domain,
            namespace: namespace.into(),
            cluster: cluster.map(Into::into),
            scripts,
            contract: Some(contract.into()),
            tag_key: Some(tag.into()),
            secret_delivery: secret_delivery.map(Into::into),
            action_seconds: seconds(action),
            check_seconds: seconds(check),
            pending_seconds: seconds(pending),
            every_seconds: seconds(every),
            retention_seconds: seconds(retention),
            up_max,
        }
    }
}
