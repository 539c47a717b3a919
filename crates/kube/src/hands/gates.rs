//! What must pass before a node serves again: commands on its machine, and `Job`s of its cluster.

use super::{Done, Kube, Trouble, pause};
use crate::api::Door;
use crate::error::{Error, Kind};
use driver::Context;
use hosts::program::{MARK, Program, quoted};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, EnvVar, Toleration};
use model::gate::{Check, Gate};
use model::task::{Around, Task};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// How long to wait before a gate is asked again.
const AGAIN: Duration = Duration::from_secs(10);

/// How long a command may take to end that was told to.
const END_MAX: Duration = Duration::from_secs(10);

/// How much of a task's id the name of a `Job` has.
const SHORT: usize = 8;

/// What is told of how a command ended: only that of the user's may fail without a trouble of ours.
const STATUS: &str = "status";

/// How the API server answers that does not take a `Job`.
const REFUSED: [Kind; 4] = [Kind::Rejected, Kind::Absent, Kind::Forbidden, Kind::Webhook];

/// By which label a node is known.
const HOSTNAME: &str = "kubernetes.io/hostname";

impl Kube {
    /// Asks all gates of a node, one after the other, and lets it serve again.
    pub(super) async fn readmit(
        &self,
        cx: &Context,
        (task, around): (&Task, &Around),
        gates: &[Gate],
    ) -> Result<Done, Trouble> {
        for gate in gates {
            self.pass(cx, (task, around), gate).await?;
        }
        self.uncordon(cx, task, around).await
    }

    /// Asks a gate until it lets the node pass, or for as long as it may be asked.
    async fn pass(
        &self,
        cx: &Context,
        (task, around): (&Task, &Around),
        gate: &Gate,
    ) -> Result<(), Trouble> {
        let (name, node) = (&gate.name, &task.machine.name);
        let began = Instant::now();
        let mut told = String::new();
        loop {
            let rest = gate.patience.saturating_sub(began.elapsed());
            let asked = match &gate.check {
                Check::Command(words) => self.commanded(cx, task, words, rest).await?,
                Check::Job(job) => {
                    let (door, _) = self.door(cx, task.cluster, &around.through).await?;
                    employed(cx, &door, (task, gate), job, rest).await?
                }
            };
            let Err(why) = asked else {
                cx.log(&format!("gate {name} lets {node} pass"));
                return Ok(());
            };
            if began.elapsed() + AGAIN >= gate.patience {
                let seconds = gate.patience.as_secs();
                let what = format!("gate {name} did not let {node} pass for {seconds} s: {why}");
                return Err(Error::new(Kind::GateShut, what).into());
            }
            if told != why {
                cx.log(&format!("gate {name} does not let {node} pass yet: {why}"));
                told = why;
            }
            pause(cx, AGAIN).await?;
        }
    }

    /// Runs a command on a machine; says why it did not pass.
    async fn commanded(
        &self,
        cx: &Context,
        task: &Task,
        words: &[String],
        rest: Duration,
    ) -> Result<Result<(), String>, Trouble> {
        let program = command(task, words, rest);
        let report = self.hosts.visit(cx, task.cluster, &task.machine, &program);
        let report = report.await?;
        let last = report.tail.last().map(|line| format!(": {line}"));
        let last = last.unwrap_or_default();
        Ok(match report.fact(STATUS) {
            Some("0") => Ok(()),
            // What `timeout` answers.
            Some("124" | "137") => Err(format!("its command did not end in time{last}")),
            Some(status) => Err(format!("its command ended with {status}{last}")),
            None => Err(format!("its command did not end{last}")),
        })
    }
}

/// A command of the user's, with what it may want to know.
fn command(task: &Task, words: &[String], rest: Duration) -> Program {
    let told = environment(task).map(|(key, value)| format!("{key}={}", quoted(&value)));
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    let seconds = rest.as_secs().max(1);
    let text = format!(
        "export {}\ntimeout -k 5 {seconds} {} </dev/null 2>&1\nprintf '\\n{MARK}fact {STATUS} %s\\n' \"$?\"\n",
        told.join(" "),
        words.join(" ")
    );
    Program {
        title: "ask a gate".to_owned(),
        text: Zeroizing::new(text),
        limit: rest + END_MAX,
    }
}

/// Runs a `Job` of the user's; says why it did not pass.
async fn employed(
    cx: &Context,
    door: &Door,
    (task, gate): (&Task, &Gate),
    job: &Value,
    rest: Duration,
) -> Result<Result<(), String>, Error> {
    let job = made_of(task, gate, job)?;
    match Box::pin(door.run_job(cx, &job, rest)).await {
        // What is wrong with it nobody mends but who wrote it, or the namespace is to come yet.
        Err(error) if REFUSED.contains(&error.kind) => Ok(Err(error.what)),
        told => told,
    }
}

/// The `Job` of a gate for one node: with a name of its own, tried once, and told what it may want to
/// know. Unless it says where, it runs on the node itself, which takes no others yet.
fn made_of(task: &Task, gate: &Gate, job: &Value) -> Result<Job, Error> {
    let read = serde_json::from_value::<Job>(job.clone());
    let mut job = read.map_err(|error| {
        let what = format!("gate {} has a job that is none: {error}", gate.name);
        Error::new(Kind::Rejected, what)
    })?;
    let id = task.id.to_string();
    let short: String = id.chars().rev().take(SHORT).collect();
    job.metadata.name = Some(format!("slipway-gate-{}-{short}", gate.name));
    job.metadata.generate_name = None;
    let spec = job.spec.get_or_insert_with(JobSpec::default);
    spec.backoff_limit.get_or_insert(0);
    // Who goes before we look cannot say how it ended.
    spec.ttl_seconds_after_finished = None;
    let pod = spec.template.spec.get_or_insert_default();
    pod.restart_policy.get_or_insert_with(|| "Never".to_owned());
    if pod.node_name.is_none() && pod.node_selector.is_none() && pod.affinity.is_none() {
        let node = (HOSTNAME.to_owned(), task.machine.name.to_string());
        pod.node_selector = Some(BTreeMap::from([node]));
        pod.tolerations.get_or_insert_default().push(Toleration {
            operator: Some("Exists".to_owned()),
            ..Toleration::default()
        });
    }
    let first = pod.init_containers.iter_mut().flatten();
    for container in first.chain(&mut pod.containers) {
        tell(task, container);
    }
    Ok(job)
}

fn tell(task: &Task, container: &mut Container) {
    let told = environment(task).map(|(name, value)| EnvVar {
        name: name.to_owned(),
        value: Some(value),
        ..EnvVar::default()
    });
    container.env.get_or_insert_default().extend(told);
}

/// What gates are told of the node that wants to pass.
fn environment(task: &Task) -> [(&'static str, String); 2] {
    [
        ("SLIPWAY_CLUSTER", task.cluster_name.to_string()),
        ("SLIPWAY_NODE", task.machine.name.to_string()),
    ]
}
