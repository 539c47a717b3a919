//! A cache keeps to its size: what was not used for longest goes first, what is read stays.

use crate::{bytes, directory, known, patient, put, tree};
use hosts::artifacts::{Artifact, Cache, Handle, Limits, quiet};
use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

const EACH: usize = 100_000;

/// A cache with room for three of these, and where they come from.
struct Small {
    home: tempfile::TempDir,
    cache: Cache,
}

impl Small {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let limits = Limits {
            bytes: u64::try_from(3 * EACH + EACH / 2).unwrap(),
            ..patient()
        };
        let cache = Cache::with_limits(&home.path().join("cache"), limits).unwrap();
        Self { home, cache }
    }

    fn artifact(&self, seed: u64) -> Artifact {
        let name = format!("n{seed}");
        let content = bytes(seed, EACH);
        put(self.home.path(), &name, &content);
        known(&name, &content)
    }

    async fn fetch(&self, seed: u64) -> Handle {
        let artifact = self.artifact(seed);
        let sources = [directory(self.home.path())];
        let handle = self.cache.fetch(&sources, &artifact, &quiet).await;
        handle.unwrap()
    }

    fn has(&self, seed: u64) -> bool {
        let digest = self.artifact(seed).sha256.unwrap().to_string();
        tree(&self.home.path().join("cache"))
            .iter()
            .any(|file| file.replace('/', "").contains(&digest))
    }
}

/// Makes a file look as if it was used so many hours ago.
fn age(path: &Path, hours: u64) {
    let then = SystemTime::now() - Duration::from_hours(hours);
    let times = FileTimes::new().set_accessed(then).set_modified(then);
    File::open(path).unwrap().set_times(times).unwrap();
}

#[tokio::test]
async fn what_was_not_used_for_longest_goes_first() {
    let small = Small::new();
    for (seed, hours) in [(1, 1), (2, 3), (3, 2)] {
        age(small.fetch(seed).await.path(), hours);
    }
    drop(small.fetch(4).await);
    assert!(!small.has(2));
    // Being asked for is being used.
    drop(small.fetch(3).await);
    drop(small.fetch(5).await);
    assert!(!small.has(1));
    assert!(small.has(3) && small.has(4) && small.has(5));
}

#[tokio::test]
async fn what_is_being_read_stays_even_when_it_is_too_much() {
    let small = Small::new();
    let mut held = Vec::new();
    for seed in 1..=5 {
        held.push(small.fetch(seed).await);
    }
    for handle in &held {
        assert!(handle.path().exists());
    }
    drop(held);
    drop(small.fetch(6).await);
    assert_eq!(tree(&small.home.path().join("cache")).len(), 3);
}

#[tokio::test]
async fn parts_that_nobody_goes_on_with_make_room() {
    let small = Small::new();
    let parts = small.home.path().join("cache/parts");
    for n in 0..3 {
        put(&parts, &format!("{n:064}"), &bytes(n, EACH));
        age(&parts.join(format!("{n:064}")), 100 + n);
    }
    drop(small.fetch(1).await);
    assert_eq!(tree(&parts).len(), 2);
    drop(small.fetch(2).await);
    drop(small.fetch(3).await);
    assert_eq!(tree(&parts).len(), 0);
}
