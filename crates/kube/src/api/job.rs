//! `Job`s that are run once and cleared away: what they said, and whether they passed.

use super::{Door, unless_cancelled};
use crate::error::{Error, Kind};
use driver::Context;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1 as core;
use kube_client::Api;
use kube_client::api::{DeleteParams, LogParams, PostParams};
use std::time::{Duration, Instant};

/// How long a pod may take to tell what it said.
const HEAR_MAX: Duration = Duration::from_secs(20);

/// How often we look.
const LOOK: Duration = Duration::from_secs(1);

/// How long pods may take to go that ran before.
const GONE_MAX: Duration = Duration::from_mins(2);

/// How much of what a pod said is shown.
const LINES: i64 = 40;

impl Door {
    /// Runs a `Job` until it ends, for as long as `cap`, shows what it said, and clears it away; says
    /// why it did not pass. One of that name that ran before is cleared away first.
    pub async fn run_job(
        &self,
        cx: &Context,
        job: &batch::Job,
        cap: Duration,
    ) -> Result<Result<(), String>, Error> {
        let namespace = job.metadata.namespace.as_deref().unwrap_or("default");
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let jobs: Api<batch::Job> = Api::namespaced(self.client.clone(), namespace);
        let what = format!("run Job {namespace}/{name}");
        unless_cancelled(cx, &what, self.cleared(&jobs, name)).await?;
        let params = PostParams::default();
        let made = self.ask(&what, jobs.create(&params, job));
        let made = unless_cancelled(cx, &what, made).await?;
        let pods = selector(made.metadata.uid.as_deref().unwrap_or_default());
        let ended = self.ended(&jobs, name, &pods, cap);
        let ended = unless_cancelled(cx, &what, ended).await?;
        self.heard(cx, namespace, &pods).await;
        unless_cancelled(cx, &what, self.cleared(&jobs, name)).await?;
        Ok(ended)
    }

    /// Waits until a `Job` has ended.
    async fn ended(
        &self,
        jobs: &Api<batch::Job>,
        name: &str,
        pods: &str,
        cap: Duration,
    ) -> Result<Result<(), String>, Error> {
        let began = Instant::now();
        let what = format!("look at Job {name}");
        loop {
            let look = self.ask(&what, jobs.get(name)).await?;
            let status = look.status.unwrap_or_default();
            for condition in status.conditions.unwrap_or_default() {
                match (condition.type_.as_str(), condition.status.as_str()) {
                    ("Complete", "True") => return Ok(Ok(())),
                    ("Failed", "True") => {
                        let why = condition.message.unwrap_or_default();
                        return Ok(Err(format!("its job failed: {why}")));
                    }
                    _ => {}
                }
            }
            let pods = self.pods(jobs.namespace(), pods).await?;
            let mut lacking = pods.iter().filter_map(|pod| pod.lacks_image());
            if let Some(waiting) = lacking.next() {
                let (image, message) = (&waiting.image, &waiting.message);
                return Ok(Err(format!("its image {image} cannot be had: {message}")));
            }
            if began.elapsed() >= cap {
                let phases: Vec<_> = pods.iter().map(|pod| pod.phase.as_str()).collect();
                let phases = phases.join(", ");
                return Ok(Err(format!("its job did not end in time; pods: {phases}")));
            }
            tokio::time::sleep(LOOK.min(cap)).await;
        }
    }

    /// Shows what the pods of a `Job` said last; whoever cannot be heard fails nothing.
    async fn heard(&self, cx: &Context, namespace: &str, pods: &str) {
        let Ok(pods) = self.pods(Some(namespace), pods).await else {
            return;
        };
        let api: Api<core::Pod> = Api::namespaced(self.client.clone(), namespace);
        for pod in pods {
            match self.said(&api, &pod.name).await {
                Ok(said) => {
                    for line in said.lines() {
                        cx.log(&format!("{}: {line}", pod.name));
                    }
                }
                Err(why) => cx.log(&format!("{} could not be heard: {why}", pod.name)),
            }
        }
    }

    /// What a pod said last. A kubelet that was just started again may not be asked at once.
    async fn said(&self, api: &Api<core::Pod>, pod: &str) -> Result<String, String> {
        let params = LogParams {
            tail_lines: Some(LINES),
            ..LogParams::default()
        };
        let began = Instant::now();
        loop {
            let rest = HEAR_MAX.saturating_sub(began.elapsed());
            let hear = self.ask("hear it", api.logs(pod, &params));
            let why = match tokio::time::timeout(rest, hear).await {
                Ok(Ok(said)) => return Ok(said),
                Ok(Err(error)) => error.what,
                Err(_elapsed) => return Err("it did not answer in time".to_owned()),
            };
            if began.elapsed() + LOOK >= HEAR_MAX {
                return Err(why);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Removes a `Job` with its pods, and waits until it is gone.
    async fn cleared(&self, jobs: &Api<batch::Job>, name: &str) -> Result<(), Error> {
        let began = Instant::now();
        let (what, params) = (format!("remove Job {name}"), DeleteParams::background());
        loop {
            match self.ask(&what, jobs.delete(name, &params)).await {
                Ok(_) => {}
                Err(error) if error.kind == Kind::Absent => return Ok(()),
                Err(error) => return Err(error),
            }
            if began.elapsed() >= GONE_MAX {
                let what = format!("Job {name} or one of its pods does not go");
                return Err(Error::new(Kind::PodLingers, what));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// By which label the pods of a `Job` are known; those of one that had its name before are not.
fn selector(uid: &str) -> String {
    format!("batch.kubernetes.io/controller-uid={uid}")
}
