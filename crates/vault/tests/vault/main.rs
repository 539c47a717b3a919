//! Sealing as its callers see it: values, key files, and key commands that misbehave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod copies;
mod handle;
mod hook;
mod key_file;
mod reveal;
mod rotation;
mod values;

use model::sealed::{Owner, Place};
use model::secret::Secret;
use model::time::Timestamp;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault::{Clock, KeyFile, Master, Sealer};

/// Three lines of a key file: what the bytes 0–31, 32–63 and 64–95 look like.
const KEYS: [&str; 3] = [
    "slipway-key-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "slipway-key-1 ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=",
    "slipway-key-1 QEFCQ0RFRkdISUpLTE1OT1BRUlNUVVZXWFlaW1xdXl8=",
];

/// What messages and stored data keys call the three.
const FINGERPRINTS: [&str; 3] = ["04c80d8aa8b06abd", "d6d69b1bc5b764c2", "aa45a795f79d83d4"];

/// Writes a key file with these lines.
fn key_file(dir: &Path, lines: &[&str]) -> PathBuf {
    let path = dir.join(KeyFile::NAME);
    std::fs::write(&path, lines.join("\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A clock that stands still.
fn clock() -> Clock {
    Arc::new(|| Timestamp::from_millis(1_000_000_000_000))
}

fn text(text: &str) -> Secret {
    Secret::from_text(text.to_owned())
}

/// The master of a key file with these lines.
fn master(lines: &[&str]) -> Master {
    let dir = tempfile::tempdir().unwrap();
    Master::File(KeyFile::load(&key_file(dir.path(), lines)).unwrap())
}

/// A sealer on a key file with these lines.
fn sealer(lines: &[&str]) -> Sealer {
    Sealer::new(master(lines), Vec::new())
}

/// Where an entry of the secret `aws` is.
fn place(entry: &str) -> Place {
    Place {
        project: "default".parse().unwrap(),
        owner: Owner::Secret("aws".parse().unwrap()),
        entry: entry.parse().unwrap(),
    }
}
