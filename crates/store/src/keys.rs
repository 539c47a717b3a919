//! Answers to requests that carried a key, kept to be repeated.

use crate::body::{Document, FORMAT, Tx, encode, first};
use crate::error::Error;
use model::name::Name;
use model::time::Timestamp;
use serde::Serialize;

/// What tells a repeat of a request from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// What whoever asks drew for it.
    pub key: String,
    /// All that was asked, without anything secret.
    pub request: String,
}

/// A request with a key, in its project.
#[derive(Clone, Copy)]
pub(crate) struct Keyed<'a> {
    pub(crate) project: &'a Name,
    pub(crate) key: &'a str,
    /// The manifest that it is about; empty where it is about something else.
    pub(crate) manifest: &'a str,
    pub(crate) request: &'a str,
}

impl<'a> Keyed<'a> {
    /// One that is not about a manifest.
    pub(crate) fn of(project: &'a Name, repeat: &'a Repeat) -> Self {
        Self {
            project,
            key: &repeat.key,
            manifest: "",
            request: &repeat.request,
        }
    }
}

/// The key came with another request before.
pub(crate) struct Reused {
    pub(crate) key: String,
}

/// The answer that a request with this key got before.
pub(crate) fn recall<T, E>(tx: &mut dyn Tx, keyed: Keyed<'_>) -> Result<Option<T>, E>
where
    T: Document,
    E: From<Error> + From<Reused>,
{
    let row = first(
        tx,
        "SELECT manifest, text, format, answer FROM idempotency_keys WHERE project = $1 AND idempotency_key = $2",
        &[keyed.project.into(), keyed.key.into()],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let (manifest, request): (String, String) = (row.take()?, row.take()?);
    if manifest != keyed.manifest || request != keyed.request {
        let key = keyed.key.to_owned();
        return Err(Reused { key }.into());
    }
    Ok(Some(row.document()?))
}

/// Keeps an answer for as long as a repeat is likely.
pub(crate) fn remember<T: Serialize>(
    tx: &mut dyn Tx,
    keyed: Keyed<'_>,
    answer: &T,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO idempotency_keys (project, idempotency_key, at, manifest, text, format, answer)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            keyed.project.into(),
            keyed.key.into(),
            now.into(),
            keyed.manifest.into(),
            keyed.request.into(),
            FORMAT.into(),
            encode(answer)?,
        ],
    )?;
    Ok(())
}
