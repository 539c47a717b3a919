//! What lives in a cluster besides Kubernetes and is looked after by us: who connects its pods,
//! storage, metrics.
//!
//! The catalogue is data: what there is, in which version by default, what can be set, and what
//! its nodes need. Where its objects come from is the business of who installs it.

mod setting;

pub(crate) use setting::is_version;
pub use setting::{Setting, Sort};

use crate::host::Fingerprint;
use crate::kubernetes::Cni;
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An add-on of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddonName {
    /// Connects pods by tunnels between nodes.
    Flannel,
    /// Connects pods, and knows rules about who may reach whom.
    Calico,
    /// Connects pods inside the kernel, and does without kube-proxy.
    Cilium,
    /// Volumes that are directories of a node.
    LocalPath,
    /// Volumes that are kept on several nodes.
    Longhorn,
    /// How much nodes and pods use: `kubectl top`, and scaling by it.
    MetricsServer,
    /// What the API knows of objects, as metrics.
    KubeStateMetrics,
    /// What every node does, as metrics.
    NodeExporter,
    /// Collects metrics and answers questions about them.
    Prometheus,
    /// A page that shows what is in the cluster.
    Dashboard,
}

/// An add-on as a cluster should have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addon {
    /// Which.
    pub name: AddonName,
    /// In which version, as its makers write it.
    pub version: String,
    /// What was set; everything else is as usual.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
}

/// An add-on as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Which.
    pub name: AddonName,
    /// In which version, where that is not left to us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What was set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
}

/// An add-on as it was seen in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddonFact {
    /// In which version.
    pub version: String,
    /// What it was told.
    pub told: Fingerprint,
    /// Whether all of it was put there, and nothing of it is gone.
    pub whole: bool,
    /// What is wrong with it, where it does not do its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
}

/// All add-ons that were seen in a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddonsFact {
    /// By their names.
    pub addons: BTreeMap<AddonName, AddonFact>,
}

impl AddonName {
    /// Every one: who connects pods, then storage, then metrics.
    pub const ALL: [Self; 10] = [
        Self::Flannel,
        Self::Calico,
        Self::Cilium,
        Self::LocalPath,
        Self::Longhorn,
        Self::MetricsServer,
        Self::KubeStateMetrics,
        Self::NodeExporter,
        Self::Prometheus,
        Self::Dashboard,
    ];

    /// The word of manifests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flannel => "flannel",
            Self::Calico => "calico",
            Self::Cilium => "cilium",
            Self::LocalPath => "local-path",
            Self::Longhorn => "longhorn",
            Self::MetricsServer => "metrics-server",
            Self::KubeStateMetrics => "kube-state-metrics",
            Self::NodeExporter => "node-exporter",
            Self::Prometheus => "prometheus",
            Self::Dashboard => "dashboard",
        }
    }

    /// The one that connects the pods of a cluster, where the mesh does not.
    pub const fn of_cni(cni: Cni) -> Option<Self> {
        match cni {
            Cni::Routed => None,
            Cni::Flannel => Some(Self::Flannel),
            Cni::Calico => Some(Self::Calico),
            Cni::Cilium => Some(Self::Cilium),
        }
    }

    /// Whether it connects pods: without it no node is ready.
    pub const fn connects(self) -> bool {
        matches!(self, Self::Flannel | Self::Calico | Self::Cilium)
    }

    /// Versions that are known to work, each from the minor of Kubernetes on with which it is
    /// installed unless another one is named. A cluster that is upgraded takes its add-ons along.
    pub const fn versions(self) -> &'static [(u16, &'static str)] {
        match self {
            Self::Flannel => &[(34, "v0.27.4")],
            Self::Calico => &[(34, "v3.30.3"), (35, "v3.31.0")],
            Self::Cilium => &[(34, "v1.18.3")],
            Self::LocalPath => &[(34, "v0.0.32")],
            Self::Longhorn => &[(34, "v1.10.0")],
            Self::MetricsServer => &[(34, "v0.8.0")],
            Self::KubeStateMetrics => &[(34, "v2.17.0")],
            Self::NodeExporter => &[(34, "v1.9.1"), (35, "v1.10.2")],
            Self::Prometheus => &[(34, "v3.5.0"), (35, "v3.7.3")],
            Self::Dashboard => &[(34, "v2.7.0")],
        }
    }

    /// The version that goes with a Kubernetes.
    pub fn version_for(self, kubernetes: Version) -> &'static str {
        let fit = |(minor, _): &&(u16, &str)| *minor <= kubernetes.minor;
        let versions = self.versions();
        let newest = versions.iter().rev().find(fit).or(versions.first());
        newest.map_or("", |(_, version)| version)
    }

    /// Changes when what we write for it does, so that clusters that have it get it anew.
    const fn edition(self) -> u32 {
        match self {
            Self::Flannel
            | Self::Calico
            | Self::Cilium
            | Self::LocalPath
            | Self::Longhorn
            | Self::MetricsServer
            | Self::KubeStateMetrics
            | Self::NodeExporter
            | Self::Prometheus
            | Self::Dashboard => 1,
        }
    }

    /// Who makes its volumes, where it keeps any: they must be gone before it goes.
    pub const fn provisioner(self) -> Option<&'static str> {
        match self {
            Self::LocalPath => Some("rancher.io/local-path"),
            Self::Longhorn => Some("driver.longhorn.io"),
            Self::Flannel
            | Self::Calico
            | Self::Cilium
            | Self::MetricsServer
            | Self::KubeStateMetrics
            | Self::NodeExporter
            | Self::Prometheus
            | Self::Dashboard => None,
        }
    }
}

impl std::str::FromStr for AddonName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut all = Self::ALL.into_iter();
        all.find(|name| name.as_str() == text).ok_or(())
    }
}

impl std::fmt::Display for AddonName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::fmt::Display for Addon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

impl Named {
    /// The add-on with every choice made.
    pub fn decided(&self, kubernetes: Version) -> Addon {
        let version = self.version.clone();
        let usual = || self.name.version_for(kubernetes).to_owned();
        Addon {
            name: self.name,
            version: version.unwrap_or_else(usual),
            values: self.values.clone(),
        }
    }
}

impl Addon {
    /// What a cluster remembers that has it.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&(self, self.name.edition()))
    }

    /// What holds for it: what was set, else what is usual; nothing where it knows no such setting.
    pub fn value(&self, key: &str) -> Option<&str> {
        let set = self.values.get(key).map(String::as_str);
        let settings = self.name.settings().iter();
        set.or_else(|| {
            settings
                .clone()
                .find(|one| one.key == key)
                .map(|one| one.usual)
        })
    }

    /// How it is seen when it was put there and is well.
    pub fn installed(&self) -> AddonFact {
        AddonFact {
            version: self.version.clone(),
            told: self.fingerprint(),
            whole: true,
            wrong: None,
        }
    }
}

impl AddonFact {
    /// Whether it is what was wished, all of it; whether it does its work is another question.
    pub fn is(&self, wished: &Addon) -> bool {
        self.whole && self.told == wished.fingerprint()
    }
}

/// What a cluster should have: who connects its pods first, then the others in the order in which
/// they were named.
pub fn decided(cni: Cni, named: &[Named], kubernetes: Version) -> Vec<Addon> {
    let connects = AddonName::of_cni(cni).map(|name| Named {
        name,
        version: None,
        values: BTreeMap::new(),
    });
    let mut all: Vec<Named> = connects.into_iter().collect();
    for one in named {
        match all.iter_mut().find(|known| known.name == one.name) {
            Some(known) => known.clone_from(one),
            None => all.push(one.clone()),
        }
    }
    all.iter().map(|one| one.decided(kubernetes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn every_minor_of_kubernetes_has_a_version_of_every_add_on() {
        for name in AddonName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            for minor in Version::MINOR_MIN..=Version::MINOR_MAX {
                let with = name.version_for(Version { minor, patch: 0 });
                assert!(setting::is_version(with), "{name} {with}");
            }
            let minors = name.versions().iter().map(|(minor, _)| *minor);
            assert!(minors.is_sorted(), "{name}");
        }
        let exporter = AddonName::NodeExporter;
        assert_eq!(exporter.version_for(version("v1.34.4")), "v1.9.1");
        assert_eq!(exporter.version_for(version("v1.36.0")), "v1.10.2");
    }

    #[test]
    fn who_connects_pods_comes_first_and_may_be_named_for_its_version() {
        let named = |name, version: Option<&str>| Named {
            name,
            version: version.map(str::to_owned),
            values: BTreeMap::new(),
        };
        let told = |cni, named: &[Named]| -> Vec<String> {
            let all = decided(cni, named, version("v1.34.4"));
            all.iter().map(ToString::to_string).collect()
        };
        let exporter = named(AddonName::NodeExporter, None);
        let both = [exporter.clone(), named(AddonName::Flannel, Some("v0.26.0"))];
        assert_eq!(told(Cni::Routed, &[]), [""; 0]);
        assert_eq!(
            told(Cni::Flannel, &[exporter]),
            ["flannel v0.27.4", "node-exporter v1.9.1"]
        );
        assert_eq!(
            told(Cni::Flannel, &both),
            ["flannel v0.26.0", "node-exporter v1.9.1"]
        );
    }

    #[test]
    fn another_version_or_value_is_another_wish() {
        let usual = Named {
            name: AddonName::NodeExporter,
            version: None,
            values: BTreeMap::new(),
        };
        let mut wished = usual.decided(version("v1.34.4"));
        let fact = wished.installed();
        assert!(fact.is(&wished) && wished.value("port") == Some("9100"));
        assert_eq!(wished.value("colour"), None);
        wished.values.insert("port".to_owned(), "9200".to_owned());
        assert!(!fact.is(&wished) && wished.value("port") == Some("9200"));
        let half = AddonFact {
            whole: false,
            ..wished.installed()
        };
        assert!(!half.is(&wished), "what is half done goes on");
        let stored = serde_json::to_string(&wished).unwrap();
        assert_eq!(serde_json::from_str::<Addon>(&stored).unwrap(), wished);
    }
}
