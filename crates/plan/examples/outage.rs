//! Plans clusters of which a third fell sick at once, and tells what a pass comes to.
//!
//! `outage large` is one cluster of 3,000 nodes, `outage many` a thousand of 30. The words `half` and
//! `rolling` behind it let more fall sick than are repaired, and have all pools become another kind
//! meanwhile. It reads no clock: whoever runs it measures how long it takes; `none` instead of
//! either makes the clusters and plans nothing.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it is a program that measures the planner, and no part of it"
)]

use model::admit::admit;
use model::cluster::{Desired, Role};
use model::name::Name;
use model::observed::{NodeFact, Observed};
use model::source;
use model::time::Timestamp;
use plan::{Known, View, advance, check, check_advance, expand, plan, predict};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

const BORN: Timestamp = Timestamp::from_millis(1_000);

/// Pools of compute machines.
const POOLS: u32 = 3;

/// Who falls sick: every third node, or every second.
const EVERY: usize = 3;
const EVERY_HALF: usize = 2;

fn manifest(nodes: u32, kind: &str) -> String {
    let pool = |name: &str, count: u32| {
        format!(
            "      - {{name: {name}, providerSpec: {{name: lab, region: n}}, count: {count}, \
             serverType: {kind}, image: debian-12, replace: true}}\n"
        )
    };
    let compute: Vec<_> = (1..=POOLS).map(|n| format!("compute{n}")).collect();
    let pools = compute.iter().map(|name| pool(name, (nodes - 3) / POOLS));
    let (control, pools) = (pool("control", 3), pools.collect::<String>());
    format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: fleet}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
{control}{pools}  kubernetes:
    clusters:
      - {{name: edge, version: v1.34.0, network: 10.16.0.0/16, \
         pools: {{control: [control], compute: [{}]}}}}\n",
        compute.join(", ")
    )
}

fn expanded(nodes: u32, kind: &str, known: &[Known<'_>]) -> Result<Desired, String> {
    let text = source::parse(&manifest(nodes, kind)).map_err(|wrong| format!("{wrong:?}"))?;
    let manifest = admit(&text).map_err(|wrong| format!("{wrong:?}"))?;
    let project = Name::default_project();
    let expanded = expand(&project, &manifest, known, &BTreeMap::new(), BORN);
    let expanded = expanded.map_err(|wrong| format!("{wrong:?}"))?;
    let first = expanded.into_iter().next().ok_or("no cluster")?;
    Ok(first.desired)
}

fn view<'a>(desired: &'a Desired, observed: &'a Observed, now: Timestamp) -> View<'a> {
    View {
        desired,
        observed,
        open: &[],
        ledger: &[],
        elsewhere: &[],
        intents: &[],
        blocked: &[],
        shut_out: &[],
        missing: &[],
        claimed: &[],
        vain: &[],
        parent: 0,
        now,
    }
}

/// A cluster that serves: what was planned was done until nothing was left.
fn built(desired: &Desired) -> Observed {
    let mut observed = Observed::default();
    loop {
        let step = plan(&view(desired, &observed, BORN));
        if step.tasks.is_empty() {
            return observed;
        }
        for task in &step.tasks {
            predict(&mut observed, &task.machine, &task.action, BORN);
        }
    }
}

/// Every n-th compute node falls sick, and is seen to be a while later.
fn sicken(desired: &Desired, observed: &mut Observed, every: usize, now: Timestamp) {
    let compute = desired.machines.iter();
    let compute = compute.filter(|machine| machine.role == Role::Compute);
    for machine in compute.step_by(every) {
        let seen = observed.machines.entry(machine.id).or_default();
        if let Some((NodeFact::Joined { ready, .. }, at)) = &mut seen.node {
            (*ready, *at) = (false, now);
        }
        observed.sick.insert(machine.id, BORN);
    }
}

/// What the engine does in one pass, and how much comes of it.
fn pass(desired: &Desired, observed: &Observed, now: Timestamp) -> Result<usize, String> {
    let (mut desired, mut told) = (desired.clone(), 0);
    loop {
        let view = view(&desired, observed, now);
        let Some(step) = advance(&view) else { break };
        if let Some(note) = check_advance(&view, &step).first() {
            return Err(note.to_string());
        }
        (desired, told) = (step.desired, told + 1);
    }
    let view = view(&desired, observed, now);
    let planned = plan(&view);
    match check(&view, &planned).first() {
        None => Ok(told + planned.tasks.len() + planned.held.len()),
        Some(note) => Err(note.to_string()),
    }
}

fn run(words: &[String]) -> Result<usize, String> {
    let said = |word: &str| words.iter().any(|said| said == word);
    let (nodes, clusters) = match words.first().map(String::as_str) {
        Some("large" | "none") => (3_000, 1),
        Some("many") => (30, 1_000),
        _ => return Err("usage: outage large|many|none [half] [rolling]".to_owned()),
    };
    let mut desired = expanded(nodes, "small", &[])?;
    let mut observed = built(&desired);
    if said("rolling") {
        let known = Known {
            desired: &desired,
            observed: &observed,
            intents: &[],
            open: &[],
        };
        desired = expanded(nodes, "large", &[known])?;
    }
    let every = if said("half") { EVERY_HALF } else { EVERY };
    let now = BORN.plus(Duration::from_mins(20));
    sicken(&desired, &mut observed, every, now);
    if said("none") {
        return Ok(0);
    }
    (0..clusters).map(|_| pass(&desired, &observed, now)).sum()
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(told) => println!("steps, tasks and reasons: {told}"),
        Err(wrong) => {
            println!("{wrong}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
