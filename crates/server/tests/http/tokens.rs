//! Tokens: told once, never above one's own role, and gone when revoked.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::access::Role;
use serde_json::{Value, json};

use crate::world::{Answer, TOKEN, World};

const TOKENS: &str = "/api/v1/tokens";

async fn create(world: &World, token: &str, body: Value) -> Answer {
    world.ask(token, Method::POST, TOKENS, body).await
}

/// A list in one line per token.
async fn list(world: &World, token: &str, query: &str) -> String {
    let path = format!("{TOKENS}{query}");
    let listed = world.ask(token, Method::GET, &path, Value::Null).await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.text);
    let items = listed.json()["items"].as_array().unwrap().clone();
    let mut lines: Vec<_> = items
        .iter()
        .map(|item| {
            let word = |name: &str| item[name].as_str().unwrap_or("-").to_owned();
            let words = [
                "name",
                "role",
                "project",
                "state",
                "createdBy",
                "expiresAt",
                "lastUsedAt",
            ];
            words.map(word).join(" ") + "\n"
        })
        .collect();
    lines.sort();
    lines.concat()
}

#[tokio::test]
async fn a_token_is_told_once_and_never_again() {
    let world = World::new();
    let made = create(&world, TOKEN, json!({"name": "ci", "role": "user"})).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("location"), format!("{TOKENS}/{id}"));
    assert_eq!(made.header("cache-control"), "no-store");
    assert!(
        token.starts_with("slipway_") && token.len() == 72,
        "{token}"
    );
    let used = world.ask(&token, Method::GET, "/api/v1/projects", Value::Null);
    assert_eq!(used.await.status, StatusCode::OK);
    for path in [TOKENS, "/api/v1/audit"] {
        let listed = world.ask(TOKEN, Method::GET, path, Value::Null).await;
        assert!(listed.text.contains(&id) && !listed.text.contains(&token));
    }
}

#[tokio::test]
async fn tokens_are_listed_with_what_became_of_them() {
    let world = World::new();
    world.make_project("lab").await;
    let lab = world.give("ada", Role::Admin, Some("lab")).await;
    let gone = world.give("gone", Role::Viewer, None).await;
    let brief =
        json!({"name": "brief", "role": "operator", "project": "lab", "expiresInSeconds": 60});
    assert_eq!(
        create(&world, &lab, brief).await.status,
        StatusCode::CREATED
    );
    world.revoke(&gone).await;
    world.pass(Duration::from_mins(1));
    expect![[r#"
        ada admin lab active admin - 2026-01-01T00:00:00Z
        admin admin - active slipway - 2026-01-01T00:01:00Z
        brief operator lab expired ada 2026-01-01T00:01:00Z -
        gone viewer - revoked admin - -
    "#]]
    .assert_eq(&list(&world, TOKEN, "").await);
    expect![[r#"
        ada admin lab active admin - 2026-01-01T00:01:00Z
        brief operator lab expired ada 2026-01-01T00:01:00Z -
    "#]]
    .assert_eq(&list(&world, &lab, "").await);
    assert_eq!(
        list(&world, &lab, "").await,
        list(&world, TOKEN, "?project=lab").await
    );
}

#[tokio::test]
async fn nobody_gives_more_than_they_have() {
    let world = World::new();
    world.make_project("lab").await;
    let lab = world.give("ada", Role::Admin, Some("lab")).await;
    let mut told = String::new();
    for body in [
        json!({"name": "mine", "role": "admin", "project": "lab"}),
        json!({"name": "all", "role": "viewer"}),
        json!({"name": "theirs", "role": "viewer", "project": "default"}),
        json!({"name": "nowhere", "role": "viewer", "project": "nowhere"}),
    ] {
        let answer = create(&world, &lab, body).await;
        told.push_str(&answer.picture());
    }
    let nowhere = json!({"name": "nowhere", "role": "viewer", "project": "nowhere"});
    told.push_str(&create(&world, TOKEN, nowhere).await.picture());
    expect![[r#"
        201 Created application/json
        403 AUTH-008: the token is good for project lab and cannot make one for all projects
          hint: ask for the role that you have or a lower one, in a project that your token is good for, and for no longer
        403 AUTH-006: the token is good for another project than the one asked for
          hint: name your own project with --project, or ask an administrator for a token of this one
        403 AUTH-006: the token is good for another project than the one asked for
          hint: name your own project with --project, or ask an administrator for a token of this one
        404 PROJECT-001: there is no project `nowhere`
          hint: list them with `slipway get projects`; an administrator makes one with `slipway project create`
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn what_somebody_has_for_a_time_they_give_for_that_time() {
    let world = World::new();
    let brief = json!({"name": "ada", "role": "admin", "expiresInSeconds": 60});
    let ada = create(&world, TOKEN, brief).await.json()["token"].clone();
    let mut told = String::new();
    for seconds in [json!(null), json!(61), json!(60)] {
        let body = json!({"name": "mine", "role": "viewer", "expiresInSeconds": seconds});
        let answer = create(&world, ada.as_str().unwrap(), body).await;
        told.push_str(&answer.picture());
    }
    expect![[r#"
        403 AUTH-008: the token is good until 2026-01-01T00:01:00Z and cannot make one that lasts longer
          hint: ask for the role that you have or a lower one, in a project that your token is good for, and for no longer
        403 AUTH-008: the token is good until 2026-01-01T00:01:00Z and cannot make one that lasts longer
          hint: ask for the role that you have or a lower one, in a project that your token is good for, and for no longer
        201 Created application/json
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn an_administrator_of_a_project_ends_its_tokens_alone() {
    let world = World::new();
    world.make_project("lab").await;
    let lab = world.give("ada", Role::Admin, Some("lab")).await;
    let made = create(&world, TOKEN, json!({"name": "ci", "role": "user"})).await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let revoke = async |token: &str| {
        let path = format!("{TOKENS}/{id}");
        world.ask(token, Method::DELETE, &path, Value::Null).await
    };
    let told = [revoke(&lab).await.picture(), revoke(TOKEN).await.picture()];
    let told = told.concat().replace(&id, "ID");
    expect![[r#"
        404 API-002: there is no token `ID`
          hint: list them with `slipway token list`
        200 OK application/json
    "#]]
    .assert_eq(&told);
    let again = revoke(TOKEN).await;
    assert_eq!(again.status, StatusCode::OK, "a repeat does no harm");
    assert_eq!(again.json()["state"], "revoked");
}

#[tokio::test]
async fn what_is_no_token_is_refused_with_its_place() {
    let world = World::new();
    let mut told = String::new();
    for body in [
        json!({"role": "boss"}),
        json!({"name": " ", "role": "user"}),
        json!({"name": "a\u{1b}[2J", "role": "user"}),
        json!({"name": "a".repeat(101), "role": "user"}),
        json!({"name": "a", "role": "user", "project": "Lab"}),
        json!({"name": "a", "role": "user", "expiresInSeconds": 0}),
    ] {
        told.push_str(&create(&world, TOKEN, body).await.picture());
    }
    expect![[r#"
        400 API-001: the body has 2 faults
          name [required] found nothing; this field is required
          role [format] found `boss`, allowed: viewer, user, operator, admin
          hint: compare the body with /openapi.json
        400 API-008: name: found nothing; say who will hold it
          name [format] found nothing; say who will hold it
          hint: compare the request with /openapi.json
        400 API-008: name: found control characters, allowed: one line of plain text
          name [format] found control characters, allowed: one line of plain text
          hint: compare the request with /openapi.json
        400 API-008: name: allowed are at most 100 characters
          name [format] allowed are at most 100 characters
          hint: compare the request with /openapi.json
        400 API-008: project: `L` is upper case; allowed are a-z, 0-9 and, inside, hyphens
          project [format] `L` is upper case; allowed are a-z, 0-9 and, inside, hyphens
          hint: compare the request with /openapi.json
        400 API-008: expiresInSeconds: found 0, allowed: 1 or more
          expiresInSeconds [format] found 0, allowed: 1 or more
          hint: compare the request with /openapi.json
    "#]]
    .assert_eq(&told);
}
