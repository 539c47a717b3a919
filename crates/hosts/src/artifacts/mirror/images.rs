//! Image archives of Kubernetes that somebody has in a directory, seen as a mirror.

use super::super::kubernetes::{CONTROL_IMAGES, IMAGES, image};
use super::super::{Artifact, Platform, Source, blocking, fill::Tell};
use super::{Wish, index};
use crate::error::{Error, Kind};
use model::version::Version;
use std::path::Path;
use tempfile::TempDir;

/// A mirror of links, gone when dropped.
#[derive(Debug)]
pub struct Lent {
    pub(super) directory: TempDir,
    pub(super) wishes: Vec<Wish>,
}

impl Lent {
    /// The archives `NAME.tar` of a directory, as those of one version and platform. All that a
    /// cluster needs must be there.
    pub async fn images(
        from: &Path,
        version: Version,
        platform: Platform,
        tell: Tell<'_>,
    ) -> Result<Self, Error> {
        let from = from.to_owned();
        let lent = blocking(move || link(&from, version, platform)).await??;
        index(lent.directory.path(), tell).await?;
        Ok(lent)
    }

    /// Where they are to be fetched from.
    pub fn source(&self) -> Source {
        Source::Directory(self.directory.path().to_owned())
    }

    /// What is to be fetched.
    pub fn wishes(&self) -> &[Wish] {
        &self.wishes
    }
}

fn link(from: &Path, version: Version, platform: Platform) -> Result<Lent, Error> {
    let failed = |what: &str, error: std::io::Error| {
        let what = format!("could not {what}: {error}");
        Error::new(Kind::CacheBroken, what)
    };
    let directory = TempDir::new().map_err(|error| failed("make a directory", error))?;
    let mut wishes = Vec::new();
    for name in CONTROL_IMAGES.into_iter().chain(IMAGES) {
        let archive = from.join(format!("{name}.tar"));
        let whole = std::path::absolute(&archive).ok().filter(|at| at.is_file());
        let named = image(version, platform, name);
        let (Some(whole), Some(named)) = (whole, named) else {
            let what = format!("there is no image archive {}", archive.display());
            return Err(Error::new(Kind::NoArtifact, what));
        };
        let to = directory.path().join(named.as_str());
        let parent = to.parent().unwrap_or(directory.path());
        let made = std::fs::create_dir_all(parent);
        let linked = made.and_then(|()| std::os::unix::fs::symlink(&whole, &to));
        linked.map_err(|error| failed("link an image archive", error))?;
        wishes.push(Wish::Named(Artifact::named(named)));
    }
    Ok(Lent { directory, wishes })
}
