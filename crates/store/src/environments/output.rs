//! What actions printed: the beginning and the end of it, and how much lay between.

use crate::Store;
use crate::audit;
use crate::body::{Row, Tx, Value, first, insert};
use crate::error::Error;
use model::id::ActionId;
use model::name::Name;
use model::time::Timestamp;

/// Lines that are kept from the beginning: how it started explains much of what follows.
pub const HEAD: u64 = 2_000;

/// Lines that are kept from the end: how it ended is what people look for.
pub const TAIL: u64 = 8_000;

/// Lines per answer at most.
const LIMIT_MAX: u32 = 1_000;

/// Which of the two streams of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutputStream {
    /// What it prints.
    Out,
    /// What it complains about.
    Err,
}

impl OutputStream {
    /// The word of the public contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

/// One line that an action printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLine {
    /// Its place in all that was printed; a reader resumes after the last one it has seen.
    pub seq: u64,
    /// Where it was printed.
    pub stream: OutputStream,
    /// Its number there, from 1 on.
    pub line: u64,
    /// When it was read.
    pub at: Timestamp,
    /// What it says.
    pub text: String,
}

/// A line that an action printed, on its way here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// Its place in all that was printed, as far as whoever brings it knows: lines before it that
    /// would not be kept are not brought.
    pub place: u64,
    /// Where it was printed.
    pub stream: OutputStream,
    /// Its number there, from 1 on.
    pub number: u64,
    /// When it was read.
    pub at: Timestamp,
    /// What it says.
    pub text: String,
}

impl Store {
    /// What an action of a project printed after that place; none where there is no such action.
    /// One line says how many were dropped.
    pub async fn action_output(
        &self,
        project: &Name,
        action: ActionId,
        after: u64,
        limit: u32,
    ) -> Result<Option<Vec<OutputLine>>, Error> {
        let project = project.clone();
        let limit = limit.clamp(1, LIMIT_MAX);
        let question = move |tx: &mut dyn Tx| {
            let there = first(
                tx,
                "SELECT 1 FROM environment_actions WHERE id = $1 AND project = $2",
                &[action.into(), (&project).into()],
            )?;
            there.map(|_| read(tx, action, after, limit)).transpose()
        };
        self.runner.read(question).await
    }
}

fn read(
    tx: &mut dyn Tx,
    action: ActionId,
    after: u64,
    limit: u32,
) -> Result<Vec<OutputLine>, Error> {
    let rows = tx.query(
        "SELECT seq, stream, line, at, text FROM environment_output WHERE action = $1 AND seq > $2
         ORDER BY seq LIMIT $3",
        &[action.into(), after.into(), limit.into()],
    )?;
    let mut lines: Vec<OutputLine> = Vec::with_capacity(rows.len());
    let mut expected = after + 1;
    for row in rows {
        let line = line(row)?;
        if line.seq > expected {
            // Stands in the place of the last line that it speaks of, so that a reader who stops
            // here goes on with the next one.
            let text = format!("… {} lines were dropped here …", line.seq - expected);
            let seq = line.seq - 1;
            lines.push(OutputLine {
                seq,
                text,
                ..line.clone()
            });
        }
        expected = line.seq + 1;
        lines.push(line);
    }
    lines.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(lines)
}

fn line(mut row: Row) -> Result<OutputLine, Error> {
    let seq = row.take()?;
    let stream = if row.take::<String>()? == OutputStream::Err.as_str() {
        OutputStream::Err
    } else {
        OutputStream::Out
    };
    Ok(OutputLine {
        seq,
        stream,
        line: row.take()?,
        at: row.take()?,
        text: row.take()?,
    })
}

/// How many lines of either stream there are.
pub(super) fn lengths(tx: &mut dyn Tx, action: ActionId) -> Result<(u64, u64), Error> {
    let row = first(
        tx,
        "SELECT out, err FROM environment_output_lengths WHERE action = $1",
        &[action.into()],
    )?;
    row.map_or(Ok((0, 0)), |mut row| Ok((row.take()?, row.take()?)))
}

/// Appends lines; those that are known already are passed over, so that who is not sure may append
/// again. What is beyond the bounds is dropped.
pub(super) fn append(tx: &mut dyn Tx, action: ActionId, lines: &[Printed]) -> Result<(), Error> {
    let Some(newest) = lines.iter().map(|line| line.at).max() else {
        return Ok(());
    };
    let row = first(
        tx,
        "SELECT lines, out, err FROM environment_output_lengths WHERE action = $1",
        &[action.into()],
    )?;
    let (before, mut out, mut err) = match row {
        Some(mut row) => (row.take()?, row.take()?, row.take()?),
        None => (0_u64, 0_u64, 0_u64),
    };
    let mut total = before;
    let mut new = Vec::with_capacity(lines.len());
    for line in lines {
        let known = match line.stream {
            OutputStream::Out => &mut out,
            OutputStream::Err => &mut err,
        };
        if line.number > *known {
            *known = line.number;
            // Who follows it after a crash does not know of lines that nobody kept.
            total = line.place.max(total + 1);
            new.push((total, line));
        }
    }
    let tail = total.saturating_sub(TAIL);
    let kept: Vec<Vec<Value>> = new
        .into_iter()
        .filter(|(seq, _)| *seq <= HEAD || *seq > tail)
        .map(|(seq, line)| {
            vec![
                action.into(),
                seq.into(),
                line.stream.as_str().into(),
                line.number.into(),
                line.at.into(),
                audit::kept(line.text.clone()).into(),
            ]
        })
        .collect();
    let into = "environment_output (action, seq, stream, line, at, text)";
    insert(tx, into, &kept, "")?;
    tx.execute(
        "INSERT INTO environment_output_lengths (action, lines, out, err, at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (action) DO UPDATE SET lines = excluded.lines, out = excluded.out, err = excluded.err,
             at = excluded.at",
        &[
            action.into(),
            total.into(),
            out.into(),
            err.into(),
            newest.into(),
        ],
    )?;
    let fallen = (before.saturating_sub(TAIL).max(HEAD), tail);
    if fallen.1 > fallen.0 {
        tx.execute(
            "DELETE FROM environment_output WHERE action = $1 AND seq > $2 AND seq <= $3",
            &[action.into(), fallen.0.into(), fallen.1.into()],
        )?;
    }
    Ok(())
}
