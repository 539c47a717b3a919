//! What is told to those who watch over the whole.

use crate::fixture::{at, claim, cluster, plan, record};
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

pub(crate) async fn what_changes_nothing_can_be_entered_too(store: &Store) {
    let ana = Actor::new("ana", "10.0.0.1");
    store
        .enter_audit(ana, "backup.create", ("backup", "7 rows"), at(5))
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
