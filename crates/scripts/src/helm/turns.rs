//! One question for many who want to know at once.
//!
//! Environments of one namespace are looked at by one question, because each costs a process. Who
//! wants to know is given an answer to a question that was asked after that, and never one from
//! before: what is asked at the end of an action must not be answered by how things were. Where
//! somebody always wants to know, there is one question in each [`PAUSE`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The least time between the beginnings of two questions about one place: the more wait for the
/// next one, the fewer are asked.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers, each to a question with a number.
struct Turn<T> {
    /// How many questions were asked.
    asked: Mutex<u64>,
    /// Who holds it asks; and the last answer, with when that was asked for.
    last: tokio::sync::Mutex<Option<(u64, Instant, T)>>,
}

/// Questions about places, one at a time for each.
pub(super) struct Turns<T>(Mutex<BTreeMap<String, Arc<Turn<T>>>>);

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Turns<T> {
    /// The answer to a question about a place that is asked from now on; `ask` is polled only if
    /// nobody else asks it.
    pub(super) async fn get(&self, place: &str, ask: impl Future<Output = T>) -> T {
        let turn = {
            let mut places = lock(&self.0);
            let fresh = || {
                Arc::new(Turn {
                    asked: Mutex::new(0),
                    last: tokio::sync::Mutex::default(),
                })
            };
            Arc::clone(places.entry(place.to_owned()).or_insert_with(fresh))
        };
        let before = *lock(&turn.asked);
        let mut last = turn.last.lock().await;
        let known = last.as_ref().filter(|(number, ..)| *number > before);
        let answer = if let Some((.., answer)) = known {
            answer.clone()
        } else {
            if let Some((_, began, _)) = &*last {
                tokio::time::sleep_until(*began + PAUSE).await;
            }
            let began = Instant::now();
            let number = {
                let mut asked = lock(&turn.asked);
                *asked += 1;
                *asked
            };
            let answer = ask.await;
            *last = Some((number, began, answer.clone()));
            answer
        };
        drop(last);
        // Whoever is last takes the answer away: nobody may use it any more.
        let mut places = lock(&self.0);
        if Arc::strong_count(&turn) == 2 {
            places.remove(place);
        }
        answer
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked left at worst a question that is asked again.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    struct World {
        turns: Turns<u64>,
        asked: AtomicU64,
    }

    impl World {
        fn new() -> Self {
            Self {
                turns: Turns::default(),
                asked: AtomicU64::new(0),
            }
        }

        async fn get(&self, place: &str) -> u64 {
            let ask = async {
                let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::time::sleep(Duration::from_secs(1)).await;
                number
            };
            self.turns.get(place, ask).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_come_meanwhile_share_the_next_answer() {
        let world = World::new();
        let late = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            tokio::join!(world.get("a"), world.get("a"), world.get("a"))
        };
        let (first, late) = tokio::join!(world.get("a"), late);
        assert_eq!(first, 1);
        assert_eq!(late, (2, 2, 2));
        assert_eq!(world.get("a").await, 3);
        assert!(lock(&world.turns.0).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_that_never_ends_is_answered_once_in_each_pause() {
        let turns: Turns<()> = Turns::default();
        let asked = AtomicU64::new(0);
        let began = Instant::now();
        let one = async |at: u32| {
            tokio::time::sleep(Duration::from_millis(100) * at).await;
            let ask = async {
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(150)).await;
            };
            turns.get("a", ask).await;
        };
        let mut crowd: Vec<_> = (0..50).map(|at| Box::pin(one(at))).collect();
        std::future::poll_fn(|cx| {
            crowd.retain_mut(|one| one.as_mut().poll(cx).is_pending());
            if crowd.is_empty() {
                return std::task::Poll::Ready(());
            }
            std::task::Poll::Pending
        })
        .await;
        assert!(began.elapsed() < Duration::from_secs(7));
        // The first two come before the crowd does.
        assert!(
            (5..=8).contains(&asked.load(Ordering::Relaxed)),
            "{asked:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_leaves_the_question_to_others() {
        let world = World::new();
        let gone = tokio::time::timeout(Duration::from_millis(100), world.get("a"));
        let (gone, stays) = tokio::join!(gone, async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            world.get("a").await
        });
        assert!(gone.is_err());
        assert_eq!(stays, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn places_do_not_wait_for_each_other() {
        let world = World::new();
        let both = async { tokio::join!(world.get("a"), world.get("b")) };
        let both = tokio::time::timeout(Duration::from_millis(1500), both).await;
        assert!(both.is_ok());
    }
}
