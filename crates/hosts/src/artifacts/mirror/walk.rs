//! Going through all files of a mirror: to list them, and to see whether they are as listed.

use super::super::part;
use super::super::trouble::unwritable;
use super::super::{Artifact, Digest, blocking, fill, fill::Tell, source};
use super::{Entry, FILE, Index, Name, hold, read_index, write_index};
use crate::error::{Error, Kind};
use std::path::{Path, PathBuf};

/// What was found in a mirror.
#[derive(Debug, Default)]
pub struct Found {
    /// What is there and as it should be.
    pub index: Index,
    /// What is wrong: a name, and a clause that says how.
    pub wrong: Vec<(Name, String)>,
    /// Files that are not artifacts of the mirror, and why.
    pub others: Vec<(PathBuf, String)>,
}

/// Reads every file of a mirror, and compares it with the index and with what we know.
pub async fn verify(mirror: &Path, tell: Tell<'_>) -> Result<Found, Error> {
    let at = mirror.to_owned();
    let index = blocking(move || read_index(&at)).await??.ok_or_else(|| {
        let what = format!("{} is no mirror: it has no {FILE}", mirror.display());
        Error::new(Kind::BadIndex, what)
    })?;
    let mut found = Found::default();
    for (name, entry) in index.iter() {
        if let Some(why) = wrong(mirror, name, entry).await? {
            found.wrong.push((name.clone(), why));
        } else {
            tell(fill::Progress::Whole(name, entry.size));
            found.index.insert(name.clone(), entry);
        }
    }
    for (path, name) in files(mirror).await? {
        match name {
            Ok(name) if index.get(&name).is_some() => {}
            Ok(_) => found
                .others
                .push((path, "the index does not list it".to_owned())),
            Err(why) => found.others.push((path, why)),
        }
    }
    Ok(found)
}

/// How a file is not as listed.
async fn wrong(mirror: &Path, name: &Name, entry: Entry) -> Result<Option<String>, Error> {
    let path = mirror.join(name.as_str());
    let read = blocking(move || match source::open(&path) {
        Ok((mut file, _)) => part::digest_of(&mut file).map_err(|error| error.to_string()),
        Err(trouble) => Err(trouble.why().to_owned()),
    });
    let (sha256, size) = match read.await? {
        Ok(read) => read,
        Err(why) => return Ok(Some(why)),
    };
    let listed = |what: &str, found: &str, promised: &str| {
        Some(format!(
            "its {what} is {found}, and {promised} was expected"
        ))
    };
    if size != entry.size {
        return Ok(listed("size", &size.to_string(), &entry.size.to_string()));
    }
    let digest = |promised: Digest| listed("SHA-256", &sha256.to_string(), &promised.to_string());
    if sha256 != entry.sha256 {
        return Ok(digest(entry.sha256));
    }
    // The index may be wrong in good faith: hosts would refuse it all the same.
    let pinned = Artifact::named(name.clone()).sha256;
    Ok(pinned.filter(|pinned| *pinned != sha256).and_then(digest))
}

/// Makes a mirror of a directory of files: reads them all, and writes the index anew.
pub async fn index(directory: &Path, tell: Tell<'_>) -> Result<Found, Error> {
    let mut found = Found::default();
    for (path, name) in files(directory).await? {
        let name = match name {
            Ok(name) => name,
            Err(why) => {
                found.others.push((path, why));
                continue;
            }
        };
        let read = blocking({
            let path = path.clone();
            move || std::fs::File::open(&path).and_then(|mut file| part::digest_of(&mut file))
        });
        let (sha256, size) = read
            .await?
            .map_err(|error| unwritable("read", &path, &error))?;
        tell(fill::Progress::Whole(&name, size));
        let pinned = Artifact::named(name.clone()).sha256;
        if let Some(pinned) = pinned.filter(|pinned| *pinned != sha256) {
            let why = format!("its SHA-256 is {sha256}, and {pinned} was expected");
            found.wrong.push((name.clone(), why));
        }
        found.index.insert(name, Entry { sha256, size });
    }
    if found.index.len() > super::super::index::ENTRIES_MAX {
        let most = super::super::index::ENTRIES_MAX;
        let what = format!("{} has more than {most} files", directory.display());
        return Err(Error::new(Kind::BadIndex, what));
    }
    let (to, index) = (directory.to_owned(), found.index.clone());
    blocking(move || {
        let _held = hold(&to)?;
        write_index(&to, &index)
    })
    .await??;
    Ok(found)
}

/// A file, and its name or why it can have none.
type Named = (PathBuf, Result<Name, String>);

/// The plain files of a directory, by their names; hidden ones are nobody's business.
async fn files(directory: &Path) -> Result<Vec<Named>, Error> {
    let root = directory.to_owned();
    blocking(move || {
        let mut found = Vec::new();
        let walked = walk(&root, "", &mut found);
        walked.map_err(|error| unwritable("read", &root, &error))?;
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    })
    .await?
}

fn walk(directory: &Path, above: &str, found: &mut Vec<Named>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let Some(file) = entry.file_name().to_str().map(str::to_owned) else {
            found.push((path, Err("its name is not UTF-8".to_owned())));
            continue;
        };
        if file.starts_with('.') || (above.is_empty() && file == FILE) {
            continue;
        }
        let name = format!("{above}{file}");
        // A link to a directory could lead in a circle; one to a file is as good as the file.
        if entry.file_type()?.is_dir() {
            walk(&path, &format!("{name}/"), found)?;
        } else if std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            found.push((path, name.parse().map_err(|why| format!("{why}"))));
        } else {
            found.push((path, Err("it is no plain file".to_owned())));
        }
    }
    Ok(())
}
