//! Who connects the pods of a cluster, and where they are.

use super::fields::Fields;
use crate::fault::{About, Code, Faults};
use crate::kubernetes::{Cni, Kubernetes, ProxyMode};
use crate::name::Name;
use crate::network::Network;
use crate::source::Value;

/// What a cluster says of its pods and services, or what all have that say nothing.
pub(super) fn of_cluster(
    fields: &mut Fields<'_>,
    (name, network): (Option<&Name>, Option<Network>),
    faults: &mut Faults,
) -> Kubernetes {
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
    let kubernetes = Kubernetes {
        pods: pods.unwrap_or(usual.pods),
        services: services.unwrap_or(usual.services),
        cni: cni.unwrap_or(usual.cni),
        proxy: proxy.unwrap_or(usual.proxy),
    };
    without_proxy(&kubernetes, fields, faults);
    if let (Some(name), Some(network)) = (name, network) {
        apart(&kubernetes, (name, network), fields, faults);
    }
    kubernetes
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
fn without_proxy(kubernetes: &Kubernetes, fields: &Fields<'_>, faults: &mut Faults) {
    if kubernetes.proxy == ProxyMode::None && kubernetes.cni != Cni::Cilium {
        let message = format!(
            "found none, allowed: iptables, nftables or ipvs with {}; only cilium does without",
            kubernetes.cni.as_str()
        );
        faults.note(fields.path("kubeProxy"), Code::Range, message);
    }
}

/// No address may mean two things.
fn apart(
    kubernetes: &Kubernetes,
    (name, network): (&Name, Network),
    fields: &Fields<'_>,
    faults: &mut Faults,
) {
    let about = || About::Made {
        cluster: name.clone(),
    };
    let Kubernetes { pods, services, .. } = *kubernetes;
    let all = [
        ("network", network, "machines"),
        ("podNetwork", pods, "pods"),
        ("serviceNetwork", services, "services"),
    ];
    for (at, (_, one, what)) in all.iter().enumerate() {
        for (field, other, _) in &all[at + 1..] {
            if one.overlaps(*other) {
                // Who wrote nothing of pods and services has to change what is written.
                let written = if fields.has(field) { field } else { &"network" };
                let (found, over, of) = if *written == "network" {
                    (one, other, all.iter().find(|(name, ..)| name == field))
                } else {
                    (other, one, None)
                };
                let of = of.map_or(*what, |(_, _, what)| what);
                let message = format!("found {found}, which overlaps {over}, the network of {of}");
                faults.doubt(fields.path(written), Code::Range, message, about());
            }
        }
    }
    for (field, network, _) in &all[1..] {
        if !network.usable() {
            let message = format!("found {network}, which nothing can have as its own");
            faults.doubt(fields.path(field), Code::Range, message, about());
        }
    }
}
