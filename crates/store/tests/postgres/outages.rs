//! A server that goes away and comes back: nobody hangs, and what was answered is kept.

use crate::fixture::{at, cluster, name, project, submission, submit, text};
use crate::{LONG, server};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Page, Store, SubmitError};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[tokio::test]
async fn a_server_that_is_away_is_said_to_be_so_until_it_is_back() {
    let Some((mut server, url)) = server("a_server_that_is_away_is_said_to_be_so_until_it_is_back")
    else {
        return;
    };
    let (one, other) = (Store::connect(&url).unwrap(), Store::connect(&url).unwrap());
    cluster(&one, "east", 1).await;
    let mut news = other.subscribe();
    server.stop().unwrap();

    let refused = Store::connect(&url).map(drop).unwrap_err();
    assert_eq!(refused.code(), "STORE-010");
    // Many ask at once: all are answered, and not one after the other.
    let mut asking = JoinSet::new();
    for number in 0..40 {
        let store = if number % 2 == 0 {
            one.clone()
        } else {
            other.clone()
        };
        asking.spawn(async move {
            if number % 4 < 2 {
                return store.counts().await.map(drop).unwrap_err();
            }
            let name = format!("c{number}");
            match submit(&store, &text(&name, &[&name], 1, 1)).await {
                Err(SubmitError::Store(error)) => error,
                other => panic!("{other:?}"),
            }
        });
    }
    for refused in tokio::time::timeout(LONG, asking.join_all()).await.unwrap() {
        assert_eq!(refused.code(), "STORE-010", "{refused:?}");
        assert!(refused.hint().contains("PostgreSQL"));
    }

    server.begin().unwrap();
    // The same handles go on, for reading, writing and hearing of each other.
    assert_eq!(one.live_clusters().await.unwrap().len(), 1);
    let west = submit(&one, &text("west", &["west"], 1, 1)).await.unwrap();
    assert_eq!(west.changed.len(), 1);
    let newest = one.events(None, 0, 100).await.unwrap().pop().unwrap().id;
    let heard = news.wait_for(|heard| *heard >= newest);
    tokio::time::timeout(LONG, heard).await.unwrap().unwrap();
    // Also what is announced from now on.
    server.restart().unwrap();
    for round in 0..3 {
        let name = format!("again-{round}");
        submit(&one, &text(&name, &[&name], 1, 1)).await.unwrap();
        let newest = one.events(None, 0, 100).await.unwrap().pop().unwrap().id;
        let heard = news.wait_for(|heard| *heard >= newest);
        tokio::time::timeout(LONG, heard).await.unwrap().unwrap();
    }
    assert_eq!(other.verify_audit().await.unwrap().broken, None);
}

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Kept,
    Lost,
    Unsure,
}

/// Submits one manifest after the other until told to stop; answers what it was told of each.
async fn submit_many(
    store: Store,
    writer: usize,
    kept: watch::Sender<usize>,
    stop: Arc<AtomicBool>,
) -> BTreeMap<String, Answer> {
    let mut answers = BTreeMap::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("w{writer}n{number}");
        let mut submission = submission(&text(&name, &[&name], 1, 1));
        submission.key = Some(name.clone());
        let answer = match store.submit(submission, at(1)).await {
            Ok(_) => {
                kept.send_modify(|kept| *kept += 1);
                Answer::Kept
            }
            Err(SubmitError::Store(error)) => match error.code() {
                "STORE-010" => Answer::Lost,
                "STORE-011" => Answer::Unsure,
                _ => panic!("{error}: {error:?}"),
            },
            Err(error) => panic!("{error}"),
        };
        answers.insert(name, answer);
    }
    answers
}

#[tokio::test]
async fn what_was_answered_is_there_after_the_server_has_crashed() {
    let Some((mut server, url)) = server("what_was_answered_is_there_after_the_server_has_crashed")
    else {
        return;
    };
    let stores = [Store::connect(&url).unwrap(), Store::connect(&url).unwrap()];
    let (kept, stop) = (watch::Sender::new(0), Arc::new(AtomicBool::new(false)));
    let mut writers = JoinSet::new();
    for writer in 0..6 {
        let store = stores[writer % 2].clone();
        writers.spawn(submit_many(store, writer, kept.clone(), stop.clone()));
    }
    let mut counted = kept.subscribe();
    for _ in 0..2 {
        let before = *counted.borrow_and_update();
        let more = counted.wait_for(|kept| *kept >= before + 30);
        tokio::time::timeout(LONG, more).await.unwrap().unwrap();
        // Elsewhere, so that those who write do so all the while.
        let mut crash = JoinSet::new();
        crash.spawn_blocking(move || {
            server.kill().unwrap();
            server.begin().unwrap();
            server
        });
        server = crash.join_next().await.unwrap().unwrap();
    }
    // Those who write go on by themselves when it is back.
    let before = *counted.borrow_and_update();
    let more = counted.wait_for(|kept| *kept >= before + 30);
    tokio::time::timeout(LONG, more).await.unwrap().unwrap();
    stop.store(true, Ordering::Relaxed);
    let answers = writers.join_all().await;

    for (manifest, answer) in answers.iter().flatten() {
        let found = stores[0]
            .manifest(&project(), &name(manifest))
            .await
            .unwrap();
        match answer {
            Answer::Kept => assert!(found.is_some(), "{manifest} was answered and is gone"),
            Answer::Lost => assert!(found.is_none(), "{manifest} was refused and is there"),
            Answer::Unsure => {
                // Whoever repeats it with the same key does no harm, whatever became of it.
                let mut again = submission(&text(manifest, &[manifest], 1, 1));
                again.key = Some(manifest.clone());
                stores[1].submit(again, at(1)).await.unwrap();
                let found = stores[0]
                    .manifest(&project(), &name(manifest))
                    .await
                    .unwrap();
                assert_eq!(found.unwrap().generation.0, 1);
            }
        }
    }
    let chain = stores[0].verify_audit().await.unwrap();
    let manifests = server.psql(&url, "SELECT COUNT(*) FROM manifests").unwrap();
    assert_eq!((chain.entries.to_string(), chain.broken), (manifests, None));
    let listed = stores[1].audit(None, Page::default()).await.unwrap();
    assert_eq!(listed.items[0].seq, chain.entries);
}
