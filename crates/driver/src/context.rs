//! What a driver gets besides its task: where to write, when to stop, what time it is.

use crate::Clock;
use model::time::Timestamp;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Takes the lines a driver writes; they become the log of the attempt.
pub trait Log: Send + Sync {
    /// Appends one line.
    fn line(&self, at: Timestamp, text: &str);
}

/// What a driver gets besides its task.
#[derive(Clone)]
pub struct Context {
    clock: Clock,
    log: Arc<dyn Log>,
    cancel: CancellationToken,
    fence: u64,
}

impl Context {
    /// Puts a context together; the engine does, and tests.
    pub fn new(clock: Clock, log: Arc<dyn Log>, cancel: CancellationToken, fence: u64) -> Self {
        Self {
            clock,
            log,
            cancel,
            fence,
        }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Writes one line to the log of the attempt.
    pub fn log(&self, text: &str) {
        self.log.line(self.now(), text);
    }

    /// Completes when the lease is lost or the program ends: stop, and begin nothing new.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Grows with every claim of the task; for systems that can compare it too.
    pub fn fence(&self) -> u64 {
        self.fence
    }
}
