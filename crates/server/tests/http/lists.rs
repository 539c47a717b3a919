//! Lists come in pages, and every item is on exactly one of them.

use axum::http::StatusCode;
use expect_test::expect;
use serde_json::Value;

use crate::world::{HELLO, World};

/// A world with more of everything than one small page holds.
async fn crowded() -> World {
    let world = World::new();
    for n in 0..5 {
        let text = HELLO
            .replace("name: hello", &format!("name: hello-{n}"))
            .replace("name: first", &format!("name: first-{n}"));
        assert_eq!(world.submit(&text).await.status, StatusCode::ACCEPTED);
        assert_eq!(
            world
                .submit(&text.replace("count: 2", "count: 3"))
                .await
                .status,
            StatusCode::ACCEPTED
        );
        let wish = serde_json::json!({"cluster": format!("first-{n}"), "wish": {"pause": {}}, "reason": "r", "expiresInSeconds": 60});
        assert_eq!(
            world.post_json("/intents", &wish).await.status,
            StatusCode::ACCEPTED
        );
    }
    world.pass(std::time::Duration::from_secs(61));
    world.plan().await;
    world
}

/// What tells one item from another.
type Key = fn(&Value) -> String;

async fn walk(world: &World, path: &str, limit: usize, key: Key) -> Vec<String> {
    let mut seen = Vec::new();
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut cursor = String::new();
    loop {
        let page = world
            .get(&format!("{path}{separator}limit={limit}{cursor}"))
            .await
            .json();
        let items = page["items"]
            .as_array()
            .unwrap_or_else(|| panic!("{path}: {page}"));
        assert!(items.len() <= limit, "{path}");
        seen.extend(items.iter().map(key));
        match page["next"].as_str() {
            Some(next) if path.contains("/events") => cursor = format!("&after={next}"),
            Some(next) => cursor = format!("&cursor={next}"),
            None => return seen,
        }
    }
}

#[tokio::test]
async fn every_list_pages() {
    let world = crowded().await;
    let name = |item: &Value| item["name"].to_string();
    let id = |item: &Value| item["id"].to_string();
    let generation = |item: &Value| item["generation"].to_string();
    let mut told = Vec::new();
    let lists: [(&str, Key); 11] = [
        ("/manifests", name),
        ("/clusters", name),
        ("/clusters?state=scheduled", name),
        ("/clusters?manifest=hello-3", name),
        ("/machines", id),
        ("/machines?cluster=first-2", id),
        ("/tasks", id),
        ("/tasks?cluster=first-1&state=waiting", id),
        ("/events", id),
        ("/manifests/hello-0/generations", generation),
        ("/clusters/first-0/generations", generation),
    ];
    for (path, key) in lists {
        let paged = walk(&world, path, 2, key).await;
        let whole = walk(&world, path, 500, key).await;
        assert_eq!(paged, whole, "{path}");
        told.push(format!("{path}: {}\n", whole.len()));
    }
    expect![[r#"
        /manifests: 5
        /clusters: 5
        /clusters?state=scheduled: 5
        /clusters?manifest=hello-3: 1
        /machines: 30
        /machines?cluster=first-2: 6
        /tasks: 30
        /tasks?cluster=first-1&state=waiting: 6
        /events: 35
        /manifests/hello-0/generations: 2
        /clusters/first-0/generations: 2
    "#]]
    .assert_eq(&told.concat());
}

#[tokio::test]
async fn limits_and_cursors_are_checked() {
    let world = World::new();
    let mut told = String::new();
    for query in [
        "limit=0",
        "limit=501",
        "limit=x",
        "limit=1&limit=2",
        "cursor=nonsense",
        "cursor=",
        "colour=red",
    ] {
        told.push_str(&world.get(&format!("/clusters?{query}")).await.picture());
    }
    expect![[r#"
        400 API-008: limit: found 0, allowed: 1 to 500
          limit [format] found 0, allowed: 1 to 500
          hint: compare the request with /openapi.json
        400 API-008: limit: found 501, allowed: 1 to 500
          limit [format] found 501, allowed: 1 to 500
          hint: compare the request with /openapi.json
        400 API-008: query: limit: invalid digit found in string
          query [format] limit: invalid digit found in string
          hint: compare the request with /openapi.json
        400 API-008: query: duplicate field `limit`
          query [format] duplicate field `limit`
          hint: compare the request with /openapi.json
        400 STORE-008: `nonsense` is not a cursor of this list
          hint: start again without a cursor and use the one that each page returns
        400 STORE-008: `` is not a cursor of this list
          hint: start again without a cursor and use the one that each page returns
        400 API-008: query: colour: unknown field `colour`, expected one of `limit`, `cursor`, `manifest`, `state`
          query [format] colour: unknown field `colour`, expected one of `limit`, `cursor`, `manifest`, `state`
          hint: compare the request with /openapi.json
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn why_tells_of_claims_that_only_the_store_knows() {
    let world = World::with_hello().await;
    let live = world.store.live_clusters().await.unwrap().remove(0);
    let seen = world.store.cluster_view(live.id).await.unwrap().unwrap();
    let mut plan = plan::plan(&seen.view(world.now()));
    let quota = store::Quota {
        machines: Some(4),
        ..store::Quota::default()
    };
    let project = model::name::Name::default_project();
    let put = world
        .store
        .put_project(&project, quota, "ann".into(), world.now());
    put.await.unwrap();
    // The planner does not know of it; the commit says so.
    let refused = world.store.commit(plan.clone(), world.now()).await;
    if let Err(store::CommitError::Refused { machine, reason }) = refused {
        plan.hold_back(machine, &reason);
    }
    world.store.commit(plan, world.now()).await.unwrap();
    let why = world.get("/clusters/first/why").await.json();
    let told: String = why["chain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| format!("{} → {}\n", cause["fact"], cause["next"]))
        .collect();
    expect![[r#"
        "cluster first is error at generation 1: 0 of 3 control and 0 of 2 compute nodes are ready" → null
        "create first-muscle-02: the project has 4 of at most 4 machines" → "remove some machines, or ask an administrator for more with `slipway project quota`"
        "4 tasks wait for a worker" → "begins by itself"
    "#]].assert_eq(&told);
}
