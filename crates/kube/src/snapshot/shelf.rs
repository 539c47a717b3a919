//! Where sealed snapshots are kept: a place for each cluster, in a directory or in a bucket.
//!
//! All that is known of a snapshot is in its name, so that a list needs no other place, and
//! nothing needs to be opened to be listed: its id, which Kubernetes it is of, before which it was
//! taken, and the task that took it. It gets that name when all of it is there.

mod bucket;
mod directory;

use super::error::{Error, Kind};
use super::s3::Store;
use bucket::Bucket;
use directory::Directory;
use model::id::{ClusterId, TaskId};
use model::name::Name;
use model::snapshot::{Snapshot, SnapshotId};
use model::version::Version;
use std::path::{Path, PathBuf};
use tokio::fs::File;
use tokio::io::AsyncRead;

/// What the name of a snapshot ends with.
const ENDING: &str = ".etcd";

/// Stands for what is not said.
const NONE: &str = "-";

/// The snapshots of one cluster.
#[derive(Debug)]
pub struct Shelf(Place);

#[derive(Debug)]
enum Place {
    Directory(Directory),
    Bucket(Box<Bucket>),
}

/// A snapshot that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What is known of it.
    pub snapshot: Snapshot,
    /// The task that took it.
    pub by: TaskId,
    /// What it is called where it is.
    pub name: String,
}

/// A snapshot on its way in.
#[derive(Debug)]
pub struct Coming {
    /// Where its bytes go.
    pub file: File,
    /// What that is called until it is whole; a file without a name is gone with us.
    path: Option<PathBuf>,
}

/// The bytes of a snapshot, as they are kept.
pub type Sealed = Box<dyn AsyncRead + Send + Unpin>;

impl Shelf {
    /// The shelf of a cluster below the directory that all snapshots are in.
    pub fn directory(root: &Path, name: Option<&Name>, cluster: ClusterId) -> Self {
        let root = name.map_or_else(|| root.to_owned(), |name| root.join(name.as_str()));
        Self(Place::Directory(Directory::new(
            root.join(cluster.to_string()),
        )))
    }

    /// The shelf of a cluster in a bucket; what is on its way there is sealed in `root`.
    pub fn bucket(root: &Path, store: Store, prefix: Option<&str>, cluster: ClusterId) -> Self {
        let prefix = prefix.map_or_else(String::new, |prefix| format!("{prefix}/"));
        let prefix = format!("{prefix}{cluster}/");
        Self(Place::Bucket(Box::new(Bucket::new(
            root.to_owned(),
            store,
            prefix,
        ))))
    }

    /// All that is on it, the oldest first.
    pub async fn list(&self) -> Result<Vec<Kept>, Error> {
        let named = match &self.0 {
            Place::Directory(directory) => directory.list().await?,
            Place::Bucket(bucket) => bucket.list().await?,
        };
        let mut kept: Vec<_> = named
            .into_iter()
            .filter_map(|(name, size)| read(name, size))
            .collect();
        kept.sort_by(|one, other| one.snapshot.id.cmp(&other.snapshot.id));
        Ok(kept)
    }

    /// One that is on it.
    pub async fn find(&self, id: &SnapshotId) -> Result<Kept, Error> {
        let kept = self.list().await?;
        let found = kept.into_iter().find(|kept| kept.snapshot.id == *id);
        found.ok_or_else(|| {
            let what = format!("there is no snapshot {id} in {}", self.told());
            Error::new(Kind::Unknown, what)
        })
    }

    /// Makes room for one more. What earlier attempts left half done is removed: nobody else
    /// writes here.
    pub async fn begin(&self, by: TaskId) -> Result<Coming, Error> {
        match &self.0 {
            Place::Directory(directory) => directory.begin(by).await,
            Place::Bucket(bucket) => bucket.begin().await,
        }
    }

    /// Gives a snapshot its name, now that it is whole.
    pub async fn keep(
        &self,
        coming: Coming,
        (id, version, before, by): (&SnapshotId, Version, Option<Version>, TaskId),
    ) -> Result<(), Error> {
        let before = before.map_or_else(|| NONE.to_owned(), |before| before.to_string());
        let name = format!("{id}_{version}_{before}_{by}{ENDING}");
        match &self.0 {
            Place::Directory(directory) => directory.keep(coming, &name).await,
            Place::Bucket(bucket) => bucket.keep(coming, &name).await,
        }
    }

    /// The bytes of one.
    pub async fn open(&self, kept: &Kept) -> Result<Sealed, Error> {
        match &self.0 {
            Place::Directory(directory) => directory.open(&kept.name).await,
            Place::Bucket(bucket) => bucket.open(&kept.name).await,
        }
    }

    /// Removes one; one that is gone already is no trouble.
    pub async fn remove(&self, kept: &Kept) -> Result<(), Error> {
        match &self.0 {
            Place::Directory(directory) => directory.remove(&kept.name).await,
            Place::Bucket(bucket) => bucket.remove(&kept.name).await,
        }
    }

    /// Where it is, in words.
    fn told(&self) -> String {
        match &self.0 {
            Place::Directory(directory) => directory.told(),
            Place::Bucket(bucket) => bucket.told(),
        }
    }
}

/// A file that has no name, for what is on its way: when we end, it is gone.
pub fn unnamed(root: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut made = std::fs::DirBuilder::new();
    made.recursive(true).mode(0o700).create(root)?;
    tempfile::tempfile_in(root)
}

/// What a name says; nothing of what is not ours.
fn read(name: String, size: u64) -> Option<Kept> {
    let mut parts = name.strip_suffix(ENDING)?.split('_');
    let id = parts.next()?.parse().ok()?;
    let version = parts.next()?.parse().ok()?;
    let before = match parts.next()? {
        NONE => None,
        before => Some(before.parse().ok()?),
    };
    let by = parts.next()?.parse().ok()?;
    let snapshot = Snapshot {
        id,
        size,
        version,
        before,
    };
    let whole = parts.next().is_none();
    whole.then_some(Kept { snapshot, by, name })
}
