//! `SQLite`, the body for one process: connections, transactions, and what its errors mean.
//!
//! **Invariant:** everything that is particular to `SQLite` is here and in `migrations`.

use crate::body::{self, Access, Outbox, Row, Tx, Value, writes};
use crate::error::Error;
use crate::migrations;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, ToSql, ffi};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The database's file in the data directory.
pub const FILE: &str = "slipway.db";

/// The file whose lock says that somebody works with the data directory.
const LOCK: &str = "slipway.lock";

/// How often, and how far apart, a lock is tried that somebody holds.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Nobody but the owner reads what manifests may contain.
const MODE: u32 = 0o600;

/// More than there are different statements, so that each is prepared once per connection.
const STATEMENTS_MAX: usize = 256;

/// The opened files of one data directory.
pub(crate) struct Opened {
    /// The only connection that writes.
    pub(crate) writer: Session,
    /// Connections that only read.
    pub(crate) readers: Vec<Session>,
    /// Locked for as long as it is open.
    pub(crate) lock: File,
}

/// Opens the database of a data directory, with so many readers, and brings it up to date.
pub(crate) fn open(directory: &Path, readers: usize) -> Result<Opened, Error> {
    let lock = lock(directory)?;
    let path = directory.join(FILE);
    drop(create(&path)?);
    judge(&path)?;

    let mut writer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // FULL, because an answered caller must find its write again after a power cut. A
    // checkpoint every 4,000 pages (16 MB) keeps the log small and the copying rare.
    pragmas(
        &writer,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
         PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY;",
    )?;
    migrations::apply(&mut writer)?;
    let readers = (0..readers)
        .map(|_| {
            let reader = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            pragmas(
                &reader,
                "PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY;",
            )?;
            Ok(Session::on(reader))
        })
        .collect::<Result<_, Error>>()?;
    Ok(Opened {
        writer: Session::on(writer),
        readers,
        lock,
    })
}

/// Refuses a database that we must not touch, and does not touch it either.
fn judge(path: &PathBuf) -> Result<(), Error> {
    let judged = migrations::judge(&connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?);
    // Judging writes nothing, so only an interrupted transaction makes it want to: a process
    // that was killed before the log was switched on left a journal to be rolled back. Any
    // program that opens the file does that first, and what was committed stays as it is.
    if matches!(judged, Err(Error::ReadOnly)) {
        return migrations::judge(&connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?);
    }
    judged
}

/// A database that lives as long as its connection.
pub(crate) fn in_memory() -> Result<Session, Error> {
    let mut connection = Connection::open_in_memory().map_err(|error| meaning(error, None))?;
    stable(&connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    migrations::apply(&mut connection)?;
    Ok(Session::on(connection))
}

/// Whether a process works with a data directory; its lock is tried and not kept.
pub(crate) fn is_held(directory: &Path) -> Result<bool, Error> {
    let path = directory.join(LOCK);
    let unopenable = |error: io::Error| Error::Unopenable {
        path: path.clone(),
        cause: Arc::new(error),
    };
    match File::open(&path).map(|file| patiently(&file)) {
        Ok(Ok(())) => Ok(false),
        Ok(Err(TryLockError::WouldBlock)) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Ok(Err(TryLockError::Error(error))) | Err(error) => Err(unopenable(error)),
    }
}

/// Opens the database of a data directory to read, if there is one, and looks whether it is
/// damaged; answers its format.
pub(crate) fn look(directory: &Path) -> Result<Option<(u64, Session)>, Error> {
    let path = directory.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let format = migrations::version(&connection)?;
    let whole: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| meaning(error, Some(&path)))?;
    if whole != "ok" {
        return Err(Error::Corrupt {
            what: "its file is damaged",
            cause: Some(Arc::new(io::Error::other(whole))),
        });
    }
    Ok(Some((format, Session::on(connection))))
}

fn lock(directory: &Path) -> Result<File, Error> {
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            let cause = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(Error::Unopenable {
                path: directory.to_owned(),
                cause: Arc::new(cause),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Missing {
                path: directory.to_owned(),
            });
        }
        Err(error) => {
            return Err(Error::Unopenable {
                path: directory.to_owned(),
                cause: Arc::new(error),
            });
        }
    }
    let path = directory.join(LOCK);
    let file = create(&path)?;
    match patiently(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked {
            path: directory.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(Error::Unopenable {
            path,
            cause: Arc::new(error),
        }),
    }
}

/// Takes a lock: a process that has just ended, or one that another thread is starting, can hold
/// it for a moment longer.
fn patiently(file: &File) -> Result<(), TryLockError> {
    for _ in 0..LOCK_ATTEMPTS {
        if file.try_lock().is_ok() {
            return Ok(());
        }
        std::thread::sleep(LOCK_AGAIN_AFTER);
    }
    file.try_lock()
}

/// Opens a file for writing, empty if it is new.
fn create(path: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(MODE)
        .open(path);
    opened.map_err(|error| {
        if matches!(
            error.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        ) {
            Error::ReadOnly
        } else if matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        ) {
            Error::Full
        } else {
            Error::Unopenable {
                path: path.to_owned(),
                cause: Arc::new(error),
            }
        }
    })
}

fn connect(path: &PathBuf, access: OpenFlags) -> Result<Connection, Error> {
    // Each connection stays on one thread, so it needs no lock of its own.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(|error| meaning(error, Some(path)))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    stable(&connection)?;
    Ok(connection)
}

/// Keeps the plan of a statement once it is prepared.
///
/// This build of `SQLite` would otherwise prepare a statement again whenever one of its
/// parameters changes, in the hope of a better plan: most of its time, for nothing here.
fn stable(connection: &Connection) -> Result<(), Error> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map(|_| ())
        .map_err(|error| meaning(error, None))
}

fn pragmas(connection: &Connection, sql: &str) -> Result<(), Error> {
    connection
        .execute_batch(sql)
        .map_err(|error| meaning(error, None))
}

/// Runs one statement that has neither parameters nor rows, such as `BEGIN`.
fn control(connection: &Connection, sql: &str) -> Result<(), Error> {
    let run = || connection.prepare_cached(sql)?.execute([]);
    run().map(|_| ()).map_err(|error| meaning(error, None))
}

/// One connection.
pub(crate) struct Session {
    connection: Connection,
    outbox: Outbox,
}

impl Session {
    fn on(connection: Connection) -> Self {
        Self {
            connection,
            outbox: Outbox::default(),
        }
    }

    fn run<T>(
        &mut self,
        sql: &str,
        params: &[Value],
        run: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.outbox.wrote |= writes(sql);
        let prepared = self.connection.prepare_cached(alone(sql));
        let result = prepared.and_then(|mut statement| {
            bind(&mut statement, params)?;
            run(&mut statement)
        });
        result.map_err(|error| {
            let error = meaning(error, None);
            self.outbox.failed = Some(error.clone());
            error
        })
    }
}

/// A statement as the only writer runs it: there is nobody whom rows must be locked against.
fn alone(sql: &str) -> &str {
    [" FOR UPDATE", " FOR SHARE"]
        .iter()
        .find_map(|lock| sql.split_once(lock))
        .map_or(sql, |(statement, _)| statement)
}

impl Tx for Session {
    fn execute(&mut self, sql: &str, params: &[Value]) -> Result<usize, Error> {
        self.run(sql, params, |statement| {
            let changed = statement.raw_execute()?;
            Ok(changed)
        })
    }

    fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>, Error> {
        self.run(sql, params, |statement| {
            let columns = statement.column_count();
            let mut rows = statement.raw_query();
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(Row::new(
                    (0..columns)
                        .map(|at| row.get_ref(at).map(read))
                        .collect::<Result<_, _>>()?,
                ));
            }
            Ok(found)
        })
    }

    fn queries(&mut self, sql: &str, sets: &[Vec<Value>]) -> Result<Vec<Vec<Row>>, Error> {
        sets.iter().map(|params| self.query(sql, params)).collect()
    }

    fn batch(&mut self, sql: &str, sets: &[Vec<Value>]) -> Result<Vec<usize>, Error> {
        sets.iter()
            .map(|params| self.execute(sql, params))
            .collect()
    }

    fn hold(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn numbered(&mut self, table: &str, _: &str) -> Result<u64, Error> {
        let sql = "SELECT seq FROM sqlite_sequence WHERE name = $1";
        body::first(self, sql, &[table.into()])?.map_or(Ok(0), |mut row| row.take())
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn renumber(&mut self, table: &str, _: &str, last: u64) -> Result<(), Error> {
        let params = [table.into(), last.into()];
        let known = "UPDATE sqlite_sequence SET seq = $2 WHERE name = $1";
        if self.execute(known, &params)? == 0 {
            self.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)",
                &params,
            )?;
        }
        Ok(())
    }

    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

impl body::Session for Session {
    fn begin(&mut self, access: &Access) -> Result<(), Error> {
        let begin = match access {
            Access::Read => "BEGIN",
            Access::Write(_) => "BEGIN IMMEDIATE",
        };
        control(&self.connection, begin)
    }

    fn commit(&mut self, _: u64) -> Result<(), Error> {
        control(&self.connection, "COMMIT")
    }

    fn undo(&mut self) {
        self.outbox = Outbox::default();
        if !self.connection.is_autocommit()
            && let Err(error) = control(&self.connection, "ROLLBACK")
        {
            tracing::error!(
                error.code = error.code(),
                "could not undo a transaction: {error}"
            );
        }
    }
}

/// Binds `$N` to the N-th value: `SQLite` itself would count them as they appear.
fn bind(statement: &mut Statement<'_>, params: &[Value]) -> rusqlite::Result<()> {
    for index in 1..=statement.parameter_count() {
        let number = statement
            .parameter_name(index)
            .and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
        let value = number.and_then(|number| params.get(number.checked_sub(1)?));
        let value = value.ok_or(rusqlite::Error::InvalidParameterCount(
            params.len(),
            statement.parameter_count(),
        ))?;
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// Our tables are strict: they hold no other kinds, and no text that is not UTF-8.
fn read(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => Value::Null,
    }
}

/// Says what an error of `SQLite` means for us.
pub(crate) fn meaning(error: rusqlite::Error, path: Option<&Path>) -> Error {
    let code = error.sqlite_error().copied();
    let cause = Arc::new(error);
    let other = |cause| Error::Other {
        attempted: "read or write the database",
        cause: Some(cause),
    };
    let Some(code) = code else {
        return other(cause);
    };
    if code.extended_code == ffi::SQLITE_IOERR_SHMSIZE {
        // The index of the log could not grow: what a full disk looks like from there.
        return Error::Full;
    }
    if code.code == ErrorCode::DiskFull {
        Error::Full
    } else if code.code == ErrorCode::ReadOnly {
        Error::ReadOnly
    } else if code.code == ErrorCode::DatabaseCorrupt {
        Error::Corrupt {
            what: "its file is damaged",
            cause: Some(cause),
        }
    } else if code.code == ErrorCode::NotADatabase {
        Error::Corrupt {
            what: "its file is not a database",
            cause: Some(cause),
        }
    } else if let (ErrorCode::CannotOpen | ErrorCode::PermissionDenied, Some(path)) =
        (code.code, path)
    {
        Error::Unopenable {
            path: path.to_owned(),
            cause,
        }
    } else {
        other(cause)
    }
}
