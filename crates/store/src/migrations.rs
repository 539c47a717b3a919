//! Brings a database up to date: numbered SQL, each applied once, all in one transaction.
//!
//! A migration that was released is never edited; the next one mends it.

use crate::error::Error;
use crate::sqlite::meaning;
use rusqlite::{Connection, TransactionBehavior};

/// The migrations in order; the first is number 1.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_spine.sql")];

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
fn version(connection: &Connection) -> Result<u64, Error> {
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
    let known = u64::try_from(MIGRATIONS.len()).unwrap_or(u64::MAX);
    if found > known {
        Err(Error::Newer { found, known })
    } else {
        Ok(found)
    }
}
