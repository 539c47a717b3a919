//! How long tasks take, learnt from those that were done.

use crate::fixture::{at, claim, cluster, effect, name, plan, record, view};
use model::id::ClusterId;
use plan::{Paces, Prices};
use store::{Ended, Recorded, Store};

/// How long the rest of the way takes, and what that was learnt from.
async fn journey(store: &Store, cluster: ClusterId) -> (u32, String) {
    let view = view(store, cluster).await;
    let paces = store.paces(Paces::asked(view.desired.all())).await.unwrap();
    let told = plan::journey_by(&view.view(at(0)), &Prices::usual(), &paces, &|_, _| None);
    (told.minutes, told.basis.to_string())
}

/// Carries out all that is due; the attempts take so many seconds each.
async fn carry_out(store: &Store, cluster: ClusterId, begun: i64, seconds: &[i64]) {
    plan(store, cluster, at(begun)).await;
    let claims = claim(store, at(begun)).await;
    assert_eq!(claims.len(), seconds.len());
    for (claim, seconds) in claims.into_iter().zip(seconds) {
        let now = at(begun + seconds);
        let seen = effect(&claim.task, now);
        let done = store.record(claim, Ended::Done, seen, Vec::new(), Vec::new(), now);
        assert_eq!(done.await.unwrap(), Recorded::Yes);
    }
}

pub(crate) async fn minutes_are_learnt_from_attempts_that_were_done(store: &Store) {
    const GUESS: &str = "minutes are a guess: too little of this was done here before";
    let east = cluster(store, "east", 2).await;
    let west = cluster(store, "west", 2).await;
    // A create, an init, a join.
    assert_eq!(journey(store, west).await, (2 + 3 + 2, GUESS.to_owned()));

    // What failed tells nothing, however long it took; nor does what a task waited before.
    plan(store, east, at(0)).await;
    for claim in claim(store, at(0)).await {
        let (error, not_before) = ("no answer".to_owned(), at(5_000));
        let ended = Ended::Retry { error, not_before };
        let recorded = record(store, claim, ended, at(4_000)).await;
        assert_eq!(recorded, Recorded::Yes);
    }
    assert_eq!(journey(store, west).await.1, GUESS);
    carry_out(store, east, 5_000, &[599, 600, 7_200]).await;
    let learnt = "minutes are learnt from 3 past tasks; those of init, join are a guess";
    assert_eq!(journey(store, west).await, (10 + 3 + 2, learnt.to_owned()));

    // Two are chance: a join is still a guess.
    carry_out(store, east, 20_000, &[60]).await;
    carry_out(store, east, 21_000, &[60, 60]).await;
    assert_eq!(journey(store, west).await, (10 + 3 + 2, learnt.to_owned()));

    // Nobody asks for machines of others.
    let nobody = store.paces(Paces::asked([])).await.unwrap();
    assert_eq!(nobody, Paces::default());
}

pub(crate) async fn only_the_newest_paces_are_kept(store: &Store) {
    let slow = cluster(store, "slow", 59).await;
    carry_out(store, slow, 0, &[3_600; 60]).await;
    let west = cluster(store, "west", 2).await;
    let tasks = |(_, basis): (u32, String)| basis.contains("from 50 past tasks");
    assert!(tasks(journey(store, west).await));
    assert_eq!(store.sweep(at(10)).await.unwrap().paces, 10);
    assert_eq!(store.sweep(at(10)).await.unwrap().paces, 0);
    assert_eq!(journey(store, west).await.0, 60 + 3 + 2);
    let swift = cluster(store, "swift", 25).await;
    carry_out(store, swift, 4_000, &[60; 26]).await;
    assert_eq!(journey(store, west).await.0, 1 + 3 + 2);
    assert_eq!(store.sweep(at(10)).await.unwrap().paces, 26);
    let view = view(store, west).await;
    let twin = store.twin(&view.desired.project, &name("west")).await;
    let paces = twin
        .unwrap()
        .paces(Paces::asked(view.desired.all()))
        .await
        .unwrap();
    assert_eq!(paces, Paces::default(), "a rehearsal has its own pace");
}
