//! What a script prints, on its way to the store.

use driver::Clock;
use driver::deploy::{Output, Stream};
use model::time::Timestamp;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{ActionClaim, OutputStream, Recorded, Store};
use tokio::sync::Notify;

/// How long a line may wait before people can read it.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Lines that are stored at once.
const AT_ONCE: usize = 2_000;

/// A line that is not stored yet, with its stream and its number there.
pub(super) type Line = (OutputStream, u64, Timestamp, String);

/// Takes what a script prints.
pub(super) struct Lines {
    clock: Clock,
    state: Mutex<State>,
    bell: Notify,
}

struct State {
    out: u64,
    err: u64,
    unstored: Vec<Line>,
}

impl Lines {
    /// Goes on after what is stored already.
    pub(super) fn new(clock: Clock, (out, err): (u64, u64)) -> Self {
        let state = State {
            out,
            err,
            unstored: Vec::new(),
        };
        Self {
            clock,
            state: Mutex::new(state),
            bell: Notify::new(),
        }
    }

    /// Waits until there is something to store. A script that prints nothing wakes nobody.
    pub(super) async fn due(&self) {
        self.bell.notified().await;
        tokio::time::sleep(FLUSH_EVERY).await;
    }

    /// Stores what was printed since. What cannot be stored now is stored later: whoever stores a
    /// line twice has stored it once.
    pub(super) async fn flush(&self, store: &Store, claim: &ActionClaim) {
        loop {
            let lines = self.copy();
            let count = lines.len();
            if count == 0 {
                return;
            }
            match store.append_output(claim, lines).await {
                Ok(Recorded::Yes) => self.stored(count),
                // Somebody else follows it, and stores what it prints.
                Ok(Recorded::LeaseLost) => return,
                Err(error) => {
                    let action = claim.action;
                    tracing::error!(%error, %action, "could not store what {action} printed: {error}");
                    self.bell.notify_one();
                    return;
                }
            }
        }
    }

    /// The oldest lines that are not stored.
    pub(super) fn copy(&self) -> Vec<Line> {
        let state = self.lock();
        state.unstored.iter().take(AT_ONCE).cloned().collect()
    }

    fn stored(&self, count: usize) {
        let mut state = self.lock();
        let count = count.min(state.unstored.len());
        state.unstored.drain(..count);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output for Lines {
    fn known(&self, stream: Stream) -> u64 {
        let state = self.lock();
        match stream {
            Stream::Out => state.out,
            Stream::Err => state.err,
        }
    }

    fn line(&self, stream: Stream, text: &str) {
        let at = self.clock.now();
        let mut state = self.lock();
        let (stream, number) = match stream {
            Stream::Out => {
                state.out += 1;
                (OutputStream::Out, state.out)
            }
            Stream::Err => {
                state.err += 1;
                (OutputStream::Err, state.err)
            }
        };
        state.unstored.push((stream, number, at, text.to_owned()));
        drop(state);
        self.bell.notify_one();
    }
}
