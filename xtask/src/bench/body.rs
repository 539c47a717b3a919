//! What a store can live in, so that a promise is measured on each.

use std::path::Path;

use anyhow::{Context, Result};
use lab::postgres::{Options, Postgres};

use crate::postgres;
use crate::server::Server;

/// The words for the bodies.
pub(super) const NAMES: &[&str] = &[SQLITE, POSTGRES];
const SQLITE: &str = "sqlite";
const POSTGRES: &str = "postgresql";

/// One kind of database.
pub(super) enum Body {
    /// A file in the data directory.
    Sqlite,
    /// A server that waits for its disk, as in production.
    Postgres(Box<Postgres>),
}

impl Body {
    /// Every kind that is wanted and there.
    pub(super) fn all(wanted: impl Fn(&str) -> bool) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        if wanted(SQLITE) {
            all.push(Self::Sqlite);
        }
        if !wanted(POSTGRES) {
            return Ok(all);
        }
        match postgres::ensure()? {
            postgres::Postgres::Ready { .. } => {
                let started = Postgres::start(Options { durable: true });
                let started = started.context("could not start PostgreSQL")?;
                all.push(Self::Postgres(Box::new(started)));
            }
            postgres::Postgres::Missing(reason) => {
                eprintln!("nothing is measured on PostgreSQL: {reason}");
            }
        }
        Ok(all)
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    /// The address of an empty database, unless it is a file below the data directory.
    pub(super) fn database(&self) -> Result<Option<String>> {
        match self {
            Self::Sqlite => Ok(None),
            Self::Postgres(postgres) => {
                let url = postgres.create_database();
                Ok(Some(url.context("could not make a database")?))
            }
        }
    }

    /// Starts a server of ours on an empty database.
    pub(super) fn serve(&self, program: &Path, directory: &Path) -> Result<Server> {
        Server::start_on(program, directory, self.database()?.as_deref())
    }
}
