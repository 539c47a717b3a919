//! Who is asked how often, as time goes by.

use super::*;
use driver::{Clock, Log, NoSecrets};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

struct Silent;

impl Log for Silent {
    fn line(&self, _: Timestamp, _: &str) {}
}

struct World {
    cx: Context,
    cache: Cache<usize>,
    asked: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        let clock = Clock::starting_at(Timestamp::default());
        let cancel = CancellationToken::new();
        Self {
            cx: Context::new(clock, Arc::new(Silent), Arc::new(NoSecrets), cancel, 1),
            cache: Cache::default(),
            asked: Arc::default(),
        }
    }

    /// Asks; the script answers after a second how often it was asked, or fails.
    async fn get(&self, question: &str, well: bool) -> Result<usize, Error> {
        self.get_of(None, question, well).await
    }

    /// The same of a script that is there, or of none.
    async fn get_of(
        &self,
        script: Option<&str>,
        question: &str,
        well: bool,
    ) -> Result<usize, Error> {
        let script = script.map(|script| Question::new([script]));
        let asked = Arc::clone(&self.asked);
        let ask = async move {
            let count = asked.fetch_add(1, Ordering::Relaxed) + 1;
            tokio::time::sleep(Duration::from_secs(1)).await;
            if well {
                Ok(count)
            } else {
                Err(Error::new(Kind::Failed, format!("try {count}")))
            }
        };
        self.cache
            .get(&self.cx, (Question::new([question]), script), ask)
            .await
    }

    async fn later(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stale_is_given_while_the_script_is_asked_again() {
    let world = World::new();
    assert_eq!(world.get("a", true).await, Ok(1));
    world.later(599).await;
    assert_eq!(world.get("a", true).await, Ok(1));
    world.later(2).await;
    assert_eq!(world.get("a", true).await, Ok(1));
    assert_eq!(world.get("a", true).await, Ok(1), "one flight is enough");
    world.later(2).await;
    assert_eq!(world.get("a", true).await, Ok(2));
    assert_eq!(world.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn another_script_is_asked_at_once_and_none_leaves_what_was_told() {
    let world = World::new();
    assert_eq!(world.get_of(Some("one"), "a", true).await, Ok(1));
    assert_eq!(world.get_of(Some("one"), "a", true).await, Ok(1));
    assert_eq!(world.get_of(Some("two"), "a", true).await, Ok(2));
    world.later(700).await;
    assert_eq!(world.get_of(None, "a", false).await, Ok(2));
    world.later(2).await;
    assert_eq!(
        world.get_of(None, "a", false).await,
        Ok(2),
        "nobody told it anew"
    );
    assert!(world.get_of(Some("three"), "a", false).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_is_old_is_forgotten() {
    let world = World::new();
    assert_eq!(world.get("a", true).await, Ok(1));
    world.later(86_401).await;
    assert_eq!(world.get("a", true).await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_at_once_are_answered_by_one() {
    let world = World::new();
    let (a, b, c) = tokio::join!(
        world.get("a", true),
        world.get("a", true),
        world.get("b", true)
    );
    assert_eq!((a, b, c), (Ok(1), Ok(1), Ok(2)));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_to_all_who_wait_and_is_not_kept() {
    let world = World::new();
    let (a, b) = tokio::join!(world.get("a", false), world.get("a", false));
    assert_eq!(a.unwrap_err().what, "try 1");
    assert_eq!(b.unwrap_err().what, "try 1");
    assert_eq!(world.get("a", true).await, Ok(2));
    world.later(700).await;
    assert_eq!(
        world.get("a", false).await,
        Ok(2),
        "stale, and asked again in vain"
    );
    world.later(2).await;
    assert_eq!(world.get("a", true).await, Ok(2), "still there");
    world.later(2).await;
    assert_eq!(world.get("a", true).await, Ok(4));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_does_not_take_the_answer_from_others() {
    let world = World::new();
    let first = tokio::time::timeout(Duration::from_millis(500), world.get("a", true));
    assert!(first.await.is_err());
    assert_eq!(world.get("a", true).await, Ok(1));
}
