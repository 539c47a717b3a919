//! The mirror below the build directory, and every other directory in that form: files, and an
//! `index.json` that lists them.
//!
//! The index is written last and in one piece, so that half a mirror does not pass for a whole one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::digest;

/// The file that lists the others.
const INDEX: &str = "index.json";

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) sha256: String,
    pub(crate) size: u64,
}

/// What a mirror has, by name.
pub(crate) type Index = BTreeMap<String, Entry>;

/// Where the mirror is that tests and the demo use.
pub(crate) fn place(target: &Path) -> PathBuf {
    target.join("tools/mirror")
}

/// Waits until nobody else changes the mirror, and keeps others from doing so.
pub(crate) fn lock(mirror: &Path) -> Result<File> {
    // Beside it: a mirror has nothing but what it lists.
    locked(&mirror.with_extension("lock"))
}

/// Waits for a lock, which is held until the file is closed, however that happens.
pub(crate) fn locked(path: &Path) -> Result<File> {
    let failed = || format!("could not lock {}", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(failed)?;
    }
    let file = File::create(path).with_context(failed)?;
    file.lock().with_context(failed)?;
    Ok(file)
}

/// Reads what a mirror says it has.
pub(crate) fn read(mirror: &Path) -> Result<Index> {
    let path = mirror.join(INDEX);
    let text = fs::read(&path).with_context(|| format!("could not read {}", path.display()))?;
    parse(&text).with_context(|| format!("{} is damaged", path.display()))
}

fn parse(text: &[u8]) -> Result<Index> {
    let document: Value = serde_json::from_slice(text)?;
    let ours = document["slipway"] == "mirror" && document["version"] == 1;
    ensure!(
        ours,
        "it is not the index of a mirror, or of another version"
    );
    let lines = document["artifacts"]
        .as_array()
        .context("it lists nothing")?;
    let entry = |line: &Value| {
        let name = line["name"].as_str()?.to_owned();
        let sha256 = line["sha256"].as_str()?.to_owned();
        let size = line["size"].as_u64()?;
        Some((name, Entry { sha256, size }))
    };
    let entries = lines.iter().map(entry);
    entries
        .collect::<Option<_>>()
        .context("a line is not as it should be")
}

/// Writes what a mirror has, in one piece.
pub(crate) fn write(mirror: &Path, index: &Index) -> Result<()> {
    let path = mirror.join(INDEX);
    let beside = mirror.join(".index.part");
    fs::create_dir_all(mirror)
        .and_then(|()| fs::write(&beside, text(index)))
        .and_then(|()| fs::rename(&beside, &path))
        .with_context(|| format!("could not write {}", path.display()))
}

/// The text of an index, as the product writes it.
fn text(index: &Index) -> String {
    let line = |(name, entry): (&String, &Entry)| {
        let Entry { sha256, size } = entry;
        format!("{{\"name\":\"{name}\",\"sha256\":\"{sha256}\",\"size\":{size}}}")
    };
    let lines: Vec<String> = index.iter().map(line).collect();
    format!(
        "{{\"slipway\":\"mirror\",\"version\":1,\"artifacts\":[\n{}\n]}}\n",
        lines.join(",\n")
    )
}

/// Looks at all files below a directory, and lists them.
pub(crate) fn list(directory: &Path) -> Result<Index> {
    let mut index = Index::new();
    descend(directory, "", &mut index)?;
    Ok(index)
}

fn descend(directory: &Path, prefix: &str, index: &mut Index) -> Result<()> {
    let unreadable = || format!("could not list {}", directory.display());
    for entry in fs::read_dir(directory).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            descend(&path, &format!("{name}/"), index)?;
        } else {
            let size = fs::metadata(&path).with_context(unreadable)?.len();
            let sha256 = digest::sha256_of(&path)?;
            index.insert(name, Entry { sha256, size });
        }
    }
    Ok(())
}

/// How closely a mirror is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Files must be there with their sizes.
    Sizes,
    /// Every byte is read.
    Digests,
}

/// What a directory has, when every file that it lists is what it says.
pub(crate) fn check(mirror: &Path, look: Look) -> Result<Index> {
    let index = read(mirror)?;
    for (name, entry) in &index {
        let path = mirror.join(name);
        let file = fs::metadata(&path).with_context(|| format!("{name} is missing"))?;
        let (found, size) = (file.len(), entry.size);
        ensure!(found == size, "{name} has {found} bytes instead of {size}");
        if look == Look::Digests {
            let found = digest::sha256_of(&path)?;
            ensure!(
                found == entry.sha256,
                "{name} has the SHA-256 {found} instead of {}",
                entry.sha256
            );
        }
    }
    Ok(index)
}

/// Puts all that one mirror has into another; what is below `instead` there is no more.
///
/// Files are shared where both are on one disk: they are large, and clones of the repository many.
pub(crate) fn merge(from: &Path, index: &Index, instead: &str, to: &Path) -> Result<()> {
    let _lock = lock(to)?;
    // An index that cannot be read lists nothing that could be trusted.
    let before = read(to).unwrap_or_default();
    let mut after = before.clone();
    after.retain(|name, _| !name.starts_with(instead) && !index.contains_key(name));
    let kept = after.clone();
    after.extend(index.clone());
    let linked = |name: &String| same(&from.join(name), &to.join(name));
    if after == before && index.keys().all(linked) {
        return Ok(());
    }
    // A file and its line change one after the other: in between it is not listed.
    write(to, &kept)?;
    for name in index.keys() {
        bring(&from.join(name), &to.join(name))
            .with_context(|| format!("could not bring {name} into the mirror"))?;
    }
    write(to, &after)
}

/// Whether two paths lead to one file.
fn same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino(), file.len()));
    matches!((file(one), file(other)), (Ok(one), Ok(other)) if one == other)
}

/// Links a file, or copies it where it cannot be linked.
fn bring(from: &Path, to: &Path) -> Result<()> {
    if same(from, to) {
        return Ok(());
    }
    let directory = to.parent().context("it has no place")?;
    fs::create_dir_all(directory)?;
    let beside = directory.join(".bring.part");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    if fs::hard_link(from, &beside).is_err() {
        fs::copy(from, &beside)?;
    }
    Ok(fs::rename(&beside, to)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is removed however the test ends.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("xtask-mirror-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn mirror(&self, name: &str, files: &[(&str, &str)]) -> (PathBuf, Index) {
            let mirror = self.0.join(name);
            for (name, content) in files {
                let path = mirror.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            let index = list(&mirror).unwrap();
            write(&mirror, &index).unwrap();
            (mirror, index)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn a_damaged_mirror_is_refused_and_says_why() {
        let place = Place::new("damaged");
        let (mirror, index) = place.mirror("a", &[("b/one", "1234"), ("two", "")]);
        assert_eq!(check(&mirror, Look::Digests).unwrap(), index);
        let why = |look| check(&mirror, look).unwrap_err().to_string();
        fs::write(mirror.join("b/one"), "4321").unwrap();
        assert!(check(&mirror, Look::Sizes).is_ok());
        assert!(why(Look::Digests).starts_with("b/one has the SHA-256"));
        fs::write(mirror.join("b/one"), "123").unwrap();
        assert_eq!(why(Look::Sizes), "b/one has 3 bytes instead of 4");
        fs::remove_file(mirror.join("b/one")).unwrap();
        assert_eq!(why(Look::Sizes), "b/one is missing");
        for text in [
            "",
            "{}",
            r#"{"slipway":"mirror","version":1,"artifacts":[{"name":"a"}]}"#,
        ] {
            fs::write(mirror.join(INDEX), text).unwrap();
            assert!(why(Look::Sizes).ends_with("is damaged"), "{text}");
        }
        fs::remove_file(mirror.join(INDEX)).unwrap();
        assert!(why(Look::Sizes).starts_with("could not read"));
    }

    #[test]
    fn what_one_mirror_has_comes_into_another_beside_what_is_there() {
        let place = Place::new("merge");
        let old = [
            ("envoy/1/envoy", "e"),
            ("kubernetes/v1/old", "o"),
            ("kubernetes/v1/x", "0"),
        ];
        let (to, _) = place.mirror("to", &old);
        let (from, index) = place.mirror("from", &[("kubernetes/v1/x", "1"), ("lab/echo", "echo")]);
        for _ in 0..2 {
            merge(&from, &index, "kubernetes/v1/", &to).unwrap();
            let names: Vec<String> = check(&to, Look::Digests).unwrap().into_keys().collect();
            assert_eq!(names, ["envoy/1/envoy", "kubernetes/v1/x", "lab/echo"]);
            assert!(same(&from.join("lab/echo"), &to.join("lab/echo")));
        }
    }

    #[test]
    fn a_mirror_whose_index_is_damaged_lists_only_what_was_brought() {
        let place = Place::new("torn");
        let (to, _) = place.mirror("to", &[("a", "a")]);
        let (from, index) = place.mirror("from", &[("b", "b")]);
        fs::write(to.join(INDEX), "{").unwrap();
        merge(&from, &index, "kubernetes/", &to).unwrap();
        assert_eq!(check(&to, Look::Digests).unwrap(), index);
    }
}
