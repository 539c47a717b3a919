//! Environments that are taken over from elsewhere, as they are.

use crate::fixture::{at, events, project};
use crate::habitat::{
    begin, called, changes, create, edits, settings, settle_in, show, status, work,
};
use expect_test::expect;
use model::environment::action::State;
use model::environment::config::Edit;
use model::environment::link::Link;
use model::environment::status::{Deed, Status};
use model::environment::taken::{Taken, TakenAction};
use model::time::Timestamp;
use std::time::Duration;
use store::{About, ActionRow, Page, Quota, Store, TakeOutcome, TookOver};

/// When all of it is taken over: long after it was made.
const NOW: i64 = 900_000;

const DAY: i64 = 24 * 60 * 60;

fn taken(name: &str, status: Status, actions: &[TakenAction]) -> Taken {
    let mut edits = edits(&["image.tag=v7"]);
    let removed = "ingress.enabled".parse().unwrap();
    edits.application.insert(removed, Edit::Removed);
    Taken {
        name: called(name),
        origin: format!("octopod/{name}"),
        status,
        since: at(300),
        created_at: at(100),
        updated_at: at(400),
        archived_at: (status == Status::Archived).then_some(at(300)),
        edits,
        links: vec![Link {
            name: "app".to_owned(),
            url: "https://orange.example.org".to_owned(),
        }],
        actions: actions.to_vec(),
    }
}

fn action(number: u64, deed: Deed, exit: i32) -> TakenAction {
    TakenAction {
        number,
        deed,
        author: "octopod".to_owned(),
        exit,
        ended_at: at(200 + i64::try_from(number).unwrap()),
        took: Duration::from_secs(5),
        edits: edits(&["image.tag=v6"]),
        stdout: "one\ntwo\n".to_owned(),
        stderr: "three".to_owned(),
    }
}

async fn take(store: &Store, taken: Vec<Taken>, now: Timestamp) -> Vec<TookOver> {
    let project = project();
    let took = store.take_environments(&project, taken, false, "root".into(), now);
    took.await.unwrap()
}

fn outcomes(took: &[TookOver]) -> String {
    let line = |took: &TookOver| format!("{} {:?} {}\n", took.name, took.outcome, took.actions);
    took.iter().map(line).collect()
}

async fn actions(store: &Store, name: &str) -> Vec<ActionRow> {
    let id = show(store, name).await.id;
    let page = Page {
        limit: 100,
        after: None,
    };
    store.actions(id, page).await.unwrap().items
}

pub(crate) async fn what_is_taken_over_is_as_it_was_and_is_looked_at(store: &Store) {
    settle_in(store, settings()).await;
    let log = [action(11, Deed::Create, 0), action(12, Deed::Update, 2)];
    let all = vec![
        taken("orange", Status::Running, &log),
        taken("lemon", Status::Archived, &[]),
        taken("lime", Status::UpdatePending, &[]),
        taken("fig", Status::CleanupFailed, &[]),
    ];
    let took = take(store, all, at(NOW)).await;
    expect![[r"
        orange Taken 2
        lemon Taken 0
        lime Taken 0
        fig Taken 0
    "]]
    .assert_eq(&outcomes(&took));
    let row = show(store, "orange").await;
    assert_eq!((row.status, row.since), (Status::Running, at(300)));
    assert_eq!((row.created_at, row.updated_at), (at(100), at(400)));
    assert_eq!((row.used_at, row.generation), (at(NOW), 1));
    assert_eq!((row.about.clone(), row.busy), (About::default(), None));
    assert!(row.failed, "its last action did");
    assert_eq!(row.edits, taken("orange", Status::Running, &[]).edits);
    assert_eq!(row.links.len(), 1);
    assert_eq!(status(store, "lime").await, "update-pending");
    assert_eq!(show(store, "lemon").await.archived_at, Some(at(300)));

    // Nothing is done, and everybody but one that needs a person is looked at before long.
    assert_eq!(store.next_action().await.unwrap(), None);
    let every = settings().patience.every;
    let looks = store.due_checks(10, at(NOW).plus(every)).await.unwrap();
    let mut names: Vec<_> = looks.checks.iter().map(|look| look.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["lemon", "lime", "orange"]);

    let told = events(store).await;
    let imported =
        "environment.imported environment/orange: running: taken over from octopod/orange";
    assert!(told.contains(imported), "{told}");
    let log = actions(store, "orange").await;
    let line = |row: &ActionRow| {
        let took = row.ended_at.unwrap().since(row.started_at.unwrap());
        let error = row.error.as_deref().unwrap_or("-");
        format!(
            "{} {} by {} exit {:?} took {took:?} {error} taken {}\n",
            row.deed, row.state, row.author, row.exit, row.taken
        )
    };
    expect![[r"
        update failed by octopod exit Some(2) took 5s its script exited with status 2 taken true
        create done by octopod exit Some(0) took 5s - taken true
    "]]
    .assert_eq(&log.iter().map(line).collect::<String>());
    let printed = store.action_output(&project(), log[0].id, 0, 10).await;
    let printed = printed.unwrap().unwrap();
    let printed: Vec<_> = printed.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(printed, ["one", "two", "three"]);
    let became = changes(store, row.id).await;
    assert!(
        became.contains("taken over from octopod/orange"),
        "{became}"
    );
}

pub(crate) async fn the_same_again_changes_nothing_and_what_broke_off_goes_on(store: &Store) {
    settle_in(store, settings()).await;
    let part = [action(11, Deed::Create, 1)];
    let whole = [
        action(11, Deed::Create, 1),
        action(12, Deed::Update, 0),
        action(15, Deed::Update, 0),
    ];
    let first = vec![taken("orange", Status::Running, &part)];
    assert_eq!(
        outcomes(&take(store, first.clone(), at(NOW)).await),
        "orange Taken 1\n"
    );
    let before = show(store, "orange").await;
    let (told, log) = (events(store).await, actions(store, "orange").await);
    assert_eq!(
        outcomes(&take(store, first, at(NOW + 1)).await),
        "orange Known 0\n"
    );
    assert_eq!(show(store, "orange").await, before);
    assert_eq!(events(store).await, told);
    assert_eq!(actions(store, "orange").await, log);

    // Also one that is told otherwise meanwhile stays as it has become here.
    let more = vec![taken("orange", Status::Archived, &whole)];
    assert_eq!(
        outcomes(&take(store, more.clone(), at(NOW + 2)).await),
        "orange Known 2\n"
    );
    assert_eq!(status(store, "orange").await, "running");
    assert!(
        !show(store, "orange").await.failed,
        "its last action did not"
    );
    assert_eq!(actions(store, "orange").await.len(), 3);
    assert_eq!(
        outcomes(&take(store, more, at(NOW + 3)).await),
        "orange Known 0\n"
    );

    // In pieces of one request, too.
    let pieces = vec![
        taken("lemon", Status::Running, &whole[..1]),
        taken("lemon", Status::Running, &whole[1..]),
    ];
    let took = take(store, pieces, at(NOW + 4)).await;
    assert_eq!(outcomes(&took), "lemon Taken 1\nlemon Known 2\n");
    assert_eq!(actions(store, "lemon").await.len(), 3);

    // It is an environment as any other.
    begin(store, "orange", Deed::Update, NOW + 5).await.unwrap();
    work(store, NOW + 6).await;
    let ended = actions(store, "orange").await;
    assert_eq!((ended[0].state, ended[0].taken), (State::Done, false));
}

pub(crate) async fn names_that_others_have_and_those_that_are_gone_are_left(store: &Store) {
    settle_in(store, settings()).await;
    create(store, "orange", 1).await;
    let all = || {
        vec![
            taken("orange", Status::Running, &[]),
            taken("lemon", Status::CleanupFailed, &[]),
        ]
    };
    let dry = store
        .take_environments(&project(), all(), true, "root".into(), at(NOW))
        .await
        .unwrap();
    let said = "orange Exists { status: CreatePending } 0\nlemon Taken 0\n";
    assert_eq!(outcomes(&dry), said);
    let there = store.environment(&project(), &called("lemon")).await;
    assert_eq!(there.unwrap(), None, "it was only tried");
    assert_eq!(outcomes(&take(store, all(), at(NOW)).await), said);
    begin(store, "lemon", Deed::Delete, NOW + 1).await.unwrap();
    let again = take(store, all(), at(NOW + 2)).await;
    assert_eq!(again[1].outcome, TakeOutcome::Gone);

    let quota = Quota {
        environments: Some(2),
        ..Quota::default()
    };
    store
        .put_project(&project(), quota, "root".into(), at(NOW + 3))
        .await
        .unwrap();
    let many = ["fig", "lime", "plum"].map(|name| taken(name, Status::Running, &[]));
    let took = take(store, many.to_vec(), at(NOW + 4)).await;
    expect![[r"
        fig Taken 0
        lime Quota { limit: 2 } 0
        plum Quota { limit: 2 } 0
    "]]
    .assert_eq(&outcomes(&took));
}

pub(crate) async fn an_old_log_is_kept_from_the_day_it_came(store: &Store) {
    settle_in(store, settings()).await;
    let long_ago = [action(1, Deed::Create, 0), action(2, Deed::Update, 0)];
    let later = at(400 * DAY);
    take(
        store,
        vec![taken("orange", Status::Running, &long_ago)],
        later,
    )
    .await;
    store
        .sweep(later.plus(Duration::from_hours(24)))
        .await
        .unwrap();
    let log = actions(store, "orange").await;
    assert_eq!(log.len(), 2);
    let printed = store.action_output(&project(), log[1].id, 0, 10).await;
    assert_eq!(printed.unwrap().unwrap().len(), 3);
    store
        .sweep(later.plus(Duration::from_hours(24 * 31)))
        .await
        .unwrap();
    assert_eq!(actions(store, "orange").await.len(), 1, "the newest stays");
}
