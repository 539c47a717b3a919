//! What a project says of its environments, on the wire.

use super::GitSource;
use super::notify::NotifyTarget;
use crate::time::Time;
use model::environment::hours::Hours;
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

/// How Helm deploys the environments of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HelmSettings {
    /// The chart: a directory or an archive, an absolute path on the server.
    pub chart: String,
    /// How Kubernetes is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<KubeconfigOf>,
    /// Which value is given the name that an environment is reached by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Where the way to a Kubernetes is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum KubeconfigOf {
    /// A file, an absolute path on the server.
    File(String),
    /// An entry of a secret of the project, as `NAME/ENTRY`.
    Secret(String),
}

impl From<settings::Chart> for HelmSettings {
    fn from(chart: settings::Chart) -> Self {
        let settings::Chart {
            chart,
            kubeconfig,
            host,
        } = chart;
        Self {
            chart,
            kubeconfig: kubeconfig.map(|of| match of {
                settings::Kubeconfig::File(path) => KubeconfigOf::File(path),
                settings::Kubeconfig::Secret(secret) => KubeconfigOf::Secret(secret.to_string()),
            }),
            host: host.map(Into::into),
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
    /// The directory of the scripts that deploy them, an absolute path on the server. Either this or
    /// `helm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<String>,
    /// The chart that Helm deploys, where there are no scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmSettings>,
    /// Which arguments scripts are given.
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
    /// For how long nobody may have used an environment before it is put to sleep; without it, any
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u32>,
    /// When environments are up, each like `Mon-Fri 08:00-19:00 +01:00`; they sleep between. Without
    /// any, always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hours: Vec<String>,
    /// How many environments may be up at once; without it, any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_max: Option<u32>,
    /// Repositories whose pull or merge requests have environments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<GitSource>,
    /// Who else is told what becomes of environments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<NotifyTarget>,
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
            deploy,
            scripts,
            contract,
            tag,
            secret_delivery,
            patience,
            retention,
            idle,
            hours,
            up_max,
            sources,
            notify,
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
        let (scripts, helm) = match deploy {
            settings::Deploy::Scripts => (Some(scripts), None),
            settings::Deploy::Helm(chart) => (None, Some(chart.into())),
        };
        let seconds =
            |span: std::time::Duration| Some(u32::try_from(span.as_secs()).unwrap_or(u32::MAX));
        Self {
            project_name,
            base_domain,
            namespace: namespace.into(),
            cluster: cluster.map(Into::into),
            scripts,
            helm,
            contract: Some(contract.into()),
            tag_key: Some(tag.into()),
            secret_delivery: secret_delivery.map(Into::into),
            action_seconds: seconds(action),
            check_seconds: seconds(check),
            pending_seconds: seconds(pending),
            every_seconds: seconds(every),
            retention_seconds: seconds(retention),
            idle_seconds: idle.and_then(seconds),
            hours: hours
                .0
                .into_iter()
                .map(|one| Hours(one).to_string())
                .collect(),
            up_max,
            sources: sources.into_iter().map(Into::into).collect(),
            notify: notify.into_iter().map(Into::into).collect(),
        }
    }
}
