//! Health, metrics, and what happens when something goes wrong inside.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use futures_util::future::BoxFuture;
use server::{Rehearsal, Rehearse, SimulationView, Turn};

use crate::world::{HELLO, PROJECT, TOKEN, World, request};

/// A simulator with a bug.
struct Fallen;

impl Rehearse for Fallen {
    fn rehearse(&self, _request: Rehearsal) -> BoxFuture<'_, Result<SimulationView, String>> {
        Box::pin(async { panic!("the simulator has a bug") })
    }
}

/// A simulator that never ends.
struct Endless;

impl Rehearse for Endless {
    fn rehearse(&self, _request: Rehearsal) -> BoxFuture<'_, Result<SimulationView, String>> {
        Box::pin(std::future::pending())
    }
}

/// A simulator whose work goes on when nobody waits for it any more.
#[derive(Default)]
struct Absorbed(std::sync::Mutex<Vec<Turn>>);

impl Rehearse for Absorbed {
    fn rehearse(&self, request: Rehearsal) -> BoxFuture<'_, Result<SimulationView, String>> {
        self.0.lock().unwrap().push(request.turn);
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn the_server_says_that_it_runs_and_is_ready() {
    let world = World::new();
    for path in ["/healthz", "/readyz"] {
        let answer = world
            .send(Request::get(path).body(Body::empty()).unwrap())
            .await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (StatusCode::OK, "ok\n"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn metrics_count_requests_and_things() {
    let world = World::new();
    let _here = metrics::set_default_local_recorder(&world.recorder);
    world.submit(HELLO).await;
    world.plan().await;
    let text = world
        .send(Request::get("/metrics").body(Body::empty()).unwrap())
        .await
        .text;
    for line in [
        r#"slipway_http_request_seconds_count{method="POST",path="/api/v1/projects/{project}/manifests",status="202"} 1"#,
        r#"slipway_clusters{phase="scheduled"} 1"#,
        r#"slipway_tasks{state="waiting"} 5"#,
        r#"slipway_tasks{state="stuck"} 0"#,
        "slipway_machines 5",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
    assert!(!text.contains("slipway_0123"), "no secret is told");
}

#[tokio::test]
async fn a_panic_becomes_a_problem_with_the_id_of_the_request() {
    let world = World::rehearsing(Arc::new(Fallen));
    let mut asked = request(Method::POST, "/api/v1/projects/default/simulations");
    *asked.body_mut() = Body::from(HELLO);
    asked
        .headers_mut()
        .insert("x-request-id", "mine-1".parse().unwrap());
    let answer = world.send(asked).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer.header("x-request-id"), "mine-1");
    assert!(
        answer.text.contains("API-009") && answer.text.contains("mine-1"),
        "{}",
        answer.text
    );
    assert!(
        !answer.text.contains("simulator has a bug"),
        "the inside stays inside"
    );
    assert_eq!(
        world.get("/clusters").await.status,
        StatusCode::OK,
        "others are served on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_given_up() {
    let world = World::rehearsing(Arc::new(Endless));
    let answer = world.post("/simulations", HELLO).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (StatusCode::SERVICE_UNAVAILABLE, "2")
    );
    assert!(answer.text.contains("API-010"), "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_rehearsal_keeps_its_turn_when_the_client_leaves() {
    let simulator = Arc::new(Absorbed::default());
    let rehearse: Arc<dyn Rehearse> = simulator.clone();
    let world = World::rehearsing(rehearse);
    let patience = std::time::Duration::from_secs(1);
    let left = tokio::time::timeout(patience, world.post("/simulations", HELLO)).await;
    assert!(left.is_err(), "the client has left before the end");
    let answer = world.post("/simulations", HELLO).await;
    assert_eq!(answer.header("retry-after"), "2");
    assert_eq!(
        answer.picture(),
        "503 API-010: another rehearsal goes on\n  hint: try again in a moment\n"
    );
    let begun = || simulator.0.lock().unwrap().len();
    assert_eq!(begun(), 1);
    simulator.0.lock().unwrap().clear();
    let next = tokio::time::timeout(patience, world.post("/simulations", HELLO)).await;
    assert!(next.is_err());
    assert_eq!(
        begun(),
        1,
        "after the end of the first it is another's turn"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_ends_its_request_is_hung_up_on() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let world = World::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = async {
        for begun in ["", "G", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nhost: he"] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(begun.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            let answer = String::from_utf8(answer).unwrap();
            assert!(!answer.contains("200 OK"), "{answer}");
        }
        world.stop.cancel();
    };
    let served = server::run(listener, world.server.clone(), world.stop.clone());
    tokio::join!(served, client);
}

#[tokio::test]
async fn every_answer_has_an_id_and_is_guarded() {
    let world = World::new();
    let answer = world.send(request(Method::GET, "/nowhere")).await;
    assert!(!answer.header("x-request-id").is_empty());
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    let mut odd = request(Method::GET, "/healthz");
    odd.headers_mut()
        .insert("x-request-id", "a b;c".parse().unwrap());
    assert_ne!(world.send(odd).await.header("x-request-id"), "a b;c");
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_ends_its_streams_and_itself() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let world = World::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = async {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let asked = format!(
            "GET {PROJECT}/events?stream=true HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(asked.as_bytes()).await.unwrap();
        let mut first = [0; 15];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        world.stop.cancel();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert!(
            rest.ends_with("0\r\n\r\n"),
            "the stream ends whole: {rest:?}"
        );
    };
    tokio::join!(
        client,
        server::run(listener, world.server.clone(), world.stop.clone())
    );
}

#[tokio::test]
async fn ten_megabytes_are_refused_with_an_answer_and_not_with_a_broken_connection() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let world = World::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let body = vec![b'a'; 10 << 20];
    let client = async {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {PROJECT}/manifests HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {TOKEN}\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        world.stop.cancel();
    };
    let run = server::run(listener, world.server.clone(), world.stop.clone());
    tokio::join!(client, run);
}
