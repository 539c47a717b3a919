//! Plans a hundred clusters with ten pools each to their end, and tells how much memory that took.
//!
//! `hundred create` begins with nothing, `hundred upgrade` with clusters that serve. It reads no clock:
//! whoever runs it measures how long it takes (`cargo xtask bench plan`).

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it is a program that measures the planner, and no part of it"
)]

use model::admit::admit;
use model::cluster::Desired;
use model::name::Name;
use model::observed::Observed;
use model::source;
use model::time::Timestamp;
use plan::{Expansion, Journey, Known, Phase, View, expand, journey, plan, predict};
use std::collections::BTreeMap;
use std::process::ExitCode;

const CLUSTERS: u32 = 100;

/// Pools of compute machines; those of control machines are the tenth.
const POOLS: u32 = 9;

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// The manifest of the whole fleet.
fn manifest(version: &str) -> String {
    let pool = |name: &str| {
        format!(
            "      - {{name: {name}, providerSpec: {{name: lab, region: n}}, count: 3, \
             serverType: lite, image: debian-12}}\n"
        )
    };
    let compute: Vec<_> = (1..=POOLS).map(|n| format!("compute{n}")).collect();
    let pools: String = compute.iter().map(|name| pool(name)).collect();
    let (control, compute) = (pool("control"), compute.join(", "));
    let cluster = |n: u32| {
        format!(
            "      - {{name: c{n:03}, version: {version}, network: 10.16.{n}.0/24, \
             pools: {{control: [control], compute: [{compute}]}}}}\n"
        )
    };
    let clusters: String = (0..CLUSTERS).map(cluster).collect();
    format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: fleet}}
spec:
  providers: [{{name: lab, providerType: sandbox}}]
  nodePools:
    dynamic:
{control}{pools}  kubernetes:
    clusters:
{clusters}"
    )
}

fn expanded(version: &str, known: &[(Desired, Observed)]) -> Result<Vec<Expansion>, String> {
    let text = source::parse(&manifest(version)).map_err(|wrong| format!("{wrong:?}"))?;
    let manifest = admit(&text).map_err(|wrong| format!("{wrong:?}"))?;
    let known: Vec<_> = known
        .iter()
        .map(|(desired, observed)| Known {
            desired,
            observed,
            intents: &[],
            open: &[],
        })
        .collect();
    let project = Name::default_project();
    let expanded = expand(&project, &manifest, &known, &BTreeMap::new(), NOW);
    expanded.map_err(|wrong| format!("{wrong:?}"))
}

fn view<'a>(desired: &'a Desired, observed: &'a Observed) -> View<'a> {
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
        now: NOW,
    }
}

/// A cluster that serves: what was planned was done until nothing was left.
fn built(desired: Desired) -> (Desired, Observed) {
    let mut observed = Observed::default();
    loop {
        let step = plan(&view(&desired, &observed));
        if step.tasks.is_empty() {
            return (desired, observed);
        }
        for task in &step.tasks {
            predict(&mut observed, &task.machine, &task.action, NOW);
        }
    }
}

/// All journeys, one after the other as the server tells them; how many steps they have.
fn travelled(fleet: &[(Desired, Observed)]) -> Result<usize, String> {
    let journeys: Vec<Journey> = fleet
        .iter()
        .map(|(desired, observed)| journey(&view(desired, observed)))
        .collect();
    let blocks = || journeys.iter().flat_map(|journey| &journey.blocks);
    let steps = blocks().flat_map(|block| block.rounds.iter().flatten());
    match journeys.iter().find(|journey| journey.ends != Phase::Done) {
        None => Ok(steps.count()),
        Some(waits) => Err(waits.to_string()),
    }
}

fn run(what: &str) -> Result<usize, String> {
    let first = expanded("v1.34.0", &[])?.into_iter();
    let fleet: Vec<_> = match what {
        "create" => first
            .map(|one| (one.desired, Observed::default()))
            .collect(),
        "upgrade" => {
            let built: Vec<_> = first.map(|one| built(one.desired)).collect();
            let next = expanded("v1.35.0", &built)?.into_iter();
            let next = next.zip(built);
            next.map(|(one, (_, seen))| (one.desired, seen)).collect()
        }
        _ => return Err("usage: fleet create|upgrade".to_owned()),
    };
    travelled(&fleet)
}

fn main() -> ExitCode {
    let what = std::env::args().nth(1).unwrap_or_default();
    match run(&what) {
        Ok(steps) => println!("steps: {steps}"),
        Err(wrong) => {
            println!("{wrong}");
            return ExitCode::FAILURE;
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.split_whitespace().next());
    println!("peak KiB: {}", peak.unwrap_or("unknown"));
    ExitCode::SUCCESS
}
