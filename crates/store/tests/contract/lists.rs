//! Lists in pages, and events in order.

use crate::fixture::{at, cluster, name, plan, project, submit, text};
use model::id::{JourneyId, Origin};
use model::name::Name;
use model::task::State;
use plan::Phase;
use std::collections::BTreeSet;
use store::{ClusterFilter, MachineFilter, Page, Store, TaskFilter};

/// Reads all pages of a list, with `between` done after each.
macro_rules! walk {
    ($list:expr, $between:expr) => {{
        let mut seen = Vec::new();
        let mut page = Page {
            limit: 3,
            after: None,
        };
        loop {
            let listed = $list(page.clone()).await.unwrap();
            assert!(listed.items.len() <= 3);
            seen.extend(listed.items);
            $between.await;
            match listed.next {
                None => break seen,
                after => page.after = after,
            }
        }
    }};
}

fn all_once<T: Ord + Clone + std::fmt::Debug>(before: &[T], seen: &[T]) {
    let visited: BTreeSet<_> = seen.iter().cloned().collect();
    assert_eq!(visited.len(), seen.len(), "a row was visited twice");
    for row in before {
        assert!(visited.contains(row), "{row:?} was not visited");
    }
}

pub(crate) async fn pages_visit_each_row_once_while_others_come(store: &Store) {
    let letters = ["b", "d", "f", "h", "j", "l", "n", "p"];
    for letter in letters {
        let cluster = cluster(store, letter, 1).await;
        plan(store, cluster, at(1)).await;
    }
    let mut fresh = [
        "a", "c", "e", "g", "i", "k", "m", "o", "q", "s", "t", "u", "v", "w", "x", "y", "z",
    ]
    .into_iter();
    let mut another = async || {
        if let Some(letter) = fresh.next() {
            let cluster = cluster(store, letter, 1).await;
            plan(store, cluster, at(2)).await;
        }
    };
    let names = letters.map(name);
    let project = &project();
    let list = |page| store.clusters(project, ClusterFilter::default(), page);
    let seen: Vec<Name> = walk!(list, another())
        .into_iter()
        .map(|row| row.name)
        .collect();
    all_once(&names, &seen);
    assert!(seen.is_sorted());
    let list = |page| store.manifests(project, page);
    let seen: Vec<Name> = walk!(list, another())
        .into_iter()
        .map(|row| row.name)
        .collect();
    all_once(&names, &seen);
    let list = |page| store.machines(project, MachineFilter::default(), page);
    let seen: Vec<_> = walk!(list, another())
        .into_iter()
        .map(|row| row.machine.name.to_string())
        .collect();
    let machines: Vec<_> = letters
        .iter()
        .flat_map(|l| [format!("{l}-brain-01"), format!("{l}-muscle-01")])
        .collect();
    all_once(&machines, &seen);
    let list = |page| store.tasks(project, TaskFilter::default(), page);
    let seen: Vec<_> = walk!(list, another())
        .into_iter()
        .map(|row| row.task.machine.name.to_string())
        .collect();
    all_once(&machines, &seen);
}

pub(crate) async fn lists_filter(store: &Store) {
    submit(store, &text("shop", &["east", "west"], 1, 1))
        .await
        .unwrap();
    let north = cluster(store, "north", 1).await;
    plan(store, north, at(1)).await;
    let clusters = async |manifest: Option<&str>, phase: Option<Phase>| {
        let filter = ClusterFilter {
            manifest: manifest.map(name),
            phase,
        };
        let listed = store
            .clusters(&project(), filter, Page::default())
            .await
            .unwrap();
        listed
            .items
            .iter()
            .map(|row| row.name.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(clusters(None, None).await, "east north west");
    assert_eq!(clusters(Some("shop"), None).await, "east west");
    assert_eq!(clusters(None, Some(Phase::Scheduled)).await, "north");
    assert_eq!(clusters(Some("shop"), Some(Phase::Scheduled)).await, "");
    let elsewhere = store
        .clusters(
            &name("elsewhere"),
            ClusterFilter::default(),
            Page::default(),
        )
        .await
        .unwrap();
    assert_eq!(elsewhere.items, []);

    let filter = MachineFilter {
        cluster: Some(name("west")),
    };
    assert_eq!(
        store
            .machines(&project(), filter, Page::default())
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    let tasks = async |cluster: Option<&str>, state: Option<State>| {
        let filter = TaskFilter {
            cluster: cluster.map(name),
            state,
        };
        store
            .tasks(&project(), filter, Page::default())
            .await
            .unwrap()
            .items
            .len()
    };
    assert_eq!(tasks(Some("north"), Some(State::Waiting)).await, 2);
    assert_eq!(tasks(Some("north"), Some(State::Done)).await, 0);
    assert_eq!(tasks(Some("west"), None).await, 0);
    assert_eq!(tasks(None, Some(State::Waiting)).await, 2);
}

pub(crate) async fn a_cursor_from_elsewhere_is_refused(store: &Store) {
    for after in [
        "",
        "nonsense",
        "clusters.a",
        "clusters.a.b",
        "tasks.1",
        "clusters.☃.1.2",
    ] {
        let page = Page {
            limit: 10,
            after: Some(after.to_owned()),
        };
        let refused = store
            .clusters(&project(), ClusterFilter::default(), page)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), "STORE-008");
    }
    let page = Page {
        limit: 10,
        after: Some("tasks.x".to_owned()),
    };
    assert_eq!(
        store
            .tasks(&project(), TaskFilter::default(), page)
            .await
            .unwrap_err()
            .code(),
        "STORE-008"
    );
}

pub(crate) async fn events_resume_after_an_id(store: &Store) {
    for letter in ["a", "b", "c"] {
        cluster(store, letter, 1).await;
    }
    let all = store.events(None, 0, 100).await.unwrap();
    assert_eq!(all.len(), 6);
    let first = store.events(None, 0, 2).await.unwrap();
    let rest = store
        .events(Some(&project()), first[1].id, 100)
        .await
        .unwrap();
    let resumed: Vec<_> = first.into_iter().chain(rest).collect();
    assert_eq!(resumed, all);
    assert!(all.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(
        store
            .events(Some(&name("elsewhere")), 0, 100)
            .await
            .unwrap(),
        []
    );
}

pub(crate) async fn subscribers_hear_of_the_newest_event(store: &Store) {
    let mut news = store.subscribe();
    assert_eq!(*news.borrow_and_update(), 0);
    let east = cluster(store, "east", 1).await;
    news.changed().await.unwrap();
    assert_eq!(*news.borrow_and_update(), 2);
    // What was refused, and what wrote nothing, is no news.
    submit(store, &text("other", &["east"], 1, 1))
        .await
        .unwrap_err();
    submit(store, &text("east", &["east"], 1, 1)).await.unwrap();
    assert!(!news.has_changed().unwrap());
    plan(store, east, at(1)).await;
    news.changed().await.unwrap();
    let newest = store.events(None, 0, 100).await.unwrap().pop().unwrap().id;
    assert_eq!(*news.borrow_and_update(), newest);
    assert_eq!(*store.subscribe().borrow(), newest);
}

pub(crate) async fn journeys_are_kept(store: &Store) {
    let id = JourneyId::derive(Origin {
        parent: "a",
        name: "b",
        ordinal: 0,
        incarnation: 0,
    });
    assert_eq!(store.journey(&project(), id).await.unwrap(), None);
    store
        .save_journey(id, &project(), "first".to_owned(), at(1))
        .await
        .unwrap();
    store
        .save_journey(id, &project(), "second".to_owned(), at(2))
        .await
        .unwrap();
    assert_eq!(
        store.journey(&project(), id).await.unwrap().as_deref(),
        Some("second")
    );
    assert_eq!(store.journey(&name("elsewhere"), id).await.unwrap(), None);
}
