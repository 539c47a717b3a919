//! Many who ask something of one environment at once.

use axum::http::{Method, StatusCode};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::world::{Answer, World};

/// How many ask.
const MANY: usize = 30;

/// Asks all of these at once; answers how often each status and code was answered.
async fn at_once(
    world: &World,
    all: impl IntoIterator<Item = (Method, &'static str, Value)>,
) -> BTreeMap<String, usize> {
    let all = all
        .into_iter()
        .map(|(method, path, body)| world.env(method, path, body));
    let mut answers = BTreeMap::new();
    for answer in join_all(all).await {
        *answers.entry(told(&answer)).or_default() += 1;
    }
    answers
}

fn told(answer: &Answer) -> String {
    let picture = answer.picture();
    picture.split(':').next().unwrap_or_default().to_owned()
}

fn counted(all: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let all = all.iter();
    all.map(|(told, count)| ((*told).to_owned(), *count))
        .collect()
}

#[tokio::test]
async fn whatever_many_say_of_it_at_once_is_all_said() {
    let scene = World::threaded(json!({})).await;
    let world = &scene.world;
    world
        .running("orange", json!({"labels": {"old": "1"}}))
        .await;
    let patches = (0..MANY).map(|one| {
        let body = json!({"labels": {format!("l{one}"): "1", "old": null}});
        (Method::PATCH, "s/orange", body)
    });
    let ends = (0..3).map(|_| (Method::POST, "s/orange/extend", json!({"seconds": 60})));
    let answers = at_once(world, patches.chain(ends)).await;
    assert_eq!(
        answers,
        counted(&[("202 Accepted application/json\n", MANY + 3)])
    );
    let view = world.env_get("s/orange").await;
    assert_eq!(view["labels"].as_object().unwrap().len(), MANY, "{view}");
    assert_eq!(view["expiresAt"], "2026-01-01T00:01:00Z");
    let many: serde_json::Map<_, _> = (0..35).map(|one| (format!("m{one}"), json!("1"))).collect();
    let one_more = world
        .env(Method::PATCH, "s/orange", json!({"labels": many}))
        .await;
    assert_eq!(
        one_more.status,
        StatusCode::BAD_REQUEST,
        "{}",
        one_more.text
    );
    assert!(
        one_more
            .text
            .contains("found 65 labels, allowed: at most 64")
    );
    assert_eq!(world.env_get("s/orange").await, view);
}

#[tokio::test]
async fn one_of_many_changes_its_settings_and_the_rest_hear_that_it_is_busy() {
    let scene = World::threaded(json!({})).await;
    let world = &scene.world;
    world.running("orange", json!({})).await;
    // What is only said of it is in nobody's way.
    let all = (0..MANY).flat_map(|one| {
        let set = json!({"set": {"application": {"a": one.to_string()}}});
        let label = json!({"labels": {format!("l{one}"): "1"}});
        [
            (Method::PATCH, "s/orange", label),
            (Method::PATCH, "s/orange", set),
        ]
    });
    let answers = at_once(world, all).await;
    let expected = [
        ("202 Accepted application/json\n", MANY + 1),
        ("409 ENV-004", MANY - 1),
    ];
    assert_eq!(answers, counted(&expected));
    let view = world.env_get("s/orange").await;
    assert_eq!(view["labels"].as_object().unwrap().len(), MANY, "{view}");
    world.deployed().await;
    let first = world.env_get("s/orange/actions").await["items"][0]["id"].clone();
    let all = (0..MANY).map(|one| match one % 2 {
        0 => (Method::PUT, "s/orange", json!({"tag": one.to_string()})),
        _ => (Method::POST, "s/orange/redeploy", json!({"action": first})),
    });
    let answers = at_once(world, all).await;
    let expected = [
        ("202 Accepted application/json\n", 1),
        ("409 ENV-004", MANY - 1),
    ];
    assert_eq!(answers, counted(&expected));
}
