//! Which PostgreSQL this machine has, and who may run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Error;

/// Where Debian and its relatives put the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// What a directory must hold to be of use.
const NEEDED: &[&str] = &["postgres", "initdb", "createdb", "psql"];

/// The programs of one version of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Programs {
    /// The major version, then the minor.
    pub version: (u32, u32),
    /// Where the programs are.
    pub directory: PathBuf,
}

impl Programs {
    /// The newest PostgreSQL server on this machine.
    pub fn find() -> Result<Self, Error> {
        directories()
            .into_iter()
            .filter_map(|directory| Self::in_directory(&directory))
            .max()
            .ok_or_else(|| Error::Missing {
                installable: installable(),
            })
    }

    fn in_directory(directory: &Path) -> Option<Self> {
        if !NEEDED.iter().all(|name| directory.join(name).is_file()) {
            return None;
        }
        let told = Command::new(directory.join("postgres"))
            .arg("--version")
            .output()
            .ok()?;
        Some(Self {
            version: version(&String::from_utf8_lossy(&told.stdout))?,
            directory: directory.to_path_buf(),
        })
    }
}

/// Where a server may be: the search path first, then the place of Debian.
fn directories() -> Vec<PathBuf> {
    // A program in the search path may be a link to its home, where its relatives are.
    let path = on_path("postgres").and_then(|program| fs::canonicalize(program).ok());
    let path = path.and_then(|program| program.parent().map(Path::to_path_buf));
    let versions = fs::read_dir(VERSIONS).into_iter().flatten();
    let versions = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    path.into_iter().chain(versions).collect()
}

/// The first program of this name in the search path.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

/// Whether `cargo xtask tools` could install one here.
fn installable() -> bool {
    user() == Some(0) && on_path("apt-get").is_some()
}

/// Who we are; unknown where there is no `/proc`.
fn user() -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Some(fs::metadata("/proc/self").ok()?.uid())
}

/// Major and minor of `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
///
/// A version before its release is called `18beta1` and counts as `18.0`.
fn version(text: &str) -> Option<(u32, u32)> {
    let (_, text) = text.split_once("(PostgreSQL) ")?;
    let word = text.split_whitespace().next()?;
    let (major, rest) = number(word)?;
    let minor = rest.strip_prefix('.').and_then(number);
    Some((major, minor.map_or(0, |(minor, _)| minor)))
}

/// The digits that a text begins with, and the rest of it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((digits.parse().ok()?, rest))
}

/// The user and group that run the server for root, for whom PostgreSQL refuses to work.
pub(super) fn servant(passwd: &str) -> Option<(u32, u32)> {
    let entry = |name: &str| {
        let line = passwd
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    entry("postgres").or_else(|| entry("nobody"))
}

#[cfg(test)]
mod tests {
    use super::{servant, version};

    #[test]
    fn versions_compare_as_numbers() {
        assert_eq!(
            version("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)"),
            Some((15, 14))
        );
        assert_eq!(version("postgres (PostgreSQL) 18beta1\n"), Some((18, 0)));
        assert!(version("postgres (PostgreSQL) 9.6.1") < version("postgres (PostgreSQL) 15.2"));
        assert_eq!(version("postgres: not found"), None);
    }

    #[test]
    fn root_has_the_server_run_by_somebody_else() {
        let both = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\npostgres:x:101:104::/:/bin/sh\n";
        assert_eq!(servant(both), Some((101, 104)));
        let one = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65533::/:/bin/false\n";
        assert_eq!(servant(one), Some((65534, 65533)));
        assert_eq!(servant("root:x:0:0::/root:/bin/sh\n"), None);
    }
}
