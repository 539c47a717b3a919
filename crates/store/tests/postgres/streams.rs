//! Events and audit entries while many processes write: in order, none missed, none twice.

use crate::fixture::{LEASE, at, plan, record, submit, text};
use crate::{LONG, two};
use model::access::{Role, TokenId};
use store::{Ended, Event, Recorded, Store, TokenDraft};
use tokio::task::JoinSet;

/// Writers per process.
const WRITERS: usize = 3;

/// What each of them writes.
const ROUNDS: usize = 6;

/// Reads on from the last event it has, a few at a time, until somebody wrote the last one.
async fn follow(store: Store) -> Vec<Event> {
    let mut news = store.subscribe();
    let mut read: Vec<Event> = Vec::new();
    loop {
        news.borrow_and_update();
        let after = read.last().map_or(0, |event| event.id);
        let more = store.events(None, after, 4).await.unwrap();
        if more.is_empty() {
            news.changed().await.unwrap();
        }
        read.extend(more);
        if read
            .last()
            .is_some_and(|event| event.object == "manifest/last")
        {
            return read;
        }
    }
}

async fn write(store: Store, writer: usize) {
    for round in 0..ROUNDS {
        let name = format!("w{writer}r{round}");
        let submitted = submit(&store, &text(&name, &[&name], 1, 1)).await.unwrap();
        plan(&store, submitted.changed[0].0, at(1)).await;
        let digest = format!("{name:0>64}");
        let token = TokenDraft {
            id: TokenId::of(&digest),
            name,
            project: None,
            role: Role::User,
            digest,
            expires_at: None,
        };
        store.add_token(token, "root".into(), at(1)).await.unwrap();
        let worker = format!("w{writer}");
        for claim in store.claim(&worker, 2, 100, LEASE, at(1)).await.unwrap() {
            assert_eq!(
                record(&store, claim, Ended::Done, at(1)).await,
                Recorded::Yes
            );
        }
    }
}

#[tokio::test]
async fn a_follower_misses_nothing_and_sees_nothing_twice() {
    let Some(stores) = two("a_follower_misses_nothing_and_sees_nothing_twice") else {
        return;
    };
    let mut followers = JoinSet::new();
    for store in &stores {
        followers.spawn(follow(store.clone()));
    }
    let mut writers = JoinSet::new();
    for writer in 0..2 * WRITERS {
        writers.spawn(write(stores[writer % 2].clone(), writer));
    }
    writers.join_all().await;
    submit(&stores[0], &text("last", &["last"], 1, 1))
        .await
        .unwrap();
    let all = stores[1].events(None, 0, 1000).await.unwrap();
    assert!(all.is_sorted_by(|a, b| a.id < b.id));
    let submitted = all
        .iter()
        .filter(|event| event.kind == "manifest.submitted")
        .count();
    assert_eq!(submitted, 2 * WRITERS * ROUNDS + 1);
    for read in tokio::time::timeout(LONG, followers.join_all())
        .await
        .unwrap()
    {
        assert_eq!(read, all);
    }

    // The chain was written by both, and is one.
    let chain = stores[0].verify_audit().await.unwrap();
    let expected = 2 * WRITERS * ROUNDS * 2 + 1;
    assert_eq!(
        (chain.entries, chain.broken),
        (u64::try_from(expected).unwrap(), None)
    );
}

#[tokio::test]
async fn each_process_hears_what_the_other_wrote() {
    let Some([one, other]) = two("each_process_hears_what_the_other_wrote") else {
        return;
    };
    let mut news = other.subscribe();
    for round in 0..5 {
        let name = format!("c{round}");
        submit(&one, &text(&name, &[&name], 1, 1)).await.unwrap();
        let newest = one.events(None, 0, 1000).await.unwrap().pop().unwrap().id;
        let heard = news.wait_for(|heard| *heard >= newest);
        tokio::time::timeout(LONG, heard).await.unwrap().unwrap();
    }
    // What is not news stays unheard: a refusal, and what changes nothing.
    let before = *news.borrow_and_update();
    submit(&one, &text("thief", &["c0"], 1, 1))
        .await
        .unwrap_err();
    submit(&one, &text("c0", &["c0"], 1, 1)).await.unwrap();
    let newest = other.events(None, before, 10).await.unwrap();
    assert_eq!(newest, []);
}
