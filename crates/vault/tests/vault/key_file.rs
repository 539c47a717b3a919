//! The key file on disk: made once, for its owner alone, and never replaced.

use crate::{KEYS, key_file};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use vault::KeyFile;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn it_is_made_once_and_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(KeyFile::NAME);
    let first = KeyFile::load_or_create(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    let second = KeyFile::load_or_create(&path).unwrap();
    assert_eq!(first.current(), second.current());
    assert_eq!(KeyFile::load(&path).unwrap().fingerprints().count(), 1);
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(names, [KeyFile::NAME], "nothing is left beside it");

    let elsewhere = tempfile::tempdir().unwrap();
    let other = KeyFile::load_or_create(&elsewhere.path().join("k")).unwrap();
    assert_ne!(other.current(), first.current(), "every key is drawn");
}

#[test]
fn those_who_start_at_once_agree_on_one_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(KeyFile::NAME);
    let start = std::sync::Barrier::new(8);
    let seen: BTreeSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    KeyFile::load_or_create(&path).unwrap().current().to_owned()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[test]
fn a_file_that_others_can_read_is_closed_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = key_file(dir.path(), &KEYS);
    for open in [0o644, 0o660, 0o604] {
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        KeyFile::load(&path).unwrap();
        assert_eq!(mode(&path), 0o600, "{open:o}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    KeyFile::load(&path).unwrap();
    assert_eq!(mode(&path), 0o400, "what is closed already is left alone");
}

#[test]
fn a_missing_file_is_not_replaced_when_something_is_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(KeyFile::NAME);
    let error = KeyFile::load(&path).err().unwrap();
    assert_eq!(error.code(), "SEAL-003");
    assert!(!path.exists());
}

#[test]
fn a_file_with_something_else_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(KeyFile::NAME);
    let long = format!("{}\n", KEYS[0]).repeat(2_000);
    for content in ["", "slipway-key-1 AAEC\n", "\u{0}\u{0}", &long] {
        fs::write(&path, content).unwrap();
        let error = KeyFile::load_or_create(&path).err().unwrap();
        assert_eq!(error.code(), "SEAL-002", "{error}");
        assert!(!error.to_string().contains("AAEC"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert_eq!(KeyFile::load(&path).err().unwrap().code(), "SEAL-002");
    let error = KeyFile::load_or_create(dir.path()).err().unwrap();
    assert_eq!(error.code(), "SEAL-002", "a directory is no key file");
}

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("missing").join(KeyFile::NAME);
    let error = KeyFile::load_or_create(&path).err().unwrap();
    assert_eq!(error.code(), "SEAL-001");
    assert!(!dir.path().join("missing").exists());
}
