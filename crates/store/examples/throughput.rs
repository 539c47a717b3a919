//! How many tasks a second a store takes from plan to done, each durable when it is answered.
//!
//! `cargo xtask bench` runs it on every body: `throughput PLACE`, where the place is an empty data
//! directory or the address of an empty database. The questions are those that the engine asks, by
//! several planners and workers side by side; only the driver is missing, for whom every task is
//! done as soon as it is claimed, and sees nothing. The answer is one line of JSON.

#![expect(
    clippy::print_stdout,
    reason = "a command for people; what it prints is its result"
)]

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use model::admit::admit;
use model::id::ClusterId;
use model::name::Name;
use model::source;
use model::task::State;
use model::time::Timestamp;
use store::{Claim, Ended, Recorded, Store, Submission};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What is planned: one task to make each machine.
const MANIFESTS: u32 = 10;
const CLUSTERS: u32 = 20;
const COMPUTE: u32 = 199;

/// As many as the engine has.
const PLANNERS: usize = 16;

/// Workers, and the most tasks that each takes at once: as the engine does.
const WORKERS: usize = 4;
const BATCH: u32 = 256;
const PER_CLUSTER: u32 = 256;
const LEASE: Duration = Duration::from_secs(30);

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    let place = std::env::args().nth(1).ok_or("usage: throughput PLACE")?;
    let store = if place.starts_with("postgres://") {
        Store::connect(&place)?
    } else {
        Store::open(Path::new(&place))?
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (tasks, took) = runtime.block_on(measure(&store))?;
    println!(
        "{{\"tasks\": {tasks}, \"seconds\": {:.3}}}",
        took.as_secs_f64()
    );
    Ok(())
}

/// Plans everything and works it off; answers how many tasks that were, and how long it took.
async fn measure(store: &Store) -> Result<(u64, Duration), Failed> {
    let clusters = submit_all(store).await?;
    let began = Instant::now();
    work_off(store, clusters).await?;
    let took = began.elapsed();
    let done = store.counts().await?.tasks.remove(&State::Done);
    Ok((done.unwrap_or(0), took))
}

/// Declares everything; nothing is planned yet.
async fn submit_all(store: &Store) -> Result<Vec<ClusterId>, Failed> {
    let mut clusters = Vec::new();
    for number in 0..MANIFESTS {
        let text = manifest(number);
        let parsed = source::parse(&text).map_err(|fault| format!("{fault:?}"))?;
        let submission = Submission {
            project: Name::default_project(),
            manifest: admit(&parsed).map_err(|faults| format!("{faults:?}"))?,
            text,
            author: "bench".into(),
            parent: None,
            allow: store::Allowed::default(),
            key: None,
        };
        let submitted = store.submit(submission, now()).await?;
        clusters.extend(submitted.changed.into_iter().map(|(id, _)| id));
    }
    Ok(clusters)
}

fn manifest(number: u32) -> String {
    let clusters: String = (0..CLUSTERS)
        .map(|n| {
            let all = number * CLUSTERS + n;
            format!(
                "      - {{name: c{all:05}, version: v1.34.0, network: 10.{}.{}.0/24, \
                 pools: {{control: [control], compute: [compute]}}}}\n",
                all / 250,
                all % 250
            )
        })
        .collect();
    format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m{number:03}}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: control, providerSpec: {{name: lab, region: n}}, count: 1, serverType: small, image: debian-12}}
      - {{name: compute, providerSpec: {{name: lab, region: n}}, count: {COMPUTE}, serverType: small, image: debian-12}}
  kubernetes:
    clusters:
{clusters}"
    )
}

/// Plans each cluster once, while workers take what is due until nothing is left.
async fn work_off(store: &Store, clusters: Vec<ClusterId>) -> Result<(), Failed> {
    let machines = u64::from(MANIFESTS * CLUSTERS * (1 + COMPUTE));
    let left = watch::Sender::new(machines);
    let commits = watch::Sender::new(0_u64);
    let clusters = Arc::new(Mutex::new(clusters));
    let mut hands = JoinSet::new();
    for _ in 0..PLANNERS {
        hands.spawn(plan_all(
            store.clone(),
            Arc::clone(&clusters),
            commits.clone(),
        ));
    }
    for number in 0..WORKERS {
        let (commits, left) = (commits.subscribe(), left.clone());
        hands.spawn(work(
            store.clone(),
            format!("worker-{number}"),
            commits,
            left,
        ));
    }
    while let Some(ended) = hands.join_next().await {
        ended??;
    }
    Ok(())
}

async fn plan_all(
    store: Store,
    clusters: Arc<Mutex<Vec<ClusterId>>>,
    commits: watch::Sender<u64>,
) -> Result<(), Failed> {
    loop {
        let next = clusters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let Some(cluster) = next else { return Ok(()) };
        let view = store.cluster_view(cluster).await?;
        let view = view.ok_or_else(|| format!("{cluster} is gone"))?;
        let now = now();
        let plan = plan::plan(&view.view(now));
        if let Some(note) = plan::check(&view.view(now), &plan).first() {
            return Err(format!("the checker says of {cluster}: {note}").into());
        }
        store.commit(plan, now).await?;
        commits.send_modify(|commits| *commits += 1);
    }
}

async fn work(
    store: Store,
    worker: String,
    mut commits: watch::Receiver<u64>,
    left: watch::Sender<u64>,
) -> Result<(), Failed> {
    let mut all_done = left.subscribe();
    while *all_done.borrow() > 0 {
        // Marked as seen before looking: what is committed meanwhile wakes us again.
        commits.borrow_and_update();
        let claims = store
            .claim(&worker, BATCH, PER_CLUSTER, LEASE, now())
            .await?;
        if claims.is_empty() {
            // Others may have their hands on what is due; the end wakes us too.
            tokio::select! {
                _ = commits.changed() => {}
                _ = all_done.wait_for(|left| *left == 0) => {}
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
            continue;
        }
        let mut records = JoinSet::new();
        for claim in claims {
            records.spawn(record(store.clone(), claim));
        }
        while let Some(recorded) = records.join_next().await {
            recorded??;
            left.send_modify(|left| *left -= 1);
        }
    }
    Ok(())
}

/// Says that a task was done.
async fn record(store: Store, claim: Claim) -> Result<(), Failed> {
    let task = claim.task.id;
    let recorded = store
        .record(
            claim,
            Ended::Done,
            Vec::new(),
            Vec::new(),
            Vec::new(),
            now(),
        )
        .await?;
    if recorded == Recorded::LeaseLost {
        return Err(format!("the lease of {task} was lost").into());
    }
    Ok(())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::default().plus(since.unwrap_or_default())
}
