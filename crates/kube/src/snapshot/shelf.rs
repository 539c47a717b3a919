//! Where sealed snapshots are kept: a directory of each cluster, one file for each.
//!
//! All that is known of a snapshot is in the name of its file, so that a list needs no other
//! place, and no file needs to be opened to be listed: its id, which Kubernetes it is of, before
//! which it was taken, and the task that took it. A file gets its name when all of it is there.

use super::error::{Error, Kind};
use model::id::{ClusterId, TaskId};
use model::snapshot::{Destination, Snapshot, SnapshotId};
use model::version::Version;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio::fs::{self, File};

/// What the name of a snapshot ends with.
const ENDING: &str = ".etcd";

/// What the name of a file ends with that is not whole.
const PART: &str = ".part";

/// Stands for what is not said.
const NONE: &str = "-";

/// The snapshots of one cluster.
#[derive(Debug, Clone)]
pub struct Shelf {
    directory: PathBuf,
}

/// A snapshot, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What is known of it.
    pub snapshot: Snapshot,
    /// The task that took it.
    pub by: TaskId,
    /// Its file.
    pub path: PathBuf,
}

/// A snapshot on its way in.
#[derive(Debug)]
pub struct Coming {
    /// Where its bytes go.
    pub file: File,
    path: PathBuf,
}

impl Shelf {
    /// The shelf of a cluster, below the directory that all snapshots are in.
    pub fn of(root: &Path, to: &Destination, cluster: ClusterId) -> Self {
        let Destination::Directory { name } = to;
        let root = match name {
            Some(name) => root.join(name.as_str()),
            None => root.to_owned(),
        };
        Self {
            directory: root.join(cluster.to_string()),
        }
    }

    /// All that is on it, the oldest first.
    pub async fn list(&self) -> Result<Vec<Kept>, Error> {
        let mut entries = match fs::read_dir(&self.directory).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("read", &error)),
        };
        let mut kept = Vec::new();
        loop {
            let next = entries.next_entry().await;
            let Some(entry) = next.map_err(|error| self.failed("read", &error))? else {
                break;
            };
            let size = entry.metadata().await.map(|seen| seen.len());
            let name = entry.file_name();
            if let (Some(name), Ok(size)) = (name.to_str(), size) {
                kept.extend(read(name, size).map(|(snapshot, by)| Kept {
                    snapshot,
                    by,
                    path: entry.path(),
                }));
            }
        }
        kept.sort_by(|one, other| one.snapshot.id.cmp(&other.snapshot.id));
        Ok(kept)
    }

    /// One that is on it.
    pub async fn find(&self, id: &SnapshotId) -> Result<Kept, Error> {
        let kept = self.list().await?;
        let found = kept.into_iter().find(|kept| kept.snapshot.id == *id);
        found.ok_or_else(|| {
            let what = format!("there is no snapshot {id} in {}", self.directory.display());
            Error::new(Kind::Unknown, what)
        })
    }

    /// Makes room for one more. What earlier attempts left half done is removed: nobody else
    /// writes here.
    pub async fn begin(&self, by: TaskId) -> Result<Coming, Error> {
        let unwritable = |error: std::io::Error| self.failed("write", &error);
        fs::create_dir_all(&self.directory)
            .await
            .map_err(unwritable)?;
        let private = std::fs::Permissions::from_mode(0o700);
        fs::set_permissions(&self.directory, private)
            .await
            .map_err(unwritable)?;
        let mut entries = fs::read_dir(&self.directory).await.map_err(unwritable)?;
        while let Some(entry) = entries.next_entry().await.map_err(unwritable)? {
            if entry.file_name().to_string_lossy().ends_with(PART) {
                fs::remove_file(entry.path()).await.map_err(unwritable)?;
            }
        }
        let path = self.directory.join(format!("{by}{PART}"));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path).await.map_err(unwritable)?;
        Ok(Coming { file, path })
    }

    /// Gives a snapshot its name, now that it is whole.
    pub async fn keep(
        &self,
        coming: Coming,
        (id, version, before, by): (&SnapshotId, Version, Option<Version>, TaskId),
    ) -> Result<(), Error> {
        let unwritable = |error: std::io::Error| self.failed("write", &error);
        let Coming { file, path } = coming;
        file.sync_all().await.map_err(unwritable)?;
        let before = before.map_or_else(|| NONE.to_owned(), |before| before.to_string());
        let name = format!("{id}_{version}_{before}_{by}{ENDING}");
        fs::rename(&path, self.directory.join(name))
            .await
            .map_err(unwritable)?;
        self.settle().await
    }

    /// Removes one; one that is gone already is no trouble.
    pub async fn remove(&self, kept: &Kept) -> Result<(), Error> {
        match fs::remove_file(&kept.path).await {
            Ok(()) => self.settle().await,
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed("write", &error)),
        }
    }

    /// Sees to it that names survive a power cut.
    async fn settle(&self) -> Result<(), Error> {
        let unwritable = |error: std::io::Error| self.failed("write", &error);
        let directory = File::open(&self.directory).await.map_err(unwritable)?;
        directory.sync_all().await.map_err(unwritable)
    }

    fn failed(&self, verb: &str, error: &std::io::Error) -> Error {
        let what = format!("could not {verb} {}: {error}", self.directory.display());
        Error::new(Kind::Unwritable, what)
    }
}

/// What the name of a file says; nothing of a file that is not ours.
fn read(name: &str, size: u64) -> Option<(Snapshot, TaskId)> {
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
    parts.next().is_none().then_some((snapshot, by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::Origin;
    use model::time::Timestamp;
    use tokio::io::AsyncWriteExt as _;

    fn origin(name: &str) -> Origin<'_> {
        Origin {
            parent: "test",
            name,
            ordinal: 0,
            incarnation: 0,
        }
    }

    fn id(second: i64) -> SnapshotId {
        let at = Timestamp::from_millis(1_767_225_600_000 + second * 1_000);
        SnapshotId::of(at, "0a1b2c3d").unwrap()
    }

    async fn put(shelf: &Shelf, id: &SnapshotId, before: Option<Version>, by: &str) {
        let by = TaskId::derive(origin(by));
        let mut coming = shelf.begin(by).await.unwrap();
        coming.file.write_all(b"sealed").await.unwrap();
        let version = "v1.34.4".parse().unwrap();
        let told = (id, version, before, by);
        shelf.keep(coming, told).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_kept_is_listed_by_its_age_and_found_by_its_id() {
        let root = tempfile::tempdir().unwrap();
        let to = Destination::Directory {
            name: Some("vault".parse().unwrap()),
        };
        let cluster = ClusterId::derive(origin("edge"));
        let shelf = Shelf::of(root.path(), &to, cluster);
        assert_eq!(shelf.list().await.unwrap(), []);
        let before = Some("v1.35.8".parse().unwrap());
        put(&shelf, &id(2), before, "b").await;
        put(&shelf, &id(1), None, "a").await;
        let kept = shelf.list().await.unwrap();
        let told: Vec<_> = kept
            .iter()
            .map(|kept| {
                (
                    kept.snapshot.id.clone(),
                    kept.snapshot.size,
                    kept.snapshot.before,
                )
            })
            .collect();
        assert_eq!(told, [(id(1), 6, None), (id(2), 6, before)]);
        assert_eq!(shelf.find(&id(2)).await.unwrap(), kept[1]);
        assert!(kept[0].path.starts_with(root.path().join("vault")));
        let unknown = shelf.find(&id(3)).await.unwrap_err();
        assert_eq!(unknown.kind, Kind::Unknown);
        shelf.remove(&kept[0]).await.unwrap();
        shelf.remove(&kept[0]).await.unwrap();
        assert_eq!(shelf.list().await.unwrap(), kept[1..]);
    }

    #[tokio::test]
    async fn what_is_half_there_is_not_listed_and_goes_with_the_next() {
        let root = tempfile::tempdir().unwrap();
        let to = Destination::Directory { name: None };
        let shelf = Shelf::of(root.path(), &to, ClusterId::derive(origin("edge")));
        let lost = shelf.begin(TaskId::derive(origin("lost"))).await.unwrap();
        let mode = lost.file.metadata().await.unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(lost);
        assert_eq!(shelf.list().await.unwrap(), []);
        std::fs::write(shelf.directory.join("notes.txt"), "ours").unwrap();
        put(&shelf, &id(1), None, "a").await;
        let names = std::fs::read_dir(&shelf.directory).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let task = TaskId::derive(origin("a"));
        let kept = format!("{}_v1.34.4_-_{task}.etcd", id(1));
        assert_eq!(names, [kept, "notes.txt".to_owned()]);
        assert_eq!(shelf.list().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_place_that_is_no_directory_is_told() {
        let root = tempfile::tempdir().unwrap();
        let to = Destination::Directory { name: None };
        let cluster = ClusterId::derive(origin("edge"));
        std::fs::write(root.path().join(cluster.to_string()), "in the way").unwrap();
        let shelf = Shelf::of(root.path(), &to, cluster);
        let refused = shelf.begin(TaskId::derive(origin("a"))).await.unwrap_err();
        assert_eq!(refused.kind, Kind::Unwritable);
    }
}
