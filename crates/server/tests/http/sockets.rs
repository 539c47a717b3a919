//! Events over a WebSocket, on a real connection.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use expect_test::expect;
use futures_util::{SinkExt as _, StreamExt as _};
use model::access::Role;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request as Handshake;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::world::{HELLO, PROJECT, TOKEN, World, token_id};

type Socket = WebSocketStream<TcpStream>;

/// Runs a client against a server on a socket of its own, which stops after the client.
async fn with_server(world: &World, client: impl AsyncFnOnce(SocketAddr)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = async {
        client(address).await;
        world.stop.cancel();
    };
    tokio::join!(
        client,
        server::run(listener, world.server.clone(), world.stop.clone())
    );
}

fn handshake(address: SocketAddr, query: &str, headers: &[(&str, String)]) -> Handshake {
    let url = format!("ws://{address}{PROJECT}/events{query}");
    let mut request = url.into_client_request().unwrap();
    for (name, value) in headers {
        let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

async fn connect(request: Handshake, address: SocketAddr) -> Result<Socket, (StatusCode, String)> {
    let stream = TcpStream::connect(address).await.unwrap();
    match client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(answer)) => {
            let body = answer.body().clone().unwrap_or_default();
            Err((answer.status(), String::from_utf8(body).unwrap()))
        }
        Err(error) => panic!("{error}"),
    }
}

async fn open(address: SocketAddr, query: &str) -> Socket {
    let bearer = [("authorization", format!("Bearer {TOKEN}"))];
    let opened = connect(handshake(address, query, &bearer), address).await;
    opened.unwrap()
}

async fn event(socket: &mut Socket) -> serde_json::Value {
    let heard = socket.next().await.unwrap().unwrap();
    assert!(heard.is_text(), "{heard}");
    serde_json::from_str(heard.to_text().unwrap()).unwrap()
}

/// The code with which the server ends it.
async fn ended(socket: &mut Socket) -> Option<CloseCode> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return None,
        }
    }
}

#[tokio::test]
async fn a_socket_tells_the_same_as_the_list_and_resumes() {
    let world = World::with_hello().await;
    with_server(&world, async |address| {
        let mut socket = open(address, "?after=0").await;
        let before = world.get("/events").await.json();
        for listed in before["items"].as_array().unwrap() {
            assert_eq!(&event(&mut socket).await, listed);
        }
        world.submit(&HELLO.replace("count: 2", "count: 3")).await;
        let after = before["items"].as_array().unwrap().len();
        let news = world.get(&format!("/events?after={after}")).await.json();
        for listed in news["items"].as_array().unwrap() {
            assert_eq!(&event(&mut socket).await, listed, "as it happens");
        }
        socket.close(None).await.unwrap();
        let mut again = open(address, &format!("?after={after}")).await;
        assert_eq!(event(&mut again).await, news["items"][0]);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_says_goodbye() {
    let world = World::with_hello().await;
    with_server(&world, async |address| {
        let mut socket = open(address, "").await;
        world.stop.cancel();
        assert_eq!(ended(&mut socket).await, Some(CloseCode::Away));
    })
    .await;
}

#[tokio::test]
async fn there_is_nothing_to_say_to_a_socket() {
    let world = World::with_hello().await;
    with_server(&world, async |address| {
        let mut socket = open(address, "").await;
        socket.send(Message::Ping("here".into())).await.unwrap();
        assert_eq!(
            socket.next().await.unwrap().unwrap(),
            Message::Pong("here".into())
        );
        socket.send(Message::text("tell me more")).await.unwrap();
        assert_eq!(ended(&mut socket).await, Some(CloseCode::Unsupported));
        let mut loud = open(address, "").await;
        loud.send(Message::text("x".repeat(1 << 20))).await.unwrap();
        assert_eq!(ended(&mut loud).await, None, "cut off, unread");
        let mut other = open(address, "?after=0").await;
        assert_eq!(event(&mut other).await["id"], 1, "others are served on");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_socket_is_pinged_and_one_that_does_not_answer_is_dropped() {
    let world = World::with_hello().await;
    with_server(&world, async |address| {
        let mut socket = open(address, "").await;
        let begun = tokio::time::Instant::now();
        for ping in 1..=5 {
            let heard = socket.next().await.unwrap().unwrap();
            assert!(matches!(heard, Message::Ping(_)), "{heard}");
            assert_eq!(begun.elapsed().as_secs(), 15 * ping);
        }
        // Not even reading, so that no ping is answered.
        let mut stream = open(address, "").await.into_inner();
        let mut seen = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut seen)
            .await
            .unwrap();
        assert_eq!(seen, [0x89, 0].repeat(3), "three pings, and the end");
    })
    .await;
}

#[tokio::test]
async fn a_cookie_opens_a_socket_to_our_own_pages_alone() {
    let world = World::with_hello().await;
    with_server(&world, async |address| {
        let cookie = ("cookie", format!("slipway={TOKEN}"));
        let origin = |origin: &str| ("origin", origin.to_owned());
        let basic = ("authorization", "Basic YTpi".to_owned());
        let ours = [cookie.clone(), origin(&format!("http://{address}"))];
        let opened = connect(handshake(address, "?after=0", &ours), address).await;
        assert_eq!(event(&mut opened.unwrap()).await["id"], 1);
        for foreign in [
            vec![cookie.clone(), origin("http://evil.example")],
            vec![cookie.clone(), origin("http://127.0.0.1:1")],
            vec![cookie.clone(), origin("null")],
            vec![cookie.clone()],
            vec![cookie.clone(), origin("http://evil.example"), basic],
        ] {
            let refused = connect(handshake(address, "", &foreign), address).await;
            let (status, body) = refused.unwrap_err();
            assert_eq!(status, StatusCode::FORBIDDEN, "{foreign:?}");
            assert!(body.contains("STREAM-003"), "{body}");
        }
        let nobody = connect(handshake(address, "", &[]), address).await;
        assert_eq!(nobody.unwrap_err().0, StatusCode::UNAUTHORIZED);
        let bearer = ("authorization", format!("Bearer {TOKEN}"));
        let program = [bearer, origin("http://elsewhere.example")];
        assert!(
            connect(handshake(address, "", &program), address)
                .await
                .is_ok()
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_not_a_whole_handshake_is_a_problem() {
    let world = World::with_hello().await;
    with_server(&world, async |address| {
        let bearer = ("authorization", format!("Bearer {TOKEN}"));
        let old = [bearer.clone(), ("sec-websocket-version", "8".to_owned())];
        let refused = connect(handshake(address, "", &old), address).await;
        let (status, body) = refused.unwrap_err();
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        let lost = handshake(address, "?after=yesterday", &[bearer]);
        let (status, body) = connect(lost, address).await.unwrap_err();
        assert!(
            status == StatusCode::BAD_REQUEST && body.contains("STREAM-002"),
            "{body}"
        );
    })
    .await;
    let bare = Request::get(format!("{PROJECT}/events"))
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .header(header::UPGRADE, "websocket")
        .body(Body::empty())
        .unwrap();
    expect![[r"
        400 API-008: Upgrade: Connection header did not include 'upgrade'
          Upgrade [format] Connection header did not include 'upgrade'
          hint: compare the request with /openapi.json
    "]]
    .assert_eq(&world.send(bare).await.picture());
}

#[tokio::test]
async fn a_socket_ends_with_its_token() {
    let world = World::with_hello().await;
    let token = world.give("ada", Role::Viewer, None).await;
    with_server(&world, async |address| {
        let bearer = [("authorization", format!("Bearer {token}"))];
        let mut kept = open(address, "").await;
        let mut socket = connect(handshake(address, "", &bearer), address)
            .await
            .unwrap();
        // Through the server on the socket: it is this process that must know at once.
        let id = token_id(&token);
        let request = format!(
            "DELETE /api/v1/tokens/{id} HTTP/1.1\r\nhost: here\r\n\
             authorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(ended(&mut socket).await, Some(CloseCode::Policy));
        world.submit(&HELLO.replace("count: 2", "count: 1")).await;
        assert_eq!(event(&mut kept).await["project"], "default");
        kept.close(None).await.unwrap();
    })
    .await;
}
