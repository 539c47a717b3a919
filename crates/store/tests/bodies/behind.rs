//! Bodies of the store together with a way in that the store knows nothing of.

use lab::postgres::Postgres;
use rusqlite::Connection;
use std::path::PathBuf;
use store::Store;
use tempfile::TempDir;

/// Where a store keeps everything.
pub(crate) enum Place {
    /// A data directory.
    Directory(TempDir),
    /// A database on a server.
    Database(&'static Postgres, String),
}

impl Place {
    /// An empty data directory.
    pub(crate) fn directory() -> Self {
        Self::Directory(tempfile::tempdir().unwrap())
    }

    /// An empty database; none where there is no PostgreSQL.
    pub(crate) fn database(test: &str) -> Option<Self> {
        let server = lab::postgres::shared_or_skip(&format!("bodies::{test}"))?;
        let url = server.create_database().unwrap();
        Some(Self::Database(server, url))
    }

    /// One of each kind.
    pub(crate) fn each(test: &str) -> Vec<Self> {
        let database = Self::database(test);
        std::iter::once(Self::directory()).chain(database).collect()
    }

    /// Another empty place of the same kind.
    pub(crate) fn another(&self) -> Self {
        match self {
            Self::Directory(_) => Self::directory(),
            Self::Database(server, _) => Self::Database(server, server.create_database().unwrap()),
        }
    }

    /// The store in this place.
    pub(crate) fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    /// The same where it may fail.
    pub(crate) fn try_open(&self) -> Result<Store, store::Error> {
        match self {
            Self::Directory(directory) => Store::open(directory.path()),
            Self::Database(_, url) => Store::connect(url),
        }
    }

    /// Runs statements behind the store's back.
    pub(crate) fn run(&self, statements: &str) {
        match self {
            Self::Directory(_) => {
                let connection = Connection::open(self.file()).unwrap();
                connection.execute_batch(statements).unwrap();
            }
            Self::Database(server, url) => {
                // In a file, because a command line has an end.
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), statements).unwrap();
                let mut psql = server.command("psql");
                psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
                let ran = psql
                    .args(["--dbname", url, "--file"])
                    .arg(file.path())
                    .output();
                let ran = ran.unwrap();
                let said = String::from_utf8_lossy(&ran.stderr);
                assert!(ran.status.success(), "{said}");
            }
        }
    }

    /// The file of a data directory.
    pub(crate) fn file(&self) -> PathBuf {
        match self {
            Self::Directory(directory) => directory.path().join(store::FILE),
            Self::Database(..) => panic!("a database on a server is no file of ours"),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Directory(_) => "a data directory",
            Self::Database(..) => "PostgreSQL",
        })
    }
}
