//! Budgets counted in the commit, windows that open, secrets that are missing.

use crate::fixture::{
    at, claim, cluster, edited, effect, events, in_a_rack, name, plan, plan_and_hold, project,
    record, refusal, settle, submission, submit, text, text_with_given, view,
};
use crate::sealed;
use model::id::ClusterId;
use model::time::Timestamp;
use plan::{Phase, Plan, Reason, Scope, Slot};
use store::{CommitError, Ended, Quota, Recorded, SealedChange, Store};

/// A cluster in the rack, with so many workers at rest.
async fn in_rack(store: &Store, cluster: &str, workers: u32) -> ClusterId {
    let submitted = submit(store, &in_a_rack(&text(cluster, &[cluster], 1, workers))).await;
    let id = submitted.unwrap().changed[0].0;
    settle(store, id, at(1)).await;
    id
}

/// Declares one worker less, so that one has to be taken out of service.
async fn shrink(store: &Store, cluster: &str, workers: u32) {
    let fewer = in_a_rack(&text(cluster, &[cluster], 1, workers));
    submit(store, &fewer).await.unwrap();
}

async fn planned(store: &Store, cluster: ClusterId, now: Timestamp) -> Plan {
    plan::plan(&view(store, cluster).await.view(now))
}

/// Ends what is under way, and plans what follows, once.
async fn step(store: &Store, cluster: ClusterId, now: Timestamp) {
    for claim in claim(store, now).await {
        let seen = effect(&claim.task, now);
        let recorded = store.record(claim, Ended::Done, seen, vec![], vec![], now);
        assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    }
    plan_and_hold(store, cluster, now).await;
}

pub(crate) async fn a_pool_has_a_budget_of_its_own(store: &Store) {
    let careful = |workers: u32| {
        edited(
            &text("east", &["east"], 1, workers),
            &[
                (
                    "{name: muscle,",
                    "{name: muscle, disruption: {unavailable: 2},",
                ),
                (
                    "version: v1.34.1,",
                    "version: v1.34.1, disruption: {unavailable: 3},",
                ),
            ],
        )
    };
    let east = submit(store, &careful(8)).await.unwrap().changed[0].0;
    settle(store, east, at(1)).await;
    submit(store, &careful(7)).await.unwrap();
    let known = view(store, east).await;
    let mut drain = plan::plan(&known.view(at(2)));
    assert_eq!(drain.disturbs.len(), 1);
    let more = |at: usize| Slot::of(&known.desired.machines[at], &known.desired.disruption);
    drain.disturbs.push(more(1));
    drain.disturbs.push(more(2));
    // Three are within the cluster's budget, and the third is beyond the pool's.
    let refused = refusal(store, drain, at(2)).await;
    let Reason::Budget {
        scope, unavailable, ..
    } = refused
    else {
        panic!("{refused}")
    };
    assert_eq!((scope, unavailable), (Scope::Pool(name("muscle")), 2));
    assert_eq!(view(store, east).await.ledger, []);
}

pub(crate) async fn a_group_has_one_budget_across_clusters(store: &Store) {
    let (east, west) = (
        in_rack(store, "east", 4).await,
        in_rack(store, "west", 4).await,
    );
    shrink(store, "east", 3).await;
    shrink(store, "west", 3).await;
    // Both are planned before either is committed, as two processes would do it.
    let first = planned(store, east, at(2)).await;
    let second = planned(store, west, at(2)).await;
    assert_eq!((first.disturbs.len(), second.disturbs.len()), (1, 1));
    store.commit(first, at(2)).await.unwrap();
    let mut held = second.clone();
    let refused = store.commit(second, at(2)).await.unwrap_err();
    let CommitError::Refused { machine, reason } = refused else {
        panic!("{refused}")
    };
    assert_eq!(
        reason,
        Reason::Budget {
            scope: Scope::Group(name("rack")),
            by: "east-muscle-04 of cluster east".to_owned(),
            unavailable: 1,
            budget: 1
        }
    );
    assert_eq!(
        view(store, west).await.open,
        [],
        "nothing of a refused plan stays"
    );
    held.hold_back(machine, &reason);
    store.commit(held, at(2)).await.unwrap();
    assert_eq!(store.unplanned().await.unwrap(), []);
    // Whoever plans later sees it before it asks.
    let later = planned(store, west, at(3)).await;
    assert_eq!((later.disturbs.len(), later.held.len()), (0, 1));
    assert_eq!(later.held[0].reason, reason);

    settle(store, east, at(4)).await;
    assert_eq!(view(store, east).await.ledger, []);
    assert_eq!(
        store.unplanned().await.unwrap(),
        [west],
        "its turn has come"
    );
    assert!(
        events(store)
            .await
            .contains("cluster.woken cluster/west: the budget that it waits for has changed\n")
    );
    plan(store, west, at(5)).await;
    assert_eq!(
        view(store, west).await.ledger[0].name,
        name("west-muscle-04")
    );
    settle(store, west, at(6)).await;
    let row = store.cluster(&project(), &name("west")).await.unwrap();
    assert_eq!(row.unwrap().summary.phase, Phase::Done);
}

/// A cluster that goes for good gives its slots back like any other.
pub(crate) async fn a_cluster_that_is_removed_gives_its_slot_back(store: &Store) {
    let (east, west) = (
        in_rack(store, "east", 4).await,
        in_rack(store, "west", 4).await,
    );
    shrink(store, "east", 3).await;
    plan(store, east, at(2)).await;
    shrink(store, "west", 3).await;
    plan(store, west, at(2)).await;
    assert_eq!(view(store, west).await.ledger, []);
    store
        .delete_manifest(&project(), &name("east"), "ana", at(3))
        .await
        .unwrap();
    for second in 4..20 {
        if store.cluster_view(east).await.unwrap().is_none() {
            break;
        }
        step(store, east, at(second)).await;
    }
    assert_eq!(store.cluster_view(east).await.unwrap(), None);
    assert_eq!(store.unplanned().await.unwrap(), [west]);
    let next = planned(store, west, at(20)).await;
    assert_eq!(next.disturbs.len(), 1);
}

/// A refusal is told in a commit of its own. What it says may no longer be so by then, and
/// whoever gave the slot back saw nobody waiting: such a wait would have no end.
pub(crate) async fn nobody_begins_to_wait_for_what_was_given_back(store: &Store) {
    let (east, west) = (
        in_rack(store, "east", 4).await,
        in_rack(store, "west", 4).await,
    );
    shrink(store, "east", 3).await;
    shrink(store, "west", 3).await;
    let mut late = planned(store, west, at(2)).await;
    plan(store, east, at(2)).await;
    let Err(CommitError::Refused { machine, reason }) = store.commit(late.clone(), at(2)).await
    else {
        panic!("the only slot is taken")
    };
    late.hold_back(machine, &reason);
    settle(store, east, at(3)).await;
    let stale = store.commit(late, at(4)).await.unwrap_err();
    assert!(matches!(stale, CommitError::Stale), "{stale}");
    plan(store, west, at(5)).await;
    assert_eq!(view(store, west).await.ledger.len(), 1);
}

/// A plan with everything held back that the store refuses, and not committed so.
async fn refused_whole(store: &Store, cluster: ClusterId, now: Timestamp) -> Plan {
    let mut plan = planned(store, cluster, now).await;
    while let Err(CommitError::Refused { machine, reason }) = store.commit(plan.clone(), now).await
    {
        plan.hold_back(machine, &reason);
        if plan.tasks.is_empty() {
            return plan;
        }
    }
    panic!("{cluster} got something")
}

/// The same for a unit of quota.
pub(crate) async fn nobody_begins_to_wait_for_a_unit_that_is_free(store: &Store) {
    let quota = Quota {
        machines: Some(2),
        ..Quota::default()
    };
    store
        .put_project(&project(), quota, "root".into(), at(1))
        .await
        .unwrap();
    let east = cluster(store, "east", 1).await;
    settle(store, east, at(1)).await;
    let west = cluster(store, "west", 1).await;
    let late = refused_whole(store, west, at(2)).await;
    assert_eq!(late.held[0].reason.word(), "quota");
    store
        .delete_manifest(&project(), &name("east"), "ana", at(3))
        .await
        .unwrap();
    settle(store, east, at(4)).await;
    let stale = store.commit(late, at(5)).await.unwrap_err();
    assert!(matches!(stale, CommitError::Stale), "{stale}");
    settle(store, west, at(6)).await;
}

/// The same for an address.
pub(crate) async fn nobody_begins_to_wait_for_an_address_that_is_free(store: &Store) {
    let given = |of: &str, host: u8| {
        let host = format!("{{endpoint: 203.0.113.{host}}}");
        text_with_given(of, of, &host)
    };
    let east = submit(store, &given("east", 5)).await.unwrap().changed[0].0;
    settle(store, east, at(1)).await;
    let west = submit(store, &given("west", 7)).await.unwrap().changed[0].0;
    settle(store, west, at(1)).await;
    let mut moved = submission(&given("west", 5));
    moved.allow = Some(100).into();
    store.submit(moved, at(2)).await.unwrap();
    let late = refused_whole(store, west, at(2)).await;
    assert!(late.held.iter().any(|held| held.reason.word() == "claimed"));
    let mut moved = submission(&given("east", 6));
    moved.allow = Some(100).into();
    store.submit(moved, at(3)).await.unwrap();
    settle(store, east, at(4)).await;
    let stale = store.commit(late, at(5)).await.unwrap_err();
    assert!(matches!(stale, CommitError::Stale), "{stale}");
    settle(store, west, at(6)).await;
}

pub(crate) async fn a_window_that_opens_has_the_cluster_planned(store: &Store) {
    // The tests begin at 2001-09-09 01:46:40 UTC, a Sunday; the window opens at two.
    let nightly = |workers: u32| {
        edited(
            &text("east", &["east"], 1, workers),
            &[(
                "version: v1.34.1,",
                "version: v1.34.1, etcdBackup: {mode: off}, disruption: {windows: [{days: [Sun], start: '02:00', duration: 30m}]},",
            )],
        )
    };
    let opens = at(13 * 60 + 20);
    let east = submit(store, &nightly(4)).await.unwrap().changed[0].0;
    settle(store, east, at(1)).await;
    assert_eq!(
        store.next_due().await.unwrap(),
        None,
        "building needs no window"
    );
    submit(store, &nightly(3)).await.unwrap();
    let held = plan_and_hold(store, east, at(2)).await;
    assert_eq!(held[0].reason, Reason::Window { opens });
    assert_eq!(store.unplanned().await.unwrap(), []);
    assert_eq!(store.next_due().await.unwrap(), Some(opens));

    let early = Timestamp::from_millis(opens.as_millis() - 1);
    assert_eq!(store.expire(early).await.unwrap(), []);
    assert_eq!(store.unplanned().await.unwrap(), []);
    assert_eq!(store.expire(opens).await.unwrap(), [east]);
    assert_eq!(store.unplanned().await.unwrap(), [east]);
    assert_eq!(store.next_due().await.unwrap(), None, "once is enough");
    assert_eq!(store.expire(opens).await.unwrap(), []);
    let drain = planned(store, east, opens).await;
    assert_eq!(drain.disturbs.len(), 1);
    store.commit(drain, opens).await.unwrap();
}

pub(crate) async fn a_secret_that_is_missing_is_known_to_the_planner(store: &Store) {
    let text = edited(
        &text_with_given(
            "east",
            "east",
            "{endpoint: 203.0.113.5, secretRef: {name: attic}}",
        ),
        &[(
            "providerType: simulated}",
            "providerType: simulated, secretRef: {name: account}}",
        )],
    );
    let east = submit(store, &text).await.unwrap().changed[0].0;
    let missing = async || {
        let known = view(store, east).await;
        let missing = known.view(at(1)).missing.iter().map(ToString::to_string);
        missing.collect::<Vec<_>>()
    };
    assert_eq!(missing().await, ["account", "attic/privatekey"]);
    let held = plan_and_hold(store, east, at(1)).await;
    let held: Vec<_> = held.iter().map(ToString::to_string).collect();
    assert_eq!(
        held,
        [
            "create east-brain-01: secret account is not set",
            "prepare east-attic-01: secret attic/privatekey is not set"
        ]
    );
    assert_eq!(store.unplanned().await.unwrap(), []);

    let key = sealed::key(store, 1).await;
    let put = async |project: &model::name::Name, secret: &str, entry: &str| {
        let change = SealedChange::Set(entry.parse().unwrap(), sealed::value(key, "x"));
        store
            .put_secret(
                (project, &name(secret)),
                vec![change],
                false,
                "ana".into(),
                at(2),
            )
            .await
            .unwrap();
    };
    // Any entry opens an account; a machine is entered with a certain one.
    put(&project(), "account", "whatever").await;
    assert_eq!(
        store.unplanned().await.unwrap(),
        [east],
        "whoever waits is planned again"
    );
    put(&project(), "attic", "publickey").await;
    assert_eq!(missing().await, ["attic/privatekey"]);
    plan_and_hold(store, east, at(3)).await;
    put(&project(), "attic", "privatekey").await;
    assert_eq!(missing().await, [""; 0]);
    assert_eq!(store.unplanned().await.unwrap(), [east]);
    settle(store, east, at(4)).await;

    store
        .delete_secret(&project(), &name("account"), "ana".into(), at(5))
        .await
        .unwrap();
    assert_eq!(missing().await, ["account"]);
    // What others have under the same name is theirs.
    store
        .put_project(&name("shop"), Quota::default(), "root".into(), at(5))
        .await
        .unwrap();
    put(&name("shop"), "account", "whatever").await;
    assert_eq!(missing().await, ["account"]);
}

pub(crate) async fn a_stuck_task_goes_on_when_its_secret_is_set(store: &Store) {
    let given = "{endpoint: 203.0.113.5, secretRef: {name: attic}}";
    let east = submit(store, &text_with_given("east", "east", given)).await;
    let east = east.unwrap().changed[0].0;
    let key = sealed::key(store, 1).await;
    let put = async |secret: &str, when| {
        let change = SealedChange::Set("privatekey".parse().unwrap(), sealed::value(key, "x"));
        let named = (&project(), &name(secret));
        let put = store.put_secret(named, vec![change], false, "ana".into(), when);
        put.await.unwrap();
    };
    put("attic", at(1)).await;
    plan(store, east, at(1)).await;
    let stuck = async |begun, ended| {
        let claims = claim(store, begun).await;
        let of = |claim: &store::Claim| claim.task.action.kind() == model::task::Kind::Prepare;
        let prepare = claims.into_iter().find(of).unwrap();
        let refused = Ended::Stuck {
            error: "the key is refused".to_owned(),
        };
        assert_eq!(record(store, prepare, refused, ended).await, Recorded::Yes);
        plan(store, east, ended).await;
    };
    stuck(at(2), at(3)).await;
    assert_eq!(claim(store, at(4)).await.len(), 0);
    // The key of somebody else is of no use.
    put("cellar", at(5)).await;
    plan(store, east, at(5)).await;
    assert_eq!(claim(store, at(5)).await.len(), 0);
    put("attic", at(6)).await;
    assert_eq!(store.unplanned().await.unwrap(), [east]);
    plan(store, east, at(6)).await;
    // Set again while the attempt still uses the value from before: it is made once more.
    let before_its_end = at(8);
    put("attic", before_its_end).await;
    stuck(at(7), at(9)).await;
    let again = claim(store, at(10)).await;
    assert_eq!((again.len(), again[0].attempt), (1, 3));
}

pub(crate) async fn a_secret_of_a_bucket_that_is_missing_is_known_to_the_planner(store: &Store) {
    let to = "{s3: {endpoint: https://s3.example.org, bucket: etcd, secretRef: {name: store}}}";
    let text = edited(
        &text_with_given("east", "east", "{endpoint: 203.0.113.5}"),
        &[("network:", &format!("etcdBackup: {{to: {to}}}, network:"))],
    );
    let east = submit(store, &text).await.unwrap().changed[0].0;
    let missing = async || {
        let known = view(store, east).await;
        let missing = known.view(at(1)).missing.iter().map(ToString::to_string);
        missing.collect::<Vec<_>>()
    };
    let both = ["store/accessKeyId", "store/secretAccessKey"];
    assert_eq!(missing().await, both);
    let key = sealed::key(store, 1).await;
    let change = SealedChange::Set("accessKeyId".parse().unwrap(), sealed::value(key, "x"));
    let named = (&project(), &name("store"));
    let put = store.put_secret(named, vec![change], false, "ana".into(), at(2));
    put.await.unwrap();
    assert_eq!(missing().await, both[1..]);
}
