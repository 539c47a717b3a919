//! Wishes: stored, and in the desired state where they shape it.

use crate::fixture::{
    at, claim, cluster, edited, machines, name, plan, project, record, settle, submit, text,
    text_with_given, view,
};
use model::id::{ClusterId, MachineId, Origin, TaskId};
use model::intent::{Intent, Wish};
use model::snapshot::SnapshotId;
use model::task::State;
use model::time::Timestamp;
use store::{Claim, CommitError, Draft, Ended, Page, Recorded, Store, WishError, Withdrawal};

fn draft(wish: Wish, expires_at: Option<Timestamp>) -> Draft {
    Draft {
        project: project(),
        cluster: name("east"),
        wish,
        author: "ana".into(),
        reason: "because".to_owned(),
        expires_at,
    }
}

/// The size is read from the manifest whatever the caller says it was.
fn scale(count: u32) -> Wish {
    Wish::Scale {
        pool: name("muscle"),
        count,
        was: 0,
    }
}

async fn wish(store: &Store, wish: Wish, now: Timestamp) -> Result<Intent, WishError> {
    store.wish(draft(wish, None), now).await
}

async fn open(store: &Store) -> Vec<Wish> {
    let listed = store.intents(&project(), Page::default()).await.unwrap();
    listed.items.into_iter().map(|intent| intent.wish).collect()
}

async fn size(store: &Store, cluster: ClusterId) -> (usize, usize) {
    let desired = view(store, cluster).await.desired;
    (desired.machines.len(), desired.leaving.len())
}

pub(crate) async fn a_wish_for_another_size_changes_the_cluster(store: &Store) {
    let east = cluster(store, "east", 2).await;
    let intent = wish(store, scale(4), at(1)).await.unwrap();
    assert_eq!(
        intent.wish,
        Wish::Scale {
            pool: name("muscle"),
            count: 4,
            was: 2
        }
    );
    let desired = view(store, east).await.desired;
    assert_eq!(desired.generation.0, 2);
    assert_eq!(
        machines(&desired),
        "east-brain-01 east-muscle-01 east-muscle-02 east-muscle-03 east-muscle-04"
    );
    let again = wish(store, scale(4), at(2)).await.unwrap();
    assert_eq!(again.id, intent.id, "the same wish is one wish");
    // The manifest applied again keeps the wish, for it still declares the same.
    submit(store, &text("east", &["east"], 1, 2)).await.unwrap();
    assert_eq!(size(store, east).await, (5, 0));
}

pub(crate) async fn a_newer_size_replaces_the_older_wish(store: &Store) {
    let east = cluster(store, "east", 2).await;
    wish(store, scale(4), at(1)).await.unwrap();
    wish(store, scale(3), at(2)).await.unwrap();
    assert_eq!(
        open(store).await,
        [Wish::Scale {
            pool: name("muscle"),
            count: 3,
            was: 2
        }]
    );
    assert_eq!(size(store, east).await, (4, 1));
}

pub(crate) async fn a_wish_withdrawn_or_expired_takes_its_size_along(store: &Store) {
    let east = cluster(store, "east", 2).await;
    let intent = wish(store, scale(3), at(1)).await.unwrap();
    assert!(
        store
            .withdraw_intent(&project(), intent.id, "ana", at(2))
            .await
            .unwrap()
    );
    assert!(
        !store
            .withdraw_intent(&project(), intent.id, "ana", at(2))
            .await
            .unwrap()
    );
    assert_eq!(size(store, east).await, (3, 1));

    store
        .wish(draft(scale(3), Some(at(10))), at(3))
        .await
        .unwrap();
    assert_eq!(store.expire(at(9)).await.unwrap(), []);
    assert_eq!(store.expire(at(10)).await.unwrap(), [east]);
    assert_eq!(size(store, east).await, (3, 2));
    assert_eq!(open(store).await, []);
}

pub(crate) async fn a_wish_that_made_much_goes_with_consent_or_at_its_end(store: &Store) {
    let east = cluster(store, "east", 2).await;
    let intent = wish(store, scale(9), at(1)).await.unwrap();
    settle(store, east, at(2)).await;
    let refused = store
        .withdraw_intent(&project(), intent.id, "ana", at(3))
        .await
        .unwrap_err();
    let WishError::Blast { ref hint, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(
        format!("{refused}\n{hint}"),
        "7 of the 10 machines of cluster east would be removed at once\n\
         if this is what you want, withdraw it with `allowBlast=70`"
    );
    assert_eq!(
        open(store).await,
        [intent.wish],
        "a refusal changes nothing"
    );
    let consented = Withdrawal {
        intent: intent.id,
        allow: Some(70).into(),
    };
    store
        .withdraw_intent(&project(), consented, "ana", at(3))
        .await
        .unwrap();
    assert_eq!(size(store, east).await, (3, 7));

    // An end that was named in the wish is agreed to by it.
    settle(store, east, at(4)).await;
    store
        .wish(draft(scale(9), Some(at(30))), at(20))
        .await
        .unwrap();
    settle(store, east, at(21)).await;
    assert_eq!(store.expire(at(30)).await.unwrap(), [east]);
    assert_eq!(size(store, east).await, (3, 7));
    let last = store.events(None, 0, 1000).await.unwrap().pop().unwrap();
    assert_eq!(last.message, "expired: scale pool muscle from 2 to 9");
}

/// Cancels a task that a worker is at.
async fn cancelled(store: &Store) -> (ClusterId, Claim) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let claim = claim(store, at(1)).await.remove(0);
    let cancel = Wish::Cancel {
        task: claim.task.id,
        machine: claim.task.machine.id,
        kind: claim.task.action.kind(),
    };
    wish(store, cancel, at(1)).await.unwrap();
    (east, claim)
}

pub(crate) async fn a_cancelled_task_that_is_done_ends_the_wish(store: &Store) {
    let (_, claim) = cancelled(store).await;
    assert_eq!(
        record(store, claim, Ended::Done, at(2)).await,
        Recorded::Yes
    );
    assert_eq!(open(store).await, []);
}

pub(crate) async fn a_cancelled_task_that_is_withdrawn_stays_cancelled(store: &Store) {
    let (east, claim) = cancelled(store).await;
    let task = claim.task.id;
    let ended = Ended::Retry {
        error: "no answer".to_owned(),
        not_before: at(2),
    };
    assert_eq!(record(store, claim, ended, at(2)).await, Recorded::Yes);
    for _ in 0..2 {
        plan(store, east, at(3)).await;
        let row = store.task(&project(), task).await.unwrap().unwrap();
        assert_eq!(row.state, State::Withdrawn);
        assert_eq!(open(store).await.len(), 1);
        assert_eq!(
            view(store, east).await.open.len(),
            1,
            "no other in its place"
        );
    }
}

pub(crate) async fn another_declared_size_ends_the_wish(store: &Store) {
    let east = cluster(store, "east", 2).await;
    wish(store, scale(4), at(1)).await.unwrap();
    submit(store, &text("east", &["east"], 1, 3)).await.unwrap();
    assert_eq!(size(store, east).await, (4, 1));
    assert_eq!(open(store).await, []);
}

pub(crate) async fn a_wish_that_makes_no_sense_is_refused(store: &Store) {
    let origin = Origin {
        parent: "x",
        name: "y",
        ordinal: 0,
        incarnation: 0,
    };
    assert_eq!(
        wish(store, Wish::Pause, at(1))
            .await
            .unwrap_err()
            .to_string(),
        "there is no cluster east"
    );
    let given = text_with_given("east", "east", "{endpoint: 203.0.113.5}");
    let east = submit(store, &given).await.unwrap().changed[0].0;
    let attic = view(store, east).await.desired.machines[1].id;
    let (machine, task) = (MachineId::derive(origin), TaskId::derive(origin));
    let pool = |pool: &str, count: u32| Wish::Scale {
        pool: name(pool),
        count,
        was: 0,
    };
    for (wished, why) in [
        (pool("cellar", 1), "there is no pool cellar".to_owned()),
        (
            pool("attic", 2),
            "pool attic has given machines; add or remove them in the manifest".to_owned(),
        ),
        (
            pool("brain", 0),
            "found 0 machines, allowed: 1 to 5000".to_owned(),
        ),
        (
            pool("brain", u32::MAX),
            "found 4294967295 machines, allowed: 1 to 5000".to_owned(),
        ),
        (
            pool("brain", 2),
            "found 2 control machines, allowed: 1, 3, 5 or 7".to_owned(),
        ),
        (
            Wish::Replace { machine },
            format!("there is no machine {machine}"),
        ),
        (
            Wish::Replace { machine: attic },
            "machine east-attic-01 was given and cannot be made again".to_owned(),
        ),
        (Wish::Retry { task }, format!("there is no task {task}")),
    ] {
        assert_eq!(
            wish(store, wished, at(1)).await.unwrap_err().to_string(),
            why
        );
    }
    assert_eq!(view(store, east).await.desired.generation.0, 1);
    assert_eq!(open(store).await, []);
}

pub(crate) async fn a_wish_for_more_than_a_cloud_has_addresses_for_is_refused(store: &Store) {
    let cloud = edited(
        &text("east", &["east"], 1, 2),
        &[
            (
                "providerType: simulated",
                "providerType: hetzner, secretRef: {name: account}",
            ),
            ("10.0.0.0/16", "10.8.0.0/16, cni: cilium"),
        ],
    );
    let east = submit(store, &cloud).await.unwrap().changed[0].0;
    let refused = wish(store, scale(251), at(1)).await.unwrap_err();
    assert_eq!(refused.to_string(), "found 251 machines, allowed: 1 to 250");
    wish(store, scale(250), at(2)).await.unwrap();
    assert_eq!(size(store, east).await, (251, 0));
}

pub(crate) async fn a_wish_may_not_remove_too_much(store: &Store) {
    let east = cluster(store, "east", 9).await;
    settle(store, east, at(0)).await;
    let refused = wish(store, scale(2), at(1)).await.unwrap_err();
    assert!(
        matches!(
            refused,
            WishError::Blast {
                percent_needed: 70,
                ..
            }
        ),
        "{refused}"
    );
    wish(store, scale(7), at(1)).await.unwrap();
    assert_eq!(size(store, east).await, (8, 2));
}

pub(crate) async fn a_machine_is_replaced_by_a_new_one(store: &Store) {
    let east = cluster(store, "east", 2).await;
    settle(store, east, at(1)).await;
    let old = store
        .machines_named(&project(), &name("east-muscle-01"))
        .await
        .unwrap()
        .remove(0)
        .machine;
    wish(store, Wish::Replace { machine: old.id }, at(2))
        .await
        .unwrap();
    assert_eq!(
        machines(&view(store, east).await.desired),
        "east-brain-01 east-muscle-02 east-muscle-03 (east-muscle-01)"
    );
    assert_eq!(open(store).await.len(), 1);
    settle(store, east, at(3)).await;
    assert_eq!(
        open(store).await,
        [],
        "fulfilled when the old machine is gone"
    );
    let again = wish(store, Wish::Replace { machine: old.id }, at(4))
        .await
        .unwrap_err();
    assert_eq!(
        again.to_string(),
        "machine east-muscle-01 is on its way out already"
    );
}

pub(crate) async fn a_snapshot_is_taken_when_wished_and_put_back_when_it_is_kept(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let early = wish(store, Wish::Snapshot, at(1)).await.unwrap_err();
    assert_eq!(
        early.to_string(),
        "cluster east has no control plane yet",
        "nothing could be saved"
    );
    settle(store, east, at(2)).await;
    let first = wish(store, Wish::Snapshot, at(3)).await.unwrap();
    let again = wish(store, Wish::Snapshot, at(3)).await.unwrap();
    assert_eq!(again.id, first.id, "the same wish is one wish");
    settle(store, east, at(4)).await;
    assert_eq!(open(store).await, [], "fulfilled when it is kept");
    let (known, _) = view(store, east).await.observed.snapshots.unwrap();
    let snapshot = known.kept[0].id.clone();
    let unknown = SnapshotId::of(at(9), "ffffffff").unwrap();
    let refused = wish(store, Wish::Restore { snapshot: unknown }, at(5)).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "there is no snapshot 20010909T014649Z-ffffffff"
    );
    let wished = wish(store, Wish::Restore { snapshot }, at(5)).await;
    let wished = wished.unwrap();
    plan(store, east, at(6)).await;
    let kinds: Vec<_> = view(store, east).await.open;
    assert_eq!(kinds[0].action.kind().as_str(), "restore");
    settle(store, east, at(7)).await;
    assert_eq!(open(store).await, [], "fulfilled when it was put back");
    let (restored, _) = view(store, east).await.observed.restored.unwrap();
    assert_eq!(restored.wish, wished.id);
}

pub(crate) async fn a_wish_makes_earlier_plans_stale(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let overtaken = plan::plan(&view(store, east).await.view(at(1)));
    let pause = wish(store, Wish::Pause, at(1)).await.unwrap();
    assert!(matches!(
        store.commit(overtaken, at(1)).await.unwrap_err(),
        CommitError::Stale
    ));
    plan(store, east, at(2)).await;
    let row = store
        .cluster(&project(), &name("east"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        row.held[0].to_string(),
        "create east-brain-01 and 1 more: paused by ana"
    );
    assert_eq!(store.unplanned().await.unwrap(), []);

    store
        .withdraw_intent(&project(), pause.id, "ana", at(3))
        .await
        .unwrap();
    assert_eq!(store.unplanned().await.unwrap(), [east]);
    plan(store, east, at(3)).await;
    assert_eq!(view(store, east).await.open.len(), 2);
}

/// The cluster `east` whose workers are scaled.
fn scaled(range: &str) -> String {
    let text = text("east", &["east"], 1, 77);
    edited(&text, &[("count: 77", &format!("autoscaler: {range}"))])
}

pub(crate) async fn a_pool_that_is_scaled_stays_within_what_is_declared(store: &Store) {
    let submitted = submit(store, &scaled("{min: 0, max: 4}")).await.unwrap();
    let east = submitted.changed[0].0;
    assert_eq!(size(store, east).await, (1, 0));
    let beyond = wish(store, scale(5), at(1)).await.unwrap_err();
    assert_eq!(
        beyond.to_string(),
        "found 5 machines, allowed: 0 to 4, what autoscaler of pool muscle says"
    );
    wish(store, scale(4), at(1)).await.unwrap();
    assert_eq!(size(store, east).await, (5, 0));
    settle(store, east, at(2)).await;
    // Another range ends no wish, and back to nothing needs nobody's consent but that of the
    // manifest.
    submit(store, &scaled("{min: 0, max: 6}")).await.unwrap();
    assert_eq!(open(store).await.len(), 1);
    wish(store, scale(0), at(3)).await.unwrap();
    assert_eq!(size(store, east).await, (1, 4));
    assert_eq!(open(store).await, [scale(0)]);
    // A count does, and one that was to leave and that nobody has touched stays.
    submit(store, &text("east", &["east"], 1, 1)).await.unwrap();
    assert_eq!(open(store).await, []);
    assert_eq!(size(store, east).await, (2, 3));
}

pub(crate) async fn an_edit_that_shrinks_a_pool_that_is_scaled_counts_as_any_other(store: &Store) {
    let submitted = submit(store, &scaled("{min: 0, max: 6}")).await.unwrap();
    let east = submitted.changed[0].0;
    wish(store, scale(5), at(1)).await.unwrap();
    settle(store, east, at(2)).await;
    let fewer = [
        // Fewer at most than there are, and the same as a count.
        (scaled("{min: 0, max: 2}"), "3 of the 6"),
        (text("east", &["east"], 1, 2), "3 of the 6"),
        // Another pool in its place.
        (
            scaled("{min: 0, max: 6}").replace("muscle", "sinew"),
            "5 of the 6",
        ),
    ];
    for (text, what) in fewer {
        let refused = submit(store, &text).await.unwrap_err().to_string();
        let whose = "machines of cluster east would be removed at once";
        assert_eq!(refused, format!("{what} {whose}"));
        assert_eq!(size(store, east).await, (6, 0), "nothing was stored");
    }
    // Fewer at least, or fewer at most that still are as many as there are, take nobody away.
    submit(store, &scaled("{min: 0, max: 5}")).await.unwrap();
    assert_eq!(size(store, east).await, (6, 0));
    // One may always go.
    submit(store, &scaled("{min: 0, max: 4}")).await.unwrap();
    assert_eq!(size(store, east).await, (5, 1));
}

pub(crate) async fn a_machine_is_retired_and_its_pool_is_smaller(store: &Store) {
    let submitted = submit(store, &scaled("{min: 2, max: 4}")).await.unwrap();
    let east = submitted.changed[0].0;
    wish(store, scale(3), at(1)).await.unwrap();
    settle(store, east, at(2)).await;
    let desired = view(store, east).await.desired;
    let machine = |name: &str| desired.machine_named(name).unwrap().id;
    let brain = Wish::Retire {
        machine: machine("east-brain-01"),
    };
    let refused = wish(store, brain, at(3)).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "pool brain has a count, and would get another machine in place of east-brain-01; lower \
         the count, or have it replaced with `slipway machine replace east-brain-01`"
    );
    let first = Wish::Retire {
        machine: machine("east-muscle-01"),
    };
    wish(store, first.clone(), at(3)).await.unwrap();
    let now = view(store, east).await.desired;
    assert_eq!(
        machines(&now),
        "east-brain-01 east-muscle-02 east-muscle-03 (east-muscle-01)"
    );
    assert_eq!(
        open(store).await,
        std::slice::from_ref(&first),
        "no wish brings it back"
    );
    let again = wish(store, first, at(3)).await.unwrap_err().to_string();
    assert_eq!(again, "machine east-muscle-01 is on its way out already");
    let second = Wish::Retire {
        machine: machine("east-muscle-02"),
    };
    let few = wish(store, second, at(3)).await.unwrap_err().to_string();
    assert_eq!(
        few,
        "pool muscle would be left with 1 machines, allowed: 2 to 4, what its autoscaler says"
    );
    settle(store, east, at(4)).await;
    assert_eq!(open(store).await, [], "it is gone, and so is the wish");
    submit(store, &scaled("{min: 2, max: 4}")).await.unwrap();
    assert_eq!(machines(&view(store, east).await.desired), machines(&now));
}

pub(crate) async fn what_cannot_be_made_is_given_back(store: &Store) {
    let submitted = submit(store, &scaled("{min: 0, max: 4}")).await.unwrap();
    let east = submitted.changed[0].0;
    settle(store, east, at(1)).await;
    wish(store, scale(1), at(2)).await.unwrap();
    plan(store, east, at(2)).await;
    assert!(!store.give_back(east, at(2)).await.unwrap());
    assert_eq!(store.advanced(east).await.unwrap(), None, "it was wished");
    let claim = claim(store, at(2)).await.remove(0);
    let error = "no such type".to_owned();
    let stuck = record(store, claim, Ended::Stuck { error }, at(3)).await;
    assert_eq!(stuck, Recorded::Yes);
    assert!(store.give_back(east, at(4)).await.unwrap());
    assert!(!store.give_back(east, at(4)).await.unwrap());
    assert_eq!(size(store, east).await, (1, 1));
    assert_eq!(open(store).await, []);
    let last = store.events(None, 0, 1000).await.unwrap().pop().unwrap();
    assert_eq!(
        (last.kind.as_str(), last.message.as_str()),
        (
            "pool.given-back",
            "pool muscle was to have 1 machines and goes back to 0: east-muscle-01 cannot be made: no such type"
        )
    );
    let advanced = store.advanced(east).await.unwrap().unwrap();
    assert_eq!((advanced.because, advanced.follows), (last.message, None));
    settle(store, east, at(5)).await;
    assert_eq!(size(store, east).await.0, 1);
}
