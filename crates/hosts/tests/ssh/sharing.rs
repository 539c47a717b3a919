//! One connection for all who ask, and none for nobody.

use std::future::pending;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hosts::error::Kind;
use hosts::ssh::{Connections, Limits};
use tokio::net::TcpListener;

use crate::server::{Ring, Server, possible, program, soon};

/// Futures of workers move between threads.
fn moves<T: Send>(future: T) -> T {
    future
}

/// Runs many at once, and tells what each said.
async fn many(
    connections: &Connections,
    server: &Server,
    ring: &Ring,
    count: usize,
) -> Vec<Vec<String>> {
    let door = &server.door("root");
    let running = (0..count).map(|number| async move {
        let program = program(&format!("sleep 0.1; echo {number}"));
        let ended = connections.run(door, ring, &program, &|_| {}, pending());
        ended.await.unwrap().tail
    });
    moves(join_all(running)).await
}

fn numbers(count: usize) -> Vec<Vec<String>> {
    (0..count).map(|number| vec![number.to_string()]).collect()
}

#[tokio::test]
async fn fifty_programs_at_once_share_one_connection() {
    if !possible("fifty_programs_at_once_share_one_connection") {
        return;
    }
    let server = Server::start();
    let (connections, ring) = (Connections::default(), Ring::new());
    let begun = Instant::now();
    assert_eq!(many(&connections, &server, &ring, 50).await, numbers(50));
    println!("50 programs of 0.1 s at once: {:?}", begun.elapsed());
    assert_eq!(server.entered(), 1, "opened once, by all at the same time");
    assert_eq!(ring.opened(), 1, "the key is opened once");
    assert_eq!(connections.open(), 1);
    let begun = Instant::now();
    for _ in 0..50 {
        let (door, program) = (server.door("root"), program("true"));
        let ended = connections.run(&door, &ring, &program, &|_| {}, pending());
        ended.await.unwrap();
    }
    println!("50 programs one after the other: {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_host_with_few_sessions_is_waited_for() {
    if !possible("a_host_with_few_sessions_is_waited_for") {
        return;
    }
    let server = Server::with("MaxSessions 2");
    let (connections, ring) = (Connections::default(), Ring::new());
    assert_eq!(many(&connections, &server, &ring, 12).await, numbers(12));
    assert_eq!(server.entered(), 1);

    let server = Server::with("MaxSessions 0");
    let connections = Connections::new(Limits {
        authentication: Duration::from_secs(3),
        ..Limits::default()
    });
    let (door, program) = (server.door("root"), program("true"));
    let ended = connections.run(&door, &ring, &program, &|_| {}, pending());
    let error = ended.await.unwrap_err();
    assert_eq!(error.kind, Kind::Failed);
    assert!(error.what.contains("opens no session"), "{error}");
}

#[tokio::test]
async fn who_waited_for_an_attempt_that_failed_does_not_try_again() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let door = hosts::ssh::Door {
        host: Ipv4Addr::LOCALHOST.into(),
        port: listener.local_addr().unwrap().port(),
        user: "root".to_owned(),
        jump: None,
    };
    let connections = Connections::new(Limits {
        connect: Duration::from_millis(500),
        ..Limits::default()
    });
    let (ring, program) = (Ring::new(), program("true"));
    let attempt = || connections.run(&door, &ring, &program, &|_| {}, pending());
    let ended = join_all((0..20).map(|_| attempt())).await;
    for error in ended {
        assert_eq!(error.unwrap_err().kind, Kind::Silent);
    }
    let mut asked = 0;
    while let Ok(Ok(_)) = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await {
        asked += 1;
    }
    assert_eq!(asked, 1);
    attempt().await.unwrap_err();
    let (_, _) = listener.accept().await.unwrap();
}

#[tokio::test]
async fn connections_that_nobody_uses_are_closed() {
    if !possible("connections_that_nobody_uses_are_closed") {
        return;
    }
    let server = Server::start();
    let ring = Ring::new();
    let connections = Connections::new(Limits {
        idle: Duration::from_millis(400),
        ..Limits::default()
    });
    let (door, long) = (server.door("root"), program("sleep 2; echo on"));
    let run = |program| connections.run(&door, &ring, program, &|_| {}, pending());
    let report = run(&long).await.unwrap();
    assert_eq!(report.tail, ["on"], "one that is used stays open");
    assert_eq!(connections.open(), 1);
    soon("it is closed", || connections.open() == 0).await;
    let log = || std::fs::read_to_string(server.path("log")).unwrap();
    soon("the host was told", || log().contains("no longer needed")).await;
    run(&program("true")).await.unwrap();
    assert_eq!(server.entered(), 2);
    soon("it is closed again", || connections.open() == 0).await;
}

#[tokio::test]
async fn a_jump_host_is_not_idle_while_somebody_is_behind_it() {
    if !possible("a_jump_host_is_not_idle_while_somebody_is_behind_it") {
        return;
    }
    let (outer, inner) = (Server::start(), Server::start());
    let mut door = inner.door("root");
    door.jump = Some(Box::new(outer.door("root")));
    let connections = Connections::new(Limits {
        idle: Duration::from_millis(300),
        ..Limits::default()
    });
    let (ring, long) = (Ring::new(), program("sleep 2; echo on"));
    let ended = connections.run(&door, &ring, &long, &|_| {}, pending());
    assert_eq!(ended.await.unwrap().tail, ["on"]);
    soon("both are closed", || connections.open() == 0).await;
}

#[tokio::test]
async fn the_connection_of_another_scope_is_not_used() {
    if !possible("the_connection_of_another_scope_is_not_used") {
        return;
    }
    let server = Server::start();
    let connections = Connections::default();
    let (door, program) = (server.door("root"), program("true"));
    let mine = Ring::new();
    let run = |ring| {
        let (connections, door, program) = (&connections, &door, &program);
        async move {
            connections
                .run(door, ring, program, &|_| {}, pending())
                .await
        }
    };
    run(&mine).await.unwrap();
    let mut theirs = Ring::of("no key at all");
    theirs.scope = "elsewhere".to_owned();
    let error = run(&theirs).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadKey, "they must not get in by our key");
    // And who has pinned another host does not use the connection to this one.
    let (_, other) = hosts::ssh::new_key("another host").unwrap();
    *mine.pins.lock().unwrap() = vec![(door.clone(), other)];
    let error = run(&mine).await.unwrap_err();
    assert_eq!(error.kind, Kind::ChangedHostKey);
}
