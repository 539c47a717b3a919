//! Logs and events: what is told, in order, for as long as it is kept.

use crate::fixture::{at, claim, cluster, plan, project, record, submit, text};
use store::{Ended, Event, Recorded, Store};
use tokio::task::JoinSet;

/// Lines of a log, numbered by what they say.
fn lines(numbers: std::ops::Range<u32>) -> Vec<(model::time::Timestamp, String)> {
    numbers
        .map(|number| (at(1), format!("line {number}")))
        .collect()
}

pub(crate) async fn a_log_goes_on_over_attempts(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let first = claim(store, at(1)).await.remove(0);
    let id = first.task.id;
    let retry = Ended::Retry {
        error: "no answer".to_owned(),
        not_before: at(2),
    };
    assert_eq!(
        store.append_log(&first, lines(0..3)).await.unwrap(),
        Recorded::Yes
    );
    assert_eq!(
        store.append_log(&first, vec![]).await.unwrap(),
        Recorded::Yes
    );
    let recorded = store.record(first, retry, vec![], vec![], lines(3..5), at(2));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    let second = claim(store, at(2)).await.remove(0);
    assert_eq!(second.task.id, id);
    assert_eq!(
        store.append_log(&second, lines(5..7)).await.unwrap(),
        Recorded::Yes
    );

    let log = store.task_log(id, 0, 100).await.unwrap();
    let told: Vec<_> = log
        .iter()
        .map(|line| (line.seq, line.attempt, line.text.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (1, 1, "line 0"),
            (2, 1, "line 1"),
            (3, 1, "line 2"),
            (4, 1, "line 3"),
            (5, 1, "line 4"),
            (6, 2, "line 5"),
            (7, 2, "line 6"),
        ]
    );
    assert_eq!(store.task_log(id, 5, 100).await.unwrap(), log[5..]);
    assert_eq!(store.task_log(id, 0, 2).await.unwrap(), log[..2]);
    assert_eq!(store.task_log(id, 7, 2).await.unwrap(), []);

    // The middle of a long one is dropped, and counted; numbers go on.
    for part in 0..4 {
        let more = lines(7 + part * 400..7 + (part + 1) * 400);
        assert_eq!(
            store.append_log(&second, more).await.unwrap(),
            Recorded::Yes
        );
    }
    let log = store.task_log(id, 199, 1000).await.unwrap();
    let of = |at: usize| (log[at].seq, log[at].text.as_str());
    assert_eq!(of(0), (200, "line 199"));
    assert_eq!(of(1), (807, "… 607 lines were dropped here …"));
    assert_eq!(of(2), (808, "line 807"));
    assert_eq!(log.last().map(|line| line.seq), Some(1607));
    assert_eq!(log.len(), 2 + 800);
}

pub(crate) async fn logs_go_before_their_tasks(store: &Store) {
    const DAY: i64 = 24 * 60 * 60;
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let mut ids = Vec::new();
    for claim in claim(store, at(1)).await {
        ids.push(claim.task.id);
        let recorded = store.record(claim, Ended::Done, vec![], vec![], lines(0..3), at(1));
        assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    }
    let swept = store.sweep(at(14 * DAY)).await.unwrap();
    assert_eq!((swept.logs, swept.tasks), (0, 0));
    assert_eq!(store.task_log(ids[0], 0, 10).await.unwrap().len(), 3);

    let swept = store.sweep(at(15 * DAY)).await.unwrap();
    assert_eq!((swept.logs, swept.tasks), (2, 0));
    assert_eq!(store.task_log(ids[0], 0, 10).await.unwrap(), []);
    assert!(store.task(&project(), ids[0]).await.unwrap().is_some());
    let swept = store.sweep(at(29 * DAY)).await.unwrap();
    assert_eq!((swept.logs, swept.tasks), (0, 0));
    let swept = store.sweep(at(31 * DAY)).await.unwrap();
    assert_eq!(swept.tasks, 2);
    assert_eq!(store.task(&project(), ids[0]).await.unwrap(), None);
}

/// A task that is swept takes the log along that it still has.
pub(crate) async fn no_log_outlives_its_task(store: &Store) {
    const DAY: i64 = 24 * 60 * 60;
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let mut claims = claim(store, at(1)).await;
    let (one, other) = (claims.remove(0), claims.remove(0));
    let id = one.task.id;
    // A clock that went wrong says that the lines are of next month.
    let late = vec![(at(30 * DAY), "late".to_owned())];
    assert_eq!(store.append_log(&one, late).await.unwrap(), Recorded::Yes);
    assert_eq!(record(store, one, Ended::Done, at(1)).await, Recorded::Yes);
    assert_eq!(
        record(store, other, Ended::Done, at(1)).await,
        Recorded::Yes
    );
    let swept = store.sweep(at(31 * DAY)).await.unwrap();
    assert_eq!((swept.tasks, swept.logs), (2, 0));
    assert_eq!(store.task_log(id, 0, 10).await.unwrap(), []);
}

/// Reads on from the last event it has, until there is one of that kind and object.
async fn follow(store: Store, until: String) -> Vec<Event> {
    let mut news = store.subscribe();
    let mut read: Vec<Event> = Vec::new();
    loop {
        let after = read.last().map_or(0, |event| event.id);
        let more = store.events(None, after, 3).await.unwrap();
        if more.is_empty() {
            // Nothing is missed: what came since the question has changed the number.
            news.changed().await.unwrap();
            continue;
        }
        read.extend(more);
        if read.last().is_some_and(|event| event.object == until) {
            return read;
        }
    }
}

pub(crate) async fn events_stay_in_order_for_whoever_follows(store: &Store) {
    let mut following = JoinSet::new();
    following.spawn(follow(store.clone(), "manifest/last".to_owned()));
    let mut writers = JoinSet::new();
    for writer in 0..6 {
        let store = store.clone();
        writers.spawn(async move {
            for number in 0..5 {
                let name = format!("w{writer}n{number}");
                let submitted = submit(&store, &text(&name, &[&name], 1, 1)).await.unwrap();
                plan(&store, submitted.changed[0].0, at(1)).await;
            }
        });
    }
    writers.join_all().await;
    submit(store, &text("last", &["last"], 1, 1)).await.unwrap();
    let read = following.join_next().await.unwrap().unwrap();
    let all = store.events(None, 0, 1000).await.unwrap();
    assert_eq!(all.len(), 30 * 4 + 2);
    assert!(all.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(read, all, "none missed, none twice");
    for writer in 0..6 {
        let own: Vec<_> = all
            .iter()
            .filter(|event| event.kind == "manifest.submitted")
            .filter(|event| event.object.starts_with(&format!("manifest/w{writer}n")))
            .collect();
        assert_eq!(own.len(), 5);
        assert!(
            own.is_sorted_by(|a, b| a.object < b.object),
            "in the order of its writes"
        );
    }
}
