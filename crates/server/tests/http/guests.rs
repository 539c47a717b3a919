//! People who enter machines: who may, what is written down, and bytes that are carried.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use expect_test::expect;
use futures_util::future::BoxFuture;
use model::access::{GuestKey, Role, Welcome};
use model::observed::{Fact, MachineFact, Observation};
use model::time::Timestamp;
use serde_json::json;
use server::{Enter, Letting, Shut, Visit, Wire};
use store::Page;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{PROJECT, TOKEN, World, token_id};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJK1vIzCMLIRl1oVQkTBHzzW8iPZAqDGm1sXQ8Jk4Zt";

/// Lets everybody into every machine but one, where an echo lives.
pub(crate) struct Doorman;

impl Doorman {
    fn opens(visit: &Visit) -> Result<(), Shut> {
        if visit.machine.name.as_str().ends_with("02") {
            let what = "could not connect to root@10.0.0.2:22: it did not answer (HOST-002)";
            return Err(Shut {
                what: what.to_owned(),
            });
        }
        Ok(())
    }
}

impl Enter for Doorman {
    fn let_in(&self, visit: Visit, _: GuestKey, time: Duration) -> Letting<'_> {
        Box::pin(async move {
            Self::opens(&visit)?;
            Ok(Welcome {
                user: "root".to_owned(),
                port: 22,
                host_key: "ssh-ed25519 AAAA".to_owned(),
                until: Timestamp::from_millis(1_767_225_600_000).plus(time),
            })
        })
    }

    fn reach(&self, visit: Visit) -> BoxFuture<'_, Result<Box<dyn Wire>, Shut>> {
        Box::pin(async move {
            Self::opens(&visit)?;
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).await;
            let (far, _) = listener.accept().await.unwrap();
            std::thread::spawn(move || {
                let far = far.into_std().unwrap();
                far.set_nonblocking(false).unwrap();
                let mut from = far.try_clone().unwrap();
                let mut to = far;
                drop(std::io::copy(&mut from, &mut to));
            });
            let wire: Box<dyn Wire> = Box::new(near.unwrap());
            Ok(wire)
        })
    }
}

/// Two given machines that run.
async fn world() -> World {
    let world = World::new();
    let manifest = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: attic}
spec:
  nodePools:
    static:
      - {name: trunk, nodes: [{endpoint: 10.0.0.1, secretRef: {name: door}}]}
      - {name: chest, nodes: [{endpoint: 10.0.0.2, secretRef: {name: door}}, {endpoint: 10.0.0.3, secretRef: {name: door}}, {endpoint: 10.0.0.4, secretRef: {name: door}}]}
  kubernetes:
    clusters:
      - {name: attic, version: v1.34.0, network: 10.30.0.0/24, pools: {control: [trunk], compute: [chest]}}
";
    world.submit(manifest).await;
    let cluster = world.store.live_clusters().await.unwrap()[0].id;
    let seen = world.store.cluster_view(cluster).await.unwrap().unwrap();
    let running = seen.desired.machines.iter().take(3).map(|machine| {
        let running = MachineFact::Running {
            reference: machine.name.to_string(),
            address: "10.0.0.1".parse().unwrap(),
        };
        Observation {
            cluster,
            fact: Fact::Machine(machine.id, running),
            at: world.now(),
        }
    });
    let observed = world.store.observe(cluster, running.collect(), world.now());
    assert!(observed.await.unwrap());
    world
}

fn path(machine: &str, what: &str) -> String {
    format!("{PROJECT}/machines/{machine}/{what}")
}

#[tokio::test]
async fn somebody_is_let_in_and_that_is_written_down() {
    let world = world().await;
    let guests = path("attic-trunk-01", "guests");
    let body = json!({"publicKey": KEY});
    let user = world.give("ann", Role::User, None).await;
    let refused = world.ask(&user, Method::POST, &guests, body.clone()).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let operator = world.give("bob", Role::Operator, None).await;
    let let_in = world.ask(&operator, Method::POST, &guests, body).await;
    assert_eq!(let_in.status, StatusCode::CREATED, "{}", let_in.text);
    expect![[r#"{"machine":"attic-trunk-01","user":"root","port":22,"hostKey":"ssh-ed25519 AAAA","until":"2026-01-01T00:05:00Z"}"#]]
        .assert_eq(&let_in.text);
    let page = Page {
        limit: 100,
        after: None,
    };
    let entries = world.store.audit(None, page).await.unwrap().items;
    let entered = entries
        .iter()
        .filter(|entry| entry.action == "machine.enter");
    let entered: Vec<_> = entered
        .map(|entry| format!("{} {} {}", entry.actor, entry.object, entry.detail))
        .collect();
    let told = format!("bob machine/attic-trunk-01 for 300 seconds with {KEY}");
    assert_eq!(entered, [told]);
}

#[tokio::test]
async fn where_there_is_nothing_to_enter_that_is_told() {
    let mut picture = String::new();
    let simulated = World::with_hello().await;
    let given = world().await;
    let body = json!({"publicKey": KEY});
    for (world, machine, body) in [
        (&given, "attic-trunk-09", body.clone()),
        (&simulated, "first-brain-01", body.clone()),
        (&given, "attic-chest-03", body.clone()),
        (&given, "attic-chest-02", body),
        (
            &given,
            "attic-trunk-01",
            json!({"publicKey": format!("{KEY} me")}),
        ),
        (&given, "attic-trunk-01", json!({})),
    ] {
        let guests = path(machine, "guests");
        let told = world.ask(TOKEN, Method::POST, &guests, body).await;
        picture += &told.picture();
    }
    let relay = path("attic-trunk-01", "relay");
    let told = given.ask(TOKEN, Method::POST, &relay, json!(null)).await;
    picture += &told.picture();
    expect![[r#"
        404 API-002: there is no machine `attic-trunk-09`
          hint: list what there is with `slipway get machine`
        409 API-018: machine `first-brain-01` is simulated: there is nothing to enter
          hint: machines of the sandbox and given ones can be entered; `slipway describe machine` says which one it is
        409 API-019: machine `attic-chest-03` was not seen yet: Slipway has not entered it itself
          hint: wait until it runs; `slipway describe machine attic-chest-03` says how it was last seen
        502 API-020: machine `attic-chest-02` could not be entered: could not connect to root@10.0.0.2:22: it did not answer (HOST-002)
          hint: see that it runs and can be reached from the server, then try again; the code in brackets has a page of its own
        400 API-008: publicKey: allowed: the public half of an ed25519 key, `ssh-ed25519 AAAA…`, without a comment
          publicKey [format] allowed: the public half of an ed25519 key, `ssh-ed25519 AAAA…`, without a comment
          hint: compare the request with /openapi.json
        400 API-001: publicKey: found nothing; this field is required
          publicKey [required] found nothing; this field is required
          hint: compare the body with /openapi.json
        400 API-008: Upgrade: allowed: `slipway-ssh`
          Upgrade [format] allowed: `slipway-ssh`
          hint: compare the request with /openapi.json
    "#]].assert_eq(&picture);
}

/// Asks for a relay over a connection of its own.
async fn relay(address: std::net::SocketAddr, machine: &str, token: &str) -> (String, TcpStream) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: upgrade\r\nUpgrade: slipway-ssh\r\nContent-Length: 0\r\n\r\n",
        path(machine, "relay")
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    (String::from_utf8(answer).unwrap(), stream)
}

async fn said_again(stream: &mut TcpStream, word: &[u8]) {
    stream.write_all(word).await.unwrap();
    let mut heard = vec![0; word.len()];
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard, word);
}

#[tokio::test]
async fn bytes_are_carried_until_one_side_ends_or_the_token_is_no_longer_good() {
    let world = world().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = async {
        let token = world.give("bob", Role::Operator, None).await;
        let (answer, mut stream) = relay(address, "attic-trunk-01", &token).await;
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert!(
            answer.to_lowercase().contains("upgrade: slipway-ssh\r\n"),
            "{answer}"
        );
        said_again(&mut stream, b"SSH-2.0-here\r\n").await;
        said_again(&mut stream, &vec![7; 300_000]).await;
        // An end is passed on, and comes back as the other's.
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);

        let (answer, _) = relay(address, "attic-chest-02", &token).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");

        let (_, mut stream) = relay(address, "attic-trunk-01", &token).await;
        said_again(&mut stream, b"still").await;
        let revoked = format!("/api/v1/tokens/{}", token_id(&token));
        let gone = world
            .ask(TOKEN, Method::DELETE, &revoked, json!(null))
            .await;
        assert!(gone.status.is_success(), "{}", gone.text);
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);

        let (_, mut stream) = relay(address, "attic-trunk-01", TOKEN).await;
        said_again(&mut stream, b"until the end").await;
        world.stop.cancel();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    };
    tokio::join!(
        client,
        server::run(listener, world.server.clone(), world.stop.clone())
    );
}
