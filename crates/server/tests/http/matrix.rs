//! Every route and every page against everybody who may ask.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, StatusCode, header};
use expect_test::expect;
use model::access::Role;
use serde_json::{Value, json};
use server::Need;

use crate::world::{Answer, TOKEN, World, filled, operations};

/// Who asks, in the order of the columns.
struct Crowd {
    tokens: Vec<(&'static str, Option<String>)>,
}

impl Crowd {
    async fn gather(world: &World) -> Self {
        world.make_project("other").await;
        let mut tokens = vec![
            ("nobody", None),
            ("garbage", Some("slipway_garbage".to_owned())),
        ];
        for role in Role::ALL {
            let token = world.give(role.as_str(), role, None).await;
            tokens.push((role.as_str(), Some(token)));
        }
        let body = json!({"name": "late", "role": "admin", "expiresInSeconds": 1});
        let late = world.ask(TOKEN, Method::POST, "/api/v1/tokens", body).await;
        let late = late.json()["token"].as_str().unwrap().to_owned();
        let out = world.give("out", Role::Admin, None).await;
        world.revoke(&out).await;
        let own = world.give("own", Role::Admin, Some("default")).await;
        let other = world.give("other", Role::Admin, Some("other")).await;
        world.pass(Duration::from_secs(1));
        let late = [
            ("expired", late),
            ("revoked", out),
            ("own", own),
            ("other", other),
        ];
        tokens.extend(late.map(|(name, token)| (name, Some(token))));
        Self { tokens }
    }
}

/// Asks as somebody, each time from another address: nobody here has failed before.
fn request(method: &Method, path: &str, token: Option<&str>, page: bool) -> Request<Body> {
    static ADDRESSES: AtomicU32 = AtomicU32::new(1);
    let address = Ipv4Addr::from(ADDRESSES.fetch_add(1, Ordering::Relaxed));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .extension(ConnectInfo(SocketAddr::from((address, 1))));
    let request = match token {
        Some(token) if page => request.header(header::COOKIE, format!("slipway={token}")),
        Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
        None => request,
    };
    request.body(Body::empty()).unwrap()
}

/// How far somebody came: past the gates, to the form, or to which refusal.
fn cell(answer: &Answer) -> String {
    let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
    if answer.header("location").starts_with("/sign-in") {
        return "form".to_owned();
    }
    if !refused.contains(&answer.status) {
        assert_ne!(answer.status, StatusCode::TOO_MANY_REQUESTS);
        return "ok".to_owned();
    }
    let codes = [
        "API-003", "AUTH-001", "AUTH-002", "AUTH-003", "AUTH-005", "AUTH-006", "AUTH-007",
        "GIT-001",
    ];
    let found = codes.iter().find(|code| answer.text.contains(*code));
    let (area, number) = found.unwrap().split_once("-00").unwrap();
    let letter = match area {
        "API" => "P",
        "GIT" => "G",
        _ => "A",
    };
    format!("{letter}{number}")
}

/// What an operation says that it needs; it must say something.
fn declared(operation: &Value) -> String {
    let (role, security) = (&operation["x-slipway-role"], &operation["security"]);
    if *security == json!([{}]) {
        assert_eq!(*role, Value::Null);
        return "nothing".to_owned();
    }
    let role = role
        .as_str()
        .expect("an operation declares the role it needs");
    let roles = security[0]["bearer"].as_array().unwrap();
    assert_eq!(roles[0], role);
    match roles.len() {
        1 => role.to_owned(),
        _ => format!("{role}, {}", roles[1].as_str().unwrap()),
    }
}

async fn line(world: &World, crowd: &Crowd, method: &Method, path: &str, page: bool) -> String {
    let mut cells = String::new();
    for (_, token) in &crowd.tokens {
        let request = request(method, &filled(path), token.as_deref(), page);
        cells.push_str(&format!(" {:>4}", cell(&world.send(request).await)));
    }
    cells
}

/// Which of some routes lets in whom.
async fn pictured(of: impl Fn(&str) -> bool) -> String {
    let world = World::with_hello().await;
    let crowd = Crowd::gather(&world).await;
    let names: Vec<_> = crowd.tokens.iter().map(|(name, _)| *name).collect();
    let mut picture = format!("{}\n", names.join(" "));
    let document = serde_json::to_value(server::document()).unwrap();
    for (path, method, _) in operations().into_iter().filter(|(path, ..)| of(path)) {
        let operation = &document["paths"][&path][method.as_str().to_lowercase()];
        let need = declared(operation);
        let cells = line(&world, &crowd, &method, &path, false).await;
        let short = path
            .replace("/api/v1/projects/{project}/", "…/")
            .replace("/api/v1/", "/…/");
        picture.push_str(&format!(
            "{:<6} {short:<45}{cells}  {need}\n",
            method.as_str()
        ));
    }
    picture
}

/// Whether a route is about environments.
fn of_environments(path: &str) -> bool {
    path.contains("/environment")
}

#[tokio::test]
async fn every_route_lets_in_whom_it_declares_and_nobody_else() {
    let picture = pictured(|path| !of_environments(path)).await;
    expect![[r#"
        nobody garbage viewer user operator admin expired revoked own other
        GET    /…/audit                                        P3   A1   A5   A5   A5   ok   A2   A3   ok   ok  admin
        GET    /…/audit/export                                 P3   A1   A5   A5   A5   ok   A2   A3   ok   ok  admin
        GET    /…/audit/verification                           P3   A1   A5   A5   A5   ok   A2   A3   A7   A7  admin, all-projects
        GET    /…/backup                                       P3   A1   A5   A5   A5   ok   A2   A3   A7   A7  admin, all-projects
        GET    /…/keys                                         P3   A1   A5   A5   A5   ok   A2   A3   A7   A7  admin, all-projects
        POST   /…/keys/rotation                                P3   A1   A5   A5   A5   ok   A2   A3   A7   A7  admin, all-projects
        GET    /…/projects                                     P3   A1   ok   ok   ok   ok   A2   A3   ok   ok  viewer
        DELETE /…/projects/{project}                           P3   A1   A5   A5   A5   ok   A2   A3   A7   A7  admin, all-projects
        GET    /…/projects/{project}                           P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        PUT    /…/projects/{project}                           P3   A1   A5   A5   A5   ok   A2   A3   A7   A7  admin, all-projects
        GET    …/clusters                                      P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/clusters/{name}                               P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/clusters/{name}/generations                   P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/clusters/{name}/generations/{generation}      P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/clusters/{name}/kubeconfig                    P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        POST   …/clusters/{name}/recovery                      P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        GET    …/clusters/{name}/why                           P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/events                                        P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/git/{source}                                  G1   G1   G1   G1   G1   G1   G1   G1   G1   G1  nothing
        GET    …/intents                                       P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/intents                                       P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        DELETE …/intents/{id}                                  P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        GET    …/machines                                      P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/machines/{name}                               P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/machines/{name}/changes                       P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/machines/{name}/guests                        P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        POST   …/machines/{name}/relay                         P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        GET    …/manifests                                     P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/manifests                                     P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        DELETE …/manifests/{name}                              P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        GET    …/manifests/{name}                              P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/manifests/{name}/generations                  P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/manifests/{name}/generations/{generation}     P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/plans                                         P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        GET    …/plans/{id}                                    P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/secrets                                       P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        DELETE …/secrets/{name}                                P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        GET    …/secrets/{name}                                P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        PATCH  …/secrets/{name}                                P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        PUT    …/secrets/{name}                                P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        POST   …/simulations                                   P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        GET    …/tasks                                         P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/tasks/{id}                                    P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/tasks/{id}/log                                P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    /…/tokens                                       P3   A1   A5   A5   A5   ok   A2   A3   ok   ok  admin
        POST   /…/tokens                                       P3   A1   A5   A5   A5   ok   A2   A3   ok   ok  admin
        DELETE /…/tokens/{id}                                  P3   A1   A5   A5   A5   ok   A2   A3   ok   ok  admin
        GET    /healthz                                        ok   ok   ok   ok   ok   ok   ok   ok   ok   ok  nothing
        GET    /metrics                                        ok   ok   ok   ok   ok   ok   ok   ok   ok   ok  nothing
        GET    /openapi.json                                   ok   ok   ok   ok   ok   ok   ok   ok   ok   ok  nothing
        GET    /readyz                                         ok   ok   ok   ok   ok   ok   ok   ok   ok   ok  nothing
    "#]].assert_eq(&picture);
}

#[tokio::test]
async fn every_route_about_environments_lets_in_whom_it_declares_and_nobody_else() {
    let picture = pictured(of_environments).await;
    expect![[r#"
        nobody garbage viewer user operator admin expired revoked own other
        GET    …/environment-defaults                          P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/environment-deliveries                        P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/environment-deliveries                        P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        GET    …/environment-deliveries/{id}                   P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/environment-deliveries/{id}/retry             P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        POST   …/environment-import                            P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        GET    …/environment-keys                              P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/environment-settings                          P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        PUT    …/environment-settings                          P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        GET    …/environments                                  P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/environments                                  P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        DELETE …/environments/{name}                           P3   A1   A5   A5   ok   ok   A2   A3   ok   A6  operator
        GET    …/environments/{name}                           P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        PATCH  …/environments/{name}                           P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        PUT    …/environments/{name}                           P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        GET    …/environments/{name}/actions                   P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/environments/{name}/actions/{id}              P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        GET    …/environments/{name}/actions/{id}/log          P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/environments/{name}/archive                   P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        POST   …/environments/{name}/cancel                    P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        GET    …/environments/{name}/changes                   P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/environments/{name}/cleanup                   P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        POST   …/environments/{name}/clone                     P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        GET    …/environments/{name}/configuration             P3   A1   ok   ok   ok   ok   A2   A3   ok   A6  viewer
        POST   …/environments/{name}/extend                    P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        POST   …/environments/{name}/look                      P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        POST   …/environments/{name}/redeploy                  P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
        POST   …/environments/{name}/restore                   P3   A1   A5   ok   ok   ok   A2   A3   ok   A6  user
    "#]].assert_eq(&picture);
}

#[tokio::test]
async fn every_page_lets_in_whom_it_declares_and_nobody_else() {
    let world = World::with_hello().await;
    let crowd = Crowd::gather(&world).await;
    let mut picture = String::new();
    for (method, path, need) in server::pages() {
        let cells = line(&world, &crowd, &method, path, true).await;
        let need = match need {
            Need::Nothing => "nothing".to_owned(),
            Need::Within(role) | Need::Narrowed(role) => role.to_string(),
            Need::Everywhere(role) => format!("{role}, all-projects"),
        };
        picture.push_str(&format!(
            "{:<4} {path:<38}{cells}  {need}\n",
            method.as_str()
        ));
    }
    expect![[r#"
        GET  /                                      form form   ok   ok   ok   ok form form   ok   ok  viewer
        GET  /projects/{project}                    form form   ok   ok   ok   ok form form   ok   A6  viewer
        GET  /projects/{project}/clusters/{name}    form form   ok   ok   ok   ok form form   ok   A6  viewer
        GET  /projects/{project}/manifests/{name}   form form   ok   ok   ok   ok form form   ok   A6  viewer
        GET  /projects/{project}/tasks/{id}         form form   ok   ok   ok   ok form form   ok   A6  viewer
        GET  /sign-in                                 ok   ok   ok   ok   ok   ok   ok   ok   ok   ok  nothing
        POST /sign-in                                 ok   ok   ok   ok   ok   ok   ok   ok   ok   ok  nothing
        POST /sign-out                              form form form form form form form form form form  nothing
        GET  /assets/{name}                           ok   ok   ok   ok   ok   ok   ok   ok   ok   ok  nothing
    "#]].assert_eq(&picture);
}

/// Whoever may not know a project gets the same answer whether it exists or not.
#[tokio::test]
async fn a_stranger_cannot_tell_a_project_that_exists_from_one_that_does_not() {
    let world = World::with_hello().await;
    let crowd = Crowd::gather(&world).await;
    let (_, other) = crowd.tokens.last().unwrap();
    for (path, method, needs) in operations() {
        if !path.contains("{project}") {
            continue;
        }
        let there = filled(&path);
        let nowhere = there.replace("/projects/default", "/projects/nowhere");
        let mut answers = Vec::new();
        for path in [there, nowhere] {
            let answer = world
                .send(request(&method, &path, other.as_deref(), false))
                .await;
            answers.push((answer.status, answer.text));
        }
        assert_eq!(answers[0], answers[1], "{method} {path}");
        // Who needs no token proves otherwise who they are.
        let refused = if needs {
            StatusCode::FORBIDDEN
        } else {
            StatusCode::UNAUTHORIZED
        };
        assert_eq!(answers[0].0, refused, "{method} {path}");
    }
}
