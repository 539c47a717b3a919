//! The key file: master keys, one per line, the current one first.
//!
//! ```text
//! # drawn in March
//! slipway-key-1 3q2+7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
//! slipway-key-1 q80AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
//! ```
//!
//! The first line wraps; the others can still unwrap. To change the master key somebody
//! puts a new line before the others (`openssl rand -base64 32` draws one), restarts, has
//! the data keys rewrapped, and takes the old line away.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use model::sealed::{KeyId, Wrapped};
use model::secret::Secret;

use crate::seal::{self, Bound};
use crate::{Error, text};

/// What every line begins with; the number is for another kind of key one day.
const PREFIX: &str = "slipway-key-1 ";

/// How much of the file is read: hundreds of keys. What is longer is not a key file.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// One master key.
struct Key {
    /// What it is called in the store and in messages: a digest, which tells nothing of the key.
    fingerprint: String,
    key: Secret,
}

impl Key {
    fn of(key: Secret) -> Self {
        let digest: [u8; 8] = text::digest("slipway master key", &key);
        Self {
            fingerprint: text::hex(&digest),
            key,
        }
    }
}

/// The master keys of a file that only its owner can read.
pub struct KeyFile {
    path: PathBuf,
    current: Key,
    older: Vec<Key>,
}

impl KeyFile {
    /// What the file is called in the data directory.
    pub const NAME: &str = "slipway.key";

    /// Reads the key file of an installation in which something is sealed already.
    ///
    /// It is not made if it is missing: a new key opens nothing that an old one sealed, and
    /// would only hide that the old one is lost.
    pub fn load(path: &Path) -> Result<Self, Error> {
        match read(path) {
            Err(Error::Read { path, cause }) if cause.kind() == io::ErrorKind::NotFound => {
                Err(Error::Missing { path })
            }
            Err(error) => Err(error),
            Ok((file, content)) => {
                let keys = Self::parse(path, &content)?;
                // Only now: a file that was named by mistake keeps its permissions.
                keep_private(path, &file).map_err(|cause| Error::Read {
                    path: path.to_owned(),
                    cause,
                })?;
                Ok(keys)
            }
        }
    }

    /// Reads the key file; at the first start, when nothing is sealed yet, makes it.
    pub fn load_or_create(path: &Path) -> Result<Self, Error> {
        match Self::load(path) {
            Err(Error::Missing { .. }) => {
                create(path)?;
                // Read what is there: another process may have been faster.
                Self::load(path)
            }
            loaded => loaded,
        }
    }

    /// A key in memory that no file holds.
    pub(crate) fn drawn() -> Result<Self, Error> {
        Ok(Self {
            path: "memory".into(),
            current: Key::of(text::draw_key()?),
            older: Vec::new(),
        })
    }

    fn parse(path: &Path, content: &Secret) -> Result<Self, Error> {
        let form = |why: String| Error::Form {
            path: path.to_owned(),
            why,
        };
        let content = content
            .expose_text()
            .ok_or_else(|| form("it is not text".to_owned()))?;
        let mut keys = Vec::new();
        for (at, line) in content.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = line
                .strip_prefix(PREFIX)
                .and_then(|rest| text::decode(rest.trim_start().as_bytes()))
                .filter(|key| key.expose().len() == text::KEY_BYTES);
            let Some(key) = key else {
                let line = at + 1;
                let bytes = text::KEY_BYTES;
                return Err(form(format!(
                    "line {line} is not `{}` and {bytes} bytes in base64",
                    PREFIX.trim_end()
                )));
            };
            keys.push(Key::of(key));
        }
        let mut keys = keys.into_iter();
        let current = keys
            .next()
            .ok_or_else(|| form("it holds no key".to_owned()))?;
        Ok(Self {
            path: path.to_owned(),
            current,
            older: keys.collect(),
        })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The fingerprint of the key that wraps.
    pub fn current(&self) -> &str {
        &self.current.fingerprint
    }

    /// The fingerprints of all keys that can unwrap, the current one first.
    pub fn fingerprints(&self) -> impl Iterator<Item = &str> {
        self.keys().map(|key| key.fingerprint.as_str())
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.older)
    }

    /// Wraps a data key with the current master key.
    pub(crate) fn wrap(&self, id: KeyId, data_key: &Secret) -> Result<Wrapped, Error> {
        let by = self.current.fingerprint.clone();
        let bound = Bound::data_key(id, &by);
        let text = seal::seal(&self.current.key, data_key.expose(), &bound)?;
        Ok(Wrapped { id, by, text })
    }

    /// Unwraps a data key; nothing if it was wrapped by a key that is not in the file.
    pub(crate) fn unwrap(&self, wrapped: &Wrapped) -> Option<Result<Secret, Error>> {
        let key = self.keys().find(|key| key.fingerprint == wrapped.by)?;
        let bound = Bound::data_key(wrapped.id, &wrapped.by);
        let opened = seal::open(&key.key, &wrapped.text, &bound);
        Some(opened.ok_or(Error::DamagedKey { key: wrapped.id }))
    }
}

/// Reads the file, which stays open for whoever finds keys in it.
fn read(path: &Path) -> Result<(File, Secret), Error> {
    let failed = |cause| Error::Read {
        path: path.to_owned(),
        cause,
    };
    let form = |why: &str| Error::Form {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    // Asked before it is opened: opening a pipe would wait for somebody to write.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(form("it is not a file"));
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = vec![0; FILE_BYTES_MAX + 1];
    let read = fill(&mut file, &mut bytes);
    if let Ok(len) = read {
        bytes.truncate(len);
    }
    let content = Secret::from(bytes);
    if read.map_err(failed)? > FILE_BYTES_MAX {
        return Err(form("it is too long"));
    }
    Ok((file, content))
}

/// Reads until the file or the memory ends. The memory does not grow: that would leave copies.
fn fill(file: &mut File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match file.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(len)
}

/// Takes the file away from everybody but its owner.
fn keep_private(path: &Path, file: &File) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o600);
        file.set_permissions(permissions)?;
        tracing::warn!(path = %path.display(), "the key file was open to others; it no longer is");
    }
    Ok(())
}

/// Draws a key and puts it into a new file.
///
/// Written beside its place and linked there, so that nobody ever reads half. A link does
/// not replace what is there: if two processes start at once, both use the file of the first.
fn create(path: &Path) -> Result<(), Error> {
    let line = text::encode_line(PREFIX, &text::draw_key()?);
    let mut suffix = [0; 8];
    text::random(&mut suffix)?;
    let mut beside = OsString::from(path);
    beside.push(format!(".new-{}", text::hex(&suffix)));
    let beside = PathBuf::from(beside);
    let made = write(&beside, &line).and_then(|()| place(&beside, path));
    let removed = match fs::remove_file(&beside) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    made.and(removed)
        .and_then(|()| File::open(directory(path))?.sync_all())
        .map_err(|cause| Error::Write {
            path: path.to_owned(),
            cause,
        })
}

fn write(beside: &Path, line: &Secret) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(beside)?;
    file.write_all(line.expose())?;
    file.sync_all()
}

fn place(beside: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(beside, path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// The directory of a file; a bare name is in the current one.
fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "slipway-key-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn parse(content: &str) -> Result<Vec<String>, String> {
        let content = Secret::from_text(content.to_owned());
        match KeyFile::parse(Path::new("k"), &content) {
            Ok(file) => Ok(file.fingerprints().map(str::to_owned).collect()),
            Err(error) => {
                assert_eq!(error.code(), "SEAL-002");
                Err(error.to_string())
            }
        }
    }

    #[test]
    fn comments_and_empty_lines_are_passed_over() {
        let plain = parse(LINE).unwrap();
        assert_eq!(plain.len(), 1);
        let dressed = format!("# drawn in March\r\n\r\n  {LINE}  \r\n#{LINE}\n");
        assert_eq!(parse(&dressed).unwrap(), plain);
    }

    /// Stored data keys name it: a changed fingerprint would orphan them all.
    #[test]
    fn the_fingerprint_of_a_key_never_changes() {
        assert_eq!(parse(LINE).unwrap(), ["04c80d8aa8b06abd"]);
    }

    #[test]
    fn a_broken_line_is_named_and_not_shown() {
        let long = LINE.replace('=', "AAAA");
        let short = LINE.replace("Hh8=", "");
        let url = LINE.replace("AAEC", "A_-C");
        for wrong in [
            &long,
            &short,
            &url,
            "slipway-key-2 AAAA",
            "AAECAwQFBgcI",
            "slipway-key-1",
        ] {
            let said = parse(&format!("{LINE}\n{wrong}\n")).unwrap_err();
            assert!(said.contains("line 2 is not `slipway-key-1`"), "{said}");
            assert!(!said.contains("AwQF"), "{said}");
        }
        for empty in ["", "\n\n", "# nothing\n"] {
            assert!(parse(empty).unwrap_err().ends_with("it holds no key"));
        }
    }

    #[test]
    fn only_a_file_with_keys_is_taken_away_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |content: &str| {
            let path = dir.path().join("k");
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let loaded = KeyFile::load(&path).is_ok();
            (
                loaded,
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            )
        };
        assert_eq!(mode("kind: Manifest\n"), (false, 0o644));
        assert_eq!(mode(LINE), (true, 0o600));
    }

    #[test]
    fn a_bare_name_is_in_the_current_directory() {
        assert_eq!(directory(Path::new("k")), Path::new("."));
        assert_eq!(directory(Path::new("/k")), Path::new("/"));
        assert_eq!(directory(Path::new("a/k")), Path::new("a"));
    }
}
