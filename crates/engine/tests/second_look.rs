//! A driver that says it is done and has done nothing: who looks a second time tells.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use driver::{Clock, Context, Driver, Outcome, Target};
use engine::{Engine, Settings};
use model::admit::admit;
use model::name::Name;
use model::observed::{Fact, MachineFact, Observation};
use model::source;
use model::task::Task;
use model::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{Page, Store, Submission, TaskFilter};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vault::{KeyConfig, KeySource};

const MANIFEST: &str = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: hello}
spec:
  providers: [{name: lab, providerType: simulated}]
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: lab, region: north}, count: 1, serverType: small, image: debian-12}
  kubernetes:
    clusters:
      - {name: hello, version: v1.34.1, network: 10.8.0.0/24, pools: {control: [brain], compute: []}}
";

/// Says once that it is done, and then that it never will be.
#[derive(Default)]
struct Idle {
    asked: AtomicBool,
}

impl Driver for Idle {
    async fn apply(&self, _: &Context, task: &Task) -> Outcome {
        if self.asked.swap(true, Ordering::Relaxed) {
            return Outcome::Stuck(driver::Error {
                attempted: "asked again".to_owned(),
                hint: "ask no more".to_owned(),
            });
        }
        Outcome::done(task, Vec::new(), Vec::new())
    }

    async fn probe(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let (cluster, at) = (target.cluster, cx.now());
        let absent = target.machines.iter().map(|machine| Observation {
            cluster,
            fact: Fact::Machine(machine.id, MachineFact::Absent),
            at,
        });
        absent.collect()
    }
}

/// What the log of the first task says, with or without a second look.
async fn told(second_look: bool) -> String {
    let clock = Clock::starting_at(Timestamp::from_millis(1_000_000_000_000));
    let store = Store::in_memory().unwrap();
    let keys = tempfile::tempdir().unwrap();
    let config = KeyConfig::only(KeySource::File(keys.path().join("slipway.key")));
    let now = Arc::new(move || clock.now());
    let vault = vault::open(store.clone(), config, "server".into(), now).await;
    let submission = Submission {
        project: Name::default_project(),
        manifest: admit(&source::parse(MANIFEST).unwrap()).unwrap(),
        text: MANIFEST.to_owned(),
        author: "ann".into(),
        parent: None,
        allow: store::Allowed::default(),
        key: None,
    };
    store.submit(submission, clock.now()).await.unwrap();
    let settings = Settings {
        second_look,
        ..Settings::default()
    };
    let stop = CancellationToken::new();
    let engine = Engine::new(
        store.clone(),
        vault,
        Arc::new(Idle::default()),
        clock,
        settings,
    );
    let mut engines = JoinSet::new();
    engines.spawn(engine.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(10)).await;
    stop.cancel();
    engines.join_all().await;
    let filter = TaskFilter {
        cluster: None,
        state: None,
    };
    let project = Name::default_project();
    let tasks = store.tasks(&project, filter, Page::default()).await;
    let first = tasks.unwrap().items.pop().unwrap().task.id;
    let lines = store.task_log(first, 0, 100).await.unwrap();
    lines.into_iter().map(|line| line.text + "\n").collect()
}

#[tokio::test(start_paused = true)]
async fn what_came_out_otherwise_than_plans_say_is_told() {
    let said = told(true).await;
    let expected = "not as foreseen: create: hello-brain-01 machine: foreseen ";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(told(false).await, "");
}
