//! Many workers of several processes: every task once, and nothing left behind.

use crate::fixture::{LEASE, at, effect, submission, submit, text};
use crate::{LONG, database};
use model::id::{ClusterId, TaskId};
use plan::Phase;
use std::collections::BTreeSet;
use std::time::Duration;
use store::{CommitError, Ended, Recorded, Store};
use tokio::task::JoinSet;

/// Workers per process.
const WORKERS: usize = 4;

/// Clusters that are built at once.
const CLUSTERS: usize = 8;

/// Plans a cluster as the engine does; others may do so at the same time.
async fn plan(store: &Store, cluster: ClusterId) {
    loop {
        let Some(known) = store.cluster_view(cluster).await.unwrap() else {
            return;
        };
        let mut plan = plan::plan(&known.view(at(1)));
        if known.is_told(&plan, at(1)) {
            return;
        }
        loop {
            match store.commit(plan.clone(), at(1)).await {
                Ok(()) => return,
                Err(CommitError::Stale) => break,
                Err(CommitError::Refused { machine, reason }) => plan.hold_back(machine, &reason),
                Err(CommitError::Store(error)) => panic!("{error}: {error:?}"),
            }
        }
    }
}

/// Works until every cluster is ready; answers which tasks it did.
async fn work(store: Store, worker: String) -> Vec<TaskId> {
    let mut news = store.subscribe();
    let mut done = Vec::new();
    loop {
        news.borrow_and_update();
        let claims = store.claim(&worker, 3, 4, LEASE, at(1)).await.unwrap();
        if claims.is_empty() {
            let ready = store
                .counts()
                .await
                .unwrap()
                .clusters
                .get(&Phase::Done)
                .copied();
            if ready == u64::try_from(CLUSTERS).ok() {
                return done;
            }
            // Somebody else is at work, and whatever it does is news.
            news.changed().await.unwrap();
        }
        let attempts = claims
            .iter()
            .map(|claim| (claim.task.id, claim.fence()))
            .collect();
        let beaten = store.beat(&worker, attempts, LEASE, at(1)).await.unwrap();
        assert_eq!(beaten.len(), claims.len());
        for claim in claims {
            assert_eq!(claim.attempt, 1);
            let (task, cluster) = (claim.task.id, claim.task.cluster);
            let line = vec![(at(1), format!("{worker} did it"))];
            assert_eq!(
                store.append_log(&claim, line.clone()).await.unwrap(),
                Recorded::Yes
            );
            let seen = effect(&claim.task, at(1));
            let recorded = store.record(claim, Ended::Done, seen, vec![], line, at(1));
            assert_eq!(recorded.await.unwrap(), Recorded::Yes);
            done.push(task);
            plan(&store, cluster).await;
        }
    }
}

#[tokio::test]
async fn many_workers_of_two_processes_do_everything_once() {
    let Some((server, url)) = database("many_workers_of_two_processes_do_everything_once") else {
        return;
    };
    let stores = [Store::connect(&url).unwrap(), Store::connect(&url).unwrap()];
    let mut workers = JoinSet::new();
    for number in 0..2 * WORKERS {
        let store = stores[number % 2].clone();
        workers.spawn(work(store, format!("worker-{number}")));
    }
    for number in 0..CLUSTERS {
        let name = format!("c{number}");
        let submitted = submit(&stores[number % 2], &text(&name, &[&name], 3, 4)).await;
        plan(&stores[number % 2], submitted.unwrap().changed[0].0).await;
    }
    let done = tokio::time::timeout(LONG, workers.join_all())
        .await
        .unwrap()
        .concat();
    // Seven machines are made and join, of which the first starts the control plane.
    assert_eq!(done.len(), CLUSTERS * 14);
    assert_eq!(
        done.iter().collect::<BTreeSet<_>>().len(),
        done.len(),
        "none twice"
    );

    let left = stores[0]
        .claim("last", 100, 100, LEASE, at(1))
        .await
        .unwrap();
    assert!(left.is_empty(), "nothing is due");
    // Etcd is saved again a day after.
    let due = stores[1].next_due().await.unwrap();
    assert!(due.is_none_or(|due| due > at(3_600)), "{due:?}");
    let wrong = "SELECT cluster FROM lanes WHERE running <> 0 OR due IS NOT NULL
                 UNION ALL SELECT cluster FROM lane_changes
                 UNION ALL SELECT id FROM tasks WHERE state <> 'done'";
    assert_eq!(server.psql(&url, wrong).unwrap(), "");
    let lanes = server.psql(&url, "SELECT COUNT(*) FROM lanes").unwrap();
    assert_eq!(lanes, CLUSTERS.to_string());
    assert_eq!(stores[0].verify_audit().await.unwrap().broken, None);
}

/// Plans, works and sweeps; the first of all changes what is wanted, so that tasks come and go
/// again undone, and the second ends everybody's leases.
async fn bustle(store: Store, number: usize, ids: Vec<ClusterId>) {
    for round in 0..12_u32 {
        if number == 0 {
            let name = format!("c{}", round % 4);
            let mut changed = submission(&text(&name, &[&name], 1, 3 + round % 5));
            changed.allow = Some(100).into();
            store.submit(changed, at(1)).await.unwrap();
        }
        for id in &ids {
            plan(&store, *id).await;
        }
        let worker = format!("w{number}");
        for claim in store.claim(&worker, 5, 3, LEASE, at(1)).await.unwrap() {
            let (cluster, seen) = (claim.task.cluster, effect(&claim.task, at(1)));
            let ended = if round % 3 == 0 {
                Ended::Yield
            } else {
                Ended::Done
            };
            let probed = store.begin_probe(cluster, Duration::ZERO, at(1));
            probed.await.unwrap();
            // Its lease may have been ended meanwhile.
            let recorded = store.record(claim, ended, seen, vec![], vec![], at(1));
            let (Recorded::Yes | Recorded::LeaseLost) = recorded.await.unwrap();
        }
        if number == 1 {
            store.void_leases(at(1)).await.unwrap();
            store.sweep(at(1)).await.unwrap();
        }
    }
}

/// Planners withdraw what workers are about to take, workers record while leases run out: all
/// in each other's way, and nobody is told of it.
#[tokio::test]
async fn whoever_is_in_the_way_of_others_is_not_told() {
    let Some((server, url)) = database("whoever_is_in_the_way_of_others_is_not_told") else {
        return;
    };
    let stores = [Store::connect(&url).unwrap(), Store::connect(&url).unwrap()];
    let mut ids = Vec::new();
    for number in 0..4 {
        let name = format!("c{number}");
        let submitted = submit(&stores[0], &text(&name, &[&name], 1, 6))
            .await
            .unwrap();
        ids.push(submitted.changed[0].0);
    }
    let mut running = JoinSet::new();
    for number in 0..4 {
        running.spawn(bustle(stores[number % 2].clone(), number, ids.clone()));
    }
    tokio::time::timeout(LONG, running.join_all())
        .await
        .unwrap();
    // Whatever happened, lanes say what tasks say.
    stores[0].void_leases(at(1)).await.unwrap();
    let left = stores[0]
        .claim("last", 1000, 1000, LEASE, at(1))
        .await
        .unwrap();
    let due = server
        .psql(&url, "SELECT COUNT(*) FROM tasks WHERE state = 'waiting'")
        .unwrap();
    assert_eq!(due, "0", "{} were claimed at the end", left.len());
    let wrong = "SELECT cluster FROM lanes WHERE due IS NOT NULL OR running <>
                 (SELECT COUNT(*) FROM tasks WHERE tasks.cluster = lanes.cluster AND state = 'running')";
    assert_eq!(server.psql(&url, wrong).unwrap(), "");
    assert_eq!(stores[1].verify_audit().await.unwrap().broken, None);
}
