//! What environments were last deployed with.

use crate::fixture::{at, project};
use crate::habitat::{
    action, begin, called, claim, create, due, edits, effective, finish, running, settings,
    settle_in, show, work,
};
use model::environment::config::Edits;
use model::environment::status::{Deed, Status};
use model::environment::taken::Taken;
use model::id::EnvironmentId;
use std::collections::BTreeMap;
use store::{
    ActionDraft, ActionEnded, Begun, Effective, EnvironmentRow, Recorded, Store, TakeOutcome,
};

const DAY: i64 = 24 * 60 * 60;

/// Asks for these edits where a default of the tag is this one.
async fn update(store: &Store, with: &[&str], default: &str, seconds: i64) -> Begun {
    let edits = edits(with);
    let draft = ActionDraft {
        effective: with_default(&edits, default),
        edits: Some(edits),
        ..action("orange", Deed::Update)
    };
    store.begin_action(draft, at(seconds)).await.unwrap()
}

fn with_default(of: &Edits, default: &str) -> Effective {
    let mut all = effective(of);
    let tag = format!("image.tag={default}");
    all.application
        .extend(effective(&edits(&[&tag])).application);
    all
}

/// What whoever looks at it is told of it.
async fn told(store: &Store, seconds: i64) -> Option<Effective> {
    let mut due = due(store, seconds).await;
    assert_eq!(due.len(), 1);
    due.remove(0).effective
}

async fn deployed_with(store: &Store, row: &EnvironmentRow) -> Option<Effective> {
    store.deployed_with(row.id, &row.edits).await.unwrap()
}

pub(crate) async fn who_looks_is_told_what_was_deployed(store: &Store) {
    settle_in(store, settings()).await;
    let own = project();
    running(store, "orange", 1).await;
    update(store, &["replicas=2"], "v1", 20).await;
    work(store, 20).await;
    let first = with_default(&edits(&["replicas=2"]), "v1");
    assert_eq!(told(store, 20).await, Some(first.clone()));
    // What fails was deployed as well as could be.
    update(store, &["replicas=3"], "v2", 30).await;
    let failing = claim(store, 30).await.remove(0);
    let orange = show(store, "orange").await;
    let ended = finish(store, &failing, ActionEnded::Failed, 31).await;
    assert_eq!(ended, Recorded::Yes);
    let second = with_default(&edits(&["replicas=3"]), "v2");
    assert_eq!(told(store, 31).await, Some(second.clone()));
    assert_eq!(deployed_with(store, &orange).await, Some(second.clone()));
    // What never began was not, and the same again counts again.
    let off = update(store, &["replicas=3"], "v9", 40).await;
    let orange = show(store, "orange").await;
    assert_eq!(deployed_with(store, &orange).await, Some(second.clone()));
    let cancelled = store.cancel_action(&own, off.action, "bob".into(), at(41));
    cancelled.await.unwrap();
    assert_eq!(told(store, 41).await, Some(second));
    update(store, &["replicas=2"], "v1", 50).await;
    work(store, 50).await;
    assert_eq!(told(store, 50).await, Some(first.clone()));
    // What was begun last with other edits does not count.
    let earlier = edits(&["replicas=4"]);
    let id: EnvironmentId = show(store, "orange").await.id;
    assert_eq!(store.deployed_with(id, &earlier).await.unwrap(), None);
    // However old it is, and whatever was called off since, it is known.
    let off = update(store, &["replicas=5"], "v3", 60).await;
    let cancelled = store.cancel_action(&own, off.action, "bob".into(), at(61));
    cancelled.await.unwrap();
    store.sweep(at(99 * DAY)).await.unwrap();
    assert_eq!(told(store, 99 * DAY).await, Some(first));
}

pub(crate) async fn nobody_knows_what_was_deployed_elsewhere(store: &Store) {
    settle_in(store, settings()).await;
    let own = project();
    let taken = Taken {
        name: called("orange"),
        origin: "octopod/orange".to_owned(),
        status: Status::Running,
        since: at(0),
        created_at: at(0),
        updated_at: at(0),
        archived_at: None,
        edits: edits(&["image.tag=v7"]),
        links: Vec::new(),
        actions: Vec::new(),
    };
    let took = store.take_environments(&own, vec![taken], false, "root".into(), at(1));
    assert_eq!(took.await.unwrap()[0].outcome, TakeOutcome::Taken);
    assert_eq!(told(store, 100).await, None);
    begin(store, "orange", Deed::Update, 110).await.unwrap();
    work(store, 110).await;
    assert_eq!(told(store, 110).await, Some(Effective::default()));
}

pub(crate) async fn a_look_that_is_put_off_says_nothing(store: &Store) {
    settle_in(store, settings()).await;
    create(store, "orange", 1).await;
    work(store, 1).await;
    let early = due(store, 1).await;
    let early: BTreeMap<_, _> = early.iter().map(|check| (check.id, check.held)).collect();
    store.put_off_looks(early.clone(), at(5)).await.unwrap();
    assert_eq!(due(store, 4).await.len(), 0);
    let orange = show(store, "orange").await;
    assert_eq!(
        (orange.status, orange.checked),
        (Status::CreatePending, None)
    );
    let again = due(store, 5).await;
    assert_eq!(again.len(), 1);
    // Whoever comes late puts off nothing.
    store.put_off_looks(early, at(9)).await.unwrap();
    let held = again[0].held;
    assert_eq!(store.next_check().await.unwrap(), Some(held));
    // Whoever held it is no more; what is due soon anyhow stays so.
    create(store, "lemon", 6).await;
    work(store, 6).await;
    assert!(held > at(40));
    store.void_looks(at(5)).await.unwrap();
    let looks = due(store, 5).await;
    assert_eq!(looks.len(), 1);
    assert_eq!(store.next_check().await.unwrap(), Some(at(6)));
}
