//! Requests of git services: what is told of them, in which order, and what was made of it.

use crate::fixture::{at, name, project};
use crate::habitat::{begin, create, draft, look_at_all, settings, settle_in, show, work};
use model::environment::git::event::Event;
use model::environment::git::{Origin, Repository};
use model::environment::settings::Settings;
use model::environment::status::Deed;
use model::id::ActionId;
use model::name::Name;
use plan::environment::git::Settled;
use std::time::Duration;
use store::{Cancelled, EnvironmentError, GitEnd, GitRequest, GitState, GitStep, Store, TakenIn};

fn shop() -> Name {
    name("shop")
}

fn repository() -> Repository {
    "acme/shop".parse().unwrap()
}

fn sha(digit: char) -> String {
    digit.to_string().repeat(40)
}

/// A request as it was some seconds after the beginning.
fn event(seconds: i64, digit: char) -> Event {
    Event {
        repository: repository(),
        request: 12,
        action: "opened".to_owned(),
        open: true,
        branch: "basket".to_owned(),
        sha: sha(digit),
        before: None,
        author: None,
        labels: Vec::new(),
        fork: false,
        url: "https://git.example.org/12".to_owned(),
        at: at(seconds),
    }
}

fn origin(fork: bool) -> Origin {
    Origin {
        source: shop(),
        repository: repository(),
        request: 12,
        branch: "basket".to_owned(),
        sha: sha('a'),
        url: "https://git.example.org/12".to_owned(),
        fork,
    }
}

/// That a request is made what it says.
async fn step(store: &Store) -> Option<GitStep> {
    let request = store
        .git_request((&project(), &shop()), 12)
        .await
        .unwrap()?;
    let (up, sha, owed) = (true, request.event.sha.clone(), false);
    Some(request.step(Settled { up, sha, owed }))
}

async fn tell(store: &Store, delivery: &str, event: Event, seconds: i64) -> TakenIn {
    let of = (&project(), &shop());
    let taken = store.take_in(of, delivery, event, at(seconds)).await;
    taken.unwrap()
}

async fn told(store: &Store, delivery: &str, event: Event, seconds: i64) -> GitRequest {
    match tell(store, delivery, event, seconds).await {
        TakenIn::New(request) => *request,
        other @ (TakenIn::Repeated | TakenIn::Older(_)) => panic!("{other:?}"),
    }
}

async fn waiting(store: &Store, seconds: i64) -> Vec<GitRequest> {
    store.due_git_requests(10, at(seconds)).await.unwrap()
}

async fn settle(store: &Store, request: &GitRequest, end: GitEnd, seconds: i64) -> bool {
    let settled = store.settle_git_request(request, end, "said".to_owned(), at(seconds));
    settled.await.unwrap()
}

pub(crate) async fn what_is_told_twice_or_late_changes_nothing(store: &Store) {
    let first = told(store, "one", event(10, 'a'), 10).await;
    assert_eq!((first.version, first.state), (1, GitState::Waiting));
    let again = tell(store, "one", event(99, 'f'), 11).await;
    assert_eq!(again, TakenIn::Repeated);
    let late = tell(store, "two", event(9, 'f'), 12).await;
    assert!(matches!(late, TakenIn::Older(_)), "{late:?}");
    let next = Event {
        author: Some("ana".to_owned()),
        before: Some(sha('a')),
        ..event(10, 'b')
    };
    let second = told(store, "three", next, 13).await;
    assert_eq!(second.version, 2);
    let before = tell(store, "four", event(10, 'a'), 14).await;
    assert!(matches!(before, TakenIn::Older(_)), "of the same second");
    let unnamed = told(store, "five", event(11, 'c'), 15).await;
    assert_eq!(unnamed.event.author.as_deref(), Some("ana"), "it is known");
    let other = (&name("other"), &shop());
    let elsewhere = store.take_in(other, "one", event(10, 'a'), at(16)).await;
    assert!(matches!(elsewhere.unwrap(), TakenIn::New(_)));
}

pub(crate) async fn what_was_made_of_an_earlier_state_is_not_said_of_a_later(store: &Store) {
    let first = told(store, "one", event(10, 'a'), 10).await;
    let second = told(store, "two", event(11, 'b'), 11).await;
    let up = |request: &GitRequest| {
        let sha = request.event.sha.clone();
        GitEnd::Settled(Some(Settled {
            up: true,
            sha,
            owed: false,
        }))
    };
    assert!(!settle(store, &first, up(&first), 12).await);
    assert_eq!(waiting(store, 12).await.len(), 1);
    assert!(settle(store, &second, up(&second), 12).await);
    assert_eq!(waiting(store, 12).await, []);
    let of = (&project(), &shop());
    let known = store.git_request(of, 12).await.unwrap().unwrap();
    assert_eq!(
        (known.state, known.said.as_str()),
        (GitState::Settled, "said")
    );
    assert_eq!(known.settled.unwrap().sha, sha('b'));
    let third = told(store, "three", event(12, 'c'), 13).await;
    assert_eq!(third.settled.as_ref().unwrap().sha, sha('b'), "it is kept");
    assert!(settle(store, &third, GitEnd::Again(at(50)), 14).await);
    assert_eq!(waiting(store, 49).await, []);
    let next = store.next_git_request(at(14)).await.unwrap();
    assert_eq!(next, Some(at(50)));
    let again = waiting(store, 50).await.remove(0);
    assert_eq!((again.tries, again.settled.is_some()), (1, true));
    assert!(settle(store, &again, GitEnd::Failed, 51).await);
    assert_eq!(waiting(store, 99).await, []);
}

pub(crate) async fn requests_of_one_project_keep_none_of_another_behind(store: &Store) {
    for number in 1..=3 {
        let request = Event {
            request: number,
            ..event(10, 'a')
        };
        told(store, &number.to_string(), request, 10).await;
    }
    let other = (&name("other"), &shop());
    let taken = store.take_in(other, "one", event(11, 'a'), at(11)).await;
    assert!(matches!(taken.unwrap(), TakenIn::New(_)));
    let due = store.due_git_requests(2, at(20)).await.unwrap();
    let whose: Vec<_> = due.iter().map(|one| one.project.to_string()).collect();
    assert_eq!(whose, ["default", "default", "other"]);
}

pub(crate) async fn a_request_waits_while_its_environment_is_busy_or_rests(store: &Store) {
    settle_in(store, settings()).await;
    told(store, "one", event(10, 'a'), 10).await;
    let mut coming = draft(store, &project(), "basket", &["image.tag=v1"]).await;
    (coming.origin, coming.step) = (Some(origin(false)), step(store).await);
    let begun = store.create_environment(coming, at(10)).await.unwrap();
    assert_eq!(waiting(store, 11).await, [], "it is made");
    work(store, 12).await;
    look_at_all(store, 0, 12).await;
    let request = waiting(store, 13).await.remove(0);
    assert_eq!(request.environment, Some(begun.environment));
    let row = store.environment_by_id(begun.environment).await.unwrap();
    assert_eq!(row.unwrap().origin, Some(origin(false)));

    begin(store, "basket", Deed::Archive, 14).await.unwrap();
    work(store, 15).await;
    look_at_all(store, 0, 15).await;
    assert!(settle(store, &request, GitEnd::Held, 16).await);
    assert_eq!(waiting(store, 99).await, []);
    begin(store, "basket", Deed::Restore, 17).await.unwrap();
    assert_eq!(waiting(store, 18).await, [], "it is brought back");
    work(store, 19).await;
    assert_eq!(waiting(store, 20).await.len(), 1);
}

pub(crate) async fn an_environment_of_a_fork_has_no_secrets(store: &Store) {
    settle_in(store, settings()).await;
    told(store, "one", event(10, 'a'), 10).await;
    let mut secret = draft(store, &project(), "basket", &["password"]).await;
    let key = model::sealed::KeyId::from_digest([7; 16]);
    let wrapped = model::sealed::Wrapped {
        id: key,
        by: "master".to_owned(),
        text: "wrapped".to_owned(),
    };
    let used = store.use_seal_key(wrapped, true, "root".into(), at(0));
    used.await.unwrap();
    secret.sealed = vec![crate::habitat::sealed_for(
        secret.id, "password", key, "noise",
    )];
    (secret.origin, secret.step) = (Some(origin(true)), step(store).await);
    let refused = store.create_environment(secret.clone(), at(10)).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the application setting `password` is secret, and the environment is of a fork"
    );
    secret.origin = Some(origin(false));
    store.create_environment(secret, at(10)).await.unwrap();
    work(store, 11).await;

    let mut plain = draft(store, &project(), "theirs", &["image.tag=v1"]).await;
    plain.origin = Some(origin(true));
    store.create_environment(plain, at(12)).await.unwrap();
    work(store, 13).await;
    let theirs = show(store, "theirs").await;
    let mut update = crate::habitat::action("theirs", Deed::Update);
    update.edits = Some(crate::habitat::edits(&["password"]));
    update.sealed = vec![crate::habitat::sealed_for(
        theirs.id, "password", key, "noise",
    )];
    let refused = store.begin_action(update, at(14)).await;
    assert!(matches!(refused, Err(EnvironmentError::Fork { .. })));
    let of = (&project(), &shop());
    let request = store.git_request(of, 12).await.unwrap().unwrap();
    let first = show(store, "basket").await;
    assert_eq!(
        request.environment,
        Some(first.id),
        "a copy does not follow"
    );
    let mut gone = crate::habitat::action("basket", Deed::Delete);
    gone.force = true;
    store.begin_action(gone, at(20)).await.unwrap();
    let mut copy = draft(store, &project(), "copy", &["image.tag=v1"]).await;
    copy.origin = Some(origin(true));
    store.create_environment(copy, at(21)).await.unwrap();
    let request = store.git_request(of, 12).await.unwrap().unwrap();
    assert_eq!(request.environment, Some(first.id), "nor when that is gone");
}

pub(crate) async fn what_is_done_for_a_request_is_written_down_with_it_or_not_done(store: &Store) {
    settle_in(store, settings()).await;
    let opened = told(store, "one", event(10, 'a'), 10).await;
    let mut coming = draft(store, &project(), "basket", &["image.tag=v1"]).await;
    (coming.origin, coming.step) = (Some(origin(false)), step(store).await);
    store.create_environment(coming, at(10)).await.unwrap();
    work(store, 11).await;
    look_at_all(store, 0, 12).await;
    let sha = opened.event.sha.clone();
    let down = |request: &GitRequest| {
        request.step(Settled {
            up: false,
            sha: sha.clone(),
            owed: false,
        })
    };
    let mut archive = crate::habitat::action("basket", Deed::Archive);
    archive.step = Some(down(&opened));
    let closed = Event {
        open: false,
        ..event(20, 'a')
    };
    let closed = told(store, "two", closed, 20).await;
    let late = store.begin_action(archive.clone(), at(21)).await;
    assert!(matches!(late, Err(EnvironmentError::Overtaken)));
    assert!(show(store, "basket").await.busy.is_none(), "it is not done");
    archive.step = Some(down(&closed));
    store.begin_action(archive, at(22)).await.unwrap();
    // Opened again before anybody has written more down.
    told(store, "three", event(30, 'a'), 30).await;
    assert!(!settle(store, &closed, GitEnd::Settled(None), 31).await);
    let of = (&project(), &shop());
    let request = store.git_request(of, 12).await.unwrap().unwrap();
    assert_eq!(
        (request.state, request.settled.unwrap().up),
        (GitState::Waiting, false),
        "it is known to rest because of the request"
    );
}

pub(crate) async fn requests_of_which_nothing_is_heard_are_swept(store: &Store) {
    settle_in(store, settings()).await;
    let month = Duration::from_hours(24 * 31);
    let request = told(store, "one", event(10, 'a'), 10).await;
    settle(store, &request, GitEnd::Settled(None), 11).await;
    create(store, "other", 11).await;
    store.sweep(at(20)).await.unwrap();
    let of = (&project(), &shop());
    assert!(store.git_request(of, 12).await.unwrap().is_some());
    store.sweep(at(20).plus(month)).await.unwrap();
    assert_eq!(store.git_request(of, 12).await.unwrap(), None);
    told(store, "one", event(10, 'a'), 21).await;
}

/// What waits to be told to the source: environment, occasion, and what it says.
async fn reported(store: &Store, seconds: i64) -> String {
    let mut picture = String::new();
    loop {
        let claims = store.claim_deliveries("w", 100, Duration::from_secs(30), at(seconds));
        let claims = claims.await.unwrap();
        if claims.is_empty() {
            return picture;
        }
        for claim in claims {
            if claim.kind == "git" {
                let said: serde_json::Value = serde_json::from_str(&claim.document).unwrap();
                let (verdict, line) = (&said["verdict"], &said["description"]);
                let sha = &said["sha"].as_str().unwrap()[..3];
                picture.push_str(&format!("{sha} {verdict} {line} {}\n", said["url"]));
            }
            let end = store::DeliveryEnd::Delivered {
                said: String::new(),
            };
            let recorded = store.record_delivery(&claim, end, at(seconds)).await;
            assert_eq!(recorded.unwrap(), store::Recorded::Yes);
        }
    }
}

/// Settings with a source that is told.
fn telling() -> Settings {
    let source = r#"{"name":"shop","service":"github","repository":"acme/shop",
        "secret":{"name":"git","key":"hook"},
        "report":{"api":"https://git.example.org","token":{"name":"git","key":"token"}}}"#;
    Settings {
        sources: vec![serde_json::from_str(source).unwrap()],
        ..settings()
    }
}

/// Begins something with an environment of the request, at that commit.
async fn push(store: &Store, deed: Deed, digit: char, seconds: i64) -> ActionId {
    let mut pushed = crate::habitat::action("basket", deed);
    pushed.origin = Some(Origin {
        sha: sha(digit),
        ..origin(false)
    });
    let begun = store.begin_action(pushed, at(seconds)).await.unwrap();
    begun.action
}

pub(crate) async fn what_was_called_off_was_not_deployed(store: &Store) {
    settle_in(store, telling()).await;
    told(store, "one", event(10, 'a'), 10).await;
    let mut coming = draft(store, &project(), "basket", &["image.tag=v1"]).await;
    (coming.origin, coming.step) = (Some(origin(false)), step(store).await);
    let made = store.create_environment(coming.clone(), at(10)).await;
    let own = project();
    let cancel = |action, seconds| store.cancel_action(&own, action, "bob".into(), at(seconds));
    cancel(made.unwrap().action, 11).await.unwrap();
    let mut picture = reported(store, 12).await;
    coming.id = store.environment_to_be(&own, &coming.name).await.unwrap();
    store.create_environment(coming, at(13)).await.unwrap();
    work(store, 14).await;
    look_at_all(store, 0, 14).await;
    let commit = async || show(store, "basket").await.origin.unwrap().sha;

    let pushed = push(store, Deed::Update, 'b', 20).await;
    assert_eq!(commit().await, sha('b'));
    picture.push_str(&reported(store, 21).await);
    assert_eq!(cancel(pushed, 22).await.unwrap(), Cancelled::AtOnce);
    assert_eq!(commit().await, sha('a'), "it is as it was");
    picture.push_str(&reported(store, 23).await);
    // So is one that rests.
    begin(store, "basket", Deed::Archive, 30).await.unwrap();
    work(store, 31).await;
    look_at_all(store, 0, 31).await;
    let pushed = push(store, Deed::Restore, 'a', 40).await;
    picture.push_str(&reported(store, 41).await);
    cancel(pushed, 42).await.unwrap();
    picture.push_str(&reported(store, 43).await);
    expect_test::expect![[r#"
        aaa "pending" "basket is create-pending" null
        aaa "failure" "what was to be done to basket was cancelled" null
        aaa "pending" "basket is create-pending" null
        aaa "success" "basket is running" null
        bbb "pending" "basket is update-pending" null
        bbb "failure" "what was to be done to basket was cancelled" null
        aaa "success" "basket is running" null
        aaa "pending" "basket is create-pending" null
        aaa "failure" "what was to be done to basket was cancelled" null
    "#]]
    .assert_eq(&picture);
}

pub(crate) async fn a_service_is_told_how_the_environment_of_a_commit_is(store: &Store) {
    settle_in(store, telling()).await;
    let request = told(store, "one", event(10, 'a'), 10).await;
    let mut coming = draft(store, &project(), "basket", &["image.tag=v1"]).await;
    (coming.origin, coming.step) = (Some(origin(false)), step(store).await);
    store.create_environment(coming, at(10)).await.unwrap();
    let mut picture = reported(store, 10).await;
    work(store, 11).await;
    look_at_all(store, 0, 11).await;
    picture.push_str(&reported(store, 12).await);
    push(store, Deed::Update, 'b', 13).await;
    picture.push_str(&reported(store, 13).await);
    let claim = crate::habitat::claim(store, 14).await.remove(0);
    let ended = crate::habitat::finish(store, &claim, store::ActionEnded::Failed, 14).await;
    assert_eq!(ended, store::Recorded::Yes);
    picture.push_str(&reported(store, 15).await);
    look_at_all(store, 0, 15).await;
    picture.push_str(&reported(store, 16).await);
    begin(store, "basket", Deed::Archive, 17).await.unwrap();
    picture.push_str(&reported(store, 18).await);
    assert!(settle(store, &request, GitEnd::Failed, 19).await);
    picture.push_str(&reported(store, 20).await);
    // One that was made by hand is told to nobody.
    create(store, "lemon", 21).await;
    picture.push_str(&reported(store, 22).await);
    expect_test::expect![[r#"
        aaa "pending" "basket is create-pending" null
        aaa "success" "basket is running" null
        bbb "pending" "basket is update-pending" null
        bbb "failure" "what was done to basket failed" null
        bbb "failure" "basket is running, but what was done to it failed" null
        aaa "failure" "said" null
    "#]]
    .assert_eq(&picture);
}
