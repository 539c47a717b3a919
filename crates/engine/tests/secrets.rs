//! Secrets on their way to a driver and back, with keys that are wrong, changed or missing.
//!
//! The driver here does at once what it is asked, opens the secret that its machine names, and
//! hands out a key when the control plane is started. Time is virtual.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use driver::{Clock, Context, Driver, Outcome, Output, Target};
use engine::{Engine, Settings};
use model::admit::admit;
use model::care::Care;
use model::cluster::Machine;
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::observed::{ControlPlaneFact, Fact, MachineFact, NodeFact, Observation};
use model::sealed::{Owner, Place};
use model::secret::Secret;
use model::snapshot::SnapshotsFact;
use model::source;
use model::task::{Action, State, Task};
use model::time::Timestamp;
use plan::Phase;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Page, Store, Submission, TaskFilter, TaskRow};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vault::{Changes, KeyConfig, KeySource, Vault};

/// Two lines of a key file.
const RIGHT: &str = "slipway-key-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const WRONG: &str = "slipway-key-1 ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

/// What the control plane's keys are.
const KUBECONFIG: &str = "the keys of the control plane";

/// A world of machines that are or are not, and of nodes that have joined or have not.
#[derive(Default)]
struct Hands {
    facts: Mutex<BTreeMap<(MachineId, u8), Fact>>,
    started: Mutex<bool>,
    /// Somebody who rotates the keys while the control plane starts.
    meddler: Option<Vault>,
}

impl Hands {
    fn see(&self, cluster: ClusterId, machines: &[Machine], at: Timestamp) -> Vec<Observation> {
        let facts = self.facts.lock().unwrap();
        let known = facts
            .iter()
            .filter(|((id, _), _)| machines.iter().any(|of| of.id == *id));
        let started = self.started.lock().unwrap();
        let since = Timestamp::from_millis(1_000_000_000_000);
        let started = [
            Fact::ControlPlane(ControlPlaneFact::started()),
            Fact::Snapshots(SnapshotsFact::none_since(since)),
        ]
        .into_iter()
        .filter(|_| *started);
        let facts = known.map(|(_, fact)| fact.clone()).chain(started);
        facts
            .map(|fact| Observation { cluster, fact, at })
            .collect()
    }

    fn change(&self, task: &Task) {
        let machine = &task.machine;
        let running = MachineFact::Running {
            reference: machine.name.to_string(),
            address: IpAddr::V4(machine.address),
        };
        let joined = |version, care: &Care| NodeFact::Joined {
            ready: true,
            cordoned: false,
            version,
            care: Some(care.fingerprint()),
            asks: false,
            gated: false,
        };
        let mut facts = self.facts.lock().unwrap();
        match &task.action {
            Action::Create | Action::CreateExposed | Action::Prepare => {
                facts.insert((machine.id, 0), Fact::Machine(machine.id, running));
            }
            Action::Init { version, care, .. } | Action::Join { version, care, .. } => {
                *self.started.lock().unwrap() = true;
                let fact = Fact::Node(machine.id, joined(*version, care));
                facts.insert((machine.id, 1), fact);
            }
            Action::Upgrade { .. }
            | Action::Tend { .. }
            | Action::Drain
            | Action::Renew { .. }
            | Action::Uncordon
            | Action::Readmit { .. }
            | Action::Leave
            | Action::Clear { .. }
            | Action::Snapshot { .. }
            | Action::Restore { .. }
            | Action::Delete
            | Action::Release
            | Action::Key
            | Action::Equip { .. }
            | Action::Mesh { .. }
            | Action::Balance { .. }
            | Action::Name { .. }
            | Action::Expose
            | Action::Shut
            | Action::Install { .. } => {}
        }
    }
}

impl Driver for Hands {
    async fn apply(&self, cx: &Context, task: &Task) -> Outcome {
        for secret in task.action.needs(&task.machine.origin) {
            match cx.secret(&secret).await {
                Ok(value) => assert_eq!(value.expose(), b"hunter2"),
                Err(unopened) => return unopened.into(),
            }
        }
        self.change(task);
        let mut outputs = Vec::new();
        if let Action::Init { .. } = task.action {
            if let Some(meddler) = &self.meddler {
                meddler.rotate(&"mallory".into(), |_| {}).await.unwrap();
            }
            outputs.push(Output {
                owner: Owner::Cluster(task.cluster),
                entry: "kubeconfig".parse().unwrap(),
                value: Secret::from_text(KUBECONFIG.to_owned()),
            });
        }
        let machines = std::slice::from_ref(&task.machine);
        Outcome::Done(self.see(task.cluster, machines, cx.now()), outputs)
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        self.see(target.cluster, &target.machines, cx.now())
    }
}

/// A store, a key file and hands, with engines that come and go.
struct World {
    store: Store,
    hands: Arc<Hands>,
    clock: Clock,
    keys: tempfile::TempDir,
    engines: JoinSet<()>,
    stop: CancellationToken,
}

impl World {
    async fn new(meddled: bool) -> Self {
        let clock = Clock::starting_at(Timestamp::from_millis(1_000_000_000_000));
        let store = Store::in_memory().unwrap();
        let keys = tempfile::tempdir().unwrap();
        let mut world = Self {
            store,
            hands: Arc::default(),
            clock,
            keys,
            engines: JoinSet::new(),
            stop: CancellationToken::new(),
        };
        world.write_keys(&[RIGHT]);
        // The first start draws a data key; nobody has another one after that.
        let first = world.vault().await;
        if meddled {
            world.hands = Arc::new(Hands {
                meddler: Some(first),
                ..Hands::default()
            });
        }
        world
    }

    fn key_file(&self) -> PathBuf {
        self.keys.path().join("slipway.key")
    }

    fn write_keys(&self, lines: &[&str]) {
        let path: &Path = &self.key_file();
        std::fs::write(path, lines.join("\n")).unwrap();
    }

    async fn vault(&self) -> Vault {
        let config = KeyConfig::only(KeySource::File(self.key_file()));
        let clock = self.clock;
        let now = Arc::new(move || clock.now());
        vault::open(self.store.clone(), config, "server".into(), now).await
    }

    /// Starts an engine with a vault of its own, as another process would.
    async fn start(&mut self) {
        let (store, vault, hands) = (
            self.store.clone(),
            self.vault().await,
            Arc::clone(&self.hands),
        );
        let settings = Settings {
            worker: "worker-1".to_owned(),
            ..Settings::default()
        };
        let engine = Engine::new(store, vault, hands, self.clock, settings);
        self.stop = CancellationToken::new();
        self.engines.spawn(engine.run(self.stop.clone()));
    }

    /// Kills the engine in the middle of whatever it does.
    async fn kill(&mut self) {
        self.engines.shutdown().await;
    }

    /// Declares a cluster with one control machine, whose provider wants this secret.
    async fn apply(&self, secret: &str) {
        let text = format!(
            "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: hello}}
spec:
  providers:
    - {{name: lab, providerType: simulated{secret}}}
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: north}}, count: 1, serverType: small, image: debian-12}}
  kubernetes:
    clusters:
      - {{name: hello, version: v1.34.1, network: 10.8.0.0/24, pools: {{control: [brain], compute: []}}}}
"
        );
        let submission = Submission {
            project: Name::default_project(),
            manifest: admit(&source::parse(&text).unwrap()).unwrap(),
            text,
            author: "ann".into(),
            parent: None,
            allow: store::Allowed::default(),
            key: None,
        };
        self.store
            .submit(submission, self.clock.now())
            .await
            .unwrap();
    }

    async fn set(&self, entries: &[&str]) {
        let value = || Some(Secret::from_text("hunter2".to_owned()));
        let changes = Changes {
            entries: entries
                .iter()
                .map(|entry| (entry.parse().unwrap(), value()))
                .collect(),
            only: true,
        };
        let (project, name) = (Name::default_project(), "cloud".parse().unwrap());
        let (vault, actor) = (self.vault().await, "ann".into());
        vault
            .set((&project, &name), &changes, &actor)
            .await
            .unwrap();
    }

    /// Waits until something is so; time passes as fast as nothing happens.
    async fn until(&self, so: impl AsyncFn(&Self) -> bool) {
        let mut news = self.store.subscribe();
        let limit = tokio::time::Instant::now() + Duration::from_hours(24);
        while !so(self).await {
            assert!(tokio::time::Instant::now() < limit, "that never happens");
            drop(tokio::time::timeout(Duration::from_secs(30), news.changed()).await);
        }
    }

    async fn is_done(&self) -> bool {
        let (project, name) = (Name::default_project(), "hello".parse().unwrap());
        let row = self.store.cluster(&project, &name).await.unwrap();
        let task = self.task().await;
        row.is_some_and(|row| row.summary.phase == Phase::Done)
            && task.is_some_and(|task| task.state == State::Done)
    }

    /// The task that starts the control plane, or the one before it.
    async fn task(&self) -> Option<TaskRow> {
        let filter = TaskFilter {
            cluster: None,
            state: None,
        };
        let project = Name::default_project();
        let listed = self
            .store
            .tasks(&project, filter, Page::default())
            .await
            .unwrap();
        let starts = |row: &TaskRow| matches!(row.task.action, Action::Init { .. });
        listed.items.into_iter().max_by_key(starts)
    }

    async fn log(&self) -> String {
        let task = self.task().await.unwrap().task.id;
        let lines = self.store.task_log(task, 0, 100).await.unwrap();
        lines
            .iter()
            .map(|line| format!("{}\n", line.text))
            .collect()
    }

    /// What is kept of the control plane's keys.
    async fn kubeconfig(&self) -> Option<String> {
        let (project, name) = (Name::default_project(), "hello".parse().unwrap());
        let row = self.store.cluster(&project, &name).await.unwrap().unwrap();
        let place = Place {
            project,
            owner: Owner::Cluster(row.id),
            entry: "kubeconfig".parse().unwrap(),
        };
        let kept = self
            .vault()
            .await
            .open(&place, &"test".into())
            .await
            .unwrap();
        kept.map(|value| value.expose_text().unwrap().to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn what_came_of_a_task_is_kept_sealed_and_audited() {
    let mut world = World::new(false).await;
    world.start().await;
    world.set(&["token"]).await;
    world.apply(", secretRef: {name: cloud}").await;
    world.until(World::is_done).await;
    assert_eq!(world.kubeconfig().await.unwrap(), KUBECONFIG);
    let audit = world
        .store
        .audit(None, Page::default())
        .await
        .unwrap()
        .items;
    let mut done: Vec<_> = audit
        .iter()
        .filter(|entry| entry.actor == "worker-1")
        .map(|entry| {
            assert!(entry.origin.starts_with("task/task-"), "{}", entry.origin);
            let owner = entry.object.split('/').next().unwrap();
            format!("{} {owner} {}", entry.action, entry.detail)
        })
        .collect();
    done.reverse();
    assert_eq!(
        done,
        ["secret.open secret token", "output.set cluster kubeconfig"]
    );
    assert_eq!(world.store.verify_audit().await.unwrap().broken, None);
    let log = world.log().await;
    assert!(
        !log.contains(KUBECONFIG) && !log.contains("hunter2"),
        "{log}"
    );
}

/// Another process rotates the keys between the sealing and the record.
#[tokio::test(start_paused = true)]
async fn a_key_that_changes_in_between_loses_nothing() {
    let mut world = World::new(true).await;
    world.start().await;
    world.apply("").await;
    world.until(World::is_done).await;
    assert_eq!(world.kubeconfig().await.unwrap(), KUBECONFIG);
    let task = world.task().await.unwrap();
    assert_eq!((task.state, task.attempts), (State::Done, 1));
    assert_eq!(world.store.seal_keys().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sealed_waits_until_it_can() {
    let mut world = World::new(false).await;
    world.write_keys(&[WRONG]);
    world.start().await;
    world.apply("").await;
    world
        .until(async |world| match world.task().await {
            Some(_) => world.log().await.contains("could not seal"),
            None => false,
        })
        .await;
    let told = world.log().await;
    assert!(
        told.contains("SEAL-004") && !told.contains(KUBECONFIG),
        "{told}"
    );
    // Hours later it is still the same attempt: nothing of it is recorded, nothing is lost.
    tokio::time::sleep(Duration::from_hours(3)).await;
    let task = world.task().await.unwrap();
    assert_eq!((task.state, task.attempts), (State::Running, 1));
    assert_eq!(world.log().await.matches("could not seal").count(), 1);
    world.write_keys(&[WRONG, RIGHT]);
    world.until(World::is_done).await;
    assert_eq!(world.task().await.unwrap().attempts, 1);
    assert_eq!(world.kubeconfig().await.unwrap(), KUBECONFIG);
}

/// What was made and could not be sealed dies with its process; the next one asks for it again.
#[tokio::test(start_paused = true)]
async fn what_was_never_sealed_is_asked_for_again() {
    for gently in [false, true] {
        let mut world = World::new(false).await;
        world.write_keys(&[WRONG]);
        world.start().await;
        world.apply("").await;
        world
            .until(async |world| match world.task().await {
                Some(_) => world.log().await.contains("could not seal"),
                None => false,
            })
            .await;
        if gently {
            world.stop.cancel();
            while world.engines.join_next().await.is_some() {}
        } else {
            world.kill().await;
        }
        world.write_keys(&[RIGHT]);
        world.start().await;
        world.until(World::is_done).await;
        assert_eq!(world.kubeconfig().await.unwrap(), KUBECONFIG);
        let log = world.log().await;
        assert!(log.contains("what came of it is asked for again"), "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_removed_in_between_is_waited_for() {
    let mut world = World::new(false).await;
    world.set(&["token"]).await;
    world.apply(", secretRef: {name: cloud, key: token}").await;
    // Planned while it is there, attempted when it is not.
    let cluster = world.store.unplanned().await.unwrap()[0];
    let view = world.store.cluster_view(cluster).await.unwrap().unwrap();
    let now = world.clock.now();
    world
        .store
        .commit(plan::plan(&view.view(now)), now)
        .await
        .unwrap();
    let (project, name) = (Name::default_project(), "cloud".parse().unwrap());
    let gone = world
        .store
        .delete_secret(&project, &name, "ann".into(), now)
        .await;
    assert!(gone.unwrap());
    world.start().await;
    let failed = async |world: &World| world.task().await.is_some_and(|task| task.error.is_some());
    world.until(failed).await;
    assert_eq!(
        world.task().await.unwrap().error.unwrap(),
        "secret cloud/token is not set; run `slipway secret set cloud token`"
    );
    world.set(&["token"]).await;
    world.until(World::is_done).await;
}

#[tokio::test(start_paused = true)]
async fn of_several_entries_one_has_to_be_named() {
    let mut world = World::new(false).await;
    world.set(&["id", "token"]).await;
    world.apply(", secretRef: {name: cloud}").await;
    world.start().await;
    let stuck = async |world: &World| {
        let task = world.task().await;
        task.is_some_and(|task| task.state == State::Stuck)
    };
    world.until(stuck).await;
    assert_eq!(
        world.task().await.unwrap().error.unwrap(),
        "secret cloud has several entries, and none is named; \
         name the entry with `key` in the secretRef of the manifest"
    );
}

#[tokio::test(start_paused = true)]
async fn with_the_wrong_key_work_that_needs_a_secret_says_so_and_goes_on_later() {
    let mut world = World::new(false).await;
    world.set(&["token"]).await;
    world.write_keys(&[WRONG]);
    world.start().await;
    world.apply(", secretRef: {name: cloud}").await;
    let failed = async |world: &World| world.task().await.is_some_and(|task| task.error.is_some());
    world.until(failed).await;
    let error = world.task().await.unwrap().error.unwrap();
    assert!(
        error.contains("could not open secret cloud") && error.contains("SEAL-004"),
        "{error}"
    );
    world.write_keys(&[RIGHT]);
    world.until(World::is_done).await;
    assert_eq!(world.kubeconfig().await.unwrap(), KUBECONFIG);
}
