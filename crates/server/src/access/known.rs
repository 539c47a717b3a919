//! Tokens and projects as the store knows them, remembered for a moment.
//!
//! So a busy client costs no question per request. What another process changes is seen when
//! the moment is over; what this one revokes is forgotten at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::name::Name;
use model::time::Timestamp;
use store::{Store, TokenRow};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long an answer of the store is good for.
const MOMENT: Duration = Duration::from_secs(2);

/// Answers that are kept at most; beyond it all are forgotten, and asked for again.
const KEPT_MAX: usize = 1_000;

/// What is remembered.
pub(crate) struct Known {
    tokens: Mutex<BTreeMap<String, (Instant, TokenRow)>>,
    projects: Mutex<BTreeMap<Name, Instant>>,
    /// Counts what was revoked here, and wakes those who must look again.
    revoked: watch::Sender<u64>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            tokens: Mutex::default(),
            projects: Mutex::default(),
            revoked: watch::channel(0).0,
        }
    }
}

impl Known {
    /// The token with that digest, whatever its state; none when there is no such token.
    pub(crate) async fn token(
        &self,
        store: &Store,
        digest: &str,
        now: Timestamp,
    ) -> Result<Option<TokenRow>, store::Error> {
        if let Some((asked, row)) = lock(&self.tokens).get(digest)
            && asked.elapsed() < MOMENT
        {
            return Ok(Some(row.clone()));
        }
        let before = *self.revoked.borrow();
        let asked = Instant::now();
        let Some(row) = store.token_by_digest(digest, now).await? else {
            return Ok(None);
        };
        let mut kept = lock(&self.tokens);
        // What was read before something was revoked may be that very token.
        if *self.revoked.borrow() == before {
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(digest.to_owned(), (asked, row.clone()));
        }
        Ok(Some(row))
    }

    /// Forgets every token: one of them was revoked.
    pub(crate) fn forget_tokens(&self) {
        let mut kept = lock(&self.tokens);
        kept.clear();
        self.revoked.send_modify(|times| *times += 1);
    }

    /// Wakes whenever something was revoked here.
    pub(crate) fn revocations(&self) -> watch::Receiver<u64> {
        self.revoked.subscribe()
    }

    /// Whether there is such a project.
    pub(crate) async fn has_project(
        &self,
        store: &Store,
        name: &Name,
    ) -> Result<bool, store::Error> {
        if let Some(asked) = lock(&self.projects).get(name)
            && asked.elapsed() < MOMENT
        {
            return Ok(true);
        }
        let asked = Instant::now();
        let found = store.project(name).await?.is_some();
        let mut kept = lock(&self.projects);
        if found {
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(name.clone(), asked);
        }
        Ok(found)
    }

    /// Forgets a project that was removed.
    pub(crate) fn forget_project(&self, name: &Name) {
        lock(&self.projects).remove(name);
    }
}

/// A poisoned lock means that remembering panicked; what is there is still an answer.
fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Admin, digest, enrol};
    use store::Actor;

    const NOW: Timestamp = Timestamp::from_millis(0);

    async fn store() -> Store {
        let store = Store::in_memory().unwrap();
        let admin = Admin::of("slipway_abc");
        enrol(&store, &admin, NOW).await.unwrap();
        store
    }

    async fn revoke(store: &Store, row: &TokenRow) {
        let by = Actor::new("somebody", "");
        store.revoke_token(row.id, None, by, NOW).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_process_revokes_holds_after_a_moment() {
        let (store, known) = (store().await, Known::default());
        let digest = digest("slipway_abc");
        let row = known.token(&store, &digest, NOW).await.unwrap().unwrap();
        revoke(&store, &row).await;
        let still = known.token(&store, &digest, NOW).await.unwrap().unwrap();
        assert_eq!(still.revoked_at, None);
        tokio::time::advance(MOMENT).await;
        let now = known.token(&store, &digest, NOW).await.unwrap().unwrap();
        assert_eq!(now.revoked_at, Some(NOW));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_revoked_here_holds_at_once() {
        let (store, known) = (store().await, Known::default());
        let digest = digest("slipway_abc");
        let row = known.token(&store, &digest, NOW).await.unwrap().unwrap();
        let mut told = known.revocations();
        revoke(&store, &row).await;
        known.forget_tokens();
        assert!(told.changed().await.is_ok());
        let now = known.token(&store, &digest, NOW).await.unwrap().unwrap();
        assert_eq!(now.revoked_at, Some(NOW));
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_are_not_remembered() {
        let (store, known) = (store().await, Known::default());
        for n in 0..20 {
            let digest = digest(&format!("slipway_{n}"));
            assert_eq!(known.token(&store, &digest, NOW).await.unwrap(), None);
        }
        assert_eq!(known.tokens.lock().unwrap().len(), 0);
        let nobody: Name = "nobody".parse().unwrap();
        assert!(!known.has_project(&store, &nobody).await.unwrap());
        let default = Name::default_project();
        assert!(known.has_project(&store, &default).await.unwrap());
        assert_eq!(known.projects.lock().unwrap().len(), 1);
    }
}
