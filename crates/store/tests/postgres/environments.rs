//! Several processes look after the same environments: each thing is done by one of them.

use crate::fixture::{at, project};
use crate::habitat::{
    LEASE, begin, changes, create, draft, due, look, running, settings, settle_in, show, work,
};
use crate::two;
use model::environment::status::Deed;
use std::collections::BTreeSet;
use tokio::task::JoinSet;

/// How often each race is run.
const ROUNDS: i64 = 8;

#[tokio::test]
async fn of_many_processes_one_begins() {
    let Some(stores) = two("of_many_processes_one_begins") else {
        return;
    };
    settle_in(&stores[0], settings()).await;
    for round in 0..ROUNDS {
        let called = format!("env{round}");
        let coming = draft(&stores[0], &project(), &called, &[]).await;
        let mut asking = JoinSet::new();
        for number in 0..6 {
            let (store, coming) = (stores[number % 2].clone(), coming.clone());
            asking.spawn(async move { store.create_environment(coming, at(1)).await });
        }
        let answers = asking.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        let told = format!("environment `{called}` exists already, and is create-pending");
        let others = answers.into_iter().filter_map(Result::err);
        assert!(others.into_iter().all(|error| error.to_string() == told));

        work(&stores[0], 2).await;
        let mut asking = JoinSet::new();
        for number in 0..6 {
            let (store, called) = (stores[number % 2].clone(), called.clone());
            asking.spawn(async move { begin(&store, &called, Deed::Update, 3).await });
        }
        let answers = asking.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        let told = "it is busy: update is under way";
        let others = answers.into_iter().filter_map(Result::err);
        assert!(others.into_iter().all(|error| error.to_string() == told));
        work(&stores[1], 4).await;
    }
}

#[tokio::test]
async fn no_action_and_no_look_is_taken_twice() {
    let Some(stores) = two("no_action_and_no_look_is_taken_twice") else {
        return;
    };
    settle_in(&stores[0], settings()).await;
    for number in 0..60 {
        create(&stores[number % 2], &format!("env{number}"), 1).await;
    }
    let mut claiming = JoinSet::new();
    for number in 0..8 {
        let store = stores[number % 2].clone();
        let worker = format!("w{number}");
        claiming.spawn(async move {
            let claimed = store
                .claim_actions((&worker, "here"), 10, LEASE, at(2))
                .await;
            claimed
                .unwrap()
                .iter()
                .map(|claim| claim.action)
                .collect::<Vec<_>>()
        });
    }
    let claimed = claiming.join_all().await.concat();
    let distinct: BTreeSet<_> = claimed.iter().collect();
    assert_eq!(distinct.len(), claimed.len());
    stores[0].void_actions(at(3)).await.unwrap();
    work(&stores[0], 4).await;
    let mut looking = JoinSet::new();
    for number in 0..8 {
        let store = stores[number % 2].clone();
        looking.spawn(async move { store.due_checks(10, at(5)).await.unwrap().checks });
    }
    let looks = looking.join_all().await.concat();
    let distinct: BTreeSet<_> = looks.iter().map(|check| check.id).collect();
    assert_eq!(distinct.len(), looks.len());
}

/// Looks are recorded while something is begun: whoever comes second is told, or dropped.
#[tokio::test]
async fn a_look_never_undoes_what_was_begun_meanwhile() {
    let Some(stores) = two("a_look_never_undoes_what_was_begun_meanwhile") else {
        return;
    };
    settle_in(&stores[0], settings()).await;
    for round in 0..ROUNDS {
        let called = format!("env{round}");
        let row = running(&stores[0], &called, 1).await;
        let check = due(&stores[0], 20).await;
        let check = check.into_iter().find(|check| check.id == row.id).unwrap();
        let (one, other) = (stores[0].clone(), stores[1].clone());
        let looked = vec![look(&check, Some(1), 40)];
        let (recorded, begun) = tokio::join!(
            one.record_looks(looked, at(21)),
            begin(&other, &called, Deed::Update, 21)
        );
        recorded.unwrap();
        begun.unwrap();
        let after = show(&stores[1], &called).await;
        assert_eq!(after.status.to_string(), "update-pending");
        let told = changes(&stores[0], row.id).await;
        assert!(
            told.contains(" → update-pending: ana asked for update"),
            "{told}"
        );
        let first = told.lines().next().unwrap();
        assert!(
            first.contains("→ update-pending"),
            "the last word has who asked: {told}"
        );
        work(&stores[0], 22).await;
    }
}
