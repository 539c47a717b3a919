//! The log of a task, line by line as it is written.

use super::wire::{Heard, Wire};
use super::{Client, Error};
use crate::sse::Item;
use crate::task::{END, LINE, LogEnd, LogLine};

/// What a followed log has to say.
#[derive(Debug)]
pub enum LogSignal {
    /// The stream begins, or goes on after it was lost.
    Open,
    /// A line.
    Line(LogLine),
    /// The task has ended, and this was all.
    End(LogEnd),
    /// Something that this version cannot read.
    Unknown,
    /// The connection is gone; the next call waits and connects again.
    Lost(Error),
}

/// The log of one task, followed until the task has ended.
///
/// Dropping a call of [`TaskLog::next`] before it ends loses nothing.
pub struct TaskLog(Wire);

impl TaskLog {
    pub(super) fn new(client: Client, id: &str, after: u64) -> Self {
        let path = ["tasks", id, "log"];
        Self(Wire::new(client, &path, (after > 0).then_some(after)))
    }

    /// The place of the last line that was handed out.
    pub fn after(&self) -> u64 {
        self.0.after().unwrap_or(0)
    }

    /// Waits for the next signal; after [`LogSignal::End`] there is nothing to wait for.
    ///
    /// Fails when the stream could not even begin, and when the server refuses it: another
    /// try would end the same way.
    pub async fn next(&mut self) -> Result<LogSignal, Error> {
        Ok(match self.0.next().await? {
            Heard::Open => LogSignal::Open,
            Heard::Item(Item::Message { event, data, .. }) => read(event.as_deref(), &data),
            Heard::Item(Item::TooLong) => LogSignal::Unknown,
            Heard::Lost(error) => LogSignal::Lost(error),
        })
    }
}

fn read(event: Option<&str>, data: &str) -> LogSignal {
    let read = match event {
        Some(LINE) => serde_json::from_str(data).map(LogSignal::Line),
        Some(END) => serde_json::from_str(data).map(LogSignal::End),
        Some(_) | None => return LogSignal::Unknown,
    };
    read.unwrap_or(LogSignal::Unknown)
}
