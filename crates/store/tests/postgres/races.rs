//! Two planners want the same: one has it, and the other is told who.

use crate::fixture::{
    LEASE, at, cluster, effect, in_a_rack, name, project, submission, submit, text,
    text_with_given, view,
};
use crate::two;
use model::access::{Role, TokenId};
use model::id::ClusterId;
use model::sealed::{KeyId, Wrapped};
use model::task::Kind;
use plan::{Plan, Reason, Scope, Slot};
use std::time::Duration;
use store::{CommitError, Ended, Quota, Recorded, Store, TokenDraft};
use tokio::task::JoinSet;

/// How often each race is run.
const ROUNDS: usize = 12;

/// Commits plans at once, each on a handle of its own; answers in their order.
async fn race(plans: Vec<(Store, Plan)>) -> Vec<Result<(), CommitError>> {
    let mut running = JoinSet::new();
    for (number, (store, plan)) in plans.into_iter().enumerate() {
        running.spawn(async move { (number, store.commit(plan, at(2)).await) });
    }
    let mut ended = running.join_all().await;
    ended.sort_by_key(|(number, _)| *number);
    ended.into_iter().map(|(_, ended)| ended).collect()
}

/// The winner of two, and why the other lost.
fn judge(ended: Vec<Result<(), CommitError>>) -> (usize, Reason) {
    let mut won = None;
    let mut lost = None;
    for (number, ended) in ended.into_iter().enumerate() {
        match ended {
            Ok(()) => assert_eq!(won.replace(number), None, "both have it"),
            Err(CommitError::Refused { reason, .. }) => lost = Some(reason),
            Err(error @ (CommitError::Stale | CommitError::Store(_))) => panic!("{error}"),
        }
    }
    (won.unwrap(), lost.unwrap())
}

async fn planned(store: &Store, cluster: ClusterId) -> Plan {
    plan::plan(&view(store, cluster).await.view(at(2)))
}

#[tokio::test]
async fn of_many_planners_of_one_cluster_one_wins() {
    let Some(stores) = two("of_many_planners_of_one_cluster_one_wins") else {
        return;
    };
    for round in 0..ROUNDS {
        let east = cluster(&stores[0], &format!("c{round}"), 2).await;
        let mut plans = Vec::new();
        for planner in 0..8 {
            let store = stores[planner % 2].clone();
            let plan = planned(&store, east).await;
            assert_eq!(plan.tasks.len(), 3);
            plans.push((store, plan));
        }
        let mut won = 0;
        for ended in race(plans).await {
            match ended {
                Ok(()) => won += 1,
                Err(CommitError::Stale) => {}
                Err(error @ (CommitError::Refused { .. } | CommitError::Store(_))) => {
                    panic!("{error}")
                }
            }
        }
        assert_eq!(won, 1);
        let known = view(&stores[1], east).await;
        assert_eq!((known.parent, known.open.len()), (1, 3));
    }
}

/// A plan that only draws a slot for the first worker.
async fn drawing(store: &Store, cluster: ClusterId) -> Plan {
    let known = view(store, cluster).await;
    let mut plan = plan::plan(&known.view(at(2)));
    let pool = name("muscle");
    let worker = known
        .desired
        .machines
        .iter()
        .find(|machine| machine.pool == pool);
    plan.disturbs = vec![Slot::of(worker.unwrap(), &known.desired.disruption)];
    plan.tasks.clear();
    plan
}

#[tokio::test]
async fn of_two_clusters_one_has_the_last_slot_of_a_group() {
    let Some(stores) = two("of_two_clusters_one_has_the_last_slot_of_a_group") else {
        return;
    };
    let mut ids = Vec::new();
    for of in ["east", "west"] {
        let submitted = submit(&stores[0], &in_a_rack(&text(of, &[of], 1, 2))).await;
        ids.push(submitted.unwrap().changed[0].0);
    }
    let mut wins = [0; 2];
    for _ in 0..ROUNDS {
        let mut plans = Vec::new();
        for (store, id) in stores.iter().zip(&ids) {
            plans.push((store.clone(), drawing(store, *id).await));
        }
        let (won, reason) = judge(race(plans).await);
        let winner = ["east", "west"][won];
        assert_eq!(
            reason,
            Reason::Budget {
                scope: Scope::Group(name("rack")),
                by: format!("{winner}-muscle-01 of cluster {winner}"),
                unavailable: 1,
                budget: 1
            }
        );
        wins[won] += 1;
        let drawn = async |at: usize| view(&stores[0], ids[at]).await.ledger.len();
        assert_eq!((drawn(won).await, drawn(1 - won).await), (1, 0));
        // The winner gives it back.
        let mut back = drawing(&stores[won], ids[won]).await;
        back.release = back.disturbs.drain(..).map(|slot| slot.machine).collect();
        stores[won].commit(back, at(3)).await.unwrap();
    }
    assert_eq!(wins[0] + wins[1], ROUNDS);
}

#[tokio::test]
async fn of_two_clusters_one_has_the_last_unit_of_a_quota() {
    let Some(stores) = two("of_two_clusters_one_has_the_last_unit_of_a_quota") else {
        return;
    };
    for round in 1..=u32::try_from(ROUNDS).unwrap() {
        let quota = Quota {
            machines: Some(round),
            ..Quota::default()
        };
        stores[0]
            .put_project(&project(), quota, "root".into(), at(1))
            .await
            .unwrap();
        let mut plans = Vec::new();
        for (store, of) in stores.iter().zip(["e", "w"]) {
            let id = cluster(store, &format!("{of}{round}"), 1).await;
            let mut plan = planned(store, id).await;
            plan.tasks.truncate(1);
            plans.push((store.clone(), plan));
        }
        let (_, reason) = judge(race(plans).await);
        let full = Reason::Quota {
            what: "machines".to_owned(),
            used: round,
            limit: round,
        };
        assert_eq!(reason, full);
    }
}

#[tokio::test]
async fn of_two_clusters_one_has_an_address() {
    let Some(stores) = two("of_two_clusters_one_has_an_address") else {
        return;
    };
    for round in 0..ROUNDS {
        let (mut plans, mut names) = (Vec::new(), Vec::new());
        for (store, of) in stores.iter().zip(["e", "w"]) {
            let of = format!("{of}{round}");
            let host = format!("{{endpoint: 203.0.113.{round}}}");
            let submitted = submit(store, &text_with_given(&of, &of, &host))
                .await
                .unwrap();
            let mut plan = planned(store, submitted.changed[0].0).await;
            plan.tasks
                .retain(|task| task.action.kind() == Kind::Prepare);
            assert_eq!(plan.tasks.len(), 1);
            plans.push((store.clone(), plan));
            names.push(of);
        }
        let (won, reason) = judge(race(plans).await);
        let winner = &names[won];
        assert_eq!(
            reason,
            Reason::Claimed {
                thing: format!("address/203.0.113.{round}"),
                by: format!("{winner}-attic-01 of cluster {winner} in project default"),
                goes: false,
            }
        );
    }
}

/// Whoever gives something back and whoever begins to wait for it at the same moment do not
/// miss each other: it is woken, or told to look again.
#[tokio::test]
async fn nobody_waits_for_a_slot_that_is_free() {
    let Some(stores) = two("nobody_waits_for_a_slot_that_is_free") else {
        return;
    };
    let mut ids = Vec::new();
    for of in ["east", "west"] {
        let submitted = submit(&stores[0], &in_a_rack(&text(of, &[of], 1, 2))).await;
        ids.push(submitted.unwrap().changed[0].0);
    }
    let (mut woken, mut stale) = (0, 0);
    for _ in 0..ROUNDS {
        stores[0]
            .commit(drawing(&stores[0], ids[0]).await, at(2))
            .await
            .unwrap();
        // What the other wants is refused, and it is about to say so.
        let mut waiting = planned(&stores[1], ids[1]).await;
        let slot = drawing(&stores[1], ids[1]).await.disturbs.remove(0);
        waiting.tasks.retain(|task| task.machine.id == slot.machine);
        waiting.disturbs = vec![slot];
        let refused = stores[1].commit(waiting.clone(), at(2)).await.unwrap_err();
        let CommitError::Refused { machine, reason } = refused else {
            panic!("{refused}")
        };
        waiting.hold_back(machine, &reason);
        let mut back = drawing(&stores[0], ids[0]).await;
        back.release = back.disturbs.drain(..).map(|slot| slot.machine).collect();

        let ended = race(vec![
            (stores[0].clone(), back),
            (stores[1].clone(), waiting),
        ])
        .await;
        let unplanned = stores[0].unplanned().await.unwrap().contains(&ids[1]);
        match &ended[..] {
            [Ok(()), Ok(())] => {
                assert!(unplanned, "it waits, and nobody will wake it");
                woken += 1;
            }
            [Ok(()), Err(CommitError::Stale)] => stale += 1,
            other => panic!("{other:?}"),
        }
        // At rest for the next round.
        let mut told = planned(&stores[1], ids[1]).await;
        told.tasks.clear();
        stores[1].commit(told, at(3)).await.unwrap();
    }
    assert_eq!(woken + stale, ROUNDS);
}

/// Submissions that exclude each other: a name, and the last place in a project.
#[tokio::test]
async fn of_two_submissions_one_has_a_name_and_a_place() {
    let Some(stores) = two("of_two_submissions_one_has_a_name_and_a_place") else {
        return;
    };
    let submit_both = async |texts: [String; 2]| {
        let mut running = JoinSet::new();
        for (store, text) in stores.iter().cloned().zip(texts) {
            running.spawn(async move { store.submit(submission(&text), at(1)).await });
        }
        let ended = running.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 1));
        lost.into_iter().map(Result::unwrap_err).next().unwrap()
    };
    for round in 0..ROUNDS {
        let shared = format!("c{round}");
        let texts = ["e", "w"].map(|of| text(&format!("{of}{round}"), &[&shared], 1, 1));
        let refused = submit_both(texts).await;
        assert!(
            matches!(refused, store::SubmitError::Taken { .. }),
            "{refused}"
        );
    }
    let used = u32::try_from(ROUNDS).unwrap();
    let quota = Quota {
        clusters: Some(used + 1),
        ..Quota::default()
    };
    stores[0]
        .put_project(&project(), quota, "root".into(), at(1))
        .await
        .unwrap();
    let texts = ["last-e", "last-w"].map(|of| text(of, &[of], 1, 1));
    let refused = submit_both(texts).await;
    assert!(
        matches!(refused, store::SubmitError::Quota { .. }),
        "{refused}"
    );
}

/// Asks the same of both at once.
async fn both<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    stores: &[Store; 2],
    ask: impl Fn(Store, usize) -> F,
) -> Vec<T> {
    let mut running = JoinSet::new();
    for (number, store) in stores.iter().enumerate() {
        running.spawn(ask(store.clone(), number));
    }
    running.join_all().await
}

/// Whatever every process does when it starts, or when the time has come, is done once.
#[tokio::test]
async fn what_both_do_at_once_is_done_once() {
    let Some(stores) = two("what_both_do_at_once_is_done_once") else {
        return;
    };
    // A key for the first time.
    let used = both(&stores, |store, number| async move {
        let wrapped = Wrapped {
            id: KeyId::from_digest([u8::try_from(number).unwrap(); 16]),
            by: "master".to_owned(),
            text: "wrapped".to_owned(),
        };
        let used = store.use_seal_key(wrapped, true, "root".into(), at(1));
        used.await.unwrap().id
    });
    let used = used.await;
    assert_eq!(used[0], used[1]);
    let mut entries = 1;
    for round in 0..ROUNDS {
        // A token that stands in the configuration of both.
        let token = TokenDraft {
            id: TokenId::of(&format!("{round:064}")),
            name: "admin".to_owned(),
            project: None,
            role: Role::Admin,
            digest: format!("{round:064}"),
            expires_at: None,
        };
        both(&stores, |store, _| {
            let token = token.clone();
            async move { store.add_token(token, "root".into(), at(1)).await.unwrap() }
        })
        .await;
        // A look at a cluster whose time has come.
        let name = format!("c{round}");
        let id = cluster(&stores[0], &name, 1).await;
        let looks = both(&stores, |store, _| async move {
            let begun = store.begin_probe(id, Duration::from_mins(1), at(1));
            begun.await.unwrap()
        });
        let looks = looks.await.into_iter().filter(|begun| *begun).count();
        assert_eq!(looks, 1);
        // The end of a lease.
        crate::fixture::plan(&stores[1], id, at(1)).await;
        let claims = stores[1].claim("w", 10, 10, LEASE, at(1)).await.unwrap();
        assert_eq!(claims.len(), 2);
        drop(claims);
        let ended = both(&stores, |store, _| async move {
            store.expire(at(100)).await.unwrap()
        });
        assert_eq!(ended.await.concat(), [id]);
        for claim in stores[0].claim("w", 10, 10, LEASE, at(100)).await.unwrap() {
            assert_eq!((claim.attempt, claim.lost), (2, true));
            let seen = effect(&claim.task, at(100));
            let recorded = stores[0].record(claim, Ended::Done, seen, vec![], vec![], at(100));
            assert_eq!(recorded.await.unwrap(), Recorded::Yes);
        }
        entries += 2;
    }
    let chain = stores[0].verify_audit().await.unwrap();
    assert_eq!((chain.entries, chain.broken), (entries, None));
}
