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

use crate::body::{Access, Scope, Session, Tx};
use crate::error::Error;
use crate::{audit, claims, events, intents, postgres, queue, sqlite};
use model::secret::Secret;
use std::collections::BTreeSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Reading threads; more than the smallest machine has cores would only take turns.
const READERS: usize = 2;

/// Writing threads where a database takes several writers: some prepare while others wait for
/// the disk or for an answer.
const WRITERS: usize = 4;

/// How many connections a process has to a database server: these, and one that listens.
pub(crate) const CONNECTIONS: usize = READERS + WRITERS + 1;

/// Questions that may wait before callers do: some batches ahead, and bounded memory.
const WAITING_MAX: usize = 1024;

/// Questions per transaction, so that nobody waits long for a commit it shares.
const BATCH_MAX: usize = 256;

/// How often a question is run again because others were in its way.
const AGAIN_MAX: u32 = 8;

/// The first pause before that; it doubles.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// What everybody who numbers events and audit entries must have for itself.
const NUMBERS: &str = "numbers";

/// Runs questions.
pub(crate) struct Runner {
    place: Place,
    newest: watch::Sender<u64>,
}

enum Place {
    Threads(Threads),
    Inline(Mutex<sqlite::Session>),
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
        let place = Place::Inline(Mutex::new(sqlite::in_memory()?));
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

/// Notes that a question runs again.
fn again(error: &Error) {
    let why = if matches!(error, Error::Unreachable { .. }) {
        "unreachable"
    } else {
        "contended"
    };
    metrics::counter!("slipway_store_retries_total", "why" => why).increment(1);
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

/// A question on its way to a thread.
trait Asked: Send {
    /// What it must have for itself.
    fn scope(&self) -> Scope;
    /// Runs it and keeps the answer; says whether it was refused.
    fn run(&mut self, tx: &mut dyn Tx) -> Ran;
    /// Tells the caller, once it is known whether the transaction stands.
    fn reply(self: Box<Self>, stands: Result<(), Error>);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    Answered,
    Refused,
}

struct Question<F, T, E> {
    scope: Scope,
    ask: F,
    answer: Option<Result<T, E>>,
    caller: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Asked for Question<F, T, E>
where
    F: Fn(&mut dyn Tx) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn scope(&self) -> Scope {
        self.scope
    }

    fn run(&mut self, tx: &mut dyn Tx) -> Ran {
        let answer = (self.ask)(tx);
        let ran = if answer.is_ok() {
            Ran::Answered
        } else {
            Ran::Refused
        };
        self.answer = Some(answer);
        ran
    }

    fn reply(self: Box<Self>, stands: Result<(), Error>) {
        let answer = match (stands, self.answer) {
            // What was refused is refused, whether or not the others could be kept.
            (Err(_) | Ok(()), Some(Err(refused))) => Err(refused),
            (Ok(()), Some(answer)) => answer,
            (Err(error), _) => Err(error.into()),
            (Ok(()), None) => Err(Error::unanswered().into()),
        };
        // A caller that went away does not need the answer.
        drop(self.caller.send(answer));
    }
}

async fn ask<T, E>(
    queue: Option<&mpsc::Sender<Box<dyn Asked>>>,
    scope: Scope,
    question: impl Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (caller, receiver) = oneshot::channel();
    let asked: Box<dyn Asked> = Box::new(Question {
        scope,
        ask: question,
        answer: None,
        caller,
    });
    let queue = queue.ok_or_else(Error::unanswered)?;
    queue.send(asked).await.map_err(|_| Error::unanswered())?;
    receiver.await.map_err(|_| Error::unanswered())?
}

/// The threads over one database; dropping them waits until they have ended.
struct Threads {
    /// One for each writer.
    writes: Vec<mpsc::Sender<Box<dyn Asked>>>,
    reads: Option<mpsc::Sender<Box<dyn Asked>>>,
    readers: Vec<JoinHandle<()>>,
    writers: Vec<JoinHandle<()>>,
    /// Ends those who wait for something else than a question.
    stop: watch::Sender<bool>,
    /// Held until the threads have ended; absent where several processes may work.
    lock: Option<File>,
}

impl Threads {
    fn new(lock: Option<File>) -> Self {
        Self {
            writes: Vec::new(),
            reads: None,
            readers: Vec::new(),
            writers: Vec::new(),
            stop: watch::Sender::new(false),
            lock,
        }
    }

    fn read<S: Session + Send + 'static>(&mut self, sessions: Vec<S>) -> Result<(), Error> {
        let (reads, queue) = mpsc::channel(WAITING_MAX);
        let queue = Arc::new(Mutex::new(queue));
        for mut session in sessions {
            let queue = Arc::clone(&queue);
            self.spawn("store-reader", move || read_all(&mut session, &queue))?;
        }
        self.reads = Some(reads);
        Ok(())
    }

    fn write<S: Session + Send + 'static>(
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
    fn writer(&self, scope: Scope) -> Option<&mpsc::Sender<Box<dyn Asked>>> {
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

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
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

type Queue = Mutex<mpsc::Receiver<Box<dyn Asked>>>;

/// A writer's life: everything that waits goes into one transaction.
fn write_all(
    session: &mut dyn Session,
    queue: &mut mpsc::Receiver<Box<dyn Asked>>,
    newest: &watch::Sender<u64>,
) {
    loop {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        if queue.blocking_recv_many(&mut batch, BATCH_MAX) == 0 {
            return;
        }
        let start = Instant::now();
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        match together(session, &mut batch) {
            Ok(event) => {
                tell(newest, event);
                for asked in batch {
                    asked.reply(Ok(()));
                }
            }
            Err(Trouble::Again) => one_by_one(session, batch, newest),
            Err(Trouble::For(error)) => {
                warn(&error, count);
                for asked in batch {
                    asked.reply(Err(error.clone()));
                }
            }
        }
        metrics::counter!("slipway_store_writes_total").increment(count);
        metrics::histogram!("slipway_store_commit_seconds").record(start.elapsed());
    }
}

fn warn(error: &Error, writes: u64) {
    tracing::warn!(
        error.code = error.code(),
        writes,
        "a transaction was undone: {error}"
    );
}

/// Why a transaction does not stand.
enum Trouble {
    /// One question spoiled it, or others were in the way: it may work alone, or later.
    Again,
    /// It failed for everybody in it.
    For(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        if error.is_passing() {
            again(&error);
            Self::Again
        } else {
            Self::For(error)
        }
    }
}

/// Runs questions in one transaction; answers the newest event when it stands.
fn together(session: &mut dyn Session, batch: &mut [Box<dyn Asked>]) -> Result<u64, Trouble> {
    let scopes = batch.iter().map(|asked| asked.scope()).collect();
    session.undo();
    session.begin(&Access::Write(scopes))?;
    for asked in batch {
        session.outbox().wrote = false;
        let (events, entries) = (session.outbox().events.len(), session.outbox().audit.len());
        // One that panics is run again alone, where nobody suffers for it.
        let ran = catch_unwind(AssertUnwindSafe(|| asked.run(session)));
        let clean = !session.outbox().wrote && session.outbox().failed.is_none();
        match ran {
            Ok(Ran::Answered) if session.outbox().failed.is_none() => {}
            Ok(Ran::Refused) if clean => {
                session.outbox().events.truncate(events);
                session.outbox().audit.truncate(entries);
            }
            Ok(Ran::Answered | Ran::Refused) | Err(_) => {
                session.undo();
                return Err(Trouble::Again);
            }
        }
    }
    let stands = conclude(session);
    session.undo();
    Ok(stands?)
}

/// Runs each question in a transaction of its own, until the database is gone.
fn one_by_one(session: &mut dyn Session, batch: Vec<Box<dyn Asked>>, newest: &watch::Sender<u64>) {
    let mut gone = None;
    for asked in batch {
        match gone.clone() {
            Some(error) => asked.reply(Err(error)),
            None => gone = alone(session, asked, newest),
        }
    }
}

/// Runs one question in a transaction of its own, again while others are in its way;
/// answers with the error when nobody else will fare better.
fn alone(
    session: &mut dyn Session,
    mut asked: Box<dyn Asked>,
    newest: &watch::Sender<u64>,
) -> Option<Error> {
    let mut pause = AGAIN_AFTER;
    let mut attempt = 1;
    loop {
        let stands = attempt_alone(session, asked.as_mut());
        session.undo();
        match stands {
            Ok(event) => {
                tell(newest, event);
                asked.reply(Ok(()));
                return None;
            }
            Err(error) if error.is_passing() && attempt < AGAIN_MAX => {
                again(&error);
                thread::sleep(pause);
                pause *= 2;
                attempt += 1;
            }
            Err(error) => {
                warn(&error, 1);
                asked.reply(Err(error.clone()));
                return matches!(error, Error::Unreachable { .. }).then_some(error);
            }
        }
    }
}

fn attempt_alone(session: &mut dyn Session, asked: &mut dyn Asked) -> Result<u64, Error> {
    session.begin(&Access::Write(BTreeSet::from([asked.scope()])))?;
    let ran = catch_unwind(AssertUnwindSafe(|| asked.run(session)));
    let failed = session.outbox().failed.clone();
    match (ran, failed) {
        (Err(_), _) => Err(Error::unanswered()),
        (Ok(_), Some(error)) if error.is_passing() => Err(error),
        (Ok(Ran::Refused), _) => Ok(0),
        (Ok(Ran::Answered), _) => conclude(session),
    }
}

/// A reader's life: one question at a time.
fn read_all(session: &mut dyn Session, queue: &Queue) {
    loop {
        let Some(mut asked) = lock(queue).blocking_recv() else {
            return;
        };
        let mut stands = Ok(());
        for attempt in 1..=AGAIN_MAX {
            stands = attempt_reading(session, asked.as_mut());
            session.undo();
            match &stands {
                Err(error) if error.is_passing() && attempt < AGAIN_MAX => {
                    again(error);
                    thread::sleep(AGAIN_AFTER * attempt);
                }
                Ok(()) | Err(_) => break,
            }
        }
        asked.reply(stands);
    }
}

fn attempt_reading(session: &mut dyn Session, asked: &mut dyn Asked) -> Result<(), Error> {
    session.undo();
    session.begin(&Access::Read)?;
    let ran = catch_unwind(AssertUnwindSafe(|| asked.run(session)));
    let failed = session.outbox().failed.clone();
    match (ran, failed) {
        (Err(_), _) => Err(Error::unanswered()),
        (Ok(_), Some(error)) if error.is_passing() => Err(error),
        (Ok(_), _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{Value, first};
    use std::sync::Barrier;

    const INSERT: &str = "INSERT INTO journeys (project, id, at, body) VALUES ('p', $1, 0, $2)";

    fn insert(tx: &mut dyn Tx, id: u32, bytes: usize) -> Result<(), Error> {
        tx.execute(
            INSERT,
            &[Value::Text(id.to_string()), "x".repeat(bytes).into()],
        )
        .map(drop)
    }

    async fn count(runner: &Runner) -> u64 {
        let question = |tx: &mut dyn Tx| {
            first(tx, "SELECT COUNT(*) FROM journeys", &[])?.map_or(Ok(0), |mut row| row.take())
        };
        runner.read::<u64, Error>(question).await.unwrap()
    }

    /// Allows the database so many pages more than it has; the last resort of a test that
    /// may not fill a real disk.
    async fn leave_room(runner: &Runner, pages: u64) {
        let question = move |tx: &mut dyn Tx| {
            let used =
                first(tx, "PRAGMA page_count", &[])?.map_or(Ok(0), |mut row| row.take::<u64>())?;
            tx.query(&format!("PRAGMA max_page_count = {}", used + pages), &[])
                .map(drop)
        };
        runner
            .write::<(), Error>(Scope::Rows, question)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_refuses_writes_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        for runner in [
            Runner::open(directory.path()).unwrap(),
            Runner::in_memory().unwrap(),
        ] {
            runner
                .write(Scope::Rows, |tx| insert(tx, 1, 10))
                .await
                .unwrap();
            leave_room(&runner, 4).await;
            let refused = runner
                .write(Scope::Rows, |tx| insert(tx, 2, 1_000_000))
                .await
                .unwrap_err();
            assert!(matches!(refused, Error::Full), "{refused:?}");
            assert_eq!(count(&runner).await, 1, "reading goes on");
            leave_room(&runner, 1_000).await;
            runner
                .write(Scope::Rows, |tx| insert(tx, 2, 1_000_000))
                .await
                .unwrap();
            assert_eq!(count(&runner).await, 2);
        }
    }

    /// Keeps the writer busy, hands it questions, and lets it take them all at once.
    async fn batched(runner: &Runner, questions: Vec<Question>) -> Vec<Result<(), Error>> {
        let gates = Arc::new((Barrier::new(2), Barrier::new(2)));
        let busy = {
            let gates = Arc::clone(&gates);
            runner.write::<(), Error>(Scope::Rows, move |_| {
                gates.0.wait();
                gates.1.wait();
                Ok(())
            })
        };
        let mut busy = Box::pin(busy);
        assert!(futures_poll(busy.as_mut()).is_none());
        // The writer has taken that one question, so those that follow wait together.
        gates.0.wait();
        let mut asked: Vec<_> = questions
            .into_iter()
            .map(|question| Box::pin(runner.write(Scope::Rows, question)))
            .collect();
        for question in &mut asked {
            assert!(futures_poll(question.as_mut()).is_none());
        }
        gates.1.wait();
        busy.await.unwrap();
        let mut answers = Vec::new();
        for question in asked {
            answers.push(question.await);
        }
        answers
    }

    type Question = Box<dyn Fn(&mut dyn Tx) -> Result<(), Error> + Send>;

    fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(answer) => Some(answer),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn a_refused_question_undoes_nothing_but_itself() {
        let directory = tempfile::tempdir().unwrap();
        let runner = Runner::open(directory.path()).unwrap();
        let answers = batched(
            &runner,
            vec![
                Box::new(|tx| insert(tx, 1, 10)),
                Box::new(|tx| {
                    insert(tx, 2, 10)?;
                    Err(Error::Cursor {
                        found: "refused".to_owned(),
                    })
                }),
                Box::new(|tx| insert(tx, 3, 10)),
            ],
        )
        .await;
        assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
        assert_eq!(count(&runner).await, 2);
    }

    #[tokio::test]
    async fn a_question_that_panics_is_nobody_elses_trouble() {
        let directory = tempfile::tempdir().unwrap();
        let runner = Runner::open(directory.path()).unwrap();
        let answers = batched(
            &runner,
            vec![
                Box::new(|tx| insert(tx, 1, 10)),
                Box::new(|tx| {
                    insert(tx, 2, 10)?;
                    panic!("a defect");
                }),
                Box::new(|tx| insert(tx, 3, 10)),
            ],
        )
        .await;
        assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
        assert_eq!(count(&runner).await, 2);

        let read = runner.read::<(), Error>(|_| panic!("a defect")).await;
        assert!(read.is_err());
        assert_eq!(count(&runner).await, 2);
    }

    #[tokio::test]
    async fn a_reader_cannot_write() {
        let directory = tempfile::tempdir().unwrap();
        let runner = Runner::open(directory.path()).unwrap();
        assert!(matches!(
            runner.read(|tx| insert(tx, 1, 10)).await,
            Err(Error::ReadOnly)
        ));
    }
}
