//! The cache: what was fetched once, by its digest, for every host that needs it.
//!
//! ```text
//! sha256/8a/a137a7d0…   what is whole; a reader holds a shared lock while it reads
//! parts/8aa137a7d0…     what is on its way; who works on it holds it
//! names/…               which digest an artifact of a mirror had when it was last fetched
//! ```
//!
//! Several processes may use one cache. A file gets its place when it is whole, so whoever is
//! killed leaves at most a part, which the next one goes on with.

use super::fill::{Filling, Promise, Tell, promised};
use super::part::{self, HELD, Part, is_at};
use super::source::Source;
use super::trouble::unwritable;
use super::web::{Patience, Web};
use super::{Artifact, Digest, Entry, Index, Name, addons, blocking, evict};
use crate::error::{Error, Kind};
use model::addon::AddonName;
use std::collections::HashMap;
use std::fs::{File, FileTimes, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// What a cache keeps to.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes it may have; what was not used for longest goes first. What is being read stays,
    /// even if that is more.
    pub bytes: u64,
    /// How long web servers may take.
    pub patience: Patience,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 20 << 30,
            patience: Patience::default(),
        }
    }
}

/// A cache of artifacts. Clones are the same cache.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    limits: Limits,
    web: Web,
    /// Files that were read whole and were good, as long as they look as they did then.
    good: Mutex<HashMap<Digest, Stamp>>,
}

/// How a file looks from outside: place, length and last change.
type Stamp = (u64, u64, u64, i64, i64);

/// An artifact in the cache; it stays there as long as this lives.
#[derive(Debug)]
pub struct Handle {
    /// Holds the lock that keeps it from being evicted.
    _held: File,
    path: PathBuf,
    entry: Entry,
}

impl Handle {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it.
    pub fn sha256(&self) -> Digest {
        self.entry.sha256
    }

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.entry.size
    }
}

/// What a look into the cache finds.
enum Look {
    Here(Handle),
    Absent,
    /// Somebody is about to remove it, or to let go of it.
    Busy,
}

impl Cache {
    /// Opens a cache, or begins one.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        Self::with_limits(directory, Limits::default())
    }

    /// Opens a cache that keeps to these limits.
    pub fn with_limits(directory: &Path, limits: Limits) -> Result<Self, Error> {
        for part in ["sha256", "parts", "names"] {
            let path = directory.join(part);
            let made = std::fs::create_dir_all(&path);
            made.map_err(|error| unwritable("make", &path, &error))?;
        }
        Ok(Self(Arc::new(Inner {
            root: directory.to_owned(),
            limits,
            web: Web::new(limits.patience)?,
            good: Mutex::default(),
        })))
    }

    /// An artifact, from here or from the first source that has it.
    ///
    /// May be dropped at any time: what has come stays and is gone on with. Whoever else wants
    /// the same meanwhile, in this process or another, waits and gets it from here.
    pub async fn fetch(
        &self,
        sources: &[Source],
        artifact: &Artifact,
        tell: Tell<'_>,
    ) -> Result<Handle, Error> {
        let promise = self.promise(sources, artifact).await?;
        self.keep(sources, artifact, promise, tell).await
    }

    /// The same for an artifact that sources may list or not: `None` where none does.
    pub async fn fetch_listed(
        &self,
        sources: &[Source],
        name: Name,
        tell: Tell<'_>,
    ) -> Result<Option<Handle>, Error> {
        let artifact = Artifact::named(name);
        match self.promise(sources, &artifact).await {
            Ok(promise) => {
                let kept = self.keep(sources, &artifact, promise, tell);
                kept.await.map(Some)
            }
            Err(error) if error.kind == Kind::NoArtifact => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the first source lists below a name that lists anything there. Sources that cannot be
    /// asked are passed over where another one answers.
    pub async fn listed_below(&self, sources: &[Source], above: &Name) -> Result<Vec<Name>, Error> {
        let mut away = None;
        for source in sources {
            match source.index(&self.0.web).await {
                Ok(index) => {
                    let names = index.iter().flat_map(Index::iter).map(|(name, _)| name);
                    let below: Vec<_> = names.filter(|name| name.is_below(above)).collect();
                    if !below.is_empty() {
                        return Ok(below.into_iter().cloned().collect());
                    }
                }
                Err(trouble) => away = Some(trouble.into_error()),
            }
        }
        away.map_or_else(|| Ok(Vec::new()), Err)
    }

    /// The objects of an add-on as its makers publish them. Their server vouches for them by its
    /// certificate; no digest of them is published.
    pub async fn published(&self, name: AddonName, version: &str) -> Result<String, Error> {
        let upstream = Source::upstream_at(addons::UPSTREAM);
        let upstream = upstream.map_err(|why| Error::new(Kind::NoAddon, why.to_string()))?;
        addons::fetched(&self.0.web, &upstream, name, version).await
    }

    /// What must be in an artifact, by what we know, what a source says, or what was last said.
    async fn promise(&self, sources: &[Source], artifact: &Artifact) -> Result<Promise, Error> {
        let name = &artifact.name;
        let error = match promised(artifact, sources, &self.0.web).await {
            Ok(promise) => return Ok(promise),
            Err(error) => error,
        };
        match self.remembered(name).await? {
            // Nobody can say what it should be now: what it was is the best there is.
            Some(entry) if matches!(error.kind, Kind::SourceAway | Kind::NoVersion) => {
                tracing::warn!("{name} is taken as it was last: {error}");
                Ok(Promise {
                    sha256: entry.sha256,
                    size: Some(entry.size),
                })
            }
            Some(_) | None => Err(error),
        }
    }

    async fn keep(
        &self,
        sources: &[Source],
        artifact: &Artifact,
        promise: Promise,
        tell: Tell<'_>,
    ) -> Result<Handle, Error> {
        let name = &artifact.name;
        let handle = loop {
            match self.look(promise.sha256).await? {
                Look::Here(handle) => break handle,
                Look::Absent => {
                    if let Some(handle) = self.bring(sources, name, promise, tell).await? {
                        break handle;
                    }
                }
                Look::Busy => {}
            }
            tokio::time::sleep(HELD).await;
        };
        if artifact.sha256.is_none() {
            self.remember(name.clone(), handle.entry).await?;
        }
        Ok(handle)
    }

    /// Fetches what is not here; `None` where somebody else is at it.
    async fn bring(
        &self,
        sources: &[Source],
        name: &Name,
        promise: Promise,
        tell: Tell<'_>,
    ) -> Result<Option<Handle>, Error> {
        let beside = self.0.root.join("parts").join(promise.sha256.to_string());
        let Some(part) = blocking(move || Part::claim(&beside)).await?? else {
            return Ok(None);
        };
        // Whoever held it before us may have just ended, or be about to.
        let here = match self.look(promise.sha256).await? {
            Look::Here(handle) => Some(Some(handle)),
            Look::Busy => Some(None),
            Look::Absent => None,
        };
        if let Some(here) = here {
            blocking(move || part.discard()).await??;
            return Ok(here);
        }
        self.make_room(promise.size.unwrap_or(0)).await?;
        let filling = Filling {
            name,
            promise,
            web: &self.0.web,
            tell,
            part: Some(part),
        };
        let part = filling.fill(sources).await?;
        let to = self.place(promise.sha256);
        let inner = Arc::clone(&self.0);
        blocking(move || {
            part.keep(&to)?;
            let metadata = std::fs::metadata(&to);
            let metadata = metadata.map_err(|error| unwritable("read", &to, &error))?;
            inner.trust(promise.sha256, stamp(&metadata));
            Ok::<_, Error>(())
        })
        .await??;
        let Look::Here(handle) = self.look(promise.sha256).await? else {
            return Ok(None);
        };
        self.make_room(0).await?;
        Ok(Some(handle))
    }

    /// Where the content of a digest is.
    fn place(&self, digest: Digest) -> PathBuf {
        let text = digest.to_string();
        let (first, rest) = text.split_at(2);
        self.0.root.join("sha256").join(first).join(rest)
    }

    /// What is here of a digest: whole, or not at all.
    async fn look(&self, digest: Digest) -> Result<Look, Error> {
        let path = self.place(digest);
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let looked = inner.look(digest, &path);
            looked.map_err(|error| unwritable("read", &path, &error))
        })
        .await?
    }

    async fn make_room(&self, more: u64) -> Result<(), Error> {
        let (root, bytes) = (self.0.root.clone(), self.0.limits.bytes);
        blocking(move || evict::evict(&root, bytes.saturating_sub(more))).await?
    }

    /// Where it is noted which digest a name had.
    fn note(&self, name: &Name) -> PathBuf {
        let key = Digest::of(name.as_str().as_bytes());
        self.0.root.join("names").join(key.to_string())
    }

    async fn remember(&self, name: Name, entry: Entry) -> Result<(), Error> {
        let to = self.note(&name);
        let file = to.file_name().unwrap_or_default().to_owned();
        let mut beside = std::ffi::OsString::from("name-");
        beside.push(file);
        let beside = self.0.root.join("parts").join(beside);
        blocking(move || {
            let mut index = Index::default();
            index.insert(name, entry);
            part::write_small(&beside, &to, &index.to_text())
        })
        .await?
    }

    /// Which digest a name had when it was last fetched; what we know by ourselves comes first.
    async fn remembered(&self, name: &Name) -> Result<Option<Entry>, Error> {
        let note = self.note(name);
        let text = blocking(move || std::fs::read(&note)).await?;
        // A note that cannot be read is as good as none: it is written anew.
        let index = text.ok().and_then(|text| Index::parse(&text).ok());
        Ok(index.and_then(|index| index.get(name)))
    }
}

impl Inner {
    fn look(&self, digest: Digest, path: &Path) -> std::io::Result<Look> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Look::Absent),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Look::Busy),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if !is_at(&file, path)? {
            return Ok(Look::Busy);
        }
        let seen = stamp(&file.metadata()?);
        if !self.trusts(digest, seen) {
            let (found, _) = part::digest_of(&mut file)?;
            if found != digest {
                tracing::warn!("{} was damaged and is removed", path.display());
                // Unless somebody else has mended it meanwhile.
                if is_at(&file, path)? {
                    std::fs::remove_file(path)?;
                }
                return Ok(Look::Absent);
            }
            self.trust(digest, seen);
        }
        // Who was used last is evicted last. A cache that only can be read serves as well.
        drop(file.set_times(FileTimes::new().set_accessed(SystemTime::now())));
        let (_, _, size, _, _) = seen;
        let entry = Entry {
            sha256: digest,
            size,
        };
        Ok(Look::Here(Handle {
            _held: file,
            path: path.to_owned(),
            entry,
        }))
    }

    fn trusts(&self, digest: Digest, seen: Stamp) -> bool {
        let good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        good.get(&digest) == Some(&seen)
    }

    fn trust(&self, digest: Digest, seen: Stamp) {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        good.insert(digest, seen);
    }
}

fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    (
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
    )
}
