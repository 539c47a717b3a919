//! What was seen, what changed, and for how long it is kept.

use crate::fixture::{
    absent, at, claim, cluster, events, name, plan, plan_and_hold, project, record, running,
    settle, submit, text, view,
};
use model::id::{JourneyId, Origin};
use model::observed::{Fact, MachineFact, NodeFact, Observation, Source};
use model::task::State;
use model::time::Timestamp;
use plan::{Phase, Reason};
use store::{Change, Ended, MachineFilter, Page, Recorded, Store, TaskFilter};

pub(crate) async fn what_is_seen_late_changes_nothing(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let machine = view(store, east).await.desired.machines[0].clone();
    let seen = |fact: Fact, when: Timestamp| {
        vec![Observation {
            cluster: east,
            fact,
            at: when,
        }]
    };
    assert!(
        store
            .observe(east, seen(running(&machine), at(20)), at(21))
            .await
            .unwrap()
    );
    assert!(
        !store
            .observe(east, seen(absent(&machine), at(10)), at(22))
            .await
            .unwrap()
    );
    let known = view(store, east).await.observed.machines[&machine.id]
        .machine
        .clone()
        .unwrap();
    assert!(matches!(known, (MachineFact::Running { .. }, when) if when == at(20)));
    assert!(
        store
            .observe(east, seen(absent(&machine), at(30)), at(31))
            .await
            .unwrap()
    );
}

pub(crate) async fn the_same_fact_again_is_no_change(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let machine = view(store, east).await.desired.machines[0].clone();
    let seen = |when| {
        vec![Observation {
            cluster: east,
            fact: running(&machine),
            at: when,
        }]
    };
    assert!(store.observe(east, seen(at(1)), at(2)).await.unwrap());
    let before = events(store).await;
    assert!(!store.observe(east, seen(at(3)), at(4)).await.unwrap());
    assert!(!store.observe(east, Vec::new(), at(5)).await.unwrap());
    assert_eq!(events(store).await, before);
    let known = view(store, east).await.observed.machines[&machine.id]
        .machine
        .clone()
        .unwrap();
    assert_eq!(known.1, at(3), "it was seen again");
    assert_eq!(
        store.live_clusters().await.unwrap()[0].probed_at,
        Some(at(5))
    );
}

pub(crate) async fn since_when_a_machine_does_not_serve_is_told_by_its_node_where_it_is_one(
    store: &Store,
) {
    let east = cluster(store, "east", 1).await;
    let machine = view(store, east).await.desired.machines[0].id;
    let see = async |fact: Fact, when: Timestamp| {
        let seen = vec![Observation {
            cluster: east,
            fact,
            at: when,
        }];
        store.observe(east, seen, when).await.unwrap();
        view(store, east).await.observed.sick.get(&machine).copied()
    };
    let silent = || {
        let fact = MachineFact::Unreachable {
            reference: "vm".to_owned(),
            because: None,
        };
        Fact::Machine(machine, fact)
    };
    let node = |ready| {
        let fact = NodeFact::Joined {
            ready,
            cordoned: false,
            version: "v1.34.0".parse().unwrap(),
            care: None,
            asks: false,
            gated: false,
        };
        Fact::Node(machine, fact)
    };
    assert_eq!(see(silent(), at(1)).await, Some(at(1)));
    assert_eq!(see(silent(), at(5)).await, Some(at(1)), "all the while");
    assert_eq!(see(node(true), at(6)).await, None, "it serves");
    assert_eq!(see(node(false), at(90)).await, Some(at(90)));
    assert_eq!(see(node(false), at(95)).await, Some(at(90)));
    assert_eq!(see(node(true), at(96)).await, None);
}

pub(crate) async fn a_machine_is_shown_as_it_was_last_seen(store: &Store) {
    let east = cluster(store, "east", 3).await;
    settle(store, east, at(1)).await;
    let brain = store
        .machines_named(&project(), &name("east-brain-01"))
        .await
        .unwrap()
        .remove(0);
    assert!(
        matches!(brain.seen.machine, Some((MachineFact::Running { .. }, when)) if when == at(1))
    );
    assert!(brain.seen.node.is_some() && !brain.leaving);
    assert_eq!(brain.cluster, name("east"));

    submit(store, &text("east", &["east"], 1, 2)).await.unwrap();
    let names = async || {
        let listed = store
            .machines(&project(), MachineFilter::default(), Page::default())
            .await
            .unwrap();
        let shown = listed
            .items
            .iter()
            .map(|row| format!("{}{}", row.machine.name, if row.leaving { "-" } else { "" }));
        shown.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        names().await,
        "east-brain-01 east-muscle-01 east-muscle-02 east-muscle-03-"
    );
    settle(store, east, at(2)).await;
    assert_eq!(
        names().await,
        "east-brain-01 east-muscle-01 east-muscle-02",
        "what is gone is not shown"
    );
    assert_eq!(
        store
            .machines_named(&project(), &name("east-muscle-03"))
            .await
            .unwrap(),
        []
    );
}

pub(crate) async fn what_changed_about_a_machine_is_kept_newest_first(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let machines = view(store, east).await.desired.machines;
    for (fact, when) in [
        (running(&machines[0]), 1),
        (running(&machines[1]), 2),
        (running(&machines[0]), 3),
        (absent(&machines[0]), 4),
    ] {
        let seen = Observation {
            cluster: east,
            fact,
            at: at(when),
        };
        store.observe(east, vec![seen], at(when)).await.unwrap();
    }
    let mut page = Page {
        limit: 1,
        after: None,
    };
    let mut found = Vec::new();
    loop {
        let listed = store
            .machine_changes(machines[0].id, page.clone())
            .await
            .unwrap();
        found.extend(listed.items);
        page.after = listed.next;
        if page.after.is_none() {
            break;
        }
    }
    let change = |when, fact| Change {
        at: at(when),
        source: Source::Provider,
        fact,
    };
    assert_eq!(
        found,
        [
            change(4, absent(&machines[0])),
            change(1, running(&machines[0]))
        ]
    );
}

pub(crate) async fn what_is_past_its_time_is_swept(store: &Store) {
    const DAY: i64 = 24 * 60 * 60;
    let east = cluster(store, "east", 1).await;
    settle(store, east, at(0)).await;
    submit(store, &text("east", &["east"], 1, 2)).await.unwrap();
    plan(store, east, at(0)).await;
    let journey = JourneyId::derive(Origin {
        parent: "a",
        name: "b",
        ordinal: 0,
        incarnation: 0,
    });
    store
        .save_journey(journey, &project(), "a journey".to_owned(), at(0))
        .await
        .unwrap();

    let swept = store.sweep(at(DAY)).await.unwrap();
    assert_eq!(
        (swept.events, swept.changes, swept.tasks, swept.journeys),
        (0, 0, 0, 0)
    );
    let swept = store.sweep(at(DAY + 1)).await.unwrap();
    assert_eq!((swept.journeys, swept.keys), (1, 0));
    assert_eq!(store.journey(&project(), journey).await.unwrap(), None);
    let swept = store.sweep(at(8 * DAY)).await.unwrap();
    assert!(swept.events > 0 && swept.changes > 0 && swept.tasks == 0 && !swept.more);
    assert_eq!(events(store).await, "");
    let swept = store.sweep(at(31 * DAY)).await.unwrap();
    assert_eq!(swept.tasks, 4, "created twice, started, joined");
    let left = store
        .tasks(&project(), TaskFilter::default(), Page::default())
        .await
        .unwrap()
        .items;
    assert!(
        left.len() == 1 && left[0].state == State::Waiting,
        "what is not done stays"
    );
    let known = view(store, east).await.observed;
    assert_eq!(known.machines.len(), 2, "what was last seen stays");
    // Ids go on where they were: whoever resumes after an old one misses nothing.
    store
        .delete_manifest(&project(), &name("east"), "ana", at(31 * DAY))
        .await
        .unwrap();
    assert!(store.events(None, 0, 10).await.unwrap()[0].id > 10);
}

pub(crate) async fn counts_tell_how_much_there_is(store: &Store) {
    let east = cluster(store, "east", 2).await;
    cluster(store, "west", 1).await;
    plan(store, east, at(1)).await;
    let counts = store.counts().await.unwrap();
    assert_eq!(counts.machines, 5);
    assert_eq!(
        counts.clusters,
        [(Phase::Pending, 1), (Phase::Scheduled, 1)].into()
    );
    assert_eq!(counts.tasks, [(State::Waiting, 3)].into());
}

pub(crate) async fn a_node_that_outlives_its_machine_is_known_and_not_ready(store: &Store) {
    let east = cluster(store, "east", 1).await;
    settle(store, east, at(0)).await;
    let machine = view(store, east).await.desired.machines[0].clone();
    let seen = |fact: Fact, when: Timestamp| {
        vec![Observation {
            cluster: east,
            fact,
            at: when,
        }]
    };
    for (fact, when) in [(absent(&machine), at(10)), (running(&machine), at(20))] {
        let seen = seen(fact, when);
        assert!(store.observe(east, seen, when).await.unwrap());
    }
    let known = view(store, east).await;
    let seen = &known.observed.machines[&machine.id];
    assert!(
        matches!(seen.node, Some((NodeFact::Joined { ready: false, .. }, _))),
        "{seen:?}"
    );
    let told = plan::plan(&known.view(at(21))).summary;
    assert_eq!((told.phase == Phase::Done, told.control), (false, (0, 1)));
}

pub(crate) async fn what_ends_well_and_changes_nothing_is_told_to_the_planner(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let step = async |now| {
        let held = plan_and_hold(store, east, now).await;
        for claim in claim(store, now).await {
            let recorded = record(store, claim, Ended::Done, now).await;
            assert_eq!(recorded, Recorded::Yes);
        }
        held
    };
    for second in 1..=5 {
        assert_eq!(step(at(second)).await, []);
    }
    let held = step(at(6)).await;
    assert!(
        matches!(held[0].reason, Reason::Vain { times: 5, .. }),
        "{held:?}"
    );
    // Something is seen to have changed.
    let machine = view(store, east).await.desired.machines[0].clone();
    let seen = vec![Observation {
        cluster: east,
        fact: absent(&machine),
        at: at(7),
    }];
    assert!(store.observe(east, seen, at(7)).await.unwrap());
    assert_eq!(step(at(8)).await, []);
}
