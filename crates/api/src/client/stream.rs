//! The live stream of events.
//!
//! Events mean "look soon": whoever listens refetches what it shows.

use super::wire::{Heard, Wire};
use super::{Client, Error};
use crate::event::EventView;
use crate::sse::Item;

/// What a stream has to say.
#[derive(Debug)]
pub enum Signal {
    /// The stream begins, or goes on after it was lost.
    Open,
    /// Something happened.
    Event(EventView),
    /// Something happened that this version cannot read.
    Unknown,
    /// The connection is gone; the next call waits and connects again.
    Lost(Error),
}

/// A live stream of events.
///
/// Dropping a call of [`Events::next`] before it ends loses nothing.
pub struct Events(Wire);

impl Events {
    pub(super) fn new(client: Client, after: Option<u64>) -> Self {
        Self(Wire::new(client, &["events"], after))
    }

    /// The id of the last event that was handed out.
    pub const fn after(&self) -> Option<u64> {
        self.0.after()
    }

    /// Waits for the next signal.
    ///
    /// Fails when the stream could not even begin, and when the server refuses it: another
    /// try would end the same way.
    pub async fn next(&mut self) -> Result<Signal, Error> {
        Ok(match self.0.next().await? {
            Heard::Open => Signal::Open,
            Heard::Item(Item::Message { data, .. }) => {
                serde_json::from_str(&data).map_or(Signal::Unknown, Signal::Event)
            }
            Heard::Item(Item::TooLong) => Signal::Unknown,
            Heard::Lost(error) => Signal::Lost(error),
        })
    }
}
