//! Wishes outside the manifest.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use serde_json::json;
use store::Ended;

use crate::world::{HELLO, PROJECT, World, request};

#[tokio::test]
async fn a_wish_is_stored_listed_and_withdrawn() {
    let world = World::with_hello().await;
    let wish = json!({"cluster": "first", "wish": {"scale": {"pool": "muscle", "count": 3}}, "reason": "load"});
    let answer = world.post_json("/intents", &wish).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    assert_eq!(
        answer.header("location"),
        format!("{PROJECT}/clusters/first")
    );
    let view = answer.json();
    assert_eq!(
        view["wish"],
        json!({"scale": {"pool": "muscle", "count": 3, "was": 2}})
    );
    assert_eq!(view["author"], "admin");
    assert_eq!(
        world.get("/clusters/first").await.json()["machines"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    assert_eq!(world.get("/intents").await.json()["items"], json!([view]));
    let path = format!("{PROJECT}/intents/{}", view["id"].as_str().unwrap());
    let withdrawn = world.send(request(Method::DELETE, &path)).await;
    assert_eq!(withdrawn.status, StatusCode::ACCEPTED, "{}", withdrawn.text);
    let again = world.send(request(Method::DELETE, &path)).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/intents").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_stuck_task_is_retried_when_somebody_asks() {
    let world = World::with_hello().await;
    world.plan().await;
    let claim = world.claim(1).await.pop().unwrap();
    let task = claim.task.id.to_string();
    world
        .end(
            claim,
            Ended::Stuck {
                error: "quota is used up; raise it".to_owned(),
            },
        )
        .await;
    world.plan().await;
    let cluster = world.get("/clusters/first").await.json();
    assert_eq!(cluster["state"], "error");
    let held = &cluster["held"][0];
    assert_eq!(
        (&held["owner"], &held["task"]),
        (&json!("person"), &json!(task)),
        "{held}"
    );
    let wish = json!({"cluster": "first", "wish": {"retry": {"task": task}}, "reason": "raised"});
    assert_eq!(
        world.post_json("/intents", &wish).await.status,
        StatusCode::ACCEPTED
    );
    world.plan().await;
    assert_eq!(
        world.get(&format!("/tasks/{task}")).await.json()["state"],
        "waiting"
    );
}

#[tokio::test]
async fn wishes_that_make_no_sense_are_refused() {
    let world = World::with_hello().await;
    let mut told = String::new();
    for wish in [
        json!({"scale": {"pool": "lungs", "count": 1}}),
        json!({"replace": {"machine": "first-brain-09"}}),
        json!({"retire": {"machine": "first-muscle-09"}}),
        json!({"retire": {"machine": "first-muscle-01"}}),
        json!({"retry": {"task": "task-0000000000000"}}),
        json!({"cancel": {"task": "everything"}}),
        json!({"dance": {}}),
        json!({"retry": ["task-0000000000000"]}),
    ] {
        let request = json!({"cluster": "first", "wish": wish, "reason": "r"});
        told.push_str(&world.post_json("/intents", &request).await.picture());
    }
    let nobody = json!({"cluster": "nobody", "wish": {"pause": {}}, "reason": "r"});
    told.push_str(&world.post_json("/intents", &nobody).await.picture());
    let over =
        json!({"cluster": "first", "wish": {"pause": {}}, "reason": "r", "expiresInSeconds": 0});
    told.push_str(&world.post_json("/intents", &over).await.picture());
    for reason in ["", "  ", "two\nlines", "\u{1b}[2J"] {
        let odd = json!({"cluster": "first", "wish": {"pause": {}}, "reason": reason});
        told.push_str(&world.post_json("/intents", &odd).await.picture());
    }
    expect![[r#"
        404 API-002: there is no pool `lungs`
          hint: the pools of a cluster are in its manifest
        404 API-002: there is no machine `first-brain-09`
          hint: list what there is with `slipway get machine`
        404 API-002: there is no machine `first-muscle-09`
          hint: list what there is with `slipway get machine`
        409 API-005: pool muscle has a count, and would get another machine in place of first-muscle-01; lower the count, or have it replaced with `slipway machine replace first-muscle-01`
          hint: look at the cluster with `slipway describe cluster first` and wish for something it has
        404 API-002: there is no task `task-0000000000000`
          hint: list what there is with `slipway get task`
        400 API-008: wish.cancel.task: `everything` is not an id of the form `task-` and 13 characters
          wish.cancel.task [format] `everything` is not an id of the form `task-` and 13 characters
          hint: compare the request with /openapi.json
        400 API-001: wish.dance: unknown field; allowed: scale, replace, retire, retry, cancel, pause, snapshot, restore, update
          wish.dance [unknown-field] unknown field; allowed: scale, replace, retire, retry, cancel, pause, snapshot, restore, update
          hint: compare the body with /openapi.json
        400 API-001: wish.retry: found a list, allowed: an object with task
          wish.retry [type] found a list, allowed: an object with task
          hint: compare the body with /openapi.json
        404 API-002: there is no cluster `nobody`
          hint: list what there is with `slipway get cluster`
        400 API-008: expiresInSeconds: found 0, allowed: 1 or more
          expiresInSeconds [format] found 0, allowed: 1 or more
          hint: compare the request with /openapi.json
        400 API-008: reason: found nothing; say why, others will read it
          reason [format] found nothing; say why, others will read it
          hint: compare the request with /openapi.json
        400 API-008: reason: found nothing; say why, others will read it
          reason [format] found nothing; say why, others will read it
          hint: compare the request with /openapi.json
        400 API-008: reason: found control characters, allowed: one line of plain text
          reason [format] found control characters, allowed: one line of plain text
          hint: compare the request with /openapi.json
        400 API-008: reason: found control characters, allowed: one line of plain text
          reason [format] found control characters, allowed: one line of plain text
          hint: compare the request with /openapi.json
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn going_back_to_fewer_machines_can_be_allowed() {
    let world = World::with_hello().await;
    let wish = json!({"cluster": "first", "wish": {"scale": {"pool": "muscle", "count": 30}}, "reason": "load"});
    let id = world.post_json("/intents", &wish).await.json()["id"].clone();
    let path = format!("{PROJECT}/intents/{}", id.as_str().unwrap());
    world.settle().await;
    let mut told = String::new();
    for query in ["", "?allowBlast=101", "?allowBlast=84", "?allowBlast=85"] {
        let answer = world
            .send(request(Method::DELETE, &format!("{path}{query}")))
            .await;
        told.push_str(&answer.picture());
    }
    expect![[r#"
        409 PLAN-001: 28 of the 33 machines of cluster first would be removed at once
          hint: if this is what you want, repeat it with `--allow-blast 85` (`allowBlast=85` of the API)
        400 API-008: allowBlast: found 101, allowed: 0 to 100
          allowBlast [format] found 101, allowed: 0 to 100
          hint: compare the request with /openapi.json
        409 PLAN-001: 28 of the 33 machines of cluster first would be removed at once
          hint: if this is what you want, repeat it with `--allow-blast 85` (`allowBlast=85` of the API)
        202 Accepted application/json
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn why_says_what_changed_when_nobody_asked() {
    let world = World::new();
    let scaled = HELLO.replace("count: 2", "autoscaler: {min: 0, max: 4}");
    let answer = world.submit(&scaled).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    world.settle().await;
    let wish = json!({"cluster": "first", "wish": {"scale": {"pool": "muscle", "count": 1}}, "reason": "load"});
    let answer = world.post_json("/intents", &wish).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    world.plan().await;
    let error = "no such type".to_owned();
    let claim = world.claim(1).await.pop().unwrap();
    let cluster = claim.task.cluster;
    world.end(claim, Ended::Stuck { error }).await;
    assert!(world.store.give_back(cluster, world.now()).await.unwrap());
    world.settle().await;
    let why = world.get("/clusters/first/why").await.json();
    let chain = why["chain"].as_array().unwrap().iter();
    let facts: String = chain.map(|cause| format!("{}\n", cause["fact"])).collect();
    expect![[r#"
        "cluster first is done at generation 3: 3 of 3 control and 0 of 0 compute nodes are ready"
        "nobody asked for its last change: pool muscle was to have 1 machines and goes back to 0: first-muscle-01 cannot be made: no such type"
        "everything was last seen as declared"
    "#]].assert_eq(&facts);
}

#[tokio::test]
async fn wishes_are_listed_with_the_names_of_what_they_are_about() {
    let world = World::with_hello().await;
    world.plan().await;
    let claim = world.claim(1).await.pop().unwrap();
    let task = claim.task.id.to_string();
    let doing = format!("{} {}", claim.task.action.kind(), claim.task.machine.name);
    let error = "quota is used up".to_owned();
    world.end(claim, Ended::Stuck { error }).await;
    let wishes = [
        (
            json!({"replace": {"machine": "first-muscle-01"}}),
            Some("first-muscle-01".to_owned()),
        ),
        (json!({"cancel": {"task": task}}), Some(doing)),
        (json!({"pause": {}}), None),
    ];
    for (wish, _) in &wishes {
        let wish = json!({"cluster": "first", "wish": wish, "reason": "load"});
        let answer = world.post_json("/intents", &wish).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    }
    let listed = world.get("/intents").await.json();
    let about: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            item.get("about")
                .and_then(|about| about.as_str())
                .map(str::to_owned)
        })
        .collect();
    let expected: Vec<_> = wishes.into_iter().map(|(_, about)| about).collect();
    assert_eq!(about, expected);
}
