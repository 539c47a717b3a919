//! A real API server to ask, and objects to find there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use driver::{Clock, Context, Log, NoSecrets};
use kube::api::{Dialling, Door, Limits, Stream};
use lab::control_plane::ControlPlane;
use model::secret::Secret;
use model::time::Timestamp;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Dials a port of this machine.
pub(crate) fn dial(port: u16) -> impl Fn() -> Dialling + Send + Sync + 'static {
    move || {
        Box::pin(async move {
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// The door of an administrator, open once the API server is ready.
pub(crate) async fn door(plane: &ControlPlane) -> Door {
    let door = door_of(plane, plane.kubeconfig().unwrap()).await;
    until("the API server is ready", async || {
        door.health(Duration::from_secs(5)).await == Ok(kube::api::Health::Ready)
    })
    .await;
    door
}

/// The door of somebody.
pub(crate) async fn door_of(plane: &ControlPlane, kubeconfig: String) -> Door {
    let kubeconfig = Secret::from_text(kubeconfig);
    Door::open(&kubeconfig, dial(plane.port()), Limits::default())
        .await
        .unwrap()
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(2), wait).await;
    assert!(waited.is_ok(), "waited in vain until {what}");
}

/// The shared API server, and a door to it; nothing where there is none.
pub(crate) async fn ready(test: &str) -> Option<Door> {
    let plane = lab::control_plane::shared_or_skip(test)?;
    Some(door(plane).await)
}

/// Applies an object.
pub(crate) async fn make(door: &Door, object: Value) {
    let text = serde_json::to_string(&object).unwrap();
    door.apply(&text).await.unwrap();
}

/// A client that does not go through the door, to see what is really there.
pub(crate) async fn witness(kubeconfig: String) -> kube_client::Client {
    let config = kube_client::config::Kubeconfig::from_yaml(&kubeconfig).unwrap();
    let options = kube_client::config::KubeConfigOptions::default();
    let config = kube_client::Config::from_custom_kubeconfig(config, &options).await;
    kube_client::Client::try_from(config.unwrap()).unwrap()
}

/// The shared API server by both ways.
pub(crate) async fn both(test: &str) -> Option<(Door, kube_client::Client)> {
    let plane = lab::control_plane::shared_or_skip(test)?;
    let door = door(plane).await;
    Some((door, witness(plane.kubeconfig().unwrap()).await))
}

/// A node, as a kubelet would register it.
pub(crate) fn node(name: &str) -> Value {
    serde_json::json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } })
}

/// What was logged.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, _: Timestamp, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

impl Lines {
    /// All of it.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// What a driver gets besides its task, with what ends it and what it logs.
pub(crate) fn context() -> (Context, CancellationToken, Arc<Lines>) {
    let cancel = CancellationToken::new();
    let lines = Arc::new(Lines::default());
    let context = Context::new(
        Clock::System,
        lines.clone(),
        Arc::new(NoSecrets),
        cancel.clone(),
        1,
    );
    (context, cancel, lines)
}
