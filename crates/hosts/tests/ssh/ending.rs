//! Programs that are ended before their time, and what is left of them: nothing.

use std::future::pending;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hosts::error::Kind;
use hosts::ssh::{Connections, Limits};
use tokio_util::sync::CancellationToken;

use crate::proxy::Proxy;
use crate::server::{Ring, Server, kill, lives, pids, possible, processes, program, soon, within};

/// Hangs, with children of several kinds whose numbers it writes down.
fn hanging(server: &Server, name: &str) -> (std::path::PathBuf, String) {
    let file = server.path(name);
    let at = file.display();
    let text = format!(
        "trap '' TERM HUP INT
        sleep 1111 & echo $! >>{at}
        timeout 1111 sleep 1111 & echo $! >>{at}
        (sh -c 'trap \"\" TERM; echo $$ >>{at}; while :; do sleep 1; done' & )
        echo hanging; sleep 1111; echo never"
    );
    (file, text)
}

/// Waits until what is ended is gone, however slow this machine is.
fn patient() -> Connections {
    Connections::new(Limits {
        ending: Duration::from_mins(1),
        ..Limits::default()
    })
}

fn none_live(pids: &[u32]) {
    for pid in pids {
        assert!(!lives(*pid), "{pid} of {pids:?} was left behind");
    }
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_all_its_children() {
    if !possible("a_program_that_hangs_is_ended_with_all_its_children") {
        return;
    }
    let (server, connections) = (Server::start(), patient());
    let trying = ["root", "ada", "eve"].map(async |user| {
        let (file, text) = hanging(&server, user);
        let (door, ring) = (server.door(user), Ring::new());
        let program = within(&text, Duration::from_secs(5));
        let ended = connections.run(&door, &ring, &program, &|_| {}, pending());
        let error = ended.await.unwrap_err();
        assert_eq!(error.kind, Kind::Hung);
        assert!(error.what.contains("and was ended"), "{user}: {error}");
        assert!(error.what.contains(&door.to_string()), "{error}");
        // It was seen to be ended, so there is nothing to wait for.
        none_live(&pids(&file, 3).await);
    });
    join_all(trying).await;
}

#[tokio::test]
async fn a_program_that_is_called_off_ends_soon() {
    if !possible("a_program_that_is_called_off_ends_soon") {
        return;
    }
    let (server, connections) = (Server::start(), patient());
    let (door, ring) = (server.door("root"), Ring::new());
    for user in ["root", "ada"] {
        let (file, text) = hanging(&server, user);
        let door = server.door(user);
        let cancel = CancellationToken::new();
        let program = program(&text);
        let running = connections.run(&door, &ring, &program, &|_| {}, cancel.cancelled());
        let calling = async {
            let children = pids(&file, 3).await;
            cancel.cancel();
            (children, Instant::now())
        };
        let (ended, (children, called)) = tokio::join!(running, calling);
        assert!(called.elapsed() < Duration::from_mins(1));
        let error = ended.unwrap_err();
        assert!(error.what.contains("called off"), "{error}");
        none_live(&children);
    }
    // The connection is as good as before.
    let report = connections
        .run(&door, &ring, &program("echo on"), &|_| {}, pending())
        .await;
    assert_eq!(report.unwrap().tail, ["on"]);
    assert_eq!(server.entered(), 2);
}

#[tokio::test]
async fn a_program_that_nobody_waits_for_is_ended() {
    if !possible("a_program_that_nobody_waits_for_is_ended") {
        return;
    }
    let server = Server::start();
    let connections = Connections::default();
    let (door, ring) = (server.door("root"), Ring::new());
    let (file, text) = hanging(&server, "dropped");
    let program = program(&text);
    let children = tokio::select! {
        ended = connections.run(&door, &ring, &program, &|_| {}, pending()) => panic!("{ended:?}"),
        children = pids(&file, 3) => children,
    };
    soon("all are gone", || !children.iter().any(|pid| lives(*pid))).await;
}

#[tokio::test]
async fn a_connection_that_is_killed_is_lost_and_so_are_its_programs() {
    if !possible("a_connection_that_is_killed_is_lost_and_so_are_its_programs") {
        return;
    }
    let server = Server::start();
    let connections = Connections::default();
    let (door, ring) = (server.door("root"), Ring::new());
    let (file, text) = hanging(&server, "killed");
    let text = format!("echo $PPID >{}; {text}", file.display());
    let program = program(&text);
    let running = connections.run(&door, &ring, &program, &|_| {}, pending());
    let killing = async {
        let children = pids(&file, 4).await;
        // The program is a part of the shell that the session started.
        kill(children[0]);
        children
    };
    let (ended, children) = tokio::join!(running, killing);
    let error = ended.unwrap_err();
    assert_eq!(error.kind, Kind::Lost, "{error}");
    assert!(error.what.contains(&door.to_string()), "{error}");
    assert!(error.what.contains("while it ran"), "{error}");
    soon("all are gone", || !children.iter().any(|pid| lives(*pid))).await;
    let again = crate::server::program("echo again");
    let report = connections.run(&door, &ring, &again, &|_| {}, pending());
    assert_eq!(report.await.unwrap().tail, ["again"]);
}

#[tokio::test]
async fn a_text_that_is_cut_off_is_not_run() {
    if !possible("a_text_that_is_cut_off_is_not_run") {
        return;
    }
    let server = Server::start();
    let (proxy, door) = Proxy::before(&server).await;
    let ring = Ring::new();
    let witness = server.path("witness");
    let text = format!(
        "touch {}\n{}",
        witness.display(),
        "echo a line\n".repeat(30_000)
    );
    let connections = Connections::default();
    let first = program("true");
    let run = |program| connections.run(&door, &ring, program, &|_| {}, pending());
    run(&first).await.unwrap();
    let whole = program(&text);
    for budget in [400, 5_000, 40_000, 200_000, 359_000] {
        proxy.allow(budget);
        let cut = run(&whole);
        let error = cut.await.unwrap_err();
        assert_eq!(error.kind, Kind::Lost, "{budget}: {error}");
        assert!(error.what.contains("before it ran"), "{budget}: {error}");
        proxy.allow(usize::MAX);
        // Whatever the host makes of what it got, it has made it when its shell is gone.
        let shells = || processes(|pid| shell_of(pid, &server));
        soon("the shell is gone", || shells().is_empty()).await;
        assert!(!witness.exists(), "ran after {budget} bytes");
        run(&first).await.unwrap();
    }
    run(&whole).await.unwrap();
    assert!(witness.exists());
}

/// Whether a process is a shell that reads its text in the server's mount namespace.
fn shell_of(pid: u32, server: &Server) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mounts = std::fs::read_to_string(format!("/proc/{pid}/mounts")).unwrap_or_default();
    line == b"/bin/sh\0-s\0" && mounts.contains(&server.path("full").display().to_string())
}

#[tokio::test]
async fn a_host_that_vanishes_is_noticed() {
    if !possible("a_host_that_vanishes_is_noticed") {
        return;
    }
    let server = Server::start();
    let (proxy, door) = Proxy::before(&server).await;
    let ring = Ring::new();
    let connections = Connections::new(Limits {
        keepalive: Duration::from_secs(1),
        ..Limits::default()
    });
    let (file, text) = hanging(&server, "vanished");
    let program = program(&text);
    let running = connections.run(&door, &ring, &program, &|_| {}, pending());
    let vanishing = async {
        let children = pids(&file, 3).await;
        // It lives for longer than a few keepalives where the host answers them.
        tokio::time::sleep(Duration::from_secs(4)).await;
        proxy.silence();
        (children, Instant::now())
    };
    let (ended, (children, vanished)) = tokio::join!(running, vanishing);
    let error = ended.unwrap_err();
    assert_eq!(error.kind, Kind::Lost, "{error}");
    assert!(vanished.elapsed() < Duration::from_mins(1));
    proxy.cut();
    soon("all are gone", || !children.iter().any(|pid| lives(*pid))).await;
}

#[tokio::test]
async fn a_connection_that_died_unnoticed_is_replaced() {
    if !possible("a_connection_that_died_unnoticed_is_replaced") {
        return;
    }
    let server = Server::start();
    let (proxy, door) = Proxy::before(&server).await;
    let ring = Ring::new();
    let connections = Connections::new(Limits {
        authentication: Duration::from_secs(3),
        ..Limits::default()
    });
    let one = program("echo one");
    let run = || connections.run(&door, &ring, &one, &|_| {}, pending());
    run().await.unwrap();
    // The old wire says nothing any more; a new one works.
    proxy.silence();
    run().await.unwrap();
    assert_eq!(server.entered(), 2);
}
