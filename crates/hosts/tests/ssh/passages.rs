//! Byte streams through one connection, to what listens on the host's loopback address.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hosts::error::Kind;
use hosts::ssh::{Connections, Door, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::proxy::Proxy;
use crate::server::{Ring, Server, free_port, possible, soon};

/// Says everything again that is said to it, and counts whom it listens to.
struct Echo {
    port: u16,
    heard: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&heard);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut talks = JoinSet::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let counted = Arc::clone(&counted);
                talks.spawn(async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let (mut read, mut write) = stream.split();
                    drop(tokio::io::copy(&mut read, &mut write).await);
                    counted.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            port,
            heard,
            _tasks: tasks,
        }
    }

    fn heard(&self) -> usize {
        self.heard.load(Ordering::SeqCst)
    }
}

/// Says something of a number, and hears it.
async fn echoed(connections: &Connections, door: &Door, ring: &Ring, (port, number): (u16, u8)) {
    let stream = connections.passage(door, ring, port).await.unwrap();
    let (mut read, mut write) = tokio::io::split(stream);
    let said = vec![number; 700_000];
    let mut heard = Vec::new();
    let saying = async {
        write.write_all(&said).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let ((), read) = tokio::join!(saying, read.read_to_end(&mut heard));
    read.unwrap();
    assert!(heard == said, "{} bytes of {number}", heard.len());
}

#[tokio::test]
async fn twenty_at_once_go_through_one_connection() {
    if !possible("twenty_at_once_go_through_one_connection") {
        return;
    }
    let (server, echo) = (Server::start(), Echo::start().await);
    let (connections, ring) = (Connections::default(), Ring::new());
    let door = server.door("ada");
    let each = |number| echoed(&connections, &door, &ring, (echo.port, number));
    join_all((0..20).map(each)).await;
    assert_eq!((server.entered(), connections.open()), (1, 1));
    soon("nobody is left", || echo.heard() == 0).await;
}

#[tokio::test]
async fn a_passage_goes_through_a_jump_host() {
    if !possible("a_passage_goes_through_a_jump_host") {
        return;
    }
    let (outer, inner) = (Server::start(), Server::start());
    let echo = Echo::start().await;
    let mut door = inner.door("root");
    door.jump = Some(Box::new(outer.door("ada")));
    let (connections, ring) = (Connections::default(), Ring::new());
    echoed(&connections, &door, &ring, (echo.port, 7)).await;
    assert_eq!((outer.entered(), inner.entered()), (1, 1));
}

#[tokio::test]
async fn a_port_at_which_nobody_listens_is_told_apart_from_one_that_is_forbidden() {
    if !possible("a_port_at_which_nobody_listens_is_told_apart_from_one_that_is_forbidden") {
        return;
    }
    let (server, strict) = (Server::start(), Server::with("AllowTcpForwarding no"));
    let (connections, ring) = (Connections::default(), Ring::new());
    let port = free_port();
    for (door, kind) in [
        (server.door("root"), Kind::NobodyListens),
        (strict.door("root"), Kind::NoPassage),
    ] {
        let refused = connections.passage(&door, &ring, port).await;
        let error = refused.err().unwrap();
        assert_eq!(error.kind, kind, "{error}");
        assert!(
            error.what.contains(&format!("port {port} of {door}")),
            "{error}"
        );
    }
    // The connection is as good as before.
    let echo = Echo::start().await;
    echoed(&connections, &server.door("root"), &ring, (echo.port, 1)).await;
    assert_eq!(server.entered(), 1);
}

#[tokio::test]
async fn a_passage_keeps_its_connection_open_and_ends_when_dropped() {
    if !possible("a_passage_keeps_its_connection_open_and_ends_when_dropped") {
        return;
    }
    let (server, echo) = (Server::start(), Echo::start().await);
    let connections = Connections::new(Limits {
        idle: Duration::from_millis(200),
        ..Limits::default()
    });
    let (door, ring) = (server.door("root"), Ring::new());
    let mut stream = connections.passage(&door, &ring, echo.port).await.unwrap();
    soon("it is heard", || echo.heard() == 1).await;
    // Longer than several looks for what nobody uses.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(connections.open(), 1);
    }
    stream.write_all(b"still here").await.unwrap();
    let mut heard = [0; 10];
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"still here");
    // Also by somebody who is outside of every runtime.
    std::thread::spawn(|| drop(stream)).join().unwrap();
    soon("the other side sees the end", || echo.heard() == 0).await;
    soon("the connection is closed", || connections.open() == 0).await;
}

#[tokio::test]
async fn a_passage_whose_connection_is_lost_does_not_seem_to_end_well() {
    if !possible("a_passage_whose_connection_is_lost_does_not_seem_to_end_well") {
        return;
    }
    let (server, echo) = (Server::start(), Echo::start().await);
    let (proxy, door) = Proxy::before(&server).await;
    let (connections, ring) = (Connections::default(), Ring::new());
    let mut stream = connections.passage(&door, &ring, echo.port).await.unwrap();
    proxy.cut();
    let mut rest = Vec::new();
    let error = stream.read_to_end(&mut rest).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    // The next one finds a new way by itself.
    echoed(&connections, &door, &ring, (echo.port, 3)).await;
    assert_eq!(server.entered(), 2);
}

/// The first words of an SSH server, through whatever is in between.
async fn greeted(connections: &Connections, door: &Door, ring: &Ring) -> String {
    let mut wire = connections.reach(door, ring).await.unwrap();
    let mut word = [0; 7];
    wire.read_exact(&mut word).await.unwrap();
    String::from_utf8_lossy(&word).into_owned()
}

#[tokio::test]
async fn somebody_else_reaches_the_ssh_server_itself_also_behind_a_jump_host() {
    if !possible("somebody_else_reaches_the_ssh_server_itself_also_behind_a_jump_host") {
        return;
    }
    let (outer, inner) = (Server::start(), Server::start());
    let (connections, ring) = (Connections::default(), Ring::new());
    let mut door = inner.door("root");
    assert_eq!(greeted(&connections, &door, &ring).await, "SSH-2.0");
    door.jump = Some(Box::new(outer.door("ada")));
    assert_eq!(greeted(&connections, &door, &ring).await, "SSH-2.0");
    // The one in front lets us in; the one behind is not entered by us.
    assert_eq!((outer.entered(), inner.entered()), (1, 0));
    door.port = free_port();
    for jump in [door.jump.clone(), None] {
        door.jump = jump;
        let refused = connections.reach(&door, &ring).await.err().unwrap();
        assert_eq!(refused.kind, Kind::Refused, "{refused}");
    }
}
