//! A file on its way: beside its place until all of it is there and is what was promised.
//!
//! The file is also the lock: whoever holds it works on it, and who waits finds afterwards that
//! it was moved to its place. What a killed process has left of it is gone on with.

use super::Digest;
use super::trouble::{Trouble, unwritable};
use crate::error::Error;
use sha2::{Digest as _, Sha256};
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How much is read at once when a file is read whole.
const PIECE: usize = 256 * 1024;

/// How soon to look again after a file that somebody else holds.
pub(super) const HELD: std::time::Duration = std::time::Duration::from_millis(20);

/// A file on its way; nobody else holds it.
#[derive(Debug)]
pub(super) struct Part {
    file: File,
    path: PathBuf,
    hasher: Sha256,
    length: u64,
    /// The bytes that an earlier process left, which nobody has vouched for.
    inherited: u64,
}

impl Part {
    /// Takes the file, or makes it; `None` while somebody else holds it.
    pub(super) fn claim(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |error: &std::io::Error| unwritable("write", path, error);
        let directory = path.parent().unwrap_or(path);
        std::fs::create_dir_all(directory).map_err(|error| failed(&error))?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
        // Whoever held it before may have moved it to its place: then this is not it any more.
        if !is_at(&file, path).map_err(|error| failed(&error))? {
            return Ok(None);
        }
        let mut part = Self {
            file,
            path: path.to_owned(),
            hasher: Sha256::new(),
            length: 0,
            inherited: 0,
        };
        part.inherit().map_err(|error| failed(&error))?;
        Ok(Some(part))
    }

    /// Reads what an earlier process has left.
    fn inherit(&mut self) -> std::io::Result<()> {
        self.length = fed(&mut self.file, &mut self.hasher)?;
        self.inherited = self.length;
        Ok(())
    }

    /// From here on another source adds: what is there is of somebody else.
    pub(super) fn pass_on(&mut self) {
        self.inherited = self.length;
    }

    /// Removes it: it is not needed.
    pub(super) fn discard(self) -> Result<(), Error> {
        let removed = std::fs::remove_file(&self.path);
        removed.map_err(|error| unwritable("remove", &self.path, &error))
    }

    /// How much is there.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether some of it is of somebody else.
    pub(super) fn is_inherited(&self) -> bool {
        self.inherited > 0
    }

    /// Forgets what is there.
    pub(super) fn restart(&mut self) -> Result<(), Trouble> {
        let again = self
            .file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)));
        again.map_err(|error| Trouble::ours("write", &self.path, &error))?;
        self.hasher = Sha256::new();
        self.length = 0;
        self.inherited = 0;
        Ok(())
    }

    /// Adds a piece.
    pub(super) fn add(&mut self, piece: &[u8]) -> Result<(), Trouble> {
        let written = self.file.write_all(piece);
        written.map_err(|error| Trouble::ours("write", &self.path, &error))?;
        self.hasher.update(piece);
        self.length += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// The digest of what is there.
    pub(super) fn digest(&self) -> Digest {
        Digest::ended(self.hasher.clone())
    }

    /// Moves it to its place, so that it survives a power cut from there on.
    pub(super) fn keep(self, to: &Path) -> Result<(), Error> {
        let parents: Vec<&Path> = to.ancestors().skip(1).take(2).collect();
        let kept = (|| {
            self.file.sync_all()?;
            if let Some(parent) = parents.first() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::rename(&self.path, to)?;
            parents.iter().try_for_each(|parent| sync(parent))
        })();
        kept.map_err(|error| unwritable("write", to, &error))
    }
}

/// Makes sure that a directory remembers its entries.
fn sync(directory: &Path) -> std::io::Result<()> {
    // The parent of a relative path is the empty one, which means here.
    let here = Path::new(".");
    let directory = if directory.as_os_str().is_empty() {
        here
    } else {
        directory
    };
    File::open(directory)?.sync_all()
}

/// Whether an open file is still the one of that path.
pub(super) fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Feeds the rest of a file; answers how many bytes it were.
fn fed(file: &mut File, hasher: &mut Sha256) -> std::io::Result<u64> {
    let mut piece = vec![0; PIECE];
    let mut length = 0;
    loop {
        let read = file.read(&mut piece)?;
        let Some(piece) = piece.get(..read).filter(|piece| !piece.is_empty()) else {
            return Ok(length);
        };
        hasher.update(piece);
        length += u64::try_from(read).unwrap_or(u64::MAX);
    }
}

/// The digest and the length of the rest of a file.
pub(super) fn digest_of(file: &mut File) -> std::io::Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let length = fed(file, &mut hasher)?;
    Ok((Digest::ended(hasher), length))
}

/// Writes a small file beside its place, and moves it there.
pub(super) fn write_small(beside: &Path, to: &Path, text: &str) -> Result<(), Error> {
    let mut part = loop {
        match Part::claim(beside)? {
            Some(part) => break part,
            None => std::thread::sleep(HELD),
        }
    };
    let written = part.restart().and_then(|()| part.add(text.as_bytes()));
    written.map_err(Trouble::into_error)?;
    part.keep(to)
}
