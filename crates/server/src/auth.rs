//! Who may speak: one administrator, known by a token that is never kept.
//!
//! The token is drawn at the first start and written to a file that only its owner can
//! read; in memory there is its SHA-256 alone. Programs show the token as a bearer,
//! the page as a cookie that scripts cannot read and other sites cannot send.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};

/// The file in the data directory that holds the administrator's token.
pub const TOKEN_FILE: &str = "admin.token";

/// How the page's cookie is called.
const COOKIE: &str = "slipway";

/// What every token begins with, so that scanners for leaked secrets can find it.
const PREFIX: &str = "slipway_";

/// Random bytes in a token: as many as its digest has.
const TOKEN_BYTES: usize = 32;

/// How long a browser stays signed in: a working week, so that a forgotten one ends.
const COOKIE_SECONDS: u32 = 7 * 24 * 60 * 60;

/// Why the administrator's token is not at hand.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is there and cannot be read.
    #[error("could not read {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The file cannot be written.
    #[error("could not write {}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The file holds something else.
    #[error("{} does not hold a token", path.display())]
    Form {
        /// Which file.
        path: PathBuf,
    },
    /// The system gives no random bytes.
    #[error("could not draw random bytes")]
    Random(#[source] getrandom::Error),
}

impl Error {
    /// The stable code, which names a page of the documentation.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Write { .. } | Self::Random(_) => "API-014",
            Self::Form { .. } => "API-015",
        }
    }

    /// What would help.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "let the user that runs slipway own the data directory",
            Self::Write { .. } => "make the data directory writable and leave room on its disk",
            Self::Form { .. } => "delete the file and start again: a new token is written",
            Self::Random(_) => "start again when the system has gathered randomness",
        }
    }
}

/// The one who may do everything; holds the digest of the token, never the token.
#[derive(Debug, Clone)]
pub struct Admin {
    digest: [u8; 32],
}

impl Admin {
    /// What the administrator is called as an author.
    pub const NAME: &str = "admin";

    /// Reads the token file of the data directory; at the first start, makes it.
    pub fn load_or_create(data_dir: &Path) -> Result<Self, Error> {
        let path = data_dir.join(TOKEN_FILE);
        match fs::read_to_string(&path) {
            Ok(text) => {
                keep_private(&path)?;
                let token = text.trim();
                if well_formed(token) {
                    Ok(Self::of(token))
                } else {
                    Err(Error::Form { path })
                }
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                let token = draw()?;
                write(data_dir, &path, &token).map_err(|cause| Error::Write {
                    path: path.clone(),
                    cause,
                })?;
                Ok(Self::of(&token))
            }
            Err(cause) => Err(Error::Read { path, cause }),
        }
    }

    /// The administrator whose token is `token`; for tests and other composers.
    pub fn of(token: &str) -> Self {
        Self {
            digest: digest(token),
        }
    }

    /// Whether `token` is the administrator's.
    ///
    /// Digests are compared to the last byte whatever the first ones say, so that the
    /// time it takes tells nothing.
    pub fn knows(&self, token: &str) -> bool {
        let given = digest(token);
        self.digest
            .iter()
            .zip(given)
            .fold(0, |differs, (ours, theirs)| differs | (ours ^ theirs))
            == 0
    }

    /// Whether the request shows the token as a bearer.
    pub(crate) fn knows_bearer(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(only), None) = (shown.next(), shown.next()) else {
            return false;
        };
        let Some((scheme, token)) = only.to_str().ok().and_then(|text| text.split_once(' ')) else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer") && self.knows(token.trim())
    }

    /// Whether the request shows the token as the page's cookie.
    pub(crate) fn knows_cookie(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, token)| name == COOKIE && self.knows(token))
    }
}

/// The cookie that signs a browser in.
pub(crate) fn cookie(token: &str) -> String {
    format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={COOKIE_SECONDS}")
}

/// The cookie that signs a browser out.
pub(crate) fn no_cookie() -> String {
    format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0")
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn draw() -> Result<String, Error> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(format!("{PREFIX}{}", crate::hex(&bytes)))
}

/// Whether the text has the shape of what [`draw`] makes, or of something as long.
fn well_formed(token: &str) -> bool {
    token.strip_prefix(PREFIX).is_some_and(|rest| {
        rest.len() >= TOKEN_BYTES && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Writes the token beside its place and moves it there, so that nobody ever reads half.
fn write(data_dir: &Path, path: &Path, token: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    match fs::remove_file(&beside) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(data_dir)?.sync_all()
}

/// Takes the file away from everybody but its owner.
fn keep_private(path: &Path) -> Result<(), Error> {
    let failed = |cause| Error::Read {
        path: path.to_owned(),
        cause,
    };
    let mut permissions = fs::metadata(path).map_err(failed)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the token file was readable by others; it no longer is");
        permissions.set_mode(0o600);
        fs::set_permissions(path, permissions).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn bearer(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(text).unwrap());
        headers
    }

    #[test]
    fn the_token_is_made_once_and_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let first = Admin::load_or_create(dir.path()).unwrap();
        let path = dir.path().join(TOKEN_FILE);
        let token = fs::read_to_string(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(token.starts_with("slipway_"), "{token}");
        assert!(first.knows(token.trim()));
        let second = Admin::load_or_create(dir.path()).unwrap();
        assert_eq!(first.digest, second.digest);
    }

    #[test]
    fn a_file_that_others_can_read_is_closed_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TOKEN_FILE);
        Admin::load_or_create(dir.path()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        Admin::load_or_create(dir.path()).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn a_file_with_something_else_is_not_taken_for_a_token() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(TOKEN_FILE), "").unwrap();
        let refused =
            Admin::load_or_create(dir.path()).expect_err("an empty token lets everybody in");
        assert_eq!(refused.code(), "API-015");
    }

    #[test]
    fn only_one_whole_bearer_is_believed() {
        let admin = Admin::of("slipway_abc");
        assert!(admin.knows_bearer(&bearer("Bearer slipway_abc")));
        assert!(admin.knows_bearer(&bearer("bearer slipway_abc")));
        for wrong in [
            "slipway_abc",
            "Basic slipway_abc",
            "Bearer slipway_ab",
            "Bearer",
            "",
        ] {
            assert!(!admin.knows_bearer(&bearer(wrong)), "{wrong:?}");
        }
        let mut twice = bearer("Bearer slipway_abc");
        twice.append(
            header::AUTHORIZATION,
            HeaderValue::from_static("Bearer slipway_abc"),
        );
        assert!(!admin.knows_bearer(&twice));
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let admin = Admin::of("slipway_abc");
        let mut headers = HeaderMap::new();
        headers.insert(
            header::COOKIE,
            HeaderValue::from_static("a=b; slipway=slipway_abc; c"),
        );
        assert!(admin.knows_cookie(&headers));
        assert!(cookie("t").contains("HttpOnly; SameSite=Strict; Path=/"));
    }
}
