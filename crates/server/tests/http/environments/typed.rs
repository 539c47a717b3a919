//! Settings with types: what is known of them is told, and what they cannot be is refused before
//! anything is done, all at once, and without anything secret.

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::environment::config::{Edits, Given, Level, Setting};
use model::environment::schema::{Owner, Schema, Sight, faults, path, written};
use model::environment::settings::{Deploy, Settings};
use model::fault::Fault;
use serde_json::{Map, Value, json};
use server::Candidate;

use crate::world::{Answer, World};

/// A value that must be seen nowhere.
const VALUE: &str = "correct-horse";

/// What the chart of a project says; a stricter one is in another place.
pub(super) fn schema(settings: &Settings) -> Option<Schema> {
    let Deploy::Helm(chart) = &settings.deploy else {
        return None;
    };
    let most = if chart.chart == "/strict" { 2 } else { 20 };
    Some(Schema::from(json!({
        "additionalProperties": false,
        "required": ["replicas"],
        "properties": {
            "replicas": {"type": "integer", "minimum": 0, "maximum": most, "description": "How many pods"},
            "pull": {"enum": ["Always", "Never"], "default": "Never"},
            "path": {"type": "string", "pattern": "^/"},
            "password": {"type": "string", "minLength": 20},
        },
    })))
}

/// Whether the chart of a project is one with other defaults.
pub(super) fn is_newer(settings: &Settings) -> bool {
    matches!(&settings.deploy, Deploy::Helm(chart) if chart.chart == "/newer")
}

/// What is wrong with the settings of a candidate that anybody made.
pub(super) fn faults_of(candidate: &Candidate) -> Vec<Fault> {
    let Some(schema) = schema(&candidate.settings) else {
        return Vec::new();
    };
    let mut values = Map::new();
    let mut owners = BTreeMap::new();
    let mut give = |level: Level, setting: &Setting| {
        let (text, sight) = match &setting.value {
            Given::Plain(text) => (text.as_str().to_owned(), Sight::Open),
            Given::Secret => {
                let entry = Edits::entry(level, &setting.key);
                let fresh = candidate.fresh.iter().find(|(known, _)| *known == entry);
                let text = fresh.and_then(|(_, value)| value.expose_text());
                (text.unwrap_or("x").to_owned(), Sight::Secret)
            }
        };
        let key = written(&path(setting.key.as_str()));
        let number = text.parse::<i64>().map(Value::from);
        values.insert(key.clone(), number.unwrap_or(Value::String(text)));
        owners.insert(key, Owner { level, sight });
    };
    let edited = |one: &&Setting| one.source != model::environment::config::Source::Default;
    for setting in candidate.deployment.iter().filter(edited) {
        give(Level::Deployment, setting);
    }
    for setting in candidate.application.iter().filter(edited) {
        give(Level::Application, setting);
    }
    faults(&schema.judge(&Value::Object(values), false), &owners)
}

/// A world whose project has a chart.
async fn charted(chart: &str) -> World {
    let world = World::new();
    put_chart(&world, chart).await;
    world
}

async fn put_chart(world: &World, chart: &str) {
    let settings = json!({
        "projectName": "Shop", "baseDomain": "shop.example.org", "namespace": "shop",
        "helm": {"chart": chart},
    });
    let put = world.env(Method::PUT, "-settings", settings).await;
    assert_eq!(put.status, StatusCode::OK, "{}", put.text);
}

/// All that is wrong, in one request.
fn wrong() -> Value {
    json!({
        "set": {
            "application": {"pull": "Sometimes", "replica": "3", "path": "/good"},
            "deployment": {"replicas": "50"},
        },
        "secret": {"application": {"password": VALUE}},
    })
}

fn unseen(answer: &Answer) {
    assert!(!answer.text.contains(VALUE), "{}", answer.text);
}

#[tokio::test]
async fn keys_come_with_what_the_chart_says_of_them() {
    let world = charted("/chart").await;
    let told = world.env_get("-keys?level=application").await;
    assert_eq!(
        told["keys"],
        json!(["password", "path", "pull", "replicas"])
    );
    let each = told["settings"].as_array().unwrap().iter();
    let each: String = each.map(|one| format!("{one}\n")).collect();
    expect![[r#"
        {"key":"password","minLength":20,"required":false,"types":["string"]}
        {"key":"path","pattern":"^/","required":false,"types":["string"]}
        {"allowed":["Always","Never"],"default":"Never","key":"pull","required":false,"types":["string"]}
        {"description":"How many pods","key":"replicas","maximum":20,"minimum":0,"required":true,"types":["integer"]}
    "#]].assert_eq(&each);
    // Scripts tell only names.
    let world = World::with_settings(json!({})).await;
    let told = world.env_get("-keys?level=application").await;
    assert_eq!(told["keys"], json!(["image.tag", "replicas"]));
    assert_eq!(
        told["settings"],
        json!([{"key": "image.tag", "required": false}, {"key": "replicas", "required": false}])
    );
}

#[tokio::test]
async fn all_wrong_settings_are_refused_at_once_and_nothing_is_created() {
    let world = charted("/chart").await;
    let mut body = wrong();
    body["name"] = json!("orange");
    let refused = world.env(Method::POST, "s", body.clone()).await;
    unseen(&refused);
    expect![[r#"
        422 ENV-021: 4 settings have values that they cannot have
          application.password [range] found a secret value, allowed: a text of at least 20 characters
          application.pull [format] found "Sometimes", allowed: "Always" or "Never"
          application.replica [unknown-field] `replica` is not known to the chart; did you mean `replicas`?
          deployment.replicas [range] found 50, allowed: a whole number from 0 to 20
          hint: see what each setting may be with `slipway env keys`; nothing was changed
    "#]].assert_eq(&refused.picture());
    // What is only tried is refused in the same way.
    let tried = world.env(Method::POST, "s?dryRun=true", body).await;
    assert_eq!(tried.text, refused.text);
    assert_eq!(world.env_get("s").await["items"], json!([]));
    assert!(world.take_up().await.is_empty());
    unseen(&world.get("/events").await);
    // A single one is all that is said.
    let body = json!({"name": "orange", "set": {"application": {"replicas": "many"}}});
    let refused = world.env(Method::POST, "s", body).await;
    expect![[r#"
        422 ENV-021: application.replicas: found "many", allowed: a whole number from 0 to 20
          application.replicas [type] found "many", allowed: a whole number from 0 to 20
          hint: see what each setting may be with `slipway env keys`; nothing was changed
    "#]]
    .assert_eq(&refused.picture());
}

#[tokio::test]
async fn a_change_with_a_wrong_setting_changes_nothing() {
    let world = charted("/chart").await;
    let good = json!({"set": {"application": {"path": "/a"}}, "labels": {"team": "web"}});
    world.running("orange", good).await;
    let before = world.env_get("s/orange").await;
    let mut patch = wrong();
    patch["labels"] = json!({"team": "other"});
    for (method, path, body) in [
        (Method::PATCH, "s/orange", patch.clone()),
        (Method::PATCH, "s/orange?dryRun=true", patch),
        (Method::PUT, "s/orange", wrong()),
        (Method::PUT, "s/orange?dryRun=true", wrong()),
    ] {
        let refused = world.env(method.clone(), path, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        unseen(&refused);
        let problem: api::Problem = serde_json::from_str(&refused.text).unwrap();
        assert_eq!(
            (problem.code.as_str(), problem.faults.len()),
            ("ENV-021", 4)
        );
        assert_eq!(world.env_get("s/orange").await, before, "{method} {path}");
    }
    assert!(world.take_up().await.is_empty());
    // What is right is taken.
    let right = json!({"set": {"application": {"replicas": "20"}}});
    world.begun(Method::PATCH, "s/orange", right).await;
}

#[tokio::test]
async fn what_a_chart_takes_no_more_is_neither_restored_nor_copied_nor_done_again() {
    let world = charted("/chart").await;
    let many = json!({"set": {"application": {"replicas": "10"}}});
    world.running("orange", many).await;
    let action = world.env_get("s/orange/actions").await["items"][0]["id"].clone();
    put_chart(&world, "/strict").await;
    let before = world.env_get("s/orange").await;
    let again = json!({"action": action});
    for (path, body) in [
        ("s/orange/redeploy", again),
        ("s/orange/clone", json!({"name": "lemon"})),
    ] {
        let refused = world.env(Method::POST, path, body).await;
        assert!(refused.text.contains("ENV-021"), "{path} {}", refused.text);
    }
    assert_eq!(world.env_get("s/orange").await, before);
    let copies = world.env_get("s").await;
    assert_eq!(copies["items"].as_array().unwrap().len(), 1);
    // It goes, and does not come back before somebody mends it.
    world
        .begun(Method::POST, "s/orange/archive", Value::Null)
        .await;
    world.deployed().await;
    let refused = world
        .env(Method::POST, "s/orange/restore", Value::Null)
        .await;
    expect![[r#"
        422 ENV-021: application.replicas: found 10, allowed: a whole number from 0 to 2
          application.replicas [range] found 10, allowed: a whole number from 0 to 2
          hint: see what each setting may be with `slipway env keys`; nothing was changed
    "#]]
    .assert_eq(&refused.picture());
    assert_eq!(world.status("orange").await, "archived");
}

#[tokio::test]
async fn what_helm_brings_back_is_recorded_as_what_it_was() {
    let world = charted("/chart").await;
    world.running("orange", json!({})).await;
    world
        .begun(Method::POST, "s/orange/archive", Value::Null)
        .await;
    world.deployed().await;
    put_chart(&world, "/newer").await;
    let restored = world
        .begun(Method::POST, "s/orange/restore", Value::Null)
        .await;
    let detail = world.env_get(&format!("s/orange/actions/{restored}")).await;
    let lines = crate::environments::lines(&detail["configuration"]["application"]);
    assert!(lines.contains("chart = "), "{lines}");
    assert!(!lines.contains("sick"), "{lines}");
    world.deployed().await;
    // Whoever changes it has the defaults of then.
    let updated = world.begun(
        Method::PATCH,
        "s/orange",
        json!({"set": {"application": {"path": "/a"}}}),
    );
    let detail = world
        .env_get(&format!("s/orange/actions/{}", updated.await))
        .await;
    let lines = crate::environments::lines(&detail["configuration"]["application"]);
    assert!(lines.contains("sick"), "{lines}");
}
