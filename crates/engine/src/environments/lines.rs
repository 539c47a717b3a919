//! What a script prints, on its way to the store.

use driver::Clock;
use driver::deploy::{Output, Stream};
use model::environment::link::Link;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{ActionClaim, OUTPUT_HEAD, OUTPUT_TAIL, OutputStream, Printed, Recorded, Store};
use tokio::sync::Notify;

/// How long a line may wait before people can read it.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Lines that are stored at once.
const AT_ONCE: usize = 2_000;

/// Takes what a script prints.
pub(super) struct Lines {
    clock: Clock,
    state: Mutex<State>,
    bell: Notify,
}

/// What is not stored yet, as far as the store would keep it: whoever prints more than can be stored
/// neither fills our memory nor keeps its environment busy for it.
struct State {
    out: u64,
    err: u64,
    /// Of the beginning.
    head: VecDeque<Printed>,
    /// Of the rest.
    tail: VecDeque<Printed>,
    /// Where the environment is reached, where that was told, and whether it is stored.
    links: Option<(Vec<Link>, bool)>,
}

impl State {
    fn oldest(&self) -> impl Iterator<Item = &Printed> {
        self.head.iter().chain(&self.tail)
    }
}

impl Lines {
    /// Goes on after what is stored already.
    pub(super) fn new(clock: Clock, (out, err): (u64, u64)) -> Self {
        let state = State {
            out,
            err,
            head: VecDeque::new(),
            tail: VecDeque::new(),
            links: None,
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
        self.flush_links(store, claim).await;
        loop {
            let lines = self.copy();
            let Some(upto) = lines.last().map(|line| line.place) else {
                return;
            };
            match store.append_output(claim, lines).await {
                Ok(Recorded::Yes) => self.stored(upto),
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

    async fn flush_links(&self, store: &Store, claim: &ActionClaim) {
        let told = self.lock().links.clone();
        let Some((links, false)) = told else {
            return;
        };
        match store.note_links(claim, links, self.clock.now()).await {
            Ok(Recorded::Yes) => {
                if let Some((_, stored)) = &mut self.lock().links {
                    *stored = true;
                }
            }
            Ok(Recorded::LeaseLost) => {}
            Err(error) => {
                let action = claim.action;
                tracing::error!(%error, %action, "could not store the links of {action}: {error}");
                self.bell.notify_one();
            }
        }
    }

    /// Where the environment is reached, where that was told.
    pub(super) fn told_links(&self) -> Option<Vec<Link>> {
        let state = self.lock();
        state.links.as_ref().map(|(links, _)| links.clone())
    }

    /// Forgets where it would have been reached.
    pub(super) fn forget_links(&self) {
        self.lock().links = None;
    }

    /// The oldest lines that are not stored.
    pub(super) fn copy(&self) -> Vec<Printed> {
        self.lock().oldest().take(AT_ONCE).cloned().collect()
    }

    /// Lets all go that is stored. What came meanwhile may have pushed some of it out already.
    fn stored(&self, upto: u64) {
        let mut state = self.lock();
        state.head.retain(|line| line.place > upto);
        let passed = state.tail.partition_point(|line| line.place <= upto);
        state.tail.drain(..passed);
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
        let place = state.out + state.err;
        let line = Printed {
            place,
            stream,
            number,
            at,
            text: text.to_owned(),
        };
        if place <= OUTPUT_HEAD {
            state.head.push_back(line);
        } else {
            let fallen = place.saturating_sub(OUTPUT_TAIL);
            while state
                .tail
                .front()
                .is_some_and(|first| first.place <= fallen)
            {
                state.tail.pop_front();
            }
            state.tail.push_back(line);
        }
        drop(state);
        self.bell.notify_one();
    }

    fn links(&self, links: &[Link]) {
        let mut state = self.lock();
        if state.links.as_ref().is_none_or(|(known, _)| known != links) {
            state.links = Some((links.to_vec(), false));
            self.bell.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_printed_faster_than_it_is_stored_the_beginning_and_the_end_are_kept() {
        let lines = Lines::new(Clock::System, (OUTPUT_HEAD - 1, 0));
        for at in 0..3 * OUTPUT_TAIL {
            lines.line(Stream::Out, &at.to_string());
        }
        let beginning = lines.copy();
        let numbers: Vec<_> = beginning.iter().map(|line| line.number).collect();
        let last = OUTPUT_HEAD - 1 + 3 * OUTPUT_TAIL;
        let kept = last - OUTPUT_TAIL + 1;
        assert_eq!(numbers[..2], [OUTPUT_HEAD, kept]);
        // While the first are stored, more come than are kept.
        for _ in 0..OUTPUT_TAIL {
            lines.line(Stream::Err, "");
        }
        lines.stored(beginning.last().unwrap().place);
        let rest = lines.copy();
        assert_eq!((rest[0].stream, rest[0].number), (OutputStream::Err, 1));
        let held = lines.lock().oldest().count();
        assert_eq!(u64::try_from(held).unwrap(), OUTPUT_TAIL);
    }
}
