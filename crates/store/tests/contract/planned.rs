//! Plans become tasks, once, if what they need is free.

use crate::fixture::{
    at, claim, cluster, edited, effect, events, name, plan, plan_and_hold, project, record, settle,
    submit, text, text_with_given, view,
};
use expect_test::expect;
use model::task::State;
use plan::{Owner, Phase, Reason, Slot};
use store::{Claim, CommitError, Ended, MachineFilter, Page, Recorded, Store, TaskFilter};

pub(crate) async fn a_plan_becomes_tasks_once(store: &Store) {
    let east = cluster(store, "east", 1).await;
    assert_eq!(store.unplanned().await.unwrap(), [east]);
    let view = view(store, east).await;
    let plan = plan::plan(&view.view(at(1)));
    store.commit(plan.clone(), at(1)).await.unwrap();
    assert!(matches!(
        store.commit(plan, at(1)).await.unwrap_err(),
        CommitError::Stale
    ));
    assert_eq!(store.unplanned().await.unwrap(), []);

    let listed = store
        .tasks(&project(), TaskFilter::default(), Page::default())
        .await
        .unwrap();
    let tasks: Vec<_> = listed
        .items
        .iter()
        .map(|row| {
            (
                row.task.action.kind().as_str(),
                row.task.machine.name.as_str(),
                row.state,
                row.attempts,
            )
        })
        .collect();
    assert_eq!(
        tasks,
        [
            ("create", "east-muscle-01", State::Waiting, 0),
            ("create", "east-brain-01", State::Waiting, 0)
        ]
    );
    let row = store
        .cluster(&project(), &name("east"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.summary.phase, row.summary.tasks),
        (Phase::Scheduled, 2)
    );
    let after = crate::fixture::view(store, east).await;
    assert_eq!((after.open.len(), after.parent), (2, 1));
    expect![[r#"
        cluster.changed cluster/east: generation 1: 2 machines, Kubernetes v1.34.1
        manifest.submitted manifest/east: ana submitted generation 1: 1 cluster changed, 0 unchanged
        plan.committed cluster/east: 2 tasks: create east-brain-01, create east-muscle-01
        cluster.phase cluster/east: scheduled: create east-brain-01 and 1 more
    "#]]
    .assert_eq(&events(store).await);
}

pub(crate) async fn a_plan_for_an_older_generation_is_stale(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let plan = plan::plan(&view(store, east).await.view(at(1)));
    submit(store, &text("east", &["east"], 1, 2)).await.unwrap();
    assert!(matches!(
        store.commit(plan, at(1)).await.unwrap_err(),
        CommitError::Stale
    ));
    assert_eq!(view(store, east).await.open, []);
}

pub(crate) async fn a_plan_that_tells_nothing_new_writes_nothing(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let (before, known) = (events(store).await, view(store, east).await);
    // The next plan tells that the tasks are under way, the one after that nothing new.
    plan(store, east, at(2)).await;
    let told = store
        .cluster(&project(), &name("east"))
        .await
        .unwrap()
        .unwrap();
    let next = plan::plan(&view(store, east).await.view(at(3)));
    assert!(view(store, east).await.is_told(&next, at(3)));
    store.commit(next, at(3)).await.unwrap();
    assert_eq!(
        store
            .cluster(&project(), &name("east"))
            .await
            .unwrap()
            .unwrap(),
        told
    );
    assert_eq!(view(store, east).await.parent, known.parent);
    assert_eq!(events(store).await, before);
}

/// Two processes plan one cluster. What one of them has seen earlier is not told after what
/// the other has seen since, or people would wait for what has happened already.
pub(crate) async fn what_was_seen_earlier_is_not_told_later(store: &Store) {
    let east = cluster(store, "east", 2).await;
    plan(store, east, at(1)).await;
    for _ in 0..2 {
        for claim in claim(store, at(1)).await {
            finish(store, claim).await;
        }
        plan(store, east, at(1)).await;
    }
    let mut joins = claim(store, at(1)).await;
    assert_eq!(joins.len(), 2);
    finish(store, joins.remove(0)).await;
    let earlier = plan::plan(&view(store, east).await.view(at(1)));
    finish(store, joins.remove(0)).await;
    let later = plan::plan(&view(store, east).await.view(at(1)));
    assert_eq!(later.summary.phase, Phase::Done);
    store.commit(later, at(2)).await.unwrap();
    let stale = store.commit(earlier, at(2)).await.unwrap_err();
    assert!(matches!(stale, CommitError::Stale), "{stale}");
    let row = store.cluster(&project(), &name("east")).await.unwrap();
    assert_eq!(row.unwrap().summary.phase, Phase::Done);
}

/// Ends an attempt as a driver for whom all goes well would.
async fn finish(store: &Store, claim: Claim) {
    let seen = effect(&claim.task, at(1));
    let recorded = store.record(claim, Ended::Done, seen, vec![], vec![], at(1));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
}

pub(crate) async fn a_task_that_a_worker_took_cannot_be_withdrawn(store: &Store) {
    let east = cluster(store, "east", 2).await;
    plan(store, east, at(1)).await;
    store
        .delete_manifest(&project(), &name("east"), "ana", at(2))
        .await
        .unwrap();
    let overtaken = plan::plan(&view(store, east).await.view(at(2)));
    assert!(!overtaken.withdraw.is_empty());
    let claims = store
        .claim("w", 1, 1, crate::fixture::LEASE, at(2))
        .await
        .unwrap();
    assert_eq!(claims.len(), 1);
    assert!(matches!(
        store.commit(overtaken, at(2)).await.unwrap_err(),
        CommitError::Stale
    ));

    plan(store, east, at(3)).await;
    let withdrawn = TaskFilter {
        state: Some(State::Withdrawn),
        ..TaskFilter::default()
    };
    let withdrawn = store
        .tasks(&project(), withdrawn, Page::default())
        .await
        .unwrap()
        .items;
    assert!(withdrawn.iter().all(|row| row.task.id != claims[0].task.id));
    assert_eq!(withdrawn.len(), 2);
}

pub(crate) async fn the_ledger_has_one_row_per_cluster(store: &Store) {
    let east = cluster(store, "east", 6).await;
    settle(store, east, at(1)).await;
    submit(store, &text("east", &["east"], 1, 5)).await.unwrap();
    let known = view(store, east).await;
    let mut drain = plan::plan(&known.view(at(2)));
    let drained = drain.disturbs[0].clone();
    assert_eq!(drained.name, name("east-muscle-06"));

    // A plan that would draw a second row is refused with the one that is out of service.
    let other = &known.desired.machines[1];
    drain
        .disturbs
        .push(Slot::of(other, &known.desired.disruption));
    let refused = store.commit(drain.clone(), at(2)).await.unwrap_err();
    let CommitError::Refused { machine, reason } = refused else {
        panic!("{refused}")
    };
    assert_eq!(machine, other.id);
    assert_eq!(
        reason,
        Reason::Budget {
            scope: plan::Scope::Cluster,
            by: drained.name.to_string(),
            unavailable: 1,
            budget: 1
        }
    );
    assert_eq!(
        view(store, east).await.ledger,
        [],
        "nothing of a refused plan stays"
    );

    drain.hold_back(machine, &reason);
    store.commit(drain, at(2)).await.unwrap();
    assert_eq!(view(store, east).await.ledger, [drained]);
    settle(store, east, at(3)).await;
    assert_eq!(
        view(store, east).await.ledger,
        [],
        "given back once the machine is gone"
    );
}

pub(crate) async fn who_serves_stays_while_others_keep_the_address_of_the_next_one(store: &Store) {
    let given = |name: &str| text_with_given(name, name, "{endpoint: 203.0.113.5}");
    let east = submit(store, &given("east")).await.unwrap().changed[0].0;
    settle(store, east, at(1)).await;
    let west = cluster(store, "west", 1).await;
    settle(store, west, at(2)).await;
    // Given workers in place of made ones.
    let next = edited(&given("west"), &[("10.8.0.0/24", "10.0.0.0/16")]);
    submit(store, &next).await.unwrap();
    // Who was told so once knows it the next time.
    for now in [at(3), at(4)] {
        let held = plan_and_hold(store, west, now).await;
        let held: Vec<_> = held.iter().map(ToString::to_string).collect();
        assert_eq!(
            held,
            [
                "drain west-muscle-01: additions come first: 1 not ready yet (west-attic-01)",
                "prepare west-attic-01: address 203.0.113.5 is held by east-attic-01 of cluster east in project default"
            ]
        );
        assert_eq!(claim(store, now).await.len(), 0);
    }
}

pub(crate) async fn an_address_belongs_to_one_cluster(store: &Store) {
    let both = "{endpoint: 203.0.113.5}, {endpoint: 203.0.113.6}";
    let east = submit(store, &text_with_given("east", "east", both))
        .await
        .unwrap()
        .changed[0]
        .0;
    settle(store, east, at(1)).await;
    let west = text_with_given("west", "west", "{endpoint: 203.0.113.5}");
    let west = submit(store, &west).await.unwrap().changed[0].0;
    let mut wanted = plan::plan(&view(store, west).await.view(at(2)));
    let refused = store.commit(wanted.clone(), at(2)).await.unwrap_err();
    let CommitError::Refused { machine, reason } = refused else {
        panic!("{refused}")
    };
    assert_eq!(
        reason.to_string(),
        "address 203.0.113.5 is held by east-attic-01 of cluster east in project default"
    );
    assert_eq!(reason.owner(), Owner::Person, "who has it keeps it");
    wanted.hold_back(machine, &reason);
    store.commit(wanted, at(2)).await.unwrap();

    // The other gives it back: first it is no longer wanted, then it is seen to be gone.
    let less = text_with_given("east", "east", "{endpoint: 203.0.113.6}");
    submit(store, &less).await.unwrap();
    let too_early = plan::plan(&view(store, west).await.view(at(3)));
    let refused = store.commit(too_early, at(3)).await.unwrap_err();
    let CommitError::Refused { reason, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(reason.owner(), Owner::Slipway, "who has it goes");
    assert_eq!(store.unplanned().await.unwrap(), [east]);
    settle(store, east, at(4)).await;
    assert_eq!(
        store.unplanned().await.unwrap(),
        [west],
        "whoever waits for it is planned at once"
    );
    assert!(events(store).await.contains(
        "claim.freed cluster/west: address/203.0.113.5, which it waits for, was given back\n"
    ));
    settle(store, west, at(5)).await;
    let row = store
        .cluster(&project(), &name("west"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.summary.phase, Phase::Done);
}

pub(crate) async fn a_machine_has_one_open_task(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let mut twice = plan::plan(&view(store, east).await.view(at(1)));
    let mut again = twice.tasks[0].clone();
    again.id = model::id::TaskId::derive(model::id::Origin {
        parent: "another",
        name: "task",
        ordinal: 0,
        incarnation: 0,
    });
    twice.tasks.push(again);
    assert_eq!(
        store.commit(twice, at(1)).await.unwrap_err().to_string(),
        "could not begin a second task on a machine that has an open one"
    );
    assert_eq!(
        view(store, east).await.open,
        [],
        "nothing of a refused plan stays"
    );
    plan(store, east, at(2)).await;
    assert_eq!(view(store, east).await.open.len(), 2);
}

pub(crate) async fn a_cluster_that_is_gone_is_forgotten(store: &Store) {
    let given = text_with_given("east", "east", "{endpoint: 203.0.113.5}");
    let east = submit(store, &given).await.unwrap().changed[0].0;
    settle(store, east, at(1)).await;
    let late = view(store, east).await;
    store
        .delete_manifest(&project(), &name("east"), "ana", at(2))
        .await
        .unwrap();
    settle(store, east, at(3)).await;

    assert_eq!(store.cluster_view(east).await.unwrap(), None);
    let machines = store
        .machines(&project(), MachineFilter::default(), Page::default())
        .await
        .unwrap();
    assert_eq!(machines.items, []);
    assert!(matches!(
        store
            .commit(plan::plan(&late.view(at(4))), at(4))
            .await
            .unwrap_err(),
        CommitError::Stale
    ));
    assert!(
        !store.observe(east, Vec::new(), at(4)).await.unwrap(),
        "nobody looks at it any more"
    );
    // Its history stays.
    let row = |row: Option<store::ClusterRow>| row.map(|row| (row.id, row.summary.phase));
    assert_eq!(
        row(store.cluster(&project(), &name("east")).await.unwrap()),
        None
    );
    assert_eq!(
        row(store.cluster_ever(&project(), &name("east")).await.unwrap()),
        Some((east, Phase::Gone))
    );
    assert!(
        store
            .desired_at(east, crate::fixture::generation(1))
            .await
            .unwrap()
            .is_some()
    );
    // Its address is free.
    let west = submit(
        store,
        &text_with_given("west", "west", "{endpoint: 203.0.113.5}"),
    )
    .await
    .unwrap();
    plan(store, west.changed[0].0, at(5)).await;
    let claims = claim(store, at(5)).await;
    assert_eq!(claims.len(), 2);
    for claim in claims {
        assert_eq!(
            record(store, claim, Ended::Yield, at(5)).await,
            store::Recorded::Yes
        );
    }
}
