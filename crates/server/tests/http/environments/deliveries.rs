//! Who is told what becomes of environments, and messages to them.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::{Value, json};

use super::usual;
use crate::world::World;

fn telling(notify: &Value) -> Value {
    let mut settings = usual();
    settings["notify"] = notify.clone();
    settings
}

#[tokio::test]
async fn targets_are_kept_as_they_were_said_and_tried() {
    let world = World::new();
    let notify = json!([
        {"name": "ops", "webhook": {"url": "https://ops.example.org/in", "secret": "hooks/ops"},
         "events": ["failing", "expires-soon"], "labels": ["demo", "team=web"]},
        {"name": "chat", "slack": {"secret": "hooks/slack"}},
    ]);
    let put = world.env(Method::PUT, "-settings", telling(&notify)).await;
    assert_eq!(put.status, StatusCode::OK, "{}", put.text);
    assert_eq!(
        world.env_get("-settings").await["settings"]["notify"],
        notify
    );
    assert_eq!(
        put.json()["warnings"],
        json!([
            "notify ops: its secret hooks/ops is not set, so nothing arrives there",
            "notify chat: its secret hooks/slack is not set, so nothing arrives there",
        ])
    );
    let sent = world
        .env(Method::POST, "-deliveries", json!({"target": "chat"}))
        .await;
    assert_eq!(sent.status, StatusCode::ACCEPTED, "{}", sent.text);
    let sent = sent.json();
    assert_eq!(
        (&sent["event"], &sent["state"]),
        (&json!("test"), &json!("waiting"))
    );
    let id = sent["id"].as_str().unwrap();
    assert_eq!(world.env_get(&format!("-deliveries/{id}")).await, sent);
    assert_eq!(
        world.env_get("-deliveries?target=chat").await["items"][0],
        sent
    );
    let none = world.env_get("-deliveries?state=given-up").await;
    assert_eq!(none["items"], json!([]));
    let again = format!("-deliveries/{id}/retry");
    let again = world.env(Method::POST, &again, Value::Null).await;
    assert_eq!(again.status, StatusCode::ACCEPTED, "{}", again.text);
    let mut told = String::new();
    for (method, path, body) in [
        (Method::POST, "-deliveries", json!({"target": "other"})),
        (
            Method::GET,
            "-deliveries/delivery-0000000000000",
            Value::Null,
        ),
        (
            Method::POST,
            "-deliveries/delivery-0000000000000/retry",
            Value::Null,
        ),
    ] {
        let answer = world.env(method, path, body).await;
        let problem = answer.json();
        let (code, detail) = (&problem["code"], &problem["detail"]);
        told.push_str(&format!("{} {code} {detail}\n", answer.status.as_u16()));
    }
    expect![[r#"
        404 "ENV-020" "the project's settings name no target `other`"
        404 "ENV-018" "there is no delivery delivery-0000000000000"
        404 "ENV-018" "there is no delivery delivery-0000000000000"
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn targets_that_cannot_be_are_refused() {
    let world = World::new();
    let webhook =
        |url: &str| json!({"name": "ops", "webhook": {"url": url, "secret": "hooks/ops"}});
    let slack = json!({"name": "ops", "slack": {"secret": "hooks/slack"}});
    let mut told = String::new();
    for notify in [
        json!([webhook("ftp://a")]),
        json!([webhook("https://me:topsecret@a")]),
        json!([{"name": "ops"}]),
        json!([{"name": "ops", "slack": {"secret": "hooks"}}]),
        json!([{"name": "OPS", "slack": {"secret": "hooks/a"}}]),
        json!([{"name": "ops", "slack": {"secret": "hooks/a"}, "events": ["never"]}]),
        json!([slack, slack]),
        json!(vec![slack; 21]),
    ] {
        let answer = world.env(Method::PUT, "-settings", telling(&notify)).await;
        assert!(!answer.text.contains("topsecret"), "{}", answer.text);
        let problem = answer.json();
        let (code, detail) = (&problem["code"], &problem["detail"]);
        told.push_str(&format!("{} {code} {detail}\n", answer.status.as_u16()));
    }
    expect![[r#"
        400 "API-008" "notify[0].webhook.url: it must begin with `https://` or `http://`"
        400 "API-008" "notify[0].webhook.url: it must not name a user or a password, because it is shown to people"
        400 "API-008" "notify[0]: allowed: either webhook or slack"
        400 "API-008" "notify[0].slack.secret: allowed: a secret and its entry, like NAME/ENTRY"
        400 "API-008" "notify[0].name: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `ops`"
        400 "API-001" "notify[0].events[0]: found `never`, allowed: pending, running, failing, archived, cleanup-failed, gone, action-failed, expires-soon"
        400 "API-008" "notify[1].name: found ops twice, allowed: each name once"
        400 "API-008" "notify: found 21, allowed: at most 20"
    "#]].assert_eq(&told);
}
