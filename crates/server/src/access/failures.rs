//! How often somebody may be wrong: tokens that open nothing are counted by where they
//! come from.
//!
//! Only failures count and only failures are refused: whoever shows a good token is let in
//! however many bad ones came from the same address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failures within a window that are told what was wrong: a person who copies the wrong line a
/// few times stays below it.
const FAILURES_MAX: u32 = 10;

/// How long failures are remembered.
const WINDOW: Duration = Duration::from_mins(1);

/// Places that are remembered at most; the oldest is forgotten for another one.
const PLACES_MAX: usize = 10_000;

/// Where a request comes from, as far as one household can be told from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Not over a network that we know.
    Unknown,
    /// One address.
    V4([u8; 4]),
    /// A whole /64, which is what one customer gets.
    V6([u16; 4]),
}

impl From<Option<IpAddr>> for Place {
    fn from(peer: Option<IpAddr>) -> Self {
        match peer.map(|peer| peer.to_canonical()) {
            None => Self::Unknown,
            Some(IpAddr::V4(address)) => Self::V4(address.octets()),
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

/// Failures from one place.
struct Window {
    began: Instant,
    failures: u32,
}

/// Who failed how often.
#[derive(Default)]
pub(crate) struct Failures(Mutex<BTreeMap<Place, Window>>);

impl Failures {
    /// Counts a failure; answers how long to wait when there were too many.
    pub(crate) fn count(&self, peer: Option<IpAddr>) -> Option<Duration> {
        let now = Instant::now();
        let place = Place::from(peer);
        // A poisoned lock means that counting panicked; every count in it is still one.
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= PLACES_MAX && !places.contains_key(&place) {
            make_room(&mut places, now);
        }
        let fresh = Window {
            began: now,
            failures: 0,
        };
        let window = places.entry(place).or_insert(fresh);
        if now.duration_since(window.began) >= WINDOW {
            *window = Window {
                began: now,
                failures: 0,
            };
        }
        window.failures = window.failures.saturating_add(1);
        let left = WINDOW.saturating_sub(now.duration_since(window.began));
        if window.failures == FAILURES_MAX + 1 {
            let from = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
            tracing::warn!(
                from,
                "too many tokens that open nothing come from one address"
            );
        }
        (window.failures > FAILURES_MAX).then_some(left)
    }
}

/// Forgets the windows that are over; when there are none, the one that is over first.
fn make_room(places: &mut BTreeMap<Place, Window>, now: Instant) {
    places.retain(|_, window| now.duration_since(window.began) < WINDOW);
    if places.len() >= PLACES_MAX {
        let oldest = places.iter().min_by_key(|(_, window)| window.began);
        if let Some(oldest) = oldest.map(|(place, _)| *place) {
            places.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts a failure that comes from there.
    fn fail(failures: &Failures, from: &str) -> Option<Duration> {
        failures.count(Some(from.parse().unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn the_eleventh_failure_of_a_minute_is_one_too_many() {
        let failures = Failures::default();
        for _ in 0..10 {
            assert_eq!(fail(&failures, "192.0.2.1"), None);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let wait = fail(&failures, "192.0.2.1");
        assert_eq!(wait, Some(Duration::from_secs(50)));
        assert_eq!(fail(&failures, "192.0.2.2"), None, "somebody else");
        assert_eq!(failures.count(None), None, "nor is nobody");
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(fail(&failures, "192.0.2.1"), None, "a new minute");
    }

    #[tokio::test(start_paused = true)]
    async fn a_household_is_one_address_or_one_network() {
        let failures = Failures::default();
        for host in 0..10 {
            let one = fail(&failures, &format!("2001:db8:1:2::{host}"));
            let mapped = fail(&failures, "::ffff:192.0.2.1");
            assert_eq!((one, mapped), (None, None));
        }
        assert!(fail(&failures, "2001:db8:1:2:ffff::").is_some());
        assert!(fail(&failures, "192.0.2.1").is_some());
        assert!(fail(&failures, "2001:db8:1:3::1").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_the_oldest_is_forgotten_first() {
        let failures = Failures::default();
        for n in 0..u32::try_from(PLACES_MAX).unwrap() + 500 {
            failures.count(Some(std::net::Ipv4Addr::from(n).into()));
            tokio::time::advance(Duration::from_micros(1)).await;
        }
        let places = failures.0.lock().unwrap();
        assert_eq!(places.len(), PLACES_MAX);
        let first = Place::from(Some(std::net::Ipv4Addr::from(1).into()));
        let last = Place::from(Some(std::net::Ipv4Addr::from(10_499).into()));
        assert!(!places.contains_key(&first) && places.contains_key(&last));
    }
}
