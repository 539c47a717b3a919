//! The API of a Kubernetes behind a load balancer: whoever is not ready gets no callers, and keeps none.

use crate::host::{balance, healthy_at, role, target, told, until};
use crate::traffic::{Caller, answer, ask_once};
use crate::world::within;
use model::balancer::Listener;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Where API servers listen.
const PORT: u16 = 6443;

/// What somebody sends first who speaks TLS.
const HANDSHAKE: u8 = 0x16;

/// An API server in the least that is one: by TLS it says whether it is ready, and whoever else
/// calls is answered as by any target.
struct Api {
    /// What it answers who asks whether it is ready.
    status: Arc<AtomicU16>,
    _running: JoinSet<()>,
}

impl Api {
    async fn start(number: u8) -> Self {
        let listener = TcpListener::bind((target(number), PORT)).await.unwrap();
        let status = Arc::new(AtomicU16::new(200));
        let (says, acceptor) = (Arc::clone(&status), acceptor());
        let mut running = JoinSet::new();
        running.spawn(async move {
            let mut callers = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (says, acceptor) = (Arc::clone(&says), acceptor.clone());
                callers.spawn(async move {
                    let mut first = [0];
                    match stream.peek(&mut first).await {
                        Ok(1) if first[0] == HANDSHAKE => {
                            drop(says_whether_ready(&acceptor, stream, &says).await);
                        }
                        // A header of the PROXY protocol is nothing that it understands.
                        Ok(1) if first[0] != b'\r' => answer(number, stream).await,
                        Ok(_) | Err(_) => {}
                    }
                });
            }
        });
        Self {
            status,
            _running: running,
        }
    }

    fn says(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }
}

fn acceptor() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["api".to_owned()]).unwrap();
    let key = made.signing_key.serialize_der().try_into().unwrap();
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key);
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

async fn says_whether_ready(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    status: &AtomicU16,
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut asked = Vec::new();
    loop {
        if stream.read_buf(&mut asked).await? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&asked).into_owned();
        if !text.ends_with("\r\n\r\n") {
            continue;
        }
        let path = text.split(' ').nth(1);
        let status = match path {
            Some("/readyz") => status.load(Ordering::Relaxed),
            Some(_) | None => 404,
        };
        let head = format!("HTTP/1.1 {status} as told\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        asked.clear();
    }
}

fn api(targets: &[u8]) -> Listener {
    Listener {
        target_port: PORT,
        // It would not understand who is announced to it.
        proxy_protocol: true,
        ..role("api", 8080, targets)
    }
}

async fn answered_by() -> BTreeSet<u8> {
    let mut by = BTreeSet::new();
    for _ in 0..40 {
        by.insert(ask_once(8080).await.unwrap());
    }
    by
}

async fn until_ready(number: u8, ready: bool) {
    let what = format!("{number} is seen to be ready: {ready}");
    let seen = |page: &str| healthy_at("api", number, PORT, page) == ready;
    until(&what, "clusters", seen).await;
}

/// Connections that stay, one with each of two API servers.
async fn connected() -> [Caller; 2] {
    let mut callers = [None, None];
    while callers.iter().any(Option::is_none) {
        let mut caller = Caller::new(8080).await.unwrap();
        let by = caller.ask().await.unwrap();
        callers[usize::from(by) - 1] = Some(caller);
    }
    callers.map(Option::unwrap)
}

#[test]
fn an_api_server_that_is_not_ready_gets_no_callers() {
    within(
        "api::an_api_server_that_is_not_ready_gets_no_callers",
        async {
            let (one, other) = (Api::start(1).await, Api::start(2).await);
            told(&balance(&[api(&[1, 2])])).await;
            for number in [1, 2] {
                until_ready(number, true).await;
            }
            for status in [500, 403] {
                let [mut of_one, mut of_other] = connected().await;
                one.says(status);
                until_ready(1, false).await;
                assert_eq!(answered_by().await, BTreeSet::from([2]));
                of_one.ask().await.unwrap_err();
                assert_eq!(of_other.ask().await.unwrap(), 2);
                one.says(200);
                until_ready(1, true).await;
                assert_eq!(answered_by().await, BTreeSet::from([1, 2]));
                assert_eq!(of_other.ask().await.unwrap(), 2);
            }
            other.says(500);
            until_ready(2, false).await;
            assert_eq!(answered_by().await, BTreeSet::from([1]));
        },
    );
}
