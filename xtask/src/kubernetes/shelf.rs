//! Where versions are kept: built beside their place, renamed, and looked at before they are used.

use std::fs;
use std::path::{Path, PathBuf};

use super::{LOOSE, MADE, write};
use crate::mirror::{self, Look};
use anyhow::{Context, Result, ensure};

/// The file that tells how a directory was made.
const RECIPE: &str = ".recipe";

/// Where one version of something is kept: its directory in the cache, with its lock and what is
/// being built beside it.
pub(crate) struct Shelf {
    place: PathBuf,
    /// The mark of how it is built now.
    recipe: String,
}

impl Shelf {
    pub(crate) fn new(place: PathBuf, recipe: String) -> Self {
        Self { place, recipe }
    }

    /// A path beside it.
    fn beside(&self, end: &str) -> PathBuf {
        let name = self.place.file_name().unwrap_or_default();
        self.place
            .with_file_name(format!("{}.{end}", name.to_string_lossy()))
    }

    fn mirror(&self) -> PathBuf {
        self.place.join(MADE)
    }

    fn programs(&self) -> PathBuf {
        self.place.join(LOOSE)
    }

    /// What is there, when it is whole and was built as it would be now.
    pub(crate) fn check(&self, look: Look) -> Result<mirror::Index> {
        let index = mirror::check(&self.mirror(), look)?;
        let recipe = fs::read_to_string(self.mirror().join(RECIPE)).unwrap_or_default();
        ensure!(recipe == self.recipe, "it was built in another way");
        if self.programs().exists() && ours(&self.programs()) {
            mirror::check(&self.programs(), look)?;
        }
        Ok(index)
    }

    /// Has what belongs there built, unless it is there: in a directory that is given.
    pub(crate) fn fill(&self, build: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let _lock = mirror::locked(&self.beside("lock"))?;
        if self.mirror().exists() {
            match self.check(Look::Digests) {
                Ok(_) => return Ok(()),
                Err(why) => println!("{} cannot be used: {why:#}", self.place.display()),
            }
        }
        self.sweep()?;
        // A name of its own: whatever a killed run left behind writes elsewhere.
        let work = self.beside(&format!("part-{}", std::process::id()));
        let kept = build(&work).and_then(|()| self.keep(&work));
        let cleared = fs::remove_dir_all(&work);
        kept?;
        cleared.with_context(|| format!("could not clear {}", work.display()))
    }

    /// Removes what runs left that were killed.
    fn sweep(&self) -> Result<()> {
        let above = self.place.parent().context("the cache has no place")?;
        let prefix = self.beside("part-");
        let prefix = prefix.file_name().unwrap_or_default().to_string_lossy();
        for entry in fs::read_dir(above)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&*prefix) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Lists what was made, and has it take its place; the mirror last, which vouches for all.
    fn keep(&self, work: &Path) -> Result<()> {
        fs::create_dir_all(&self.place)
            .with_context(|| format!("could not make {}", self.place.display()))?;
        for (name, place) in [(LOOSE, self.programs()), (MADE, self.mirror())] {
            if !ours(&place) {
                println!("{} is not of our making and stays", place.display());
                continue;
            }
            let made = work.join(name);
            if !made.exists() {
                continue;
            }
            let index = mirror::list(&made)?;
            write(&made.join(RECIPE), self.recipe.as_bytes())?;
            mirror::write(&made, &index)?;
            let failed = || format!("could not make {}", place.display());
            // Moved away whole: half of it could be taken for somebody else's.
            if place.exists() {
                fs::rename(&place, work.join(format!("old-{name}"))).with_context(failed)?;
            }
            fs::rename(&made, &place).with_context(failed)?;
        }
        self.check(Look::Sizes).map(drop)
    }

    /// Brings all of it into a mirror, instead of what is there below a name.
    pub(crate) fn put_into(&self, instead: &str, to: &Path) -> Result<()> {
        let index = mirror::read(&self.mirror())?;
        mirror::merge(&self.mirror(), &index, instead, to)
    }
}

/// Whether a directory was made here or is not there: others' are not replaced.
fn ours(directory: &Path) -> bool {
    !directory.exists() || directory.join(RECIPE).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_in_another_way_or_was_damaged_is_refused() {
        let place = std::env::temp_dir().join(format!("xtask-shelf-{}", std::process::id()));
        let shelf = Shelf::new(place.join("v1.0.0"), "as now".to_owned());
        let work = shelf.beside("part-1");
        let fill = || {
            for name in ["mirror", "programs"] {
                fs::create_dir_all(work.join(name)).unwrap();
                fs::write(work.join(name).join("a"), "content").unwrap();
            }
            shelf.keep(&work).unwrap();
            shelf.sweep().unwrap();
        };
        fill();
        fill();
        assert_eq!(shelf.check(Look::Digests).unwrap().len(), 1);
        let spoilt = |name: &str, text: &str| {
            fs::write(shelf.place.join(name), text).unwrap();
            let why = shelf.check(Look::Digests).unwrap_err().to_string();
            fill();
            why
        };
        let damaged = ["mirror/a", "programs/a"].map(|name| spoilt(name, "contenT"));
        let older = spoilt("mirror/.recipe", "older");
        fs::create_dir_all(&work).unwrap();
        shelf.sweep().unwrap();
        let left = fs::read_dir(&place).unwrap().count();
        fs::remove_dir_all(&place).unwrap();
        for why in damaged {
            assert!(why.starts_with("a has the SHA-256"), "{why}");
        }
        assert_eq!(older, "it was built in another way");
        assert_eq!(left, 1, "what a killed run left is swept away");
    }

    #[test]
    fn what_others_put_there_stays() {
        let place = std::env::temp_dir().join(format!("xtask-others-{}", std::process::id()));
        let shelf = Shelf::new(place.join("v1.0.0"), "as now".to_owned());
        let work = shelf.beside("part-1");
        for directory in [
            &work.join("mirror"),
            &work.join("programs"),
            &shelf.programs(),
        ] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(shelf.programs().join("etcd"), "theirs").unwrap();
        fs::write(work.join("programs/etcd"), "ours").unwrap();
        let kept = shelf.keep(&work);
        let etcd = fs::read_to_string(shelf.programs().join("etcd"));
        fs::remove_dir_all(&place).unwrap();
        kept.unwrap();
        assert_eq!(etcd.unwrap(), "theirs");
    }
}
