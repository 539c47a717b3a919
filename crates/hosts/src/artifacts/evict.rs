//! Makes room in a cache: what was not used for longest goes first, what is in use stays.

use super::index::Index;
use super::part::is_at;
use super::trouble::unwritable;
use crate::error::Error;
use std::fs::{File, Metadata, TryLockError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file that could go.
struct Old {
    path: PathBuf,
    size: u64,
    used: SystemTime,
}

/// Removes files until there are at most so many bytes.
pub(super) fn evict(root: &Path, bytes: u64) -> Result<(), Error> {
    let mut files = Vec::new();
    for part in ["sha256", "parts"] {
        let directory = root.join(part);
        let listed = list(&directory, &mut files);
        listed.map_err(|error| unwritable("read", &directory, &error))?;
    }
    let mut total: u64 = files.iter().map(|file| file.size).sum();
    if total <= bytes {
        return Ok(());
    }
    files.sort_by_key(|file| file.used);
    for file in files {
        if total <= bytes {
            break;
        }
        let removed = remove(&file.path);
        if removed.map_err(|error| unwritable("remove", &file.path, &error))? {
            tracing::info!("{} is removed to make room", file.path.display());
            total = total.saturating_sub(file.size);
        }
    }
    forget(root)
}

/// The files below a directory; one that goes meanwhile is none.
fn list(directory: &Path, files: &mut Vec<Old>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => list(&entry.path(), files)?,
            Ok(metadata) => files.push(Old {
                path: entry.path(),
                size: metadata.len(),
                used: used(&metadata)?,
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// When a file was last read or written.
fn used(metadata: &Metadata) -> std::io::Result<SystemTime> {
    Ok(metadata.accessed()?.max(metadata.modified()?))
}

/// Removes a file that nobody holds; answers whether it did.
fn remove(path: &Path) -> std::io::Result<bool> {
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if gone(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    if !is_at(&file, path)? {
        return Ok(false);
    }
    std::fs::remove_file(path)?;
    Ok(true)
}

/// Forgets the names whose content is gone.
fn forget(root: &Path) -> Result<(), Error> {
    let names = root.join("names");
    let forgotten = (|| {
        for entry in std::fs::read_dir(&names)? {
            let note = entry?.path();
            let Ok(text) = std::fs::read(&note) else {
                continue;
            };
            let index = Index::parse(&text).unwrap_or_default();
            let here = index.iter().any(|(_, entry)| {
                let text = entry.sha256.to_string();
                let (first, rest) = text.split_at(2);
                root.join("sha256").join(first).join(rest).exists()
            });
            if !here {
                std::fs::remove_file(&note)?;
            }
        }
        Ok(())
    })();
    forgotten.map_err(|error: std::io::Error| unwritable("tidy", &names, &error))
}
