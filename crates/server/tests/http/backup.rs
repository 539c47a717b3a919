//! Backups through their route.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::access::Role;
use store::{Dumped, Store};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::world::{Answer, World, request};

const BACKUP: &str = "/api/v1/backup";

async fn taken(world: &World) -> Answer {
    world.send(request(Method::GET, BACKUP)).await
}

#[tokio::test]
async fn a_backup_is_whole_can_be_loaded_and_is_audited() {
    let world = World::with_hello().await;
    let answer = taken(&world).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    let length = answer.text.len().to_string();
    assert_eq!(answer.header("content-length"), length);
    let mut ending = api::backup::Ending::default();
    ending.see(answer.text.as_bytes());

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("taken");
    std::fs::write(&file, &answer.text).unwrap();
    let dumped = Dumped::verified(&file).unwrap();
    assert_eq!(Some(dumped.rows), ending.rows());
    let other = Store::in_memory().unwrap();
    assert_eq!(other.load(&file).await.unwrap(), dumped);

    let entries = world.store.audit_after(0, 100).await.unwrap();
    let entry = entries.last().unwrap();
    assert_eq!(
        (entry.action.as_str(), entry.object.as_str()),
        ("backup.create", "backup")
    );
    assert_eq!(entry.detail, format!("{} rows", dumped.rows));
}

#[tokio::test]
async fn who_asks_for_the_head_of_a_backup_has_none_made() {
    let world = World::with_hello().await;
    let before = world.store.audit_after(0, 100).await.unwrap().len();
    let answer = world.send(request(Method::HEAD, BACKUP)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    assert_eq!(world.store.audit_after(0, 100).await.unwrap().len(), before);
}

#[tokio::test]
async fn one_backup_is_made_at_a_time() {
    let world = World::with_hello().await;
    // Until the last byte was taken, or nobody wants it any more.
    let first = world.open(request(Method::GET, BACKUP)).await;
    expect![[r#"
        503 BACKUP-008: the server writes or sends another backup, and makes one at a time
          hint: wait until it has ended, then try again
    "#]]
    .assert_eq(&taken(&world).await.picture());
    drop(first);
    assert_eq!(taken(&world).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_server_without_room_makes_no_backup() {
    let world = World::with_hello().await;
    let mut server = world.server.clone();
    server.scratch = "/nowhere".into();
    let router = server::router(server, CancellationToken::new());
    let answer = router.oneshot(request(Method::GET, BACKUP)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::INSUFFICIENT_STORAGE);
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
    let problem: api::Problem = serde_json::from_slice(&body.unwrap()).unwrap();
    assert_eq!(problem.code, "BACKUP-001");
    assert!(!problem.detail.contains("/nowhere"), "{}", problem.detail);
}

#[tokio::test]
async fn an_administrator_of_one_project_gets_no_backup_of_all() {
    let world = World::with_hello().await;
    let token = world.give("ada", Role::Admin, Some("default")).await;
    let refused = world
        .ask(&token, Method::GET, BACKUP, serde_json::Value::Null)
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
}
