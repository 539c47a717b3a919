//! Reading from the cache for others, such as a server that gives artifacts to hosts.

use super::trouble::unwritable;
use super::{Artifact, Cache, Digest, Index, Name, blocking, pins};
use crate::error::Error;
use std::fs::File;

/// What a cache can give, by digest and by name. It asks no source.
#[derive(Debug, Clone)]
pub struct Shelf(Cache);

/// What a cache can give.
pub fn serve_names(cache: &Cache) -> Shelf {
    Shelf(cache.clone())
}

impl Shelf {
    /// The file that a text names, by the 64 digits of its SHA-256 or by its name, and its bytes;
    /// `None` where it is not here. What is given is whole and is what was promised.
    pub async fn open(&self, key: &str) -> Result<Option<(File, u64)>, Error> {
        let Some(digest) = self.digest(key).await? else {
            return Ok(None);
        };
        let found = self.0.find(digest).await?;
        Ok(found.map(|handle| {
            let size = handle.size();
            (handle.into_file(), size)
        }))
    }

    async fn digest(&self, key: &str) -> Result<Option<Digest>, Error> {
        if let Ok(digest) = key.parse() {
            return Ok(Some(digest));
        }
        let Ok(name) = key.parse::<Name>() else {
            return Ok(None);
        };
        if let Some(digest) = Artifact::named(name.clone()).sha256 {
            return Ok(Some(digest));
        }
        Ok(self.0.remembered(&name).await?.map(|entry| entry.sha256))
    }

    /// Everything that is here and has a name: the index of a mirror that this could be.
    pub async fn list(&self) -> Result<Index, Error> {
        let notes = self.0.notes();
        let noted = blocking(move || {
            let read = (|| {
                let mut noted = Vec::new();
                for entry in std::fs::read_dir(&notes)? {
                    // One that goes meanwhile, or that cannot be read, names nothing.
                    noted.extend(std::fs::read(entry?.path()).ok());
                }
                Ok(noted)
            })();
            read.map_err(|error: std::io::Error| unwritable("read", &notes, &error))
        })
        .await??;
        let noted = noted.iter().filter_map(|text| Index::parse(text).ok());
        let mut known = Index::default();
        for index in noted {
            for (name, entry) in index.iter() {
                known.insert(name.clone(), entry);
            }
        }
        for pin in pins::PINS {
            if let (Ok(name), Ok(sha256)) = (pin.name.parse(), pin.sha256.parse()) {
                let size = pin.size;
                known.insert(name, super::Entry { sha256, size });
            }
        }
        let mut here = Index::default();
        for (name, entry) in known.iter() {
            if self.0.has(entry.sha256).await? {
                here.insert(name.clone(), entry);
            }
        }
        Ok(here)
    }
}
