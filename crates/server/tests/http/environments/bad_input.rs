//! Every kind of bad input, one after the other: each is a problem of its own with a hint, and
//! changes nothing.
//!
//! What only a real script can do wrong is in the tests of the program, under the same name.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::{Value, json};

use crate::world::{World, request};

/// Two environments: one that runs, one that rests.
async fn world() -> World {
    let world = World::with_settings(json!({})).await;
    world.running("lemon", json!({})).await;
    world
        .begun(Method::POST, "s/lemon/archive", Value::Null)
        .await;
    world.deployed().await;
    world
        .running("orange", json!({"set": {"application": {"replicas": "2"}}}))
        .await;
    world
}

/// All that bad input could have changed.
async fn all(world: &World) -> Vec<Value> {
    let mut all = vec![
        world.env_get("s").await,
        world.env_get("-settings").await,
        world.env_get("s/orange").await,
    ];
    for name in ["orange", "lemon"] {
        all.push(world.env_get(&format!("s/{name}/actions")).await);
        all.push(world.env_get(&format!("s/{name}/changes")).await);
        all.push(world.env_get(&format!("s/{name}/configuration")).await);
    }
    all
}

/// Asks for something that cannot be.
async fn refused(
    world: &World,
    (method, path, body): (Method, &str, Value),
    (status, code): (StatusCode, &str),
    hint: &str,
) {
    let before = all(world).await;
    let answer = world.env(method.clone(), path, body.clone()).await;
    let asked = format!("{method} {path} {}", cut(&body.to_string()));
    assert_eq!(answer.status, status, "{asked}: {}", cut(&answer.text));
    let problem = answer.json();
    assert_eq!(problem["code"], code, "{asked}: {}", cut(&answer.text));
    let said = problem["hint"].as_str().unwrap_or_default();
    assert!(said.contains(hint), "{asked}: the hint is {said:?}");
    assert!(all(world).await == before, "{asked} changed something");
    assert_eq!(world.take_up().await.len(), 0, "{asked} began something");
}

fn cut(text: &str) -> String {
    text.chars().take(400).collect()
}

const BAD: StatusCode = StatusCode::BAD_REQUEST;
const CONFLICT: StatusCode = StatusCode::CONFLICT;

#[tokio::test]
async fn names_that_are_not_2_to_16_or_not_safe_for_dns() {
    let world = world().await;
    for name in [
        "",
        "a",
        "a1234567890abcdef",
        "1a",
        "-a",
        "a-",
        "A1",
        "a_b",
        "a.b",
        "a b",
        "ä1",
        "a\u{0}b",
        "../x",
    ] {
        let create = (Method::POST, "s", json!({"name": name}));
        refused(&world, create, (BAD, "ENV-001"), "write 2 to 16 of a-z").await;
        let clone = (Method::POST, "s/orange/clone", json!({"name": name}));
        refused(&world, clone, (BAD, "ENV-001"), "write 2 to 16 of a-z").await;
    }
}

#[tokio::test]
async fn names_that_others_have() {
    let world = world().await;
    for (name, hint) in [
        ("orange", "slipway env update orange"),
        ("lemon", "slipway env restore lemon"),
    ] {
        let create = (Method::POST, "s", json!({"name": name}));
        refused(&world, create, (CONFLICT, "ENV-002"), hint).await;
        let clone = (Method::POST, "s/orange/clone", json!({"name": name}));
        refused(&world, clone, (CONFLICT, "ENV-002"), hint).await;
    }
}

#[tokio::test]
async fn keys_with_odd_dots() {
    let world = world().await;
    let hint = "joined by single dots";
    for key in ["image..tag", ".a", "a.", " a . b ", "..", "", "a=b", "a\nb"] {
        for body in [
            json!({"set": {"application": {key: "1"}}}),
            json!({"set": {"deployment": {key: "1"}}}),
            json!({"remove": {"application": [key]}}),
            json!({"unset": {"deployment": [key]}}),
        ] {
            let patch = (Method::PATCH, "s/orange", body);
            refused(&world, patch, (BAD, "ENV-008"), hint).await;
        }
        let body = json!({"name": "lime", "set": {"application": {key: "1"}}});
        refused(&world, (Method::POST, "s", body), (BAD, "ENV-008"), hint).await;
        let body = json!({"set": {"application": {key: "1"}}});
        let put = (Method::PUT, "s/orange", body);
        refused(&world, put, (BAD, "ENV-008"), hint).await;
    }
}

/// Equals signs, quotes and newlines are values as any other, and come out as they went in.
#[tokio::test]
async fn values_with_equals_signs_quotes_and_newlines_are_kept_as_they_are() {
    let world = world().await;
    let odd = "a=b==c \"d\" 'e' `f` $(g)\n\tsecond line\r\n, ümlaut\u{1b}[2J";
    let body = json!({"set": {"application": {"odd": odd}, "deployment": {"odd": odd}}});
    world.begun(Method::PATCH, "s/orange", body).await;
    world.deployed().await;
    let view = world.env_get("s/orange/configuration").await;
    for level in ["application", "deployment"] {
        let settings = view[level].as_array().unwrap().iter();
        let found = settings.into_iter().find(|setting| setting["key"] == "odd");
        assert_eq!(found.unwrap()["value"], json!(odd), "{level}");
    }
}

#[tokio::test]
async fn values_with_nul_or_longer_than_any_argument() {
    let world = world().await;
    let long = "x".repeat(200_000);
    let hint = "any text will do that has no NUL and is shorter";
    for value in ["a\u{0}b", "\u{0}", long.as_str()] {
        for body in [
            json!({"set": {"application": {"a": value}}}),
            json!({"set": {"deployment": {"a": value}}}),
            json!({"tag": value}),
        ] {
            let patch = (Method::PATCH, "s/orange", body.clone());
            refused(&world, patch, (BAD, "ENV-009"), hint).await;
            let put = (Method::PUT, "s/orange", body.clone());
            refused(&world, put, (BAD, "ENV-009"), hint).await;
            let mut body = body;
            body["name"] = json!("lime");
            refused(&world, (Method::POST, "s", body), (BAD, "ENV-009"), hint).await;
        }
    }
    // Nothing of a secret one is repeated, and without a way to hand it over it is not taken.
    let world = World::with_settings(json!({"secretDelivery": "file"})).await;
    world.running("orange", json!({})).await;
    world.running("lemon", json!({})).await;
    let body = json!({"secret": {"application": {"a": "hunter2\u{0}"}}});
    let patch = (Method::PATCH, "s/orange", body);
    refused(&world, patch, (BAD, "ENV-009"), hint).await;
}

#[tokio::test]
async fn wrong_transitions() {
    let world = world().await;
    let possible = "possible now: ";
    for (method, path, body) in [
        (Method::POST, "s/orange/restore", Value::Null),
        (Method::POST, "s/orange/cleanup", Value::Null),
        (Method::DELETE, "s/orange", Value::Null),
        (Method::POST, "s/lemon/archive", Value::Null),
        (Method::DELETE, "s/lemon", Value::Null),
        (Method::PATCH, "s/lemon", json!({"tag": "v2"})),
        (Method::PUT, "s/lemon", json!({})),
    ] {
        let asked = (method, path, body);
        refused(&world, asked, (CONFLICT, "ENV-005"), possible).await;
    }
    let cancel = (Method::POST, "s/orange/cancel", Value::Null);
    let hint = "slipway env info orange";
    refused(&world, cancel, (CONFLICT, "ENV-017"), hint).await;
}

#[tokio::test]
async fn updates_while_something_is_done() {
    let world = world().await;
    world
        .begun(Method::PATCH, "s/orange", json!({"tag": "v2"}))
        .await;
    let claims = world.take_up().await;
    assert_eq!(claims.len(), 1);
    let hint = "slipway env wait orange";
    for (method, path, body) in [
        (Method::PATCH, "s/orange", json!({"tag": "v3"})),
        (Method::PUT, "s/orange", json!({"tag": "v3"})),
        (Method::POST, "s/orange/archive", Value::Null),
        (Method::POST, "s/orange/restore", Value::Null),
        (Method::POST, "s/orange/cleanup", Value::Null),
        (Method::POST, "s/orange/cleanup?force=true", Value::Null),
        (Method::DELETE, "s/orange?force=true", Value::Null),
    ] {
        let asked = (method, path, body);
        refused(&world, asked, (CONFLICT, "ENV-004"), hint).await;
    }
    let stale = world
        .env_if(Method::PATCH, "s/orange", 1, json!({"tag": "v3"}))
        .await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(stale.json()["code"], "ENV-014");
}

#[tokio::test]
async fn names_that_nobody_has() {
    let world = world().await;
    let missing = (StatusCode::NOT_FOUND, "ENV-003");
    for (method, path, body) in [
        (Method::GET, "s/lime", Value::Null),
        (Method::PATCH, "s/lime", json!({"tag": "v2"})),
        (Method::PUT, "s/lime", json!({})),
        (Method::DELETE, "s/lime", Value::Null),
        (Method::POST, "s/lime/archive", Value::Null),
        (Method::POST, "s/lime/clone", json!({"name": "plum"})),
        (Method::POST, "s/lime/extend", json!({"seconds": 60})),
        (Method::GET, "s/lime/configuration", Value::Null),
    ] {
        refused(&world, (method, path, body), missing, "slipway env list").await;
    }
    let body = json!({"action": "action-0000000000000"});
    let redeploy = (Method::POST, "s/orange/redeploy", body);
    let missing = (StatusCode::NOT_FOUND, "ENV-015");
    refused(&world, redeploy, missing, "slipway env info orange").await;
}

#[tokio::test]
async fn names_that_stand_twice_and_text_that_nothing_has() {
    let world = world().await;
    let before = all(&world).await;
    let text = r#"{"set": {"application": {"a": "1", "a": "2"}}, "labels": {"x": "1", "x": null}}"#;
    let mut request = request(
        Method::PATCH,
        "/api/v1/projects/default/environments/orange",
    );
    *request.body_mut() = text.into();
    let answer = world.send(request).await;
    expect![[r#"
        400 API-001: the body has 2 faults
          set.application.a [duplicate] found twice, allowed: each name once
          labels.x [duplicate] found twice, allowed: each name once
          hint: compare the body with /openapi.json
    "#]]
    .assert_eq(&answer.picture());
    assert!(all(&world).await == before);
    let query = (Method::GET, "s?text=%00", Value::Null);
    refused(&world, query, (BAD, "API-008"), "openapi").await;
}

#[tokio::test]
async fn what_would_not_be_heeded() {
    let world = world().await;
    let query = (BAD, "API-008");
    for (path, body) in [
        ("s/lemon/restore?dryRun=true", Value::Null),
        ("s/orange/cancel?dryRun=true", Value::Null),
        ("s/orange/archive?dryRun=true", Value::Null),
        ("s/orange/clone?dryRun=true", json!({"name": "lime"})),
        (
            "s/orange/redeploy?dryRun=true",
            json!({"action": "action-0c5w3k9qj2m4x"}),
        ),
        ("s/orange/extend?dryRun=true", json!({"seconds": 60})),
    ] {
        let hint = "compare the request with /openapi.json";
        refused(&world, (Method::POST, path, body), query, hint).await;
    }
    for path in [
        "s/orange/archive",
        "s/orange/cleanup?force=true",
        "s/lemon/restore",
        "s/orange/cancel",
    ] {
        let body = json!({"force": true, "dryRun": true});
        let hint = "compare the body with /openapi.json";
        refused(&world, (Method::POST, path, body), (BAD, "API-001"), hint).await;
    }
}
