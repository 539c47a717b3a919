//! What a database must do for the questions: run portable SQL within one transaction.
//!
//! Questions are written once, against [`Tx`]. Parameters are `$1`, `$2`, …; columns are
//! read from left to right with [`Row::take`], in the order in which they were selected.
//! Booleans are 0 and 1, points in time are milliseconds, ids and names are their texts.
//! A statement may end in `FOR UPDATE`, which a body with one writer leaves out.

use crate::audit::Entry;
use crate::error::Error;
use crate::events::Noted;
use model::access::{Role, TokenId};
use model::cluster::Generation;
use model::environment::EnvironmentName;
use model::environment::status::{Deed, Status};
use model::environment::{action, delivery};
use model::id::{
    ActionId, ClusterId, DeliveryId, EnvironmentId, IntentId, JourneyId, MachineId, TaskId,
};
use model::name::Name;
use model::sealed::{KeyId, Owner};
use model::secret::EntryName;
use model::time::Timestamp;
use model::version::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// One open transaction.
pub(crate) trait Tx {
    /// Runs a statement and says how many rows it changed.
    fn execute(&mut self, sql: &str, params: &[Value]) -> Result<usize, Error>;

    /// Runs a statement and returns its rows.
    fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>, Error>;

    /// Runs a query once for each set of parameters, without waiting in between, and returns
    /// the rows of each.
    fn queries(&mut self, sql: &str, sets: &[Vec<Value>]) -> Result<Vec<Vec<Row>>, Error>;

    /// Runs a statement once for each set of parameters, without waiting in between, and
    /// says how many rows each changed.
    fn batch(&mut self, sql: &str, sets: &[Vec<Value>]) -> Result<Vec<usize>, Error>;

    /// Has something for itself until the transaction ends.
    ///
    /// For what is counted or chained across clusters. Where one thread writes alone it
    /// has everything for itself already.
    fn hold(&mut self, thing: &str) -> Result<(), Error>;

    /// The last number that a table gave to a row, whether or not the row is still there.
    fn numbered(&mut self, table: &str, column: &str) -> Result<u64, Error>;

    /// Whether nobody else can write meanwhile.
    fn is_alone(&self) -> bool;

    /// Lets the next row of a table get a number beyond this one.
    fn renumber(&mut self, table: &str, column: &str, last: u64) -> Result<(), Error>;

    /// What is written last, when the rest of the transaction is known to stand.
    fn outbox(&mut self) -> &mut Outbox;
}

/// A connection to a database, with one transaction at a time.
pub(crate) trait Session: Tx {
    /// Opens a transaction; connects again where the connection was lost.
    fn begin(&mut self, access: &Access) -> Result<(), Error>;

    /// Makes what was written durable, and tells other processes of the newest event.
    fn commit(&mut self, newest: u64) -> Result<(), Error>;

    /// Ends a transaction that is still open, whoever left it so, and forgets its outbox.
    fn undo(&mut self);
}

/// What a transaction may do, and what it has for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads one state of the database.
    Read,
    /// Writes what these scopes cover.
    Write(BTreeSet<Scope>),
}

/// What a question that writes must have for itself.
///
/// Bodies with several writers at once make those wait for each other whose scopes
/// overlap; all others go on side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// Everything: names, shapes and limits across clusters.
    Whole,
    /// One cluster.
    Cluster(ClusterId),
    /// Nothing: each of its statements is right by itself, whoever else writes.
    Rows,
}

/// What is written last in a transaction.
///
/// What follows from many changes of one cluster is done once. Events and audit entries are
/// numbered in the order in which they become true; that takes a lock that all writers
/// share, so it is held for the shortest time there is.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// What happened.
    pub(crate) events: Vec<Noted>,
    /// Who did what.
    pub(crate) audit: Vec<Entry>,
    /// Clusters whose lanes are to be computed anew.
    pub(crate) lanes: BTreeSet<ClusterId>,
    /// Clusters that may hold what they need no longer, and when that was noticed.
    pub(crate) settle: BTreeMap<ClusterId, Timestamp>,
    /// Tasks that were done, with wishes to be fulfilled, and when.
    pub(crate) done: Vec<(TaskId, Timestamp)>,
    /// Whether the question at hand has changed anything.
    pub(crate) wrote: bool,
    /// How the last statement that failed did so.
    pub(crate) failed: Option<Error>,
}

/// Whether a statement changes something.
pub(crate) fn writes(sql: &str) -> bool {
    !sql.starts_with("SELECT")
}

/// The first row, when there is one.
pub(crate) fn first(tx: &mut dyn Tx, sql: &str, params: &[Value]) -> Result<Option<Row>, Error> {
    Ok(tx.query(sql, params)?.into_iter().next())
}

/// How many rows or values one statement takes, from much to little: few sizes, so that there
/// are few different statements to prepare.
const AT_ONCE: [usize; 3] = [64, 8, 1];

/// Cuts a list into pieces that statements take.
fn pieces<T>(mut list: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = AT_ONCE.into_iter().find(|size| *size <= list.len())?;
        let (piece, rest) = list.split_at(size);
        list = rest;
        Some(piece)
    })
}

/// Places for parameters from this one on: `$3, $4`.
fn places(first: usize, count: usize) -> String {
    let places: Vec<_> = (first..first + count)
        .map(|place| format!("${place}"))
        .collect();
    places.join(", ")
}

/// Inserts rows, many with one statement; `into` names the table and its columns, `tail` is
/// what follows the values. Says how many rows there are more.
pub(crate) fn insert(
    tx: &mut dyn Tx,
    into: &str,
    rows: &[Vec<Value>],
    tail: &str,
) -> Result<usize, Error> {
    let mut inserted = 0;
    for piece in pieces(rows) {
        let width = piece.first().map_or(0, Vec::len);
        let tuples: Vec<_> = (0..piece.len())
            .map(|row| format!("({})", places(row * width + 1, width)))
            .collect();
        let sql = format!("INSERT INTO {into} VALUES {} {tail}", tuples.join(", "));
        inserted += tx.execute(&sql, &piece.concat())?;
    }
    Ok(inserted)
}

/// Runs a statement for a list of values, many at a time: `{}` stands for them, and `$1` and so
/// on for what is given besides. Returns all rows.
pub(crate) fn for_each(
    tx: &mut dyn Tx,
    sql: &str,
    given: &[Value],
    values: &[Value],
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for piece in pieces(values) {
        let sql = sql.replace("{}", &places(given.len() + 1, piece.len()));
        rows.extend(tx.query(&sql, &[given, piece].concat())?);
    }
    Ok(rows)
}

/// One value in a column or behind a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
}

/// One row of an answer.
#[derive(Debug)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

/// A value that a column can hold.
pub(crate) trait Read: Sized {
    /// The value, unless the column holds something else.
    fn read(value: Value) -> Option<Self>;
}

/// How documents are encoded; it rises when an old document needs another reader.
pub(crate) const FORMAT: u32 = 1;

/// What is stored as a document, under its format. A field that it does not know is refused
/// (`cargo xtask tidy` sees to it): a document of a later version is not half read.
pub(crate) trait Document: DeserializeOwned {
    /// What it is, as the object of a sentence.
    const WHAT: &'static str;
}

/// Kinds of documents, each with what it is called.
macro_rules! documents {
    ($($kind:ty = $what:literal),* $(,)?) => {$(
        impl Document for $kind {
            const WHAT: &'static str = $what;
        }
    )*};
}

documents!(
    model::manifest::Manifest = "a manifest",
    model::cluster::Desired = "the desired state of a cluster",
    model::cluster::Machine = "a machine",
    model::task::Task = "a task",
    model::intent::Intent = "a wish",
    model::observed::Fact = "what was seen",
    plan::Summary = "what was told of a cluster",
    Vec<plan::Held> = "what was told of work that waits",
    crate::submit::Submitted = "the answer to a request",
    crate::environments::EnvironmentAnswer = "the answer to a request about an environment",
    model::environment::settings::Settings = "what a project says of its environments",
    crate::environments::Body = "an environment",
    crate::environments::Order = "what is done to an environment",
    crate::environments::Request = "a request of a git service",
    model::environment::notify::Message = "what somebody is told of an environment",
);

/// Encodes a document as [`FORMAT`] says.
pub(crate) fn encode<T: Serialize>(document: &T) -> Result<Value, Error> {
    serde_json::to_string(document)
        .map(Value::Text)
        .map_err(|cause| Error::Other {
            attempted: "encode a document",
            cause: Some(std::sync::Arc::new(cause)),
        })
}

impl Row {
    /// Makes a row of its values, left to right.
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self(values.into_iter())
    }

    /// All columns that were not taken.
    pub(crate) fn rest(self) -> Vec<Value> {
        self.0.collect()
    }

    /// The next column to the right.
    pub(crate) fn take<T: Read>(&mut self) -> Result<T, Error> {
        let value = self.0.next().and_then(T::read);
        value.ok_or_else(|| Error::odd("a row", "one of its columns holds what it never should"))
    }

    /// The next two columns: a document's format and its text.
    pub(crate) fn document<T: Document>(&mut self) -> Result<T, Error> {
        let (format, text) = (self.take::<u32>()?, self.take::<String>()?);
        decode(format, &text)
    }

    /// The next two columns, unless another version of the program wrote them. Whoever asks about
    /// many things leaves that one out: it must not keep the others.
    pub(crate) fn readable<T: Document>(&mut self) -> Result<Option<T>, Error> {
        match self.document() {
            Ok(document) => Ok(Some(document)),
            Err(error) if error.is_unreadable() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next two columns, where both may be empty.
    pub(crate) fn maybe_document<T: Document>(&mut self) -> Result<Option<T>, Error> {
        match (self.take::<Option<u32>>()?, self.take::<Option<String>>()?) {
            (Some(format), Some(text)) => decode(format, &text).map(Some),
            (None, _) | (_, None) => Ok(None),
        }
    }
}

fn decode<T: Document>(format: u32, text: &str) -> Result<T, Error> {
    if format > FORMAT {
        return Err(Error::Document {
            what: T::WHAT,
            why: format!("its format is {format} and this program knows up to {FORMAT}"),
            newer: true,
            cause: None,
        });
    }
    serde_json::from_str(text).map_err(|cause| Error::Document {
        what: T::WHAT,
        why: "it is not of the form it should have".to_owned(),
        newer: false,
        cause: Some(std::sync::Arc::new(cause)),
    })
}

impl Read for i64 {
    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Int(number) => Some(number),
            Value::Null | Value::Text(_) => None,
        }
    }
}

impl Read for String {
    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text),
            Value::Null | Value::Int(_) => None,
        }
    }
}

impl Read for bool {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).map(|number| number != 0)
    }
}

impl Read for Timestamp {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).map(Self::from_millis)
    }
}

impl Read for Generation {
    fn read(value: Value) -> Option<Self> {
        u64::read(value).map(Self)
    }
}

impl<T: Read> Read for Option<T> {
    fn read(value: Value) -> Option<Self> {
        if value == Value::Null {
            Some(None)
        } else {
            T::read(value).map(Some)
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<&Name> for Value {
    fn from(name: &Name) -> Self {
        Self::Text(name.as_str().to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Int(truth.into())
    }
}

impl From<Timestamp> for Value {
    fn from(at: Timestamp) -> Self {
        Self::Int(at.as_millis())
    }
}

impl From<Generation> for Value {
    fn from(generation: Generation) -> Self {
        generation.0.into()
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(maybe: Option<T>) -> Self {
        maybe.map_or(Self::Null, Into::into)
    }
}

impl Read for u32 {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).and_then(|number| Self::try_from(number).ok())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl Read for u64 {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).and_then(|number| Self::try_from(number).ok())
    }
}

impl From<u64> for Value {
    /// A count beyond 2^63 is as good as 2^63.
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Types whose column is the text they print.
macro_rules! printed {
    ($($kind:ty),*) => {$(
        impl Read for $kind {
            fn read(value: Value) -> Option<Self> {
                String::read(value).and_then(|text| text.parse().ok())
            }
        }
    )*};
}

printed!(
    ActionId,
    action::State,
    ClusterId,
    Deed,
    DeliveryId,
    EntryName,
    EnvironmentId,
    EnvironmentName,
    IntentId,
    JourneyId,
    KeyId,
    MachineId,
    Name,
    Owner,
    Role,
    Status,
    TaskId,
    TokenId,
    Version,
    delivery::State,
    model::task::State,
    plan::Phase
);

/// Ids, which are small enough to be handed over by value.
macro_rules! ids {
    ($($id:ty),*) => {$(
        impl From<$id> for Value {
            fn from(id: $id) -> Self {
                Self::Text(id.to_string())
            }
        }
    )*};
}

ids!(
    ActionId,
    ClusterId,
    DeliveryId,
    EnvironmentId,
    IntentId,
    JourneyId,
    KeyId,
    MachineId,
    TaskId,
    TokenId,
    Version
);

/// Words, which stand for themselves.
macro_rules! words {
    ($($word:ty),*) => {$(
        impl From<$word> for Value {
            fn from(word: $word) -> Self {
                Self::Text(word.as_str().to_owned())
            }
        }
    )*};
}

words!(
    Deed,
    Status,
    action::State,
    delivery::State,
    &EnvironmentName
);
