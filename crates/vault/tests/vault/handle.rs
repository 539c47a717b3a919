//! The vault over a store: the first start, wrong keys, other processes.

use crate::{FINGERPRINTS, KEYS, clock, hook, key_file, place, text};
use model::name::Name;
use model::sealed::Sealed;
use std::path::Path;
use std::time::Duration;
use store::{Actor, Page, Store};
use vault::{Changes, KeyConfig, KeyFile, KeySource, Vault};

fn in_file(path: &Path) -> KeyConfig {
    KeyConfig::only(KeySource::File(path.to_owned()))
}

async fn open(store: &Store, path: &Path) -> Vault {
    vault::open(store.clone(), in_file(path), "server".into(), clock()).await
}

fn default() -> Name {
    Name::default_project()
}

/// Sets entries of the secret `aws`.
async fn set(vault: &Vault, entries: &[(&str, &str)]) -> Result<u64, vault::Error> {
    let entries = entries
        .iter()
        .map(|(entry, value)| (entry.parse().unwrap(), Some(text(value))));
    let changes = Changes {
        entries: entries.collect(),
        only: false,
    };
    let (project, name, actor) = (default(), "aws".parse().unwrap(), "ann".into());
    let set = vault.set((&project, &name), &changes, &actor);
    set.await.map(|row| row.version)
}

async fn opened(vault: &Vault, entry: &str) -> Result<Option<String>, vault::Error> {
    let actor = Actor::new("worker-1", "task/task-1");
    let value = vault.open(&place(entry), &actor).await?;
    Ok(value.map(|value| value.expose_text().unwrap().to_owned()))
}

async fn ids(store: &Store) -> Vec<String> {
    let keys = store.seal_keys().await.unwrap();
    keys.iter().map(|key| key.id.to_string()).collect()
}

#[tokio::test]
async fn the_first_start_draws_a_key_and_the_next_ones_use_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(KeyFile::NAME);
    let store = Store::open(dir.path()).unwrap();
    let first = open(&store, &path).await;
    assert_eq!(set(&first, &[("token", "hunter2")]).await.unwrap(), 1);
    let drawn = ids(&store).await;
    assert_eq!(drawn.len(), 1);
    drop((first, store));

    let store = Store::open(dir.path()).unwrap();
    let second = open(&store, &path).await;
    assert_eq!(opened(&second, "token").await.unwrap().unwrap(), "hunter2");
    assert_eq!(opened(&second, "nobody").await.unwrap(), None);
    assert_eq!(ids(&store).await, drawn);
    let entries = store.audit(None, Page::default()).await.unwrap().items;
    let told: Vec<_> = entries
        .iter()
        .map(|entry| {
            format!(
                "{} {} {} {}",
                entry.actor, entry.origin, entry.action, entry.detail
            )
        })
        .collect();
    assert_eq!(told[0], "worker-1 task/task-1 secret.open token");
    assert_eq!(told[1], "ann  secret.set set token");
    assert!(
        told[2].starts_with("server  key.use wrapped by "),
        "{told:?}"
    );
    assert_eq!(told.len(), 3, "a value that is not there was not read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_start_at_once_draw_one_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(KeyFile::NAME);
    let store = Store::open(dir.path()).unwrap();
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (store, path) = (store.clone(), path.clone());
        starts.spawn(async move { open(&store, &path).await });
    }
    let vaults = starts.join_all().await;
    assert_eq!(ids(&store).await.len(), 1);
    for (at, vault) in vaults.iter().enumerate() {
        assert!(vault.closed().is_none());
        let entry = format!("e{at}");
        set(vault, &[(&entry, "hunter2")]).await.unwrap();
        let other = &vaults[(at + 1) % vaults.len()];
        assert_eq!(opened(other, &entry).await.unwrap().unwrap(), "hunter2");
    }
}

/// What every way to use a closed vault says.
async fn told(vault: &Vault) -> Vec<String> {
    let sealed = vault.seal(&place("token"), &text("x")).await.err();
    let errors = [
        set(vault, &[("token", "x")]).await.err(),
        opened(vault, "token").await.err(),
        sealed,
        vault.begin_rotation(&"ann".into()).await.err(),
        vault.rotate(&"ann".into(), |_| {}).await.err(),
        vault.refresh().await.err(),
    ];
    errors
        .into_iter()
        .map(|error| error.unwrap().to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn with_the_wrong_key_file_the_vault_is_closed_until_it_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let right = open(&store, &key_file(dir.path(), &KEYS[..1])).await;
    set(&right, &[("token", "hunter2")]).await.unwrap();
    let (before, audited) = (ids(&store).await, audited(&store).await);

    let path = key_file(dir.path(), &KEYS[1..2]);
    let wrong = open(&store, &path).await;
    let why = wrong.closed().unwrap();
    assert_eq!(why.code(), "SEAL-004");
    for said in told(&wrong).await {
        assert_eq!(said, format!("the vault is closed: {why}"));
        assert!(
            said.contains(FINGERPRINTS[0]) && said.contains(FINGERPRINTS[1]),
            "{said}"
        );
    }
    assert_eq!(ids(&store).await, before, "no other key was drawn");
    assert_eq!(
        self::audited(&store).await,
        audited,
        "what did not open was not read"
    );

    key_file(dir.path(), &[KEYS[1], KEYS[0]]);
    let said = opened(&wrong, "token").await.unwrap_err();
    assert_eq!(
        said.code(),
        "SEAL-004",
        "it is not looked at for every question"
    );
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(opened(&wrong, "token").await.unwrap().unwrap(), "hunter2");
    assert!(wrong.closed().is_none());
    assert_eq!(ids(&store).await, before);
}

async fn audited(store: &Store) -> usize {
    store
        .audit(None, Page::default())
        .await
        .unwrap()
        .items
        .len()
}

#[tokio::test]
async fn a_lost_key_file_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let path = key_file(dir.path(), &KEYS[..1]);
    open(&store, &path).await;
    std::fs::remove_file(&path).unwrap();
    let vault = open(&store, &path).await;
    assert_eq!(vault.closed().unwrap().code(), "SEAL-003");
    assert!(!path.exists());
    assert_eq!(ids(&store).await.len(), 1);
}

#[tokio::test]
async fn a_new_line_takes_over_and_the_old_one_can_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let old = open(&store, &key_file(dir.path(), &KEYS[..1])).await;
    set(&old, &[("token", "hunter2")]).await.unwrap();
    let by = async || store.seal_keys().await.unwrap()[0].by.clone();
    assert_eq!(by().await, FINGERPRINTS[0]);

    let both = open(&store, &key_file(dir.path(), &[KEYS[1], KEYS[0]])).await;
    assert_eq!(by().await, FINGERPRINTS[1]);
    assert_eq!(opened(&both, "token").await.unwrap().unwrap(), "hunter2");
    // Who runs with the old line alone goes on with what it has unwrapped.
    set(&old, &[("second", "hunter3")]).await.unwrap();

    let new = open(&store, &key_file(dir.path(), &KEYS[1..2])).await;
    assert_eq!(opened(&new, "token").await.unwrap().unwrap(), "hunter2");
    assert_eq!(opened(&new, "second").await.unwrap().unwrap(), "hunter3");
    let entries = store.audit(None, Page::default()).await.unwrap().items;
    let rewraps = entries.iter().filter(|entry| entry.action == "key.rewrap");
    assert_eq!(rewraps.count(), 1);
}

#[tokio::test]
async fn an_installation_moves_from_one_source_to_another() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let path = key_file(dir.path(), &KEYS[..1]);
    let old = open(&store, &path).await;
    set(&old, &[("token", "hunter2")]).await.unwrap();
    let command = KeySource::Command(hook::words(hook::HONEST));
    let moving = KeyConfig {
        current: command.clone(),
        older: vec![KeySource::File(path)],
    };
    let vault = vault::open(store.clone(), moving, "server".into(), clock()).await;
    assert!(vault.closed().is_none(), "{:?}", vault.closed());
    assert_eq!(store.seal_keys().await.unwrap()[0].by, "command");
    let moved = KeyConfig::only(command);
    let vault = vault::open(store.clone(), moved, "server".into(), clock()).await;
    assert_eq!(opened(&vault, "token").await.unwrap().unwrap(), "hunter2");
}

#[tokio::test]
async fn a_key_that_another_process_drew_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let path = key_file(dir.path(), &KEYS[..1]);
    let (one, other) = (open(&store, &path).await, open(&store, &path).await);
    set(&other, &[("early", "1")]).await.unwrap();
    let old = ids(&store).await;
    one.begin_rotation(&"ann".into()).await.unwrap();
    set(&one, &[("late", "2")]).await.unwrap();
    // It knows the old key only: sealing is refused and done again, opening asks for the key.
    set(&other, &[("later", "3")]).await.unwrap();
    assert_eq!(opened(&other, "late").await.unwrap().unwrap(), "2");
    let moved = other.resume_rotation(|_| {}).await.unwrap();
    assert_eq!((moved.values, moved.dropped.len()), (1, 1));
    assert_eq!(moved.dropped[0].to_string(), old[0]);
    for (vault, entry, value) in [
        (&one, "early", "1"),
        (&other, "early", "1"),
        (&one, "later", "3"),
    ] {
        assert_eq!(opened(vault, entry).await.unwrap().unwrap(), value);
    }
    assert_eq!(ids(&store).await.len(), 1);
}

/// An old data key that cannot be unwrapped takes along what is sealed with it, and no more.
#[tokio::test]
async fn what_is_lost_is_lost_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let path = key_file(dir.path(), &KEYS[..1]);
    let vault = open(&store, &path).await;
    set(&vault, &[("early", "1"), ("spare", "2")])
        .await
        .unwrap();
    let lost = store.seal_keys().await.unwrap().remove(0);
    vault.begin_rotation(&"ann".into()).await.unwrap();
    set(&vault, &[("late", "3")]).await.unwrap();
    let broken = model::sealed::Wrapped {
        text: lost.text.replace("x1.", "x9."),
        ..lost
    };
    let now = clock()();
    store
        .rewrap_seal_key(broken, "somebody".into(), now)
        .await
        .unwrap();

    let fresh = open(&store, &path).await;
    assert!(fresh.closed().is_none());
    assert_eq!(opened(&fresh, "late").await.unwrap().unwrap(), "3");
    assert_eq!(
        opened(&fresh, "early").await.unwrap_err().code(),
        "SEAL-010"
    );
    let moved = fresh.resume_rotation(|_| {}).await.unwrap();
    assert_eq!((moved.values, moved.damaged.len()), (0, 2));
    assert_eq!(
        ids(&store).await.len(),
        2,
        "the key stays: a backup may mend it"
    );
    set(&fresh, &[("early", "4")]).await.unwrap();
    assert_eq!(opened(&fresh, "early").await.unwrap().unwrap(), "4");
}

/// A row that was changed does not stop the others from moving to the new key.
#[tokio::test]
async fn a_damaged_value_stays_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let vault = open(&store, &key_file(dir.path(), &KEYS[..1])).await;
    let entries: Vec<String> = (10..40).map(|at| format!("e{at}")).collect();
    let pairs: Vec<_> = entries
        .iter()
        .map(|entry| (entry.as_str(), "hunter2"))
        .collect();
    set(&vault, &pairs).await.unwrap();
    vault.begin_rotation(&"ann".into()).await.unwrap();
    let rows = store.sealed_with_old_keys(None, 100).await.unwrap();
    assert_eq!(rows.len(), 30);
    // Somebody puts the value of one place into another.
    let elsewhere = Sealed {
        key: store.seal_keys().await.unwrap()[0].id,
        text: rows[1].sealed.text.clone(),
    };
    store
        .reseal(vec![(rows[0].clone(), elsewhere)])
        .await
        .unwrap();
    let left = std::sync::Mutex::new(Vec::new());
    let moved = vault
        .resume_rotation(|count| left.lock().unwrap().push(count))
        .await
        .unwrap();
    assert_eq!((moved.values, moved.dropped.len()), (29, 1));
    let left = left.into_inner().unwrap();
    assert_eq!(left[..5], [29, 21, 13, 5, 0], "{left:?}");
    assert_eq!(opened(&vault, "e10").await.unwrap_err().code(), "SEAL-005");
    assert_eq!(opened(&vault, "e11").await.unwrap().unwrap(), "hunter2");
}
