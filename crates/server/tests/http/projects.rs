//! Projects: made, limited, listed to whom they concern, and removed when empty.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::access::Role;
use serde_json::{Value, json};

use crate::world::{Answer, HELLO, TOKEN, World};

async fn put(world: &World, name: &str, quota: Value) -> Answer {
    let path = format!("/api/v1/projects/{name}");
    let body = json!({"quota": quota});
    world.ask(TOKEN, Method::PUT, &path, body).await
}

async fn get(world: &World, token: &str, path: &str) -> Answer {
    world.ask(token, Method::GET, path, Value::Null).await
}

/// Declares a manifest in a project.
async fn submit(world: &World, token: &str, project: &str, text: &str) -> Answer {
    let request = axum::http::Request::post(format!("/api/v1/projects/{project}/manifests"))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/yaml")
        .body(axum::body::Body::from(text.to_owned()))
        .unwrap();
    world.send(request).await
}

fn names(listed: &Answer) -> Vec<String> {
    let items = listed.json()["items"].as_array().unwrap().clone();
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}

#[tokio::test]
async fn a_project_is_made_changed_and_listed() {
    let world = World::new();
    let made = put(&world, "lab", json!({"clusters": 2, "machines": 10})).await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(made.header("location"), "/api/v1/projects/lab");
    let changed = put(&world, "lab", json!({"clusters": 3})).await;
    assert_eq!(changed.status, StatusCode::OK);
    expect![[r#"
        {
          "createdAt": "2026-01-01T00:00:00Z",
          "name": "lab",
          "quota": {
            "clusters": 3,
            "environments": null,
            "machines": null
          },
          "updatedAt": "2026-01-01T00:00:00Z",
          "used": {
            "clusters": 0,
            "machines": 0
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&changed.json()).unwrap());
    let listed = get(&world, TOKEN, "/api/v1/projects").await;
    assert_eq!(names(&listed), ["default", "lab"]);
    let page = get(&world, TOKEN, "/api/v1/projects?limit=1").await.json();
    let next = page["next"].as_str().unwrap();
    let rest = format!("/api/v1/projects?limit=1&cursor={next}");
    assert_eq!(names(&get(&world, TOKEN, &rest).await), ["lab"]);
}

#[tokio::test]
async fn a_token_of_one_project_is_shown_that_one() {
    let world = World::new();
    world.make_project("lab").await;
    let token = world.give("ada", Role::Viewer, Some("lab")).await;
    let listed = get(&world, &token, "/api/v1/projects").await;
    assert_eq!(names(&listed), ["lab"]);
    let own = get(&world, &token, "/api/v1/projects/lab").await;
    assert_eq!(own.status, StatusCode::OK);
}

#[tokio::test]
async fn a_project_that_shall_be_new_is_refused_when_it_is_not() {
    let world = World::new();
    let make = |name: &str| {
        axum::http::Request::put(format!("/api/v1/projects/{name}"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .header("if-none-match", "*")
            .body(axum::body::Body::from(r#"{"quota": {}}"#))
            .unwrap()
    };
    assert_eq!(world.send(make("lab")).await.status, StatusCode::CREATED);
    expect![[r#"
        412 PROJECT-004: there is a project `lab` already
          hint: choose another name, or change its limits with `slipway project quota`
    "#]]
    .assert_eq(&world.send(make("lab")).await.picture());
}

#[tokio::test]
async fn names_are_free_in_another_project_and_its_things_are_its_own() {
    let world = World::with_hello().await;
    world.make_project("lab").await;
    let token = world.give("ada", Role::User, Some("lab")).await;
    let submitted = submit(&world, &token, "lab", HELLO).await;
    assert_eq!(submitted.status, StatusCode::ACCEPTED, "{}", submitted.text);
    let follow = submitted.json()["follow"].as_str().unwrap().to_owned();
    assert_eq!(follow, "/api/v1/projects/lab/manifests/hello");
    let seen = get(&world, &token, &follow).await.json();
    assert_eq!(
        (&seen["project"], &seen["author"]),
        (&json!("lab"), &json!("ada"))
    );
    let other = world.get("/manifests/hello").await.json();
    assert_eq!(other["author"], "admin");
}

#[tokio::test]
async fn what_goes_beyond_a_quota_is_refused_with_the_numbers() {
    let world = World::new();
    put(&world, "lab", json!({"clusters": 0})).await;
    let refused = submit(&world, TOKEN, "lab", HELLO).await;
    expect![[r#"
        403 PROJECT-002: project lab has 0 clusters and would get 1 more, it may have 0
          hint: remove what is not needed, or let an administrator raise it with `slipway project quota`
    "#]].assert_eq(&refused.picture());
    put(&world, "lab", json!({"clusters": 1})).await;
    let fine = submit(&world, TOKEN, "lab", HELLO).await;
    assert_eq!(fine.status, StatusCode::ACCEPTED, "{}", fine.text);
    let used = get(&world, TOKEN, "/api/v1/projects/lab").await.json();
    assert_eq!(used["used"]["clusters"], 1);
}

/// The planner sees one cluster and no quota: the plan says so beside it.
#[tokio::test]
async fn a_plan_says_how_many_machines_the_quota_holds_back() {
    let world = World::new();
    let noted = async |limit: Value| {
        let changed = put(&world, "default", json!({"machines": limit})).await;
        assert!(changed.status.is_success(), "{}", changed.text);
        let plan = world.post("/plans", HELLO).await.json();
        let notes = plan["notes"].as_array().cloned().unwrap_or_default();
        for note in &notes {
            let line = format!("note: {}\n", note.as_str().unwrap());
            assert!(plan["text"].as_str().unwrap().contains(&line));
        }
        notes
    };
    let three = json!("the project may have 3 machines, and would need 5: the last 2 wait");
    let four = json!("the project may have 4 machines, and would need 5: the last one waits");
    assert_eq!(noted(json!(3)).await, [three]);
    assert_eq!(noted(json!(4)).await, std::slice::from_ref(&four));
    for enough in [json!(5), Value::Null] {
        assert_eq!(noted(enough).await, Vec::<Value>::new());
    }
    // What is declared already counts once.
    assert_eq!(
        submit(&world, TOKEN, "default", HELLO).await.status,
        StatusCode::ACCEPTED
    );
    assert_eq!(noted(json!(4)).await, [four]);
}

#[tokio::test]
async fn a_project_goes_when_it_has_nothing_left() {
    let world = World::new();
    world.make_project("lab").await;
    let delete = async |name: &str| {
        let path = format!("/api/v1/projects/{name}");
        world.ask(TOKEN, Method::DELETE, &path, Value::Null).await
    };
    let token = world.give("ada", Role::User, Some("lab")).await;
    let kept = delete("lab").await;
    world.revoke(&token).await;
    assert_eq!(delete("lab").await.status, StatusCode::NO_CONTENT);
    let told = [
        kept,
        delete("lab").await,
        delete("default").await,
        submit(&world, TOKEN, "lab", HELLO).await,
        get(&world, TOKEN, "/api/v1/projects/lab/clusters").await,
    ];
    let told: String = told.iter().map(Answer::picture).collect();
    expect![[r#"
        409 PROJECT-003: project lab still has 1 token
          hint: delete its manifests, environments and secrets, wait until its clusters are gone, revoke its tokens, then try again
        404 PROJECT-001: there is no project `lab`
          hint: list them with `slipway get projects`; an administrator makes one with `slipway project create`
        409 PROJECT-003: project default still has to be there: it is where everything goes that names no project
          hint: remove another project; limits keep this one from being used
        404 PROJECT-001: there is no project `lab`
          hint: list them with `slipway get projects`; an administrator makes one with `slipway project create`
        404 PROJECT-001: there is no project `lab`
          hint: list them with `slipway get projects`; an administrator makes one with `slipway project create`
    "#]].assert_eq(&told);
}
