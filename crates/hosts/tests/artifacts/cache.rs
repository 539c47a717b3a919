//! The cache: fetched once, from the first source that has it, and healed when it is damaged.

use crate::web::{Request, Server, give};
use crate::{bytes, directory, index_of, known, name, patient, put, tree};
use hosts::artifacts::{Artifact, Cache, Progress, quiet};
use hosts::error::Kind;
use std::sync::Mutex;

const NAME: &str = "tool/1.0/linux-amd64/tool";

#[tokio::test]
async fn a_mirror_comes_first_and_what_is_here_is_not_fetched_again() {
    let home = tempfile::tempdir().unwrap();
    let content = bytes(1, 3_000_000);
    let mirror = home.path().join("mirror");
    put(&mirror, NAME, &content);
    let upstream = Server::of(&[(NAME, &content)]);
    let cache = Cache::open(&home.path().join("cache")).unwrap();
    let artifact = known(NAME, &content);
    let sources = [directory(&mirror), upstream.source()];
    let handle = cache.fetch(&sources, &artifact, &quiet).await.unwrap();
    assert_eq!(std::fs::read(handle.path()).unwrap(), content);
    assert_eq!(handle.size(), 3_000_000);
    // Without any source: it is here.
    let again = cache.fetch(&[], &artifact, &quiet).await.unwrap();
    assert_eq!(again.path(), handle.path());
    assert_eq!(upstream.asked(), []);
    let digest = handle.sha256().to_string();
    let place = format!("sha256/{}/{}", &digest[..2], &digest[2..]);
    assert_eq!(tree(&home.path().join("cache")), [place]);
}

#[tokio::test]
async fn upstream_gives_what_the_mirror_has_not_or_has_wrong() {
    let home = tempfile::tempdir().unwrap();
    let content = bytes(2, 2_500_000);
    let (empty, wrong, short) = ("empty", "wrong", "short");
    std::fs::create_dir(home.path().join(empty)).unwrap();
    put(&home.path().join(wrong), NAME, &bytes(3, 2_500_000));
    put(&home.path().join(short), NAME, &content[..2_000_000]);
    let upstream = Server::of(&[(NAME, &content)]);
    let mut sources = vec![home.path().join("unmounted"), home.path().join(empty)];
    sources.extend([home.path().join(wrong), home.path().join(short)]);
    let mut sources: Vec<_> = sources.iter().map(|path| directory(path)).collect();
    sources.push(upstream.source());
    let cache = Cache::open(&home.path().join("cache")).unwrap();
    let passed = Mutex::new(Vec::new());
    let tell = |progress: Progress<'_>| {
        if let Progress::Passed(_, _, why) = progress {
            passed.lock().unwrap().push(why.to_owned());
        }
    };
    let artifact = known(NAME, &content);
    let handle = cache.fetch(&sources, &artifact, &tell).await.unwrap();
    assert_eq!(std::fs::read(handle.path()).unwrap(), content);
    let passed = passed.into_inner().unwrap();
    let expected = [
        "no such directory",
        "no such file",
        "SHA-256 is",
        "2000000 bytes",
    ];
    assert_eq!(passed.len(), expected.len(), "{passed:?}");
    for (told, part) in passed.iter().zip(expected) {
        assert!(told.contains(part), "{told}");
    }
}

#[tokio::test]
async fn nobody_having_it_is_told_with_everybody_who_was_asked() {
    let home = tempfile::tempdir().unwrap();
    let cache = Cache::open(&home.path().join("cache")).unwrap();
    let upstream = Server::of(&[]);
    let sources = [directory(home.path()), upstream.source()];
    for artifact in [known(NAME, b"x"), Artifact::named(name("unheard/of"))] {
        let error = cache.fetch(&sources, &artifact, &quiet).await.unwrap_err();
        assert_eq!(error.kind, Kind::NoArtifact);
        for source in &sources {
            assert!(error.to_string().contains(&source.to_string()), "{error}");
        }
    }
    let error = cache
        .fetch(&[], &known(NAME, b"x"), &quiet)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::NoArtifact);
}

#[tokio::test]
async fn a_wrong_checksum_names_the_file_and_both_digests() {
    let home = tempfile::tempdir().unwrap();
    put(home.path(), NAME, b"evil");
    let cache = Cache::open(&home.path().join("cache")).unwrap();
    let mut artifact = known(NAME, b"good");
    let sources = [directory(home.path())];
    let error = cache.fetch(&sources, &artifact, &quiet).await.unwrap_err();
    assert_eq!(error.kind, Kind::WrongChecksum);
    let told = error.to_string();
    let both = [known("x", b"evil"), known("x", b"good")];
    let mut parts = both
        .map(|artifact| artifact.sha256.unwrap().to_string())
        .to_vec();
    parts.extend([
        NAME.to_owned(),
        sources[0].to_string(),
        "ARTIFACT-001".to_owned(),
    ]);
    for part in parts {
        assert!(told.contains(&part), "{told}");
    }
    artifact.size = Some(5);
    let error = cache.fetch(&sources, &artifact, &quiet).await.unwrap_err();
    assert!(
        error.to_string().contains("it has 4 bytes, and 5"),
        "{error}"
    );
    // And the next attempt finds no trace of it.
    put(home.path(), NAME, b"good");
    artifact.size = Some(4);
    cache.fetch(&sources, &artifact, &quiet).await.unwrap();
}

#[tokio::test]
async fn the_index_of_a_mirror_vouches_for_what_we_do_not_know() {
    let home = tempfile::tempdir().unwrap();
    let cache = Cache::open(&home.path().join("cache")).unwrap();
    let artifact = Artifact::named(name("deb/x_1.0_all.deb"));
    let text = index_of(&[("deb/x_1.0_all.deb", b"package")]);
    {
        let files: [(&str, &[u8]); 2] = [
            ("index.json", text.as_bytes()),
            ("deb/x_1.0_all.deb", b"package"),
        ];
        let mirror = Server::of(&files);
        let sources = [directory(home.path()), mirror.source()];
        let handle = cache.fetch(&sources, &artifact, &quiet).await.unwrap();
        assert_eq!(handle.size(), 7);
    }
    // A mirror that is away cannot take away what is here.
    let away = crate::nobody();
    let handle = cache
        .fetch(std::slice::from_ref(&away), &artifact, &quiet)
        .await
        .unwrap();
    assert_eq!(std::fs::read(handle.path()).unwrap(), b"package");
    // But one that says it is something else now is believed.
    put(
        home.path(),
        "index.json",
        index_of(&[("deb/x_1.0_all.deb", b"newer")]).as_bytes(),
    );
    put(home.path(), "deb/x_1.0_all.deb", b"newer");
    let sources = [directory(home.path()), away];
    let handle = cache.fetch(&sources, &artifact, &quiet).await.unwrap();
    assert_eq!(std::fs::read(handle.path()).unwrap(), b"newer");
}

#[tokio::test]
async fn a_damaged_file_is_removed_and_fetched_again() {
    let home = tempfile::tempdir().unwrap();
    let content = bytes(4, 100_000);
    let upstream = Server::of(&[(NAME, &content)]);
    let sources = [upstream.source()];
    let artifact = known(NAME, &content);
    let cached = home.path().join("cache");
    let path = {
        let cache = Cache::open(&cached).unwrap();
        let handle = cache.fetch(&sources, &artifact, &quiet).await.unwrap();
        handle.path().to_owned()
    };
    let mut damaged = content.clone();
    damaged[50_000] ^= 1;
    for bad in [&damaged[..], &content[..99_999], b""] {
        std::fs::write(&path, bad).unwrap();
        let cache = Cache::open(&cached).unwrap();
        let error = cache.fetch(&[], &artifact, &quiet).await.unwrap_err();
        assert_eq!(error.kind, Kind::NoArtifact);
        let handle = cache.fetch(&sources, &artifact, &quiet).await.unwrap();
        assert_eq!(std::fs::read(handle.path()).unwrap(), content);
    }
    assert_eq!(upstream.asked().len(), 4);
    // Also in a process that had seen it whole.
    let cache = Cache::open(&cached).unwrap();
    drop(cache.fetch(&[], &artifact, &quiet).await.unwrap());
    std::fs::write(&path, &damaged[..60_000]).unwrap();
    drop(cache.fetch(&sources, &artifact, &quiet).await.unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), content);
}

#[tokio::test]
async fn a_part_is_gone_on_with_and_a_damaged_part_is_begun_anew() {
    let home = tempfile::tempdir().unwrap();
    let content = bytes(5, 3_000_000);
    let artifact = known(NAME, &content);
    let digest = artifact.sha256.unwrap().to_string();
    let cached = home.path().join("cache");
    let part = cached.join("parts").join(&digest);
    let whole = |request: &Request, stream: &mut std::net::TcpStream, content: &[u8]| {
        let request = Request {
            from: 0,
            ..request.clone()
        };
        give(&request, stream, content, usize::MAX);
    };
    let parts = Server::of(&[(NAME, &content)]);
    let deaf = Server::start({
        let content = content.clone();
        move |request, stream| whole(request, stream, &content)
    });
    let mut longer = content.clone();
    longer.push(0);
    let mut rotten = content[..1_000_000].to_vec();
    rotten[7] ^= 1;
    let parts_from = |server: &Server| -> Vec<usize> {
        server.asked().iter().map(|request| request.from).collect()
    };
    for (left, server, from) in [
        (&content[..1_000_000], &parts, vec![1_000_000]),
        (&content[..1_000_000], &deaf, vec![1_000_000]),
        (&rotten[..], &parts, vec![1_000_000, 0]),
        (&longer[..], &parts, vec![0]),
        (&content[..], &parts, vec![]),
    ] {
        let cache = Cache::with_limits(&cached, patient()).unwrap();
        put(&cached.join("parts"), &digest, left);
        let before = server.asked().len();
        let sources = [server.source()];
        let handle = cache.fetch(&sources, &artifact, &quiet).await.unwrap();
        assert_eq!(std::fs::read(handle.path()).unwrap(), content);
        assert_eq!(parts_from(server)[before..], from);
        assert!(!part.exists());
        std::fs::remove_file(handle.path()).unwrap();
    }
    // From a directory too.
    put(home.path(), NAME, &content);
    put(&cached.join("parts"), &digest, &rotten);
    let cache = Cache::open(&cached).unwrap();
    let sources = [directory(home.path())];
    drop(cache.fetch(&sources, &artifact, &quiet).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_want_the_same_fetch_it_once() {
    let home = tempfile::tempdir().unwrap();
    let content = bytes(6, 2_000_000);
    let upstream = Server::of(&[(NAME, &content)]);
    let artifact = known(NAME, &content);
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..4 {
        // Each cache is as another process would have it.
        let cache = Cache::open(&home.path().join("cache")).unwrap();
        for _ in 0..4 {
            let (cache, artifact) = (cache.clone(), artifact.clone());
            let sources = [upstream.source()];
            all.spawn(async move { cache.fetch(&sources, &artifact, &quiet).await });
        }
    }
    let handles = all.join_all().await;
    assert_eq!(handles.len(), 16);
    for handle in handles {
        assert_eq!(std::fs::read(handle.unwrap().path()).unwrap(), content);
    }
    assert_eq!(upstream.asked().len(), 1);
    assert_eq!(tree(&home.path().join("cache")).len(), 1);
}

#[tokio::test]
async fn what_nobody_lists_is_told_from_what_cannot_be_had() {
    let home = tempfile::tempdir().unwrap();
    let mirror = home.path().join("mirror");
    put(&mirror, "a/b", b"content");
    let listed = index_of(&[("a/b", b"content"), ("a/gone", b"was here")]);
    put(&mirror, "index.json", listed.as_bytes());
    let cache = Cache::open(&home.path().join("cache")).unwrap();
    let sources = [directory(&mirror)];
    let ask = |sources, text| cache.fetch_listed(sources, name(text), &quiet);
    let handle = ask(&sources, "a/b").await.unwrap().unwrap();
    assert_eq!(std::fs::read(handle.path()).unwrap(), b"content");
    assert!(ask(&sources, "a/c").await.unwrap().is_none());
    assert!(ask(&[], "a/b").await.unwrap().is_none());
    let gone = ask(&sources, "a/gone").await.unwrap_err();
    assert_eq!(gone.kind, Kind::NoArtifact);
    // Who cannot be asked may list it: that is no answer.
    let away = [crate::nobody()];
    let error = ask(&away, "a/c").await.unwrap_err();
    assert_eq!(error.kind, Kind::SourceAway);
    assert!(ask(&away, "a/b").await.unwrap().is_some());
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_says_so() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Cache::open(&file).unwrap_err();
    assert_eq!(error.kind, Kind::CacheBroken);
    let cached = home.path().join("cache");
    let cache = Cache::open(&cached).unwrap();
    std::fs::remove_dir(cached.join("parts")).unwrap();
    std::fs::write(cached.join("parts"), "in the way").unwrap();
    put(home.path(), NAME, b"x");
    let sources = [directory(home.path())];
    let error = cache
        .fetch(&sources, &known(NAME, b"x"), &quiet)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::CacheBroken);
}
