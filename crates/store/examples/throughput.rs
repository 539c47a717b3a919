//! How many tasks a second a store takes from plan to done, each durable when it is answered.
//!
//! `cargo xtask bench` runs it on every body: `throughput PLACE`, where the place is an empty data
//! directory or the address of an empty database. The questions are those that the engine asks, by
//! several planners and workers side by side; only the driver is missing, for whom every task is
//! done as soon as it is claimed. The answer is one line of JSON.

#![expect(
    clippy::print_stdout,
    reason = "a command for people; what it prints is its result"
)]

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use model::admit::admit;
use model::id::ClusterId;
use model::name::Name;
use model::observed::{ControlPlaneFact, Fact, MachineFact, NodeFact, Observation};
use model::source;
use model::task::{Action, State, Task};
use model::time::Timestamp;
use plan::Phase;
use store::{Claim, CommitError, Ended, Recorded, Store, Submission};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// What is built: one task to make each machine, and one to make it a node.
const MANIFESTS: u32 = 20;
const CLUSTERS: u32 = 100;
const COMPUTE: u32 = 9;

/// As many as the engine has.
const PLANNERS: usize = 16;

/// Workers, and the most tasks that each takes at once.
const WORKERS: usize = 8;
const BATCH: u32 = 64;
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

/// Builds everything; answers how many tasks that were, and how long it took.
async fn measure(store: &Store) -> Result<(u64, Duration), Failed> {
    let clusters = submit_all(store).await?;
    let began = Instant::now();
    build(store, &clusters).await?;
    let took = began.elapsed();
    let done = store.counts().await?.tasks.remove(&State::Done);
    let done = done.unwrap_or(0);
    let machines = u64::from(MANIFESTS * CLUSTERS * (1 + COMPUTE));
    if done != 2 * machines {
        return Err(format!("{machines} machines took {done} tasks").into());
    }
    Ok((done, took))
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
            allow_blast: None,
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

/// What planners and workers share.
struct Yard {
    store: Store,
    /// Clusters that should be planned, each at most once.
    agenda: mpsc::UnboundedSender<ClusterId>,
    listed: Mutex<BTreeSet<ClusterId>>,
    /// Counts the commits that made tasks.
    commits: watch::Sender<u64>,
    /// Clusters that are not as declared yet.
    open: watch::Sender<BTreeSet<ClusterId>>,
}

impl Yard {
    fn list(&self, cluster: ClusterId) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a receiver the work is over, and nobody asks what is listed.
        if listed.insert(cluster) && self.agenda.send(cluster).is_err() {
            listed.clear();
        }
    }

    fn unlist(&self, cluster: ClusterId) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.remove(&cluster);
    }
}

/// Plans and works until every cluster is as declared.
async fn build(store: &Store, clusters: &[ClusterId]) -> Result<(), Failed> {
    let (agenda, to_plan) = mpsc::unbounded_channel();
    let yard = Arc::new(Yard {
        store: store.clone(),
        agenda,
        listed: Mutex::default(),
        commits: watch::Sender::new(0),
        open: watch::Sender::new(clusters.iter().copied().collect()),
    });
    for cluster in clusters {
        yard.list(*cluster);
    }
    let to_plan = Arc::new(tokio::sync::Mutex::new(to_plan));
    let mut hands = JoinSet::new();
    for _ in 0..PLANNERS {
        hands.spawn(plan_all(Arc::clone(&yard), Arc::clone(&to_plan)));
    }
    for number in 0..WORKERS {
        hands.spawn(work(Arc::clone(&yard), format!("worker-{number}")));
    }
    let mut open = yard.open.subscribe();
    tokio::select! {
        ended = open.wait_for(BTreeSet::is_empty) => ended.map(drop)?,
        Some(ended) = hands.join_next() => ended??,
    }
    hands.shutdown().await;
    Ok(())
}

async fn plan_all(
    yard: Arc<Yard>,
    to_plan: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<ClusterId>>>,
) -> Result<(), Failed> {
    loop {
        let Some(cluster) = to_plan.lock().await.recv().await else {
            return Ok(());
        };
        yard.unlist(cluster);
        let view = yard.store.cluster_view(cluster).await?;
        let view = view.ok_or_else(|| format!("{cluster} is gone"))?;
        let now = now();
        let plan = plan::plan(&view.view(now));
        if let Some(note) = plan::check(&view.view(now), &plan).first() {
            return Err(format!("the checker says of {cluster}: {note}").into());
        }
        let (tasks, phase) = (!plan.tasks.is_empty(), plan.summary.phase);
        if !view.is_told(&plan) {
            match yard.store.commit(plan, now).await {
                Ok(()) => {}
                Err(CommitError::Stale) => yard.list(cluster),
                Err(error) => return Err(error.into()),
            }
        }
        if tasks {
            yard.commits.send_modify(|commits| *commits += 1);
        }
        if phase == Phase::Done {
            yard.open.send_modify(|open| {
                open.remove(&cluster);
            });
        }
    }
}

async fn work(yard: Arc<Yard>, worker: String) -> Result<(), Failed> {
    let mut commits = yard.commits.subscribe();
    loop {
        // Marked as seen before looking: what is committed meanwhile wakes us again.
        commits.borrow_and_update();
        let claims = yard
            .store
            .claim(&worker, BATCH, PER_CLUSTER, LEASE, now())
            .await?;
        if claims.is_empty() {
            commits.changed().await?;
            continue;
        }
        let mut records = JoinSet::new();
        for claim in claims {
            records.spawn(record(Arc::clone(&yard), claim));
        }
        while let Some(recorded) = records.join_next().await {
            recorded??;
        }
    }
}

/// Says that a task was done, with what would be seen then.
async fn record(yard: Arc<Yard>, claim: Claim) -> Result<(), Failed> {
    let cluster = claim.task.cluster;
    let seen = effect(&claim.task)?;
    let recorded = yard
        .store
        .record(claim, Ended::Done, seen, Vec::new(), Vec::new(), now())
        .await?;
    if recorded == Recorded::LeaseLost {
        return Err(format!("a lease of {cluster} was lost").into());
    }
    yard.list(cluster);
    Ok(())
}

fn effect(task: &Task) -> Result<Vec<Observation>, Failed> {
    let machine = &task.machine;
    let joined = |version| {
        let fact = NodeFact::Joined {
            ready: true,
            cordoned: false,
            version,
        };
        Fact::Node(machine.id, fact)
    };
    let facts = match &task.action {
        Action::Create => vec![Fact::Machine(
            machine.id,
            MachineFact::Running {
                reference: format!("vm-{}", machine.name),
                address: machine.address.into(),
            },
        )],
        Action::Init { version, .. } => {
            let started = ControlPlaneFact { initialised: true };
            vec![Fact::ControlPlane(started), joined(*version)]
        }
        Action::Join { version } => vec![joined(*version)],
        Action::Prepare
        | Action::Upgrade { .. }
        | Action::Drain
        | Action::Uncordon
        | Action::Leave
        | Action::Delete
        | Action::Release => return Err("building needs no such task".into()),
    };
    let (cluster, at) = (task.cluster, now());
    Ok(facts
        .into_iter()
        .map(|fact| Observation { cluster, fact, at })
        .collect())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::default().plus(since.unwrap_or_default())
}
