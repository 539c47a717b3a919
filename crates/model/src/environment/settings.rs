//! What a project says of its environments: who deploys them, where, and for how long.

use super::config::Key;
use super::git::Source;
use super::notify::Target;
use crate::disruption::Windows;
use crate::name::Name;
use crate::secret::SecretRef;
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

/// Who deploys the environments of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deploy {
    /// The project's control scripts.
    #[default]
    Scripts,
    /// Helm, for those who have a chart and no scripts.
    Helm(Chart),
}

impl Deploy {
    /// Whether it is what counts where nobody says otherwise.
    const fn is_scripts(&self) -> bool {
        matches!(self, Self::Scripts)
    }
}

/// What Helm deploys, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// The chart, an absolute path on the server: a directory, or the archive of one.
    pub chart: String,
    /// How Kubernetes is reached. Without it the cluster counts that environments are placed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<Kubeconfig>,
    /// Which setting is given the name that an environment is reached by, its own below the base
    /// domain, unless somebody sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Key>,
}

/// Where the way to a Kubernetes is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kubeconfig {
    /// A file, an absolute path on the server.
    File(String),
    /// A secret of the project.
    Secret(SecretRef),
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
    /// Who deploys them.
    #[serde(default, skip_serializing_if = "Deploy::is_scripts")]
    pub deploy: Deploy,
    /// The directory of the scripts, an absolute path on the server; nobody reads it where Helm
    /// deploys.
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
    /// For how long nobody may have used an environment before it is put to sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
    /// When environments are up; they sleep between. Without any, always.
    #[serde(default, skip_serializing_if = "no_hours")]
    pub hours: Windows,
    /// How many environments may be up at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_max: Option<u32>,
    /// Repositories whose requests have environments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Who else is told what becomes of environments, each by a name of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<Target>,
}

fn no_hours(hours: &Windows) -> bool {
    hours.0.is_empty()
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

    /// Deployed by scripts of this directory, and all else as it is where nobody says otherwise.
    pub fn usual(place: Place, scripts: impl Into<String>) -> Self {
        Self {
            place,
            deploy: Deploy::default(),
            scripts: scripts.into(),
            contract: Contract::default(),
            tag: Key::image_tag(),
            secret_delivery: None,
            patience: Patience::default(),
            retention: Self::RETENTION,
            idle: None,
            hours: Windows::default(),
            up_max: None,
            sources: Vec::new(),
            notify: Vec::new(),
        }
    }

    /// Whether settings may be secret: scripts must say how they are given such, Helm has a way.
    pub const fn takes_secrets(&self) -> bool {
        matches!(self.deploy, Deploy::Helm(_)) || self.secret_delivery.is_some()
    }

    /// The source of that name.
    pub fn source(&self, name: &Name) -> Option<&Source> {
        self.sources.iter().find(|source| source.name == *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_deploys_is_read_as_it_is_written() {
        let read = |text: &str| serde_json::from_str::<Deploy>(text);
        assert_eq!(read("\"scripts\"").unwrap(), Deploy::Scripts);
        let text = r#"{"helm":{"chart":"/srv/shop","kubeconfig":{"file":"/srv/conf"},"host":"ingress.host"}}"#;
        let helm = Deploy::Helm(Chart {
            chart: "/srv/shop".to_owned(),
            kubeconfig: Some(Kubeconfig::File("/srv/conf".to_owned())),
            host: Some("ingress.host".parse().unwrap()),
        });
        assert_eq!(read(text).unwrap(), helm);
        assert_eq!(serde_json::to_string(&helm).unwrap(), text);
        let sealed =
            r#"{"helm":{"chart":"/c","kubeconfig":{"secret":{"name":"shop","key":"kubeconfig"}}}}"#;
        assert_eq!(
            serde_json::to_string(&read(sealed).unwrap()).unwrap(),
            sealed
        );
        assert!(read(r#"{"helm":{"chart":"/c","tag":"v1"}}"#).is_err());
    }
}
