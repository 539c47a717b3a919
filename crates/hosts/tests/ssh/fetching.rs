//! Files of hosts that come whole, or with a reason why not.

use std::fs;
use std::future::pending;
use std::io::{self, Write as _};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hosts::artifacts::Digest;
use hosts::error::{Error, Kind};
use hosts::ssh::{Connections, Door, Pull, Sink};
use tokio::io::AsyncWrite;

use crate::proxy::Proxy;
use crate::server::{Ring, Server, possible, processes, program, soon};

/// Who fetches.
struct Stage {
    connections: Connections,
    ring: Ring,
    door: Door,
}

impl Stage {
    fn at(door: Door) -> Self {
        Self {
            connections: Connections::default(),
            ring: Ring::new(),
            door,
        }
    }

    async fn fetch(&self, path: &Path, into: Sink<'_>) -> Result<(u64, Digest), Error> {
        let pull = Pull {
            path: path.to_str().unwrap(),
            size_max: 1 << 30,
            limit: Duration::from_mins(5),
        };
        self.fetch_as(pull, into).await
    }

    async fn fetch_as(&self, pull: Pull<'_>, into: Sink<'_>) -> Result<(u64, Digest), Error> {
        let fetching =
            self.connections
                .fetch(&self.door, &self.ring, (pull, into), &|_| {}, pending());
        fetching.await
    }
}

/// Does something with each part that comes, and keeps their number.
struct Tap<F> {
    come: usize,
    each: F,
}

impl<F: FnMut(usize) + Unpin> AsyncWrite for Tap<F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.come += buf.len();
        let come = self.come;
        (self.each)(come);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A file whose bytes look like anything, also like words of ours.
fn written(path: &Path, megabytes: usize) -> Vec<u8> {
    let mut content = b"::slipway failed HOST-001 no\n::slipway ready\n".to_vec();
    let mut word = 1_u32;
    while content.len() < megabytes * 1_000_000 {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        content.extend_from_slice(&word.to_le_bytes());
    }
    fs::File::create(path).unwrap().write_all(&content).unwrap();
    content
}

#[tokio::test]
async fn a_large_file_comes_as_it_is() {
    if !possible("a_large_file_comes_as_it_is") {
        return;
    }
    let server = Server::start();
    for user in ["root", "ada"] {
        let stage = Stage::at(server.door(user));
        for (name, megabytes) in [("it's large", 70), ("small", 0)] {
            let path = server.path(name);
            let content = written(&path, megabytes);
            let (mut come, begun) = (Vec::new(), Instant::now());
            let (size, digest) = stage.fetch(&path, &mut come).await.unwrap();
            println!("{size} bytes in {:?}", begun.elapsed());
            assert!(come == content, "{name}: {} bytes", come.len());
            assert_eq!(size, u64::try_from(come.len()).unwrap());
            assert_eq!(digest, Digest::of(&come));
        }
        let empty = server.path("empty");
        fs::write(&empty, "").unwrap();
        let told = stage.fetch(&empty, &mut Vec::new()).await.unwrap();
        assert_eq!(told, (0, Digest::of(b"")));
    }
}

#[tokio::test]
async fn what_is_no_file_or_too_large_is_told() {
    if !possible("what_is_no_file_or_too_large_is_told") {
        return;
    }
    let server = Server::start();
    let stage = Stage::at(server.door("root"));
    for name in ["missing", "full"] {
        let path = server.path(name);
        let error = stage.fetch(&path, &mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind, Kind::NoFile, "{error}");
        assert!(error.what.contains(path.to_str().unwrap()), "{error}");
    }
    let path = server.path("large");
    written(&path, 1);
    let pull = Pull {
        path: path.to_str().unwrap(),
        size_max: 999_999,
        limit: Duration::from_mins(5),
    };
    let mut come = Vec::new();
    let error = stage.fetch_as(pull, &mut come).await.unwrap_err();
    assert_eq!((error.kind, come.len()), (Kind::TooLarge, 0), "{error}");
}

#[tokio::test]
async fn a_file_that_changes_is_not_taken_for_whole() {
    if !possible("a_file_that_changes_is_not_taken_for_whole") {
        return;
    }
    let server = Server::start();
    let stage = Stage::at(server.door("root"));
    let path = server.path("changes");
    let changes: [fn(&Path); 3] = [
        |path| fs::write(path, "short").unwrap(),
        |path| {
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(b"more").unwrap();
        },
        |path| {
            let content = vec![1; usize::try_from(fs::metadata(path).unwrap().len()).unwrap()];
            fs::write(path, content).unwrap();
        },
    ];
    for change in changes {
        written(&path, 20);
        let mut done = false;
        let mut tap = Tap {
            come: 0,
            each: |come| {
                if come > 5_000_000 && !std::mem::replace(&mut done, true) {
                    change(&path);
                }
            },
        };
        let error = stage.fetch(&path, &mut tap).await.unwrap_err();
        assert_eq!(error.kind, Kind::Changing, "{error}");
    }
}

#[tokio::test]
async fn a_wire_that_is_cut_and_a_reader_that_gives_up_leave_nothing_running() {
    if !possible("a_wire_that_is_cut_and_a_reader_that_gives_up_leave_nothing_running") {
        return;
    }
    let server = Server::start();
    let (proxy, door) = Proxy::before(&server).await;
    let stage = Stage::at(door);
    let path = server.path("large");
    written(&path, 20);
    let mut tap = Tap {
        come: 0,
        each: |come| {
            if come > 5_000_000 {
                proxy.cut();
            }
        },
    };
    let error = stage.fetch(&path, &mut tap).await.unwrap_err();
    assert_eq!(error.kind, Kind::Lost, "{error}");
    // One that nobody reads any more; what shares its connection goes on meanwhile.
    let (mut silent, _unread) = tokio::io::duplex(64);
    let fetching = stage.fetch(&path, &mut silent);
    let other = async {
        let has = || !held(&path).is_empty();
        soon("it is read", has).await;
        let program = program("true");
        for _ in 0..20 {
            let (connections, ring) = (&stage.connections, &stage.ring);
            let ran = connections.run(&stage.door, ring, &program, &|_| {}, pending());
            ran.await.unwrap();
        }
    };
    tokio::select! {
        ended = fetching => panic!("{ended:?}"),
        () = other => {}
    }
    soon("nobody holds it", || held(&path).is_empty()).await;
}

/// The processes that have a file open.
fn held(path: &Path) -> Vec<u32> {
    processes(|pid| fs::read_link(format!("/proc/{pid}/fd/4")).is_ok_and(|open| open == path))
}
