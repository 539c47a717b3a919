//! Packages of a distribution in a mirror: where they lie, and which there are.
//!
//! ```text
//! deb/debian-12/amd64/Packages                          what there is, as apt reads it
//! deb/debian-12/amd64/wireguard-tools_1.0-1_amd64.deb
//! ```
//!
//! Such a directory is also a repository by itself, for whoever wants to read it with apt. The
//! index of the mirror vouches for `Packages`, and that for each file.

mod collect;

pub use collect::collect;

use super::index::{BYTES_MAX, Entry};
use super::name::Name;
use crate::error::{Error, Kind};
use std::collections::BTreeMap;

/// Where packages are, in a mirror.
const ABOVE: &str = "deb";

/// What says which packages there are.
pub const INDEX: &str = "Packages";

/// Where the packages of one system and architecture are, in a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf(Name);

impl Shelf {
    /// The place for a system as hosts tell it, such as `debian 12`, and an architecture as its
    /// packages tell it. A system that does not tell its version has none.
    pub fn of(system: &str, architecture: &str) -> Option<Self> {
        let (name, version) = system.split_once(' ')?;
        let plain = |text: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
            !text.is_empty() && text.bytes().all(known)
        };
        if ![name, version, architecture].into_iter().all(plain) {
            return None;
        }
        let text = format!("{ABOVE}/{name}-{version}/{architecture}");
        text.parse().ok().map(Self)
    }

    /// Its path in a mirror.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The name of a file in it.
    pub fn file(&self, file: &str) -> Option<Name> {
        let plain = !file.contains('/');
        plain.then(|| format!("{}/{file}", self.0).parse().ok())?
    }
}

impl std::fmt::Display for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One package, as apt tells it: name, version and architecture.
pub type Package = (String, String, String);

/// Which packages there are, each with its file and what must be in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packages(BTreeMap<Package, (Name, Entry)>);

impl Packages {
    /// Reads the text of [`INDEX`].
    pub fn parse(shelf: &Shelf, text: &str) -> Result<Self, Error> {
        if text.len() > BYTES_MAX {
            let what = format!("{shelf}/{INDEX} has more than {BYTES_MAX} bytes");
            return Err(Error::new(Kind::BadIndex, what));
        }
        let mut all = Self::default();
        let stanzas = text.split("\n\n").map(|stanza| stanza.trim_matches('\n'));
        for stanza in stanzas.filter(|stanza| !stanza.is_empty()) {
            let (package, file) = read(shelf, stanza).ok_or_else(|| {
                let first = stanza.lines().next().unwrap_or_default();
                let what = format!("cannot use {shelf}/{INDEX}: what begins with {first:?} is no package of a mirror");
                Error::new(Kind::BadIndex, what)
            })?;
            all.0.insert(package, file);
        }
        Ok(all)
    }

    /// The file of a package, and what must be in it.
    pub fn get(&self, package: &Package) -> Option<&(Name, Entry)> {
        self.0.get(package)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads what is known of one package.
fn read(shelf: &Shelf, stanza: &str) -> Option<(Package, (Name, Entry))> {
    let field = |key: &str| {
        let of = |line: &str| line.strip_prefix(key)?.strip_prefix(':').map(str::to_owned);
        stanza
            .lines()
            .find_map(of)
            .map(|value| value.trim().to_owned())
    };
    let package = (field("Package")?, field("Version")?, field("Architecture")?);
    let file = field("Filename")?;
    let name = shelf.file(file.strip_prefix("./").unwrap_or(&file))?;
    let entry = Entry {
        sha256: field("SHA256")?.parse().ok()?,
        size: field("Size")?.parse().ok()?,
    };
    Some((package, (name, entry)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifacts::Digest;

    #[test]
    fn a_system_and_an_architecture_have_one_place() {
        let at = |system, architecture| {
            Shelf::of(system, architecture).map(|shelf| shelf.as_str().to_owned())
        };
        let debian = at("debian 12", "amd64");
        assert_eq!(debian.as_deref(), Some("deb/debian-12/amd64"));
        let ubuntu = at("ubuntu 24.04", "arm64");
        assert_eq!(ubuntu.as_deref(), Some("deb/ubuntu-24.04/arm64"));
        for (system, architecture) in [
            ("debian", "amd64"),
            ("unknown ", "amd64"),
            ("debian ../..", "amd64"),
            ("debian 12", ""),
            ("debian 12 13", "amd64"),
        ] {
            assert_eq!(at(system, architecture), None, "{system} {architecture}");
        }
    }

    #[test]
    fn packages_are_read_and_what_is_none_is_refused() {
        let shelf = Shelf::of("debian 12", "amd64").unwrap();
        let digest = Digest::of(b"x");
        let of = |file: &str| {
            format!(
                "Package: tool\nVersion: 1:2.0-1\nArchitecture: amd64\nDescription: a tool\n of \
                 many\nFilename: {file}\nSize: 1\nSHA256: {digest}\n\n"
            )
        };
        let read = Packages::parse(&shelf, &of("./tool_2.0-1_amd64.deb")).unwrap();
        let tool = ["tool", "1:2.0-1", "amd64"].map(str::to_owned).into();
        let (name, entry) = read.get(&tool).unwrap();
        assert_eq!(name.as_str(), "deb/debian-12/amd64/tool_2.0-1_amd64.deb");
        assert_eq!((entry.sha256, entry.size), (digest, 1));
        assert_eq!(Packages::parse(&shelf, "\n\n").map(|all| all.len()), Ok(0));
        for bad in [
            of("../../envoy"),
            of("pool/tool.deb"),
            of("./tool.deb").replace("Size: 1", "Size: many"),
            of("./tool.deb").replace("SHA256", "MD5sum"),
            "<html>".to_owned(),
        ] {
            let error = Packages::parse(&shelf, &bad).unwrap_err();
            assert_eq!(error.kind, Kind::BadIndex, "{bad}");
        }
    }
}
