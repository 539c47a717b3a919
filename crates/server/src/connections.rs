//! Connections: how many there may be, how long one may say nothing, and how they end.
//!
//! **Invariant:** whoever does not say what it wants, or does not take the answer, loses its
//! connection; nobody can keep others out by connecting and then being slow
//! (`tests/http/system.rs`).

mod hasty;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::serve::{Listener, ListenerExt as _};
use hasty::Hasty;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long a client may take to send the head of a request, or to begin the next one on a
/// connection that is kept: heads fit into a packet or two.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// How many connections there may be at once: twice as many as may follow events, so that
/// those never keep out a person. Further ones wait in the queue of the system.
const CONNECTIONS_MAX: usize = 4_096;

/// How many of them may come from one address: it can be a proxy for all, and still not take
/// every place.
const PER_PEER_MAX: usize = CONNECTIONS_MAX / 4 * 3;

/// How long requests under way may take to end after the server was told to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a client may take nothing of an answer.
const TAKE_TIME_MAX: Duration = Duration::from_secs(30);

/// Serves until `stop` is cancelled; then what is under way gets a moment to end.
pub(crate) async fn serve_until(listener: TcpListener, router: Router, stop: &CancellationToken) {
    drained(serve(listener, router, stop), stop).await;
}

/// Waits for work that ends by itself when `stop` is cancelled, but not much longer than that.
pub(crate) async fn drained(work: impl Future<Output = ()>, stop: &CancellationToken) {
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN_TIME_MAX).await;
    };
    tokio::select! {
        () = work => {}
        () = late => {
            tracing::warn!(waited_s = DRAIN_TIME_MAX.as_secs(), "requests under way were cut off at the end");
        }
    }
}

/// Serves until `stop` is cancelled; then answers what is under way and ends.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: &CancellationToken) {
    // Answers are small and wanted now: waiting to fill a packet only adds latency.
    let mut listener = listener.tap_io(|stream| {
        if let Err(cause) = stream.set_nodelay(true) {
            tracing::debug!(%cause, "could not switch off the delay of small packets");
        }
    });
    let mut connections = JoinSet::new();
    let mut peers: HashMap<IpAddr, usize> = HashMap::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(ended) = connections.join_next() => part(ended, &mut peers),
            (stream, peer) = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let open = peers.entry(peer.ip()).or_default();
                if *open >= PER_PEER_MAX {
                    // Dropping it closes it; the others are served.
                    continue;
                }
                *open += 1;
                let (router, stop) = (router.clone(), stop.clone());
                connections.spawn(async move {
                    converse(stream, peer, router, stop).await;
                    peer.ip()
                });
            }
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        part(ended, &mut peers);
    }
}

/// Answers the requests of one connection.
async fn converse(stream: TcpStream, peer: SocketAddr, router: Router, stop: CancellationToken) {
    // One protocol only: to guess which it is would mean to wait for a first word.
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.call(request)
    });
    let serving =
        builder.serve_connection(TokioIo::new(Hasty::new(stream, TAKE_TIME_MAX)), service);
    let mut connection = std::pin::pin!(serving.with_upgrades());
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(cause) = ended {
        tracing::debug!(%cause, "a connection ended before its time");
    }
}

/// Counts a connection out. It never breaks down by itself: what panics in a handler is caught
/// there.
fn part(ended: Result<IpAddr, tokio::task::JoinError>, peers: &mut HashMap<IpAddr, usize>) {
    match ended {
        Ok(peer) => {
            if let Some(open) = peers.get_mut(&peer) {
                *open = open.saturating_sub(1);
                if *open == 0 {
                    peers.remove(&peer);
                }
            }
        }
        Err(cause) => tracing::error!(%cause, "a connection broke down"),
    }
}
