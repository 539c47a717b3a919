//! Webhooks that let no pod leave: one that says no, and one that does not answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::error::{Error, Kind};
use lab::control_plane::Paper;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::drain::{HASTY, drain, namespace, pod};
use crate::world::{both, make, node};

/// A webhook for the evictions of one namespace.
fn webhook(namespace: &str, url: &str, authority: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": namespace },
        "webhooks": [{
            "name": "guard.lab.test", "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
            "clientConfig": { "url": url, "caBundle": STANDARD.encode(authority) },
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods/eviction"],
            }],
        }],
    })
}

/// Says no to everything, until it is dropped.
async fn refuser(paper: &Paper) -> (u16, JoinSet<()>) {
    let certificate = CertificateDer::from_pem_slice(paper.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(paper.key.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            refuse(&acceptor, stream).await;
        }
    });
    (port, tasks)
}

/// Answers one request; who breaks off is not answered.
async fn refuse(acceptor: &TlsAcceptor, stream: TcpStream) -> Option<()> {
    let mut stream = acceptor.accept(stream).await.ok()?;
    let mut read = Vec::new();
    let review: Value = loop {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&read).into_owned();
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
        if let Some(review) = body.and_then(|body| serde_json::from_str(body).ok()) {
            break review;
        }
    };
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"], "allowed": false,
            "status": { "message": "nobody leaves today" },
        },
    })
    .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all((head + &answer).as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

/// Drains a node whose pod a webhook keeps; the API server hears of webhooks a moment later.
async fn kept(door: &kube::api::Door, name: &str, hook: &Value) -> Error {
    namespace(door, name).await;
    make(door, node(name)).await;
    make(door, hook.clone()).await;
    for _ in 0..1000 {
        make(door, pod(name, "one", name)).await;
        if let Err(error) = drain(door, name, HASTY).await.0.into_result() {
            // Once it is gone, all is well.
            door.remove(&hook.to_string()).await.unwrap();
            let patient = kube::api::drain::Draining::default();
            drain(door, name, patient).await.0.into_result().unwrap();
            return error;
        }
    }
    Error::new(Kind::Garbage, "the webhook was never asked")
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_is_named() {
    let Some((door, _)) = both("a_webhook_that_does_not_answer_is_named").await else {
        return;
    };
    let hook = webhook("silent", "https://127.0.0.1:1/", "");
    let error = kept(&door, "silent", &hook).await;
    assert_eq!(error.kind, Kind::Webhook, "{error}");
    assert!(error.what.contains("guard.lab.test"), "{error}");
}

#[tokio::test]
async fn a_webhook_that_refuses_is_named_with_its_words() {
    let test = "a_webhook_that_refuses_is_named_with_its_words";
    let Some((door, _)) = both(test).await else {
        return;
    };
    let Some(plane) = lab::control_plane::shared_or_skip(test) else {
        return;
    };
    let paper = plane.papers().server(&["127.0.0.1"]).unwrap();
    let (port, _tasks) = refuser(&paper).await;
    let url = format!("https://127.0.0.1:{port}/");
    let hook = webhook("refused", &url, &plane.papers().authority());
    let error = kept(&door, "refused", &hook).await;
    assert_eq!(error.kind, Kind::Webhook, "{error}");
    for part in ["guard.lab.test", "nobody leaves today", "refused/one"] {
        assert!(error.what.contains(part), "{error}");
    }
}
