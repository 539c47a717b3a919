//! What cannot be answered is refused with a problem, whatever it is.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use expect_test::expect;

use crate::world::{HELLO, PROJECT, TOKEN, World, request};

#[tokio::test]
async fn unknown_routes_and_methods_are_problems() {
    let world = World::new();
    let mut told = Vec::new();
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
        told.push(answer.picture());
        if !allow.is_empty() {
            told.push(format!("  allow: {allow}\n"));
        }
    }
    expect![[r#"
        404 API-002: there is no route `/nowhere`
          hint: every route is listed in /openapi.json
        404 API-002: there is no route `/api/v2`
          hint: every route is listed in /openapi.json
        404 API-002: there is no route `/api/v1/projects/default/clusters/a/b/c`
          hint: every route is listed in /openapi.json
        405 API-007: `/api/v1/projects/default/manifests` does not know PUT
          hint: the Allow header lists the methods it knows
          allow: GET,HEAD,POST
        405 API-007: `/healthz` does not know POST
          hint: the Allow header lists the methods it knows
          allow: GET,HEAD
        405 API-007: `/` does not know TRACE
          hint: the Allow header lists the methods it knows
          allow: GET,HEAD
        404 PROJECT-001: there is no project `other`
          hint: list them with `slipway get projects`; an administrator makes one with `slipway project create`
        400 API-008: project: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `other`
          project [format] name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `other`
          hint: compare the request with /openapi.json
    "#]]
    .assert_eq(&told.concat());
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
        "/plans/plan-",
        "/events?stream=perhaps",
        "/tasks/task-0000000000000/log?stream=perhaps",
        "/clusters?state=fine",
        "/clusters?manifest=",
        "/tasks?cluster=%F0%9F%98%80",
    ] {
        let path: String = path
            .chars()
            .map(|c| {
                if c.is_ascii() {
                    c.to_string()
                } else {
                    "%E2%98%83".to_owned()
                }
            })
            .collect();
        let answer = world.get(&path).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{path}: {}",
            answer.text
        );
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
        assert_eq!(
            answer.status,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            answer.text
        );
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
        post(
            "/manifests",
            "application/x-www-form-urlencoded",
            HELLO.to_owned(),
        ),
        post("/intents", "text/plain", "{}".to_owned()),
        post("/intents", "application/json", "{".to_owned()),
        post(
            "/intents",
            "application/json; charset=utf-8",
            "[]".to_owned(),
        ),
        post("/manifests", "text/yaml", "a".repeat(10 << 20)),
        post("/plans", "text/plain", "a".repeat((1 << 20) + 1)),
        post("/intents", "application/json", "a".repeat(40 << 20)),
    ] {
        told.push_str(&world.send(request).await.picture());
    }
    expect![[r#"
        415 API-006: found `application/x-www-form-urlencoded`, allowed: application/yaml, application/x-yaml, text/yaml, application/json, text/plain
          hint: set the Content-Type of the request
        415 API-006: found `text/plain`, allowed: application/json
          hint: set the Content-Type of the request
        400 API-001: the body ends in the middle of its JSON, at line 1 column 1
          hint: compare the body with /openapi.json
        400 API-001: found a list, allowed: an object with cluster, wish, reason, expiresInSeconds
           [type] found a list, allowed: an object with cluster, wish, reason, expiresInSeconds
          hint: compare the body with /openapi.json
        413 INPUT-003: the body has more than 1048576 bytes
          hint: send less; a manifest can be split, because clusters that share nothing may live in manifests of their own, and of an environment a part can be set at a time
        413 INPUT-003: the body has more than 1048576 bytes
          hint: send less; a manifest can be split, because clusters that share nothing may live in manifests of their own, and of an environment a part can be set at a time
        413 INPUT-003: the body has more than 1048576 bytes
          hint: send less; a manifest can be split, because clusters that share nothing may live in manifests of their own, and of an environment a part can be set at a time
    "#]].assert_eq(&told);
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
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{name}: {value}: {}",
            answer.text
        );
    }
}
