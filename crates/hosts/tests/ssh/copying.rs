//! Files that arrive whole or not at all.

use std::fs;
use std::future::pending;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use hosts::error::{Error, Kind};
use hosts::program::{Mark, Report};
use hosts::ssh::{Connections, Content, Door, Push};

use crate::proxy::Proxy;
use crate::server::{Ring, Server, possible, soon};

fn sha256(file: &Path) -> String {
    let told = std::process::Command::new("sha256sum").arg(file).output();
    let told = String::from_utf8(told.unwrap().stdout).unwrap();
    told[..64].to_owned()
}

async fn copy(
    connections: &Connections,
    door: &Door,
    ring: &Ring,
    (content, to, mode, sha256): (Content<'_>, &Path, u32, &str),
) -> Result<Report, Error> {
    let push = Push {
        content,
        path: to.to_str().unwrap(),
        mode,
        sha256,
        limit: Duration::from_mins(5),
    };
    connections.copy(door, ring, push, &|_| {}, pending()).await
}

fn left_beside(file: &Path) -> bool {
    fs::read_dir(file.parent().unwrap())
        .unwrap()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().contains("slipway-new"))
}

#[tokio::test]
async fn a_file_is_copied_once() {
    if !possible("a_file_is_copied_once") {
        return;
    }
    let server = Server::start();
    let from = server.path("from");
    fs::write(&from, "it's\0 binary \u{e4}\n").unwrap();
    let sum = sha256(&from);
    let (connections, ring) = (Connections::default(), Ring::new());
    for user in ["root", "ada"] {
        let door = server.door(user);
        let to = server.path(user).join("deep er/it's");
        let name = to.to_str().unwrap().to_owned();
        let push = |content, mode| copy(&connections, &door, &ring, (content, &to, mode, &sum));
        let report = push(Content::File(&from), 0o640).await.unwrap();
        assert_eq!(report.marks, [Mark::Changed(name.clone())]);
        assert_eq!(fs::read(&to).unwrap(), fs::read(&from).unwrap());
        let made = fs::metadata(&to).unwrap();
        assert_eq!((made.permissions().mode() & 0o7777, made.uid()), (0o640, 0));

        let report = push(Content::File(&from), 0o640).await.unwrap();
        assert_eq!(report.marks, [Mark::Unchanged(name.clone())]);
        assert_eq!(fs::metadata(&to).unwrap().ino(), made.ino());
        let report = push(Content::File(&from), 0o600).await.unwrap();
        assert_eq!(report.marks, [Mark::Changed(name.clone())]);
        let report = push(Content::File(&from), 0o600).await.unwrap();
        assert_eq!(report.changed(), 0);
        // What somebody broke is brought back.
        fs::write(&to, "broken").unwrap();
        let bytes = fs::read(&from).unwrap();
        let report = push(Content::Bytes(&bytes), 0o600).await.unwrap();
        assert_eq!(report.changed(), 1);
        assert_eq!(fs::read(&to).unwrap(), bytes);
        assert!(!left_beside(&to));
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_copied_leaves_the_old_one() {
    if !possible("a_file_that_cannot_be_copied_leaves_the_old_one") {
        return;
    }
    let server = Server::start();
    let (connections, ring) = (Connections::default(), Ring::new());
    let door = server.door("root");
    let push = |what| copy(&connections, &door, &ring, what);
    let to = server.path("to");
    fs::write(&to, "old").unwrap();
    let big = server.path("big");
    fs::write(&big, vec![7; 3_000_000]).unwrap();
    let sum = sha256(&big);

    let wrong = "0".repeat(64);
    let error = push((Content::File(&big), &to, 0o644, &wrong)).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, Kind::WrongChecksum, "{error}");
    assert!(error.what.contains(&sum), "{error}");
    let missing = server.path("missing");
    let error = push((Content::File(&missing), &to, 0o644, &sum)).await;
    assert_eq!(error.unwrap_err().kind, Kind::NoArtifact);
    soon("nothing is left beside", || !left_beside(&to)).await;
    assert_eq!(fs::read(&to).unwrap(), b"old");

    let full = server.path("full/file");
    let error = push((Content::File(&big), &full, 0o644, &sum)).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, Kind::DiskFull, "{error}");
    let readonly = server.path("readonly/file");
    let error = push((Content::File(&big), &readonly, 0o644, &sum)).await;
    assert_eq!(error.unwrap_err().kind, Kind::ReadOnly);
    let report = push((Content::File(&big), &to, 0o644, &sum)).await.unwrap();
    assert_eq!(report.changed(), 1);
    assert_eq!(sha256(&to), sum);
}

#[tokio::test]
async fn a_copy_that_is_cut_off_leaves_the_old_one() {
    if !possible("a_copy_that_is_cut_off_leaves_the_old_one") {
        return;
    }
    let server = Server::start();
    let (proxy, door) = Proxy::before(&server).await;
    let (connections, ring) = (Connections::default(), Ring::new());
    let (from, to) = (server.path("from"), server.path("to"));
    fs::write(&from, vec![7; 5_000_000]).unwrap();
    fs::write(&to, "old").unwrap();
    let sum = sha256(&from);
    for budget in [20_000, 3_000_000] {
        proxy.allow(budget);
        let what = (
            Content::File(from.as_path()),
            to.as_path(),
            0o644,
            sum.as_str(),
        );
        let error = copy(&connections, &door, &ring, what).await.unwrap_err();
        assert_eq!(error.kind, Kind::Lost, "{error}");
        soon("nothing is left beside", || !left_beside(&to)).await;
        assert_eq!(fs::read(&to).unwrap(), b"old");
    }
    proxy.allow(usize::MAX);
    let what = (
        Content::File(from.as_path()),
        to.as_path(),
        0o644,
        sum.as_str(),
    );
    copy(&connections, &door, &ring, what).await.unwrap();
    assert_eq!(sha256(&to), sum);
}

#[tokio::test]
async fn a_hundred_megabytes_are_copied() {
    if !possible("a_hundred_megabytes_are_copied") {
        return;
    }
    let server = Server::start();
    let (from, to) = (server.path("from"), server.path("to"));
    let mut file = fs::File::create(&from).unwrap();
    for number in 0..100_u8 {
        file.write_all(&vec![number; 1_000_000]).unwrap();
    }
    drop(file);
    let sum = sha256(&from);
    let (connections, ring) = (Connections::default(), Ring::new());
    for attempt in ["first", "again"] {
        let begun = Instant::now();
        let what = (
            Content::File(from.as_path()),
            to.as_path(),
            0o755,
            sum.as_str(),
        );
        let door = server.door("root");
        copy(&connections, &door, &ring, what).await.unwrap();
        println!("100 MB, {attempt}: {:?}", begun.elapsed());
    }
    assert_eq!(sha256(&to), sum);
}
