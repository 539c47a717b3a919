//! Certificates that kubelets ask for, so that others may trust them when they ask them.
//!
//! Kubernetes signs such a request once somebody has approved it, and leaves it to that somebody to
//! know which names and addresses a node has.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};
use kube_client::Api;
use kube_client::api::{ListParams, Patch};
use serde_json::json;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

use super::{Door, patched};
use crate::error::{Error, Kind};

/// Who signs what kubelets serve with.
const SIGNER: &str = "kubernetes.io/kubelet-serving";

/// What the name of every kubelet begins with.
const NODE_USER: &str = "system:node:";

/// The group of all kubelets.
const NODE_GROUP: &str = "system:nodes";

/// What a serving certificate may be used for.
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "server auth"];

/// The usage that it must have.
const SERVES: &str = "server auth";

/// What a node may call itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its names.
    pub names: BTreeSet<String>,
    /// Its addresses.
    pub addresses: BTreeSet<IpAddr>,
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The name of the request.
    pub request: String,
    /// Who made it.
    pub user: String,
    /// What we said to it.
    pub verdict: Verdict,
}

/// What we said to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is signed.
    Approved,
    /// It is never signed, and why.
    Denied(String),
    /// It is of a node that we were told nothing of: others may know it.
    Left,
}

impl Door {
    /// Judges every request for a serving certificate that nobody has judged yet, by what the
    /// nodes may call themselves.
    pub async fn judge_requests(
        &self,
        nodes: &BTreeMap<String, Identity>,
    ) -> Result<Vec<Judged>, Error> {
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let mut judged = Vec::new();
        let all = self.serving_requests().await?;
        for request in all.iter().filter(|request| is_open(request)) {
            let verdict = judge(&request.spec, nodes);
            if self.say(&requests, request, &verdict).await? {
                judged.push(Judged {
                    request: request.metadata.name.clone().unwrap_or_default(),
                    user: request.spec.username.clone().unwrap_or_default(),
                    verdict,
                });
            }
        }
        Ok(judged)
    }

    /// The nodes whose kubelets ask for a serving certificate and got no answer yet.
    pub async fn asking(&self) -> Result<BTreeSet<String>, Error> {
        let open = self.serving_requests().await?;
        let open = open.iter().filter(|request| is_open(request));
        Ok(open.filter_map(asker).map(str::to_owned).collect())
    }

    /// Whether a request of a node was approved, of those that are still remembered.
    pub async fn was_approved(&self, node: &str) -> Result<bool, Error> {
        let requests = self.serving_requests().await?;
        let mut requests = requests.iter();
        Ok(requests.any(|request| asker(request) == Some(node) && is_approved(request)))
    }

    async fn serving_requests(&self) -> Result<Vec<CertificateSigningRequest>, Error> {
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let params = ListParams::default().fields(&format!("spec.signerName={SIGNER}"));
        let list = self
            .ask("list certificate requests", requests.list(&params))
            .await?;
        Ok(list.items)
    }

    /// Writes down what we say to a request; not if somebody else was quicker, or it is gone.
    async fn say(
        &self,
        requests: &Api<CertificateSigningRequest>,
        request: &CertificateSigningRequest,
        verdict: &Verdict,
    ) -> Result<bool, Error> {
        let Some(condition) = condition(verdict) else {
            return Ok(true);
        };
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": request.metadata.resource_version },
            "status": { "conditions": [condition] },
        }));
        let name = request.metadata.name.as_deref().unwrap_or_default();
        let what = format!("answer certificate request {name}");
        let asked = self
            .ask(&what, requests.patch_approval(name, &patched(), &patch))
            .await;
        match asked {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind, Kind::Conflict | Kind::Absent) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether nobody has judged it, and nothing was signed.
fn is_open(request: &CertificateSigningRequest) -> bool {
    let Some(status) = &request.status else {
        return true;
    };
    status.certificate.is_none() && status.conditions.iter().flatten().next().is_none()
}

fn is_approved(request: &CertificateSigningRequest) -> bool {
    let status = request.status.as_ref();
    let mut conditions = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten();
    conditions.any(|condition| condition.type_ == "Approved")
}

/// The node that made a request.
fn asker(request: &CertificateSigningRequest) -> Option<&str> {
    request.spec.username.as_deref()?.strip_prefix(NODE_USER)
}

/// What we say to a request, as it is written down.
fn condition(verdict: &Verdict) -> Option<CertificateSigningRequestCondition> {
    let (of, reason, message) = match verdict {
        Verdict::Approved => (
            "Approved",
            "KnownNode",
            "Slipway knows the node by these names and addresses",
        ),
        Verdict::Denied(why) => ("Denied", "NotTheNode", why.as_str()),
        Verdict::Left => return None,
    };
    Some(CertificateSigningRequestCondition {
        last_transition_time: None,
        last_update_time: None,
        message: Some(message.to_owned()),
        reason: Some(reason.to_owned()),
        status: "True".to_owned(),
        type_: of.to_owned(),
    })
}

/// What we say to a request.
fn judge(spec: &CertificateSigningRequestSpec, nodes: &BTreeMap<String, Identity>) -> Verdict {
    let user = spec.username.as_deref().unwrap_or_default();
    let Some(node) = user.strip_prefix(NODE_USER) else {
        return Verdict::Denied("it was not made by a node".to_owned());
    };
    if !spec
        .groups
        .iter()
        .flatten()
        .any(|group| group == NODE_GROUP)
    {
        return Verdict::Denied(format!("who made it is not in group {NODE_GROUP}"));
    }
    let Some(identity) = nodes.get(node) else {
        return Verdict::Left;
    };
    let usages: BTreeSet<&str> = spec.usages.iter().flatten().map(String::as_str).collect();
    if !usages.contains(SERVES) || !usages.iter().all(|usage| USAGES.contains(usage)) {
        return Verdict::Denied("it asks for other usages than a server's".to_owned());
    }
    match read(&spec.request.0, user, identity) {
        Ok(()) => Verdict::Approved,
        Err(why) => Verdict::Denied(why),
    }
}

/// Reads a request and compares it with what the node may call itself.
fn read(pem: &[u8], user: &str, identity: &Identity) -> Result<(), String> {
    let senseless = "it cannot be read";
    let (_, pem) = parse_x509_pem(pem).map_err(|_| senseless)?;
    let parsed = X509CertificationRequest::from_der(&pem.contents);
    let (rest, request) = parsed.map_err(|_| senseless)?;
    if !rest.is_empty() {
        return Err(senseless.to_owned());
    }
    request
        .verify_signature()
        .map_err(|_| "who made it does not have its key")?;
    let subject = &request.certification_request_info.subject;
    let names: Vec<Option<&str>> = subject
        .iter_common_name()
        .map(|at| at.as_str().ok())
        .collect();
    if names != [Some(user)] {
        return Err("its common name is not that of who made it".to_owned());
    }
    let groups: Vec<Option<&str>> = subject
        .iter_organization()
        .map(|at| at.as_str().ok())
        .collect();
    if groups != [Some(NODE_GROUP)] {
        return Err(format!("its organization is not {NODE_GROUP}"));
    }
    if subject.iter_attributes().count() != 2 {
        return Err("its subject says more than a node's".to_owned());
    }
    let attributes = request.certification_request_info.iter_attributes();
    let asks = attributes
        .filter(|at| {
            matches!(
                at.parsed_attribute(),
                ParsedCriAttribute::ExtensionRequest(_)
            )
        })
        .count();
    if asks > 1 {
        // We would read one of them, and whoever signs might read the other.
        return Err("it asks for extensions twice".to_owned());
    }
    let mut calls = 0;
    for extension in request.requested_extensions().into_iter().flatten() {
        if let ParsedExtension::SubjectAlternativeName(names) = extension {
            for name in &names.general_names {
                may_call(name, identity)?;
                calls += 1;
            }
        }
    }
    if calls == 0 {
        return Err("it names neither a name nor an address".to_owned());
    }
    Ok(())
}

/// Whether the node may call itself so.
fn may_call(name: &GeneralName<'_>, identity: &Identity) -> Result<(), String> {
    if let GeneralName::DNSName(name) = name {
        if identity.names.contains(*name) {
            return Ok(());
        }
        return Err(format!("the node does not have the name {name:?}"));
    }
    if let GeneralName::IPAddress(bytes) = name {
        let Some(address) = address(bytes) else {
            return Err("it has an address that is none".to_owned());
        };
        if identity.addresses.contains(&address) {
            return Ok(());
        }
        return Err(format!("the node does not have the address {address}"));
    }
    Err("it has a name of another kind than names and addresses".to_owned())
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}
