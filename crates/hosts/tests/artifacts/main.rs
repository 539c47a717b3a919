//! Artifacts against real files, and against a web server on loopback that behaves badly.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cache;
mod evict;
mod hostile;
mod kill;
mod mirror;
mod parser;
mod upstream;
mod web;

use hosts::artifacts::{Artifact, Digest, Entry, Index, Limits, Name, Patience, Source};
use std::path::Path;
use std::time::Duration;

/// How long something may take that needs a fraction of it.
const PATIENCE: Duration = Duration::from_mins(2);

/// Bytes that no two lengths or seeds share, and that no compression or repetition hides.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let pieces = std::iter::repeat_with(next).take(length / 8 + 1);
    let mut bytes: Vec<u8> = pieces.flatten().collect();
    bytes.truncate(length);
    bytes
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// An artifact whose content we know.
fn known(text: &str, content: &[u8]) -> Artifact {
    Artifact {
        name: name(text),
        sha256: Some(Digest::of(content)),
        size: Some(u64::try_from(content.len()).unwrap()),
    }
}

/// Writes a file below a directory.
fn put(directory: &Path, name: &str, content: &[u8]) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// The text of an index of these files.
fn index_of(files: &[(&str, &[u8])]) -> String {
    let mut index = Index::default();
    for (text, content) in files {
        let entry = Entry {
            sha256: Digest::of(content),
            size: u64::try_from(content.len()).unwrap(),
        };
        index.insert(name(text), entry);
    }
    index.to_text()
}

fn directory(path: &Path) -> Source {
    Source::Directory(path.to_owned())
}

/// Where nobody listens: the lowest port, which no test can be given.
fn nobody() -> Source {
    "http://127.0.0.1:1/".parse().unwrap()
}

/// Limits whose patience no busy machine exhausts.
fn patient() -> Limits {
    Limits {
        patience: Patience {
            connect: PATIENCE,
            silence: PATIENCE,
            whole: PATIENCE,
        },
        ..Limits::default()
    }
}

/// Limits that give up at once on who says nothing.
fn impatient() -> Limits {
    let mut limits = patient();
    limits.patience.silence = Duration::from_millis(200);
    limits
}

/// Every file below a directory, with its path from there.
fn tree(directory: &Path) -> Vec<String> {
    fn walk(directory: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                let path = path.strip_prefix(root).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(directory, directory, &mut found);
    found.sort();
    found
}
