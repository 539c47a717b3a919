//! Tokens: how they are drawn, shown and recognised without being kept.
//!
//! The first one, the administrator's, is drawn at the first start and written to a file that
//! only its owner can read. Of every token there is a SHA-256 in the store and nothing else
//! anywhere. Programs show a token as a bearer, the page as a cookie that scripts cannot read
//! and other sites cannot send.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, header};
use model::access::{Role, TokenId};
use model::time::Timestamp;
use sha2::{Digest as _, Sha256};
use store::{Actor, Store, TokenDraft};

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

/// Who may do everything, everywhere; holds the digest of the token, never the token.
#[derive(Debug, Clone)]
pub struct Admin {
    digest: String,
}

impl Admin {
    /// What the first administrator is called as an author.
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
}

/// Lets the administrator in: every process on the same database then knows the token.
///
/// A token that was revoked stays so. Whoever has lost the last one deletes the file and starts
/// again.
pub async fn enrol(store: &Store, admin: &Admin, now: Timestamp) -> Result<(), store::Error> {
    let draft = TokenDraft {
        id: TokenId::of(&admin.digest),
        name: Admin::NAME.to_owned(),
        project: None,
        role: Role::Admin,
        digest: admin.digest.clone(),
        expires_at: None,
    };
    let actor = Actor::new("slipway", "first start");
    store.add_token(draft, actor, now).await
}

/// The token that the request shows as a bearer; none unless there is exactly one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (shown.next(), shown.next()) else {
        return None;
    };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The token that the request shows as the page's cookie.
pub(crate) fn shown_cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, token)| (name == COOKIE && !token.is_empty()).then_some(token))
}

/// The cookie that signs a browser in.
pub(crate) fn cookie(token: &str) -> String {
    format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={COOKIE_SECONDS}")
}

/// The cookie that signs a browser out.
pub(crate) fn no_cookie() -> String {
    format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0")
}

/// What is kept of a token.
///
/// Tokens are looked up by it, so that the time which that takes tells nothing of any token.
pub(crate) fn digest(token: &str) -> String {
    crate::hex(&Sha256::digest(token.as_bytes()))
}

/// A new token, which nobody can guess.
pub(crate) fn draw() -> Result<String, Error> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(format!("{PREFIX}{}", crate::hex(&bytes)))
}

/// Whether the text has the shape of what [`draw`] makes, or of something as long.
pub fn well_formed(token: &str) -> bool {
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

    fn shown(text: &str) -> HeaderMap {
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
        assert_eq!(first.digest, digest(token.trim()));
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
        assert_eq!(bearer(&shown("Bearer slipway_abc")), Some("slipway_abc"));
        assert_eq!(bearer(&shown("bearer  slipway_abc")), Some("slipway_abc"));
        for wrong in ["slipway_abc", "Basic slipway_abc", "Bearer", "Bearer ", ""] {
            assert_eq!(bearer(&shown(wrong)), None, "{wrong:?}");
        }
        let mut twice = shown("Bearer slipway_abc");
        twice.append(
            header::AUTHORIZATION,
            HeaderValue::from_static("Bearer slipway_abc"),
        );
        assert_eq!(bearer(&twice), None);
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        assert_eq!(shown_cookie(&headers), None);
        headers.insert(
            header::COOKIE,
            HeaderValue::from_static("a=b; slipway=slipway_abc; c"),
        );
        assert_eq!(shown_cookie(&headers), Some("slipway_abc"));
        assert!(cookie("t").contains("HttpOnly; SameSite=Strict; Path=/"));
    }

    #[tokio::test]
    async fn an_administrator_who_was_turned_out_stays_out() {
        let store = Store::in_memory().unwrap();
        let admin = Admin::of("slipway_abc");
        let now = Timestamp::from_millis(0);
        enrol(&store, &admin, now).await.unwrap();
        let known = store.token_by_digest(&admin.digest, now).await.unwrap();
        let known = known.unwrap();
        assert_eq!((known.role, known.project), (Role::Admin, None));
        let by = || Actor::new("somebody", "");
        store.revoke_token(known.id, None, by(), now).await.unwrap();
        enrol(&store, &admin, now).await.unwrap();
        let known = store.token_by_digest(&admin.digest, now).await.unwrap();
        assert_eq!(known.unwrap().revoked_at, Some(now));
    }
}
