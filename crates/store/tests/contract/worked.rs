//! The queue: leases, fences, attempts and logs.

use crate::fixture::{
    LEASE, WORKER, at, claim, cluster, edited, events, name, plan, project, record, settle, submit,
    text, view,
};
use model::id::TaskId;
use model::intent::Wish;
use model::observed::{Fact, MachineFact, Observation};
use model::task::State;
use plan::Phase;
use std::collections::{BTreeMap, BTreeSet};
use store::{Claim, Draft, Ended, Recorded, Store, TaskRow};

async fn task(store: &Store, task: TaskId) -> TaskRow {
    store.task(&project(), task).await.unwrap().unwrap()
}

/// How many tasks of each cluster were claimed, by cluster name.
fn shares(claims: &[Claim]) -> String {
    let mut shares = BTreeMap::<&str, u32>::new();
    for claim in claims {
        *shares.entry(claim.task.cluster_name.as_str()).or_default() += 1;
    }
    shares
        .iter()
        .map(|(cluster, count)| format!("{cluster}:{count}"))
        .collect::<Vec<_>>()
        .join(" ")
}

pub(crate) async fn clusters_with_less_to_do_come_first(store: &Store) {
    for (name, workers, planned) in [("big", 30, at(1)), ("mid", 3, at(2)), ("tiny", 1, at(3))] {
        let cluster = cluster(store, name, workers).await;
        plan(store, cluster, planned).await;
    }
    let first = store.claim("w", 5, 100, LEASE, at(3)).await.unwrap();
    assert_eq!(shares(&first), "big:2 mid:2 tiny:1");
    let second = store.claim("w", 5, 100, LEASE, at(3)).await.unwrap();
    assert_eq!(shares(&second), "big:2 mid:2 tiny:1");
    let rest = store.claim("w", 100, 100, LEASE, at(3)).await.unwrap();
    assert_eq!(shares(&rest), "big:27");
}

pub(crate) async fn no_cluster_gets_more_than_its_share(store: &Store) {
    for name in ["big", "small"] {
        let cluster = cluster(store, name, 9).await;
        plan(store, cluster, at(1)).await;
    }
    let mut claims = store.claim("w", 100, 3, LEASE, at(1)).await.unwrap();
    assert_eq!(shares(&claims), "big:3 small:3");
    assert_eq!(
        store.claim("v", 100, 3, LEASE, at(1)).await.unwrap().len(),
        0
    );
    let done = claims.remove(0);
    let of = done.task.cluster_name.to_string();
    assert_eq!(record(store, done, Ended::Done, at(2)).await, Recorded::Yes);
    let next = store.claim("v", 100, 3, LEASE, at(2)).await.unwrap();
    assert_eq!(shares(&next), format!("{of}:1"));
}

pub(crate) async fn a_cluster_at_rest_keeps_nobody_waiting(store: &Store) {
    for name in ["busy", "idle"] {
        let cluster = cluster(store, name, 1).await;
        plan(store, cluster, at(1)).await;
    }
    for claim in claim(store, at(1)).await {
        let rests = claim.task.cluster_name == name("idle");
        let ended = Ended::Retry {
            error: "no answer".to_owned(),
            not_before: at(if rests { 100 } else { 2 }),
        };
        assert_eq!(record(store, claim, ended, at(1)).await, Recorded::Yes);
    }
    // The idle one has the fewest running tasks throughout, and nothing due.
    for _ in 0..2 {
        let next = store.claim("w", 1, 100, LEASE, at(2)).await.unwrap();
        assert_eq!(shares(&next), "busy:1");
    }
    assert_eq!(claim(store, at(2)).await.len(), 0);
    assert_eq!(shares(&claim(store, at(100)).await), "idle:2");
}

pub(crate) async fn no_task_is_claimed_twice(store: &Store) {
    let east = cluster(store, "east", 99).await;
    plan(store, east, at(1)).await;
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let store = store.clone();
        workers.spawn(async move {
            let mut tasks = Vec::new();
            loop {
                let claims = store
                    .claim(&format!("worker-{worker}"), 3, 500, LEASE, at(1))
                    .await
                    .unwrap();
                if claims.is_empty() {
                    return tasks;
                }
                tasks.extend(claims.iter().map(|claim| claim.task.id));
            }
        });
    }
    let tasks = workers.join_all().await.concat();
    assert_eq!(tasks.len(), 100);
    assert_eq!(tasks.into_iter().collect::<BTreeSet<_>>().len(), 100);
}

pub(crate) async fn an_attempt_that_failed_waits_until_it_is_due(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let claims = claim(store, at(1)).await;
    let ids: Vec<_> = claims.iter().map(|claim| claim.task.id).collect();
    for claim in claims {
        assert_eq!((claim.attempt, claim.lost, claim.fence()), (1, false, 1));
        let ended = Ended::Retry {
            error: "no answer".to_owned(),
            not_before: at(60),
        };
        assert_eq!(record(store, claim, ended, at(2)).await, Recorded::Yes);
    }
    let row = task(store, ids[0]).await;
    assert_eq!(
        (row.state, row.attempts, row.error.as_deref()),
        (State::Waiting, 1, Some("no answer"))
    );
    assert_eq!(
        (row.not_before, row.lease_until, row.worker),
        (at(60), None, None)
    );
    assert_eq!(claim(store, at(59)).await.len(), 0);
    assert_eq!(store.next_due().await.unwrap(), Some(at(60)));
    let again = claim(store, at(60)).await;
    assert_eq!(again.len(), 2);
    assert_eq!((again[0].attempt, again[0].fence()), (2, 2));
}

pub(crate) async fn a_stuck_task_waits_for_a_wish(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let mut claims = claim(store, at(1)).await;
    let stuck = claims.remove(0);
    let id = stuck.task.id;
    let ended = Ended::Stuck {
        error: "quota is used up; ask for more".to_owned(),
    };
    assert_eq!(record(store, stuck, ended, at(2)).await, Recorded::Yes);
    plan(store, east, at(3)).await;
    let row = store
        .cluster(&project(), &name("east"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.summary.phase, Phase::Error);
    assert_eq!(claim(store, at(3)).await.len(), 0);

    let draft = Draft {
        project: project(),
        cluster: name("east"),
        wish: Wish::Retry { task: id },
        author: "ana".into(),
        reason: "quota was raised".to_owned(),
        expires_at: None,
    };
    store.wish(draft.clone(), at(4)).await.unwrap();
    plan(store, east, at(4)).await;
    assert_eq!(view(store, east).await.intents, [], "the wish is fulfilled");
    let again = claim(store, at(4)).await;
    assert_eq!(
        (again.len(), again[0].task.id, again[0].attempt),
        (1, id, 2)
    );
    for claim in again.into_iter().chain(claims) {
        assert_eq!(
            record(store, claim, Ended::Done, at(5)).await,
            Recorded::Yes
        );
    }
    let refused = store.wish(draft, at(6)).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("task {id} is finished"));
}

pub(crate) async fn a_worker_that_lost_its_lease_cannot_record(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let mut old = claim(store, at(1)).await;
    assert_eq!(store.expire(at(30)).await.unwrap(), []);
    assert_eq!(store.expire(at(31)).await.unwrap(), [east]);
    let mut new = claim(store, at(31)).await;
    assert_eq!((new.len(), new[0].attempt, new[0].lost), (2, 2, true));

    let (old, new) = (old.remove(0), new.remove(0));
    assert_eq!(old.task.id, new.task.id);
    let seen = vec![Observation {
        cluster: east,
        fact: Fact::Machine(old.task.machine.id, MachineFact::Absent),
        at: at(32),
    }];
    let line = vec![(at(32), "too late".to_owned())];
    assert_eq!(
        store.append_log(&old, line.clone()).await.unwrap(),
        Recorded::LeaseLost
    );
    let recorded = store
        .record(old, Ended::Done, seen, Vec::new(), line, at(32))
        .await
        .unwrap();
    assert_eq!(recorded, Recorded::LeaseLost);
    assert_eq!(task(store, new.task.id).await.state, State::Running);
    assert!(view(store, east).await.observed.machines.is_empty());
    assert_eq!(store.task_log(new.task.id, 0, 100).await.unwrap(), []);
    assert!(!events(store).await.contains("task.done"));

    assert_eq!(record(store, new, Ended::Done, at(33)).await, Recorded::Yes);
}

pub(crate) async fn a_heartbeat_extends_the_lease(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let claims = claim(store, at(1)).await;
    let attempts: BTreeSet<_> = claims
        .iter()
        .map(|claim| (claim.task.id, claim.fence()))
        .collect();
    let beat = |worker, now| store.beat(worker, attempts.clone(), LEASE, now);
    assert_eq!(beat(WORKER, at(20)).await.unwrap(), attempts);
    assert!(beat("somebody-else", at(20)).await.unwrap().is_empty());
    assert_eq!(store.expire(at(45)).await.unwrap(), []);
    assert_eq!(store.expire(at(50)).await.unwrap(), [east]);
    assert!(beat(WORKER, at(51)).await.unwrap().is_empty());
    for claim in claims {
        assert_eq!(
            record(store, claim, Ended::Done, at(52)).await,
            Recorded::LeaseLost
        );
    }
}

pub(crate) async fn at_a_new_start_every_lease_is_void(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let before = claim(store, at(1)).await;
    assert_eq!(store.void_leases(at(2)).await.unwrap(), 2);
    assert_eq!(store.void_leases(at(2)).await.unwrap(), 0);
    let after = claim(store, at(2)).await;
    assert!(after.len() == before.len() && after.iter().all(|claim| claim.lost));
    for claim in before {
        assert_eq!(
            record(store, claim, Ended::Done, at(3)).await,
            Recorded::LeaseLost
        );
    }
    drop(after);
}

pub(crate) async fn a_task_that_is_given_back_is_due_at_once(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    for claim in claim(store, at(1)).await {
        assert_eq!(
            record(store, claim, Ended::Yield, at(2)).await,
            Recorded::Yes
        );
    }
    let again = claim(store, at(2)).await;
    assert!(again.len() == 2 && again.iter().all(|claim| !claim.lost && claim.attempt == 2));
    drop(again);
}

pub(crate) async fn a_lost_attempt_is_remembered_until_somebody_looked(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    drop(claim(store, at(1)).await);
    store.void_leases(at(2)).await.unwrap();
    // Nobody could see anything: the next attempt must look again, after a while.
    for claim in claim(store, at(2)).await {
        assert_eq!(
            record(store, claim, Ended::Yield, at(2)).await,
            Recorded::Yes
        );
    }
    assert_eq!(claim(store, at(3)).await.len(), 0);
    for claim in claim(store, at(4)).await {
        assert!(claim.lost);
        let seen = Fact::Machine(claim.task.machine.id, MachineFact::Absent);
        let seen = vec![Observation {
            cluster: east,
            fact: seen,
            at: at(4),
        }];
        assert_eq!(
            store
                .record(claim, Ended::Yield, seen, Vec::new(), Vec::new(), at(4))
                .await
                .unwrap(),
            Recorded::Yes
        );
    }
    let known = claim(store, at(4)).await;
    assert!(known.len() == 2 && known.iter().all(|claim| !claim.lost));
    drop(known);
}

pub(crate) async fn a_long_log_keeps_its_head_and_its_tail(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let claim = claim(store, at(1)).await.remove(0);
    let id = claim.task.id;
    let lines = |numbers: std::ops::Range<u32>| {
        numbers
            .map(|n| (at(1), format!("line {n}")))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        store.append_log(&claim, lines(0..500)).await.unwrap(),
        Recorded::Yes
    );
    assert_eq!(
        store.append_log(&claim, lines(500..3000)).await.unwrap(),
        Recorded::Yes
    );
    let long = vec![(at(2), "ä".repeat(10_000))];
    assert_eq!(
        store
            .record(claim, Ended::Done, Vec::new(), Vec::new(), long, at(2))
            .await
            .unwrap(),
        Recorded::Yes
    );

    let mut read = Vec::new();
    loop {
        let after = read.last().map_or(0, |line: &store::LogLine| line.seq);
        let more = store.task_log(id, after, 90).await.unwrap();
        if more.is_empty() {
            break;
        }
        read.extend(more);
    }
    assert_eq!(read.len(), 200 + 1 + 800);
    assert_eq!(
        (read[0].seq, read[0].attempt, read[0].text.as_str()),
        (1, 1, "line 0")
    );
    assert_eq!(read[199].text, "line 199");
    assert_eq!(read[200].text, "… 2001 lines were dropped here …");
    assert_eq!(read[201].text, "line 2201");
    assert_eq!(read[1000].seq, 3001);
    assert_eq!(read[1000].text.len(), 4096 + "…".len());
    assert!(read.is_sorted_by(|a, b| a.seq < b.seq));
}

pub(crate) async fn what_is_due_next_is_known(store: &Store) {
    assert_eq!(store.next_due().await.unwrap(), None);
    let unsaved = (
        "version: v1.34.1,",
        "version: v1.34.1, etcdBackup: {mode: off},",
    );
    let unsaved = edited(&text("east", &["east"], 1, 1), &[unsaved]);
    let east = submit(store, &unsaved).await.unwrap().changed[0].0;
    plan(store, east, at(5)).await;
    assert_eq!(store.next_due().await.unwrap(), Some(at(5)));
    let claims = claim(store, at(5)).await;
    assert_eq!(
        store.next_due().await.unwrap(),
        Some(at(35)),
        "the leases end"
    );
    for claim in claims {
        assert_eq!(
            record(store, claim, Ended::Done, at(6)).await,
            Recorded::Yes
        );
    }
    assert_eq!(store.next_due().await.unwrap(), None);
    settle(store, east, at(7)).await;
    let draft = Draft {
        project: project(),
        cluster: name("east"),
        wish: Wish::Pause,
        author: "ana".into(),
        reason: "maintenance".to_owned(),
        expires_at: Some(at(100)),
    };
    store.wish(draft, at(8)).await.unwrap();
    assert_eq!(store.next_due().await.unwrap(), Some(at(100)));
    assert_eq!(store.expire(at(100)).await.unwrap(), [east]);
    assert_eq!(store.next_due().await.unwrap(), None);
}
