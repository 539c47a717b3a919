//! Everything there is as one file, and back: for backups, and to move between bodies.
//!
//! The file is lines of JSON: a head, then each table's name followed by its rows, then an
//! end with the number of rows and a digest of all that went before. It is written from
//! one state of the database while others go on writing, and read in one transaction into
//! an empty one, after its end was found and its digest compared: nothing is half done.

use crate::Store;
use crate::body::{Scope, Tx, Value, first, insert};
use crate::error::Error;
use crate::{environments, migrations, observations, queue};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// Rows that are read or written at once.
const ROWS: u32 = 500;

/// Nobody but its owner reads a file that holds what the database holds.
const MODE: u32 = 0o600;

/// Every table, with the columns that order it, and the column that numbers its rows where
/// the database does.
const TABLES: &[(&str, &[&str], Option<&str>)] = &[
    ("projects", &["name"], None),
    ("manifests", &["project", "name"], None),
    ("stems", &["project", "stem", "manifest"], None),
    (
        "manifest_generations",
        &["project", "name", "generation"],
        None,
    ),
    ("idempotency_keys", &["project", "idempotency_key"], None),
    ("clusters", &["id"], None),
    ("desired", &["cluster", "generation"], None),
    ("machines", &["id"], None),
    ("intents", &["seq"], Some("seq")),
    ("tasks", &["seq"], Some("seq")),
    ("lanes", &["cluster"], None),
    ("lane_changes", &["id"], Some("id")),
    ("task_logs", &["task", "seq"], None),
    ("task_log_lengths", &["task"], None),
    ("claims", &["thing", "unit"], None),
    ("ledger", &["cluster", "machine"], None),
    ("observations", &["cluster", "object", "source"], None),
    ("observation_changes", &["id"], Some("id")),
    ("events", &["id"], Some("id")),
    ("journeys", &["project", "id"], None),
    ("paces", &["id"], Some("id")),
    ("environment_settings", &["project"], None),
    ("environments", &["id"], None),
    ("environment_labels", &["environment", "label"], None),
    ("environment_checks", &["environment"], None),
    ("environment_actions", &["seq"], Some("seq")),
    ("environment_output", &["action", "seq"], None),
    ("environment_output_lengths", &["action"], None),
    ("environment_changes", &["id"], Some("id")),
    ("git_requests", &["project", "source", "number"], None),
    ("git_deliveries", &["project", "source", "delivery"], None),
    ("environment_deliveries", &["seq"], Some("seq")),
    ("environment_ends_told", &["environment"], None),
    ("environment_inits", &["project", "place"], None),
    ("tokens", &["id"], None),
    ("seal_keys", &["id"], None),
    ("sealed", &["project", "owner", "entry"], None),
    ("audit", &["seq"], None),
];

/// Columns that tables got since there are such files: with which format, and what a row has there that
/// was written before. They stand at the end, in the order in which they came.
const ADDED: &[(u64, &str, &[Since])] = &[
    (3, "observations", &[Since::Nothing]),
    (5, "manifests", &[Since::Zero]),
    (5, "manifest_generations", &[Since::Empty, Since::Empty]),
    (5, "desired", &[Since::Empty, Since::Empty]),
    (9, "environment_actions", &[Since::Nothing, Since::Nothing]),
];

/// What a column has in rows from before there was one.
#[derive(Debug, Clone, Copy)]
enum Since {
    Nothing,
    Zero,
    Empty,
}

impl From<Since> for Value {
    fn from(since: Since) -> Self {
        match since {
            Since::Nothing => Self::Null,
            Since::Zero => Self::Int(0),
            Since::Empty => Self::Text(String::new()),
        }
    }
}

/// What rows of a table lack that a format knows nothing of.
fn lacking(format: u64, table: &str) -> Vec<Value> {
    let later = |(since, of, _): &&(u64, &str, &[Since])| *since > format && *of == table;
    let added = ADDED.iter().filter(later);
    let added = added.flat_map(|(_, _, columns)| columns.iter().copied());
    added.map(Value::from).collect()
}

/// What was written or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dumped {
    /// How many rows.
    pub rows: u64,
    /// When it was written.
    pub at: Timestamp,
}

impl Dumped {
    /// Looks whether a file is whole and as it was written; no database is needed for that.
    pub fn verified(path: &Path) -> Result<Self, DumpError> {
        verify(path)
    }
}

/// Why a file could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The file cannot be written.
    #[error("could not write the file")]
    Write(#[source] Arc<io::Error>),
    /// The file cannot be read.
    #[error("could not read the file")]
    Read(#[source] Arc<io::Error>),
    /// It is not a backup.
    #[error("this is not a backup of Slipway")]
    NotOurs,
    /// A later version wrote it.
    #[error("the backup has format {found} and this program knows up to {known}")]
    Newer {
        /// Its format.
        found: u64,
        /// The newest format this program knows.
        known: u64,
    },
    /// It has no end: writing or copying it was interrupted.
    #[error("the backup is cut off after line {line}")]
    Truncated {
        /// The last line that is whole.
        line: u64,
    },
    /// It is not what was written.
    #[error("the backup was damaged, its digest does not fit what it holds")]
    Damaged,
    /// There is something already where it should go.
    #[error("the database is not empty")]
    Occupied,
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

impl DumpError {
    /// The stable code; its page is `docs/errors/CODE.md`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Write(_) => "BACKUP-001",
            Self::Read(_) => "BACKUP-002",
            Self::NotOurs => "BACKUP-003",
            Self::Newer { .. } => "BACKUP-004",
            Self::Truncated { .. } => "BACKUP-005",
            Self::Damaged => "BACKUP-006",
            Self::Occupied => "BACKUP-007",
            Self::Store(error) => error.code(),
        }
    }

    /// What would help.
    pub fn hint(&self) -> String {
        match self {
            Self::Write(_) => "make room on the disk and let this user write there".to_owned(),
            Self::Read(_) => "check the path, and that this user may read it".to_owned(),
            Self::NotOurs => "name a file that `slipway backup create` has written".to_owned(),
            Self::Newer { .. } => {
                "restore with the version of slipway that wrote it, or a later one".to_owned()
            }
            Self::Truncated { .. } | Self::Damaged => {
                "take another copy of it, or an earlier backup; nothing was restored".to_owned()
            }
            Self::Occupied => {
                "restore into a new data directory or an empty database; nothing was changed"
                    .to_owned()
            }
            Self::Store(error) => error.hint(),
        }
    }
}

/// One line of the file that is not a row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", untagged)]
enum Line {
    Head {
        slipway: String,
        format: u64,
        at: i64,
    },
    Table {
        table: String,
        /// The last number that it gave to a row, where it numbers them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<u64>,
    },
    End {
        rows: u64,
        sha256: String,
    },
    Row(Vec<Cell>),
}

/// One value of a row: null, a number or a text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Cell {
    Null,
    Int(i64),
    Text(String),
}

/// What the head of the file says it is.
const MARK: &str = "backup";

impl Store {
    /// Writes everything there is to a file, as it is at one moment.
    pub async fn dump(&self, path: &Path, now: Timestamp) -> Result<Dumped, DumpError> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(MODE)
            .open(path)
            .map_err(written)?;
        self.dump_to(file, now, ()).await
    }

    /// The same into a file that is open and may have no name; what it holds is replaced.
    /// `turn` is kept until the last row is written, also when nobody waits for that any more.
    pub async fn dump_to(
        &self,
        file: File,
        now: Timestamp,
        turn: impl Send + 'static,
    ) -> Result<Dumped, DumpError> {
        let question = move |tx: &mut dyn Tx| {
            let _turn = &turn;
            dump(tx, &file, now)
        };
        self.runner.read(question).await
    }

    /// Reads everything from such a file into this store, which must be empty: for a copy of
    /// what nobody works with any more.
    pub async fn load(&self, path: &Path) -> Result<Dumped, DumpError> {
        let path = path.to_owned();
        self.runner
            .write(Scope::Whole, move |tx| load_verified(tx, &path))
            .await
    }

    /// The same from a file that was written some time ago. The world has gone on since: nobody
    /// holds a lease, what was open may have been done, and nothing is planned for a cluster
    /// before somebody has looked at it ([`crate::ClusterView::is_unseen`]).
    pub async fn restore(&self, path: &Path, now: Timestamp) -> Result<Dumped, DumpError> {
        let path = path.to_owned();
        self.runner
            .write(Scope::Whole, move |tx| {
                let dumped = load_verified(tx, &path)?;
                queue::doubt(tx, now)?;
                environments::doubt(tx, now)?;
                environments::doubt_deliveries(tx, now)?;
                observations::doubt(tx)?;
                Ok(dumped)
            })
            .await
    }
}

fn written(cause: io::Error) -> DumpError {
    DumpError::Write(Arc::new(cause))
}

fn unread(cause: io::Error) -> DumpError {
    DumpError::Read(Arc::new(cause))
}

/// A file that is digested while it is written.
struct Output<'a> {
    file: BufWriter<&'a File>,
    digest: Sha256,
}

impl Output<'_> {
    fn line(&mut self, line: &Line) -> Result<(), DumpError> {
        let mut text = serde_json::to_vec(line).map_err(|error| written(error.into()))?;
        text.push(b'\n');
        self.digest.update(&text);
        self.file.write_all(&text).map_err(written)
    }
}

fn dump(tx: &mut dyn Tx, mut file: &File, now: Timestamp) -> Result<Dumped, DumpError> {
    // A question can run more than once: what the last try wrote goes first.
    file.rewind().map_err(written)?;
    file.set_len(0).map_err(written)?;
    let mut output = Output {
        file: BufWriter::new(file),
        digest: Sha256::new(),
    };
    output.line(&Line::Head {
        slipway: MARK.to_owned(),
        format: migrations::FORMAT,
        at: now.as_millis(),
    })?;
    let mut rows = 0;
    for (table, order, numbered) in TABLES {
        let last = numbered
            .map(|column| tx.numbered(table, column))
            .transpose()?;
        output.line(&Line::Table {
            table: (*table).to_owned(),
            last,
        })?;
        rows += dump_table(tx, &mut output, table, order)?;
    }
    let sha256 = hex(output.digest.clone().finalize().as_slice());
    output.line(&Line::End { rows, sha256 })?;
    let file = output
        .file
        .into_inner()
        .map_err(|error| written(error.into_error()))?;
    file.sync_all().map_err(written)?;
    Ok(Dumped { rows, at: now })
}

/// Writes a table page by page: each begins after the last row of the one before.
fn dump_table(
    tx: &mut dyn Tx,
    output: &mut Output<'_>,
    table: &str,
    order: &[&str],
) -> Result<u64, DumpError> {
    let names = order.join(", ");
    let places: Vec<_> = (1..=order.len()).map(|place| format!("${place}")).collect();
    let limit = order.len() + 1;
    let beginning = format!("SELECT {names}, {table}.* FROM {table} ORDER BY {names} LIMIT $1");
    let following = format!(
        "SELECT {names}, {table}.* FROM {table} WHERE ({names}) > ({}) ORDER BY {names} LIMIT ${limit}",
        places.join(", ")
    );
    let mut last: Option<Vec<Value>> = None;
    let mut count = 0;
    loop {
        let page = match last.take() {
            None => tx.query(&beginning, &[ROWS.into()])?,
            Some(mut key) => {
                key.push(ROWS.into());
                tx.query(&following, &key)?
            }
        };
        let full = u32::try_from(page.len()).is_ok_and(|len| len == ROWS);
        for row in page {
            let mut values = row.rest();
            let cells = values.split_off(order.len());
            output.line(&Line::Row(cells.into_iter().map(Cell::from).collect()))?;
            count += 1;
            last = Some(values);
        }
        if !full {
            return Ok(count);
        }
    }
}

/// Looks whether a file is whole and what was written, before anything is read from it.
fn verify(path: &Path) -> Result<Dumped, DumpError> {
    let mut file = BufReader::new(File::open(path).map_err(unread)?);
    let mut digest = Sha256::new();
    let (mut line, mut rows, mut head) = (0, 0, None);
    let mut text = Vec::new();
    loop {
        text.clear();
        if file.read_until(b'\n', &mut text).map_err(unread)? == 0 {
            return Err(missing_end(head, line));
        }
        let parsed = text
            .ends_with(b"\n")
            .then(|| serde_json::from_slice::<Line>(&text).ok())
            .flatten();
        match parsed {
            Some(Line::Head {
                slipway,
                format,
                at,
            }) if line == 0 && slipway == MARK => {
                if format > migrations::FORMAT {
                    return Err(DumpError::Newer {
                        found: format,
                        known: migrations::FORMAT,
                    });
                }
                head = Some(Timestamp::from_millis(at));
            }
            Some(Line::End {
                rows: promised,
                sha256,
            }) => {
                let at = head.ok_or(DumpError::NotOurs)?;
                let more = !file.fill_buf().map_err(unread)?.is_empty();
                if more || promised != rows || sha256 != hex(digest.finalize().as_slice()) {
                    return Err(DumpError::Damaged);
                }
                return Ok(Dumped { rows, at });
            }
            Some(Line::Table { .. }) if head.is_some() => {}
            Some(Line::Row(_)) if head.is_some() => rows += 1,
            Some(_) | None if head.is_none() => return Err(DumpError::NotOurs),
            None if !text.ends_with(b"\n") => return Err(missing_end(head, line)),
            Some(_) | None => return Err(DumpError::Damaged),
        }
        digest.update(&text);
        line += 1;
    }
}

fn missing_end(head: Option<Timestamp>, line: u64) -> DumpError {
    head.map_or(DumpError::NotOurs, |_| DumpError::Truncated { line })
}

fn load_verified(tx: &mut dyn Tx, path: &Path) -> Result<Dumped, DumpError> {
    let dumped = verify(path)?;
    empty(tx)?;
    load(tx, path)?;
    Ok(dumped)
}

/// Whether somebody has done something in a database.
pub(crate) fn is_used(tx: &mut dyn Tx) -> Result<bool, Error> {
    // There is a project from the beginning, and whoever makes another is audited.
    let tables = TABLES.iter().map(|(table, ..)| table);
    for table in tables.filter(|table| **table != "projects") {
        if first(tx, &format!("SELECT 1 FROM {table} LIMIT 1"), &[])?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes room in a database that nobody has used.
fn empty(tx: &mut dyn Tx) -> Result<(), DumpError> {
    if is_used(tx)? {
        return Err(DumpError::Occupied);
    }
    tx.execute("DELETE FROM projects", &[])?;
    Ok(())
}

fn load(tx: &mut dyn Tx, path: &Path) -> Result<(), DumpError> {
    let file = BufReader::new(File::open(path).map_err(unread)?);
    let mut table = String::new();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let mut numbers = Vec::new();
    let (mut format, mut lacks) = (migrations::FORMAT, Vec::new());
    let full = usize::try_from(ROWS).unwrap_or(usize::MAX);
    for line in file.lines() {
        let line = line.map_err(unread)?;
        match serde_json::from_str(&line).map_err(|_| DumpError::Damaged)? {
            Line::Head { format: of, .. } => format = of,
            Line::Table { table: next, last } => {
                flush(tx, &table, &mut rows)?;
                lacks = lacking(format, &next);
                let known = TABLES.iter().find(|(known, ..)| *known == next);
                match known.map(|(.., column)| (*column, last)) {
                    Some((Some(column), Some(last))) => numbers.push((next.clone(), column, last)),
                    Some((None, None)) => {}
                    Some((None, Some(_)) | (Some(_), None)) | None => {
                        return Err(DumpError::Damaged);
                    }
                }
                table = next;
            }
            Line::Row(cells) => {
                let cells = cells.into_iter().map(Value::from);
                rows.push(cells.chain(lacks.iter().cloned()).collect());
                if rows.len() >= full {
                    flush(tx, &table, &mut rows)?;
                }
            }
            Line::End { .. } => flush(tx, &table, &mut rows)?,
        }
    }
    for (table, column, last) in numbers {
        tx.renumber(&table, column, last)?;
    }
    // Who claims here may go by the lanes alone, so what was said to have changed is seen to
    // with the commit.
    for mut row in tx.query("DELETE FROM lane_changes RETURNING cluster", &[])? {
        queue::refresh(tx, row.take()?);
    }
    Ok(())
}

fn flush(tx: &mut dyn Tx, table: &str, rows: &mut Vec<Vec<Value>>) -> Result<(), DumpError> {
    insert(tx, table, rows, "")?;
    rows.clear();
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(number) => Self::Int(number),
            Value::Text(text) => Self::Text(text),
        }
    }
}

impl From<Cell> for Value {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Int(number) => Self::Int(number),
            Cell::Text(text) => Self::Text(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_known() -> Result<(), Error> {
        let mut tx = crate::sqlite::in_memory()?;
        let rows = tx.query(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
               AND name <> 'schema_version' ORDER BY name",
            &[],
        )?;
        let there = rows
            .into_iter()
            .map(|mut row| row.take::<String>())
            .collect::<Result<Vec<_>, _>>()?;
        let mut known: Vec<_> = TABLES
            .iter()
            .map(|(table, ..)| (*table).to_owned())
            .collect();
        known.sort();
        assert_eq!(there, known);
        Ok(())
    }
}
