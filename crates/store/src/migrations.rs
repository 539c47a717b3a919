//! Brings a database up to date: numbered SQL, each applied once, all in one transaction.
//!
//! A migration that was released is never edited; the next one mends it.

use crate::body::{Access, Session as _, Tx as _, first};
use crate::error::Error;
use crate::postgres;
use crate::sqlite::meaning;
use rusqlite::{Connection, TransactionBehavior};

/// The migrations in order; the first is number 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_spine.sql"),
    include_str!("migrations/0002_foundations.sql"),
    include_str!("migrations/0003_upkeep.sql"),
    include_str!("migrations/0004_paces.sql"),
    include_str!("migrations/0005_reasons.sql"),
    include_str!("migrations/0006_environments.sql"),
    include_str!("migrations/0007_deliveries.sql"),
    include_str!("migrations/0008_git.sql"),
    include_str!("migrations/0009_cancelled.sql"),
    include_str!("migrations/0010_unseen.sql"),
];

/// The format of a database that is up to date.
#[expect(
    clippy::as_conversions,
    reason = "nothing else counts in a constant, and they are few"
)]
pub const FORMAT: u64 = MIGRATIONS.len() as u64;

/// Marks a database file as ours: "SLIP" in ASCII.
const APPLICATION_ID: i64 = 0x534C_4950;

/// Refuses a database that is not ours, or that a later version of the program wrote.
pub(crate) fn judge(connection: &Connection) -> Result<(), Error> {
    version(connection).map(|_| ())
}

/// Applies the migrations that are missing.
pub(crate) fn apply(connection: &mut Connection) -> Result<(), Error> {
    let wrong = |error| meaning(error, None);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(wrong)?;
    let version = version(&transaction)?;
    for (number, sql) in (1_u64..).zip(MIGRATIONS) {
        if number > version {
            transaction.execute_batch(sql).map_err(wrong)?;
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            transaction
                .execute("INSERT INTO schema_version (version) VALUES (?1)", [number])
                .map_err(wrong)?;
        }
    }
    if version == 0 {
        transaction
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(wrong)?;
    }
    transaction.commit().map_err(wrong)
}

/// The number of the last migration that was applied; zero for an empty database.
pub(crate) fn version(connection: &Connection) -> Result<u64, Error> {
    let wrong = |error| meaning(error, None);
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(wrong)
    };
    let application = number("PRAGMA application_id")?;
    let tables = number("SELECT COUNT(*) FROM sqlite_schema")?;
    if application == 0 && tables == 0 {
        return Ok(0);
    }
    if application != APPLICATION_ID {
        return Err(Error::Corrupt {
            what: "its file belongs to another program",
            cause: None,
        });
    }
    let found = u64::try_from(number("SELECT MAX(version) FROM schema_version")?).unwrap_or(0);
    known(found)
}

fn known(found: u64) -> Result<u64, Error> {
    if found > FORMAT {
        Err(Error::Newer {
            found,
            known: FORMAT,
        })
    } else {
        Ok(found)
    }
}

/// The same for a database on a server.
pub(crate) fn version_of(session: &mut postgres::Session) -> Result<u64, Error> {
    session.begin(&Access::Read)?;
    let found = found_in(session);
    session.undo();
    known(found?)
}

fn found_in(session: &mut postgres::Session) -> Result<u64, Error> {
    let there = first(
        session,
        "SELECT CAST(COUNT(*) AS BIGINT) FROM information_schema.tables
         WHERE table_schema = current_schema() AND table_name = 'schema_version'",
        &[],
    )?;
    let there = there.map_or(Ok(0), |mut row| row.take::<u64>())?;
    if there == 0 {
        return Ok(0);
    }
    let version = first(session, "SELECT MAX(version) FROM schema_version", &[])?;
    let version = version.map_or(Ok(None), |mut row| row.take::<Option<u64>>())?;
    Ok(version.unwrap_or(0))
}

/// Applies the migrations that are missing to a database on a server; of several processes
/// that do so at once, one works and the others find it done.
pub(crate) fn apply_to(session: &mut postgres::Session) -> Result<(), Error> {
    session.script("BEGIN; SET LOCAL client_min_messages = 'error'")?;
    let applied = session
        .script("SELECT pg_advisory_xact_lock(5497846)")
        .and_then(|()| missing_in(session));
    match applied {
        Ok(()) => session.script("COMMIT"),
        Err(error) => {
            session.script("ROLLBACK")?;
            Err(error)
        }
    }
}

fn missing_in(session: &mut postgres::Session) -> Result<(), Error> {
    let version = known(found_in(session)?)?;
    for (number, sql) in (1_u64..).zip(MIGRATIONS) {
        if number > version {
            session.script(&translated(sql))?;
            session.execute(
                "INSERT INTO schema_version (version) VALUES ($1)",
                &[number.into()],
            )?;
        }
    }
    Ok(())
}

/// A migration in the words of PostgreSQL. Both bodies have the same tables, because both
/// have them from the same text.
fn translated(sql: &str) -> String {
    sql.replace(
        "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
    )
    .replace(") STRICT, WITHOUT ROWID;", ");")
    .replace(") STRICT;", ");")
    .replace(" INTEGER", " BIGINT")
    // Byte by byte, as SQLite compares and as cursors expect.
    .replace(" TEXT", " TEXT COLLATE \"C\"")
}
