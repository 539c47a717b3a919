//! Emptying a node: every pod is asked to leave, as its disruption budget allows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use driver::Context;
use driver::kinds::Owner;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{Eviction, PodDisruptionBudget};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube_client::Api;
use kube_client::api::{ListParams, PostParams};
use kube_client::core::Status;
use serde_json::Value;

use super::{Door, answer, unless_cancelled};
use crate::error::{Error, Kind};

/// How a node is emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draining {
    /// After this time we stop, whatever is left.
    pub cap: Duration,
    /// After this time, and that which pods have to end, we stop when nobody can leave of those that
    /// are left unless a person does something.
    pub patience: Duration,
    /// How many pods are asked to leave at once.
    pub at_once: usize,
    /// How long we wait until we look again.
    pub pause: Duration,
}

impl Default for Draining {
    fn default() -> Self {
        Self {
            cap: Duration::from_mins(30),
            patience: Duration::from_mins(3),
            at_once: 8,
            pause: Duration::from_secs(2),
        }
    }
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a node with pods left on it is not empty"]
pub struct Drained {
    /// Which node.
    pub node: String,
    /// How many pods left it.
    pub gone: usize,
    /// What did not leave, and why not.
    pub left: Vec<Left>,
}

/// A pod that did not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// `NAMESPACE/NAME`.
    pub pod: String,
    /// Why not.
    pub why: Why,
}

/// Why a pod did not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Its disruption budget allows none.
    Budget {
        /// The name of the budget, in the namespace of the pod; empty where nobody said it.
        budget: String,
        /// Whether it allows none even when all its pods are healthy.
        never: bool,
        /// What the API server said.
        said: String,
    },
    /// A webhook or an admission policy refuses, or a webhook does not answer and fails closed.
    Webhook {
        /// Its name.
        webhook: String,
        /// What was said.
        said: String,
    },
    /// It was asked to leave, and finalizers keep it.
    Finalizers(Vec<String>),
    /// It was asked to leave, and has this many seconds for it.
    Ending(i64),
    /// The API server refused for another reason.
    Refused(String),
}

impl Drained {
    /// Nothing if the node is empty; else what is most in need of somebody.
    pub fn into_result(self) -> Result<(), Error> {
        let Some(worst) = self.left.iter().max_by_key(|left| left.why.weight()) else {
            return Ok(());
        };
        let others = match self.left.len() - 1 {
            0 => String::new(),
            1 => ", and one pod more is left".to_owned(),
            more => format!(", and {more} pods more are left"),
        };
        Err(Error::new(
            worst.why.kind(),
            format!(
                "could not empty node {}, pod {} {}{others}",
                self.node, worst.pod, worst.why
            ),
        ))
    }
}

impl Why {
    fn kind(&self) -> Kind {
        match self {
            Self::Budget { never: true, .. } => Kind::BudgetForbids,
            Self::Budget { never: false, .. } => Kind::BudgetSpent,
            Self::Webhook { .. } => Kind::Webhook,
            Self::Finalizers(_) => Kind::PodHeld,
            Self::Ending(_) => Kind::PodLingers,
            Self::Refused(_) => Kind::Busy,
        }
    }

    /// What a person must do something about comes first.
    fn weight(&self) -> u8 {
        match self {
            Self::Ending(_) => 0,
            Self::Refused(_) => 1,
            Self::Budget { never: false, .. } => 2,
            Self::Finalizers(_) => 3,
            Self::Budget { never: true, .. } => 4,
            Self::Webhook { .. } => 5,
        }
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Budget {
                budget,
                never,
                said,
            } => {
                let when = if *never { "ever" } else { "now" };
                write!(
                    f,
                    "may not be disrupted {when} by its budget {budget}: {said}"
                )
            }
            Self::Webhook { webhook, said } => {
                write!(
                    f,
                    "may not leave because of webhook or policy {webhook}: {said}"
                )
            }
            Self::Finalizers(names) => {
                write!(f, "was asked to leave and is kept by {}", names.join(", "))
            }
            Self::Ending(seconds) => {
                write!(f, "was asked to leave and has {seconds} s to do so")
            }
            Self::Refused(said) => write!(f, "could not be asked to leave: {said}"),
        }
    }
}

impl Door {
    /// Cordons a node and asks every pod on it to leave, until none is left, the time is over or
    /// the task is told to end. Pods of a `DaemonSet`, those that the kubelet runs by itself and
    /// those that have ended stay.
    pub async fn drain(&self, cx: &Context, node: &str, how: Draining) -> Result<Drained, Error> {
        let what = format!("empty node {node}");
        let began = Instant::now();
        unless_cancelled(cx, &what, self.cordon(node)).await?;
        let mut told = BTreeMap::new();
        let mut left: Vec<Left> = Vec::new();
        let (mut gone, mut asked, mut held) = (0, false, None);
        loop {
            // Who comes late has still asked every pod once.
            let late = asked && (began.elapsed() >= how.cap || self.is_held(&left, held).await);
            let pods = unless_cancelled(cx, &what, self.leavers(node)).await?;
            gone += tell_gone(cx, &pods, &mut told);
            if pods.is_empty() || late {
                let explained = self.explain(still_here(&pods, left));
                return Ok(Drained {
                    node: node.to_owned(),
                    gone,
                    left: unless_cancelled(cx, &what, explained).await?,
                });
            }
            let round = self.round(cx, &pods, how, &mut told);
            left = unless_cancelled(cx, &what, round).await?;
            asked = true;
            let grace = longest_grace(&pods).min(how.cap);
            let until = || Instant::now() + how.patience + grace;
            held = may_be_held(&left).then(|| held.unwrap_or_else(until));
            let rest = how.cap.saturating_sub(began.elapsed());
            let pause = tokio::time::sleep(how.pause.min(rest));
            unless_cancelled(cx, &what, async {
                pause.await;
                Ok(())
            })
            .await?;
        }
    }

    /// Whether nobody can leave of those that are left unless a person does something, and that for
    /// so long that nobody is expected to do it by himself.
    async fn is_held(&self, left: &[Left], until: Option<Instant>) -> bool {
        if until.is_none_or(|until| Instant::now() < until) {
            return false;
        }
        // Who cannot be asked is asked again.
        let explained = self.explain(left.to_vec()).await.unwrap_or_default();
        let person = |left: &Left| left.why.kind().owner() == Owner::Person;
        !explained.is_empty() && explained.iter().all(person)
    }

    /// The pods that must leave.
    async fn leavers(&self, node: &str) -> Result<Vec<Pod>, Error> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let list = self
            .ask(&format!("list the pods of node {node}"), pods.list(&params))
            .await?;
        Ok(list.items.into_iter().filter(must_leave).collect())
    }

    /// Asks every pod that was not asked yet, several at once, and says why which is left.
    async fn round(
        &self,
        cx: &Context,
        pods: &[Pod],
        how: Draining,
        told: &mut BTreeMap<String, String>,
    ) -> Result<Vec<Left>, Error> {
        let mut answers = futures_util::stream::iter(pods.to_vec())
            .map(|pod| async move { (full_name(&pod), self.evict(&pod).await) })
            .buffer_unordered(how.at_once.max(1));
        let mut left = Vec::new();
        while let Some((pod, answer)) = answers.next().await {
            let Some(why) = answer? else {
                continue;
            };
            let line = format!("pod {pod} {why}");
            if told.get(&pod) != Some(&line) {
                cx.log(&line);
                told.insert(pod.clone(), line);
            }
            left.push(Left { pod, why });
        }
        left.sort_by(|one, other| one.pod.cmp(&other.pod));
        Ok(left)
    }

    /// Asks one pod to leave; nothing if it is gone.
    async fn evict(&self, pod: &Pod) -> Result<Option<Why>, Error> {
        if pod.metadata.deletion_timestamp.is_some() {
            return Ok(Some(ending(pod)));
        }
        let (namespace, name) = names(pod);
        let eviction = Eviction {
            delete_options: Some(DeleteOptions {
                // Not one that came later and has its name.
                preconditions: Some(Preconditions {
                    resource_version: None,
                    uid: pod.metadata.uid.clone(),
                }),
                ..DeleteOptions::default()
            }),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
        };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let params = PostParams::default();
        let what = format!("evict pod {namespace}/{name}");
        let question = pods.create_subresource::<_, Value>("eviction", name, &params, &eviction);
        match tokio::time::timeout(self.limits().answer, question).await {
            Ok(Ok(_)) => Ok(Some(ending(pod))),
            Ok(Err(kube_client::Error::Api(status))) => refusal(&what, &status),
            Ok(Err(error)) => Err(answer::told(&what, &error)),
            Err(_) => Err(self.silent(&what)),
        }
    }

    /// Finds out of every budget that is in the way whether it could ever allow anything.
    async fn explain(&self, mut left: Vec<Left>) -> Result<Vec<Left>, Error> {
        for one in &mut left {
            let Why::Budget { budget, never, .. } = &mut one.why else {
                continue;
            };
            let namespace = one.pod.split('/').next().unwrap_or_default();
            let budgets: Api<PodDisruptionBudget> = Api::namespaced(self.client.clone(), namespace);
            let what = format!("look at budget {budget}");
            // Who cannot be looked at may allow something later.
            if let Ok(found) = self.ask(&what, budgets.get(budget)).await {
                *never = *never || forbids(&found);
            }
        }
        Ok(left)
    }
}

/// Whether a pod must leave before its node may go.
fn must_leave(pod: &Pod) -> bool {
    let of_daemon = pod
        .metadata
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    let mirror = pod
        .metadata
        .annotations
        .iter()
        .flatten()
        .any(|(key, _)| key == "kubernetes.io/config.mirror");
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let ended = matches!(phase, Some("Succeeded" | "Failed"));
    !of_daemon && !mirror && !ended
}

/// Logs the pods that are there no more, and counts them.
fn tell_gone(cx: &Context, pods: &[Pod], told: &mut BTreeMap<String, String>) -> usize {
    let here: Vec<String> = pods.iter().map(full_name).collect();
    let gone: Vec<String> = told
        .keys()
        .filter(|pod| !here.contains(pod))
        .cloned()
        .collect();
    for pod in &gone {
        cx.log(&format!("pod {pod} is gone"));
        told.remove(pod);
    }
    gone.len()
}

/// Why the pods of the last look are left, by what the last round said of them.
fn still_here(pods: &[Pod], left: Vec<Left>) -> Vec<Left> {
    let mut why: BTreeMap<String, Why> =
        left.into_iter().map(|left| (left.pod, left.why)).collect();
    pods.iter()
        .map(|pod| {
            let pod = full_name(pod);
            let new = || Why::Refused("it came when the time was over".to_owned());
            let why = why.remove(&pod).unwrap_or_else(new);
            Left { pod, why }
        })
        .collect()
}

/// Whether a person may have to do something about all that are left.
fn may_be_held(left: &[Left]) -> bool {
    let may = |left: &Left| match left.why {
        Why::Budget { .. } | Why::Webhook { .. } | Why::Finalizers(_) => true,
        Why::Ending(_) | Why::Refused(_) => false,
    };
    !left.is_empty() && left.iter().all(may)
}

/// The longest time that any of these pods has to end.
fn longest_grace(pods: &[Pod]) -> Duration {
    let longest = pods.iter().map(grace).max();
    let seconds = longest.and_then(|grace| u64::try_from(grace).ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// How many seconds a pod has to end.
fn grace(pod: &Pod) -> i64 {
    let spec = pod.spec.as_ref();
    let grace = pod.metadata.deletion_grace_period_seconds;
    let grace = grace.or_else(|| spec?.termination_grace_period_seconds);
    grace.unwrap_or(30)
}

/// Why a pod is still there that was asked to leave.
fn ending(pod: &Pod) -> Why {
    let finalizers = pod.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.is_empty() {
        return Why::Finalizers(finalizers);
    }
    Why::Ending(grace(pod))
}

/// What the refusal of an eviction means; nothing if the pod is gone.
fn refusal(what: &str, status: &Status) -> Result<Option<Why>, Error> {
    let said = status.message.clone();
    if let Some(webhook) = answer::webhook(&said) {
        return Ok(Some(Why::Webhook {
            webhook: webhook.to_owned(),
            said,
        }));
    }
    let cause = status.details.iter().flat_map(|details| &details.causes);
    let cause = cause
        .into_iter()
        .find(|cause| cause.reason == "DisruptionBudget");
    if let Some(cause) = cause {
        let said = cause.message.clone();
        return Ok(Some(Why::Budget {
            budget: budget_name(&said),
            never: false,
            said,
        }));
    }
    if said.contains("more than one PodDisruptionBudget") {
        return Ok(Some(Why::Budget {
            budget: String::new(),
            never: true,
            said,
        }));
    }
    let error = answer::refused(what, status);
    if error.kind == Kind::Absent {
        return Ok(None);
    }
    // Without a right nothing will leave; all else may be otherwise at the next look.
    if matches!(error.kind, Kind::Credentials | Kind::Forbidden) {
        return Err(error);
    }
    Ok(Some(Why::Refused(said)))
}

/// The budget that the API server names in "The disruption budget NAME needs …".
fn budget_name(said: &str) -> String {
    let after = said
        .split_once("disruption budget ")
        .map(|(_, after)| after);
    let name = after.and_then(|after| after.split(' ').next());
    name.unwrap_or_default().to_owned()
}

/// Whether a budget allows no disruption even though all its pods are healthy.
fn forbids(budget: &PodDisruptionBudget) -> bool {
    budget.status.as_ref().is_some_and(|status| {
        status.disruptions_allowed <= 0
            && status.expected_pods <= status.desired_healthy
            && status.current_healthy >= status.expected_pods
    })
}

fn names(pod: &Pod) -> (&str, &str) {
    let namespace = pod.metadata.namespace.as_deref();
    let name = pod.metadata.name.as_deref();
    (namespace.unwrap_or_default(), name.unwrap_or_default())
}

fn full_name(pod: &Pod) -> String {
    let (namespace, name) = names(pod);
    format!("{namespace}/{name}")
}
