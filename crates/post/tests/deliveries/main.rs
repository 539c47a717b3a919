//! Messages on their way to real receivers on this machine, by the real loop: signed, in order, once
//! more where it must be, and without anything secret left behind.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod receiver;

use driver::Clock;
use driver::deliver::{Carried, Courier, Parcel};
use engine::{Deliveries, DeliverySettings};
use model::environment::delivery::State;
use model::environment::notify::{Message, Occasion, Target, Way, Webhook};
use model::environment::settings::{Chart, Deploy, Place, Settings};
use model::id::{DeliveryId, Origin};
use model::name::Name;
use model::secret::{Secret, SecretRef};
use model::time::Timestamp;
use post::Post;
use post::web::{Patience as WebPatience, Web};
use receiver::{Answer, Receiver};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{DeliveryDraft, DeliveryFilter, DeliveryRow, Page, Store};
use tokio_util::sync::CancellationToken;
use vault::{Changes, Vault};

/// What messages are signed with.
const KEY: &str = "the-key-that-nobody-may-see";

/// What opens the way to a channel.
const PATH: &str = "T00/B00/the-path-that-nobody-may-see";

struct Carrier(Post);

impl Courier for Carrier {
    async fn carry(&self, cx: &driver::Context, parcel: &Parcel) -> Carried {
        self.0.carry(cx, parcel).await
    }
}

struct Stage {
    store: Store,
    vault: Vault,
    clock: Clock,
    directory: tempfile::TempDir,
}

fn secret(entry: &str) -> SecretRef {
    SecretRef {
        name: "hooks".parse().unwrap(),
        key: Some(entry.parse().unwrap()),
    }
}

impl Stage {
    async fn set(targets: Vec<Target>, slack: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let clock = Clock::System;
        let vault = Vault::in_memory(store.clone(), Arc::new(move || clock.now())).await;
        let mut changes = Changes {
            entries: Vec::new(),
            only: false,
        };
        let mut entries = vec![("key", format!("{KEY}\n"))];
        entries.extend(slack.map(|url| ("slack", url.to_owned())));
        for (entry, text) in entries {
            let value = Secret::from_text(text);
            changes.entries.push((entry.parse().unwrap(), Some(value)));
        }
        let (project, hooks) = (Name::default_project(), "hooks".parse().unwrap());
        let root = "root".into();
        let set = vault.set((&project, &hooks), &changes, &root);
        set.await.unwrap_or_else(|error| panic!("{error}"));
        let put =
            store.put_environment_settings(&project, settings(targets), "root".into(), clock.now());
        put.await.unwrap();
        Self {
            store,
            vault,
            clock,
            directory,
        }
    }

    /// The loop, until it is dropped.
    async fn carry(&self) {
        let patience = WebPatience {
            connect: Duration::from_secs(2),
            whole: Duration::from_secs(3),
        };
        let courier = Arc::new(Carrier(Post::new(Web::new(patience).unwrap())));
        let (store, vault) = (self.store.clone(), self.vault.clone());
        let loops = Deliveries::new(
            store,
            vault,
            courier,
            self.clock,
            DeliverySettings::default(),
        );
        loops.run(CancellationToken::new()).await;
    }

    async fn post(&self, kind: &str, target: &str, number: u64) -> DeliveryId {
        let id = DeliveryId::derive(Origin {
            parent: target,
            name: kind,
            ordinal: number,
            incarnation: 0,
        });
        let message = Message {
            occasion: Occasion::Running,
            at: Timestamp::from_millis(1_700_000_000_000),
            because: format!("number {number}"),
            environment: None,
            action: None,
        };
        let draft = DeliveryDraft {
            id,
            project: Name::default_project(),
            kind: kind.to_owned(),
            target: target.to_owned(),
            environment: None,
            occasion: "running".to_owned(),
            document: serde_json::to_string(&message).unwrap(),
        };
        assert!(
            self.store
                .post_delivery(draft, self.clock.now())
                .await
                .unwrap()
        );
        id
    }

    async fn row(&self, id: DeliveryId) -> DeliveryRow {
        let row = self.store.delivery(&Name::default_project(), id).await;
        row.unwrap().unwrap()
    }

    /// Waits until a message is so.
    async fn until(&self, id: DeliveryId, done: impl Fn(&DeliveryRow) -> bool) -> DeliveryRow {
        loop {
            let row = self.row(id).await;
            if done(&row) {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits, while messages are carried.
    async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        let told = async {
            tokio::select! {
                () = self.carry() => panic!("the loop ended by itself"),
                told = story => told,
            }
        };
        tokio::time::timeout(Duration::from_mins(2), told)
            .await
            .unwrap()
    }
}

fn settings(notify: Vec<Target>) -> Settings {
    let place = Place {
        project_name: "Shop".to_owned(),
        base_domain: "shop.example.org".to_owned(),
        namespace: "shop".parse().unwrap(),
        cluster: None,
    };
    Settings {
        deploy: Deploy::Helm(Chart {
            chart: "/chart".to_owned(),
            kubeconfig: None,
            host: None,
        }),
        notify,
        ..Settings::usual(place, "")
    }
}

fn webhook(name: &str, to: &Receiver) -> Target {
    Target {
        name: name.parse().unwrap(),
        way: Way::Webhook(Webhook {
            url: to.url("/in").parse().unwrap(),
            secret: secret("key"),
        }),
        events: [].into(),
        labels: [].into(),
    }
}

fn ended(row: &DeliveryRow) -> bool {
    matches!(row.state, State::Delivered | State::GivenUp)
}

#[tokio::test]
async fn a_webhook_is_signed_and_sent_again_under_the_same_id() {
    let answers = vec![
        Answer::status(500, "try again"),
        Answer::status(200, "thanks"),
    ];
    let receiver = Receiver::start(answers).await;
    let stage = Stage::set(vec![webhook("ops", &receiver)], None).await;
    let first = stage.post("webhook", "ops", 1).await;
    let second = stage.post("webhook", "ops", 2).await;
    stage
        .during(async {
            let failed = stage.until(first, |row| row.said.is_some()).await;
            assert_eq!(failed.state, State::Waiting);
            assert_eq!(
                failed.said.as_deref(),
                Some("500 Internal Server Error: try again")
            );
            assert_eq!(stage.row(second).await.tries, 0, "the order is kept");
            // Nobody waits for its pause here.
            let project = Name::default_project();
            let again =
                stage
                    .store
                    .retry_delivery(&project, first, "ana".into(), stage.clock.now());
            again.await.unwrap();
            assert_eq!(stage.until(second, ended).await.state, State::Delivered);
        })
        .await;
    let requests = receiver.requests();
    let ids: Vec<_> = requests
        .iter()
        .map(|request| request.header("slipway-delivery"))
        .collect();
    assert_eq!(ids, [first, first, second].map(|id| id.to_string()));
    for request in &requests {
        let timestamp = request.header("slipway-timestamp");
        let signed = post::signature::sign(KEY.as_bytes(), &timestamp, &request.body);
        assert_eq!(Some(request.header("slipway-signature")), signed);
        let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(body["id"], request.header("slipway-delivery"));
        assert_eq!(
            (&body["kind"], &body["project"]),
            (&"running".into(), &"default".into())
        );
    }
    let row = stage.row(first).await;
    assert_eq!(row.said.as_deref(), Some("200 OK: thanks"));
}

#[tokio::test]
async fn one_that_hangs_delays_nobody_else_and_410_ends_it_at_once() {
    let deaf = Receiver::start(vec![Answer::Hang]).await;
    let gone = Receiver::start(vec![Answer::status(410, "")]).await;
    let busy = Receiver::start(vec![Answer::busy(30)]).await;
    let moved = Receiver::start(vec![Answer::moved(&gone.url("/elsewhere"))]).await;
    let well = Receiver::start(Vec::new()).await;
    let targets = vec![
        webhook("deaf", &deaf),
        webhook("gone", &gone),
        webhook("busy", &busy),
        webhook("moved", &moved),
        webhook("well", &well),
    ];
    let stage = Stage::set(targets, None).await;
    let deaf = stage.post("webhook", "deaf", 1).await;
    let gone_id = stage.post("webhook", "gone", 1).await;
    let busy = stage.post("webhook", "busy", 1).await;
    let moved = stage.post("webhook", "moved", 1).await;
    let nobody = stage.post("webhook", "nobody", 1).await;
    stage
        .during(async {
            for number in 0..20 {
                let id = stage.post("webhook", "well", number).await;
                assert_eq!(stage.until(id, ended).await.state, State::Delivered);
            }
            assert_eq!(
                stage.row(deaf).await.state,
                State::Sending,
                "it still hangs"
            );
            let row = stage.until(gone_id, ended).await;
            assert_eq!((row.state, row.tries), (State::GivenUp, 1));
            let row = stage.until(nobody, ended).await;
            assert!(row.said.unwrap().contains("no such target any more"));
            let row = stage.until(busy, |row| row.said.is_some()).await;
            let pause = row.due.since(row.created_at);
            assert!(pause >= Duration::from_secs(30), "{pause:?}");
            let row = stage.until(moved, |row| row.said.is_some()).await;
            assert!(row.said.unwrap().starts_with("302 Found"));
            let row = stage.until(deaf, |row| row.said.is_some()).await;
            assert_eq!(row.state, State::Waiting);
            assert!(
                row.said
                    .unwrap()
                    .contains("did not answer within 3 seconds")
            );
        })
        .await;
    assert_eq!(gone.requests().len(), 1, "nobody is followed who has moved");
}

#[tokio::test]
async fn killed_in_the_middle_it_is_sent_again_under_the_same_id() {
    let receiver = Receiver::start(vec![Answer::Hang]).await;
    let stage = Stage::set(vec![webhook("ops", &receiver)], None).await;
    let id = stage.post("webhook", "ops", 1).await;
    // Dropping the loop is a crash, after the message was taken and before that was recorded.
    stage.during(receiver.until_requested(1)).await;
    assert_eq!(stage.row(id).await.state, State::Sending);
    let row = stage.during(stage.until(id, ended)).await;
    assert_eq!((row.state, row.tries), (State::Delivered, 2));
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(
        requests[0].header("slipway-delivery"),
        requests[1].header("slipway-delivery")
    );
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn a_channel_gets_a_sentence_and_nothing_secret_stays() {
    // Whoever repeats what must not be seen is not repeated.
    let answers = vec![
        Answer::status(404, &format!("no hook at {PATH}")),
        Answer::status(403, &format!("not signed with {KEY}")),
    ];
    let receiver = Receiver::start(answers).await;
    let slack = Target {
        way: Way::Slack(secret("slack")),
        ..webhook("chat", &receiver)
    };
    let url = receiver.url(&format!("/{PATH}"));
    let targets = vec![slack, webhook("ops", &receiver)];
    let stage = Stage::set(targets, Some(&url)).await;
    let chat = stage.post("slack", "chat", 1).await;
    let told = stage
        .during(stage.until(chat, |row| row.said.is_some()))
        .await;
    assert_eq!(told.said.as_deref(), Some("404 Not Found: no hook at ***"));
    let ops = stage.post("webhook", "ops", 1).await;
    let told = stage
        .during(stage.until(ops, |row| row.said.is_some()))
        .await;
    assert_eq!(
        told.said.as_deref(),
        Some("403 Forbidden: not signed with ***")
    );
    let request = receiver.requests().remove(0);
    assert_eq!(request.path, format!("/{PATH}"));
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        body["text"],
        "This is a test of Slipway for project default."
    );
    let (project, all) = (Name::default_project(), Page::default());
    let listed = stage
        .store
        .deliveries(&project, DeliveryFilter::default(), all);
    let mut seen = format!("{:?}", listed.await.unwrap());
    seen.push_str(&format!(
        "{:?}",
        stage.store.events(None, 0, 1000).await.unwrap()
    ));
    seen.push_str(&format!(
        "{:?}",
        stage.store.environment_settings(&project).await.unwrap()
    ));
    assert!(!seen.contains(KEY) && !seen.contains(PATH), "{seen}");
    let files = everything(stage.directory.path());
    for text in [KEY, PATH] {
        let found = files
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        assert!(!found, "it is in the database");
    }
}

/// All bytes of all files of the database.
fn everything(directory: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(directory).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file());
    files
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect()
}
