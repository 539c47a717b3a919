//! Mirrors: made, checked, listed, and used as the source of another.

use crate::web::{Server, give};
use crate::{bytes, directory, index_of, name, patient, put, tree};
use hosts::artifacts::mirror::{self, Wish};
use hosts::artifacts::{Patience, quiet};
use hosts::error::Kind;
use std::path::Path;

fn wishes(texts: &[&str]) -> Vec<Wish> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn patience() -> Patience {
    patient().patience
}

/// A directory of files that somebody has made a mirror of.
async fn filled(at: &Path) {
    put(at, "deb/a_1_all.deb", b"aaa");
    put(at, "deb/b_1_all.deb", b"bb");
    put(at, "tool", &bytes(1, 2_000_000));
    put(at, ".git/config", b"hidden");
    let found = mirror::index(at, &quiet).await.unwrap();
    assert_eq!((found.index.len(), found.others.len()), (3, 0));
}

#[tokio::test]
async fn a_mirror_is_made_from_another_and_is_as_good() {
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (home.path().join("first"), home.path().join("second"));
    filled(&first).await;
    let sources = [directory(&first)];
    let all = wishes(&["deb/", "tool", "deb/a_1_all.deb"]);
    let made = mirror::create(&second, &sources, &all, patience(), &quiet).await;
    let made = made.unwrap();
    assert_eq!(
        (made.added.len(), made.kept.len(), made.failed.len()),
        (3, 0, 0)
    );
    let found = mirror::verify(&second, &quiet).await.unwrap();
    assert!(found.wrong.is_empty() && found.others.is_empty());
    let listed = mirror::list(&directory(&second), patience()).await.unwrap();
    assert_eq!(listed, mirror::list(&sources[0], patience()).await.unwrap());
    assert_eq!(
        tree(&second),
        ["deb/a_1_all.deb", "deb/b_1_all.deb", "index.json", "tool"]
    );
    // Once more changes nothing.
    let before = std::fs::metadata(second.join("tool"))
        .unwrap()
        .modified()
        .unwrap();
    let made = mirror::create(&second, &sources, &all, patience(), &quiet)
        .await
        .unwrap();
    assert_eq!((made.added.len(), made.kept.len()), (0, 3));
    let after = std::fs::metadata(second.join("tool"))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(before, after);
    // It can also be added to.
    put(&first, "more", b"more");
    mirror::index(&first, &quiet).await.unwrap();
    let made = mirror::create(&second, &sources, &wishes(&["more"]), patience(), &quiet).await;
    assert_eq!(made.unwrap().added.len(), 1);
    assert_eq!(
        mirror::list(&directory(&second), patience())
            .await
            .unwrap()
            .len(),
        4
    );
}

#[tokio::test]
async fn what_is_not_as_listed_is_found_and_mended() {
    let home = tempfile::tempdir().unwrap();
    let (good, bad) = (home.path().join("good"), home.path().join("bad"));
    filled(&good).await;
    filled(&bad).await;
    put(&bad, "deb/a_1_all.deb", b"aab");
    put(&bad, "tool", b"short");
    std::fs::remove_file(bad.join("deb/b_1_all.deb")).unwrap();
    put(&bad, "stray", b"");
    put(&bad, "bad name", b"");
    let found = mirror::verify(&bad, &quiet).await.unwrap();
    let wrong: Vec<String> = found
        .wrong
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    let expected = [
        "a_1_all.deb: its SHA-256",
        "b_1_all.deb: there is no",
        "tool: its size is 5",
    ];
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    for (told, part) in wrong.iter().zip(expected) {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(found.others.len(), 2);
    let all = wishes(&["deb/", "tool"]);
    let made = mirror::create(&bad, &[directory(&good)], &all, patience(), &quiet).await;
    assert_eq!(made.unwrap().added.len(), 3);
    assert!(mirror::verify(&bad, &quiet).await.unwrap().wrong.is_empty());
}

#[tokio::test]
async fn what_cannot_be_had_keeps_nothing_else_away() {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    filled(&from).await;
    let sources = [directory(&from)];
    let all = wishes(&["nobody/has/it", "tool"]);
    let made = mirror::create(&to, &sources, &all, patience(), &quiet)
        .await
        .unwrap();
    assert_eq!(made.added.len(), 1);
    let [(failed, error)] = made.failed.try_into().unwrap();
    assert_eq!(
        (failed, error.kind),
        (name("nobody/has/it"), Kind::NoArtifact)
    );
    assert!(mirror::verify(&to, &quiet).await.unwrap().wrong.is_empty());
    let nothing = wishes(&["nobody/"]);
    let error = mirror::create(&to, &sources, &nothing, patience(), &quiet).await;
    assert_eq!(error.unwrap_err().kind, Kind::NoArtifact);
}

#[tokio::test]
async fn a_mirror_whose_making_broke_off_is_gone_on_with() {
    let home = tempfile::tempdir().unwrap();
    let to = home.path().join("to");
    let content = bytes(7, 4_000_000);
    let text = index_of(&[("tool", &content)]);
    let all = wishes(&["tool"]);
    let (sent, told) = std::sync::mpsc::channel();
    let stuck = Server::start({
        let (content, text) = (content.clone(), text.clone());
        move |request, stream| {
            if request.path == "index.json" {
                give(request, stream, text.as_bytes(), usize::MAX);
            } else {
                give(request, stream, &content, 3_000_000);
                sent.send(()).unwrap();
                crate::web::hang(stream);
            }
        }
    });
    let sources = [stuck.source()];
    // Dropped, as by Ctrl-C, when most of it has come.
    let part = |length: u64| {
        let parts = std::fs::read_dir(to.join(".parts")).into_iter().flatten();
        let mut sizes = parts.map(|entry| entry.unwrap().metadata().unwrap().len());
        sizes.any(|size| size >= length)
    };
    let making = mirror::create(&to, &sources, &all, patience(), &quiet);
    let seen = async {
        let mut sent = false;
        while !sent || !part(1_000_000) {
            sent |= told.try_recv().is_ok();
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        made = making => panic!("{made:?}"),
        () = seen => {}
    }
    assert!(!to.join("tool").exists() && !to.join("index.json").exists());
    let good = Server::of(&[("index.json", text.as_bytes()), ("tool", &content)]);
    let made = mirror::create(&to, &[good.source()], &all, patience(), &quiet).await;
    assert_eq!(made.unwrap().added.len(), 1);
    assert!(good.asked().iter().any(|request| request.from >= 1_000_000));
    assert_eq!(tree(&to), ["index.json", "tool"]);
    assert_eq!(std::fs::read(to.join("tool")).unwrap(), content);
}

#[tokio::test]
async fn a_directory_without_an_index_is_no_mirror() {
    let home = tempfile::tempdir().unwrap();
    let error = mirror::verify(home.path(), &quiet).await.unwrap_err();
    assert_eq!(error.kind, Kind::BadIndex);
    let error = mirror::list(&directory(home.path()), patience())
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::BadIndex);
    let error = mirror::list(&directory(Path::new("/nowhere")), patience()).await;
    assert_eq!(error.unwrap_err().kind, Kind::SourceAway);
}

#[tokio::test]
async fn a_file_that_hosts_would_refuse_is_told() {
    let home = tempfile::tempdir().unwrap();
    let envoy = hosts::artifacts::envoy(hosts::artifacts::Platform::Amd64);
    put(home.path(), &envoy, b"another build");
    let found = mirror::index(home.path(), &quiet).await.unwrap();
    assert_eq!(found.wrong.len(), 1);
    let found = mirror::verify(home.path(), &quiet).await.unwrap();
    let [(wrong, why)] = found.wrong.try_into().unwrap();
    assert_eq!(wrong.as_str(), envoy);
    assert!(why.contains("was expected"), "{why}");
}
