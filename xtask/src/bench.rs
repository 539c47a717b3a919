//! Measures what was promised, on a release build, and prints it beside the budget.
//!
//! Budgets are checked here and never by a test: a test that depends on the clock of a busy
//! machine proves the machine. Where the rival cannot run on the same machine, its published
//! figure stands in its column. Words choose a part, or a body of the store; without any all
//! are measured.

mod body;
mod client;
mod environments;
mod hosts;
mod kubernetes;
mod latency;
mod lists;
mod planner;
mod process;
mod sse;
mod streams;
mod tasks;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::server::Server;
use crate::workspace;
use body::Body;
use client::Client;
use process::Usage;

/// How long the fleet is left alone before and while its idle cost is measured.
const SETTLE: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_mins(1);

/// Nodes of the large cluster.
const NODES: u32 = 1_000;

/// What can be measured.
const PARTS: &[&str] = &[
    "worlds",
    "plan",
    "fleet",
    "large",
    "tasks",
    "lists",
    "streams",
    "environments",
    "hosts",
    "kubernetes",
];

/// One line of the table.
struct Row {
    what: String,
    ours: String,
    rival: String,
    budget: &'static str,
    met: bool,
}

impl Row {
    /// What could not be measured, and why.
    fn unmeasured(what: &str, reason: &str, budget: &'static str) -> Self {
        Self {
            what: what.to_owned(),
            ours: "not measured".to_owned(),
            rival: reason.to_owned(),
            budget,
            met: false,
        }
    }
}

/// Prints the table; fails when a budget is not met.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let known = || PARTS.iter().chain(body::NAMES).copied();
    ensure!(
        arguments
            .iter()
            .all(|word| known().any(|name| name == word)),
        "usage: cargo xtask bench [WORD]..., of {}",
        known().collect::<Vec<_>>().join(", ")
    );
    // Of each kind of word those that are named, or all.
    let wanted = |word: &str, kind: &[&str]| {
        let mut named = arguments
            .iter()
            .filter(|named| kind.contains(&named.as_str()));
        named.clone().next().is_none() || named.any(|named| named == word)
    };
    let part = |word| wanted(word, PARTS);
    let program = workspace::target_directory()?.join("release/slipway");
    // Hosts, tasks and the planner are measured by programs of their own.
    if [
        "fleet",
        "large",
        "lists",
        "streams",
        "environments",
        "kubernetes",
    ]
    .into_iter()
    .any(part)
    {
        let built = workspace::cargo()
            .args(["build", "--release", "--package", "slipway"])
            .status();
        ensure!(
            built.context("could not start cargo")?.success(),
            "the release build failed"
        );
    }
    let mut rows = Vec::new();
    planner::measure(part, &mut rows)?;
    if part("fleet") {
        measure_fleet(&program, &mut rows)?;
    }
    if part("large") {
        measure_large_cluster(&program, &mut rows)?;
    }
    if ["tasks", "lists", "streams", "environments"]
        .into_iter()
        .any(part)
    {
        let bodies = Body::all(|name| wanted(name, body::NAMES))?;
        measure_bodies(&program, &bodies, part, &mut rows)?;
    }
    if part("hosts") {
        hosts::measure(&mut rows)?;
    }
    if part("kubernetes") {
        rows.push(kubernetes::measure(&program)?);
    }

    println!(
        "{:<52} {:>24} {:>34} {:>26}",
        "WHAT", "OURS", "RIVAL", "BUDGET"
    );
    for row in &rows {
        println!("{row}");
    }
    let met = rows.iter().all(|row| row.met);
    Ok(if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What is measured on every body of the store.
fn measure_bodies(
    program: &Path,
    bodies: &[Body],
    part: impl Fn(&'static str) -> bool,
    rows: &mut Vec<Row>,
) -> Result<()> {
    if part("tasks") {
        tasks::measure(bodies, rows)?;
    }
    if part("lists") {
        lists::measure(program, bodies, rows)?;
    }
    if part("streams") {
        streams::measure(program, bodies, rows)?;
    }
    if part("environments") {
        environments::measure(program, bodies, rows)?;
    }
    Ok(())
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = if self.met { "met" } else { "NOT MET" };
        write!(
            f,
            "{:<52} {:>24} {:>34} {:>26}  {met}",
            self.what, self.ours, self.rival, self.budget
        )
    }
}

/// A directory under `target/bench`, empty at the start.
fn fresh(name: &str) -> Result<std::path::PathBuf> {
    let directory = workspace::target_directory()?.join("bench").join(name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)
            .with_context(|| format!("could not clear {}", directory.display()))?;
    }
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("could not make {}", directory.display()))?;
    Ok(directory)
}

/// A thousand clusters of three control and three compute machines: to ready, then idle.
fn measure_fleet(program: &Path, rows: &mut Vec<Row>) -> Result<()> {
    eprintln!("building 1,000 simulated clusters");
    let directory = fresh("fleet")?;
    let server = Server::start(program, &directory)?;
    let client = Client::new(&server)?;
    let clusters: Vec<_> = (0..1_000)
        .map(|n| {
            cluster(
                &format!("c{n:04}"),
                "v1.34.0",
                &format!("10.{}.{}.0/24", 16 + n / 250, n % 250),
            )
        })
        .collect();
    let text = manifest("fleet", 3, 3, &clusters);
    let began = Instant::now();
    client.apply(&text)?;
    client.wait_until_done("fleet", Duration::from_mins(10))?;
    let took = began.elapsed();
    rows.push(Row {
        what: "1,000 clusters (3 control + 3 compute) to ready".to_owned(),
        ours: format!("{:.1} s", took.as_secs_f64()),
        rival: "Cluster API in memory: ~15 min".to_owned(),
        budget: "< 60 s",
        met: took < Duration::from_mins(1),
    });

    eprintln!("measuring them idle for {} s", IDLE.as_secs());
    std::thread::sleep(SETTLE);
    let before = Usage::of(server.process())?;
    std::thread::sleep(IDLE);
    let after = Usage::of(server.process())?;
    let cores = after.cpu.saturating_sub(before.cpu).as_secs_f64() / IDLE.as_secs_f64();
    rows.push(Row {
        what: "idle cost of those 1,000".to_owned(),
        ours: format!("{cores:.3} core, {} MiB", after.resident_mib),
        rival: "~19 cores before fixes".to_owned(),
        budget: "< 0.1 core, < 256 MiB",
        met: cores < 0.1 && after.resident_mib < 256,
    });
    Ok(())
}

/// One node more in a cluster of a thousand, and the journey of rolling them all.
fn measure_large_cluster(program: &Path, rows: &mut Vec<Row>) -> Result<()> {
    eprintln!("building one cluster of {NODES} nodes");
    let directory = fresh("large")?;
    let server = Server::start(program, &directory)?;
    let client = Client::new(&server)?;
    let large = |compute: u32, version: &str| {
        manifest(
            "large",
            3,
            compute,
            &[cluster("large", version, "10.16.0.0/20")],
        )
    };
    client.apply(&large(NODES - 3, "v1.34.0"))?;
    client.wait_until_done("large", Duration::from_mins(10))?;

    let tasks_before = client.task_ids("large")?;
    let began = Instant::now();
    client.apply(&large(NODES - 2, "v1.34.0"))?;
    let planned = loop {
        let tasks = client.newest_task("large")?;
        if !tasks_before.contains(&tasks) {
            break began.elapsed();
        }
        ensure!(
            began.elapsed() < Duration::from_secs(30),
            "the change was not planned in 30 s"
        );
    };
    client.wait_until_done("large", Duration::from_mins(10))?;
    let touched = client.machines_touched("large", &tasks_before)?;
    rows.push(Row {
        what: "one node added to a 1,000-node cluster, planned".to_owned(),
        ours: format!("{} ms, {touched} touched", planned.as_millis()),
        rival: "Kubespray: ~60 min the operation".to_owned(),
        budget: "< 50 ms, one node touched",
        met: planned < Duration::from_millis(50) && touched == 1,
    });

    let file = directory.join("upgrade.yaml");
    std::fs::write(&file, large(NODES - 2, "v1.35.0")).context("could not write the manifest")?;
    let began = Instant::now();
    let told = client
        .command(program, &["plan", "-f"])
        .arg(&file)
        .output()
        .context("could not run slipway plan")?;
    let took = began.elapsed();
    ensure!(
        told.status.success(),
        "slipway plan failed: {}",
        String::from_utf8_lossy(&told.stderr)
    );
    rows.push(Row {
        what: "journey of rolling 1,000 nodes, printed".to_owned(),
        ours: format!("{:.2} s", took.as_secs_f64()),
        rival: "none shows one".to_owned(),
        budget: "< 2 s",
        met: took < Duration::from_secs(2),
    });
    Ok(())
}

fn cluster(name: &str, version: &str, network: &str) -> String {
    format!(
        "      - {{name: {name}, version: {version}, network: {network}, pools: {{control: [control], compute: [compute]}}}}\n"
    )
}

fn manifest(name: &str, control: u32, compute: u32, clusters: &[String]) -> String {
    format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: {name}}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: control, providerSpec: {{name: lab, region: n}}, count: {control}, serverType: small, image: debian-12}}
      - {{name: compute, providerSpec: {{name: lab, region: n}}, count: {compute}, serverType: small, image: debian-12}}
  kubernetes:
    clusters:
{}",
        clusters.concat()
    )
}
