//! A process that fetches is killed in the middle, thirty times; the next one goes on.
//!
//! The process is this program again, told by a variable to be the child. The server decides how
//! far it comes before it is killed, so the moments do not depend on how fast the machine is.

use crate::web::{Request, Server, hang, head, send};
use crate::{PATIENCE, bytes, known, patient, tree};
use hosts::artifacts::{Cache, Digest, quiet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NAME: &str = "tool";
const LENGTH: usize = 4_000_000;
const KILLS: usize = 30;
const SEED: u64 = 9;

/// Tells the child where the cache is, and where the server.
const TOLD: &str = "SLIPWAY_TEST_FETCH";

#[tokio::test]
async fn child() {
    let Ok(told) = std::env::var(TOLD) else {
        return;
    };
    let (cache, source) = told.split_once(' ').unwrap();
    let cache = Cache::with_limits(Path::new(cache), patient()).unwrap();
    let artifact = known(NAME, &bytes(SEED, LENGTH));
    let sources = [source.parse().unwrap()];
    drop(cache.fetch(&sources, &artifact, &quiet).await.unwrap());
}

fn start(cache: &Path, server: &Server) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child"])
        .env(TOLD, format!("{} {}", cache.display(), server.source()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A server that gives so many bytes, says so, and hangs.
fn stingy(content: Vec<u8>, most: Arc<AtomicUsize>) -> (Server, Receiver<Request>) {
    let (sent, told) = channel();
    let sent = Mutex::new(sent);
    let server = Server::start(move |request, stream| {
        send(stream, &head(request, content.len()));
        let rest = &content[request.from.min(content.len())..];
        let most = rest.len().min(most.load(Ordering::SeqCst));
        drop(stream.write_all(&rest[..most]));
        drop(sent.lock().unwrap().send(request.clone()));
        hang(stream);
    });
    (server, told)
}

/// Everything in a cache is whole, but for parts.
fn all_whole(cache: &Path) {
    for file in tree(cache) {
        let Some(digest) = file.strip_prefix("sha256/") else {
            assert!(file.starts_with("parts/"), "{file}");
            continue;
        };
        let digest = digest.replace('/', "");
        let content = std::fs::read(cache.join(&file)).unwrap();
        assert_eq!(Digest::of(&content).to_string(), digest);
    }
}

#[test]
fn killed_at_any_moment_the_next_one_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let cache = home.path();
    let content = bytes(SEED, LENGTH);
    let digest = Digest::of(&content).to_string();
    let place = cache.join("sha256").join(&digest[..2]).join(&digest[2..]);
    let most = Arc::new(AtomicUsize::new(0));
    let (server, told) = stingy(content, Arc::clone(&most));
    let part = cache.join("parts").join(&digest);
    let length = || std::fs::metadata(&part).map_or(0, |metadata| metadata.len());
    let mut went_on = 0;
    for round in 0..KILLS {
        // Some die at once, some when much is written, some after the last byte.
        most.store(
            [0, 1_300_000, 5, 2_500_000, LENGTH][round % 5],
            Ordering::SeqCst,
        );
        let before = length();
        let mut child = start(cache, &server);
        // One that finds all of it, whole or as a part, asks nobody and ends by itself.
        let began = Instant::now();
        let asked = loop {
            if let Ok(request) = told.recv_timeout(Duration::from_millis(5)) {
                break Some(request);
            }
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                break None;
            }
            assert!(began.elapsed() < PATIENCE, "the child does nothing");
        };
        if let Some(request) = asked {
            went_on += usize::from(request.from > 0);
            if round % 2 == 1 {
                let written = || length() > before || place.exists();
                let enough = most.load(Ordering::SeqCst) > 1_100_000;
                while enough && !written() && child.try_wait().unwrap().is_none() {
                    assert!(began.elapsed() < PATIENCE, "the child writes nothing");
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        all_whole(cache);
        if place.exists() {
            std::fs::remove_file(&place).unwrap();
        }
    }
    assert!(went_on > 0, "no part was ever gone on with");
    most.store(usize::MAX, Ordering::SeqCst);
    // The content length is told, so the child need not wait for the server to hang up.
    let ended = start(cache, &server).wait().unwrap();
    assert!(ended.success());
    all_whole(cache);
    assert!(place.exists());
    assert!(!part.exists());
}
