//! What a database must do for the questions: run portable SQL within one transaction.
//!
//! Questions are written once, against [`Tx`]. Parameters are `$1`, `$2`, …; columns are
//! read from left to right with [`Row::take`], in the order in which they were selected.
//! Booleans are 0 and 1, points in time are milliseconds, ids and names are their texts.

use crate::error::Error;
use model::cluster::Generation;
use model::id::{ClusterId, IntentId, JourneyId, MachineId, TaskId};
use model::name::Name;
use model::time::Timestamp;
use model::version::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One open transaction.
pub(crate) trait Tx {
    /// Runs a statement and says how many rows it changed.
    fn execute(&mut self, sql: &str, params: &[Value]) -> Result<usize, Error>;

    /// Runs a statement and returns its rows.
    fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Row>, Error>;

    /// Remembers the id of an event; subscribers hear of the newest after the commit.
    fn announce(&mut self, event: u64);
}

/// The first row, when there is one.
pub(crate) fn first(tx: &mut dyn Tx, sql: &str, params: &[Value]) -> Result<Option<Row>, Error> {
    Ok(tx.query(sql, params)?.into_iter().next())
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
        self.0.next().and_then(T::read).ok_or(Error::Corrupt {
            what: "a column holds what it never should",
            cause: None,
        })
    }

    /// The next two columns: a document's format and its text.
    pub(crate) fn document<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let (format, text) = (self.take::<u32>()?, self.take::<String>()?);
        decode(format, &text)
    }

    /// The next two columns, where both may be empty.
    pub(crate) fn maybe_document<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        match (self.take::<Option<u32>>()?, self.take::<Option<String>>()?) {
            (Some(format), Some(text)) => decode(format, &text).map(Some),
            (None, _) | (_, None) => Ok(None),
        }
    }
}

fn decode<T: DeserializeOwned>(format: u32, text: &str) -> Result<T, Error> {
    if format > FORMAT {
        return Err(Error::Newer {
            found: format.into(),
            known: FORMAT.into(),
        });
    }
    serde_json::from_str(text)
        .map_err(|cause| Error::corrupt("a document is not of the form it should have", cause))
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
    ClusterId,
    IntentId,
    JourneyId,
    MachineId,
    Name,
    TaskId,
    Version,
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

ids!(ClusterId, IntentId, JourneyId, MachineId, TaskId, Version);
