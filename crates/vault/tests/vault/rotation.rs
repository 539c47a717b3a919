//! A new data key takes over while many write and read: nothing is lost, nothing is unreadable,
//! and the old keys are gone in the end.

use crate::{KEYS, clock, key_file, text};
use model::name::Name;
use model::sealed::{Owner, Place};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::Store;
use tokio::sync::watch;
use tokio::task::JoinSet;
use vault::{Changes, KeyConfig, KeySource, Vault};

/// Those who set and read values, each values of their own.
const WRITERS: usize = 12;

/// Values of each, so that a rotation takes many transactions.
const SECRETS: usize = 10;

/// Rotations that are carried through while they work.
const ROTATIONS: usize = 4;

async fn open(store: &Store, path: &Path) -> Vault {
    let config = KeyConfig::only(KeySource::File(path.to_owned()));
    vault::open(store.clone(), config, "server".into(), clock()).await
}

fn name(writer: usize, secret: usize) -> Name {
    format!("w{writer}-s{secret}").parse().unwrap()
}

async fn set(vault: &Vault, name: &Name, value: &str) {
    let changes = Changes {
        entries: vec![("token".parse().unwrap(), Some(text(value)))],
        only: true,
    };
    let (project, actor) = (Name::default_project(), "writer".into());
    let set = vault.set((&project, name), &changes, &actor);
    set.await.unwrap();
}

async fn read(vault: &Vault, name: &Name) -> String {
    let place = Place {
        project: Name::default_project(),
        owner: Owner::Secret(name.clone()),
        entry: "token".parse().unwrap(),
    };
    let opened = vault.open(&place, &"reader".into()).await.unwrap();
    opened.unwrap().expose_text().unwrap().to_owned()
}

/// Sets and reads values of its own through either vault until it is told to stop; answers
/// what each of its secrets holds in the end.
async fn write(
    writer: usize,
    vaults: [Vault; 2],
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
) -> Vec<(Name, String)> {
    let mut held: Vec<(Name, String)> = (0..SECRETS)
        .map(|secret| (name(writer, secret), String::new()))
        .collect();
    for (name, value) in &mut held {
        *value = format!("{name} from the start");
        set(&vaults[0], name, value).await;
    }
    let mut round = 0;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let (name, value) = &mut held[(round * 7 + writer) % SECRETS];
        *value = format!("{name} in round {round}");
        set(&vaults[round % 2], name, value).await;
        // Nobody else writes it: whatever moves it to another key must not undo it.
        assert_eq!(&read(&vaults[(round + 1) % 2], name).await, value);
        let (name, value) = &held[(round * 3 + writer) % SECRETS];
        assert_eq!(&read(&vaults[round % 2], name).await, value);
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    held
}

/// Waits until the writers have done so many rounds more.
async fn work_on(rounds: &AtomicU64, more: u64) {
    let until = rounds.load(Ordering::Relaxed) + more;
    while rounds.load(Ordering::Relaxed) < until {
        tokio::task::yield_now().await;
    }
}

/// Two servers on one database, each with a store of its own and the same key file.
async fn prove(stores: [Store; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let path = key_file(dir.path(), &KEYS[..1]);
    let [one, other] = [open(&stores[0], &path).await, open(&stores[1], &path).await];
    let (stop, rounds) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let vaults = [one.clone(), other.clone()];
        let (stop, rounds) = (Arc::clone(&stop), Arc::clone(&rounds));
        writers.spawn(write(writer, vaults, stop, rounds));
    }
    work_on(&rounds, 20).await;
    let first = stores[0].seal_keys().await.unwrap()[0].id;
    for rotation in 0..ROTATIONS {
        let vault = [&one, &other][rotation % 2];
        let moved = vault.rotate(&"ann".into(), |_| {}).await.unwrap();
        assert_eq!(moved.damaged, [], "rotation {rotation}");
        work_on(&rounds, 20).await;
    }
    die_and_resume(&one, &other).await;
    work_on(&rounds, 20).await;
    // Both at once, each with a key of its own.
    let (told, by) = (|_| {}, "ann".into());
    let (a, b) = tokio::join!(one.rotate(&by, told), other.rotate(&by, told));
    assert_eq!((a.unwrap().damaged, b.unwrap().damaged), (vec![], vec![]));
    stop.store(true, Ordering::Relaxed);
    let held: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    other.resume_rotation(|_| {}).await.unwrap();
    let keys = one.keys().await.unwrap();
    assert_eq!(keys.len(), 1, "the old keys are gone: {keys:?}");
    assert_ne!(keys[0].wrapped.id, first);
    assert_eq!(keys[0].values, u64::try_from(WRITERS * SECRETS).unwrap());
    let fresh = open(&stores[0], &path).await;
    for (name, value) in held {
        assert_eq!(read(&fresh, &name).await, value);
    }
}

/// A server that begins a rotation and dies in the middle of it; another one goes on.
async fn die_and_resume(dying: &Vault, other: &Vault) {
    let (tell, mut told) = watch::channel(false);
    let dead = Arc::new(AtomicBool::new(false));
    let mut processes = JoinSet::new();
    let (vault, killed) = (dying.clone(), Arc::clone(&dead));
    processes.spawn(async move {
        let begun = AtomicU64::new(0);
        let rotation = |left| {
            let first = begun.fetch_max(left, Ordering::Relaxed).max(left);
            tell.send_replace(left < first);
            // After its first step it goes no further until it is dead.
            while left < first && !killed.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        vault.rotate(&"ann".into(), rotation).await.map(drop)
    });
    told.wait_for(|stepped| *stepped).await.unwrap();
    processes.abort_all();
    dead.store(true, Ordering::Relaxed);
    processes.shutdown().await;
    let left: u64 = other
        .keys()
        .await
        .unwrap()
        .iter()
        .filter(|key| !key.in_use)
        .map(|key| key.values)
        .sum();
    assert!(left > 0, "it died in the middle");
    let moved = other.resume_rotation(|_| {}).await.unwrap();
    assert_eq!((moved.damaged, moved.dropped.len()), (vec![], 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_one_machine() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    prove([store.clone(), store]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_with_two_servers_on_one_database() {
    let test = "rotation::nothing_is_lost_with_two_servers_on_one_database";
    let Some(server) = lab::postgres::shared_or_skip(test) else {
        return;
    };
    let url = server.create_database().unwrap();
    let connect = || Store::connect(&url).unwrap();
    prove([connect(), connect()]).await;
}

/// Whoever runs in the background finishes what another left, and ends when it is told to.
#[tokio::test(start_paused = true)]
async fn what_is_left_is_moved_behind_the_scenes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let path = key_file(dir.path(), &KEYS[..1]);
    let (one, other) = (open(&store, &path).await, open(&store, &path).await);
    for secret in 0..40 {
        set(&one, &name(0, secret), "hunter2").await;
    }
    // Begun by somebody who is gone before it moves anything: nobody rings a bell.
    one.begin_rotation(&"ann".into()).await.unwrap();
    drop(one);
    let stop = tokio_util::sync::CancellationToken::new();
    let mut background = JoinSet::new();
    let (vault, told) = (other.clone(), stop.clone());
    background.spawn(async move { vault.run(told).await });
    while store.seal_keys().await.unwrap().len() > 1 {
        tokio::task::yield_now().await;
    }
    // Rung awake by the next one, and not by its timer, which has not passed.
    let before = tokio::time::Instant::now();
    let key = other.begin_rotation(&"ann".into()).await.unwrap();
    while store.seal_keys().await.unwrap().len() > 1 {
        tokio::task::yield_now().await;
    }
    assert!(before.elapsed() < std::time::Duration::from_secs(1));
    assert_eq!(store.seal_keys().await.unwrap()[0].id, key);
    assert_eq!(read(&other, &name(0, 39)).await, "hunter2");
    stop.cancel();
    background.join_all().await;
}
