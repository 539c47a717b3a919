//! What runs in a cluster: whether it was rolled out, and how its pods are.

use std::time::{Duration, Instant};

use driver::Context;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_client::Api;
use kube_client::api::ListParams;
use kube_client::core::Selector;

use super::{Door, unless_cancelled};
use crate::error::{Error, Kind};

/// How often we look.
const LOOK: Duration = Duration::from_secs(1);

/// Why a container waits whose image cannot be had.
const NO_IMAGE: [&str; 4] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
];

/// What is rolled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A `Deployment`.
    Deployment,
    /// A `DaemonSet`.
    DaemonSet,
    /// A `StatefulSet`.
    StatefulSet,
}

impl std::fmt::Display for Sort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Deployment => "Deployment",
            Self::DaemonSet => "DaemonSet",
            Self::StatefulSet => "StatefulSet",
        })
    }
}

/// How far it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollout {
    /// How many pods there should be.
    pub wanted: i32,
    /// How many of them are of the newest version.
    pub updated: i32,
    /// How many of them serve.
    pub available: i32,
    /// How many more there are, of older versions.
    pub old: i32,
    /// Whether its controller has seen the newest version.
    pub seen: bool,
}

impl Rollout {
    /// Whether all of it serves in its newest version.
    pub fn is_done(&self) -> bool {
        self.seen && self.updated >= self.wanted && self.available >= self.wanted && self.old <= 0
    }
}

/// A pod, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodState {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The node that it is on.
    pub node: Option<String>,
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Whether it serves.
    pub ready: bool,
    /// Its containers that wait.
    pub waiting: Vec<Waiting>,
}

/// A container that does not run yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Which one.
    pub container: String,
    /// The image that it is to run.
    pub image: String,
    /// Why it waits, in one word.
    pub reason: String,
    /// Why it waits, in a sentence.
    pub message: String,
}

impl PodState {
    /// The container whose image cannot be had.
    pub fn lacks_image(&self) -> Option<&Waiting> {
        self.waiting
            .iter()
            .find(|waiting| NO_IMAGE.contains(&waiting.reason.as_str()))
    }
}

impl Door {
    /// How far something was rolled out.
    pub async fn rollout(&self, of: Sort, namespace: &str, name: &str) -> Result<Rollout, Error> {
        self.look(of, namespace, name).await.map(|(state, _)| state)
    }

    /// Waits until something was rolled out, for as long as `cap`; says why it was not.
    pub async fn await_rollout(
        &self,
        cx: &Context,
        of: Sort,
        namespace: &str,
        name: &str,
        cap: Duration,
    ) -> Result<(), Error> {
        let what = format!("wait for {of} {namespace}/{name}");
        let began = Instant::now();
        let mut told = None;
        loop {
            let look = self.look(of, namespace, name);
            let (state, selector) = unless_cancelled(cx, &what, look).await?;
            if state.is_done() {
                return Ok(());
            }
            let line = format!(
                "{of} {namespace}/{name}: {} of {} pods serve, {} are of the newest version",
                state.available, state.wanted, state.updated
            );
            if began.elapsed() >= cap {
                return Err(self.why_not(&line, namespace, &selector).await);
            }
            if told.as_ref() != Some(&line) {
                cx.log(&line);
                told = Some(line);
            }
            let pause = async {
                tokio::time::sleep(LOOK.min(cap)).await;
                Ok(())
            };
            unless_cancelled(cx, &what, pause).await?;
        }
    }

    /// The pods with these labels (`KEY=VALUE,…`), in one namespace or in all.
    pub async fn pods(
        &self,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<PodState>, Error> {
        let client = self.client.clone();
        let pods: Api<core::Pod> = match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let params = ListParams::default().labels(selector);
        let list = self
            .ask(&format!("list pods with {selector}"), pods.list(&params))
            .await?;
        Ok(list.items.into_iter().map(PodState::from).collect())
    }

    /// Why something was not rolled out in time: an image that cannot be had is said first.
    async fn why_not(&self, line: &str, namespace: &str, selector: &str) -> Error {
        let pods = self.pods(Some(namespace), selector).await;
        let pods = pods.unwrap_or_default();
        let lacking = pods.iter().find_map(|pod| Some((pod, pod.lacks_image()?)));
        if let Some((pod, waiting)) = lacking {
            return Error::new(
                Kind::NoImage,
                format!(
                    "{line}; pod {namespace}/{} cannot have its image {}: {} {}",
                    pod.name, waiting.image, waiting.reason, waiting.message
                ),
            );
        }
        let waits = pods
            .iter()
            .find_map(|pod| Some((pod, pod.waiting.first()?)));
        let waits = waits.map_or_else(String::new, |(pod, waiting)| {
            format!(
                "; container {} of pod {namespace}/{} waits: {} {}",
                waiting.container, pod.name, waiting.reason, waiting.message
            )
        });
        Error::new(Kind::NotReady, format!("{line}{waits}"))
    }

    /// How far it is, and by which labels its pods are known.
    async fn look(
        &self,
        of: Sort,
        namespace: &str,
        name: &str,
    ) -> Result<(Rollout, String), Error> {
        let what = format!("look at {of} {namespace}/{name}");
        let client = self.client.clone();
        match of {
            Sort::Deployment => {
                let api: Api<Deployment> = Api::namespaced(client, namespace);
                self.ask(&what, api.get(name)).await.map(of_deployment)
            }
            Sort::DaemonSet => {
                let api: Api<DaemonSet> = Api::namespaced(client, namespace);
                self.ask(&what, api.get(name)).await.map(of_daemon_set)
            }
            Sort::StatefulSet => {
                let api: Api<StatefulSet> = Api::namespaced(client, namespace);
                self.ask(&what, api.get(name)).await.map(of_stateful_set)
            }
        }
    }
}

fn of_deployment(object: Deployment) -> (Rollout, String) {
    let spec = object.spec.unwrap_or_default();
    let status = object.status.unwrap_or_default();
    let updated = status.updated_replicas.unwrap_or(0);
    let state = Rollout {
        wanted: spec.replicas.unwrap_or(1),
        updated,
        available: status.available_replicas.unwrap_or(0),
        old: status.replicas.unwrap_or(0) - updated,
        seen: status.observed_generation >= object.metadata.generation,
    };
    (state, labels(spec.selector))
}

fn of_daemon_set(object: DaemonSet) -> (Rollout, String) {
    let status = object.status.unwrap_or_default();
    let selector = object.spec.map(|spec| spec.selector).unwrap_or_default();
    let state = Rollout {
        wanted: status.desired_number_scheduled,
        updated: status.updated_number_scheduled.unwrap_or(0),
        available: status.number_available.unwrap_or(0),
        old: 0,
        seen: status.observed_generation >= object.metadata.generation,
    };
    (state, labels(selector))
}

fn of_stateful_set(object: StatefulSet) -> (Rollout, String) {
    let spec = object.spec.unwrap_or_default();
    let status = object.status.unwrap_or_default();
    let updated = status.updated_replicas.unwrap_or(0);
    let state = Rollout {
        wanted: spec.replicas.unwrap_or(1),
        updated,
        available: status.available_replicas.unwrap_or(0),
        old: status.replicas - updated,
        seen: status.observed_generation >= object.metadata.generation,
    };
    (state, labels(spec.selector))
}

/// A selector as it is asked for; one that we cannot say selects all.
fn labels(selector: LabelSelector) -> String {
    Selector::try_from(selector)
        .map(|selector| selector.to_string())
        .unwrap_or_default()
}

impl From<core::Pod> for PodState {
    fn from(pod: core::Pod) -> Self {
        let status = pod.status.unwrap_or_default();
        let ready = status
            .conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let containers = status.init_container_statuses.into_iter().flatten();
        let containers = containers.chain(status.container_statuses.into_iter().flatten());
        Self {
            namespace: pod.metadata.namespace.unwrap_or_default(),
            name: pod.metadata.name.unwrap_or_default(),
            node: pod.spec.and_then(|spec| spec.node_name),
            phase: status.phase.unwrap_or_default(),
            ready,
            waiting: containers.filter_map(waiting).collect(),
        }
    }
}

/// What a container waits for, if it does.
fn waiting(container: core::ContainerStatus) -> Option<Waiting> {
    let waiting = container.state?.waiting?;
    Some(Waiting {
        container: container.name,
        image: container.image,
        reason: waiting.reason.unwrap_or_default(),
        message: waiting.message.unwrap_or_default(),
    })
}
