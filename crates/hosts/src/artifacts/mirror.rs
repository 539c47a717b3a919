//! Mirrors: directories of artifacts with an index, which are sources where there is no network.
//!
//! A mirror is a plain directory: it can be copied, put on a disk, or served by any web server.
//! Each file gets its place when it is whole, and the index is written last, so whoever was
//! interrupted starts again with the same words and goes on where it ended.

mod images;
mod objects;
mod walk;

pub use images::Lent;
pub use walk::{Found, index, verify};

use super::fill::{Filling, Promise, Tell, promised};
use super::index::{Entry, FILE, Index};
use super::name::NotAName;
use super::part::{self, HELD, Part};
use super::trouble::{Trouble, unwritable};
use super::web::{Patience, Web};
use super::{Artifact, Name, Source, blocking, fill};
use crate::error::{Error, Kind};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// Where files are on their way, in a mirror; no artifact has such a name.
const PARTS: &str = ".parts";

/// What should be in a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// One artifact.
    Named(Artifact),
    /// Everything that the sources list below this name, which ends with a slash as it is written.
    Below(Name),
}

impl std::str::FromStr for Wish {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        match text.strip_suffix('/') {
            Some(name) => name.parse().map(Self::Below),
            None => text.parse().map(Artifact::named).map(Self::Named),
        }
    }
}

/// What became of the wishes.
#[derive(Debug, Default)]
pub struct Made {
    /// What was fetched.
    pub added: Vec<(Name, Entry)>,
    /// What was there already, and is good.
    pub kept: Vec<(Name, Entry)>,
    /// What could not be had.
    pub failed: Vec<(Name, Error)>,
}

/// Fetches artifacts into a mirror, and lists them in its index beside those it had.
///
/// May be dropped at any time, and called again to go on. What cannot be had keeps nothing else
/// from being fetched.
pub async fn create(
    to: &Path,
    sources: &[Source],
    wishes: &[Wish],
    patience: Patience,
    tell: Tell<'_>,
) -> Result<Made, Error> {
    let web = Web::new(patience)?;
    let artifacts = resolve(wishes, sources, &web).await?;
    let mut made = Made::default();
    for artifact in artifacts {
        match add(to, sources, &artifact, &web, tell).await {
            Ok((true, entry)) => made.added.push((artifact.name, entry)),
            Ok((false, entry)) => made.kept.push((artifact.name, entry)),
            // Nothing else will go better where nothing can be written.
            Err(error) if error.kind == Kind::CacheBroken => return Err(error),
            Err(error) => made.failed.push((artifact.name, error)),
        }
    }
    let listed: Vec<(Name, Entry)> = made.added.iter().chain(&made.kept).cloned().collect();
    if !listed.is_empty() {
        let to = to.to_owned();
        blocking(move || list_more(&to, listed)).await??;
    }
    Ok(made)
}

/// What a source says it holds.
pub async fn list(source: &Source, patience: Patience) -> Result<Index, Error> {
    let web = Web::new(patience)?;
    let index = source.index(&web).await.map_err(|trouble| {
        let error = trouble.into_error();
        Error::new(error.kind, format!("cannot use {source}: {}", error.what))
    })?;
    index.ok_or_else(|| {
        let what = format!("{source} is no mirror: it has no {FILE}");
        Error::new(Kind::BadIndex, what)
    })
}

/// The artifacts that are wished for, each once.
async fn resolve(wishes: &[Wish], sources: &[Source], web: &Web) -> Result<Vec<Artifact>, Error> {
    let mut artifacts = BTreeMap::new();
    for wish in wishes {
        match wish {
            Wish::Named(artifact) => {
                artifacts.insert(artifact.name.clone(), artifact.clone());
            }
            Wish::Below(above) => {
                let found = below(above, sources, web).await?;
                artifacts.extend(found.into_iter().map(|found| (found.name.clone(), found)));
            }
        }
    }
    Ok(artifacts.into_values().collect())
}

/// What the sources list below a name.
async fn below(above: &Name, sources: &[Source], web: &Web) -> Result<Vec<Artifact>, Error> {
    let mut found = Vec::new();
    let mut met = Vec::new();
    for source in sources {
        match source.index(web).await {
            Ok(Some(index)) => {
                let names = index.iter().map(|(name, _)| name);
                let inside = names.filter(|name| name.is_below(above));
                found.extend(inside.cloned().map(Artifact::named));
                met.push((source, Trouble::Absent("it lists nothing there".to_owned())));
            }
            Ok(None) => met.push((source, Trouble::Absent("it has no index".to_owned()))),
            Err(trouble) => met.push((source, trouble)),
        }
    }
    if found.is_empty() {
        return Err(super::trouble::verdict(above, &met));
    }
    Ok(found)
}

/// Brings one artifact into a mirror; answers whether it had to be fetched.
async fn add(
    to: &Path,
    sources: &[Source],
    artifact: &Artifact,
    web: &Web,
    tell: Tell<'_>,
) -> Result<(bool, Entry), Error> {
    let name = &artifact.name;
    let promise = promised(artifact, sources, web).await?;
    let place = to.join(name.as_str());
    let beside = to.join(PARTS).join(promise.sha256.to_string());
    loop {
        let claim = beside.clone();
        let Some(part) = blocking(move || Part::claim(&claim)).await?? else {
            // Somebody else makes the same mirror, and may be done with it soon.
            tokio::time::sleep(HELD).await;
            continue;
        };
        if let Some(entry) = there(place.clone(), promise).await? {
            blocking(move || part.discard()).await??;
            tell(fill::Progress::Whole(name, entry.size));
            return Ok((false, entry));
        }
        let filling = Filling {
            name,
            promise,
            web,
            tell,
            part: Some(part),
        };
        let part = filling.fill(sources).await?;
        let entry = Entry {
            sha256: promise.sha256,
            size: part.length(),
        };
        let place = place.clone();
        blocking(move || part.keep(&place)).await??;
        return Ok((true, entry));
    }
}

/// What is at a place, if it is what was promised.
async fn there(place: PathBuf, promise: Promise) -> Result<Option<Entry>, Error> {
    let found = blocking(move || super::source::open(&place).map(|opened| (opened, place))).await?;
    let Ok(((mut file, size), place)) = found else {
        return Ok(None);
    };
    if promise.size.is_some_and(|promised| promised != size) {
        return Ok(None);
    }
    let read = blocking(move || part::digest_of(&mut file)).await?;
    let (sha256, size) = read.map_err(|error| unwritable("read", &place, &error))?;
    Ok((sha256 == promise.sha256).then_some(Entry { sha256, size }))
}

/// Adds to the index of a mirror, and tidies up.
fn list_more(to: &Path, listed: Vec<(Name, Entry)>) -> Result<(), Error> {
    let _held = hold(to)?;
    let mut index = read_index(to)?.unwrap_or_default();
    for (name, entry) in listed {
        index.insert(name, entry);
    }
    write_index(to, &index)
}

/// Lists these files of a mirror below a name, and no others there.
pub(super) fn replace_below(
    to: &Path,
    above: &Name,
    listed: Vec<(Name, Entry)>,
) -> Result<(), Error> {
    let _held = hold(to)?;
    let known = read_index(to)?.unwrap_or_default();
    let mut index = Index::default();
    let others = known.iter().filter(|(name, _)| !name.is_below(above));
    for (name, entry) in others {
        index.insert(name.clone(), entry);
    }
    for (name, entry) in listed {
        index.insert(name, entry);
    }
    write_index(to, &index)
}

/// Keeps others from writing the index of a mirror meanwhile.
fn hold(mirror: &Path) -> Result<File, Error> {
    let held = std::fs::create_dir_all(mirror).and_then(|()| File::open(mirror));
    let held = held.map_err(|error| unwritable("open", mirror, &error))?;
    loop {
        match held.try_lock() {
            Ok(()) => return Ok(held),
            Err(TryLockError::WouldBlock) => std::thread::sleep(HELD),
            Err(TryLockError::Error(error)) => return Err(unwritable("open", mirror, &error)),
        }
    }
}

fn read_index(mirror: &Path) -> Result<Option<Index>, Error> {
    let file = mirror.join(FILE);
    match super::source::bounded(&file) {
        Ok(text) => Index::parse(&text).map(Some).map_err(|why| {
            let what = format!("cannot use {}: {why}", file.display());
            Error::new(Kind::BadIndex, what)
        }),
        Err(Trouble::Absent(_)) => Ok(None),
        Err(trouble) => Err(trouble.into_error()),
    }
}

fn write_index(mirror: &Path, index: &Index) -> Result<(), Error> {
    let parts = mirror.join(PARTS);
    part::write_small(&parts.join(FILE), &mirror.join(FILE), &index.to_text())?;
    // Stays as long as something is on its way.
    drop(std::fs::remove_dir(&parts));
    Ok(())
}
