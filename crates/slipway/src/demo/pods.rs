//! What a cluster is for: nodes that are ready, and pods on them that answer through the load
//! balancer.

use super::choice;
use super::traffic::{Example, context};
use crate::roles::Installation;
use anyhow::{Context as _, bail};
use driver::Context;
use futures_util::future::try_join_all;
use kube::api::Door;
use kube::api::workload::Sort;
use model::cluster::{Machine, Role};
use std::collections::BTreeMap;
use std::time::Duration;

/// Pods that answer with their names, and the port that leads to them.
const ECHO: &str = include_str!("../../../../examples/echo.yaml");

/// Where they are, what they are called and by which label they are found, there.
const NAMESPACE: &str = "default";
const NAME: &str = "echo";
const LABEL: &str = "app=echo";

/// How long they may take until they serve.
const ROLLOUT_MAX: Duration = Duration::from_mins(3);

/// The example's cluster, and the right to ask its API.
pub(super) struct Cluster<'a> {
    installation: &'a Installation,
    example: Example,
    cx: Context,
    door: Door,
}

impl<'a> Cluster<'a> {
    /// Finds a member of the control plane that answers.
    pub(super) async fn enter(installation: &'a Installation) -> anyhow::Result<Self> {
        let example = Example::of(installation).await?;
        let cx = context(installation);
        let members: Vec<Machine> = example.with(Role::Control).cloned().collect();
        let kube = installation.kube();
        let door = kube.enter(&cx, example.cluster, &members).await?;
        Ok(Self {
            installation,
            example,
            cx,
            door,
        })
    }

    /// What the API says of all nodes, in one sentence; one that is not ready is an error.
    pub(super) async fn nodes(&self) -> anyhow::Result<String> {
        let nodes = self.door.nodes().await?;
        if let Some(node) = nodes.iter().find(|node| !node.ready) {
            bail!("the API says that {} is not ready", node.name);
        }
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let (count, names) = (names.len(), names.join(", "));
        Ok(format!("all {count} nodes are ready: {names}"))
    }

    /// Has pods there that serve; says where they are.
    pub(super) async fn deploy(&self) -> anyhow::Result<String> {
        let (cx, hosts) = (&self.cx, &self.installation.hosts);
        // There is no registry that has their image.
        let bringing = self.example.with(Role::Compute).map(|machine| {
            let to = (self.example.cluster, machine);
            hosts.stage_archives(cx, to, "demo", |platform| {
                choice::pods(platform).parse().ok()
            })
        });
        try_join_all(bringing).await?;
        self.door.apply(ECHO).await?;
        let serving = self
            .door
            .await_rollout(cx, Sort::Deployment, NAMESPACE, NAME, ROLLOUT_MAX);
        serving.await?;
        let pods: Vec<String> = self.pods().await?.into_values().collect();
        Ok(format!("pods serve: {}", pods.join(" and ")))
    }

    /// Asks them through the load balancer; tells who answered.
    pub(super) async fn asked(&self) -> anyhow::Result<String> {
        let pods = self.pods().await?;
        self.example.asked(&pods).await
    }

    /// The pods that serve, by what they answer: each with its node.
    async fn pods(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let pods = self.door.pods(Some(NAMESPACE), LABEL).await?;
        let serving = pods.into_iter().filter(|pod| pod.ready);
        let called = serving.map(|pod| {
            let node = pod.node.context("a pod serves and is nowhere")?;
            Ok((pod.name.clone(), format!("{} on {node}", pod.name)))
        });
        called.collect()
    }
}
