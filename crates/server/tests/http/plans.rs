//! Journeys: shown, kept, agreed to; and rehearsals.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use expect_test::expect;
use model::observed::{Fact, MachineFact, Observation};
use serde_json::json;
use store::Ended;

use crate::world::{HELLO, PROJECT, TOKEN, World, request};

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
        minutes are a guess: too little of this was done here before
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
        minutes are a guess: too little of this was done here before
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
          disturbs  2 of brain, one at a time
          ends ready after about 7 min, 2 machines touched
        minutes are a guess: too little of this was done here before
        this is the happy path; `slipway simulate` shows the others
        refused: 2 of the 3 machines of the control plane of cluster first would be removed at once (PLAN-001)
                 if this is what you want, repeat it with `--allow-blast 67` (`allowBlast=67` of the API)
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
async fn a_plan_allows_no_other_version_no_other_machines_and_no_higher_cost() {
    let world = World::with_hello().await;
    world.settle().await;
    let newer = HELLO.replace("v1.34.1", "v1.34.3");
    let shown = world.post("/plans", &newer).await.json();
    let id = shown["id"].as_str().unwrap();
    let further = HELLO.replace("v1.34.1", "v1.36.0");
    let beyond = world.post(&format!("/manifests?plan={id}"), &further).await;
    expect![[r#"
        409 PLAN-002: cluster first: version v1.36.0 is not in the plan, which leads to v1.34.3
          hint: look again with `slipway plan`, and apply the plan that it shows then
    "#]]
    .assert_eq(&beyond.picture());
    let within = world.post(&format!("/manifests?plan={id}"), &newer).await;
    assert_eq!(within.status, StatusCode::ACCEPTED, "{}", within.text);

    // A cluster that was not to move: the plan says nothing of it.
    let world = World::with_hello().await;
    world.settle().await;
    let shown = world.post("/plans", HELLO).await.json();
    let id = shown["id"].as_str().unwrap();
    let beyond = world.post(&format!("/manifests?plan={id}"), &newer).await;
    expect![[r#"
        409 PLAN-002: cluster first: version v1.34.3 is not in the plan, which leads to v1.34.1
          hint: look again with `slipway plan`, and apply the plan that it shows then
    "#]]
    .assert_eq(&beyond.picture());

    let world = World::new();
    set(&world, &"x".repeat(64)).await;
    let shown = world.post("/plans", &lent()).await.json();
    let id = shown["id"].as_str().unwrap();
    let larger = lent().replace("cpx31", "cpx51");
    let beyond = world.post(&format!("/manifests?plan={id}"), &larger).await;
    expect![[r#"
        409 PLAN-002: cluster first, pool muscle: serverType cpx51 is not in the plan, which shows cpx31
          hint: look again with `slipway plan`, and apply the plan that it shows then
    "#]].assert_eq(&beyond.picture());
    let within = world.post(&format!("/manifests?plan={id}"), &lent()).await;
    assert_eq!(within.status, StatusCode::ACCEPTED, "{}", within.text);
}

#[tokio::test]
async fn a_plan_allows_no_other_manifest_though_its_journey_looks_the_same() {
    let world = World::with_hello().await;
    world.settle().await;
    let tinted = |effect: &str| {
        let taints = format!("count: 2, taints: [{{key: a, value: b, effect: {effect}}}]");
        HELLO.replace("count: 2", &taints)
    };
    let larger =
        tinted("NoSchedule").replace("pools: {", "deletionProtection: true\n        pools: {");
    let shown = world.post("/plans", &larger).await.json();
    let id = shown["id"].as_str().unwrap();
    let beyond = tinted("PreferNoSchedule");
    let beyond = world.post(&format!("/manifests?plan={id}"), &beyond).await;
    expect![[r#"
        409 PLAN-002: the manifest says something else than the one that the plan was made of
          hint: look again with `slipway plan`, and apply the plan that it shows then
    "#]]
    .assert_eq(&beyond.picture());
    // What it looks like does not matter, and neither does what is done by now.
    let rewritten = format!("# the same\n{larger}");
    let within = world
        .post(&format!("/manifests?plan={id}"), &rewritten)
        .await;
    assert_eq!(within.status, StatusCode::ACCEPTED, "{}", within.text);
    world.plan().await;
    let claim = world.claim(1).await.remove(0);
    world.end(claim, Ended::Done).await;
    let remainder = world.post(&format!("/manifests?plan={id}"), &larger).await;
    assert_eq!(remainder.status, StatusCode::ACCEPTED, "{}", remainder.text);
}

#[tokio::test]
async fn a_plan_allows_nothing_to_another_cluster_of_the_same_name() {
    let world = World::with_hello().await;
    world.settle().await;
    let newer = HELLO.replace("v1.34.1", "v1.34.3");
    let shown = world.post("/plans", &newer).await.json();
    let id = shown["id"].as_str().unwrap();
    let gone = request(Method::DELETE, &format!("{PROJECT}/manifests/hello"));
    assert_eq!(world.send(gone).await.status, StatusCode::ACCEPTED);
    world.settle().await;
    world.submit(HELLO).await;
    world.settle().await;
    let beyond = world.post(&format!("/manifests?plan={id}"), &newer).await;
    expect![[r#"
        409 PLAN-002: cluster first is cluster-dgg1pwr8ukkqz, and the plan was made for another one of that name
          hint: look again with `slipway plan`, and apply the plan that it shows then
    "#]].assert_eq(&beyond.picture());
}

#[tokio::test]
async fn a_repeat_with_its_key_gets_its_answer_also_when_the_plan_is_long_carried_out() {
    let world = World::with_hello().await;
    world.settle().await;
    let larger = HELLO.replace("count: 2", "count: 3");
    let shown = world.post("/plans", &larger).await.json();
    let uri = format!("{PROJECT}/manifests?plan={}", shown["id"].as_str().unwrap());
    let send = || {
        let request = Request::post(&uri)
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header("idempotency-key", "once")
            .body(Body::from(larger.clone()));
        world.send(request.unwrap())
    };
    let first = send().await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text);
    // Others go on from there, beyond that plan.
    world.settle().await;
    let more = HELLO.replace("count: 2", "count: 5");
    assert_eq!(world.submit(&more).await.status, StatusCode::ACCEPTED);
    world.settle().await;
    let again = send().await;
    assert_eq!((again.status, again.text), (first.status, first.text));
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

/// [`HELLO`] with machines of a cloud.
fn lent() -> String {
    let lab = "{name: lab, providerType: simulated}";
    assert!(HELLO.contains(lab), "{HELLO}");
    let cloud = "{name: lab, providerType: hetzner, secretRef: {name: cloud}}";
    let text = HELLO.replacen(lab, cloud, 1);
    text.replace("serverType: large", "serverType: cpx31")
}

/// Sets the one entry of the secret that [`lent`] names.
async fn set(world: &World, credentials: &str) {
    let path = format!("{PROJECT}/secrets/cloud");
    let entries = json!({"entries": {"credentials": credentials}});
    let set = world.ask(TOKEN, Method::PUT, &path, entries).await;
    assert!(set.status.is_success(), "{}", set.text);
}

#[tokio::test]
async fn a_plan_tells_what_it_costs_and_who_makes_nothing_here() {
    let world = World::new();
    set(&world, &"x".repeat(64)).await;
    let view = world.post("/plans", &lent()).await.json();
    expect![[r#"
        cluster first
                1  key first-brain-01                                            create        1 min
          held  create first-brain-01 and 4 more: nobody here makes machines of hetzner
                make them yourself
          opens  the API's port of first-brain-01 and 2 more to the world
          costs  $0.00 → $37.00 a month, a rough guess by prices of about 2025; unknown: 0 → 3 hetzner small
          ends waiting after about 1 min, 1 machine touched
        minutes are a guess: too little of this was done here before
        this is the happy path; `slipway simulate` shows the others
    "#]].assert_eq(view["text"].as_str().unwrap());
    expect![[r#"{"after":{"cents":3700,"unknown":{"hetzner small":3}},"before":{"cents":0,"unknown":{}},"currency":"USD","pricesAsOf":"about 2025"}"#]].assert_eq(&view["clusters"][0]["cost"].to_string());
}

#[tokio::test]
async fn a_plan_tells_of_what_nobody_here_can_make_machines() {
    let world = World::new();
    let text = HELLO.replacen("image: debian-12", "image: beos", 1);
    assert_ne!(text, HELLO);
    let view = world.post("/plans", &text).await.json();
    expect![[r#"
        cluster first
                1  create 2 of muscle                                            create        2 min
          held  join first-muscle-01 and 1 more: the control plane comes first (first-brain-01)
                continues when first-brain-01 is ready
          held  create first-brain-01 and 2 more: found image `beos`, allowed: others
                make them yourself
          ends waiting after about 2 min, 2 machines touched
        minutes are a guess: too little of this was done here before
        this is the happy path; `slipway simulate` shows the others
    "#]]
    .assert_eq(view["text"].as_str().unwrap());
    let cluster = &view["clusters"][0];
    assert_eq!(cluster["endsIn"], "error", "{view}");
    assert_eq!(cluster["held"][1]["machines"], 3, "{view}");
}

#[tokio::test]
async fn a_secret_that_opens_nothing_is_a_fault_of_the_plan_too() {
    let world = World::new();
    set(&world, "short").await;
    let planned = world.post("/plans", &lent()).await.picture();
    assert_eq!(planned, world.submit(&lent()).await.picture());
    let rehearsed = world.post("/simulations", &lent()).await;
    assert_eq!(planned, rehearsed.picture());
    expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.providers[0].secretRef [format] found a secret that opens no account of hetzner: credentials is not 64 letters and digits
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&planned);
}

#[tokio::test]
async fn a_plan_learns_how_long_things_take() {
    let world = World::with_hello().await;
    world.plan().await;
    for claim in world.claim(100).await {
        world.pass(Duration::from_mins(4));
        world.end(claim, Ended::Done).await;
    }
    let larger = HELLO.replace("count: 2", "count: 3");
    let view = world.post("/plans", &larger).await.json();
    expect![[r#"
        cluster first
                1  create first-muscle-03 + init first-brain-01                  create       12 min
                2  join first-brain-02                                           create        2 min
                3  join first-brain-03 + join 3 of muscle                        create        2 min
          ends ready after about 16 min, 6 machines touched
        minutes are learnt from 5 past tasks; those of init, join are a guess
        this is the happy path; `slipway simulate` shows the others
    "#]]
    .assert_eq(view["text"].as_str().unwrap());
    expect![[r#"{"guessed":["init","join"],"learntFrom":5}"#]].assert_eq(&view["pace"].to_string());
    let steps = view["clusters"][0]["blocks"][0]["rounds"][0].as_array();
    let mut steps = steps.unwrap().iter();
    let create = steps.find(|step| step["kind"] == "create").unwrap();
    assert_eq!(create["seconds"], 12 * 60, "half of them took no longer");
}

#[tokio::test]
async fn programs_are_told_of_waits_and_of_who_is_disturbed() {
    let world = World::with_hello().await;
    world.settle().await;
    let windows = "disruption: {windows: [{days: [Sat], start: '02:00', duration: 4h}]}";
    let upgraded = HELLO.replace(
        "version: v1.34.1\n",
        &format!("version: v1.35.0\n        {windows}\n"),
    );
    let view = world.post("/plans", &upgraded).await.json();
    expect![[r#"
        cluster first
                   wait for the window that opens Sat 2026-01-03 02:00 UTC                   2 d 2 h
                1  snapshot first-brain-01                                       create        1 min
             2-10  3 of brain, one at a time: drain, upgrade, uncordon           disturb      18 min
            11-16  2 of muscle, one at a time: drain, upgrade, uncordon          disturb      12 min
          disturbs  3 of brain, one at a time; 2 of muscle, one at a time
          ends ready after about 2 d 2 h, 5 machines touched
        minutes are a guess: too little of this was done here before
        this is the happy path; `slipway simulate` shows the others
    "#]]
    .assert_eq(view["text"].as_str().unwrap());
    let cluster = &view["clusters"][0];
    expect![[r#"
        {
          "minutes": 3000,
          "repeats": 1,
          "rounds": [],
          "wait": {
            "kind": "window",
            "until": "2026-01-03T02:00:00Z"
          }
        }"#]]
    .assert_eq(&format!("{:#}", cluster["blocks"][0]));
    expect![[
        r#"[{"atOnce":1,"machines":3,"pool":"brain"},{"atOnce":1,"machines":2,"pool":"muscle"}]"#
    ]]
    .assert_eq(&cluster["disturbs"].to_string());
}

/// A manifest with one control machine and this given one.
fn with_host(name: &str, network: &str, host: &str) -> String {
    format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: {name}}}
spec:
  providers:
    - {{name: lab, providerType: simulated}}
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: north}}, count: 1, serverType: small, image: debian-12}}
    static:
      - {{name: attic, nodes: [{{endpoint: {host}}}]}}
  kubernetes:
    clusters:
      - {{name: {name}, version: v1.34.1, network: {network}, pools: {{control: [brain], compute: [attic]}}}}
"
    )
}

#[tokio::test]
async fn who_holds_an_address_is_told_by_the_plan_as_it_is_after_apply() {
    let east = with_host("east", "10.8.0.0/24", "192.0.2.7");
    let west = with_host("west", "10.9.0.0/24", "192.0.2.7");
    for (first, second) in [(&east, &west), (&west, &east)] {
        let world = World::new();
        let free = world.post("/plans", second).await.json();
        assert_eq!(free["clusters"][0]["held"], json!([]), "{free}");
        world.submit(first).await;
        world.settle().await;
        let shown = world.post("/plans", second).await.json();
        let held = &shown["clusters"][0]["held"];
        assert_eq!(held[0]["reason"], "claimed", "{shown}");
        assert_eq!(held[0]["owner"], "person", "{shown}");
        assert_eq!(shown["clusters"][0]["endsIn"], "error", "{shown}");
        let of = |manifest: &String| {
            if manifest.contains("{name: east}") {
                "east"
            } else {
                "west"
            }
        };
        // What was shown is what comes.
        let accepted = world.submit(second).await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
        world.settle().await;
        let cluster = world.get(&format!("/clusters/{}", of(second))).await.json();
        assert_eq!(cluster["held"], *held, "{cluster}");
        // Who has it gives it back, and there is nothing to tell any more.
        let path = format!("{PROJECT}/manifests/{}", of(first));
        let deleted = world.ask(TOKEN, Method::DELETE, &path, serde_json::Value::Null);
        assert_eq!(deleted.await.status, StatusCode::ACCEPTED);
        world.settle().await;
        let cluster = world.get(&format!("/clusters/{}", of(second))).await.json();
        assert_eq!(cluster["held"], json!([]), "{cluster}");
        assert_eq!(cluster["state"], "done", "{cluster}");
    }
}

#[tokio::test]
async fn the_plan_of_an_address_that_is_held_says_by_whom_and_what_to_do() {
    let world = World::new();
    world
        .submit(&with_host("east", "10.8.0.0/24", "192.0.2.7"))
        .await;
    world.settle().await;
    let west = with_host("west", "10.9.0.0/24", "192.0.2.7");
    let shown = world.post("/plans", &west).await.json();
    expect![[r#"
        cluster west
                1  create west-brain-01                                          create        2 min
                2  init west-brain-01                                            create        3 min
          held  prepare west-attic-01: address 192.0.2.7 is held by east-attic-01 of cluster east in project default
                continues when east-attic-01 of cluster east in project default gives it back; remove it from one of the manifests
          ends waiting after about 5 min, 1 machine touched
        minutes are a guess: too little of this was done here before
        this is the happy path; `slipway simulate` shows the others
    "#]].assert_eq(shown["text"].as_str().unwrap());
    expect!["continues when east-attic-01 of cluster east in project default gives it back; remove it from one of the manifests"].assert_eq(
        shown["clusters"][0]["held"][0]["nextAction"]
            .as_str()
            .unwrap_or_default(),
    );
}

#[tokio::test]
async fn who_holds_an_address_in_another_project_is_nobodys_business() {
    let world = World::new();
    world.make_project("lab").await;
    let theirs = with_host("east", "10.8.0.0/24", "192.0.2.7");
    let request = Request::post("/api/v1/projects/lab/manifests")
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .header(header::CONTENT_TYPE, "application/yaml")
        .body(Body::from(theirs))
        .unwrap();
    assert_eq!(world.send(request).await.status, StatusCode::ACCEPTED);
    world.settle().await;
    let west = with_host("west", "10.9.0.0/24", "192.0.2.7");
    let shown = world.post("/plans", &west).await;
    for word in ["east-", "cluster east", "project lab"] {
        assert!(!shown.text.contains(word), "{word}: {}", shown.text);
    }
    let held = shown.json()["clusters"][0]["held"][0].clone();
    expect![[r#"
        prepare west-attic-01: address 192.0.2.7 is held by a machine of another project
        continues when a machine of another project gives it back; name another one, or ask an administrator, who sees all projects
    "#]].assert_eq(&format!(
        "{}\n{}\n",
        held["text"].as_str().unwrap(),
        held["nextAction"].as_str().unwrap()
    ));
    // What is told after apply is the same, and so is what the cluster says of itself.
    let accepted = world.submit(&west).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
    world.settle().await;
    let cluster = world.get("/clusters/west").await;
    assert_eq!(cluster.json()["held"][0], held, "{}", cluster.text);
    for path in ["/clusters/west", "/clusters/west/why", "/events"] {
        let told = world.get(path).await;
        assert!(!told.text.contains("east-"), "{path}: {}", told.text);
    }
}

#[tokio::test]
async fn a_plan_knows_that_another_cluster_of_the_manifest_goes() {
    let world = World::new();
    let east = with_host("east", "10.8.0.0/24", "192.0.2.7");
    world.submit(&east).await;
    world.settle().await;
    let renamed = with_host("west", "10.9.0.0/24", "192.0.2.7");
    let renamed = renamed.replace("metadata: {name: west}", "metadata: {name: east}");
    let shown = world.post("/plans?allowBlast=100", &renamed).await.json();
    expect![[r#"
        cluster west
                1  create west-brain-01                                          create        2 min
                2  init west-brain-01                                            create        3 min
                   wait until east-attic-01 of cluster east in project default is gone, which has address 192.0.2.7
                3  prepare west-attic-01                                         create        1 min
                4  join west-attic-01                                            create        2 min
          ends ready after about 8 min, 2 machines touched
        cluster east
                1  release east-attic-01                                         disturb       1 min
                2  delete east-brain-01                                          data loss     1 min
          disturbs  1 of attic; 1 of brain
          ends gone after about 2 min, 2 machines touched
        minutes are a guess: too little of this was done here before
        this is the happy path; `slipway simulate` shows the others
    "#]].assert_eq(shown["text"].as_str().unwrap());
    let waits = |block: &&serde_json::Value| block["wait"]["kind"] == "freed";
    let blocks = shown["clusters"][0]["blocks"].as_array().unwrap();
    assert!(blocks.iter().any(|block| waits(&block)), "{shown}");
    // What was shown is what comes.
    let applied = world.post("/manifests?allowBlast=100", &renamed).await;
    assert_eq!(applied.status, StatusCode::ACCEPTED, "{}", applied.text);
    world.settle().await;
    let cluster = world.get("/clusters/west").await.json();
    assert_eq!(cluster["state"], "done", "{cluster}");
}

/// How often the secret of [`lent`] was opened.
async fn openings(world: &World) -> usize {
    let path = "/api/v1/audit";
    let audit = world.ask(TOKEN, Method::GET, path, serde_json::Value::Null);
    let audit = audit.await.json();
    let entries = audit["items"].as_array().unwrap().clone();
    let opened = entries
        .iter()
        .filter(|entry| entry["action"] == "secret.open");
    opened.count()
}

#[tokio::test]
async fn a_secret_is_opened_to_be_judged_once_for_each_version() {
    let world = World::new();
    set(&world, &"x".repeat(64)).await;
    for _ in 0..3 {
        world.post("/plans", &lent()).await;
    }
    let accepted = world.submit(&lent()).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
    assert_eq!(openings(&world).await, 1);
    set(&world, &"y".repeat(64)).await;
    for _ in 0..3 {
        world.post("/plans", &lent()).await;
    }
    assert_eq!(openings(&world).await, 2);
}

#[tokio::test]
async fn a_bad_rotation_is_refused_unless_somebody_insists_and_keeps_no_other_change() {
    let world = World::new();
    set(&world, &"x".repeat(64)).await;
    world.submit(&lent()).await;
    let path = format!("{PROJECT}/secrets/cloud");
    let short = json!({"entries": {"credentials": "short"}});
    let refused = world.ask(TOKEN, Method::PATCH, &path, short.clone()).await;
    expect![[r#"
        409 SEAL-014: secret cloud is in use, and what uses it could not work with these values
          entries.credentials [format] credentials is not 64 letters and digits, and manifest hello opens an account of hetzner with it
          hint: nothing was changed; set the right values, or repeat it with `--force`
    "#]].assert_eq(&refused.picture());
    let forced = format!("{path}?force=true");
    let set = world.ask(TOKEN, Method::PATCH, &forced, short).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text);
    // One machine less needs nothing new of the account.
    let less = lent().replace("count: 2", "count: 1");
    let shown = world.post("/plans", &less).await.json();
    let note = shown["notes"][0].as_str().unwrap_or_default();
    expect!["spec.providers[0].secretRef: found a secret that opens no account of hetzner: credentials is not 64 letters and digits; what is there stays, and what has to be done with that account waits until it is set right with `slipway secret set`"]
        .assert_eq(note);
    let accepted = world.submit(&less).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
    assert_eq!(accepted.json()["notes"][0], note);
    // One more does.
    let more = lent().replace("count: 2", "count: 4");
    let refused = world.submit(&more).await.picture();
    expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.providers[0].secretRef [format] found a secret that opens no account of hetzner: credentials is not 64 letters and digits
          hint: correct every place that is listed; nothing was stored
    "#]]
    .assert_eq(&refused);
    assert_eq!(world.post("/plans", &more).await.picture(), refused);
}

#[tokio::test]
async fn all_entries_that_a_provider_lacks_are_told_at_once() {
    let world = World::new();
    let path = format!("{PROJECT}/secrets/cloud");
    let other = json!({"entries": {"note": "not what it takes"}});
    world.ask(TOKEN, Method::PUT, &path, other).await;
    let aws = lent().replace("hetzner", "aws");
    let shown = world.post("/plans", &aws).await.json();
    let held = shown["clusters"][0]["held"].as_array().unwrap().iter();
    let told: Vec<_> = held.map(|held| held["text"].as_str().unwrap()).collect();
    expect![[r#"
        create first-brain-01 and 4 more: secret cloud/accesskey is not set
        create first-brain-01 and 4 more: secret cloud/secretkey is not set
        create first-brain-01 and 4 more: nobody here makes machines of aws"#]]
    .assert_eq(&told.join("\n"));
}

#[tokio::test]
async fn a_secret_that_clusters_need_is_not_removed_unless_somebody_insists() {
    let world = World::new();
    set(&world, &"x".repeat(64)).await;
    world.submit(&lent()).await;
    let path = format!("{PROJECT}/secrets/cloud");
    let refused = world.ask(TOKEN, Method::DELETE, &path, json!(null)).await;
    expect![[r#"
        409 SEAL-014: secret cloud is in use, and what uses it could not go on without it
          entries.credentials [reference] cluster first (cluster-ddzxut8mtddf7) needs it to change or remove 5 machines
          hint: nothing was changed; first remove what uses it, or repeat it with `--force`
    "#]].assert_eq(&refused.picture());
    // Nor the entry that they need, one way or the other.
    let without = json!({"entries": {"credentials": null}});
    let one = world.ask(TOKEN, Method::PATCH, &path, without).await;
    assert_eq!(one.picture(), refused.picture());
    let other = json!({"entries": {"note": "nothing that anybody needs"}});
    let whole = world.ask(TOKEN, Method::PUT, &path, other.clone()).await;
    assert_eq!(whole.picture(), refused.picture());
    let added = world.ask(TOKEN, Method::PATCH, &path, other).await;
    assert_eq!(added.status, StatusCode::OK, "{}", added.text);
    let gone = json!({"entries": {"note": null}});
    let removed = world.ask(TOKEN, Method::PATCH, &path, gone).await;
    assert_eq!(removed.status, StatusCode::OK, "{}", removed.text);
    let forced = format!("{path}?force=true");
    let deleted = world.ask(TOKEN, Method::DELETE, &forced, json!(null)).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.text);
}

#[tokio::test]
async fn a_plan_tells_that_machines_could_not_be_removed_without_a_secret_that_is_not_set() {
    let world = World::new();
    set(&world, &"x".repeat(64)).await;
    world.submit(&lent()).await;
    let cluster = world.store.live_clusters().await.unwrap()[0].id;
    let seen = world.store.cluster_view(cluster).await.unwrap().unwrap();
    let running = seen.desired.machines.iter().map(|machine| Observation {
        cluster,
        fact: Fact::Machine(
            machine.id,
            MachineFact::Running {
                reference: machine.name.to_string(),
                address: machine.address.into(),
            },
        ),
        at: world.now(),
    });
    let observed = world.store.observe(cluster, running.collect(), world.now());
    observed.await.unwrap();
    let other = lent().replace("secretRef: {name: cloud}", "secretRef: {name: clod}");
    let shown = world.post("/plans", &other).await.json();
    expect!["cluster first: secret clod/credentials is not set, and 5 machines that are there can neither be changed nor removed until it is"].assert_eq(shown["notes"][0].as_str().unwrap_or_default());
    let accepted = world.submit(&other).await;
    assert_eq!(accepted.json()["notes"], shown["notes"]);
}

#[tokio::test]
async fn a_taint_that_ends_pods_is_told() {
    let world = World::with_hello().await;
    world.settle().await;
    let tainted = HELLO.replace(
        "count: 2",
        "count: 2, taints: [{key: a, value: b, effect: NoExecute}]",
    );
    let shown = world.post("/plans", &tainted).await.json();
    expect!["cluster first: pods that do not tolerate the taint a=b:NoExecute are evicted from 2 nodes of pool muscle at once, with regard to no budget and no window"].assert_eq(shown["notes"][0].as_str().unwrap_or_default());
}

#[tokio::test]
async fn a_size_that_was_wished_is_told_wherever_the_cluster_would_be_as_declared() {
    let world = World::with_hello().await;
    world.settle().await;
    let wish = json!({"cluster": "first", "wish": {"scale": {"pool": "muscle", "count": 3}}, "reason": "a sale"});
    let wished = world.post_json("/intents", &wish).await;
    assert_eq!(wished.status, StatusCode::ACCEPTED, "{}", wished.text);
    let intent = wished.json()["id"].as_str().unwrap().to_owned();
    world.settle().await;
    let text = |value: &serde_json::Value| value.as_str().unwrap().replace(&intent, "INTENT");
    let shown = world.post("/plans", HELLO).await.json();
    expect![[r#"
        nothing to do: every cluster is as declared and wished
        note: cluster first: pool muscle has 3 machines because admin wished so, and the manifest names 2; it stays so until the manifest names another count, or `slipway intent withdraw INTENT`
    "#]].assert_eq(&text(&shown["text"]));
    let applied = world.submit(HELLO).await.json();
    assert_eq!(applied["notes"], shown["notes"]);
    let described = world.get("/clusters/first").await.json();
    expect!["pool muscle has 3 machines because admin wished so, and the manifest names 2; it stays so until the manifest names another count, or `slipway intent withdraw INTENT`"].assert_eq(&text(&described["notes"][0]));
    let chain = world.get("/clusters/first/why").await.json()["chain"].clone();
    let facts: Vec<_> = chain
        .as_array()
        .unwrap()
        .iter()
        .map(|of| text(&of["fact"]))
        .collect();
    expect![[r#"
        cluster first is done at generation 2: 3 of 3 control and 3 of 3 compute nodes are ready
        everything was last seen as declared and wished
        pool muscle has 3 machines because admin wished so, and the manifest names 2"#]]
    .assert_eq(&facts.join("\n"));
    // Another number in the manifest ends the wish, and nothing is told of it.
    let other = world
        .post("/plans", &HELLO.replace("count: 2", "count: 4"))
        .await
        .json();
    assert_eq!(other["notes"], json!(null));
}
