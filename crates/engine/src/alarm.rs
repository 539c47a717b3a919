//! When somebody looks next for what ends by itself, and a bell for what ends sooner.

use model::time::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::Notify;

/// One who sleeps until the next thing ends, and is woken when something is to end before that.
pub(crate) struct Alarm {
    /// When who sleeps looks next, in milliseconds.
    at: AtomicI64,
    bell: Notify,
}

impl Default for Alarm {
    /// Nobody sleeps yet, so everything is sooner.
    fn default() -> Self {
        Self {
            at: AtomicI64::new(i64::MAX),
            bell: Notify::new(),
        }
    }
}

impl Alarm {
    /// Says that somebody asks what ends next: what is said to end from now on wakes them, whenever that is.
    pub(crate) fn clear(&self) {
        self.at.store(i64::MAX, Ordering::SeqCst);
    }

    /// Says when somebody looks next.
    pub(crate) fn set(&self, at: Timestamp) {
        self.at.store(at.as_millis(), Ordering::SeqCst);
    }

    /// Says that something ends then.
    pub(crate) fn ends(&self, at: Timestamp) {
        if at.as_millis() < self.at.load(Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    /// Waits until something ends sooner.
    pub(crate) async fn rings(&self) {
        self.bell.notified().await;
    }
}
