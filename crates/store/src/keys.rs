//! Answers to submissions that carried a key, kept to be repeated.

use crate::body::{FORMAT, Tx, encode, first};
use crate::error::Error;
use crate::submit::{Submission, SubmitError, Submitted};
use model::name::Name;
use model::time::Timestamp;

/// The answer that a submission with this key got before.
pub(crate) fn recall(
    tx: &mut dyn Tx,
    submission: &Submission,
) -> Result<Option<Submitted>, SubmitError> {
    let Some(key) = &submission.key else {
        return Ok(None);
    };
    let row = first(
        tx,
        "SELECT manifest, text, format, answer FROM idempotency_keys WHERE project = $1 AND idempotency_key = $2",
        &[(&submission.project).into(), key.into()],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let (manifest, text): (Name, String) = (row.take()?, row.take()?);
    if manifest != submission.manifest.name || text != submission.text {
        return Err(SubmitError::KeyReused { key: key.clone() });
    }
    Ok(Some(row.document()?))
}

/// Keeps an answer for as long as a repeat is likely.
pub(crate) fn remember(
    tx: &mut dyn Tx,
    submission: &Submission,
    submitted: &Submitted,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(key) = &submission.key else {
        return Ok(());
    };
    tx.execute(
        "INSERT INTO idempotency_keys (project, idempotency_key, at, manifest, text, format, answer)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            (&submission.project).into(),
            key.into(),
            now.into(),
            (&submission.manifest.name).into(),
            (&submission.text).into(),
            FORMAT.into(),
            encode(submitted)?,
        ],
    )?;
    Ok(())
}
