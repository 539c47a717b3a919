//! Secret settings: they go in, reach those who deploy, and come out nowhere.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::environment::config::{Edits, Level};
use model::sealed::{Owner, Place};
use serde_json::{Value, json};
use std::time::Duration;

use super::lines;
use crate::world::{Answer, World};

/// A value that must be seen nowhere.
const VALUE: &str = "correct-horse-battery";

fn unseen(answer: &Answer) {
    assert!(!answer.text.contains(VALUE), "{}", answer.text);
    assert!(!format!("{:?}", answer.headers).contains(VALUE));
}

/// The value that is sealed for a setting of an environment, opened.
async fn opened(world: &World, name: &str, key: &str) -> Option<String> {
    let project = "default".parse().unwrap();
    let name = name.parse().unwrap();
    let row = world.store.environment(&project, &name).await;
    let row = row.unwrap().unwrap();
    let place = Place {
        project,
        owner: Owner::Environment(row.id),
        entry: Edits::entry(Level::Application, &key.parse().unwrap()),
    };
    let value = world
        .server
        .vault
        .open(&place, &"test".into())
        .await
        .unwrap();
    value.map(|value| value.expose_text().unwrap().to_owned())
}

#[tokio::test]
async fn nothing_secret_is_taken_where_nobody_says_how_scripts_are_given_it() {
    let world = World::with_settings(json!({})).await;
    let body = json!({"name": "orange", "secret": {"application": {"password": VALUE}}});
    let refused = world.env(Method::POST, "s", body).await;
    unseen(&refused);
    expect![[r#"
        409 ENV-013: project `default` does not say how its scripts are given what is secret
          hint: let an operator say so with `slipway env settings set --secret-delivery file` (or `env`; `argv` for scripts that know nothing else); nothing was changed
    "#]].assert_eq(&refused.picture());
    assert_eq!(world.env_get("s").await["items"], json!([]));
}

#[tokio::test]
async fn a_secret_setting_is_shown_as_set_and_never_told() {
    let world = World::with_settings(json!({"secretDelivery": "file"})).await;
    let secret = json!({"application": {"db.password": VALUE, "other": "x"}});
    let body = json!({"name": "orange", "secret": secret});
    let tried = world.env(Method::POST, "s?dryRun=true", body.clone()).await;
    unseen(&tried);
    expect![[r#"
        ingress.enabled = "true" (default)
        image.tag = "" (default)
        chart = "12.0.0" (default)
        db.password = secret (added)
        other = secret (added)
    "#]]
    .assert_eq(&lines(&tried.json()["configuration"]["application"]));
    let created = world.env(Method::POST, "s", body).await;
    assert_eq!(created.status, StatusCode::ACCEPTED, "{}", created.text);
    unseen(&created);
    world.deployed().await;
    assert_eq!(
        opened(&world, "orange", "db.password").await.as_deref(),
        Some(VALUE)
    );

    let action = created.json()["action"].as_str().unwrap().to_owned();
    let mut paths: Vec<String> = [
        "s",
        "s/orange",
        "s/orange/configuration",
        "s/orange/actions",
        "s/orange/changes",
        "-settings",
        "-defaults?level=application&environment=orange",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push(format!("s/orange/actions/{action}"));
    paths.push(format!("s/orange/actions/{action}/log"));
    for path in &paths {
        let answer = world.env(Method::GET, path, Value::Null).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
        unseen(&answer);
    }
    unseen(&world.get("/events").await);
    unseen(
        &world
            .send(crate::world::request(Method::GET, "/api/v1/audit"))
            .await,
    );
    let edits = world.env_get("s/orange").await["edits"].clone();
    assert_eq!(
        edits["application"][0],
        json!({"key": "db.password", "kind": "secret", "value": null})
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_secret_is_told_by_its_place() {
    let world = World::with_settings(json!({"secretDelivery": "env"})).await;
    world.running("orange", json!({})).await;
    let mut told = String::new();
    for secret in [
        json!({"application": {"a..b": VALUE}}),
        json!({"application": {"a": format!("{VALUE}\u{0}")}}),
        json!({"application": {"a": [VALUE]}}),
        json!({"application": VALUE}),
        json!(VALUE),
    ] {
        let answer = world
            .env(Method::PATCH, "s/orange", json!({"secret": secret}))
            .await;
        unseen(&answer);
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        told.push_str(answer.picture().lines().next().unwrap());
        told.push('\n');
    }
    let refused = json!({"secret": {"application": {"a": "refuse me"}}});
    let refused = world.env(Method::PATCH, "s/orange", refused).await;
    told.push_str(refused.picture().lines().next().unwrap());
    expect![[r#"
        400 ENV-008: secret.application.a..b: key `a..b` has a dot or a blank too many; `a.b` would do
        400 ENV-009: secret.application.a: value has a NUL at position 21, which no program can be given
        400 API-001: secret.application.a: found something else, allowed: a text
        400 API-001: secret.application: found a text, allowed: an object
        400 API-001: secret: found a text, allowed: an object with application, deployment
        422 ENV-010: a secret is not good"#]].assert_eq(&told);
}

#[tokio::test]
async fn a_secret_is_replaced_kept_copied_and_forgotten() {
    let world = World::with_settings(json!({"secretDelivery": "file"})).await;
    let secret = |value: &str| json!({"secret": {"application": {"password": value}}});
    world.running("orange", secret("first")).await;
    world.begun(Method::PATCH, "s/orange", secret(VALUE)).await;
    world.deployed().await;
    assert_eq!(
        opened(&world, "orange", "password").await.as_deref(),
        Some(VALUE)
    );

    let keep = json!({"keep": {"application": ["password"]}});
    world.begun(Method::PUT, "s/orange", keep).await;
    world.deployed().await;
    assert_eq!(
        opened(&world, "orange", "password").await.as_deref(),
        Some(VALUE)
    );
    world
        .begun(Method::POST, "s/orange/clone", json!({"name": "lemon"}))
        .await;
    world.deployed().await;
    assert_eq!(
        opened(&world, "lemon", "password").await.as_deref(),
        Some(VALUE)
    );

    let actions = world.env_get("s/orange/actions").await;
    let first = actions["items"].as_array().unwrap().last().unwrap()["id"].clone();
    world.begun(Method::PUT, "s/orange", json!({})).await;
    world.deployed().await;
    assert_eq!(opened(&world, "orange", "password").await, None);
    let mut told = String::new();
    for (method, path, body) in [
        (Method::POST, "s/orange/redeploy", json!({"action": first})),
        (
            Method::PUT,
            "s/orange",
            json!({"keep": {"application": ["password"]}}),
        ),
        (
            Method::POST,
            "s",
            json!({"name": "lime", "keep": {"application": ["password"]}}),
        ),
    ] {
        let answer = world.env(method, path, body).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
        told.push_str(&answer.picture());
    }
    expect![[r#"
        409 ENV-016: the application setting `password` is secret and has no value
          hint: give it one with `slipway env update NAME --secret KEY`; values that were replaced or forgotten are not kept
        409 ENV-016: the application setting `password` is secret and has no value
          hint: give it one with `slipway env update NAME --secret KEY`; values that were replaced or forgotten are not kept
        409 ENV-016: the application setting `password` is secret and has no value
          hint: give it one with `slipway env update NAME --secret KEY`; values that were replaced or forgotten are not kept
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn what_was_deployed_before_a_secret_changed_is_not_silently_another() {
    let world = World::with_settings(json!({"secretDelivery": "file"})).await;
    let secret = |value: &str| json!({"secret": {"application": {"password": value}}});
    world.running("orange", secret("first")).await;
    let again = async |action: &str, as_now: bool| {
        let body = json!({"action": action, "secretsAsNow": as_now});
        world.env(Method::POST, "s/orange/redeploy", body).await
    };
    let latest = async || {
        let actions = world.env_get("s/orange/actions").await;
        actions["items"][0]["id"].as_str().unwrap().to_owned()
    };
    let first = latest().await;
    world.pass(Duration::from_secs(1));
    world.begun(Method::PATCH, "s/orange", secret(VALUE)).await;
    world.deployed().await;
    let second = latest().await;
    let refused = again(&first, false).await;
    unseen(&refused);
    expect![[r#"
        409 ENV-038: environment `orange`: secret settings have got other values since then: `password`
          hint: take the values of today with `--secrets-as-now` (`secretsAsNow`), or set those of then first with `slipway env update NAME --secret KEY`
    "#]].assert_eq(&refused.picture());
    assert_eq!(latest().await, second, "nothing was begun");
    for (action, as_now) in [(&first, true), (&second, false)] {
        let begun = again(action, as_now).await;
        assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.text);
        world.deployed().await;
        let value = opened(&world, "orange", "password").await;
        assert_eq!(value.as_deref(), Some(VALUE));
    }
}
