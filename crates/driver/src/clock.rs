//! The one place where time comes from.

use model::time::Timestamp;
use std::time::SystemTime;
use tokio::time::Instant;

/// Tells the time: that of the world, or that of a rehearsal.
///
/// A virtual clock follows tokio's, which a test runtime may pause: an hour of waiting
/// then takes no time at all.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's own clock.
    System,
    /// Starts at a fixed point and follows the runtime.
    Virtual {
        /// What it showed at the start.
        epoch: Timestamp,
        /// When that was, for the runtime.
        start: Instant,
    },
}

impl Clock {
    /// A virtual clock that shows `epoch` now.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self::Virtual {
            epoch,
            start: Instant::now(),
        }
    }

    /// What the clock shows.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => {
                let since = SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap_or_default();
                Timestamp::default().plus(since)
            }
            Self::Virtual { epoch, start } => epoch.plus(start.elapsed()),
        }
    }
}
