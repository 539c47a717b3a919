//! Certificates that kubelets ask for: the real signer signs what was approved, and nothing else.

use std::collections::BTreeMap;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::csr::{Identity, Verdict};
use kube_client::api::PostParams;
use kube_client::{Api, Client};
use lab::control_plane::ControlPlane;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;

use crate::world::{both, until, witness};

/// What one request asks for.
#[derive(Clone, Copy)]
struct Ask<'a> {
    name: &'a str,
    common: &'a str,
    group: &'a str,
    calls: &'a [&'a str],
    usages: &'a [&'a str],
}

const SERVING: &[&str] = &["digital signature", "server auth"];

async fn ask(client: &Client, ask: &Ask<'_>) {
    let calls: Vec<String> = ask.calls.iter().map(|call| (*call).to_owned()).collect();
    let mut params = CertificateParams::new(calls).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, ask.group);
    params
        .distinguished_name
        .push(DnType::CommonName, ask.common);
    let pem = params
        .serialize_request(&KeyPair::generate().unwrap())
        .unwrap()
        .pem()
        .unwrap();
    let request: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": { "name": ask.name },
        "spec": {
            "request": k8s_openapi::ByteString(pem.into_bytes()),
            "signerName": "kubernetes.io/kubelet-serving",
            "usages": ask.usages,
        },
    }))
    .unwrap();
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    requests
        .create(&PostParams::default(), &request)
        .await
        .unwrap();
}

/// Everybody asks for something.
async fn ask_all(plane: &ControlPlane, admin: &Client) {
    let config = plane.kubeconfig_of("system:node:asker", &["system:nodes"]);
    let kubelet = witness(config.unwrap()).await;
    let other = plane.kubeconfig_of("system:node:foreign", &["system:nodes"]);
    let foreign = witness(other.unwrap()).await;
    let fine = Ask {
        name: "fine",
        common: "system:node:asker",
        group: "system:nodes",
        calls: &["asker", "10.0.0.9"],
        usages: SERVING,
    };
    let client_auth: &[&str] = &["digital signature", "client auth", "server auth"];
    let (name, address) = (&["asker", "kubernetes"], &["10.0.0.9", "10.0.0.1"]);
    let (other, masters) = ("system:node:other", "system:masters");
    for one in [
        Ask {
            name: "name",
            calls: name,
            ..fine
        },
        Ask {
            name: "address",
            calls: address,
            ..fine
        },
        Ask {
            name: "nothing",
            calls: &[],
            ..fine
        },
        Ask {
            name: "common",
            common: other,
            ..fine
        },
        Ask {
            name: "group",
            group: masters,
            ..fine
        },
        Ask {
            name: "usage",
            usages: client_auth,
            ..fine
        },
        fine,
    ] {
        ask(&kubelet, &one).await;
    }
    ask(
        admin,
        &Ask {
            name: "admin",
            ..fine
        },
    )
    .await;
    ask(
        &foreign,
        &Ask {
            name: "foreign",
            common: "system:node:foreign",
            ..fine
        },
    )
    .await;
}

/// One world for all requests, because judging looks at every one there is.
#[tokio::test]
async fn a_request_is_approved_only_for_what_the_node_is() {
    let test = "a_request_is_approved_only_for_what_the_node_is";
    let Some((door, admin)) = both(test).await else {
        return;
    };
    let Some(plane) = lab::control_plane::shared_or_skip(test) else {
        return;
    };
    ask_all(plane, &admin).await;
    let identity = Identity {
        names: ["asker".to_owned()].into(),
        addresses: ["10.0.0.9".parse().unwrap()].into(),
    };
    let nodes = BTreeMap::from([("asker".to_owned(), identity)]);
    let (asker, foreign) = ("asker".to_owned(), "foreign".to_owned());
    let asking = door.asking().await.unwrap();
    assert_eq!(
        asking,
        [asker, foreign.clone()].into(),
        "not who is no node"
    );
    assert!(!door.was_approved("asker").await.unwrap());
    let judged = door.judge_requests(&nodes).await.unwrap();
    let verdicts: BTreeMap<&str, &Verdict> = judged
        .iter()
        .map(|judged| (judged.request.as_str(), &judged.verdict))
        .collect();
    assert_eq!(verdicts["fine"], &Verdict::Approved);
    assert_eq!(verdicts["foreign"], &Verdict::Left);
    for (name, word) in [
        ("name", "kubernetes"),
        ("address", "10.0.0.1"),
        ("nothing", "neither"),
        ("common", "common name"),
        ("group", "organization"),
        ("usage", "usages"),
        ("admin", "not made by a node"),
    ] {
        let verdict = verdicts[name];
        assert!(
            matches!(verdict, Verdict::Denied(why) if why.contains(word)),
            "{name}: {verdict:?}"
        );
    }
    let requests: Api<CertificateSigningRequest> = Api::all(admin);
    until("the certificate is signed", async || {
        let status = requests.get("fine").await.unwrap().status;
        status.is_some_and(|status| status.certificate.is_some())
    })
    .await;
    let again = door.judge_requests(&nodes).await.unwrap();
    assert_eq!(again.len(), 1, "only the foreign one is open: {again:?}");
    assert_eq!(door.asking().await.unwrap(), [foreign].into());
    assert!(door.was_approved("asker").await.unwrap());
    assert!(!door.was_approved("foreign").await.unwrap());
}
