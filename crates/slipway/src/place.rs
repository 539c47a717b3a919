//! Where an installation keeps its truth: a data directory, or a PostgreSQL database.

use crate::failure::{Failure, failed};
use anyhow::Context as _;
use model::secret::Secret;
use model::time::Timestamp;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{Looked, LookedServer, Store};

/// The most that a file with a password holds; a larger one is some other file.
const PASSWORD_BYTES_MAX: usize = 4096;

/// Options that name a database.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Database {
    /// A PostgreSQL database to be shared by several processes [default: SQLite in the
    /// data directory, for one process]
    ///
    /// `postgres://USER@HOST:PORT/DATABASE`. A password never stands on the command line, where
    /// every user of the machine could read it: put it into a file, or the whole address into
    /// `SLIPWAY_DATABASE`.
    #[arg(
        long,
        value_name = "URL",
        env = "SLIPWAY_DATABASE",
        hide_env_values = true
    )]
    database: Option<String>,
    /// A file with the password for the database
    #[arg(
        long,
        value_name = "FILE",
        env = "SLIPWAY_DATABASE_PASSWORD_FILE",
        hide_env_values = true,
        requires = "database"
    )]
    database_password_file: Option<PathBuf>,
}

impl Database {
    /// Whether a database on a server is named.
    pub(crate) const fn is_named(&self) -> bool {
        self.database.is_some()
    }
}

/// One place where an installation is, or is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// `SQLite` in a directory.
    Directory(PathBuf),
    /// A PostgreSQL database, and the file with its password.
    Server(String, Option<PathBuf>),
}

impl Place {
    /// The place that the options name, or the data directory.
    pub(crate) fn of(database: &Database, data_dir: &Path) -> anyhow::Result<Self> {
        let Some(url) = &database.database else {
            return Ok(Self::Directory(data_dir.to_owned()));
        };
        refuse_password(url)?;
        Ok(Self::Server(
            url.clone(),
            database.database_password_file.clone(),
        ))
    }

    /// The place that one word names: the address of a database, or a directory.
    pub(crate) fn named(word: &str, password: Option<&PathBuf>) -> anyhow::Result<Self> {
        if !is_address(word) {
            return Ok(Self::Directory(PathBuf::from(word)));
        }
        refuse_password(word)?;
        Ok(Self::Server(word.to_owned(), password.cloned()))
    }

    /// Opens the store there. A directory must exist.
    pub(crate) fn open(&self) -> anyhow::Result<Store> {
        let opened = match self {
            Self::Directory(directory) => Store::open(directory),
            Self::Server(url, password) => {
                Store::connect_as(url, read(password.as_ref())?.as_ref())
            }
        };
        opened.map_err(|error| self.unusable(error))
    }

    /// Refuses a clock that is not that of the database: leases are judged by all clocks there
    /// are.
    pub(crate) fn must_agree(&self, now: Timestamp, most: Duration) -> anyhow::Result<()> {
        let Self::Server(url, password) = self else {
            return Ok(());
        };
        let looked = store::look_at(url, read(password.as_ref())?.as_ref());
        let theirs = looked.map_or(now, |server| server.now);
        let apart = now.since(theirs).max(theirs.since(now));
        if apart <= most {
            return Ok(());
        }
        Err(Failure {
            what: format!(
                "the clock of this machine and that of the database are {} s apart",
                apart.as_secs()
            ),
            code: "SERVE-010",
            hint: "set both by the same time server, then start again".to_owned(),
        }
        .into())
    }

    /// Refuses a directory in which no server ever was.
    pub(crate) fn must_be_used(&self) -> anyhow::Result<()> {
        match self {
            Self::Directory(directory) if !directory.join(store::FILE).exists() => Err(Failure {
                what: format!("there is no {} in {}", store::FILE, directory.display()),
                code: "SERVE-008",
                hint: "name the data directory of a server, or the address of its database"
                    .to_owned(),
            }
            .into()),
            Self::Directory(_) | Self::Server(..) => Ok(()),
        }
    }

    /// Opens the store there, and makes the directory when there is none.
    pub(crate) fn open_or_create(&self) -> anyhow::Result<Store> {
        if let Self::Directory(directory) = self {
            make_directory(directory)?;
        }
        self.open()
    }

    /// Looks at the database without touching it; nothing when there is none yet.
    pub(crate) fn look(&self) -> anyhow::Result<Option<Looked>> {
        let looked = match self {
            Self::Directory(directory) => store::look(directory),
            Self::Server(..) => return self.look_at().map(|looked| Some(looked.database)),
        };
        looked.map_err(|error| self.unusable(error))
    }

    /// Looks at a database on a server, and at the server.
    pub(crate) fn look_at(&self) -> anyhow::Result<LookedServer> {
        let looked = match self {
            Self::Directory(directory) => Err(store::Error::Missing {
                path: directory.clone(),
            }),
            Self::Server(url, password) => store::look_at(url, read(password.as_ref())?.as_ref()),
        };
        looked.map_err(|error| self.unusable(error))
    }

    fn unusable(&self, error: store::Error) -> anyhow::Error {
        let (code, hint) = (error.code(), error.hint());
        failed(format!("cannot use {self}"), code, hint, error)
    }

    /// Brings a database on a server up to date; answers its format before and now.
    pub(crate) fn migrate(&self) -> anyhow::Result<Option<(u64, u64)>> {
        match self {
            Self::Directory(_) => self.open_or_create().map(|_| None),
            Self::Server(url, password) => {
                let migrated = Store::migrate(url, read(password.as_ref())?.as_ref());
                migrated.map(Some).map_err(|error| {
                    let (code, hint) = (error.code(), error.hint());
                    failed(format!("cannot migrate {self}"), code, hint, error)
                })
            }
        }
    }
}

/// As people see it, without a password.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(directory) => write!(f, "{}", directory.display()),
            Self::Server(url, _) => match Store::shown(url) {
                Ok((shown, _)) => f.write_str(&shown),
                Err(_) => f.write_str("the database"),
            },
        }
    }
}

fn is_address(word: &str) -> bool {
    word.starts_with("postgres://") || word.starts_with("postgresql://")
}

/// Refuses an address with a password that stands on the command line.
fn refuse_password(url: &str) -> anyhow::Result<()> {
    let (_, secret) = Store::shown(url).map_err(|error| {
        let (code, hint) = (error.code(), error.hint());
        failed("cannot use this database", code, hint, error)
    })?;
    if !secret || !std::env::args().any(|word| word.contains(url)) {
        return Ok(());
    }
    Err(Failure {
        what: "a password stands on the command line, where every user of this machine can read it"
            .to_owned(),
        code: "SERVE-005",
        hint: "put it into a file and name that with --database-password-file (or --from-password-file, \
               --to-password-file), or put the whole address into SLIPWAY_DATABASE"
            .to_owned(),
    }
    .into())
}

pub(crate) fn read(file: Option<&PathBuf>) -> anyhow::Result<Option<Secret>> {
    let Some(file) = file else { return Ok(None) };
    let unreadable = |what: String| Failure {
        what,
        code: "SERVE-006",
        hint: "name a file that holds nothing but the password and that this user may read"
            .to_owned(),
    };
    let bytes = std::fs::read(file)
        .with_context(|| unreadable(format!("cannot read {}", file.display())))?;
    if bytes.len() > PASSWORD_BYTES_MAX {
        return Err(unreadable(format!("{} is no file with a password", file.display())).into());
    }
    let text = bytes.trim_ascii_end();
    Ok(Some(Secret::from(text.to_vec())))
}

/// Makes a data directory, readable by its owner alone.
pub(crate) fn make_directory(data_dir: &Path) -> anyhow::Result<()> {
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir);
    made.map_err(|error| {
        let what = format!("cannot use {} as data directory", data_dir.display());
        let hint = "choose a directory you may write with --data-dir or SLIPWAY_DATA".to_owned();
        failed(what, "SERVE-003", hint, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            (
                "postgres://ann:s3cret@db:5432/slipway",
                "postgres://ann@db:5432/slipway",
            ),
            (
                "postgres://ann@db/slipway",
                "postgres://ann@db:5432/slipway",
            ),
            (
                "postgres://db/slipway?user=ann&password=s3cret",
                "postgres://ann@db:5432/slipway",
            ),
        ] {
            let place = Place::Server(url.to_owned(), None);
            assert_eq!(place.to_string(), shown);
        }
    }

    #[test]
    fn a_word_is_a_directory_unless_it_is_an_address() {
        let place = |word| {
            Place::named(word, None)
                .map(|place| format!("{place:?}"))
                .ok()
        };
        assert_eq!(place("data"), Some("Directory(\"data\")".to_owned()));
        assert_eq!(
            place("postgres://db/a"),
            Some("Server(\"postgres://db/a\", None)".to_owned())
        );
    }
}
