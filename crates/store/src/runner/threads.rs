//! The threads over one database: who reads, who writes, and how they end.

use super::asked::Asked;
use super::work::{read_all, write_all};
use crate::body::{Scope, Session};
use crate::error::Error;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tokio::sync::{mpsc, watch};

/// Questions that may wait before callers do: some batches ahead, and bounded memory.
const WAITING_MAX: usize = 1024;

/// The threads over one database; dropping them waits until they have ended.
pub(super) struct Threads {
    /// One for each writer.
    writes: Vec<mpsc::Sender<Box<dyn Asked>>>,
    pub(super) reads: Option<mpsc::Sender<Box<dyn Asked>>>,
    readers: Vec<JoinHandle<()>>,
    writers: Vec<JoinHandle<()>>,
    /// Ends those who wait for something else than a question.
    pub(super) stop: watch::Sender<bool>,
    /// Held until the threads have ended; absent where several processes may work.
    pub(super) lock: Option<File>,
}

impl Threads {
    pub(super) fn new(lock: Option<File>) -> Self {
        Self {
            writes: Vec::new(),
            reads: None,
            readers: Vec::new(),
            writers: Vec::new(),
            stop: watch::Sender::new(false),
            lock,
        }
    }

    pub(super) fn read<S: Session + Send + 'static>(
        &mut self,
        sessions: Vec<S>,
    ) -> Result<(), Error> {
        let (reads, queue) = mpsc::channel(WAITING_MAX);
        let queue = Arc::new(Mutex::new(queue));
        for mut session in sessions {
            let queue = Arc::clone(&queue);
            self.spawn("store-reader", move || read_all(&mut session, &queue))?;
        }
        self.reads = Some(reads);
        Ok(())
    }

    pub(super) fn write<S: Session + Send + 'static>(
        &mut self,
        sessions: Vec<S>,
        newest: &watch::Sender<u64>,
    ) -> Result<(), Error> {
        for mut session in sessions {
            let (writes, mut queue) = mpsc::channel(WAITING_MAX);
            let newest = newest.clone();
            let run = move || write_all(&mut session, &mut queue, &newest);
            self.writers.push(started("store-writer", run)?);
            self.writes.push(writes);
        }
        Ok(())
    }

    /// Who answers a question: for one cluster always the same, and for claims one alone, so
    /// that writers do not wait for each other.
    pub(super) fn writer(&self, scope: Scope) -> Option<&mpsc::Sender<Box<dyn Asked>>> {
        let (last, others) = self.writes.split_last()?;
        match scope {
            Scope::Rows => Some(last),
            Scope::Whole => others.first().or(Some(last)),
            Scope::Cluster(cluster) => {
                let mut hash = DefaultHasher::new();
                cluster.hash(&mut hash);
                let at = usize::try_from(hash.finish() >> 32).unwrap_or(0);
                let at = at.checked_rem(others.len()).unwrap_or(0);
                others.get(at).or(Some(last))
            }
        }
    }

    pub(super) fn spawn(
        &mut self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        self.readers.push(started(name, run)?);
        Ok(())
    }
}

fn started(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|cause| Error::Other {
        attempted: "start a thread for the database",
        cause: Some(Arc::new(cause)),
    })
}

impl Drop for Threads {
    /// Writers end last: whoever closes the database last folds the log into it, and those
    /// who only read cannot.
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.reads = None;
        self.readers.drain(..).for_each(join);
        self.writes.clear();
        self.writers.drain(..).for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the store panicked");
    }
}
