//! Two lives of one name: a cluster that is stuck on its way out, and its successor.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::{Value, json};
use store::Ended;

use crate::world::{HELLO, PROJECT, World, request};

/// A world in which a machine of the first life of `first` cannot be deleted, and [`HELLO`] was applied
/// anew. Answers the ids of the two clusters, the older first.
async fn two_lives() -> (World, String, String) {
    let world = World::with_hello().await;
    world.settle().await;
    let gone = request(Method::DELETE, &format!("{PROJECT}/manifests/hello"));
    assert_eq!(world.send(gone).await.status, StatusCode::ACCEPTED);
    for _ in 0..100 {
        world.plan().await;
        let claims = world.claim(100).await;
        if claims.is_empty() {
            break;
        }
        for claim in claims {
            let refused = claim.task.machine.name.as_str() == "first-muscle-02"
                && claim.task.action.kind() == model::task::Kind::Delete;
            let ended = if refused {
                Ended::Stuck {
                    error: "the provider refuses".to_owned(),
                }
            } else {
                Ended::Done
            };
            world.end(claim, ended).await;
        }
    }
    world.submit(HELLO).await;
    world.settle().await;
    let listed = world.get("/clusters").await.json();
    let id = |at: usize| listed["items"][at]["id"].as_str().unwrap_or_default();
    let (old, new) = (id(0).to_owned(), id(1).to_owned());
    assert!(!new.is_empty(), "there are no two lives: {listed}");
    (world, old, new)
}

/// The facts of a chain, with what is next, and words in place of ids.
fn facts(chain: &Value, old: &str) -> String {
    let chain = chain["chain"].as_array().map(Vec::as_slice);
    let lines = chain.unwrap_or_default().iter().map(|of| {
        let next = of["next"].as_str().unwrap_or("-");
        let fact = of["fact"].as_str().unwrap_or("-");
        format!("{fact}\n  → {next}\n")
    });
    lines.collect::<String>().replace(old, "OLD")
}

#[tokio::test]
async fn an_earlier_life_that_is_still_leaving_is_told_and_found_by_its_id() {
    let (world, old, new) = two_lives().await;
    let why = world.get("/clusters/first/why").await.json();
    expect![[r#"
        cluster first is done at generation 1: 3 of 3 control and 2 of 2 compute nodes are ready
          → -
        everything was last seen as declared
          → -
        an earlier cluster first, OLD, is still being removed: delete first-muscle-02: stuck: the provider refuses
          → `slipway why cluster OLD` says what it waits for
    "#]].assert_eq(&facts(&why, &old));
    let described = world.get("/clusters/first").await.json();
    assert_eq!(described["id"], new.as_str());
    let told = described["notes"][0].as_str().unwrap_or_default();
    expect!["an earlier cluster first, OLD, is still being removed: delete first-muscle-02: stuck: the provider refuses; `slipway why cluster OLD` says what it waits for"].assert_eq(&told.replace(&old, "OLD"));
    let shown = world.post("/plans", HELLO).await.json();
    assert_eq!(shown["notes"][0], told);

    for id in [&old, &new] {
        let found = world.get(&format!("/clusters/{id}")).await;
        assert_eq!(found.status, StatusCode::OK, "{}", found.text);
        assert_eq!(found.json()["id"], id.as_str());
    }
    let why = world.get(&format!("/clusters/{old}/why")).await.json();
    let stuck = facts(&why, &old);
    assert!(stuck.contains("the provider refuses"), "{stuck}");
    let listed = world.get(&format!("/machines?cluster={old}")).await.json();
    let mut listed = listed["items"].as_array().unwrap().iter();
    assert!(listed.len() > 0 && listed.all(|of| of["clusterId"] == old.as_str()));
    let tasks = world
        .get(&format!("/tasks?cluster={old}&state=stuck"))
        .await
        .json();
    assert_eq!(tasks["items"].as_array().unwrap().len(), 1, "{tasks}");
    let tasks = world
        .get(&format!("/tasks?cluster={new}&state=stuck"))
        .await
        .json();
    assert_eq!(tasks["items"], json!([]));
}

#[tokio::test]
async fn machines_of_one_name_are_told_apart_and_everybody_means_the_same() {
    let (world, old, new) = two_lives().await;
    let listed = world.get("/machines?cluster=first").await.json();
    let named = listed["items"].as_array().unwrap().iter();
    let named: Vec<_> = named.filter(|of| of["name"] == "first-muscle-02").collect();
    let of = |cluster: &str| {
        let mut found = named.iter().filter(|of| of["clusterId"] == cluster);
        found.next().unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (older, newer) = (of(&old), of(&new));
    let described = world.get("/machines/first-muscle-02").await.json();
    assert_eq!(described["id"], newer.as_str());
    let by_id = world.get(&format!("/machines/{older}")).await.json();
    assert_eq!(by_id["id"], older.as_str());
    let replace = |machine: &str| json!({"cluster": "first", "wish": {"replace": {"machine": machine}}, "reason": "it hums"});
    let wished = world
        .post_json("/intents", &replace("first-muscle-02"))
        .await;
    assert_eq!(
        wished.json()["wish"]["replace"]["machine"],
        newer.as_str(),
        "{}",
        wished.text
    );
    // What is on its way out has nothing to be replaced by.
    let refused = world.post_json("/intents", &replace(&older)).await;
    assert!(refused.status.is_client_error(), "{}", refused.text);
}

#[tokio::test]
async fn a_list_of_what_was_never_there_is_a_mistake() {
    let world = World::with_hello().await;
    for path in [
        "/machines?cluster=nope",
        "/tasks?cluster=nope",
        "/clusters?manifest=nope",
    ] {
        let answer = world.get(path).await;
        assert_eq!(
            answer.status,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            answer.text
        );
    }
    expect![[r#"
        404 API-002: there is no cluster `nope`
          hint: list what there is with `slipway get cluster`
    "#]]
    .assert_eq(&world.get("/machines?cluster=nope").await.picture());
}

#[tokio::test]
async fn a_step_of_an_edit_names_whose_edit_it_was() {
    let world = World::with_hello().await;
    world.settle().await;
    let other = HELLO.replace(
        "count: 2, serverType: large",
        "count: 2, replace: true, serverType: huge",
    );
    let accepted = world.submit(&other).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
    world.settle().await;
    let cluster = world.store.live_clusters().await.unwrap()[0].id;
    let seen = world.store.cluster_view(cluster).await.unwrap().unwrap();
    let step = plan::advance(&seen.view(world.now())).unwrap();
    world.store.advance(step, world.now()).await.unwrap();
    let why = world.get("/clusters/first/why").await.json();
    expect!["its last change is a step of what admin asked for (manifest hello, generation 2, was applied): first-muscle-03 to come, made as pool muscle now says"].assert_eq(why["chain"][1]["fact"].as_str().unwrap_or_default());
}
