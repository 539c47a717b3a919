//! What is told to those who watch over the whole.

use crate::fixture::{at, claim, cluster, effect, plan, record, running, view};
use model::observed::Observation;
use store::{Actor, Ended, Recorded, Store};

/// Machines that are held, by reason.
async fn held(store: &Store) -> Vec<(&'static str, u64)> {
    let backlog = store.backlog(at(10)).await.unwrap();
    backlog.held.into_iter().collect()
}

pub(crate) async fn what_waits_is_counted(store: &Store) {
    let backlog = store.backlog(at(10)).await.unwrap();
    assert_eq!((backlog.due, backlog.held.len()), (0, 0));
    let first = cluster(store, "first", 3).await;
    plan(store, first, at(0)).await;
    assert_eq!(store.backlog(at(10)).await.unwrap().due, 4);
    assert_eq!(store.backlog(at(-1)).await.unwrap().due, 0, "not due yet");
    let mut claimed = claim(store, at(10)).await;
    assert_eq!(claimed.len(), 4);
    assert_eq!(store.backlog(at(10)).await.unwrap().due, 0);

    let error = "no quota".to_owned();
    let recorded = record(store, claimed.remove(0), Ended::Stuck { error }, at(10)).await;
    assert_eq!(recorded, Recorded::Yes);
    plan(store, first, at(10)).await;
    assert_eq!(held(store).await, [("stuck", 1)]);
}

pub(crate) async fn what_is_restored_is_looked_at_first(store: &Store) {
    let first = cluster(store, "first", 1).await;
    plan(store, first, at(0)).await;
    let mut claimed = claim(store, at(1)).await;
    let done = claimed.remove(0);
    let seen = effect(&done.task, at(2));
    let recorded = store.record(done, Ended::Done, seen, Vec::new(), Vec::new(), at(2));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    assert!(!view(store, first).await.is_unseen());
    let file = tempfile::NamedTempFile::new().unwrap();
    store.dump(file.path(), at(3)).await.unwrap();

    let other = Store::in_memory().unwrap();
    other.restore(file.path(), at(1_000)).await.unwrap();
    let restored = view(&other, first).await;
    assert!(restored.is_unseen());
    assert_eq!(restored.observed.machines.len(), 1, "what was seen is kept");
    // Nobody holds the other task any more, and whoever takes it looks first.
    let again = claim(&other, at(1_000)).await;
    assert!(again.iter().all(|claim| claim.lost), "{again:?}");
    assert_eq!(again.len(), 1);
    let looked = restored.observed.machines.keys().next().copied().unwrap();
    let machine = restored.desired.all().find(|one| one.id == looked).unwrap();
    let seen = vec![Observation {
        cluster: first,
        fact: running(machine),
        at: at(1_001),
    }];
    other.observe(first, seen, at(1_001)).await.unwrap();
    assert!(!view(&other, first).await.is_unseen());
}

pub(crate) async fn what_changes_nothing_can_be_entered_too(store: &Store) {
    let ana = Actor::new("ana", "10.0.0.1");
    store
        .enter_audit(None, ana, "backup.create", ("backup", "7 rows"), at(5))
        .await
        .unwrap();
    let entries = store.audit_after(0, 10).await.unwrap();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    assert_eq!(
        (
            &*entry.actor,
            &*entry.origin,
            &*entry.action,
            &*entry.detail
        ),
        ("ana", "10.0.0.1", "backup.create", "7 rows")
    );
    assert!(store.verify_audit().await.unwrap().broken.is_none());
}
