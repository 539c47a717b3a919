//! Who connects the pods of a cluster, and where they are.

use super::fields::Fields;
use crate::fault::{About, Code, Faults};
use crate::kubernetes::{Cni, Kubernetes, ProxyMode};
use crate::name::Name;
use crate::network::Network;
use crate::source::Value;

/// What a cluster says of its pods and services, or what all have that say nothing; nothing of what
/// could not be read.
pub(super) struct Said {
    pub(super) pods: Option<Network>,
    pub(super) services: Option<Network>,
    pub(super) cni: Option<Cni>,
    pub(super) proxy: Option<ProxyMode>,
}

impl Said {
    pub(super) fn whole(&self) -> Option<Kubernetes> {
        Some(Kubernetes {
            pods: self.pods?,
            services: self.services?,
            cni: self.cni?,
            proxy: self.proxy?,
        })
    }

    /// How many machines can have a part of the pods' network, where the mesh carries it, and which
    /// network that is.
    pub(super) fn room(&self) -> Option<(u32, Network)> {
        let kubernetes = Kubernetes {
            pods: self.pods?,
            cni: self.cni?,
            ..Kubernetes::default()
        };
        Some((kubernetes.room()?, kubernetes.pods))
    }
}

/// Reads what a cluster says of its pods and services.
pub(super) fn of_cluster(
    fields: &mut Fields<'_>,
    (name, network): (Option<&Name>, Option<Network>),
    faults: &mut Faults,
) -> Said {
    let usual = Kubernetes::default();
    let pods = fields.optional_parsed("podNetwork", faults);
    let services = fields.optional_parsed("serviceNetwork", faults);
    let cni = word(
        fields,
        "cni",
        &Cni::ALL.map(|cni| (cni.as_str(), cni)),
        faults,
    );
    let modes = ProxyMode::ALL.map(|mode| (mode.as_str(), mode));
    let proxy = word(fields, "kubeProxy", &modes, faults);
    let said = Said {
        pods: pods.or_else(|| (!fields.has("podNetwork")).then_some(usual.pods)),
        services: services.or_else(|| (!fields.has("serviceNetwork")).then_some(usual.services)),
        cni: cni.or_else(|| (!fields.has("cni")).then_some(usual.cni)),
        proxy: proxy.or_else(|| (!fields.has("kubeProxy")).then_some(usual.proxy)),
    };
    without_proxy(&said, fields, faults);
    apart(&said, (name, network), fields, faults);
    said
}

/// One of a few words.
pub(super) fn word<T: Copy>(
    fields: &mut Fields<'_>,
    field: &'static str,
    allowed: &[(&str, T)],
    faults: &mut Faults,
) -> Option<T> {
    let text = fields.optional_text(field, faults)?;
    let found = allowed.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let words: Vec<_> = allowed.iter().map(|(word, _)| *word).collect();
        let found = Value::Text(text.to_owned());
        let message = format!("found {found}, allowed: {}", words.join(", "));
        faults.note(fields.path(field), Code::Format, message);
    }
    found.map(|(_, value)| *value)
}

/// Without kube-proxy no service is reached, unless whoever connects the pods sees to it.
fn without_proxy(said: &Said, fields: &Fields<'_>, faults: &mut Faults) {
    if said.proxy == Some(ProxyMode::None)
        && let Some(cni) = said.cni.filter(|cni| *cni != Cni::Cilium)
    {
        let message = format!(
            "found none, allowed: iptables, nftables or ipvs with {}; only cilium does without",
            cni.as_str()
        );
        faults.note(fields.path("kubeProxy"), Code::Range, message);
    }
}

/// No address may mean two things.
fn apart(
    said: &Said,
    (name, network): (Option<&Name>, Option<Network>),
    fields: &Fields<'_>,
    faults: &mut Faults,
) {
    let mut doubt = |field: &str, message: String| {
        let path = fields.path(field);
        match name.cloned() {
            Some(cluster) => faults.doubt(path, Code::Range, message, About::Made { cluster }),
            None => faults.note(path, Code::Range, message),
        }
    };
    let all = [
        ("network", network, "machines"),
        ("podNetwork", said.pods, "pods"),
        ("serviceNetwork", said.services, "services"),
    ];
    let read = |(field, network, what): (_, Option<Network>, _)| Some((field, network?, what));
    let all: Vec<_> = all.into_iter().filter_map(read).collect();
    for (at, (first, one, what)) in all.iter().enumerate() {
        for (field, other, of) in &all[at + 1..] {
            if one.overlaps(*other) {
                // Who wrote nothing of pods and services has to change what is written.
                let (written, found, over, of) = if fields.has(field) {
                    (field, other, one, what)
                } else {
                    (first, one, other, of)
                };
                let message = format!("found {found}, which overlaps {over}, the network of {of}");
                doubt(written, message);
            }
        }
    }
    for (field, network, _) in all.iter().filter(|(field, ..)| *field != "network") {
        if !network.usable() {
            let message = format!("found {network}, which nothing can have as its own");
            doubt(field, message);
        }
    }
}
