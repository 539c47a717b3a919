//! Who is let in, and by which door.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use expect_test::expect;

use crate::world::{HELLO, PROJECT, TOKEN, World, filled, operations};

fn bare(method: Method, path: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(Body::empty())
        .unwrap()
}

#[tokio::test]
async fn nothing_under_the_api_is_answered_without_the_token() {
    let world = World::with_hello().await;
    let mut closed = 0;
    for (path, method, needs_token) in operations() {
        let answer = world.send(bare(method.clone(), &filled(&path))).await;
        if needs_token {
            closed += 1;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
            assert_eq!(
                answer.header("www-authenticate"),
                "Bearer realm=\"slipway\""
            );
            assert!(
                !path.starts_with("/api/") || answer.text.contains("API-003"),
                "{}",
                answer.text
            );
        } else {
            assert!(!path.starts_with("/api/"), "{path}");
            assert_eq!(answer.status, StatusCode::OK, "{method} {path}");
        }
    }
    assert!(closed > 20, "{closed} routes are closed");
}

#[tokio::test]
async fn a_wrong_token_is_no_token() {
    let world = World::new();
    for wrong in ["Bearer slipway_wrong", "Bearer ", "Basic YWRtaW46YWRtaW4="] {
        let request = Request::get(format!("{PROJECT}/clusters"))
            .header(header::AUTHORIZATION, wrong)
            .body(Body::empty())
            .unwrap();
        let answer = world.send(request).await;
        expect![[r#"
            401 API-003: the request shows no token that is known here
              hint: send `Authorization: Bearer TOKEN`; the token is in admin.token in the data directory of the server
        "#]]
        .assert_eq(&answer.picture());
    }
}

#[tokio::test]
async fn pages_lead_to_the_form_and_the_form_leads_back() {
    let world = World::with_hello().await;
    for (path, to) in [
        ("/", "/sign-in"),
        (
            "/projects/default",
            "/sign-in?next=/projects/default",
        ),
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
        .send(bare(Method::GET, "/sign-in?next=/projects/default/clusters/first"))
        .await;
    assert_eq!(form.status, StatusCode::OK);
    assert!(
        form.text.contains(r#"name="next" value="/projects/default/clusters/first""#),
        "{}",
        form.text
    );

    let sign_in = |token: &str| {
        Request::post("/sign-in")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(format!("token={token}&next=/projects/default/clusters/first")))
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

    let shown =
        Request::get("/projects/default/clusters/first").header(header::COOKIE, cookie.split(';').next().unwrap());
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
