//! One reader of events for all who follow them.
//!
//! The hub wakes when the store has news, waits a moment so that many changes become one
//! batch, reads them once, renders them once and puts the batch into a ring that every
//! stream reads. A stream that is behind the ring, because it comes back after a while or
//! is slow, reads the store by itself until it meets the ring. So a stream costs its
//! place and a handle, a slow client costs nobody else anything, and nothing is lost or
//! told twice: a place is an id, and ids only grow.
//!
//! The reader lives while somebody follows; an unwatched server reads nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::EventView;
use model::name::Name;
use store::{Event, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::told::{Piece, Told};
use crate::metrics;
use crate::view;

/// How long news are gathered before they are told: shorter than people notice, and long
/// enough that a busy fleet writes to each stream ten times a second and no more.
const GATHER: Duration = Duration::from_millis(100);

/// Events read from the store at once: enough to catch up quickly, little enough to hold.
const READ: u32 = 500;

/// What the ring holds at most: minutes of a busy fleet, for streams that come back.
const RING_BYTES_MAX: usize = 4 << 20;

/// How long to wait after the store could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Where the reader of events lives.
pub(crate) struct Hub {
    store: Store,
    stop: CancellationToken,
    life: Mutex<Life>,
}

#[derive(Default)]
struct Life {
    /// What the reader publishes to; absent while there is none.
    ring: Option<watch::Sender<Ring>>,
    readers: JoinSet<()>,
}

impl Hub {
    pub(crate) fn new(store: Store, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            store,
            stop,
            life: Mutex::default(),
        })
    }

    /// Follows the events of a project from `after` on, or from now.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        project: Name,
        after: Option<u64>,
    ) -> Result<Follower, store::Error> {
        let newest = *self.store.subscribe().borrow();
        let after = match after {
            Some(after) if after <= newest || self.holds(after).await? => after,
            // A place that is not reached: the database was put back from a backup and will
            // give the same ids again. What such a client has not seen happens from now on.
            Some(_) | None => newest,
        };
        Ok(Follower {
            project,
            after,
            ring: self.join(),
            hub: Arc::clone(self),
        })
    }

    /// Whether there is an event with that id, or a later one: another process may have
    /// written it, and we have not heard of it yet.
    async fn holds(&self, id: u64) -> Result<bool, store::Error> {
        let found = self.store.events(None, id.saturating_sub(1), 1).await?;
        Ok(!found.is_empty())
    }

    /// A handle on the ring; the first one starts the reader.
    fn join(self: &Arc<Self>) -> watch::Receiver<Ring> {
        let mut life = self.life();
        while life.readers.try_join_next().is_some() {}
        if let Some(ring) = life.ring.as_ref().filter(|_| !life.readers.is_empty()) {
            return ring.subscribe();
        }
        let newest = self.store.subscribe();
        let (ring, handle) = watch::channel(Ring::beginning(*newest.borrow()));
        life.ring = Some(ring.clone());
        life.readers.spawn(Arc::clone(self).run(ring, newest));
        handle
    }

    /// Reads what is new and publishes it, while somebody listens.
    async fn run(self: Arc<Self>, ring: watch::Sender<Ring>, mut newest: watch::Receiver<u64>) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = ring.closed() => {
                    if self.retire(&ring) {
                        return;
                    }
                    continue;
                }
                changed = newest.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
            tokio::time::sleep(GATHER).await;
            // Marked as seen before reading: what comes meanwhile wakes us again.
            newest.borrow_and_update();
            if let Err(error) = self.publish(&ring).await {
                tracing::warn!(code = error.code(), %error, "could not read events for those who follow them");
                tokio::time::sleep(RETRY_AFTER).await;
                newest.mark_changed();
            }
        }
    }

    /// Reads everything after the ring's end and appends it.
    async fn publish(&self, ring: &watch::Sender<Ring>) -> Result<(), store::Error> {
        loop {
            let after = ring.borrow().end();
            let events = self.store.events(None, after, READ).await?;
            metrics::events_read("hub");
            let full = fills(&events);
            if let Some(batch) = Batch::of(events) {
                ring.send_modify(|ring| ring.push(batch));
            }
            if !full {
                return Ok(());
            }
        }
    }

    /// Whether the reader may end: nobody follows, and nobody can join meanwhile.
    fn retire(&self, ring: &watch::Sender<Ring>) -> bool {
        let mut life = self.life();
        let unheard = ring.receiver_count() == 0;
        if unheard {
            life.ring = None;
        }
        unheard
    }

    /// A poisoned lock means that starting a reader panicked; the next start is as good.
    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fills(events: &[Event]) -> bool {
    u32::try_from(events.len()).is_ok_and(|len| len >= READ)
}

/// One stream's place among the events of its project.
pub(crate) struct Follower {
    hub: Arc<Hub>,
    project: Name,
    after: u64,
    ring: watch::Receiver<Ring>,
}

impl Follower {
    /// The next events; none when the server stops or the store cannot be read, and the
    /// client comes back by itself with the id it has.
    ///
    /// A call that is dropped before it ends loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            if self.hub.stop.is_cancelled() {
                return None;
            }
            // Bound first: the lock on the ring must not be held while we wait.
            let found = self.ring.borrow_and_update().find(self.after);
            match found {
                Found::Batch(batch) => {
                    let after = std::mem::replace(&mut self.after, batch.last);
                    let piece = batch.pieces.get(&self.project);
                    if let Some(told) = piece.and_then(|piece| Told::after(piece, after)) {
                        return Some(told);
                    }
                }
                Found::Gone { begin } => {
                    if let Some(told) = self.catch_up(begin).await? {
                        return Some(told);
                    }
                }
                Found::Nothing => tokio::select! {
                    biased;
                    () = self.hub.stop.cancelled() => return None,
                    changed = self.ring.changed() => changed.ok()?,
                },
            }
        }
    }

    /// Reads from the store what the ring no longer has; nothing outside when it cannot.
    async fn catch_up(&mut self, begin: u64) -> Option<Option<Told>> {
        let reading = self.hub.store.events(Some(&self.project), self.after, READ);
        let events = tokio::select! {
            biased;
            () = self.hub.stop.cancelled() => return None,
            events = reading => events.ok()?,
        };
        metrics::events_read("stream");
        let after = self.after;
        let full = fills(&events);
        let last = events.last().map_or(after, |event| event.id);
        // The ring's beginning was published before we read: there is nothing of ours up
        // to it that we have not seen now.
        self.after = if full { last } else { last.max(begin) };
        let events: Vec<EventView> = events.into_iter().map(view::event).collect();
        Some(Told::after(&Arc::new(Piece::render(&events)), after))
    }
}

/// The newest events, in batches, without a gap.
struct Ring {
    /// Everything after this event is here, or has not happened.
    begin: u64,
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
}

/// What a ring has for a place.
enum Found {
    Batch(Arc<Batch>),
    Nothing,
    /// What follows the place is no longer here, up to `begin`.
    Gone {
        begin: u64,
    },
}

impl Ring {
    const fn beginning(begin: u64) -> Self {
        Self {
            begin,
            batches: VecDeque::new(),
            bytes: 0,
        }
    }

    fn end(&self) -> u64 {
        self.batches.back().map_or(self.begin, |batch| batch.last)
    }

    /// The first batch with something after that place.
    fn find(&self, after: u64) -> Found {
        if after < self.begin {
            return Found::Gone { begin: self.begin };
        }
        let at = self.batches.partition_point(|batch| batch.last <= after);
        match self.batches.get(at) {
            Some(batch) => Found::Batch(Arc::clone(batch)),
            None => Found::Nothing,
        }
    }

    /// Appends a batch, and lets go of the oldest beyond the limit; the newest stays.
    fn push(&mut self, batch: Batch) {
        self.bytes += batch.bytes;
        self.batches.push_back(Arc::new(batch));
        while self.bytes > RING_BYTES_MAX && self.batches.len() > 1 {
            let Some(oldest) = self.batches.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes;
            self.begin = oldest.last;
        }
    }
}

/// What was read at once, by project.
struct Batch {
    last: u64,
    bytes: usize,
    pieces: BTreeMap<Name, Arc<Piece>>,
}

impl Batch {
    /// Renders events, each once; none when there are none.
    fn of(events: Vec<Event>) -> Option<Self> {
        let last = events.last()?.id;
        let mut projects: BTreeMap<Name, Vec<EventView>> = BTreeMap::new();
        for event in events {
            projects
                .entry(event.project.clone())
                .or_default()
                .push(view::event(event));
        }
        let pieces: BTreeMap<_, _> = projects
            .into_iter()
            .map(|(project, events)| (project, Arc::new(Piece::render(&events))))
            .collect();
        let bytes = pieces.values().map(|piece| piece.bytes()).sum();
        Some(Self {
            last,
            bytes,
            pieces,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::time::Timestamp;

    fn event(id: u64, project: &str, message: &str) -> Event {
        Event {
            id,
            at: Timestamp::from_millis(0),
            project: project.parse().unwrap(),
            kind: "cluster.changed".to_owned(),
            object: "cluster/edge".to_owned(),
            message: message.to_owned(),
        }
    }

    fn batch(events: &[(u64, &str)]) -> Batch {
        let events = events
            .iter()
            .map(|(id, project)| event(*id, project, "m"))
            .collect();
        Batch::of(events).unwrap()
    }

    /// What a stream of project `a` is given, place by place, until the ring has no more.
    fn told(ring: &Ring, mut after: u64) -> String {
        let mut picture = String::new();
        loop {
            match ring.find(after) {
                Found::Batch(batch) => {
                    let piece = batch.pieces.get(&"a".parse().unwrap());
                    let told = piece.and_then(|piece| Told::after(piece, after));
                    for text in told.iter().flat_map(Told::texts) {
                        let event: EventView = serde_json::from_str(&text).unwrap();
                        picture.push_str(&format!("{} ", event.id));
                    }
                    after = batch.last;
                }
                Found::Nothing => return picture + "nothing",
                Found::Gone { begin } => return picture + &format!("gone up to {begin}"),
            }
        }
    }

    #[test]
    fn every_place_is_told_what_follows_it_and_nothing_else() {
        let mut ring = Ring::beginning(10);
        ring.push(batch(&[(11, "a"), (12, "b"), (14, "a")]));
        ring.push(batch(&[(15, "b")]));
        ring.push(batch(&[(16, "b"), (17, "a")]));
        let pictures = [9, 10, 11, 12, 14, 16, 17, 30].map(|after| told(&ring, after));
        assert_eq!(
            pictures,
            [
                "gone up to 10",
                "11 14 17 nothing",
                "14 17 nothing",
                "14 17 nothing",
                "17 nothing",
                "17 nothing",
                "nothing",
                "nothing",
            ]
        );
    }

    #[test]
    fn the_ring_is_bounded_and_says_what_it_let_go() {
        let mut ring = Ring::beginning(0);
        let long = "x".repeat(1 << 20);
        for id in 1..=20 {
            ring.push(Batch::of(vec![event(id, "a", &long)]).unwrap());
            assert!(ring.bytes <= RING_BYTES_MAX, "{}", ring.bytes);
        }
        assert_eq!((ring.begin, ring.batches.len(), ring.end()), (17, 3, 20));
        assert_eq!(told(&ring, 16), "gone up to 17");
        assert_eq!(told(&ring, 17), "18 19 20 nothing");
        let huge = "x".repeat(2 * RING_BYTES_MAX);
        ring.push(Batch::of(vec![event(21, "a", &huge)]).unwrap());
        assert_eq!(
            (ring.batches.len(), told(&ring, 20)),
            (1, "21 nothing".to_owned())
        );
    }
}
