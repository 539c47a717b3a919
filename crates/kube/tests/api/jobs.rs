//! Jobs that are run once. Here nobody runs pods: the test ends the jobs itself.

use crate::world::{both, context, until};
use k8s_openapi::api::batch::v1::Job;
use kube::error::Kind;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Client};
use serde_json::{Value, json};
use std::time::Duration;

const LONG: Duration = Duration::from_mins(5);

fn job(name: &str) -> Job {
    let pod =
        json!({"restartPolicy": "Never", "containers": [{"name": "check", "image": "none:1"}]});
    let spec = json!({"template": {"spec": pod}});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn jobs(witness: &Client) -> Api<Job> {
    Api::namespaced(witness.clone(), "default")
}

/// What a job's controller says of one that has ended.
fn ended(before: &str, after: &str, reason: &str) -> Value {
    let now = "2026-11-01T10:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Test", "message": reason, "lastTransitionTime": now});
    let mut status = json!({"conditions": [condition(before), condition(after)], "startTime": now});
    if after == "Complete" {
        status["completionTime"] = json!(now);
    }
    json!({ "status": status })
}

/// Ends a job as soon as it is there, unless it is the one with this id.
async fn end(witness: &Client, name: &str, but: Option<String>, status: Value) {
    let jobs = jobs(witness);
    let there = async || {
        let found = jobs.get_opt(name).await.unwrap();
        found.is_some_and(|job| job.metadata.uid != but)
    };
    until("the job is there", there).await;
    let patch = Patch::Merge(&status);
    let params = PatchParams::default();
    jobs.patch_status(name, &params, &patch).await.unwrap();
}

#[tokio::test]
async fn a_job_passes_or_says_why_not_and_is_gone_afterwards() {
    let test = "jobs::a_job_passes_or_says_why_not_and_is_gone_afterwards";
    let Some((door, witness)) = both(test).await else {
        return;
    };
    let (cx, _, _) = context();
    let complete = ended("SuccessCriteriaMet", "Complete", "all done");
    let failed = ended("FailureTarget", "Failed", "it has reached its limit");
    let cases = [
        (complete, Ok(())),
        (
            failed,
            Err("its job failed: it has reached its limit".to_owned()),
        ),
    ];
    for (status, expected) in cases {
        let job = job("check");
        let running = door.run_job(&cx, &job, LONG);
        let (told, ()) = tokio::join!(running, end(&witness, "check", None, status));
        assert_eq!(told.unwrap(), expected);
        assert!(jobs(&witness).get_opt("check").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn what_an_earlier_attempt_left_does_not_count() {
    let test = "jobs::what_an_earlier_attempt_left_does_not_count";
    let Some((door, witness)) = both(test).await else {
        return;
    };
    let (cx, _, _) = context();
    let jobs = jobs(&witness);
    let left = jobs.create(&PostParams::default(), &job("left")).await;
    let old = left.unwrap().metadata.uid;
    let failed = ended("FailureTarget", "Failed", "an old story");
    end(&witness, "left", None, failed).await;
    let complete = ended("SuccessCriteriaMet", "Complete", "all done");
    let job = job("left");
    let running = door.run_job(&cx, &job, LONG);
    let (told, ()) = tokio::join!(running, end(&witness, "left", old, complete));
    assert_eq!(told.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_job_that_does_not_end_is_given_up_and_cleared_away() {
    let test = "jobs::a_job_that_does_not_end_is_given_up_and_cleared_away";
    let Some((door, witness)) = both(test).await else {
        return;
    };
    let (cx, cancel, _) = context();
    let told = Box::pin(door.run_job(&cx, &job("slow"), Duration::ZERO)).await;
    let why = told.unwrap().unwrap_err();
    assert_eq!(why, "its job did not end in time; pods: ");
    assert!(jobs(&witness).get_opt("slow").await.unwrap().is_none());
    cancel.cancel();
    let stopped = Box::pin(door.run_job(&cx, &job("slow"), LONG)).await;
    assert_eq!(stopped.unwrap_err().kind, Kind::Cancelled);
    let (cx, _, _) = context();
    let refused = Box::pin(door.run_job(&cx, &job("No-Name"), LONG)).await;
    assert_eq!(refused.unwrap_err().kind, Kind::Rejected);
}
