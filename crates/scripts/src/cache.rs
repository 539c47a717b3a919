//! What scripts told, for a while.
//!
//! What is fresh is given at once. What is not any more is given at once, too, while the script is
//! asked again; what is old is forgotten. However many ask, the script runs once. Failures are
//! told to those who wait, and are not kept: the next one asks again.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use driver::Context;
use model::time::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::{Error, Kind};

/// For how long nobody asks again.
const FRESH: Duration = Duration::from_mins(10);

/// After how long it is forgotten.
const OLD: Duration = Duration::from_hours(24);

/// How many answers are kept; past that the oldest goes.
const KEPT_MAX: usize = 10_000;

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Question([u8; 32]);

impl Question {
    /// Of all the words that the answer depends on.
    pub(crate) fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new();
        for word in words {
            hash.update(word.len().to_be_bytes());
            hash.update(word.as_bytes());
        }
        Self(hash.finalize().into())
    }
}

/// An answer on its way.
type Flight<T, E> = watch::Receiver<Option<Result<T, E>>>;

struct Slot<T, E> {
    /// Which script tells it.
    script: Option<Question>,
    told: Option<(T, Timestamp)>,
    flight: Option<Flight<T, E>>,
}

struct Shelf<T, E> {
    slots: BTreeMap<Question, Slot<T, E>>,
    flights: JoinSet<()>,
}

impl<T, E> Slot<T, E> {
    const fn of(script: Option<Question>) -> Self {
        Self {
            script,
            told: None,
            flight: None,
        }
    }
}

/// Answers of scripts, by what was asked.
pub(crate) struct Cache<T, E = Error>(Arc<Mutex<Shelf<T, E>>>);

/// What an answer that fails is told as.
pub(crate) trait Failure: Clone + Display + From<Error> + Send + Sync + 'static {}

impl<E: Clone + Display + From<Error> + Send + Sync + 'static> Failure for E {}

impl<T, E> Default for Cache<T, E> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Shelf {
            slots: BTreeMap::new(),
            flights: JoinSet::new(),
        })))
    }
}

impl<T: Clone + Send + Sync + 'static, E: Failure> Cache<T, E> {
    /// The answer to a question; `ask` is polled only if nobody knows it or asks already. What was told
    /// by another script than is there now counts no more; while there is none, it does.
    pub(crate) async fn get(
        &self,
        cx: &Context,
        (question, script): (Question, Option<Question>),
        ask: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        let mut flight = {
            let mut shelf = lock(&self.0);
            let now = cx.now();
            shelf.forget(now);
            if let (Some(_), Some(slot)) = (script, shelf.slots.get_mut(&question))
                && slot.script != script
            {
                *slot = Slot::of(script);
            }
            let slot = shelf.slots.get(&question);
            let told = slot.and_then(|slot| slot.told.clone());
            if let Some((told, at)) = &told
                && now.since(*at) <= FRESH
            {
                return Ok(told.clone());
            }
            let flight = slot.and_then(|slot| slot.flight.clone());
            // Whoever asked may have broken down; then nobody answers.
            let flight = flight.filter(|flight| flight.has_changed().is_ok());
            let flight =
                flight.unwrap_or_else(|| self.fly(&mut shelf, cx, (question, script), ask));
            match told {
                Some((told, _)) => return Ok(told),
                None => flight,
            }
        };
        let answer = flight.wait_for(Option::is_some).await;
        let answer = answer.ok().and_then(|answer| answer.clone());
        answer.unwrap_or_else(|| {
            let what = "nobody waited for the script any more";
            Err(Error::new(Kind::OurSide, what).into())
        })
    }

    /// Has somebody ask, whether or not those who want to know wait for the answer.
    fn fly(
        &self,
        shelf: &mut Shelf<T, E>,
        cx: &Context,
        (question, script): (Question, Option<Question>),
        ask: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Flight<T, E> {
        while shelf.flights.try_join_next().is_some() {}
        let (arrive, flight) = watch::channel(None);
        let slot = shelf.slots.entry(question);
        let slot = slot.or_insert_with(|| Slot::of(script));
        slot.flight = Some(flight.clone());
        // Whoever holds the shelf holds the flight: it must not hold the shelf in turn.
        let (shelf_of, cx) = (Arc::downgrade(&self.0), cx.clone());
        shelf.flights.spawn(async move {
            let answer = ask.await;
            if let Err(error) = &answer {
                tracing::warn!(%error, "a script did not tell what it should");
            }
            land(&shelf_of, (question, script), &answer, cx.now());
            arrive.send_replace(Some(answer));
        });
        flight
    }
}

/// Puts an answer on the shelf; a failure leaves there what was told before.
fn land<T: Clone, E>(
    shelf: &Weak<Mutex<Shelf<T, E>>>,
    (question, script): (Question, Option<Question>),
    answer: &Result<T, E>,
    now: Timestamp,
) {
    let Some(shelf) = shelf.upgrade() else {
        return;
    };
    let mut shelf = lock(&shelf);
    let Some(slot) = shelf.slots.get_mut(&question) else {
        return;
    };
    if script.is_some() && slot.script != script {
        return;
    }
    slot.flight = None;
    match answer {
        Ok(told) => slot.told = Some((told.clone(), now)),
        Err(_) if slot.told.is_none() => drop(shelf.slots.remove(&question)),
        Err(_) => {}
    }
}

impl<T, E> Shelf<T, E> {
    /// Drops what is old, and what is too much.
    fn forget(&mut self, now: Timestamp) {
        for slot in self.slots.values_mut() {
            slot.told = slot.told.take().filter(|(_, at)| now.since(*at) <= OLD);
        }
        let wanted = |slot: &Slot<T, E>| slot.told.is_some() || slot.flight.is_some();
        self.slots.retain(|_, slot| wanted(slot));
        if self.slots.len() >= KEPT_MAX {
            let ages = self.slots.iter();
            let ages = ages.filter_map(|(at, slot)| Some((slot.told.as_ref()?.1, *at)));
            if let Some((_, oldest)) = ages.min() {
                self.slots.remove(&oldest);
            }
        }
    }
}

fn lock<T, E>(shelf: &Mutex<Shelf<T, E>>) -> MutexGuard<'_, Shelf<T, E>> {
    // Whoever panicked left at worst an answer that is asked for again.
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
