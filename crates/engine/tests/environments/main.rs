//! Environments that are made, changed and ended by an engine which is killed at every point, while
//! scripts run on. Time is virtual.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod followed;
mod killed;
mod lived;
mod world;

use driver::Clock;
use engine::{EnvironmentSettings, Environments};
use model::environment::EnvironmentName;
use model::environment::action::State;
use model::environment::config::{Defaults, Edit, Edits, Key, effective};
use model::environment::settings::{Chart, Deploy, Place, Settings};
use model::environment::status::{Deed, Status};
use model::id::ActionId;
use model::name::Name;
use model::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use store::{
    About, ActionDraft, ActionRow, Begun, Effective, EnvironmentDraft, EnvironmentRow, Store,
};
use tokio_util::sync::CancellationToken;
use vault::Vault;
use world::{Hands, World};

/// Longer than any of these stories.
const TOO_LONG: Duration = Duration::from_hours(24 * 30);

/// Somewhere that outlives every engine.
#[derive(Clone)]
struct Stage {
    store: Store,
    vault: Vault,
    world: World,
}

impl Stage {
    async fn set() -> Self {
        let clock = Clock::starting_at(Timestamp::from_millis(1_000_000_000_000));
        let store = Store::in_memory().unwrap();
        let vault = Vault::in_memory(store.clone(), Arc::new(move || clock.now())).await;
        let stage = Self {
            store,
            vault,
            world: World::new(clock),
        };
        stage.say(settings()).await;
        stage
    }

    async fn say(&self, settings: Settings) {
        let project = Name::default_project();
        let put =
            self.store
                .put_environment_settings(&project, settings, "root".into(), self.now());
        put.await.unwrap();
    }

    fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// An engine at a place, which works until it is dropped.
    async fn engine(&self, worker: &str, place: &'static str, alone: bool) {
        let world = self.world.clone();
        let hands = Arc::new(Hands { world, place });
        let settings = EnvironmentSettings {
            worker: worker.to_owned(),
            alone,
            ..EnvironmentSettings::default()
        };
        let (store, vault) = (self.store.clone(), self.vault.clone());
        let engine = Environments::new(store, vault, hands, self.world.clock, settings);
        engine.run(CancellationToken::new()).await;
    }

    async fn create(&self, called: &str, tag: &str) -> Begun {
        self.create_in(&Name::default_project(), called, tag).await
    }

    async fn create_in(&self, project: &Name, called: &str, tag: &str) -> Begun {
        let (project, name) = (project.clone(), name(called));
        let edits = tagged(tag);
        let draft = EnvironmentDraft {
            id: self.store.environment_to_be(&project, &name).await.unwrap(),
            project,
            name,
            about: About::default(),
            effective: told(&edits),
            edits,
            sealed: Vec::new(),
            actor: "ana".into(),
            origin: None,
            step: None,
        };
        self.store
            .create_environment(draft, self.now())
            .await
            .unwrap()
    }

    async fn begin(&self, called: &str, deed: Deed, edits: Option<Edits>) -> Begun {
        let now = match &edits {
            Some(edits) => edits.clone(),
            None => self.show(called).await.unwrap().edits,
        };
        let draft = ActionDraft {
            project: Name::default_project(),
            name: name(called),
            deed,
            force: false,
            generation: None,
            seen: None,
            edits,
            sealed: Vec::new(),
            sealed_until: None,
            effective: told(&now),
            actor: "ana".into(),
            cause: None,
            origin: None,
            step: None,
        };
        self.store.begin_action(draft, self.now()).await.unwrap()
    }

    async fn show(&self, called: &str) -> Option<EnvironmentRow> {
        let shown = self
            .store
            .environment(&Name::default_project(), &name(called))
            .await;
        shown.unwrap()
    }

    async fn action(&self, id: ActionId) -> ActionRow {
        let shown = self.store.action(&Name::default_project(), id).await;
        shown.unwrap().unwrap()
    }

    /// Waits until an environment is so, and at rest; none means gone.
    async fn until(&self, called: &str, status: Option<Status>) {
        loop {
            let found = self.show(called).await;
            let busy = found.as_ref().is_some_and(|row| row.busy.is_some());
            if found.map(|row| row.status) == status && !busy {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Waits until an action has ended.
    async fn ended(&self, id: ActionId) -> ActionRow {
        loop {
            let action = self.action(id).await;
            if action.state.is_ended() {
                return action;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// What an action printed, in order.
    async fn printed(&self, id: ActionId) -> Vec<String> {
        let lines = self
            .store
            .action_output(&Name::default_project(), id, 0, 1000)
            .await;
        let mut lines = lines.unwrap().unwrap();
        lines.sort_by_key(|line| (line.line, line.stream));
        lines.into_iter().map(|line| line.text).collect()
    }
}

fn name(text: &str) -> EnvironmentName {
    text.parse().unwrap()
}

fn tagged(tag: &str) -> Edits {
    let mut edits = Edits::default();
    let set = Edit::Set(tag.parse().unwrap());
    edits.application.insert(Key::image_tag(), set);
    edits
}

/// What the server would say comes of edits.
fn told(edits: &Edits) -> Effective {
    let defaults = Defaults::default();
    Effective {
        application: effective(&defaults, &edits.application),
        deployment: effective(&defaults, &edits.deployment),
    }
}

fn settings() -> Settings {
    let place = Place {
        project_name: "Shop".to_owned(),
        base_domain: "shop.example.org".to_owned(),
        namespace: "shop".parse().unwrap(),
        cluster: None,
    };
    Settings::usual(place, "/scripts")
}

/// The same, deployed by Helm.
fn by_helm(settings: Settings) -> Settings {
    let chart = Chart {
        chart: "/chart".to_owned(),
        kubeconfig: None,
        host: None,
    };
    Settings {
        deploy: Deploy::Helm(chart),
        ..settings
    }
}

/// Plays a story beside an engine, and another one whenever it is killed at its point; answers
/// whether it was.
async fn play(stage: &Stage, kill_at: Option<u32>, story: impl Future<Output = ()>) -> bool {
    let kill = stage.world.kill_at(kill_at);
    let engines = async {
        tokio::select! {
            biased;
            () = kill.cancelled() => {}
            () = stage.engine("first", "here", true) => {}
        }
        stage.world.kill_at(None);
        stage.engine("second", "here", true).await;
    };
    let played = async {
        tokio::select! {
            biased;
            () = story => {}
            () = engines => {}
        }
    };
    tokio::time::timeout(TOO_LONG, played).await.unwrap();
    assert_eq!(stage.world.state().wrong, Vec::<String>::new());
    kill.is_cancelled()
}

/// Every line that a script prints.
fn all_lines() -> Vec<String> {
    (0..world::LINES)
        .map(|line| format!("line {line}"))
        .collect()
}

/// That an action did what it should, and everything that it printed is there.
async fn well(stage: &Stage, begun: Begun) {
    let action = stage.ended(begun.action).await;
    assert_eq!(
        (action.state, action.exit),
        (State::Done, Some(0)),
        "{:?}",
        action.error
    );
    assert_eq!(stage.printed(begun.action).await, all_lines());
}
