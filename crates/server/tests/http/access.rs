//! Who is let in, and by which door.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, StatusCode, header};
use expect_test::expect;
use futures_util::StreamExt as _;
use model::access::Role;
use serde_json::{Value, json};

use crate::world::{HELLO, PROJECT, TOKEN, World};

fn bare(method: Method, path: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(Body::empty())
        .unwrap()
}

fn shows(authorization: &str, from: &str) -> Request<Body> {
    let from: SocketAddr = format!("{from}:4711").parse().unwrap();
    Request::get(format!("{PROJECT}/clusters"))
        .header(header::AUTHORIZATION, authorization)
        .extension(ConnectInfo(from))
        .body(Body::empty())
        .unwrap()
}

#[tokio::test]
async fn every_kind_of_wrong_token_has_its_own_answer() {
    let world = World::new();
    let expiring = json!({"name": "guest", "role": "viewer", "expiresInSeconds": 60});
    let made = world.ask(TOKEN, Method::POST, "/api/v1/tokens", expiring);
    let expiring = made.await.json()["token"].as_str().unwrap().to_owned();
    let revoked = world.give("gone", Role::Viewer, None).await;
    for token in [&expiring, &revoked] {
        let fine = world.send(shows(&format!("Bearer {token}"), "192.0.2.1"));
        assert_eq!(fine.await.status, StatusCode::OK);
    }
    world.revoke(&revoked).await;
    world.pass(Duration::from_mins(1));
    let mut told = String::new();
    for shown in [
        "Basic YWRtaW46YWRtaW4=",
        "Bearer ",
        "Bearer slipway_wrong",
        &format!("Bearer {expiring}"),
        &format!("Bearer {revoked}"),
    ] {
        let answer = world.send(shows(shown, "192.0.2.1")).await;
        assert_eq!(
            answer.header("www-authenticate"),
            "Bearer realm=\"slipway\""
        );
        told.push_str(&answer.picture());
    }
    expect![[r#"
        401 API-003: the request shows no token
          hint: send `Authorization: Bearer TOKEN`; the first token is in admin.token in the data directory of the server
        401 API-003: the request shows no token
          hint: send `Authorization: Bearer TOKEN`; the first token is in admin.token in the data directory of the server
        401 AUTH-001: nobody ever made the token that the request shows
          hint: copy the whole token, from `slipway_` on, and ask the server that it was made for
        401 AUTH-002: the time of the token that the request shows is over
          hint: let an administrator make another one with `slipway token create`
        401 AUTH-003: the token that the request shows was revoked
          hint: let an administrator make another one with `slipway token create`
    "#]].assert_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn who_guesses_is_told_to_wait_and_others_are_not() {
    let world = World::new();
    let guess = |from: &str| shows("Bearer slipway_guess", from);
    for _ in 0..10 {
        let answer = world.send(guess("192.0.2.1")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let answer = world.send(guess("192.0.2.1")).await;
    assert_eq!(answer.header("retry-after"), "60");
    expect![[r#"
        429 AUTH-004: too many tokens that open nothing came from this address within a minute
          hint: correct the token and try again in 60 s; a good token is never refused for this
    "#]]
    .assert_eq(&answer.picture());
    // Somebody else, and somebody with a good token at the same address, notice nothing.
    let other = world.send(guess("192.0.2.2")).await;
    assert_eq!(other.status, StatusCode::UNAUTHORIZED);
    let known = shows(&format!("Bearer {TOKEN}"), "192.0.2.1");
    assert_eq!(world.send(known).await.status, StatusCode::OK);
    // Who shows nothing guesses nothing.
    for _ in 0..20 {
        let none = world.send(bare(Method::GET, &format!("{PROJECT}/clusters")));
        assert_eq!(none.await.status, StatusCode::UNAUTHORIZED);
    }
    // The form is a door like the others.
    let form = Request::post("/sign-in")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .extension(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 4711))))
        .body(Body::from("token=slipway_guess"))
        .unwrap();
    let form = world.send(form).await;
    assert_eq!(form.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(form.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(form.header("retry-after"), "60");
    tokio::time::advance(Duration::from_mins(1)).await;
    let again = world.send(guess("192.0.2.1")).await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_revoked_token_opens_nothing_from_then_on() {
    let world = World::new();
    let token = world.give("ada", Role::Viewer, None).await;
    let path = format!("{PROJECT}/clusters");
    let ask = async || world.ask(&token, Method::GET, &path, Value::Null).await;
    assert_eq!(ask().await.status, StatusCode::OK);
    assert_eq!(ask().await.status, StatusCode::OK, "now it is remembered");
    world.revoke(&token).await;
    assert!(ask().await.text.contains("AUTH-003"));
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let world = World::with_hello().await;
    let (kept, token) = (
        world.give("eve", Role::Viewer, None).await,
        world.give("ada", Role::Viewer, None).await,
    );
    let follow = |token: &str| {
        Request::get(format!("{PROJECT}/events?stream=true"))
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(Body::empty())
            .unwrap()
    };
    let mut stays = world
        .open(follow(&kept))
        .await
        .into_body()
        .into_data_stream();
    let mut ends = world
        .open(follow(&token))
        .await
        .into_body()
        .into_data_stream();
    for stream in [&mut stays, &mut ends] {
        assert!(stream.next().await.is_some(), "it begins");
    }
    world.revoke(&token).await;
    assert!(ends.next().await.is_none());
    world.submit(&HELLO.replace("count: 2", "count: 1")).await;
    assert!(stays.next().await.is_some(), "the other one goes on");
}

#[tokio::test]
async fn pages_lead_to_the_form_and_the_form_leads_back() {
    let world = World::with_hello().await;
    for (path, to) in [
        ("/", "/sign-in"),
        ("/projects/default", "/sign-in?next=/projects/default"),
        (
            "/projects/default/clusters/first",
            "/sign-in?next=/projects/default/clusters/first",
        ),
    ] {
        let answer = world.send(bare(Method::GET, path)).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (StatusCode::SEE_OTHER, to)
        );
    }
    let form = world
        .send(bare(
            Method::GET,
            "/sign-in?next=/projects/default/clusters/first",
        ))
        .await;
    assert_eq!(form.status, StatusCode::OK);
    assert!(
        form.text
            .contains(r#"name="next" value="/projects/default/clusters/first""#),
        "{}",
        form.text
    );

    let sign_in = |token: &str| {
        Request::post("/sign-in")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(format!(
                "token={token}&next=/projects/default/clusters/first"
            )))
            .unwrap()
    };
    let refused = world.send(sign_in("slipway_wrong")).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(refused.header("set-cookie"), "");
    let signed_in = world.send(sign_in(TOKEN)).await;
    assert_eq!(
        (signed_in.status, signed_in.header("location")),
        (StatusCode::SEE_OTHER, "/projects/default/clusters/first")
    );
    let cookie = signed_in.header("set-cookie").to_owned();
    assert!(
        cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800"),
        "{cookie}"
    );

    let shown = Request::get("/projects/default/clusters/first")
        .header(header::COOKIE, cookie.split(';').next().unwrap());
    assert_eq!(
        world.send(shown.body(Body::empty()).unwrap()).await.status,
        StatusCode::OK
    );
    let signed_out = world.send(bare(Method::POST, "/sign-out")).await;
    assert!(signed_out.header("set-cookie").contains("Max-Age=0"));
}

#[tokio::test]
async fn the_cookie_of_the_page_reads_and_changes_nothing() {
    let world = World::new();
    let with_cookie = |method: Method, path: &str, body: &str| {
        Request::builder()
            .method(method)
            .uri(format!("{PROJECT}{path}"))
            .header(header::COOKIE, format!("slipway={TOKEN}"))
            .header(header::CONTENT_TYPE, "application/yaml")
            .body(Body::from(body.to_owned()))
            .unwrap()
    };
    let read = world.send(with_cookie(Method::GET, "/events", "")).await;
    assert_eq!(read.status, StatusCode::OK);
    let write = world
        .send(with_cookie(Method::POST, "/manifests", HELLO))
        .await;
    assert_eq!(write.status, StatusCode::UNAUTHORIZED);
}
