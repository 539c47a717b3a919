//! Kubernetes of one cluster on the wire: its settings, where its API is, and how its control
//! plane was last seen to be.

use crate::addon::AddonView;
use crate::snapshot::SnapshotsView;
use crate::time::{Time, brief};
use model::cluster::{Desired, Machine, Role};
use model::endpoint::{Behind, Endpoint};
use model::kubernetes::{API_PORT, Kubernetes};
use model::observed::{Member, Observed, Silence, Wellbeing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

/// How long before their end people are warned of certificates.
pub const WARN_BEFORE: Duration = Duration::from_hours(30 * 24);

/// Kubernetes of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesView {
    /// Who connects the pods.
    pub cni: String,
    /// How services find their pods.
    pub kube_proxy: String,
    /// The addresses of pods.
    pub pod_network: String,
    /// The addresses of services.
    pub service_network: String,
    /// Where the API is; null where Kubernetes is simulated.
    pub endpoint: Option<EndpointView>,
    /// How the control plane was last seen to be; null when nobody has asked it.
    pub control_plane: Option<ControlPlaneSeen>,
    /// When certificates end, by control machine; only of those that were looked at.
    pub certificates: Vec<CertificatesSeen>,
    /// What it has besides Kubernetes, as it should be and as it was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addons: Vec<AddonView>,
    /// How its etcd is saved, and what is kept; null before there is a control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotsView>,
    /// What each node has to pass after its upgrade, in the order in which it is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upgrade_gates: Vec<String>,
}

/// Where the API of a cluster is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointView {
    /// Its one name, on all nodes and in its certificates.
    pub name: String,
    /// Where it listens.
    pub port: u16,
    /// The machines to which the name leads, in the order in which they are asked.
    pub machines: Vec<EndpointMachine>,
}

/// A machine to which the name of an API leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointMachine {
    /// Which machine.
    pub machine: String,
    /// Where nodes find it.
    pub address: String,
    /// Where people find it; null when it was not seen to run.
    pub outside: Option<String>,
}

/// How a control plane was seen to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneSeen {
    /// Checks of the API server that fail; none when it is ready.
    pub failing: Vec<String>,
    /// The members of etcd; none when nobody told of them.
    pub etcd: Vec<EtcdMember>,
    /// What is wrong with nodes, by their names; nodes that are well are left out.
    pub troubles: BTreeMap<String, String>,
    /// Nodes that somebody locked, by their names, each with the label that says so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locks: BTreeMap<String, String>,
    /// Why its API cannot be asked, and what would help; then all else is as it was told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<ApiSilence>,
    /// When it was seen so.
    pub observed_at: Time,
}

/// Why the API of a cluster tells nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiSilence {
    /// What is the case.
    pub because: String,
    /// What would help.
    pub hint: String,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// What it is called.
    pub name: String,
    /// Whether it runs and answers.
    pub healthy: bool,
    /// Whether it only learns, and does not count yet.
    pub learner: bool,
}

/// When the certificates of a control machine end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificatesSeen {
    /// Which machine.
    pub machine: String,
    /// The day on which the first of them ends.
    pub end: Time,
    /// When that was seen.
    pub observed_at: Time,
}

impl KubernetesView {
    /// Puts together what should be and what was seen.
    pub fn new(desired: &Desired, observed: &Observed) -> Self {
        let Kubernetes {
            pods,
            services,
            cni,
            proxy,
        } = &desired.kubernetes;
        let control = |machine: &&Machine| machine.role == Role::Control;
        let real = desired.machines.iter().filter(control);
        let real = real.clone().any(|machine| machine.origin.runs_kubernetes());
        let certificates = desired.all().filter_map(|machine| {
            let seen = observed.machines.get(&machine.id)?;
            let (fact, at) = seen.certificates.as_ref()?;
            Some(CertificatesSeen {
                machine: machine.name.to_string(),
                end: fact.end.into(),
                observed_at: (*at).into(),
            })
        });
        let seen = observed.wellbeing.as_ref();
        let gates = desired.disruption.gates.iter();
        Self {
            cni: cni.as_str().to_owned(),
            kube_proxy: proxy.as_str().to_owned(),
            pod_network: pods.to_string(),
            service_network: services.to_string(),
            endpoint: real.then(|| Endpoint::of(desired, observed).into()),
            control_plane: seen
                .map(|(seen, at)| ControlPlaneSeen::new(seen, observed.silence(), (*at).into())),
            certificates: certificates.collect(),
            addons: AddonView::all(desired, observed),
            snapshots: SnapshotsView::new(desired, observed),
            upgrade_gates: gates.map(|gate| gate.name.to_string()).collect(),
        }
    }

    /// What people are told of it, as lines with their names; what is not known is left out.
    pub fn told(&self, now: Time) -> Vec<(&'static str, String)> {
        let mut told = vec![
            ("pods", format!("{}, {}", self.pod_network, self.cni)),
            (
                "services",
                format!("{}, kube-proxy: {}", self.service_network, self.kube_proxy),
            ),
        ];
        told.extend(self.endpoint.iter().map(|at| ("endpoint", at.to_string())));
        if let Some(seen) = &self.control_plane {
            told.push(("API", seen.api(now)));
            told.extend((!seen.etcd.is_empty()).then(|| ("etcd", seen.members())));
            let troubles = seen.troubles.iter();
            told.extend(troubles.map(|(node, what)| ("trouble", format!("{node}: {what}"))));
            let locks = seen.locks.iter();
            told.extend(locks.map(|(node, label)| ("locked", format!("{node}, by {label}"))));
        }
        let addons = self.addons.iter();
        told.extend(addons.map(|addon| ("add-on", addon.to_string())));
        let snapshots = self.snapshots.as_ref();
        told.extend(snapshots.map(|seen| ("snapshots", seen.told(now))));
        let gates = &self.upgrade_gates;
        told.extend((!gates.is_empty()).then(|| ("gates", gates.join(", "))));
        let ends = self.certificates.iter();
        let ends: Vec<_> = ends.map(|seen| seen.told(now)).collect();
        told.extend((!ends.is_empty()).then(|| ("certificates", ends.join(", "))));
        let ending = self.certificates.iter().filter(|seen| seen.is_ending(now));
        let ending: Vec<_> = ending.map(|seen| seen.machine.as_str()).collect();
        if !ending.is_empty() {
            let machines = ending.join(", ");
            told.push((
                "warning",
                format!(
                    "certificates of {machines} end soon; Slipway renews them, `slipway why cluster` says what that waits for"
                ),
            ));
        }
        told
    }
}

impl ControlPlaneSeen {
    fn new(seen: &Wellbeing, silence: Option<&Silence>, observed_at: Time) -> Self {
        let Wellbeing {
            failing,
            etcd,
            troubles,
            locks,
        } = seen;
        Self {
            failing: failing.clone(),
            etcd: etcd.iter().map(Into::into).collect(),
            troubles: troubles.clone(),
            locks: locks.clone(),
            silence: silence.map(|silence| ApiSilence {
                because: silence.because.clone(),
                hint: silence.hint.clone(),
            }),
            observed_at,
        }
    }

    fn api(&self, now: Time) -> String {
        let ago = brief(self.observed_at.age(now));
        if let Some(silence) = &self.silence {
            format!("silent {ago} ago: {}; {}", silence.because, silence.hint)
        } else if self.failing.is_empty() {
            format!("ready {ago} ago")
        } else {
            format!("checks fail {ago} ago: {}", self.failing.join(", "))
        }
    }

    fn members(&self) -> String {
        let members: Vec<_> = self.etcd.iter().map(ToString::to_string).collect();
        members.join(", ")
    }
}

impl CertificatesSeen {
    /// Whether they end so soon that somebody should renew them, or have ended.
    pub fn is_ending(&self, now: Time) -> bool {
        now.age(self.end) < WARN_BEFORE
    }

    fn told(&self, now: Time) -> String {
        let day = self.end.timestamp().to_day();
        let left = if self.end <= now {
            format!("{} ago", brief(self.end.age(now)))
        } else {
            format!("in {}", brief(now.age(self.end)))
        };
        format!("{} until {day} ({left})", self.machine)
    }
}

impl From<Endpoint> for EndpointView {
    fn from(endpoint: Endpoint) -> Self {
        let Endpoint { name, machines } = endpoint;
        Self {
            name,
            port: API_PORT,
            machines: machines.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Behind> for EndpointMachine {
    fn from(behind: Behind) -> Self {
        let Behind {
            machine,
            address,
            outside,
        } = behind;
        Self {
            machine: machine.into(),
            address: address.to_string(),
            outside: outside.map(|at| at.to_string()),
        }
    }
}

impl From<&Member> for EtcdMember {
    fn from(member: &Member) -> Self {
        let Member {
            name,
            healthy,
            learner,
        } = member;
        Self {
            name: name.clone(),
            healthy: *healthy,
            learner: *learner,
        }
    }
}

impl std::fmt::Display for EndpointView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            name,
            port,
            machines,
        } = self;
        let machines: Vec<_> = machines.iter().map(ToString::to_string).collect();
        write!(f, "{name}:{port} leads to {}", machines.join(", "))
    }
}

impl std::fmt::Display for EndpointMachine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            machine,
            address,
            outside,
        } = self;
        match outside {
            Some(outside) => write!(f, "{machine} ({address}, outside {outside})"),
            None => write!(f, "{machine} ({address})"),
        }
    }
}

impl std::fmt::Display for EtcdMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is = if self.healthy {
            "healthy"
        } else {
            "not healthy"
        };
        let learns = if self.learner { " (learns)" } else { "" };
        write!(f, "{} {is}{learns}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_warned_a_month_before_certificates_end() {
        let seen = |end: &str| CertificatesSeen {
            machine: "edge-01".to_owned(),
            end: end.parse().unwrap(),
            observed_at: "2026-03-01T12:00:00Z".parse().unwrap(),
        };
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        for (end, ending) in [
            ("2026-02-01T00:00:00Z", true),
            ("2026-03-02T00:00:00Z", true),
            ("2026-03-31T11:59:59Z", true),
            ("2026-03-31T12:00:00Z", false),
            ("2027-03-01T00:00:00Z", false),
        ] {
            assert_eq!(seen(end).is_ending(now), ending, "{end}");
        }
        assert_eq!(
            seen("2026-03-04T00:00:00Z").told(now),
            "edge-01 until 2026-03-04 (in 2d)"
        );
        assert_eq!(
            seen("2026-02-20T00:00:00Z").told(now),
            "edge-01 until 2026-02-20 (9d ago)"
        );
    }
}
