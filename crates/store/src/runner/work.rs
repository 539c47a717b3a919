//! What the threads do all day: take what waits, run it in a transaction, and answer.

use super::asked::{Asked, Ran};
use super::{conclude, lock, tell};
use crate::body::{Access, Session};
use crate::error::Error;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Questions per transaction, so that nobody waits long for a commit it shares.
const BATCH_MAX: usize = 256;

/// How often a question is run again because others were in its way.
const AGAIN_MAX: u32 = 8;

/// The first pause before that; it doubles.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

type Queue = Mutex<mpsc::Receiver<Box<dyn Asked>>>;

/// Notes that a question runs again.
fn again(error: &Error) {
    let why = if matches!(error, Error::Unreachable { .. }) {
        "unreachable"
    } else {
        "contended"
    };
    metrics::counter!("slipway_store_retries_total", "why" => why).increment(1);
}

/// A writer's life: everything that waits goes into one transaction.
pub(super) fn write_all(
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
pub(super) fn read_all(session: &mut dyn Session, queue: &Queue) {
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
