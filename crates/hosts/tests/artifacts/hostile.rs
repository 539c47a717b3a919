//! Web servers that hang, break off, send too much, or nonsense.

use crate::web::{Request, Server, give, hang, head, send};
use crate::{bytes, impatient, known, name, patient};
use hosts::artifacts::{Artifact, Cache, Handle, Limits, Progress, Source, mirror, quiet};
use hosts::error::{Error, Kind};
use std::io::Write as _;
use std::net::TcpStream;

const NAME: &str = "tool";

async fn fetch(limits: Limits, source: Source, artifact: &Artifact) -> Result<Handle, Error> {
    let home = tempfile::tempdir().unwrap();
    let cache = Cache::with_limits(home.path(), limits).unwrap();
    cache.fetch(&[source], artifact, &quiet).await
}

/// A server that answers in this way and what comes of asking it.
async fn refused(
    limits: Limits,
    artifact: &Artifact,
    answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static,
) -> Error {
    let server = Server::start(answer);
    fetch(limits, server.source(), artifact).await.unwrap_err()
}

#[tokio::test]
async fn a_server_that_says_nothing_is_away() {
    let content = bytes(1, 2_000_000);
    let artifact = known(NAME, &content);
    let silent = refused(impatient(), &artifact, |_, stream| hang(stream)).await;
    assert_eq!(silent.kind, Kind::SourceAway, "{silent}");
    assert!(silent.to_string().contains("in time"), "{silent}");
    // Its second answer brings nothing: it is not asked for ever.
    let midway = refused(impatient(), &artifact, move |request, stream| {
        if request.from == 0 {
            give(request, stream, &content, 1_500_000);
        } else {
            send(stream, &head(request, content.len()));
        }
        hang(stream);
    });
    let midway = midway.await;
    assert_eq!(midway.kind, Kind::SourceAway, "{midway}");
}

#[tokio::test]
async fn a_server_that_nobody_runs_is_away() {
    let artifact = known(NAME, b"x");
    let error = fetch(patient(), crate::nobody(), &artifact)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::SourceAway);
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn answers_that_break_off_are_gone_on_with() {
    let content = bytes(2, 5_000_000);
    let artifact = known(NAME, &content);
    let server = Server::start({
        let content = content.clone();
        move |request, stream| give(request, stream, &content, 700_000)
    });
    let home = tempfile::tempdir().unwrap();
    let cache = Cache::with_limits(home.path(), patient()).unwrap();
    let sources = [server.source()];
    let handle = cache.fetch(&sources, &artifact, &quiet).await.unwrap();
    assert_eq!(std::fs::read(handle.path()).unwrap(), content);
    let begun: Vec<usize> = server.asked().iter().map(|request| request.from).collect();
    assert_eq!(begun, (0..8).map(|n| n * 700_000).collect::<Vec<_>>());
    // One that gives a drop each time is given up.
    let drops = refused(patient(), &artifact, move |request, stream| {
        give(request, stream, &content, 1);
    });
    let drops = drops.await;
    assert_eq!(drops.kind, Kind::SourceAway);
    assert!(drops.to_string().contains("16 times"), "{drops}");
}

#[tokio::test]
async fn a_server_that_sends_too_much_is_not_listened_to() {
    fn endless(stream: &mut TcpStream) {
        send(
            stream,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        let piece = vec![b'x'; 0x1_0000];
        while stream
            .write_all(b"10000\r\n")
            .and_then(|()| stream.write_all(&piece))
            .and_then(|()| stream.write_all(b"\r\n"))
            .is_ok()
        {}
    }
    let artifact = known(NAME, &[b'x'; 1000]);
    let error = refused(patient(), &artifact, |_, stream| endless(stream)).await;
    assert_eq!(error.kind, Kind::WrongChecksum);
    assert!(
        error.to_string().contains("more than 1000 bytes"),
        "{error}"
    );
    // The same where an index should be.
    let unknown = Artifact::named(name(NAME));
    let error = refused(patient(), &unknown, |_, stream| endless(stream)).await;
    assert_eq!(error.kind, Kind::BadIndex);
    assert!(
        error.to_string().contains("more than 16777216 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn another_length_is_refused_before_it_is_read() {
    let artifact = known(NAME, b"four");
    let error = refused(patient(), &artifact, |request, stream| {
        send(stream, &head(request, 5));
        hang(stream);
    });
    let error = error.await;
    assert_eq!(error.kind, Kind::WrongChecksum);
    assert!(error.to_string().contains("5 bytes, and 4"), "{error}");
}

#[tokio::test]
async fn what_a_server_answers_decides_who_must_act() {
    let artifact = known(NAME, b"x");
    for (status, kind) in [
        ("404 Not Found", Kind::NoArtifact),
        ("403 Forbidden", Kind::NoArtifact),
        ("429 Too Many Requests", Kind::SourceAway),
        ("503 Service Unavailable", Kind::SourceAway),
        ("200 OK", Kind::WrongChecksum),
    ] {
        let error = refused(patient(), &artifact, move |_, stream| {
            send(
                stream,
                &format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"),
            );
        });
        assert_eq!(error.await.kind, kind, "{status}");
    }
    let garbage = refused(patient(), &artifact, |_, stream| {
        send(stream, "ssh-2.0\r\n\r\n");
    });
    assert_eq!(garbage.await.kind, Kind::SourceAway);
    let circle = refused(patient(), &artifact, |_, stream| {
        send(
            stream,
            "HTTP/1.1 302 Found\r\nlocation: /tool\r\ncontent-length: 0\r\n\r\n",
        );
    });
    assert_eq!(circle.await.kind, Kind::NoArtifact);
}

#[tokio::test]
async fn an_index_that_makes_no_sense_is_told_and_the_next_mirror_is_asked() {
    let content: &[u8] = b"content";
    let text = crate::index_of(&[(NAME, content)]);
    let garbage = Server::of(&[("index.json", b"<html>Welcome</html>"), (NAME, content)]);
    let good = Server::of(&[("index.json", text.as_bytes()), (NAME, content)]);
    let home = tempfile::tempdir().unwrap();
    let cache = Cache::with_limits(home.path(), patient()).unwrap();
    let unknown = Artifact::named(name(NAME));
    let tell: fn(Progress<'_>) = quiet;
    let alone = [garbage.source()];
    let error = cache.fetch(&alone, &unknown, &tell).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadIndex);
    assert!(error.to_string().contains("ARTIFACT-005"), "{error}");
    let both = [garbage.source(), good.source()];
    drop(cache.fetch(&both, &unknown, &tell).await.unwrap());
    let error = mirror::list(&garbage.source(), patient().patience).await;
    assert_eq!(error.unwrap_err().kind, Kind::BadIndex);
}
