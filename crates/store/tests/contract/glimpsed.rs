//! Looks at environments, and lists of them.

use crate::fixture::{at, events, name, project};
use crate::habitat::{
    action, begin, called, changes, claim, create, draft, due, look, look_at_all, running,
    settings, settle_in, show, status, work,
};
use expect_test::expect;
use model::environment::status::{Deed, Failure, Look, Seen, Status};
use std::collections::{BTreeMap, BTreeSet};
use store::{
    About, ActionDraft, EnvironmentFilter, EnvironmentOrder, LookRecord, LookRoom, LooksRecorded,
    Page, Quota, Store,
};

const fn recorded(unchanged: usize, changed: usize, dropped: usize) -> LooksRecorded {
    LooksRecorded {
        unchanged,
        changed,
        dropped,
    }
}

pub(crate) async fn whoever_is_due_is_looked_at_by_one(store: &Store) {
    settle_in(store, settings()).await;
    create(store, "orange", 1).await;
    create(store, "lemon", 1).await;
    assert_eq!(due(store, 2).await.len(), 0, "they are busy");
    work(store, 3).await;
    let first = store.due_checks(1, at(4)).await.unwrap();
    assert_eq!(first.settings, BTreeMap::from([(project(), settings())]));
    let second = due(store, 4).await;
    assert_eq!((first.checks.len(), second.len()), (1, 1));
    assert_ne!(first.checks[0].id, second[0].id);
    assert_eq!(
        (second[0].look, second[0].status),
        (Look::Up, Status::CreatePending)
    );
    assert_eq!(due(store, 5).await.len(), 0, "both are being looked at");
    let looks = vec![look(&second[0], Some(0), 20)];
    assert_eq!(
        store.record_looks(looks, at(6)).await.unwrap(),
        recorded(0, 1, 0)
    );
    assert_eq!(store.next_check().await.unwrap(), Some(at(20)));
    // Whoever took the other fell silent: somebody else looks, and who comes late is dropped.
    let held = first.checks[0].held;
    let later = held.since(at(0)).as_secs();
    let again = due(store, i64::try_from(later).unwrap()).await;
    assert_eq!(again.len(), 2);
    let late = vec![look(&first.checks[0], Some(0), 999)];
    assert_eq!(
        store.record_looks(late, held).await.unwrap(),
        recorded(0, 0, 1)
    );
}

pub(crate) async fn of_several_projects_each_has_its_share_of_looks(store: &Store) {
    settle_in(store, settings()).await;
    for number in 0..6 {
        running(store, &format!("many{number}"), 1).await;
    }
    let shop = name("shop");
    let put = store.put_project(&shop, Quota::default(), "root".into(), at(0));
    put.await.unwrap();
    let put = store.put_environment_settings(&shop, settings(), "root".into(), at(0));
    put.await.unwrap();
    let few = draft(store, &shop, "few", &[]).await;
    store.create_environment(few, at(2)).await.unwrap();
    work(store, 90).await;
    let many0 = show(store, "many0").await.id;
    let mut room = LookRoom::default();
    (room.usual.most, room.slow.most) = (4, 2);
    room.apart.insert(many0);
    let mut told = String::new();
    for _ in 0..3 {
        let due = store
            .due_checks_within(room.clone(), at(100))
            .await
            .unwrap();
        let mut counts = [0; 3];
        for check in due.checks {
            let (count, places) = match (check.id == many0, check.project == shop) {
                (true, _) => (0, &mut room.slow),
                (_, true) => (1, &mut room.usual),
                _ => (2, &mut room.usual),
            };
            counts[count] += 1;
            *places.taken.entry(check.project).or_default() += 1;
        }
        told += &format!("{counts:?}");
    }
    assert_eq!(told, "[1, 0, 2][0, 1, 0][0, 0, 0]");
    let left = async || store.looked_after([many0].into()).await.unwrap();
    assert_eq!(left().await, [many0].into());
    let gone = ActionDraft {
        force: true,
        ..action("many0", Deed::Delete)
    };
    store.begin_action(gone, at(101)).await.unwrap();
    assert_eq!(left().await, BTreeSet::new());
}

pub(crate) async fn what_was_seen_before_something_began_is_dropped(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    let before = due(store, 20).await.remove(0);
    begin(store, "orange", Deed::Update, 21).await.unwrap();
    let late = |exit| vec![look(&before, Some(exit), 40)];
    assert_eq!(
        store.record_looks(late(1), at(22)).await.unwrap(),
        recorded(0, 0, 1)
    );
    assert_eq!(status(store, "orange").await, "update-pending");
    assert_eq!(
        due(store, 999).await.len(),
        0,
        "nobody looks while it is busy"
    );
    work(store, 1000).await;
    assert_eq!(
        store.record_looks(late(0), at(1001)).await.unwrap(),
        recorded(0, 0, 1)
    );
    assert_eq!(status(store, "orange").await, "update-pending");
    // Nor does it count what was seen of one that is gone.
    let last = due(store, 1001).await.remove(0);
    let gone = store::ActionDraft {
        force: true,
        ..crate::habitat::action("orange", Deed::Delete)
    };
    store.begin_action(gone, at(1002)).await.unwrap();
    let looks = vec![look(&last, Some(0), 1020)];
    assert_eq!(
        store.record_looks(looks, at(1003)).await.unwrap(),
        recorded(0, 0, 1)
    );
}

pub(crate) async fn what_people_say_of_one_meanwhile_does_not_keep_looks_away(store: &Store) {
    settle_in(store, settings()).await;
    let row = running(store, "orange", 1).await;
    let said = |team: &str, seconds| {
        let labels = BTreeMap::from([("team".to_owned(), team.to_owned())]);
        let about = About {
            labels,
            ..About::default()
        };
        let of = (project(), called("orange"));
        async move {
            let of = (&of.0, &of.1);
            let said = store.amend_environment(of, None, about, "ana".into(), at(seconds));
            said.await.unwrap()
        }
    };
    let check = due(store, 20).await.remove(0);
    assert_eq!(said("web", 21).await, row.generation + 1);
    let looks = vec![look(&check, Some(0), 36)];
    assert_eq!(
        store.record_looks(looks, at(22)).await.unwrap(),
        recorded(1, 0, 0)
    );
    assert_eq!(store.next_check().await.unwrap(), Some(at(36)));
    let check = due(store, 36).await.remove(0);
    said("data", 37).await;
    let looks = vec![look(&check, Some(1), 52)];
    assert_eq!(
        store.record_looks(looks, at(38)).await.unwrap(),
        recorded(0, 1, 0)
    );
    assert_eq!(status(store, "orange").await, "failure");
    assert_eq!(store.next_check().await.unwrap(), Some(at(52)));
}

pub(crate) async fn an_environment_becomes_what_is_seen(store: &Store) {
    settle_in(store, settings()).await;
    let row = running(store, "orange", 1).await;
    assert_eq!(look_at_all(store, 0, 20).await, recorded(1, 0, 0));
    let unchanged = show(store, "orange").await;
    assert_eq!(
        (unchanged.updated_at, unchanged.since),
        (row.updated_at, row.since)
    );
    let checked = unchanged.checked.unwrap();
    assert_eq!((checked.at, checked.seen), (at(20), Some(Seen::Good)));
    assert_eq!(look_at_all(store, 2, 40).await, recorded(0, 1, 0));
    assert_eq!(look_at_all(store, 2, 60).await, recorded(1, 0, 0));
    let partial = show(store, "orange").await;
    assert_eq!(
        (partial.status, partial.since),
        (Status::Failure(Failure::Partial), at(40))
    );
    let checked = partial.checked.unwrap();
    assert_eq!(
        (checked.at, checked.said.as_str()),
        (at(60), "exit Some(2)")
    );
    assert_eq!(look_at_all(store, 0, 80).await, recorded(0, 1, 0));
    expect![[r"
        partial-failure → running: a look found it as it should be: exit Some(0)
        running → partial-failure: a look found it otherwise: exit Some(2)
        create-pending → running: a look found it as it should be: exit Some(0)
        - → create-pending: ana asked for it
    "]]
    .assert_eq(&changes(store, row.id).await);
}

pub(crate) async fn that_something_runs_which_should_rest_is_told_once(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    begin(store, "orange", Deed::Archive, 10).await.unwrap();
    work(store, 10).await;
    for (exit, seconds) in [(0, 20), (0, 40), (1, 60), (1, 80), (0, 100), (1, 120)] {
        look_at_all(store, exit, seconds).await;
        assert_eq!(status(store, "orange").await, "archived");
    }
    let all = events(store).await;
    let told: Vec<_> = all
        .lines()
        .filter(|line| line.contains("not-at-rest"))
        .collect();
    assert_eq!(told.len(), 2, "{all}");
    assert!(
        told[0].contains("archived, and a look found it otherwise: exit Some(1)"),
        "{all}"
    );
}

pub(crate) async fn one_that_nobody_can_look_at_is_told_so(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    create(store, "lemon", 1).await;
    work(store, 1).await;
    let blind = |seconds| async move {
        let looks = due(store, seconds).await;
        let looks = looks.iter().map(|check| LookRecord {
            seen: None,
            said: "the defaults could not be read".to_owned(),
            ..look(check, None, seconds + 15)
        });
        store
            .record_looks(looks.collect(), at(seconds))
            .await
            .unwrap()
    };
    assert_eq!(blind(20).await, recorded(2, 0, 0));
    let row = show(store, "orange").await;
    assert_eq!(row.status, Status::Running);
    let checked = row.checked.unwrap();
    assert_eq!(
        (checked.seen, checked.unseen_since, checked.said.as_str()),
        (
            Some(Seen::Good),
            Some(at(20)),
            "the defaults could not be read"
        )
    );
    assert_eq!(blind(1000).await, recorded(1, 1, 0));
    let checked = show(store, "orange").await.checked.unwrap();
    assert_eq!((checked.at, checked.unseen_since), (at(1000), Some(at(20))));
    assert_eq!(status(store, "orange").await, "running");
    assert_eq!(status(store, "lemon").await, "failure");
    look_at_all(store, 0, 2000).await;
    let checked = show(store, "orange").await.checked.unwrap();
    assert_eq!(checked.unseen_since, None);
    let all = events(store).await;
    let told = |what: &str| {
        let of_orange = |line: &&str| line.contains(what) && line.contains("orange");
        all.lines().filter(of_orange).count()
    };
    let both = (told("environment.unseen"), told("environment.seen"));
    assert_eq!(both, (1, 1), "{all}");
}

pub(crate) async fn a_look_that_sees_nothing_makes_no_news_of_what_was_seen(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    begin(store, "orange", Deed::Archive, 10).await.unwrap();
    work(store, 10).await;
    look_at_all(store, 0, 20).await;
    look_at_all(store, 1, 40).await;
    let looks = due(store, 60).await;
    let looks = looks.iter().map(|check| LookRecord {
        seen: None,
        said: "no memory".to_owned(),
        ..look(check, None, 75)
    });
    store.record_looks(looks.collect(), at(60)).await.unwrap();
    look_at_all(store, 1, 80).await;
    let all = events(store).await;
    let told = all.lines().filter(|line| line.contains("not-at-rest"));
    assert_eq!(told.count(), 1, "{all}");
}

pub(crate) async fn only_the_newest_changes_are_kept(store: &Store) {
    settle_in(store, settings()).await;
    let row = running(store, "orange", 1).await;
    for round in 0..205 {
        look_at_all(store, i32::from(round % 2 == 0), 100 + round * 20).await;
    }
    let (mut kept, mut page) = (
        0,
        Page {
            limit: 90,
            after: None,
        },
    );
    loop {
        let part = store
            .environment_changes(row.id, page.clone())
            .await
            .unwrap();
        kept += part.items.len();
        page.after = part.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!(kept, 200);
}

/// Environments with something of everything.
async fn populated(store: &Store) {
    settle_in(store, settings()).await;
    for (called, owner, team, tier) in [
        ("apple", "Ana", "web", "gold"),
        ("berry", "bob", "web", "tin"),
        ("cherry", "bob", "data", "gold"),
        ("date", "", "", ""),
    ] {
        let mut coming = draft(store, &project(), called, &[]).await;
        let labels = [("team", team), ("tier", tier)].into_iter();
        let labels = labels.filter(|(_, value)| !value.is_empty());
        coming.about = About {
            owner: owner.to_owned(),
            labels: labels
                .map(|(label, value)| (label.to_owned(), value.to_owned()))
                .collect(),
            ..About::default()
        };
        store.create_environment(coming, at(1)).await.unwrap();
    }
    work(store, 2).await;
    let looks = due(store, 3).await;
    let looks = looks.iter().map(|check| {
        let exit = i32::from(check.name == called("cherry"));
        look(check, Some(exit), 100)
    });
    store.record_looks(looks.collect(), at(4)).await.unwrap();
    begin(store, "berry", Deed::Archive, 5).await.unwrap();
}

/// The names that a filter lets through, page by page.
async fn names(store: &Store, filter: EnvironmentFilter, order: EnvironmentOrder) -> String {
    let (own, mut names) = (project(), Vec::new());
    let mut page = Page {
        limit: 1,
        after: None,
    };
    loop {
        let listed = store.environments(&own, filter.clone(), order, page.clone());
        let listed = listed.await.unwrap();
        names.extend(listed.items.iter().map(|row| row.name.to_string()));
        page.after = listed.next;
        if page.after.is_none() {
            return names.join(" ");
        }
    }
}

pub(crate) async fn environments_are_listed_by_what_people_look_for(store: &Store) {
    populated(store).await;
    let by_name = |filter| names(store, filter, EnvironmentOrder::Name);
    let all = EnvironmentFilter::default;
    assert_eq!(by_name(all()).await, "apple berry cherry date");
    let is = |words: &[Status]| EnvironmentFilter {
        status: words.iter().copied().collect::<BTreeSet<_>>(),
        ..all()
    };
    assert_eq!(by_name(is(&[Status::Running])).await, "apple date");
    let several = is(&[Status::Running, Status::CreatePending]);
    assert_eq!(by_name(several).await, "apple cherry date");
    let archived = |archived| EnvironmentFilter {
        archived: Some(archived),
        ..all()
    };
    assert_eq!(by_name(archived(true)).await, "berry");
    assert_eq!(by_name(archived(false)).await, "apple cherry date");
    let owner = |owner: &str| EnvironmentFilter {
        owner: Some(owner.to_owned()),
        ..all()
    };
    assert_eq!(by_name(owner("bob")).await, "berry cherry");
    let labels = |labels: &[(&str, Option<&str>)]| EnvironmentFilter {
        labels: labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), value.map(str::to_owned)))
            .collect(),
        ..all()
    };
    assert_eq!(
        by_name(labels(&[("team", Some("web"))])).await,
        "apple berry"
    );
    assert_eq!(
        by_name(labels(&[("team", None)])).await,
        "apple berry cherry"
    );
    let both = labels(&[("team", Some("web")), ("tier", Some("gold"))]);
    assert_eq!(by_name(both).await, "apple");
    let text = |text: &str| EnvironmentFilter {
        text: Some(text.to_owned()),
        ..all()
    };
    assert_eq!(by_name(text("RR")).await, "berry cherry");
    assert_eq!(by_name(text("ana")).await, "apple", "owners are found, too");
    for nothing in ["%", "_", "!", "\\", "'"] {
        assert_eq!(by_name(text(nothing)).await, "", "{nothing}");
    }
    let mixed = EnvironmentFilter {
        text: Some("e".to_owned()),
        ..archived(false)
    };
    assert_eq!(by_name(mixed).await, "apple cherry date");
}

pub(crate) async fn environments_are_listed_by_their_last_change(store: &Store) {
    populated(store).await;
    let changed = names(
        store,
        EnvironmentFilter::default(),
        EnvironmentOrder::Changed,
    )
    .await;
    assert!(
        changed.starts_with("berry ") && changed.ends_with(" cherry"),
        "{changed}"
    );
    let web = EnvironmentFilter {
        labels: BTreeMap::from([("team".to_owned(), None)]),
        ..EnvironmentFilter::default()
    };
    let changed = names(store, web, EnvironmentOrder::Changed).await;
    assert_eq!(changed, "berry apple cherry");
    let counts = store.environment_counts(Some(&project())).await.unwrap();
    let expected = [
        (Status::Running, 2),
        (Status::CreatePending, 1),
        (Status::ArchivePending, 1),
    ];
    assert_eq!(counts, expected.into());
    assert_eq!(
        store.environment_counts(None).await.unwrap(),
        expected.into()
    );
    let row = show(store, "berry").await;
    let listed = store
        .environments(
            &project(),
            EnvironmentFilter::default(),
            EnvironmentOrder::Name,
            Page::default(),
        )
        .await
        .unwrap();
    let mut found = listed
        .items
        .into_iter()
        .find(|one| one.id == row.id)
        .unwrap();
    assert_eq!(
        found.busy.as_ref().map(|busy| busy.deed),
        Some(Deed::Archive)
    );
    // All but what the last look said.
    found.checked.clone_from(&row.checked);
    assert_eq!(found, row);
    assert_eq!(row.standing().busy, Some(Deed::Archive));
    let foreign = Page {
        limit: 1,
        after: Some("environments.apple".to_owned()),
    };
    let refused = store
        .environments(
            &project(),
            EnvironmentFilter::default(),
            EnvironmentOrder::Changed,
            foreign,
        )
        .await;
    assert_eq!(refused.unwrap_err().code(), "STORE-008");
    assert_eq!(claim(store, 6).await.len(), 1);
}
