//! What must pass before a node that was taken out of service serves again: `upgradeGates`.

use super::fields::{Fields, span, wrong};
use crate::fault::{Code, Faults};
use crate::gate::{Check, Gate};
use crate::source::Value;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

/// The most gates of one cluster: they are asked one after the other at every node.
const GATES_MAX: usize = 20;

/// The longest name: the names of `Job`s are made of it.
pub(crate) const NAME_MAX: usize = 30;

/// The most words of a command.
const WORDS_MAX: usize = 100;

/// The gates that a cluster declares, in their order.
pub(super) fn of_cluster(fields: &mut Fields<'_>, faults: &mut Faults) -> Vec<Gate> {
    let (mut gates, mut names) = (Vec::<Gate>::new(), BTreeSet::new());
    for (path, value) in fields.items("upgradeGates", GATES_MAX, faults) {
        let Some(mut gate) = Fields::open(value, path.as_str(), faults) else {
            continue;
        };
        let name = gate.name("name", NAME_MAX, faults);
        let check = check_of(&mut gate, faults);
        let patience: Option<Patience> = gate.optional_parsed("timeout", faults);
        gate.finish(faults);
        if let Some(name) = name.as_ref().filter(|name| !names.insert((*name).clone())) {
            let message = format!("found `{name}` again; every gate has a name of its own");
            faults.note(format!("{path}.name"), Code::Duplicate, message);
            continue;
        }
        let (Some(name), Some(check)) = (name, check) else {
            continue;
        };
        let patience = patience.map_or(Gate::PATIENCE, |patience| patience.0);
        gates.push(Gate {
            name,
            check,
            patience,
        });
    }
    let all: Duration = gates.iter().map(|gate| gate.patience).sum();
    if all > Gate::PATIENCE_MAX {
        let (all, most) = (all.as_secs() / 60, Gate::PATIENCE_MAX.as_secs() / 60);
        let message = format!("found {all}m for all gates together, allowed: at most {most}m");
        faults.note(fields.path("upgradeGates"), Code::Range, message);
    }
    gates
}

fn check_of(gate: &mut Fields<'_>, faults: &mut Faults) -> Option<Check> {
    let asks = (gate.has("command"), gate.has("job"));
    let (command, job) = (command_of(gate, faults), job_of(gate, faults));
    match asks {
        (true, false) => command.map(Check::Command),
        (false, true) => job.map(Check::Job),
        (true, true) => {
            let message = "found a command and a job, allowed: one of them";
            faults.note(gate.path("command"), Code::Format, message);
            None
        }
        (false, false) => {
            let message = "found nothing, allowed: a command (a list of words) or a job";
            faults.note(gate.path("command"), Code::Required, message);
            None
        }
    }
}

fn command_of(gate: &mut Fields<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    let path = gate.path("command");
    let items = gate.items("command", WORDS_MAX, faults);
    if items.is_empty() && gate.empty_list("command") {
        let message = "found no word, allowed: a program and its arguments";
        faults.note(path, Code::Required, message);
    }
    let mut words = Vec::new();
    let count = items.len();
    for (path, item) in items {
        match item {
            Value::Text(word) if word.contains('\0') => {
                let message = "found a zero byte, which no argument can have";
                faults.note(path, Code::Format, message);
            }
            Value::Text(word) => words.push(word.clone()),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_) => wrong(faults, path, item, "a text"),
        }
    }
    (count > 0 && words.len() == count).then_some(words)
}

/// A `Job`. What its pods do is for Kubernetes to judge; that it is one is seen here, before a node
/// is taken out of service for it.
fn job_of(gate: &mut Fields<'_>, faults: &mut Faults) -> Option<Json> {
    let path = gate.path("job");
    let value = gate.optional("job")?;
    if !matches!(value, Value::Map(_)) {
        wrong(faults, path, value, "a Job as Kubernetes knows it");
        return None;
    }
    let job = value.to_json();
    let kind = (job["apiVersion"].as_str(), job["kind"].as_str());
    if kind != (Some("batch/v1"), Some("Job")) {
        let (version, kind) = (kind.0.unwrap_or("none"), kind.1.unwrap_or("none"));
        let message = format!(
            "found apiVersion: {version} and kind: {kind}, allowed: apiVersion: batch/v1 and kind: Job"
        );
        faults.note(path, Code::Format, message);
        return None;
    }
    let pod = &job["spec"]["template"]["spec"];
    let ends = matches!(pod["restartPolicy"].as_str(), Some("Never" | "OnFailure"));
    if !ends && !pod["restartPolicy"].is_null() {
        let path = format!("{path}.spec.template.spec.restartPolicy");
        let message = "found a pod that never ends, allowed: Never or OnFailure";
        faults.note(path, Code::Format, message);
        return None;
    }
    let path = format!("{path}.spec.template.spec.containers");
    contained(&pod["containers"], path, faults).then_some(job)
}

/// Whether there are containers, and each has a name and an image.
fn contained(containers: &Json, path: String, faults: &mut Faults) -> bool {
    let containers = containers.as_array().map(Vec::as_slice);
    let Some(containers @ [_, ..]) = containers else {
        let message = "found no container, allowed: at least one";
        faults.note(path, Code::Required, message);
        return false;
    };
    let mut whole = true;
    for (at, container) in containers.iter().enumerate() {
        for field in ["name", "image"] {
            if container[field].as_str().is_none_or(str::is_empty) {
                let path = format!("{path}[{at}].{field}");
                faults.note(
                    path,
                    Code::Required,
                    "found no text; this field is required",
                );
                whole = false;
            }
        }
    }
    whole
}

/// Why a text is no time that a gate may take.
#[derive(Debug, thiserror::Error)]
#[error("a gate is asked for 1m to 50m; a time is a whole number of minutes, such as 30m")]
struct Error;

/// For how long a gate is asked again.
struct Patience(Duration);

impl FromStr for Patience {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let allowed = Duration::from_mins(1)..=Gate::PATIENCE_MAX;
        let span = span(text).filter(|span| allowed.contains(span));
        span.map(Self).ok_or(Error)
    }
}
