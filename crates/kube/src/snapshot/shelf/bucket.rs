//! Snapshots of a cluster in a bucket, below a prefix of its own: one object for each.
//!
//! An object cannot get another name, and the name of a snapshot is known when all of it was
//! seen. So it is sealed into a file without a name first, and sent from there: a part that was
//! lost on its way is there to be sent again.

use super::{Coming, Error, Kind, Sealed, Store, unnamed};
use std::path::PathBuf;
use tokio::fs::File;
use tokio_util::io::StreamReader;

#[derive(Debug)]
pub(super) struct Bucket {
    root: PathBuf,
    store: Store,
    /// What the names of all objects begin with, its last slash included.
    prefix: String,
}

impl Bucket {
    pub(super) const fn new(root: PathBuf, store: Store, prefix: String) -> Self {
        Self {
            root,
            store,
            prefix,
        }
    }

    /// The names of all objects without what all begin with, and their sizes.
    pub(super) async fn list(&self) -> Result<Vec<(String, u64)>, Error> {
        let objects = self.store.list(&self.prefix).await?;
        let named = objects.into_iter().filter_map(|object| {
            let name = object.key.strip_prefix(&self.prefix)?;
            Some((name.to_owned(), object.size))
        });
        Ok(named.collect())
    }

    /// Takes away what was never finished, which also shows that the bucket can be used.
    pub(super) async fn begin(&self) -> Result<Coming, Error> {
        self.store.tidy(&self.prefix).await?;
        let file = unnamed(&self.root).map_err(|error| {
            let what = format!("could not write {}: {error}", self.root.display());
            Error::new(Kind::Unwritable, what)
        })?;
        Ok(Coming {
            file: File::from_std(file),
            path: None,
        })
    }

    pub(super) async fn keep(&self, mut coming: Coming, name: &str) -> Result<(), Error> {
        let key = self.key(name);
        self.store.write(&key, &mut coming.file).await
    }

    pub(super) async fn open(&self, name: &str) -> Result<Sealed, Error> {
        let pieces = self.store.read(&self.key(name)).await?;
        Ok(Box::new(StreamReader::new(pieces)))
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        self.store.remove(&self.key(name)).await
    }

    pub(super) fn told(&self) -> String {
        format!("{} of {}", self.prefix, self.store.told())
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}
