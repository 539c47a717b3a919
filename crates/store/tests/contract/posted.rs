//! Who is told what becomes of environments: in which transaction, by whom, in which order.

use crate::fixture::{at, events, name, project};
use crate::habitat::{
    action, begin, called, claim as claim_actions, create, draft, due, finish, look, look_at_all,
    running, settings, settle_in, work,
};
use expect_test::expect;
use model::environment::delivery::State;
use model::environment::notify::{Message, Occasion, Target, Way, Webhook};
use model::environment::settings::{Chart, Deploy, Settings};
use model::environment::status::Deed;
use model::id::{DeliveryId, Origin};
use model::secret::SecretRef;
use std::time::Duration;
use store::{
    About, ActionDraft, ActionEnded, DeliveryClaim, DeliveryDraft, DeliveryEnd, DeliveryError,
    DeliveryFilter, DeliveryRow, Page, Recorded, Store,
};

const LEASE: Duration = Duration::from_secs(30);

fn target(called: &str, events: &[Occasion]) -> Target {
    Target {
        name: name(called),
        way: Way::Webhook(Webhook {
            url: "https://hooks.example.org/in".parse().unwrap(),
            secret: SecretRef {
                name: name("hooks"),
                key: Some("key".parse().unwrap()),
            },
        }),
        events: events.iter().copied().collect(),
        labels: [].into(),
    }
}

/// A project without scripts, so that only its targets are told.
fn telling(targets: Vec<Target>) -> Settings {
    Settings {
        deploy: Deploy::Helm(Chart {
            chart: "/chart".to_owned(),
            kubeconfig: None,
            host: None,
        }),
        notify: targets,
        ..settings()
    }
}

async fn claim(store: &Store, seconds: i64) -> Vec<DeliveryClaim> {
    let claimed = store.claim_deliveries("w", 100, LEASE, at(seconds));
    claimed.await.unwrap()
}

async fn listed(store: &Store) -> Vec<DeliveryRow> {
    let project = project();
    let all = store.deliveries(&project, DeliveryFilter::default(), Page::default());
    let mut items = all.await.unwrap().items;
    items.reverse();
    items
}

/// All there are, oldest first.
async fn picture(store: &Store) -> String {
    let line = |row: DeliveryRow| {
        let of = row
            .environment
            .map_or("-".to_owned(), |name| name.to_string());
        let said = row.said.map_or(String::new(), |said| format!(": {said}"));
        format!(
            "{} {} {of} {} {} {}{said}\n",
            row.kind, row.target, row.occasion, row.state, row.tries
        )
    };
    listed(store).await.into_iter().map(line).collect()
}

async fn record(store: &Store, claim: &DeliveryClaim, end: DeliveryEnd, seconds: i64) -> Recorded {
    store
        .record_delivery(claim, end, at(seconds))
        .await
        .unwrap()
}

fn delivered() -> DeliveryEnd {
    DeliveryEnd::Delivered {
        said: "200 OK".to_owned(),
    }
}

/// A message that tells of nothing.
fn probe(to: &str, number: u64) -> DeliveryDraft {
    DeliveryDraft {
        id: DeliveryId::derive(Origin {
            parent: to,
            name: "test",
            ordinal: number,
            incarnation: 0,
        }),
        project: project(),
        kind: "webhook".to_owned(),
        target: to.to_owned(),
        environment: None,
        occasion: "test".to_owned(),
        document: format!("{{\"number\":{number}}}"),
    }
}

async fn post(store: &Store, to: &str, number: u64, seconds: i64) -> DeliveryId {
    let draft = probe(to, number);
    let id = draft.id;
    assert!(store.post_delivery(draft, at(seconds)).await.unwrap());
    id
}

pub(crate) async fn what_becomes_of_an_environment_is_told_with_it(store: &Store) {
    let targets = vec![target("ops", &[]), target("all", &Occasion::ALL)];
    settle_in(store, telling(targets)).await;
    running(store, "orange", 1).await;
    // Nothing changed, so nothing is told.
    look_at_all(store, 0, 60).await;
    look_at_all(store, 2, 120).await;
    // What was seen before something began is dropped, and nobody hears of it.
    let late = due(store, 180).await;
    begin(store, "orange", Deed::Update, 181).await.unwrap();
    let looks = late.iter().map(|check| look(check, Some(0), 200)).collect();
    store.record_looks(looks, at(182)).await.unwrap();
    let update = claim_actions(store, 183).await.remove(0);
    let recorded = finish(store, &update, ActionEnded::Failed, 184).await;
    assert_eq!(recorded, Recorded::Yes);
    begin(store, "orange", Deed::Archive, 190).await.unwrap();
    work(store, 191).await;
    look_at_all(store, 0, 192).await;
    begin(store, "orange", Deed::Cleanup, 193).await.unwrap();
    let cleanup = claim_actions(store, 194).await.remove(0);
    let recorded = finish(store, &cleanup, ActionEnded::Failed, 195).await;
    assert_eq!(recorded, Recorded::Yes);
    begin(store, "orange", Deed::Delete, 196).await.unwrap();
    expect![[r"
        webhook all orange pending waiting 0
        webhook ops orange running waiting 0
        webhook all orange running waiting 0
        webhook ops orange failing waiting 0
        webhook all orange failing waiting 0
        webhook all orange pending waiting 0
        webhook ops orange action-failed waiting 0
        webhook all orange action-failed waiting 0
        webhook all orange pending waiting 0
        webhook ops orange archived waiting 0
        webhook all orange archived waiting 0
        webhook ops orange cleanup-failed waiting 0
        webhook all orange cleanup-failed waiting 0
        webhook ops orange gone waiting 0
        webhook all orange gone waiting 0
    "]]
    .assert_eq(&picture(store).await);
    let first = claim(store, 200).await.remove(1);
    let message: Message = serde_json::from_str(&first.document).unwrap();
    let about = message.environment.unwrap();
    assert_eq!(first.target, "ops");
    assert_eq!(
        (about.name.as_str(), about.tag.as_deref()),
        ("orange", Some("v1"))
    );
    assert_eq!(about.status.unwrap().as_str(), "running");
    assert_eq!(about.before.unwrap().as_str(), "create-pending");
}

pub(crate) async fn what_is_refused_tells_nobody(store: &Store) {
    settle_in(store, telling(vec![target("all", &Occasion::ALL)])).await;
    running(store, "orange", 1).await;
    let before = listed(store).await.len();
    begin(store, "orange", Deed::Restore, 2).await.unwrap_err();
    let stale = ActionDraft {
        generation: Some(99),
        ..action("orange", Deed::Archive)
    };
    store.begin_action(stale, at(3)).await.unwrap_err();
    assert_eq!(listed(store).await.len(), before);
    // Whoever calls off what never began has it as it was: both are told.
    let begun = begin(store, "orange", Deed::Update, 4).await.unwrap();
    store
        .cancel_action(&project(), begun.action, "ana".into(), at(5))
        .await
        .unwrap();
    // Nor is somebody told that it failed what somebody called off, however its script ended.
    let begun = begin(store, "orange", Deed::Update, 6).await.unwrap();
    let update = claim_actions(store, 7).await.remove(0);
    store
        .cancel_action(&project(), begun.action, "ana".into(), at(8))
        .await
        .unwrap();
    let recorded = finish(store, &update, ActionEnded::Failed, 9).await;
    assert_eq!(recorded, Recorded::Yes);
    let words: Vec<_> = listed(store).await.split_off(before);
    let words: Vec<_> = words.iter().map(|row| row.occasion.as_str()).collect();
    assert_eq!(words, ["pending", "running", "pending"]);
}

pub(crate) async fn scripts_are_told_of_statuses_and_of_nothing_else(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    begin(store, "orange", Deed::Archive, 2).await.unwrap();
    work(store, 3).await;
    look_at_all(store, 0, 4).await;
    begin(store, "orange", Deed::Cleanup, 5).await.unwrap();
    work(store, 6).await;
    expect![[r"
        script notifications orange running waiting 0
        script notifications orange pending waiting 0
        script notifications orange archived waiting 0
    "]]
    .assert_eq(&picture(store).await);
    let first = claim(store, 7).await.remove(0);
    assert_eq!(first.settings, Some(settings()));
    assert_eq!(
        record(store, &first, DeliveryEnd::Forgotten, 8).await,
        Recorded::Yes
    );
    assert_eq!(listed(store).await.len(), 2, "there was nobody to be told");
}

pub(crate) async fn one_of_a_lane_is_sent_at_a_time_and_in_order(store: &Store) {
    let (one, two) = (post(store, "a", 1, 1).await, post(store, "a", 2, 1).await);
    let other = post(store, "b", 1, 2).await;
    assert!(
        !store.post_delivery(probe("a", 1), at(3)).await.unwrap(),
        "twice is once"
    );
    assert_eq!(store.next_delivery().await.unwrap(), Some(at(1)));
    let mut claimed = claim(store, 5).await;
    let ids: Vec<_> = claimed.iter().map(|claim| claim.id).collect();
    assert_eq!(ids, [one, other]);
    assert!(
        claim(store, 6).await.is_empty(),
        "each lane has one under way"
    );
    assert_eq!(store.next_delivery().await.unwrap(), Some(at(35)));
    assert_eq!(
        record(store, &claimed.remove(0), delivered(), 7).await,
        Recorded::Yes
    );
    let next = claim(store, 8).await.remove(0);
    assert_eq!((next.id, next.tries), (two, 0));
    // Who cannot be told keeps those behind waiting, and nobody else.
    let again = DeliveryEnd::Again {
        said: "500".to_owned(),
        due: at(20),
    };
    assert_eq!(record(store, &next, again, 9).await, Recorded::Yes);
    let third = post(store, "a", 3, 10).await;
    assert_eq!(
        record(store, &claimed.remove(0), delivered(), 10).await,
        Recorded::Yes
    );
    assert!(claim(store, 19).await.is_empty());
    let next = claim(store, 20).await.remove(0);
    assert_eq!((next.id, next.tries), (two, 1));
    assert_eq!(next.document, "{\"number\":2}");
    let end = DeliveryEnd::GivenUp {
        said: "410 Gone".to_owned(),
    };
    assert_eq!(record(store, &next, end, 21).await, Recorded::Yes);
    assert_eq!(claim(store, 22).await.remove(0).id, third);
    expect![[r"
        webhook a - test delivered 1: 200 OK
        webhook a - test given-up 2: 410 Gone
        webhook b - test delivered 1: 200 OK
        webhook a - test sending 1
    "]]
    .assert_eq(&picture(store).await);
    let told = events(store).await;
    assert!(
        told.contains("webhook a was not told of test: 410 Gone"),
        "{told}"
    );
}

pub(crate) async fn whoever_dies_has_it_sent_again_under_the_same_id(store: &Store) {
    let id = post(store, "a", 1, 1).await;
    let dead = claim(store, 2).await.remove(0);
    assert_eq!(store.expire_deliveries(at(31)).await.unwrap(), 0);
    assert_eq!(store.expire_deliveries(at(32)).await.unwrap(), 1);
    let again = claim(store, 33).await.remove(0);
    assert_eq!((again.id, again.tries), (id, 1));
    // It arrived, and who carried it comes back too late to say so.
    assert_eq!(
        record(store, &dead, delivered(), 34).await,
        Recorded::LeaseLost
    );
    assert_eq!(store.void_deliveries(at(35)).await.unwrap(), 1);
    let once_more = claim(store, 36).await.remove(0);
    assert_eq!(
        record(store, &again, delivered(), 37).await,
        Recorded::LeaseLost
    );
    assert_eq!(
        record(store, &once_more, delivered(), 38).await,
        Recorded::Yes
    );
    assert_eq!(
        record(store, &once_more, delivered(), 39).await,
        Recorded::LeaseLost
    );
    assert!(store.next_delivery().await.unwrap().is_none());
}

pub(crate) async fn what_was_given_up_is_sent_again_by_hand(store: &Store) {
    let id = post(store, "a", 1, 1).await;
    let ours = project();
    let retry = |id, seconds| store.retry_delivery(&ours, id, "ana".into(), at(seconds));
    let claimed = claim(store, 2).await.remove(0);
    retry(id, 2).await.unwrap();
    let end = DeliveryEnd::GivenUp {
        said: "404".to_owned(),
    };
    let recorded = record(store, &claimed, end, 3).await;
    assert_eq!(recorded, Recorded::Yes);
    let shop = name("shop");
    let elsewhere = store.retry_delivery(&shop, id, "ana".into(), at(4));
    assert!(matches!(
        elsewhere.await,
        Err(DeliveryError::NotFound { .. })
    ));
    retry(id, 50).await.unwrap();
    let again = claim(store, 50).await.remove(0);
    assert_eq!((again.id, again.tries, again.since), (id, 0, at(50)));
    let recorded = record(store, &again, delivered(), 51).await;
    assert_eq!(recorded, Recorded::Yes);
    let refused = retry(id, 52).await;
    assert!(matches!(refused, Err(DeliveryError::Delivered { .. })));
    let row = store.delivery(&ours, id).await.unwrap().unwrap();
    assert_eq!((row.state, row.ended_at), (State::Delivered, Some(at(51))));
    assert_eq!(store.delivery(&shop, id).await.unwrap(), None);
    let all = store.deliveries(&ours, DeliveryFilter::default(), Page::default());
    let all = all.await.unwrap().items;
    assert_eq!(all.len(), 1, "it is the same message: {all:?}");
}

pub(crate) async fn messages_that_ended_are_swept(store: &Store) {
    const DAY: i64 = 24 * 60 * 60;
    post(store, "a", 1, 1).await;
    post(store, "b", 1, 1).await;
    for one in claim(store, 2).await {
        if one.target == "a" {
            let recorded = record(store, &one, delivered(), 3).await;
            assert_eq!(recorded, Recorded::Yes);
        }
    }
    assert_eq!(store.sweep(at(14 * DAY)).await.unwrap().deliveries, 0);
    assert_eq!(store.sweep(at(15 * DAY)).await.unwrap().deliveries, 1);
    assert_eq!(listed(store).await.len(), 1, "what waits stays");
}

pub(crate) async fn an_end_is_told_once_and_another_end_again(store: &Store) {
    const HOUR: i64 = 60 * 60;
    let targets = vec![target("ops", &[Occasion::ExpiresSoon])];
    settle_in(store, telling(targets)).await;
    let ends = |hours: i64| About {
        expires_at: Some(at(hours * HOUR)),
        ..About::default()
    };
    let mut short = draft(store, &project(), "orange", &[]).await;
    short.about = ends(100);
    store.create_environment(short, at(0)).await.unwrap();
    let mut kept = draft(store, &project(), "lemon", &[]).await;
    kept.about = About {
        protected: true,
        ..ends(100)
    };
    store.create_environment(kept, at(0)).await.unwrap();
    create(store, "endless", 0).await;
    let tell = |hours: i64| store.tell_of_ends(at(hours * HOUR));
    assert_eq!(tell(75).await.unwrap(), 0, "too early");
    assert_eq!(tell(76).await.unwrap(), 1);
    assert_eq!(tell(77).await.unwrap(), 0, "once");
    let (ours, of) = (project(), called("orange"));
    let later = store.amend_environment((&ours, &of), None, ends(200), "ana".into(), at(80 * HOUR));
    later.await.unwrap();
    assert_eq!(tell(170).await.unwrap(), 0);
    assert_eq!(tell(190).await.unwrap(), 1);
    assert_eq!(tell(201).await.unwrap(), 0, "it is over");
    expect![[r"
        webhook ops orange expires-soon waiting 0
        webhook ops orange expires-soon waiting 0
    "]]
    .assert_eq(&picture(store).await);
}

pub(crate) async fn the_script_before_all_others_leaves_its_end(store: &Store) {
    settle_in(store, settings()).await;
    let ours = project();
    let record = |error: Option<&str>, seconds| {
        let error = error.map(str::to_owned);
        store.record_init(&ours, "here", error, at(seconds))
    };
    assert_eq!(store.inits(&project()).await.unwrap(), []);
    record(Some("it ended with status 3"), 1).await.unwrap();
    let row = store.inits(&project()).await.unwrap().remove(0);
    assert_eq!((row.place.as_str(), row.at), ("here", at(1)));
    assert_eq!(row.error.as_deref(), Some("it ended with status 3"));
    assert!(
        events(store)
            .await
            .contains("init failed: it ended with status 3")
    );
    record(None, 2).await.unwrap();
    let rows = store.inits(&project()).await.unwrap();
    assert_eq!((rows.len(), rows[0].error.as_deref()), (1, None));
}
