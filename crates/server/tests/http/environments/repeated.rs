//! Requests that carry a key: whoever does not hear the answer asks again.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use expect_test::expect;
use serde_json::{Value, json};

use crate::world::{Answer, PROJECT, TOKEN, World};

/// Asks something with a key.
async fn keyed(world: &World, key: &str, (method, path): (Method, &str), body: Value) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(format!("{PROJECT}/environments{path}"))
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .header("idempotency-key", key)
        .header(header::CONTENT_TYPE, "application/json");
    let body = if body.is_null() {
        Body::empty()
    } else {
        Body::from(body.to_string())
    };
    world.send(request.body(body).unwrap()).await
}

/// Asks it twice; both hear the same, and what follows is done once.
async fn twice(world: &World, key: &str, what: (Method, &str), body: Value) -> Value {
    let first = keyed(world, key, what.clone(), body.clone()).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{key}: {}", first.text);
    let second = keyed(world, key, what, body).await;
    assert_eq!(
        (second.status, &second.text),
        (first.status, &first.text),
        "{key}"
    );
    first.json()
}

async fn actions(world: &World, name: &str) -> usize {
    let all = world.env_get(&format!("s/{name}/actions")).await;
    all["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn whatever_is_asked_again_with_its_key_is_done_once() {
    let scene = World::threaded(json!({"secretDelivery": "file"})).await;
    let world = &scene.world;
    world.running("orange", json!({})).await;
    let post = |path| (Method::POST, path);
    let whole = json!({"name": "apple", "secret": {"application": {"TOKEN": "hush-1"}}});
    let created = twice(world, "create", post(""), whole.clone()).await;
    assert_eq!(created["kind"], "create");
    assert_eq!(actions(world, "apple").await, 1);
    let noted = json!({"labels": {"team": "red"}});
    let patch = (Method::PATCH, "/orange");
    let generation = twice(world, "note", patch.clone(), noted).await["generation"].clone();
    twice(
        world,
        "extend",
        post("/orange/extend"),
        json!({"seconds": 60}),
    )
    .await;
    let before = actions(world, "orange").await;
    let changed = json!({"set": {"application": {"A": "1"}}});
    twice(world, "change", patch.clone(), changed).await;
    twice(world, "cancel", post("/orange/cancel"), Value::Null).await;
    assert_eq!(actions(world, "orange").await, before + 1);
    twice(
        world,
        "clone",
        post("/orange/clone"),
        json!({"name": "copy"}),
    )
    .await;
    assert_eq!(actions(world, "copy").await, 1);
    // What happened since then changes nothing of what the first was told.
    let noted = json!({"labels": {"team": "red"}});
    let again = keyed(world, "note", patch, noted).await.json();
    assert_eq!(again["generation"], generation);
    twice(
        world,
        "delete",
        (Method::DELETE, "/orange?force=true"),
        Value::Null,
    )
    .await;
}

#[tokio::test]
async fn a_key_that_came_with_something_else_is_refused() {
    let scene = World::threaded(json!({})).await;
    let world = &scene.world;
    world.running("orange", json!({})).await;
    let extend = |seconds: u32| {
        let what = (Method::POST, "/orange/extend");
        keyed(world, "once", what, json!({"seconds": seconds}))
    };
    assert_eq!(extend(60).await.status, StatusCode::ACCEPTED);
    expect![[r#"
        409 API-012: the Idempotency-Key was used for another request
          hint: draw a new key for every new request and repeat it only with the same body
    "#]]
    .assert_eq(&extend(61).await.picture());
    let archive = keyed(
        world,
        "once",
        (Method::POST, "/orange/archive"),
        Value::Null,
    )
    .await;
    assert_eq!(archive.status, StatusCode::CONFLICT, "{}", archive.text);
    // What is only tried needs no key, and uses none up.
    let tried = keyed(
        world,
        "tried",
        (Method::POST, "?dryRun=true"),
        json!({"name": "apple"}),
    );
    assert_eq!(tried.await.status, StatusCode::OK);
    let meant = keyed(world, "tried", (Method::POST, ""), json!({"name": "apple"})).await;
    assert_eq!(meant.status, StatusCode::ACCEPTED, "{}", meant.text);
}

#[tokio::test]
async fn what_keeps_one_from_being_created_is_told_when_it_is_tried() {
    let scene = World::threaded(json!({"upMax": 1})).await;
    let world = &scene.world;
    world.running("orange", json!({})).await;
    let ask = async |query: &str| {
        let body = json!({"name": "apple"});
        keyed(world, "k", (Method::POST, query), body).await
    };
    let (tried, meant) = (ask("?dryRun=true").await, ask("").await);
    assert_eq!(tried.picture(), meant.picture());
    assert_eq!(tried.status, StatusCode::FORBIDDEN, "{}", tried.text);
}
