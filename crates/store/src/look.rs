//! A look at a database from outside, for whoever asks whether all is well.
//!
//! **Invariant:** looking changes nothing and keeps nobody waiting: no file is made, nothing
//! is migrated, no lock is held.

use crate::body::{Access, Session as _, Tx, first};
use crate::error::Error;
use crate::{dump, migrations, postgres, runner, sealed, sqlite};
use model::sealed::Wrapped;
use model::secret::Secret;
use model::time::Timestamp;
use std::path::Path;

/// How many connections one process has to a database server.
pub fn connections() -> u32 {
    u32::try_from(runner::CONNECTIONS).unwrap_or(u32::MAX)
}

/// What a database looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Its format; zero when it is empty.
    pub format: u64,
    /// The format that this program needs.
    pub needed: u64,
    /// Whether anybody has done anything in it.
    pub used: bool,
    /// Its data keys, the one in use first; read only when the format is the one we need.
    pub keys: Vec<Wrapped>,
}

/// What a database server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookedServer {
    /// The database.
    pub database: Looked,
    /// Its version as a number: 150004 is 15.4.
    pub version: u32,
    /// How many connections there may be.
    pub connections_max: u32,
    /// How many of those are kept for others than us.
    pub connections_reserved: u32,
    /// How many there are.
    pub connections: u32,
    /// Settings that make a commit durable, and whether each is on.
    pub durable: Vec<(&'static str, bool)>,
    /// What time it has.
    pub now: Timestamp,
}

/// Looks at the database of a data directory; nothing when there is none yet.
///
/// A directory that a server works with is [`Error::Locked`]: ask the server instead.
pub fn look(directory: &Path) -> Result<Option<Looked>, Error> {
    if sqlite::is_held(directory)? {
        return Err(Error::Locked {
            path: directory.to_owned(),
        });
    }
    let Some((format, mut session)) = sqlite::look(directory)? else {
        return Ok(None);
    };
    looked(format, &mut session).map(Some)
}

/// Looks at a database on a server.
pub fn look_at(url: &str, password: Option<&Secret>) -> Result<LookedServer, Error> {
    runner::aside(|| {
        let mut session = postgres::Server::named(url, password)?.session();
        let format = migrations::version_of(&mut session)?;
        session.begin(&Access::Read)?;
        let looked = looked(format, &mut session)?;
        server(&mut session, looked)
    })
}

fn looked(format: u64, tx: &mut dyn Tx) -> Result<Looked, Error> {
    let needed = migrations::FORMAT;
    let (used, keys) = if format == needed {
        (dump::is_used(tx)?, sealed::keys(tx)?)
    } else {
        (format > 0, Vec::new())
    };
    Ok(Looked {
        format,
        needed,
        used,
        keys,
    })
}

fn server(tx: &mut dyn Tx, database: Looked) -> Result<LookedServer, Error> {
    let number = |tx: &mut dyn Tx, sql: &str| {
        let row = first(tx, sql, &[])?;
        row.map_or(Ok(0), |mut row| row.take::<u32>())
    };
    let setting = |tx: &mut dyn Tx, name: &str| {
        let sql = format!("SELECT CAST(current_setting('{name}') AS BIGINT)");
        number(tx, &sql)
    };
    let mut durable = Vec::new();
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        let row = first(tx, &format!("SELECT current_setting('{name}')"), &[])?;
        let value = row.map_or(Ok(String::new()), |mut row| row.take::<String>())?;
        durable.push((name, value != "off"));
    }
    let now = first(
        tx,
        "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        &[],
    )?;
    let now = now.map_or(Ok(Timestamp::from_millis(0)), |mut row| row.take())?;
    Ok(LookedServer {
        database,
        version: setting(tx, "server_version_num")?,
        connections_max: setting(tx, "max_connections")?,
        connections_reserved: setting(tx, "superuser_reserved_connections")?,
        connections: number(
            tx,
            "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
        )?,
        durable,
        now,
    })
}
