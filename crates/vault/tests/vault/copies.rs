//! A copy of the database without the key reveals no value, whatever somebody looks for.

use crate::clock;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lab::traces::{found, traces};
use model::name::Name;
use std::path::Path;
use store::Store;
use vault::{Changes, KeyConfig, KeySource, Vault};

/// What is set: letters, a key over several lines, bytes; each long enough to be nobody else's.
fn values() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut bytes =
        |len: usize| -> Vec<u8> { std::iter::repeat_with(|| random.u8(..)).take(len).collect() };
    let password = STANDARD.encode(bytes(24)).into_bytes();
    let key = format!(
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
        STANDARD.encode(bytes(250))
    );
    vec![password, key.into_bytes(), bytes(64), bytes(5_000)]
}

fn assert_silent(copy: &[u8], place: &str) {
    let name = b"kryptonite".to_vec();
    assert_ne!(found(copy, &[name]), [&b""[..]; 0], "{place} is not it");
    let traces: Vec<_> = values().iter().flat_map(|value| traces(value)).collect();
    let told = found(copy, &traces);
    assert!(told.is_empty(), "{place} tells {told:?}");
}

/// All bytes of all files below a directory.
fn files(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(files(&path));
        } else if let Ok(file) = std::fs::read(&path) {
            // A running server removes files while we look.
            bytes.extend(file);
        }
    }
    bytes
}

/// Sets the values, reads them, and has them moved to another key.
async fn fill(store: &Store, keys: &Path) {
    let config = KeyConfig::only(KeySource::File(keys.join("k")));
    let vault: Vault = vault::open(store.clone(), config, "server".into(), clock()).await;
    let entries = values().into_iter().enumerate().map(|(at, value)| {
        let entry = format!("entry-{at}").parse().unwrap();
        (entry, Some(value.into()))
    });
    let changes = Changes {
        entries: entries.collect(),
        only: true,
    };
    let (project, name) = (Name::default_project(), "kryptonite".parse().unwrap());
    let actor = "ann".into();
    vault
        .set((&project, &name), &changes, &actor)
        .await
        .unwrap();
    vault.rotate(&actor, |_| {}).await.unwrap();
    let place = model::sealed::Place {
        project,
        owner: model::sealed::Owner::Secret(name),
        entry: "entry-0".parse().unwrap(),
    };
    let opened = vault.open(&place, &actor).await.unwrap().unwrap();
    assert_eq!(opened.expose(), values()[0]);
}

#[test]
fn the_question_can_be_answered_with_yes() {
    for value in values() {
        let text = STANDARD.encode([&b"xy"[..], &value].concat());
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        for told in [value.as_slice(), text.as_bytes(), hex.as_bytes()] {
            let found = found(told, &traces(&value)).len();
            assert!(found > 0, "{}", String::from_utf8_lossy(told));
        }
    }
}

#[tokio::test]
async fn a_copy_of_the_file_reveals_nothing() {
    let (dir, keys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(dir.path()).unwrap();
    fill(&store, keys.path()).await;
    let running = files(dir.path());
    assert_silent(&running, "the database with its log");
    drop(store);
    assert_silent(&files(dir.path()), "the closed database");
}

#[tokio::test]
async fn a_dump_and_the_files_of_postgresql_reveal_nothing() {
    let test = "copies::a_dump_and_the_files_of_postgresql_reveal_nothing";
    let Some(server) = lab::postgres::shared_or_skip(test) else {
        return;
    };
    let keys = tempfile::tempdir().unwrap();
    let url = server.create_database().unwrap();
    let store = Store::connect(&url).unwrap();
    fill(&store, keys.path()).await;
    let dump = server.command("pg_dump").arg(&url).output().unwrap();
    assert!(
        dump.status.success(),
        "{}",
        String::from_utf8_lossy(&dump.stderr)
    );
    assert_silent(&dump.stdout, "the dump");
    server.psql(&url, "CHECKPOINT").unwrap();
    let files = files(server.directory());
    assert_silent(&files, "the files of the server");
    drop(store);
}
