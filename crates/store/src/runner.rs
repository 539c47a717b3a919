//! Where questions run: on threads of their own over a database, or inline over memory.
//!
//! A writing thread takes all that waits for it into one transaction and answers after
//! the commit: a hundred callers share one flush to the disk. A question that is refused
//! before it wrote anything undoes nothing; one that wrote first, or broke down, makes
//! the others run again without it. Questions can therefore run more than once, and what
//! they did before is always undone then. Readers have threads and connections of their
//! own, and see whole transactions only.
//!
//! The store in memory runs each question in its caller's task. Nothing then depends on
//! threads or on real time, which is what a rehearsal on a virtual clock needs.

mod asked;
#[cfg(test)]
mod tests;
mod threads;
mod work;

use crate::body::{Access, Scope, Session, Tx};
use crate::error::Error;
use crate::{audit, claims, events, intents, postgres, queue, sqlite};
use asked::ask;
use model::secret::Secret;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;
use threads::Threads;
use tokio::sync::watch;

/// Reading threads; more than the smallest machine has cores would only take turns.
const READERS: usize = 2;

/// Writing threads where a database takes several writers: some prepare while others wait for
/// the disk or for an answer.
const WRITERS: usize = 4;

/// How many connections a process has to a database server: these, and one that listens.
pub(crate) const CONNECTIONS: usize = READERS + WRITERS + 1;

/// What everybody who numbers events and audit entries must have for itself.
const NUMBERS: &str = "numbers";

/// Runs questions.
pub(crate) struct Runner {
    place: Place,
    newest: watch::Sender<u64>,
}

enum Place {
    Threads(Threads),
    Inline(Box<Mutex<sqlite::Session>>),
}

impl Runner {
    /// Opens the database of a data directory and starts its threads.
    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        let mut opened = sqlite::open(directory, READERS)?;
        let newest = watch::Sender::new(events::newest(&mut opened.writer)?);
        let mut threads = Threads::new(Some(opened.lock));
        threads.read(opened.readers)?;
        threads.write(vec![opened.writer], &newest)?;
        Ok(Self {
            place: Place::Threads(threads),
            newest,
        })
    }

    /// Connects to a database server and starts the threads that speak with it.
    pub(crate) fn connect(url: &str, password: Option<&Secret>) -> Result<Self, Error> {
        let (server, newest) = aside(|| {
            let server = postgres::Server::at(url, password)?;
            let mut session = server.session();
            session.begin(&Access::Read)?;
            let newest = events::newest(&mut session)?;
            Ok((server, newest))
        })?;
        let newest = watch::Sender::new(newest);
        let sessions = |count| (0..count).map(|_| server.session()).collect();
        let mut threads = Threads::new(None);
        threads.read(sessions(READERS))?;
        threads.write(sessions(WRITERS), &newest)?;
        let told = newest.clone();
        let stop = threads.stop.clone();
        threads.spawn("store-listener", move || {
            server.listen(&stop, |event| tell(&told, event));
        })?;
        Ok(Self {
            place: Place::Threads(threads),
            newest,
        })
    }

    /// Makes an empty database in memory.
    pub(crate) fn in_memory() -> Result<Self, Error> {
        let place = Place::Inline(Box::new(Mutex::new(sqlite::in_memory()?)));
        Ok(Self {
            place,
            newest: watch::Sender::new(0),
        })
    }

    /// Follows the id of the newest event.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Whether other processes can work with the same database.
    pub(crate) fn is_shared(&self) -> bool {
        match &self.place {
            Place::Threads(threads) => threads.lock.is_none(),
            Place::Inline(_) => false,
        }
    }

    /// Runs a question that writes; what it wrote is durable when it is answered.
    pub(crate) async fn write<T, E>(
        &self,
        scope: Scope,
        question: impl Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match &self.place {
            Place::Threads(threads) => {
                let _measured = Measured::begin("write");
                ask(threads.writer(scope), scope, question).await
            }
            Place::Inline(session) => inline(&mut *lock(session), question, Some(&self.newest)),
        }
    }

    /// Runs a question that only reads, all of it on one state of the database.
    pub(crate) async fn read<T, E>(
        &self,
        question: impl Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match &self.place {
            Place::Threads(threads) => {
                let _measured = Measured::begin("read");
                ask(threads.reads.as_ref(), Scope::Rows, question).await
            }
            Place::Inline(session) => inline(&mut *lock(session), question, None),
        }
    }
}

/// A question that is under way, for whoever watches over the database.
struct Measured {
    access: &'static str,
    began: Instant,
}

impl Measured {
    fn begin(access: &'static str) -> Self {
        metrics::gauge!("slipway_store_questions", "access" => access).increment(1);
        Self {
            access,
            began: Instant::now(),
        }
    }
}

/// Whoever asked has an answer, or went away.
impl Drop for Measured {
    fn drop(&mut self) {
        metrics::gauge!("slipway_store_questions", "access" => self.access).decrement(1);
        metrics::histogram!("slipway_store_question_seconds", "access" => self.access)
            .record(self.began.elapsed());
    }
}

/// Runs something on a thread of its own and waits for it: a session may not be driven where
/// somebody else's runtime is.
pub(crate) fn aside<T: Send>(run: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|_| Err(Error::unanswered()))
}

/// A poisoned lock means that a question panicked; its transaction is undone by the next.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(newest: &watch::Sender<u64>, event: u64) {
    newest.send_if_modified(|known| {
        let newer = event > *known;
        *known = event.max(*known);
        newer
    });
}

/// Runs a question here and now; without `newest` it may not leave anything behind.
fn inline<T, E: From<Error>>(
    session: &mut dyn Session,
    question: impl Fn(&mut dyn Tx) -> Result<T, E>,
    newest: Option<&watch::Sender<u64>>,
) -> Result<T, E> {
    session.undo();
    session.begin(&Access::Write(BTreeSet::new()))?;
    let answer = question(session);
    let stands = match newest {
        Some(_) if answer.is_ok() => conclude(session),
        Some(_) | None => Ok(0),
    };
    session.undo();
    let event = stands?;
    if let Some(newest) = newest.filter(|_| answer.is_ok()) {
        tell(newest, event);
    }
    answer
}

/// Writes what comes last and commits; answers the newest event.
fn conclude(session: &mut dyn Session) -> Result<u64, Error> {
    if let Some(failed) = session.outbox().failed.take() {
        return Err(failed);
    }
    intents::fulfil_tasks(session)?;
    claims::settle_all(session)?;
    queue::refresh_all(session)?;
    let entries = std::mem::take(&mut session.outbox().audit);
    let happened = std::mem::take(&mut session.outbox().events);
    if !entries.is_empty() || !happened.is_empty() {
        session.hold(NUMBERS)?;
    }
    audit::append(session, entries)?;
    let newest = events::append(session, happened)?;
    session.commit(newest)?;
    Ok(newest)
}
