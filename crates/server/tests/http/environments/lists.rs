//! Lists of environments, of what was done to them, and of how they became what they are.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::{Value, json};
use std::time::Duration;

use crate::world::World;

async fn orchard() -> World {
    let world = World::with_settings(json!({})).await;
    world
        .running(
            "apple",
            json!({"owner": "Ana", "labels": {"team": "web", "size": "s"}}),
        )
        .await;
    world.pass(Duration::from_secs(10));
    world
        .running("banana", json!({"owner": "bob", "labels": {"team": "web"}}))
        .await;
    world.pass(Duration::from_secs(10));
    world.running("cherry", json!({"owner": "bob"})).await;
    world.pass(Duration::from_secs(10));
    world
        .begun(Method::POST, "s/apple/archive", Value::Null)
        .await;
    world.deployed().await;
    world
}

fn names(listed: &Value) -> String {
    let names = listed["items"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|view| view["name"].as_str().unwrap()).collect();
    names.join(" ")
}

#[tokio::test]
async fn lists_are_filtered_and_sorted() {
    let world = orchard().await;
    let mut told = String::new();
    for query in [
        "",
        "sort=changed",
        "status=archived",
        "status=running,failure",
        "archived=false",
        "archived=true",
        "owner=bob",
        "label=team",
        "label=team=web,size=s",
        "label=team=api",
        "text=AN",
        "text=an&archived=false",
    ] {
        let listed = world.env_get(&format!("s?{query}")).await;
        told.push_str(&format!("{query}: {}\n", names(&listed)));
    }
    expect![[r#"
        : apple banana cherry
        sort=changed: apple cherry banana
        status=archived: apple
        status=running,failure: banana cherry
        archived=false: banana cherry
        archived=true: apple
        owner=bob: banana cherry
        label=team: apple banana
        label=team=web,size=s: apple
        label=team=api: 
        text=AN: apple banana
        text=an&archived=false: banana
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn lists_are_paged_and_odd_questions_refused() {
    let world = orchard().await;
    for sort in ["name", "changed"] {
        let first = world.env_get(&format!("s?limit=2&sort={sort}")).await;
        let next = first["next"].as_str().unwrap();
        let rest = world
            .env_get(&format!("s?limit=2&sort={sort}&cursor={next}"))
            .await;
        assert_eq!(
            (first["items"].as_array().unwrap().len(), &rest["next"]),
            (2, &Value::Null)
        );
        assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    }
    let mut told = String::new();
    for query in [
        "status=fine",
        "label==x",
        "label=a,a",
        "sort=size",
        "limit=0",
        "cursor=x",
        "colour=red",
    ] {
        let answer = world
            .env(Method::GET, &format!("s?{query}"), Value::Null)
            .await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{query}: {}",
            answer.text
        );
        told.push_str(answer.picture().lines().next().unwrap());
        told.push('\n');
    }
    expect![[r#"
        400 API-008: status: `fine` is not a status; allowed: create-pending, update-pending, archive-pending, running, failure, partial-failure, tag-mismatch, archived, cleanup-failed
        400 API-008: label: allowed: `name` or `name=value`
        400 API-008: label: a label is named twice
        400 API-008: query: sort: unknown variant `size`, expected `name` or `changed`
        400 API-008: limit: found 0, allowed: 1 to 500
        400 STORE-008: `x` is not a cursor of this list
        400 API-008: query: colour: unknown field `colour`, expected one of `limit`, `cursor`, `status`, `archived`, `owner`, `label`, `text`, `sort`
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn what_was_done_and_how_it_became_so_is_listed() {
    let world = orchard().await;
    let first = world.env_get("s/apple/actions?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let rest = world
        .env_get(&format!("s/apple/actions?cursor={next}"))
        .await;
    let kinds = |listed: &Value| listed["items"][0]["kind"].as_str().unwrap().to_owned();
    assert_eq!(
        (kinds(&first), kinds(&rest)),
        ("archive".to_owned(), "create".to_owned())
    );
    let changes = world.env_get("s/apple/changes").await;
    let line = |change: &Value| {
        let (was, became) = (&change["was"], &change["became"]);
        format!(
            "{was} → {became}: {}\n",
            change["because"].as_str().unwrap()
        )
    };
    let told: String = changes["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect();
    expect![[r#"
        "archive-pending" → "archived": a look found it as it should be: all is well
        "running" → "archive-pending": admin asked for archive
        "create-pending" → "running": a look found it as it should be: all is well
        null → "create-pending": admin asked for it
    "#]]
    .assert_eq(&told);
}
