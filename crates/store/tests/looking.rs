//! Databases looked at from outside: what is seen, and that nothing is touched.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use model::time::Timestamp;
use std::collections::BTreeMap;
use std::path::Path;
use store::{Actor, Error, Store};

/// Every file of a directory with what it holds.
fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect()
}

async fn use_it(store: &Store) {
    let now = Timestamp::from_millis(1_000_000_000_000);
    let ana = Actor::new("ana", "");
    let entered = store.enter_audit(None, ana, "backup.create", ("backup", ""), now);
    entered.await.unwrap();
}

#[tokio::test]
async fn a_directory_is_looked_at_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    assert_eq!(store::look(path).unwrap(), None);
    assert!(content(path).is_empty(), "looking made a file");

    drop(Store::open(path).unwrap());
    let looked = store::look(path).unwrap().unwrap();
    assert_eq!(looked.format, looked.needed);
    assert!(!looked.used && looked.keys.is_empty());

    let store = Store::open(path).unwrap();
    use_it(&store).await;
    let held = store::look(path);
    assert!(matches!(held, Err(Error::Locked { .. })), "{held:?}");
    drop(store);
    let database = std::fs::read(path.join(store::FILE)).unwrap();
    assert!(store::look(path).unwrap().unwrap().used);
    assert_eq!(std::fs::read(path.join(store::FILE)).unwrap(), database);
    // And nobody who looked keeps others out.
    drop(Store::open(path).unwrap());
}

#[test]
fn a_damaged_file_is_told() {
    let directory = tempfile::tempdir().unwrap();
    drop(Store::open(directory.path()).unwrap());
    let database = directory.path().join(store::FILE);
    let mut bytes = std::fs::read(&database).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8192].fill(0x5a);
    std::fs::write(&database, bytes).unwrap();
    let told = store::look(directory.path());
    assert!(matches!(told, Err(Error::Corrupt { .. })), "{told:?}");
}

#[tokio::test]
async fn a_server_is_looked_at_and_left_as_it_is() {
    let Some(server) = lab::postgres::shared_or_skip("looking::a_server") else {
        return;
    };
    let url = server.create_database().unwrap();
    let looked = store::look_at(&url, None).unwrap();
    assert_eq!((looked.database.format, looked.database.used), (0, false));
    assert!(looked.version >= 130_000, "{looked:?}");
    assert!(looked.connections_max > looked.connections, "{looked:?}");
    let names: Vec<_> = looked.durable.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["fsync", "full_page_writes", "synchronous_commit"]);
    let tables = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(server.psql(&url, tables).unwrap().trim(), "0");

    let store = Store::connect(&url).unwrap();
    use_it(&store).await;
    // Those who work there are not in the way.
    let looked = store::look_at(&url, None).unwrap();
    assert_eq!(looked.database.format, looked.database.needed);
    assert!(looked.database.used);
    assert!(looked.connections >= 2, "{looked:?}");
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let told = store::look_at("postgres://ann@127.0.0.1:9/none", None);
    assert!(matches!(told, Err(Error::Unreachable { .. })), "{told:?}");
}
