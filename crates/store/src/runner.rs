//! Where questions run: on threads of their own over a file, or inline over memory.
//!
//! One thread writes. It takes all that waits for it into one transaction, each question
//! within a savepoint of its own, and answers after the commit: a hundred callers share
//! one flush to the disk, and a question that is refused undoes nothing but itself.
//! Readers have their own threads and connections, and see whole transactions only.
//!
//! The store in memory runs each question in its caller's task. Nothing then depends on
//! threads or on real time, which is what a rehearsal on a virtual clock needs.

use crate::body::{Tx, first};
use crate::error::Error;
use crate::sqlite::{self, Transaction, control};
use rusqlite::Connection;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch};

/// Reading threads; more than the smallest machine has cores would only take turns.
const READERS: usize = 2;

/// Questions that may wait before callers do: some batches ahead, and bounded memory.
const WAITING_MAX: usize = 1024;

/// Questions per transaction, so that nobody waits long for a commit it shares.
const BATCH_MAX: usize = 256;

/// Runs questions.
pub(crate) struct Runner {
    place: Place,
    newest: watch::Sender<u64>,
}

enum Place {
    Threads(Threads),
    Inline(Mutex<Connection>),
}

/// What a question is given: a transaction, or the reason why there is none.
type Given<'a> = Result<&'a mut dyn Tx, Error>;

/// A question on its way to a thread.
type Asked = Box<dyn FnOnce(Given<'_>) -> Answered + Send>;

/// A question that was answered, and not told to its caller yet.
struct Answered {
    /// Whether what it wrote is to stay.
    keep: bool,
    /// Tells the caller, once it is known whether the transaction stands.
    reply: Box<dyn FnOnce(Result<(), Error>) + Send>,
}

impl Runner {
    /// Opens the database of a data directory and starts its threads.
    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        let opened = sqlite::open(directory, READERS)?;
        let newest = watch::Sender::new(newest_event(&opened.writer)?);
        let threads = Threads::start(opened, &newest)?;
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

    /// Runs a question that writes; what it wrote is durable when it is answered.
    pub(crate) async fn write<T, E>(
        &self,
        question: impl FnOnce(&mut dyn Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match &self.place {
            Place::Threads(threads) => ask(threads.writes.as_ref(), question).await,
            Place::Inline(connection) => inline(&lock(connection), question, Some(&self.newest)),
        }
    }

    /// Runs a question that only reads, all of it on one state of the database.
    pub(crate) async fn read<T, E>(
        &self,
        question: impl FnOnce(&mut dyn Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match &self.place {
            Place::Threads(threads) => ask(threads.reads.as_ref(), question).await,
            Place::Inline(connection) => inline(&lock(connection), question, None),
        }
    }
}

/// A poisoned lock means that a question panicked; its transaction is undone by the next.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn newest_event(connection: &Connection) -> Result<u64, Error> {
    let newest = first(
        &mut Transaction::on(connection),
        "SELECT MAX(id) FROM events",
        &[],
    )?;
    Ok(newest
        .map(|mut row| row.take::<Option<u64>>())
        .transpose()?
        .flatten()
        .unwrap_or(0))
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
    connection: &Connection,
    question: impl FnOnce(&mut dyn Tx) -> Result<T, E>,
    newest: Option<&watch::Sender<u64>>,
) -> Result<T, E> {
    undo(connection);
    control(connection, "BEGIN")?;
    let mut tx = Transaction::on(connection);
    let answer = question(&mut tx);
    let stands = match newest {
        Some(_) if answer.is_ok() => control(connection, "COMMIT"),
        Some(_) | None => Ok(()),
    };
    undo(connection);
    stands?;
    if let Some(newest) = newest.filter(|_| answer.is_ok()) {
        tell(newest, tx.newest());
    }
    answer
}

/// Ends a transaction that is still open, whoever left it so.
fn undo(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = control(connection, "ROLLBACK")
    {
        tracing::error!(
            error.code = error.code(),
            "could not undo a transaction: {error}"
        );
    }
}

/// Hands a question to a thread and waits for its answer.
///
/// A caller that stops waiting stops nothing: the question is answered all the same.
async fn ask<T, E>(
    queue: Option<&mpsc::Sender<Asked>>,
    question: impl FnOnce(&mut dyn Tx) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let asked: Asked = Box::new(move |given| {
        let answer = given.map_err(E::from).and_then(question);
        Answered {
            keep: answer.is_ok(),
            reply: Box::new(move |stands| {
                let answer = answer.and_then(|answer| stands.map(|()| answer).map_err(E::from));
                // Nobody waits any more: there is nobody to be told.
                drop(sender.send(answer));
            }),
        }
    });
    let queue = queue.ok_or_else(Error::unanswered)?;
    queue.send(asked).await.map_err(|_| Error::unanswered())?;
    receiver.await.map_err(|_| Error::unanswered())?
}

/// The threads over one data directory; dropping them waits until they have ended.
struct Threads {
    writes: Option<mpsc::Sender<Asked>>,
    reads: Option<mpsc::Sender<Asked>>,
    /// The readers, then the writer.
    running: Vec<JoinHandle<()>>,
    /// Held until the threads have ended.
    _lock: File,
}

impl Threads {
    fn start(opened: sqlite::Opened, newest: &watch::Sender<u64>) -> Result<Self, Error> {
        let (writes, to_write) = mpsc::channel(WAITING_MAX);
        let (reads, to_read) = mpsc::channel(WAITING_MAX);
        let mut threads = Self {
            writes: Some(writes),
            reads: Some(reads),
            running: Vec::new(),
            _lock: opened.lock,
        };
        let to_read = Arc::new(Mutex::new(to_read));
        for reader in opened.readers {
            let to_read = Arc::clone(&to_read);
            threads.spawn("store-reader", move || read_all(&reader, &to_read))?;
        }
        let newest = newest.clone();
        let writer = opened.writer;
        threads.spawn("store-writer", move || {
            write_all(&writer, to_write, &newest);
        })?;
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
        let handle = spawned.map_err(|cause| Error::Other {
            attempted: "start a thread for the database",
            cause: Some(Arc::new(cause)),
        })?;
        self.running.push(handle);
        Ok(())
    }
}

impl Drop for Threads {
    /// The writer ends last: whoever closes the database last folds the log into it, and
    /// those who only read cannot.
    fn drop(&mut self) {
        self.reads = None;
        let writer = self.running.pop();
        self.running.drain(..).for_each(join);
        self.writes = None;
        writer.into_iter().for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the store panicked");
    }
}

/// The writer's life: everything that waits goes into one transaction.
fn write_all(
    connection: &Connection,
    mut queue: mpsc::Receiver<Asked>,
    newest: &watch::Sender<u64>,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while queue.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let mut batch = batch.drain(..);
        // A transaction ends early when the database gives it up; the rest get a new one.
        while batch.len() > 0 {
            tell(newest, transact(connection, &mut batch));
        }
    }
}

/// Runs questions in one transaction and answers them; returns the newest event.
fn transact(connection: &Connection, batch: &mut std::vec::Drain<'_, Asked>) -> u64 {
    let start = Instant::now();
    let mut tx = Transaction::on(connection);
    let mut answered = Vec::with_capacity(batch.len());
    let mut stands = control(connection, "BEGIN IMMEDIATE");
    if let Err(error) = &stands {
        answered.extend(batch.map(|asked| asked(Err(error.clone()))));
    }
    while stands.is_ok()
        && let Some(asked) = batch.next()
    {
        stands = savepoint(connection, &mut tx, asked, &mut answered);
    }
    let stands = stands.and_then(|()| control(connection, "COMMIT"));
    undo(connection);
    let count = u64::try_from(answered.len()).unwrap_or(u64::MAX);
    metrics::counter!("slipway_store_writes_total").increment(count);
    metrics::histogram!("slipway_store_commit_seconds").record(start.elapsed());
    if let Err(error) = &stands {
        tracing::warn!(
            error.code = error.code(),
            writes = count,
            "a transaction was undone: {error}"
        );
    }
    let newest = if stands.is_ok() { tx.newest() } else { 0 };
    for Answered { keep: _, reply } in answered {
        reply(stands.clone());
    }
    newest
}

/// Runs one question so that it can be undone alone; an error means that all are undone.
fn savepoint(
    connection: &Connection,
    tx: &mut Transaction<'_>,
    asked: Asked,
    answered: &mut Vec<Answered>,
) -> Result<(), Error> {
    if let Err(error) = control(connection, "SAVEPOINT question") {
        answered.push(asked(Err(error.clone())));
        return Err(error);
    }
    let before = tx.newest();
    // A question that panics gets no answer, and its neighbours do not suffer for it.
    let answer = catch_unwind(AssertUnwindSafe(|| asked(Ok(tx)))).ok();
    let keep = answer.as_ref().is_some_and(|answer| answer.keep);
    answered.extend(answer);
    if connection.is_autocommit() {
        return Err(tx.failed().unwrap_or_else(Error::unanswered));
    }
    if !keep {
        control(connection, "ROLLBACK TO question")?;
        tx.forget_events_after(before);
    }
    control(connection, "RELEASE question")
}

/// A reader's life: one question at a time.
fn read_all(connection: &Connection, queue: &Mutex<mpsc::Receiver<Asked>>) {
    loop {
        let Some(asked) = lock(queue).blocking_recv() else {
            return;
        };
        let given = control(connection, "BEGIN");
        let mut tx = Transaction::on(connection);
        let answer = catch_unwind(AssertUnwindSafe(|| match given {
            Ok(()) => asked(Ok(&mut tx)),
            Err(error) => asked(Err(error)),
        }));
        undo(connection);
        if let Ok(Answered { keep: _, reply }) = answer {
            reply(Ok(()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Value;
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
        runner.write::<(), Error>(question).await.unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_refuses_writes_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        for runner in [
            Runner::open(directory.path()).unwrap(),
            Runner::in_memory().unwrap(),
        ] {
            runner.write(|tx| insert(tx, 1, 10)).await.unwrap();
            leave_room(&runner, 4).await;
            let refused = runner
                .write(|tx| insert(tx, 2, 1_000_000))
                .await
                .unwrap_err();
            assert!(matches!(refused, Error::Full), "{refused:?}");
            assert_eq!(count(&runner).await, 1, "reading goes on");
            leave_room(&runner, 1_000).await;
            runner.write(|tx| insert(tx, 2, 1_000_000)).await.unwrap();
            assert_eq!(count(&runner).await, 2);
        }
    }

    /// Keeps the writer busy, hands it questions, and lets it take them all at once.
    async fn batched(runner: &Runner, questions: Vec<Question>) -> Vec<Result<(), Error>> {
        let gate = Arc::new(Barrier::new(2));
        let opened = Arc::clone(&gate);
        let busy = runner.write::<(), Error>(move |_| {
            opened.wait();
            Ok(())
        });
        let all = async {
            let mut answers = Vec::new();
            let mut asked: Vec<_> = questions
                .into_iter()
                .map(|question| Box::pin(runner.write(question)))
                .collect();
            // One poll puts each question into the queue, in order.
            for question in &mut asked {
                assert!(futures_poll(question.as_mut()).is_none());
            }
            gate.wait();
            for question in asked {
                answers.push(question.await);
            }
            answers
        };
        let (busy, answers) = tokio::join!(busy, all);
        busy.unwrap();
        answers
    }

    type Question = Box<dyn FnOnce(&mut dyn Tx) -> Result<(), Error> + Send>;

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
