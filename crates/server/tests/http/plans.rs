//! Journeys: shown, kept, agreed to; and rehearsals.

use axum::http::StatusCode;
use expect_test::expect;

use crate::world::{HELLO, World};

#[tokio::test]
async fn a_journey_is_shown_and_nothing_is_touched() {
    let world = World::new();
    let answer = world.post("/plans", HELLO).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let view = answer.json();
    expect![[r#"
        cluster first
                1  create 3 of brain + create 2 of muscle                        create        2 min
                2  init first-brain-01                                           create        3 min
                3  join first-brain-02                                           create        2 min
                4  join first-brain-03 + join 2 of muscle                        create        2 min
          ends ready after about 9 min, 5 machines touched
        this is the happy path; `slipway simulate` shows the others
    "#]]
    .assert_eq(view["text"].as_str().unwrap());
    assert_eq!(view["empty"], false);
    assert_eq!(
        world.get("/clusters").await.json()["items"],
        serde_json::json!([])
    );
    let again = world
        .get(&format!("/plans/{}", view["id"].as_str().unwrap()))
        .await;
    assert_eq!(again.json(), view);
}

#[tokio::test]
async fn what_is_as_declared_plans_nothing() {
    let world = World::with_hello().await;
    world.settle().await;
    let view = world.post("/plans", HELLO).await.json();
    assert_eq!(view["empty"], true, "{view}");
    expect![[r#"
        nothing to do: every cluster is as declared
    "#]]
    .assert_eq(view["text"].as_str().unwrap());
}

#[tokio::test]
async fn clusters_alike_are_told_once() {
    let many: Vec<String> = (0..40)
        .map(|n| format!("      - {{name: edge-{n:02}, version: v1.34.1, network: 10.9.{n}.0/24, pools: {{control: [brain], compute: [muscle]}}}}\n"))
        .collect();
    let world = World::new();
    let view = world
        .post("/plans", &format!("{HELLO}{}", many.concat()))
        .await
        .json();
    expect![[r#"
        cluster first
                1  create 3 of brain + create 2 of muscle                        create        2 min
                2  init first-brain-01                                           create        3 min
                3  join first-brain-02                                           create        2 min
                4  join first-brain-03 + join 2 of muscle                        create        2 min
          ends ready after about 9 min, 5 machines touched
        cluster edge-00
                1  create 3 of brain + create 2 of muscle                        create        2 min
                2  init edge-00-brain-01                                         create        3 min
                3  join edge-00-brain-02                                         create        2 min
                4  join edge-00-brain-03 + join 2 of muscle                      create        2 min
          ends ready after about 9 min, 5 machines touched
          the same for 39 more clusters, up to edge-39
        this is the happy path; `slipway simulate` shows the others
    "#]]
    .assert_eq(view["text"].as_str().unwrap());
    assert_eq!(view["clusters"].as_array().unwrap().len(), 41);
}

#[tokio::test]
async fn a_journey_that_would_be_refused_says_so() {
    let world = World::with_hello().await;
    world.settle().await;
    let view = world
        .post("/plans", &HELLO.replace("count: 3", "count: 1"))
        .await
        .json();
    assert_eq!(view["refused"]["code"], "PLAN-001");
    expect![[r#"
        cluster first
                1  drain first-brain-02                                          disturb       2 min
                2  leave first-brain-02                                          disturb       1 min
                3  delete first-brain-02 + drain first-brain-03                  data loss     2 min
                4  leave first-brain-03                                          disturb       1 min
                5  delete first-brain-03                                         data loss     1 min
          ends ready after about 7 min, 2 machines touched
        this is the happy path; `slipway simulate` shows the others
        refused: 2 of the 5 machines of cluster first would be removed at once (PLAN-001)
                 if this is what you want, repeat it with `--allow-blast 40`
    "#]]
    .assert_eq(view["text"].as_str().unwrap());
}

#[tokio::test]
async fn a_plan_allows_what_it_showed_and_no_more() {
    let world = World::with_hello().await;
    world.settle().await;
    let larger = HELLO.replace("count: 2", "count: 3");
    let shown = world.post("/plans", &larger).await.json();
    let id = shown["id"].as_str().unwrap();
    let beyond = world
        .post(
            &format!("/manifests?plan={id}"),
            &HELLO.replace("count: 2", "count: 4"),
        )
        .await;
    expect![[r#"
        409 PLAN-002: first-muscle-04: create is not in the plan
          hint: look again with `slipway plan`, and apply the plan that it shows then
    "#]]
    .assert_eq(&beyond.picture());
    let within = world.post(&format!("/manifests?plan={id}"), &larger).await;
    assert_eq!(within.status, StatusCode::ACCEPTED, "{}", within.text);
    let again = world.post(&format!("/manifests?plan={id}"), &larger).await;
    assert_eq!(
        again.status,
        StatusCode::ACCEPTED,
        "a remainder is within the plan: {}",
        again.text
    );
}

#[tokio::test]
async fn a_plan_that_nobody_saw_allows_nothing() {
    let world = World::with_hello().await;
    let answer = world
        .post("/manifests?plan=plan-0000000000000", HELLO)
        .await;
    expect![[r#"
        404 API-002: there is no plan `plan-0000000000000`
          hint: plans are kept for a day; show it again with `slipway plan -f FILE`
    "#]]
    .assert_eq(&answer.picture());
    let malformed = world.post("/manifests?plan=latest", HELLO).await;
    assert_eq!(malformed.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_rehearsal_tells_what_happened() {
    let world = World::new();
    let view = world.post("/simulations?seed=7", HELLO).await.json();
    assert_eq!(view["text"], "hello with seed 7 and faults none\n");
    let refused = world.post("/simulations?faults=nonsense", HELLO).await;
    expect![[r#"
        422 API-013: there is no fault profile `nonsense`
          hint: use a fault profile that `slipway simulate --help` lists, and pools that can be simulated
    "#]].assert_eq(&refused.picture());
}
