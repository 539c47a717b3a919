//! What attempts wrote: the beginning and the end of it, and how much lay between.

use crate::Store;
use crate::body::{Tx, first};
use crate::error::Error;
use model::id::TaskId;
use model::time::Timestamp;

/// Lines that are kept from the beginning: how it started explains much of what follows.
const HEAD_LINES: u64 = 200;

/// Lines that are kept from the end: how it ended is what people look for.
const TAIL_LINES: u64 = 800;

/// The longest line in bytes; a tool that prints a document on one line is cut short.
const LINE_MAX: usize = 4096;

/// Lines per answer at most.
const LIMIT_MAX: u32 = 1000;

/// One line of a task's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its place in the log; a reader resumes after the last one it has seen.
    pub seq: u64,
    /// Which attempt wrote it.
    pub attempt: u32,
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

impl Store {
    /// Lines of a task's log after that place; one line says how many were dropped.
    pub async fn task_log(
        &self,
        task: TaskId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LogLine>, Error> {
        let limit = limit.clamp(1, LIMIT_MAX);
        self.runner
            .read(move |tx| read(tx, task, after, limit))
            .await
    }
}

fn read(tx: &mut dyn Tx, task: TaskId, after: u64, limit: u32) -> Result<Vec<LogLine>, Error> {
    let rows = tx.query(
        "SELECT seq, attempt, at, text FROM task_logs WHERE task = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        &[task.into(), after.into(), limit.into()],
    )?;
    let mut lines = Vec::with_capacity(rows.len());
    let mut expected = after + 1;
    for mut row in rows {
        let line = LogLine {
            seq: row.take()?,
            attempt: row.take()?,
            at: row.take()?,
            text: row.take()?,
        };
        if line.seq > expected {
            // Stands in the place of the last line that it speaks of, so that a reader
            // who stops here goes on with the next one.
            let dropped = line.seq - expected;
            let text = format!("… {dropped} lines were dropped here …");
            lines.push(LogLine {
                seq: line.seq - 1,
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

/// Appends lines of one attempt and drops what is beyond the bounds.
pub(crate) fn append(
    tx: &mut dyn Tx,
    task: TaskId,
    attempt: u32,
    lines: &[(Timestamp, String)],
) -> Result<(), Error> {
    if lines.is_empty() {
        return Ok(());
    }
    let added = u64::try_from(lines.len()).unwrap_or(u64::MAX);
    let at = lines.last().map(|(at, _)| *at).unwrap_or_default();
    let total = first(
        tx,
        "INSERT INTO task_log_lengths (task, lines, at) VALUES ($1, $2, $3)
         ON CONFLICT (task) DO UPDATE SET lines = task_log_lengths.lines + excluded.lines, at = excluded.at
         RETURNING lines",
        &[task.into(), added.into(), at.into()],
    )?;
    let Some(total) = total.map(|mut row| row.take::<u64>()).transpose()? else {
        return Ok(());
    };
    let tail = total.saturating_sub(TAIL_LINES);
    let kept: Vec<_> = (total - added + 1..)
        .zip(lines)
        .filter(|(seq, _)| *seq <= HEAD_LINES || *seq > tail)
        .map(|(seq, (at, text))| {
            let text = shortened(text.clone());
            vec![
                task.into(),
                seq.into(),
                attempt.into(),
                (*at).into(),
                text.into(),
            ]
        })
        .collect();
    tx.batch(
        "INSERT INTO task_logs (task, seq, attempt, at, text) VALUES ($1, $2, $3, $4, $5)",
        &kept,
    )?;
    if tail > HEAD_LINES {
        tx.execute(
            "DELETE FROM task_logs WHERE task = $1 AND seq > $2 AND seq <= $3",
            &[task.into(), HEAD_LINES.into(), tail.into()],
        )?;
    }
    Ok(())
}

/// A text as it is kept: whole where possible, cut where a tool printed a novel.
pub(crate) fn shortened(mut text: String) -> String {
    if text.len() > LINE_MAX {
        text.truncate(text.floor_char_boundary(LINE_MAX));
        text.push('…');
    }
    text
}
