//! What cannot be answered is refused with a problem, whatever it is.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use expect_test::expect;

use crate::world::{HELLO, PROJECT, TOKEN, World, request};

#[tokio::test]
async fn unknown_routes_and_methods_are_problems() {
    let world = World::new();
    let mut told = String::new();
    for (method, path) in [
        (Method::GET, "/nowhere".to_owned()),
        (Method::GET, "/api/v2".to_owned()),
        (Method::GET, format!("{PROJECT}/clusters/a/b/c")),
        (Method::PUT, format!("{PROJECT}/manifests")),
        (Method::POST, "/healthz".to_owned()),
        (Method::TRACE, "/".to_owned()),
        (Method::GET, "/api/v1/projects/other/clusters".to_owned()),
        (Method::GET, "/api/v1/projects/Other/clusters".to_owned()),
    ] {
        let answer = world.send(request(method, &path)).await;
        let allow = answer.header("allow");
        told.push_str(&answer.picture());
        if !allow.is_empty() {
            told.push_str(&format!("  allow: {allow}\n"));
        }
    }
    expect![[r#""#]].assert_eq(&told);
}

#[tokio::test]
async fn names_and_ids_that_are_none_are_problems() {
    let world = World::new();
    for path in [
        "/clusters/UPPER",
        "/clusters/%00",
        "/clusters/%ff%fe",
        "/clusters/a%2Fb/why",
        "/manifests/-",
        "/manifests/hello/generations/one",
        "/manifests/hello/generations/-1",
        "/manifests/hello/generations/99999999999999999999",
        "/machines/☃",
        "/tasks/1",
        "/tasks/machine-0000000000000",
        "/tasks/task-uuuuuuuuuuuuu",
        "/tasks/task-0000000000000/log?after=-1",
        "/plans/plan-",
        "/events?after=now",
        "/events?stream=perhaps",
        "/clusters?state=fine",
        "/clusters?manifest=",
        "/tasks?cluster=%F0%9F%98%80",
    ] {
        let path: String = path.chars().map(|c| if c.is_ascii() { c.to_string() } else { "%E2%98%83".to_owned() }).collect();
        let answer = world.get(&path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}: {}", answer.text);
        assert!(answer.text.contains("API-008"), "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn things_that_are_not_there_are_not_found() {
    let world = World::with_hello().await;
    for path in [
        "/manifests/nobody",
        "/manifests/nobody/generations",
        "/manifests/hello/generations/18446744073709551615",
        "/clusters/nobody",
        "/clusters/nobody/why",
        "/clusters/nobody/generations",
        "/clusters/first/generations/9",
        "/machines/nobody",
        "/tasks/task-0000000000000",
        "/tasks/task-0000000000000/log",
        "/plans/plan-0000000000000",
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}: {}", answer.text);
        assert!(answer.text.contains("API-002"), "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn bodies_of_the_wrong_kind_or_size_are_problems() {
    let world = World::new();
    let post = |path: &str, kind: &str, body: String| {
        Request::post(format!("{PROJECT}{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header(header::CONTENT_TYPE, kind)
            .body(Body::from(body))
            .unwrap()
    };
    let mut told = String::new();
    for request in [
        post("/manifests", "application/x-www-form-urlencoded", HELLO.to_owned()),
        post("/intents", "text/plain", "{}".to_owned()),
        post("/intents", "application/json", "{".to_owned()),
        post("/intents", "application/json; charset=utf-8", "[]".to_owned()),
        post("/manifests", "text/yaml", "a".repeat(10 << 20)),
        post("/plans", "text/plain", "a".repeat((1 << 20) + 1)),
        post("/intents", "application/json", "a".repeat(40 << 20)),
    ] {
        told.push_str(&world.send(request).await.picture());
    }
    expect![[r#""#]].assert_eq(&told);
}

#[tokio::test]
async fn headers_that_are_none_are_problems() {
    let world = World::new();
    for (name, value) in [
        ("idempotency-key", ""),
        ("idempotency-key", "\u{e9}"),
        ("if-match", "*"),
        ("if-match", "-1"),
    ] {
        let request = Request::post(format!("{PROJECT}/manifests"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header(name, value)
            .body(Body::from(HELLO))
            .unwrap();
        let answer = world.send(request).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{name}: {value}: {}", answer.text);
    }
}
