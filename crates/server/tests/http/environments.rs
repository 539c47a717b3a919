//! Environments: what is asked of them, what is refused, and what is never told.

mod bad;
mod bad_input;
mod deliveries;
mod git;
mod import;
mod life;
mod lists;
mod output;
mod repeated;
mod secrets;
mod settings;
mod together;
mod typed;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use futures_util::future::BoxFuture;
use model::environment::config::{Defaults, Given, Setting};
use model::environment::schema::KnownKey;
use model::environment::settings::Settings;
use model::environment::status::{Failure, Look, Seen};
use serde_json::{Value, json};
use server::{Advice, Advise, Candidate, Glance, Of, Trouble, Unadvised, Verdict};
use store::{ActionClaim, ActionEnd, ActionEnded, LookRecord, Recorded, Store};

use crate::world::{Answer, PROJECT, TOKEN, World};

/// Answers in place of scripts: the defaults of the application depend on how it is deployed, and
/// whatever has a setting `bad` makes no sense.
pub(crate) struct Oracle;

fn told(pairs: &[(&str, &str)]) -> Defaults {
    let pair = |(key, value): &(&str, &str)| (key.parse().unwrap(), value.parse().unwrap());
    Defaults::new(pairs.iter().map(pair))
}

fn plain<'a>(settings: &'a [Setting], key: &str) -> Option<&'a str> {
    let setting = settings.iter().find(|setting| setting.key.as_str() == key);
    setting.and_then(|setting| match &setting.value {
        Given::Plain(value) => Some(value.as_str()),
        Given::Secret => None,
    })
}

fn working(settings: &Settings) -> Result<(), Unadvised> {
    if settings.scripts == "/broken" {
        return Err(Unadvised {
            trouble: Trouble::Failed,
            what: "deployment_config exited with status 7 (SCRIPT-005)".to_owned(),
            hint: "correct the script".to_owned(),
        });
    }
    Ok(())
}

impl Advise for Oracle {
    fn defaults<'a>(&'a self, settings: &'a Settings, of: Of<'a>) -> Advice<'a, Defaults> {
        Box::pin(async move {
            working(settings)?;
            Ok(match of {
                Of::Deployment => told(&[("chart_name", "shop"), ("chart_version", "12.0.0")]),
                Of::Application(deployment) => {
                    let version = plain(deployment, "chart_version").unwrap_or("none");
                    if settings.scripts == "/newer" || typed::is_newer(settings) {
                        return Ok(told(&[("sick", "yes")]));
                    }
                    told(&[
                        ("ingress.enabled", "true"),
                        ("image.tag", ""),
                        ("chart", version),
                    ])
                }
            })
        })
    }

    fn keys<'a>(&'a self, settings: &'a Settings, of: Of<'a>) -> Advice<'a, Vec<KnownKey>> {
        Box::pin(async move {
            working(settings)?;
            if let Some(schema) = typed::schema(settings) {
                return Ok(schema.known(&BTreeMap::new(), 100));
            }
            let keys: &[&str] = match of {
                Of::Deployment => &["chart_name", "chart_version"],
                Of::Application(_) => &["image.tag", "replicas"],
            };
            let known = keys.iter().map(|key| KnownKey::named((*key).to_owned()));
            Ok(known.collect())
        })
    }

    fn lacking<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Vec<Unadvised>> {
        Box::pin(async move {
            let missing = (settings.scripts == "/nowhere").then(|| Unadvised {
                trouble: Trouble::Missing,
                what: "there is no directory of scripts /nowhere (SCRIPT-003)".to_owned(),
                hint: "correct the directory".to_owned(),
            });
            missing.into_iter().collect()
        })
    }

    fn judge<'a>(&'a self, candidate: &'a Candidate) -> Advice<'a, Verdict> {
        Box::pin(async move {
            working(&candidate.settings)?;
            let faults = typed::faults_of(candidate);
            if !faults.is_empty() {
                return Ok(Verdict::Wrong(faults));
            }
            // Of what is secret and new the judge sees the value, as scripts would.
            let wrong = candidate
                .fresh
                .iter()
                .find(|(_, value)| value.expose_text() == Some("refuse me"));
            Ok(match (plain(&candidate.application, "bad"), wrong) {
                (Some(why), _) => Verdict::Bad(format!("{}: {why}\n", candidate.name)),
                (None, Some(_)) => Verdict::Bad("a secret is not good".to_owned()),
                (None, None) => Verdict::Good,
            })
        })
    }

    fn look<'a>(&'a self, candidate: &'a Candidate, look: Look) -> Advice<'a, Glance> {
        Box::pin(async move {
            working(&candidate.settings)?;
            let seen = if plain(&candidate.application, "sick").is_some() {
                Seen::Bad(Failure::Partial)
            } else {
                Seen::Good
            };
            let said = format!("{look:?}");
            Ok(Glance { seen, said })
        })
    }
}

/// A world over a store with threads, and where that is kept.
pub(crate) struct Threaded {
    pub(crate) world: World,
    _directory: tempfile::TempDir,
}

/// What a project says in most of these tests.
pub(crate) fn usual() -> Value {
    json!({"projectName": "Shop", "baseDomain": "shop.example.org", "namespace": "shop", "scripts": "/scripts"})
}

impl World {
    /// A world whose project has settings for environments.
    pub(crate) async fn with_settings(more: Value) -> Self {
        let world = Self::new();
        world.set_up(more).await;
        world
    }

    /// The same over a store with threads, which lets many ask at once.
    pub(crate) async fn threaded(more: Value) -> Threaded {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let world = Self::over(store, Arc::new(crate::world::Parrot)).await;
        world.set_up(more).await;
        Threaded {
            world,
            _directory: directory,
        }
    }

    async fn set_up(&self, more: Value) {
        let mut settings = usual();
        for (field, value) in more.as_object().unwrap() {
            settings[field] = value.clone();
        }
        let put = self.env(Method::PUT, "-settings", settings).await;
        assert_eq!(put.status, StatusCode::OK, "{}", put.text);
    }

    /// Asks something about environments; the path begins behind `environment`.
    pub(crate) async fn env(&self, method: Method, path: &str, body: Value) -> Answer {
        let path = format!("{PROJECT}/environment{path}");
        self.ask(TOKEN, method, &path, body).await
    }

    /// Reads something about environments.
    pub(crate) async fn env_get(&self, path: &str) -> Value {
        let answer = self.env(Method::GET, path, Value::Null).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        answer.json()
    }

    /// Asks with `If-Match`.
    pub(crate) async fn env_if(&self, method: Method, path: &str, at: u64, body: Value) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(format!("{PROJECT}/environment{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::IF_MATCH, at.to_string())
            .body(Body::from(body.to_string()))
            .unwrap();
        self.send(request).await
    }

    /// Has something begun; answers its action.
    pub(crate) async fn begun(&self, method: Method, path: &str, body: Value) -> String {
        let answer = self.env(method, path, body).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
        let action = answer.json()["action"].as_str().unwrap().to_owned();
        assert!(
            answer
                .header("location")
                .ends_with(&format!("/actions/{action}")),
            "{}",
            answer.header("location")
        );
        action
    }

    /// Takes up what waits, as a worker does.
    pub(crate) async fn take_up(&self) -> Vec<ActionClaim> {
        let lease = Duration::from_mins(1);
        let claims = self
            .store
            .claim_actions(("worker", "here"), 100, lease, self.now());
        let claims = claims.await.unwrap();
        for claim in &claims {
            let set_out = self.store.set_out_action(claim, "here", self.now());
            assert!(set_out.await.unwrap().is_some());
        }
        claims
    }

    /// Ends an action.
    pub(crate) async fn end_action(&self, claim: &ActionClaim, ended: ActionEnded) {
        let good = ended == ActionEnded::Done;
        let end = ActionEnd {
            ended,
            exit: Some(i32::from(!good)),
            error: (!good).then(|| "create exited with status 1".to_owned()),
            links: None,
            look_at: self.now(),
        };
        let recorded = self.store.end_action(claim, end, Vec::new(), self.now());
        assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    }

    /// Does all that waits, and looks at everything: it is as it should be.
    pub(crate) async fn deployed(&self) {
        for claim in self.take_up().await {
            self.end_action(&claim, ActionEnded::Done).await;
        }
        let due = self.store.due_checks(100, self.now()).await.unwrap().checks;
        let looks = due
            .iter()
            .map(|check| LookRecord {
                environment: check.id,
                held: check.held,
                seen: Some(Seen::Good),
                said: "all is well".to_owned(),
                due: self.now().plus(Duration::from_secs(15)),
            })
            .collect();
        self.store.record_looks(looks, self.now()).await.unwrap();
    }

    /// An environment that runs.
    pub(crate) async fn running(&self, name: &str, body: Value) {
        let mut body = body;
        body["name"] = json!(name);
        self.begun(Method::POST, "s", body).await;
        self.deployed().await;
        assert_eq!(self.status(name).await, "running");
    }

    /// How an environment is.
    pub(crate) async fn status(&self, name: &str) -> String {
        let view = self.env_get(&format!("s/{name}")).await;
        view["status"].as_str().unwrap().to_owned()
    }
}

/// A configuration in lines: setting, value or that it is secret, where it comes from.
pub(crate) fn lines(settings: &Value) -> String {
    let line = |setting: &Value| {
        let value = match (&setting["value"], &setting["secret"]) {
            (Value::String(value), Value::Bool(false)) => format!("{value:?}"),
            (Value::Null, Value::Bool(true)) => "secret".to_owned(),
            (value, secret) => panic!("{value} {secret}"),
        };
        let (key, source) = (&setting["key"], &setting["source"]);
        format!(
            "{} = {value} ({})\n",
            key.as_str().unwrap(),
            source.as_str().unwrap()
        )
    };
    settings.as_array().unwrap().iter().map(line).collect()
}
