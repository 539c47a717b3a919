//! The audit chain through its routes.

use api::audit::Verifier;
use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::access::Role;
use serde_json::{Value, json};

use crate::world::{Answer, HELLO, TOKEN, World};

async fn get(world: &World, token: &str, path: &str) -> Answer {
    world.ask(token, Method::GET, path, Value::Null).await
}

/// A world in which a few things were done.
async fn busy() -> World {
    let world = World::with_hello().await;
    world.make_project("lab").await;
    let token = world.give("ada", Role::Operator, Some("default")).await;
    let pause = json!({"cluster": "first", "wish": {"pause": {}}, "reason": "audit"});
    let path = "/api/v1/projects/default/intents";
    let wish = world.ask(&token, Method::POST, path, pause).await;
    assert_eq!(wish.status, StatusCode::ACCEPTED, "{}", wish.text);
    let id = wish.json()["id"].as_str().unwrap().to_owned();
    let path = format!("{path}/{id}");
    let taken = world.ask(&token, Method::DELETE, &path, Value::Null).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.text);
    world.revoke(&token).await;
    world
}

/// Entries in one line each, without what differs from run to run.
fn lines(entries: &[Value]) -> String {
    let line = |entry: &Value| {
        let word = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
        let origin = word("origin");
        let origin = origin.split('-').next().unwrap().to_owned();
        let object = word("object").split('-').next().unwrap().to_owned();
        format!(
            "{} {} {} by {} from {origin}: {object} {}→{}\n",
            entry["seq"],
            word("project"),
            word("action"),
            word("actor"),
            entry["was"],
            entry["became"],
        )
    };
    entries.iter().map(line).collect()
}

#[tokio::test]
async fn every_mutation_is_told_with_who_did_it_and_from_where() {
    let world = busy().await;
    let listed = get(&world, TOKEN, "/api/v1/audit").await.json();
    expect![[r#"
        8 default token.revoke by admin from unknown with token: token/token null→null
        7 default intent.withdraw by ada from unknown with token: cluster/first null→null
        6 default intent.wish by ada from unknown with token: cluster/first 1→null
        5 default token.create by admin from unknown with token: token/token null→null
        4 lab project.put by admin from unknown with token: project/lab null→null
        3 default manifest.submit by admin from unknown with token: manifest/hello 0→1
        2 - token.create by slipway from first start: token/token null→null
        1 - key.use by rehearsal from memory: key/key null→null
    "#]]
    .assert_eq(&lines(listed["items"].as_array().unwrap()));
}

#[tokio::test]
async fn the_list_is_cut_into_pages_and_by_project() {
    let world = busy().await;
    let page = get(&world, TOKEN, "/api/v1/audit?limit=2").await.json();
    let seqs = |page: &Value| -> Vec<u64> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|entry| entry["seq"].as_u64().unwrap()).collect()
    };
    let newest = seqs(&page)[0];
    assert_eq!(seqs(&page), [newest, newest - 1]);
    let next = page["next"].as_str().unwrap();
    let path = format!("/api/v1/audit?limit=2&cursor={next}");
    let page = get(&world, TOKEN, &path).await.json();
    assert_eq!(seqs(&page), [newest - 2, newest - 3]);
    let lab = get(&world, TOKEN, "/api/v1/audit?project=lab").await.json();
    expect![[r#"
        4 lab project.put by admin from unknown with token: project/lab null→null
    "#]]
    .assert_eq(&lines(lab["items"].as_array().unwrap()));
    let token = world.give("eve", Role::Admin, Some("lab")).await;
    let own = get(&world, &token, "/api/v1/audit").await.json();
    let own = own["items"].as_array().unwrap();
    assert!(own.iter().all(|entry| entry["project"] == "lab") && own.len() == 2);
    let other = get(&world, &token, "/api/v1/audit?project=default").await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_export_is_the_whole_chain_and_verifies_without_a_server() {
    let world = busy().await;
    // More than is read at once.
    for n in 0..600 {
        world.make_project(&format!("p-{n}")).await;
    }
    let verified = get(&world, TOKEN, "/api/v1/audit/verification")
        .await
        .json();
    let export = get(&world, TOKEN, "/api/v1/audit/export").await;
    assert_eq!(export.header("content-type"), "application/x-ndjson");
    let mut verifier = Verifier::default();
    assert!(export.text.lines().all(|line| verifier.line(line)));
    let found = verifier.end();
    assert!(found.intact && found.entries > 600);
    assert_eq!(verified, serde_json::to_value(&found).unwrap());

    let token = world.give("eve", Role::Admin, Some("lab")).await;
    let own = get(&world, &token, "/api/v1/audit/export").await.text;
    let own: Vec<Value> = own
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    expect![[r#"
        4 lab project.put by admin from unknown with token: project/lab null→null
        609 lab token.create by admin from unknown with token: token/token null→null
    "#]]
    .assert_eq(&lines(&own));
}

#[tokio::test]
async fn a_fresh_chain_is_whole() {
    let world = World::with_hello().await;
    let found = get(&world, TOKEN, "/api/v1/audit/verification")
        .await
        .json();
    let entries = found["entries"].as_u64().unwrap();
    assert_eq!(found["intact"], true);
    // What changes nothing is no news, and the chain is the same.
    world.submit(HELLO).await;
    let again = get(&world, TOKEN, "/api/v1/audit/verification")
        .await
        .json();
    assert_eq!(again["entries"], entries);
    assert_eq!(again["head"], found["head"]);
}
