//! What a role can be: datagrams, callers announced, callers that stay, and what is always there.

use crate::host::{ADDRESS, balance, figure, page, role, target, told};
use crate::traffic::{Caller, PATIENCE, Target};
use crate::world::within;
use model::balancer::{ADMIN_PORT, HEALTH_PORT, Listener, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::process::Command;

/// How a PROXY header of version 2 begins.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

async fn datagram(socket: &UdpSocket) -> u8 {
    let mut answer = [0; 16];
    // A datagram may be lost; nobody would send just one.
    for _ in 0..20 {
        socket
            .send_to(b"who", (Ipv4Addr::LOCALHOST, 5300))
            .await
            .unwrap();
        let wait = std::time::Duration::from_millis(500);
        if let Ok(read) = tokio::time::timeout(wait, socket.recv(&mut answer)).await {
            assert_eq!(read.unwrap(), 1);
            return answer[0];
        }
    }
    panic!("nobody answers datagrams");
}

#[test]
fn datagrams_reach_targets_and_follow_their_changes() {
    within(
        "roles::datagrams_reach_targets_and_follow_their_changes",
        async {
            let _targets = (
                Target::start_datagrams(1).await,
                Target::start_datagrams(2).await,
            );
            let dns = |targets| Listener {
                protocol: Protocol::Udp,
                ..role("dns", 5300, targets)
            };
            let report = told(&balance(&[dns(&[1])])).await;
            assert_eq!(
                report.fact("balancer-healthy"),
                Some("dns 1"),
                "unchecked, so healthy"
            );
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            assert_eq!(datagram(&socket).await, 1);
            told(&balance(&[dns(&[2])])).await;
            let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            assert_eq!(datagram(&other).await, 2, "a new caller");
            assert_eq!(
                datagram(&socket).await,
                2,
                "the old target is gone for everybody"
            );
        },
    );
}

/// The bytes that a target is sent first by a caller who says `hello`, past those of checks.
async fn received(
    listener: &TcpListener,
    call: impl Future<Output = TcpStream>,
) -> (Vec<u8>, SocketAddr) {
    let receive = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            let mut buffer = [0; 256];
            while !bytes.ends_with(b"hello") {
                match stream.read(&mut buffer).await {
                    Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
                    // A check says nothing of its own and hangs up.
                    Ok(0) | Err(_) => break,
                }
            }
            if bytes.ends_with(b"hello") {
                return bytes;
            }
        }
    };
    let (bytes, caller) = tokio::time::timeout(PATIENCE, async { tokio::join!(receive, call) })
        .await
        .unwrap();
    (bytes, caller.local_addr().unwrap())
}

async fn hello(port: u16) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 7], 0))).unwrap();
    let mut stream = socket
        .connect(SocketAddr::from(([127, 0, 0, 1], port)))
        .await
        .unwrap();
    stream.write_all(b"hello").await.unwrap();
    stream
}

#[test]
fn targets_are_told_who_calls() {
    within("roles::targets_are_told_who_calls", async {
        let web = TcpListener::bind((target(1), 9000)).await.unwrap();
        let announced = Listener {
            proxy_protocol: true,
            ..role("web", 8080, &[1])
        };
        told(&balance(&[announced])).await;

        let (bytes, caller) = received(&web, hello(8080)).await;
        let (header, rest) = bytes.split_at(28);
        assert_eq!(rest, b"hello");
        assert_eq!(&header[..12], SIGNATURE);
        assert_eq!(
            &header[12..16],
            [0x21, 0x11, 0, 12],
            "version 2, on behalf of, TCP over IPv4"
        );
        assert_eq!(&header[16..20], [127, 0, 0, 7], "from where it was called");
        assert_eq!(&header[20..24], [127, 0, 0, 1], "what was called");
        assert_eq!(header[24..26], caller.port().to_be_bytes());
        assert_eq!(header[26..28], 8080_u16.to_be_bytes());
    });
}

/// Which target answers whom, asked several times.
async fn who_answers() -> BTreeMap<u8, u8> {
    let mut answers = BTreeMap::new();
    for caller in 1..=40 {
        let mut by = BTreeSet::new();
        for _ in 0..3 {
            let from = Ipv4Addr::new(127, 0, 2, caller);
            by.insert(Caller::from(from, 8080).await.unwrap().ask().await.unwrap());
        }
        assert_eq!(by.len(), 1, "caller {caller} was answered by {by:?}");
        answers.extend(by.into_iter().map(|by| (caller, by)));
    }
    answers
}

#[test]
fn a_caller_stays_with_its_target_while_others_come_and_go() {
    within(
        "roles::a_caller_stays_with_its_target_while_others_come_and_go",
        async {
            let _targets = (Target::start(1), Target::start(2), Target::start(3));
            let web = |targets| Listener {
                sticky: true,
                ..role("web", 8080, targets)
            };
            told(&balance(&[web(&[1, 2, 3])])).await;
            let before = who_answers().await;
            let used: BTreeSet<_> = before.values().copied().collect();
            assert_eq!(used.len(), 3, "all are used: {before:?}");
            told(&balance(&[web(&[1, 3])])).await;
            let after = who_answers().await;
            for (caller, by) in &before {
                assert!(
                    *by == 2 || after[caller] == *by,
                    "caller {caller} was moved"
                );
            }
        },
    );
}

#[test]
fn every_load_balancer_shows_that_it_lives_and_its_figures_and_no_more() {
    within(
        "roles::every_load_balancer_shows_that_it_lives_and_its_figures_and_no_more",
        async {
            let _one = Target::start(1);
            told(&balance(&[role("web", 8080, &[1])])).await;
            let mut word = String::new();
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, HEALTH_PORT))
                .await
                .unwrap();
            stream.read_to_string(&mut word).await.unwrap();
            assert_eq!(word, "ok\n");
            let figures = page("stats/prometheus").await;
            assert!(
                figures.contains(r#"envoy_cluster_membership_healthy{envoy_cluster_name="web"} 1"#)
            );
            for (method, path) in [
                ("POST", "quitquitquit"),
                ("POST", "stats"),
                ("GET", "config_dump"),
            ] {
                let url = format!("http://{ADDRESS}:{ADMIN_PORT}/{path}");
                let asked = Command::new("curl")
                    .args([
                        "-s",
                        "-o",
                        "/dev/null",
                        "-w",
                        "%{http_code}",
                        "-X",
                        method,
                        &url,
                    ])
                    .output();
                assert_eq!(asked.await.unwrap().stdout, b"404", "{method} {path}");
            }
            assert_eq!(figure("cluster.web.membership_healthy").await, 1);
        },
    );
}
