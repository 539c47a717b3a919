//! Snapshots of a cluster in a directory of its own: one file for each.

use super::{Coming, Error, Kind, Sealed};
use model::id::TaskId;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use tokio::fs::{self, File};

/// What the name of a file ends with that is not whole.
const PART: &str = ".part";

#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The names of all files, and their sizes.
    pub(super) async fn list(&self) -> Result<Vec<(String, u64)>, Error> {
        let mut entries = match fs::read_dir(&self.0).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("read", &error)),
        };
        let mut named = Vec::new();
        loop {
            let next = entries.next_entry().await;
            let Some(entry) = next.map_err(|error| self.failed("read", &error))? else {
                return Ok(named);
            };
            let size = entry.metadata().await.map(|seen| seen.len());
            let name = entry.file_name().into_string();
            named.extend(name.ok().zip(size.ok()));
        }
    }

    pub(super) async fn begin(&self, by: TaskId) -> Result<Coming, Error> {
        let unwritable = |error: std::io::Error| self.failed("write", &error);
        fs::create_dir_all(&self.0).await.map_err(unwritable)?;
        let private = std::fs::Permissions::from_mode(0o700);
        fs::set_permissions(&self.0, private)
            .await
            .map_err(unwritable)?;
        let mut entries = fs::read_dir(&self.0).await.map_err(unwritable)?;
        while let Some(entry) = entries.next_entry().await.map_err(unwritable)? {
            if entry.file_name().to_string_lossy().ends_with(PART) {
                fs::remove_file(entry.path()).await.map_err(unwritable)?;
            }
        }
        let path = self.0.join(format!("{by}{PART}"));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path).await.map_err(unwritable)?;
        let path = Some(path);
        Ok(Coming { file, path })
    }

    pub(super) async fn keep(&self, coming: Coming, name: &str) -> Result<(), Error> {
        let unwritable = |error: std::io::Error| self.failed("write", &error);
        let Coming { file, path } = coming;
        file.sync_all().await.map_err(unwritable)?;
        if let Some(path) = path {
            let named = fs::rename(&path, self.0.join(name)).await;
            named.map_err(unwritable)?;
        }
        self.settle().await
    }

    pub(super) async fn open(&self, name: &str) -> Result<Sealed, Error> {
        let path = self.0.join(name);
        let file = File::open(&path).await.map_err(|error| {
            let what = format!("could not read {}: {error}", path.display());
            Error::new(Kind::Damaged, what)
        })?;
        Ok(Box::new(file))
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        match fs::remove_file(self.0.join(name)).await {
            Ok(()) => self.settle().await,
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed("write", &error)),
        }
    }

    pub(super) fn told(&self) -> String {
        self.0.display().to_string()
    }

    /// Sees to it that names survive a power cut.
    async fn settle(&self) -> Result<(), Error> {
        let unwritable = |error: std::io::Error| self.failed("write", &error);
        let directory = File::open(&self.0).await.map_err(unwritable)?;
        directory.sync_all().await.map_err(unwritable)
    }

    fn failed(&self, verb: &str, error: &std::io::Error) -> Error {
        let what = format!("could not {verb} {}: {error}", self.0.display());
        Error::new(Kind::Unwritable, what)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shelf;
    use super::*;
    use model::id::ClusterId;
    use model::id::Origin;
    use model::snapshot::SnapshotId;
    use model::time::Timestamp;
    use model::version::Version;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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
        let cluster = ClusterId::derive(origin("edge"));
        let vault = "vault".parse().unwrap();
        let shelf = Shelf::directory(root.path(), Some(&vault), cluster);
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
        let at = root.path().join("vault").join(cluster.to_string());
        assert!(at.join(&kept[0].name).exists());
        let mut bytes = Vec::new();
        let mut open = shelf.open(&kept[0]).await.unwrap();
        open.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, b"sealed");
        let unknown = shelf.find(&id(3)).await.unwrap_err();
        assert_eq!(unknown.kind, Kind::Unknown);
        shelf.remove(&kept[0]).await.unwrap();
        shelf.remove(&kept[0]).await.unwrap();
        assert_eq!(shelf.list().await.unwrap(), kept[1..]);
    }

    #[tokio::test]
    async fn what_is_half_there_is_not_listed_and_goes_with_the_next() {
        let root = tempfile::tempdir().unwrap();
        let shelf = Shelf::directory(root.path(), None, ClusterId::derive(origin("edge")));
        let lost = shelf.begin(TaskId::derive(origin("lost"))).await.unwrap();
        let mode = lost.file.metadata().await.unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(lost);
        assert_eq!(shelf.list().await.unwrap(), []);
        let directory = root
            .path()
            .join(ClusterId::derive(origin("edge")).to_string());
        std::fs::write(directory.join("notes.txt"), "ours").unwrap();
        put(&shelf, &id(1), None, "a").await;
        let names = std::fs::read_dir(&directory).unwrap();
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
        let cluster = ClusterId::derive(origin("edge"));
        std::fs::write(root.path().join(cluster.to_string()), "in the way").unwrap();
        let shelf = Shelf::directory(root.path(), None, cluster);
        let refused = shelf.begin(TaskId::derive(origin("a"))).await.unwrap_err();
        assert_eq!(refused.kind, Kind::Unwritable);
    }
}
