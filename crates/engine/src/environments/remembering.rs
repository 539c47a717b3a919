//! Secrets of environments that are looked at again and again.
//!
//! Each opening of a secret is audited, and a look comes every few seconds: what was opened for one
//! is remembered for those that follow, for a while and as long as nobody changes the environment.

use driver::{Keeping, Open, Opening};
use model::name::Name;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long something is remembered: so often a look is in the audit.
const REMEMBERED: Duration = Duration::from_hours(1);

/// How long the way to a cluster is remembered: its API may move.
const WAY_REMEMBERED: Duration = Duration::from_mins(1);

/// The most that is remembered at once.
const ENTRIES_MAX: usize = 100_000;

/// Which value: its owner, its entry, and in which generation.
type Which = (Owner, EntryName, u64);

/// Values that were opened, and when.
type Values = BTreeMap<Which, (Instant, Secret)>;

/// The ways to clusters, by project and name, and when they were opened.
type Ways = BTreeMap<(Name, Name), (Instant, Secret)>;

/// What was opened for looks.
#[derive(Default)]
pub(super) struct Remembered {
    values: Mutex<Values>,
    ways: Mutex<Ways>,
}

impl Remembered {
    fn lock(&self) -> MutexGuard<'_, Values> {
        held(&self.values)
    }

    fn way(&self, project: &Name, cluster: &Name) -> Option<Secret> {
        let mut ways = held(&self.ways);
        ways.retain(|_, (since, _)| since.elapsed() < WAY_REMEMBERED);
        let (_, way) = ways.get(&(project.clone(), cluster.clone()))?;
        Some(copy(way))
    }

    fn put_way(&self, project: &Name, cluster: &Name, way: &Secret) {
        let which = (project.clone(), cluster.clone());
        held(&self.ways).insert(which, (Instant::now(), copy(way)));
    }

    fn get(&self, which: &Which) -> Option<Secret> {
        let values = self.lock();
        let (since, value) = values.get(which)?;
        (since.elapsed() < REMEMBERED).then(|| copy(value))
    }

    fn put(&self, which: Which, value: &Secret) {
        let mut values = self.lock();
        if values.len() >= ENTRIES_MAX {
            values.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        }
        if values.len() >= ENTRIES_MAX {
            values.clear();
        }
        // Of an environment only the newest generation is looked at.
        let oldest = (which.0.clone(), which.1.clone(), 0);
        let older = values.range(oldest..which.clone());
        let older: Vec<_> = older.map(|(which, _)| which.clone()).collect();
        for which in older {
            values.remove(&which);
        }
        values.insert(which, (Instant::now(), copy(value)));
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn copy(value: &Secret) -> Secret {
    Secret::from(value.expose().to_vec())
}

/// Opens what belongs to an environment once for many looks.
pub(super) struct Once {
    pub(super) remembered: Arc<Remembered>,
    pub(super) project: Name,
    pub(super) generation: u64,
    pub(super) opener: Arc<dyn Open>,
}

impl Open for Once {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        self.opener.open(secret)
    }

    fn kept<'a>(&'a self, owner: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
        Box::pin(async move {
            let which = (owner.clone(), entry.clone(), self.generation);
            if let Some(known) = self.remembered.get(&which) {
                return Ok(Some(known));
            }
            let kept = self.opener.kept(owner, entry).await?;
            if let Some(value) = &kept {
                self.remembered.put(which, value);
            }
            Ok(kept)
        })
    }

    fn kubeconfig<'a>(&'a self, cluster: &'a Name) -> Opening<'a> {
        Box::pin(async move {
            if let Some(known) = self.remembered.way(&self.project, cluster) {
                return Ok(known);
            }
            let way = self.opener.kubeconfig(cluster).await?;
            self.remembered.put_way(&self.project, cluster, &way);
            Ok(way)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::{EnvironmentId, Origin};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Counts how often it was asked.
    #[derive(Default)]
    struct Counting(AtomicU32);

    impl Open for Counting {
        fn open<'a>(&'a self, _: &'a SecretRef) -> Opening<'a> {
            Box::pin(async { Ok(Secret::from(b"other".to_vec())) })
        }

        fn kept<'a>(&'a self, _: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
            let asked = self.0.fetch_add(1, Ordering::Relaxed);
            let value = format!("{entry} {asked}").into_bytes();
            Box::pin(async { Ok(Some(Secret::from(value))) })
        }

        fn kubeconfig<'a>(&'a self, cluster: &'a Name) -> Opening<'a> {
            let asked = self.0.fetch_add(1, Ordering::Relaxed);
            let way = format!("{cluster} {asked}").into_bytes();
            Box::pin(async { Ok(Secret::from(way)) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_way_to_a_cluster_is_opened_once_a_minute_for_all_looks_of_a_project() {
        let opener = Arc::new(Counting::default());
        let remembered = Arc::new(Remembered::default());
        let way = async |project: &str, cluster: &str| {
            let once = Once {
                remembered: remembered.clone(),
                project: project.parse().unwrap(),
                generation: 1,
                opener: opener.clone(),
            };
            let way = once.kubeconfig(&cluster.parse().unwrap()).await;
            let way = way.unwrap_or_else(|_| panic!("it opens"));
            String::from_utf8(way.expose().to_vec()).unwrap()
        };
        assert_eq!(way("shop", "blue").await, "blue 0");
        assert_eq!(way("shop", "blue").await, "blue 0");
        assert_eq!(way("other", "blue").await, "blue 1");
        assert_eq!(way("shop", "green").await, "green 2");
        tokio::time::advance(WAY_REMEMBERED).await;
        assert_eq!(way("shop", "blue").await, "blue 3");
    }

    #[tokio::test(start_paused = true)]
    async fn a_secret_is_opened_once_for_a_generation_and_an_hour() {
        let opener = Arc::new(Counting::default());
        let remembered = Arc::new(Remembered::default());
        let origin = Origin {
            parent: "default",
            name: "orange",
            ordinal: 0,
            incarnation: 0,
        };
        let owner = Owner::Environment(EnvironmentId::derive(origin));
        let kept = async |generation, entry: &str| {
            let once = Once {
                remembered: remembered.clone(),
                project: Name::default_project(),
                generation,
                opener: opener.clone(),
            };
            let entry = entry.to_owned().try_into().unwrap();
            let kept = once.kept(&owner, &entry).await;
            let kept = kept.unwrap_or_else(|_| panic!("it opens")).unwrap();
            String::from_utf8(kept.expose().to_vec()).unwrap()
        };
        assert_eq!(kept(1, "b").await, "b 0");
        assert_eq!(kept(1, "a").await, "a 1");
        assert_eq!(kept(1, "b").await, "b 0");
        assert_eq!(kept(2, "b").await, "b 2");
        assert_eq!(kept(2, "a").await, "a 3");
        assert_eq!(remembered.lock().len(), 2, "older ones are forgotten");
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(kept(2, "b").await, "b 4");
    }
}
