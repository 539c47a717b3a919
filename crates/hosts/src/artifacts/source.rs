//! Where artifacts come from: a directory, or a base address of a web server.

use super::index::{BYTES_MAX, FILE, Index};
use super::kubernetes::{self, published};
use super::trouble::Trouble;
use super::web::Web;
use super::{Digest, Name};
use reqwest::Url;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Where artifacts come from. With an index it is a mirror; without, it can give those
/// artifacts whose digest we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A directory of this machine, with files by their names.
    Directory(PathBuf),
    /// An address below which files lie by their names.
    Url(Url),
    /// An address below which the makers of Kubernetes publish its programs, each with its
    /// checksum beside it.
    Upstream(Url),
}

/// Longest checksum that is read, with what may stand beside it.
const SUM_MAX: usize = 4096;

/// Why a text is no [`Source`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotASource {
    /// An address that cannot be read.
    #[error("{0:?} is no address: {1}")]
    Address(String, String),
    /// Another protocol than ours.
    #[error("{0}:// is not spoken here: name a directory, or an address that begins with http://")]
    Protocol(String),
    /// A password, which would be seen in logs and process lists.
    #[error("an address must hold neither a user nor a password")]
    Password,
    /// Something after the path, to which names cannot be joined.
    #[error("an address must end with its path: leave out what follows `?` or `#`")]
    Tail,
}

impl std::str::FromStr for Source {
    type Err = NotASource;

    fn from_str(text: &str) -> Result<Self, NotASource> {
        let Some((protocol, _)) = text.split_once("://") else {
            return Ok(Self::Directory(text.into()));
        };
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(why) => return Err(NotASource::Address(text.to_owned(), why.to_string())),
        };
        if url.scheme() != "http" {
            return Err(NotASource::Protocol(protocol.to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NotASource::Password);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(NotASource::Tail);
        }
        Ok(Self::Url(url))
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(directory) => write!(f, "{}", directory.display()),
            Self::Url(base) | Self::Upstream(base) => write!(f, "{base}"),
        }
    }
}

impl Source {
    /// Where the makers of Kubernetes publish its programs.
    pub fn upstream() -> Option<Self> {
        Self::upstream_at(kubernetes::UPSTREAM).ok()
    }

    /// A place like that, which also speaks TLS.
    pub fn upstream_at(text: &str) -> Result<Self, NotASource> {
        let plain = match text.strip_prefix("https://") {
            Some(rest) => format!("http://{rest}"),
            None => text.to_owned(),
        };
        let secure = plain.len() < text.len();
        match plain.parse()? {
            Self::Url(mut url) | Self::Upstream(mut url) => {
                // Both have the same form, so this cannot fail.
                if secure && url.set_scheme("https").is_err() {
                    return Err(NotASource::Protocol("https".to_owned()));
                }
                Ok(Self::Upstream(url))
            }
            Self::Directory(_) => {
                let why = "it does not begin with https://".to_owned();
                Err(NotASource::Address(text.to_owned(), why))
            }
        }
    }

    /// Whether it has every version of an artifact that there is.
    pub(super) fn publishes(&self, name: &Name) -> bool {
        matches!(self, Self::Upstream(_)) && published(name).is_some()
    }

    /// The checksum of an artifact that lies beside it, where this source works in that way.
    pub(super) async fn sum(&self, name: &Name, web: &Web) -> Option<Result<Digest, Trouble>> {
        let Self::Upstream(base) = self else {
            return None;
        };
        let Some(mut path) = published(name).map(|path| path.map(str::to_owned)) else {
            let why = "it publishes no such file".to_owned();
            return Some(Err(Trouble::Absent(why)));
        };
        path[4].push_str(".sha256");
        let url = joined(base, path.iter().map(String::as_str));
        let text = web.small(&url, SUM_MAX).await;
        let read = |text: Vec<u8>| {
            let text = String::from_utf8_lossy(&text);
            let sum = text.split_whitespace().next().unwrap_or_default();
            let garbage = |why| Trouble::Garbage(format!("{url} makes no sense: {why}"));
            sum.parse().map_err(garbage)
        };
        Some(text.and_then(read))
    }

    /// What it says it holds; `None` where it has no index.
    pub(super) async fn index(&self, web: &Web) -> Result<Option<Index>, Trouble> {
        let text = match self {
            Self::Directory(directory) => {
                let directory = directory.clone();
                super::blocking(move || {
                    must_be(&directory)?;
                    bounded(&directory.join(FILE))
                })
                .await?
            }
            Self::Url(base) => web.small(&joined(base, [FILE]), BYTES_MAX).await,
            Self::Upstream(_) => return Ok(None),
        };
        match text {
            Ok(text) => Index::parse(&text).map(Some).map_err(Trouble::garbage),
            Err(Trouble::Absent(_)) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }
}

/// The address of a program below that of upstream.
pub(super) fn address_upstream(base: &Url, name: &Name) -> Result<Url, Trouble> {
    let path = published(name);
    let path = path.ok_or_else(|| Trouble::Absent("it publishes no such file".to_owned()))?;
    Ok(joined(base, path))
}

/// The address of an artifact.
pub(super) fn address(base: &Url, name: &Name) -> Url {
    joined(base, name.parts())
}

pub(super) fn joined<'a>(base: &Url, parts: impl IntoIterator<Item = &'a str>) -> Url {
    let mut url = base.clone();
    // An http address always has a path.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(parts);
    }
    url
}

/// Says when a directory is not there at all: it may be a disk that is not mounted.
pub(super) fn must_be(directory: &Path) -> Result<(), Trouble> {
    if directory.is_dir() {
        return Ok(());
    }
    Err(Trouble::Away("there is no such directory".to_owned()))
}

/// Opens a plain file; a pipe or a device, which might never answer, is none.
pub(super) fn open(path: &Path) -> Result<(std::fs::File, u64), Trouble> {
    let about = |error: std::io::Error| {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        if matches!(error.kind(), NotFound | NotADirectory) {
            Trouble::Absent("there is no such file".to_owned())
        } else {
            Trouble::Away(format!("cannot read {}: {error}", path.display()))
        }
    };
    let metadata = std::fs::metadata(path).map_err(about)?;
    if !metadata.is_file() {
        return Err(Trouble::Absent(format!(
            "{} is no plain file",
            path.display()
        )));
    }
    let file = std::fs::File::open(path).map_err(about)?;
    Ok((file, metadata.len()))
}

/// Reads an index from a directory, but not more than one can have.
pub(super) fn bounded(file: &Path) -> Result<Vec<u8>, Trouble> {
    let (opened, _) = open(file)?;
    let most = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    let read = opened.take(most.saturating_add(1)).read_to_end(&mut text);
    read.map_err(|error| Trouble::Away(format!("cannot read {}: {error}", file.display())))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_whatever_is_in_them() {
        let name: Name = "deb/x_1%3a2+b~c.deb".parse().unwrap();
        for base in ["http://m.example/a", "http://m.example/a/"] {
            let Source::Url(base) = base.parse().unwrap() else {
                panic!("{base} is an address")
            };
            let url = address(&base, &name);
            assert_eq!(url.as_str(), "http://m.example/a/deb/x_1%253a2+b~c.deb");
        }
        let directory = "/srv/mirror".parse::<Source>().unwrap();
        assert_eq!(directory, Source::Directory("/srv/mirror".into()));
        let upstream = Source::upstream().unwrap().to_string();
        assert_eq!(upstream, kubernetes::UPSTREAM);
        assert!(Source::upstream_at("/srv/mirror").is_err());
        assert!(Source::upstream_at("https://ann:s3cret@m.example/").is_err());
    }

    #[test]
    fn what_cannot_be_asked_is_refused_at_once() {
        let told = |text: &str| text.parse::<Source>().unwrap_err().to_string();
        assert!(told("https://m.example/").contains("https:// is not spoken"));
        assert!(told("file:///srv").contains("file:// is not spoken"));
        assert!(told("http://ann:s3cret@m.example/").contains("neither a user nor a password"));
        assert!(!told("http://ann:s3cret@m.example/").contains("s3cret"));
        assert!(told("http://m.example/?a=b").contains("leave out"));
        assert!(told("http://").contains("is no address"));
    }
}
