//! Environments that come and change, and what is refused.

use crate::fixture::{at, events, name, project};
use crate::habitat::{
    HERE, LEASE, action, begin, called, changes, claim, create, draft, edits, effective, finish,
    look_at_all, refused, running, sealed_for, settings, settle_in, show, status, work,
};
use crate::sealed::key;
use expect_test::expect;
use model::environment::action::State;
use model::environment::status::{Deed, Status};
use model::sealed::Owner;
use std::collections::BTreeMap;
use store::{
    About, ActionDraft, ActionEnded, Cancelled, EnvironmentError, Page, Quota, Recorded, Store,
};

/// What was done to environments: who, what, to which, and a sentence.
async fn audited(store: &Store) -> String {
    let entries = store.audit_after(0, 1000).await.unwrap().into_iter();
    let entries = entries.filter(|entry| entry.action.starts_with("environment."));
    entries
        .map(|entry| {
            let was = entry.was.map_or("-".to_owned(), |was| was.to_string());
            let became = entry
                .became
                .map_or("-".to_owned(), |became| became.to_string());
            format!(
                "{} {} {} {was}→{became} {}\n",
                entry.actor, entry.action, entry.object, entry.detail
            )
        })
        .collect()
}

pub(crate) async fn a_project_says_how_its_environments_are_made(store: &Store) {
    assert_eq!(store.environment_settings(&project()).await.unwrap(), None);
    let draft = draft(store, &project(), "orange", &[]).await;
    let none = store.create_environment(draft, at(1)).await;
    assert_eq!(
        refused(none),
        "project `default` has no settings for environments"
    );
    let put = |of, settings, seconds| {
        store.put_environment_settings(of, settings, "root".into(), at(seconds))
    };
    let (own, nowhere) = (project(), name("nowhere"));
    let none = put(&nowhere, settings(), 1).await;
    assert_eq!(refused(none), "there is no project `nowhere`");
    assert_eq!(put(&own, settings(), 1).await.unwrap(), 1);
    let other = model::environment::settings::Settings {
        up_max: Some(3),
        ..settings()
    };
    assert_eq!(put(&own, other.clone(), 2).await.unwrap(), 2);
    let row = store
        .environment_settings(&project())
        .await
        .unwrap()
        .unwrap();
    assert_eq!((row.settings, row.version), (other, 2));
    assert_eq!((row.updated_by.as_str(), row.updated_at), ("root", at(2)));
    expect![[r"
        root environment.settings project/default -→1 scripts in /scripts
        root environment.settings project/default 1→2 scripts in /scripts
    "]]
    .assert_eq(&audited(store).await);
}

pub(crate) async fn an_environment_comes_with_its_first_action(store: &Store) {
    settle_in(store, settings()).await;
    let mut coming = draft(store, &project(), "orange", &["image.tag=v1"]).await;
    coming.about = About {
        owner: "ana".to_owned(),
        labels: BTreeMap::from([("team".to_owned(), "web".to_owned())]),
        notes: "for the fair".to_owned(),
        protected: true,
        expires_at: Some(at(900)),
    };
    let about = coming.about.clone();
    let begun = store
        .create_environment(coming.clone(), at(1))
        .await
        .unwrap();
    assert_eq!((begun.environment, begun.generation), (coming.id, 1));
    assert_eq!(begun.state, State::Waiting);
    let row = show(store, "orange").await;
    assert_eq!(
        (row.id, row.status, row.since),
        (coming.id, Status::CreatePending, at(1))
    );
    assert_eq!((&row.about, &row.edits), (&about, &coming.edits));
    assert_eq!(
        (row.created_at, row.updated_at, row.failed),
        (at(1), at(1), false)
    );
    let busy = row.busy.unwrap();
    assert_eq!(
        (busy.action, busy.deed, busy.state),
        (begun.action, Deed::Create, State::Waiting)
    );
    let action = store
        .action(&project(), begun.action)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (action.edits, action.effective),
        (coming.edits.clone(), coming.effective.clone())
    );
    assert_eq!(
        (action.settings, action.author.as_str()),
        (settings(), "ana")
    );
    assert_eq!(
        store.action(&name("shop"), begun.action).await.unwrap(),
        None
    );

    // The name is taken, whoever asks, and for as long as it is there.
    let again = draft(store, &project(), "orange", &[]).await;
    let again = store.create_environment(again, at(2)).await;
    assert_eq!(
        refused(again),
        "environment `orange` exists already, and is create-pending"
    );
    expect![[r"
        environment.settings project/default: root changed what environments are made with
        environment.created environment/orange: create-pending: ana asked for it
    "]]
    .assert_eq(&without_actions(&events(store).await));
    expect![[r"
        root environment.settings project/default -→1 scripts in /scripts
        ana environment.create environment/orange -→1 set application image.tag
    "]]
    .assert_eq(&audited(store).await);
}

/// Events of environments alone.
fn without_actions(events: &str) -> String {
    let lines = events.lines().filter(|line| !line.starts_with("action."));
    lines.map(|line| format!("{line}\n")).collect()
}

pub(crate) async fn what_may_not_be_done_now_is_refused_and_changes_nothing(store: &Store) {
    settle_in(store, settings()).await;
    let nobody = begin(store, "orange", Deed::Update, 1).await;
    assert_eq!(refused(nobody), "there is no environment `orange`");
    create(store, "orange", 1).await;
    let before = show(store, "orange").await;
    for deed in Deed::ALL {
        let busy = begin(store, "orange", deed, 2).await;
        assert_eq!(refused(busy), "it is busy: create is under way");
    }
    assert_eq!(show(store, "orange").await, before);
    work(store, 3).await;
    let stale = ActionDraft {
        generation: Some(7),
        ..action("orange", Deed::Update)
    };
    let stale = store.begin_action(stale, at(4)).await;
    assert_eq!(refused(stale), "it has generation 1, and not 7");
    let early = begin(store, "orange", Deed::Restore, 4).await;
    assert_eq!(
        refused(early),
        "restore is not possible while it is create-pending"
    );
    let count = store.audit_after(0, 1000).await.unwrap().len();
    assert_eq!(count, 2, "what is refused leaves no entry");
}

pub(crate) async fn an_update_and_what_is_said_of_it_come_together_or_not_at_all(store: &Store) {
    settle_in(store, settings()).await;
    let before = running(store, "orange", 1).await;
    let about = About {
        owner: "bob".to_owned(),
        ..before.about.clone()
    };
    let update = |generation| ActionDraft {
        generation: Some(generation),
        edits: Some(edits(&["image.tag=v2"])),
        ..action("orange", Deed::Update)
    };
    let stale = store.change_environment(update(7), about.clone(), at(20));
    assert_eq!(refused(stale.await), "it has generation 1, and not 7");
    let unsealed = ActionDraft {
        edits: Some(edits(&["password"])),
        ..update(before.generation)
    };
    let unsealed = store.change_environment(unsealed, about.clone(), at(20));
    assert_eq!(
        refused(unsealed.await),
        "the application setting `password` is secret and has no value"
    );
    assert_eq!(show(store, "orange").await, before);
    let begun = store.change_environment(update(before.generation), about.clone(), at(20));
    let begun = begun.await.unwrap();
    let row = show(store, "orange").await;
    assert_eq!((&row.about, row.generation), (&about, begun.generation));
    assert_eq!(
        (row.status, row.edits),
        (Status::UpdatePending, edits(&["image.tag=v2"]))
    );
    let busy = store.change_environment(update(begun.generation), before.about, at(21));
    assert_eq!(refused(busy.await), "it is busy: update is under way");
    assert_eq!(show(store, "orange").await.about, about);
}

pub(crate) async fn an_update_brings_its_edits_and_a_new_generation(store: &Store) {
    settle_in(store, settings()).await;
    let before = running(store, "orange", 1).await;
    let new = edits(&["image.tag=v2", "replicas=3"]);
    let update = ActionDraft {
        generation: Some(before.generation),
        edits: Some(new.clone()),
        effective: effective(&new),
        ..action("orange", Deed::Update)
    };
    let begun = store.begin_action(update, at(20)).await.unwrap();
    assert_eq!(begun.generation, before.generation + 1);
    let row = show(store, "orange").await;
    assert_eq!(
        (row.status, row.since, row.edits),
        (Status::UpdatePending, at(20), new)
    );
    let recorded = store
        .action(&project(), begun.action)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(recorded.effective, effective(&recorded.edits));
    let listed = store.actions(row.id, Page::default()).await.unwrap().items;
    let deeds: Vec<_> = listed.iter().map(|row| (row.deed, row.state)).collect();
    assert_eq!(
        deeds,
        [(Deed::Update, State::Waiting), (Deed::Create, State::Done)]
    );
    // One page after the other.
    let first = Page {
        limit: 1,
        after: None,
    };
    let first = store.actions(row.id, first).await.unwrap();
    assert_eq!(first.items, listed[..1]);
    let second = Page {
        limit: 1,
        after: first.next,
    };
    let second = store.actions(row.id, second).await.unwrap();
    assert_eq!((second.items.as_slice(), second.next), (&listed[1..], None));
    let audited = audited(store).await;
    let last = audited.lines().last().unwrap();
    assert_eq!(
        last,
        "ana environment.update environment/orange 1→2 set application image.tag, set application replicas"
    );
}

pub(crate) async fn limits_are_kept(store: &Store) {
    let limited = model::environment::settings::Settings {
        up_max: Some(2),
        ..settings()
    };
    settle_in(store, limited).await;
    let quota = Quota {
        environments: Some(3),
        ..Quota::default()
    };
    let own = project();
    let put = store.put_project(&own, quota, "root".into(), at(0));
    put.await.unwrap();
    running(store, "one", 1).await;
    create(store, "two", 1).await;
    work(store, 1).await;
    let third = draft(store, &project(), "three", &[]).await;
    let third = store.create_environment(third, at(2)).await;
    assert_eq!(refused(third), "there are 2 of 2 environments that are up");
    // One that rests makes room, and must find it again when it comes back.
    begin(store, "one", Deed::Archive, 3).await.unwrap();
    work(store, 3).await;
    crate::habitat::look_at_all(store, 0, 30).await;
    assert_eq!(status(store, "one").await, "archived");
    create(store, "three", 31).await;
    let back = begin(store, "one", Deed::Restore, 32).await;
    assert_eq!(refused(back), "there are 2 of 2 environments that are up");
    assert_eq!(status(store, "one").await, "archived");
    let fourth = draft(store, &project(), "four", &[]).await;
    let fourth = store.create_environment(fourth, at(33)).await;
    assert_eq!(refused(fourth), "there are 3 of 3 environments");
}

pub(crate) async fn one_that_is_on_its_way_to_rest_counts_once_when_it_comes_back(store: &Store) {
    let limited = model::environment::settings::Settings {
        up_max: Some(1),
        ..settings()
    };
    settle_in(store, limited).await;
    running(store, "one", 1).await;
    begin(store, "one", Deed::Archive, 2).await.unwrap();
    work(store, 2).await;
    begin(store, "one", Deed::Restore, 3).await.unwrap();
    assert_eq!(status(store, "one").await, "create-pending");
}

pub(crate) async fn what_is_deleted_is_gone_at_once_and_its_name_is_free(store: &Store) {
    settle_in(store, settings()).await;
    let data_key = key(store, 1).await;
    let mut coming = draft(store, &project(), "orange", &["password"]).await;
    coming.sealed = vec![sealed_for(coming.id, "password", data_key, "noise")];
    let place = coming.sealed[0].place.clone();
    let begun = store.create_environment(coming, at(1)).await.unwrap();
    work(store, 2).await;
    let early = begin(store, "orange", Deed::Delete, 3).await;
    assert_eq!(
        refused(early),
        "delete is not possible while it is create-pending"
    );
    let forced = ActionDraft {
        force: true,
        ..action("orange", Deed::Delete)
    };
    let gone = store.begin_action(forced, at(3)).await.unwrap();
    assert_eq!(gone.state, State::Done);
    assert_eq!(
        store
            .environment(&project(), &called("orange"))
            .await
            .unwrap(),
        None
    );
    assert_eq!(claim(store, 4).await.len(), 0);
    let taken = store.take_sealed(&place, "bob".into(), at(4)).await;
    assert_eq!(taken.unwrap(), None, "what was secret is forgotten");
    let counts = store.environment_counts(Some(&project())).await.unwrap();
    assert_eq!(counts, BTreeMap::new());
    // What was done to it is still known by its id.
    let listed = store
        .actions(begun.environment, Page::default())
        .await
        .unwrap();
    assert_eq!(listed.items.len(), 2);
    assert!(listed.items[0].forced);
    expect![[r"
        create-pending → -: ana asked for delete
        - → create-pending: ana asked for it
    "]]
    .assert_eq(&changes(store, begun.environment).await);
    let again = create(store, "orange", 5).await;
    assert_ne!(again.environment, begun.environment, "it is another");
}

pub(crate) async fn secrets_are_sealed_for_the_environment_or_refused(store: &Store) {
    settle_in(store, settings()).await;
    let (old, new) = (key(store, 1).await, key(store, 2).await);
    let unsealed = draft(store, &project(), "orange", &["password"]).await;
    let id = unsealed.id;
    let refusal = refused(store.create_environment(unsealed.clone(), at(1)).await);
    assert_eq!(
        refusal,
        "the application setting `password` is secret and has no value"
    );
    let with = |row| store::EnvironmentDraft {
        sealed: vec![row],
        ..unsealed.clone()
    };
    let stale = with(sealed_for(id, "password", old, "noise"));
    let stale = store.create_environment(stale, at(1)).await;
    assert!(matches!(stale, Err(EnvironmentError::KeyGone { key }) if key == old));
    let other = draft(store, &project(), "other", &[]).await.id;
    let elsewhere = with(sealed_for(other, "password", new, "noise"));
    let elsewhere = store.create_environment(elsewhere, at(1)).await;
    assert!(matches!(elsewhere, Err(EnvironmentError::Elsewhere)));
    assert_eq!(
        store
            .environment(&project(), &called("orange"))
            .await
            .unwrap(),
        None
    );

    let sealed = with(sealed_for(id, "password", new, "noise"));
    let place = sealed.sealed[0].place.clone();
    store.create_environment(sealed, at(1)).await.unwrap();
    work(store, 2).await;
    // A secret that is kept needs no value; one that is dropped is forgotten when that is done.
    let kept = ActionDraft {
        edits: Some(edits(&["password", "image.tag=v2"])),
        ..action("orange", Deed::Update)
    };
    store.begin_action(kept, at(3)).await.unwrap();
    work(store, 4).await;
    let dropped = ActionDraft {
        edits: Some(edits(&["image.tag=v2"])),
        ..action("orange", Deed::Update)
    };
    store.begin_action(dropped, at(5)).await.unwrap();
    let taken = || store.take_sealed(&place, "bob".into(), at(6));
    assert_eq!(
        taken().await.unwrap().map(|sealed| sealed.text),
        Some("noise".to_owned())
    );
    work(store, 7).await;
    assert_eq!(taken().await.unwrap(), None);
    expect![[r"
        root environment.settings project/default -→1 scripts in /scripts
        ana environment.create environment/orange -→1 sealed application password
        ana environment.update environment/orange 1→2 set application image.tag
        ana environment.update environment/orange 2→3 unset application password
    "]]
    .assert_eq(&audited(store).await);
    assert_eq!(place.owner, Owner::Environment(id));
}

pub(crate) async fn what_never_began_is_called_off_at_once(store: &Store) {
    settle_in(store, settings()).await;
    let before = running(store, "orange", 1).await;
    let update = ActionDraft {
        edits: Some(edits(&["image.tag=v2"])),
        ..action("orange", Deed::Update)
    };
    let begun = store.begin_action(update, at(20)).await.unwrap();
    let own = project();
    let cancel = |action, seconds| store.cancel_action(&own, action, "bob".into(), at(seconds));
    assert_eq!(cancel(begun.action, 21).await.unwrap(), Cancelled::AtOnce);
    let row = show(store, "orange").await;
    assert_eq!(
        (row.status, row.since, row.failed),
        (before.status, before.since, false)
    );
    assert_eq!((row.edits, row.busy), (before.edits, None));
    assert_eq!(
        row.generation,
        before.generation + 2,
        "whoever looked meanwhile is late"
    );
    assert_eq!(claim(store, 22).await.len(), 0);
    assert_eq!(
        crate::habitat::due(store, 22).await.len(),
        1,
        "it is looked at again"
    );
    let twice = cancel(begun.action, 23).await;
    assert_eq!(
        refused(twice),
        format!("action {} has ended, it is cancelled", begun.action)
    );
    // One that was to be created never was.
    let created = create(store, "lemon", 24).await;
    assert_eq!(cancel(created.action, 25).await.unwrap(), Cancelled::AtOnce);
    assert_eq!(
        store
            .environment(&project(), &called("lemon"))
            .await
            .unwrap(),
        None
    );
    let other = store
        .cancel_action(&name("shop"), created.action, "bob".into(), at(26))
        .await;
    assert_eq!(
        refused(other),
        format!("there is no action {}", created.action)
    );
    let audited = audited(store).await;
    let told: Vec<_> = audited
        .lines()
        .filter(|line| line.contains("cancel"))
        .collect();
    assert_eq!(
        told,
        [
            format!(
                "bob environment.cancel environment/orange 2→- update {}",
                begun.action
            ),
            format!(
                "bob environment.cancel environment/lemon 1→- create {}",
                created.action
            ),
        ]
    );
}

pub(crate) async fn what_is_claimed_and_not_begun_is_called_off_at_once(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    let begun = begin(store, "orange", Deed::Update, 20).await.unwrap();
    let claimed = store.claim_actions(("w", HERE), 9, LEASE, at(21));
    let claimed = claimed.await.unwrap().remove(0);
    let why = "it waits for the project's script `init` to end";
    store.delay_action(&claimed, why, at(22)).await.unwrap();
    let own = project();
    let row = || store.action(&own, begun.action);
    let waits = row().await.unwrap().unwrap();
    assert_eq!(
        (waits.state, waits.error.as_deref()),
        (State::Running, Some(why))
    );
    let cancelled = store.cancel_action(&own, begun.action, "bob".into(), at(23));
    assert_eq!(cancelled.await.unwrap(), Cancelled::AtOnce);
    assert_eq!(status(store, "orange").await, "running");
    // Whoever has claimed it does not begin it.
    let late = store.set_out_action(&claimed, HERE, at(24)).await;
    assert_eq!(late.unwrap(), None);
    let beat = store.beat_actions(
        "w",
        [(claimed.action, claimed.fence())].into(),
        LEASE,
        at(24),
    );
    assert_eq!(beat.await.unwrap().held.len(), 0);
    assert_eq!(
        finish(store, &claimed, ActionEnded::Done, 25).await,
        Recorded::LeaseLost
    );
    assert_eq!(row().await.unwrap().unwrap().state, State::Cancelled);
}

pub(crate) async fn what_may_have_begun_is_ended_by_whoever_is_at_it(store: &Store) {
    settle_in(store, settings()).await;
    let begun = create(store, "orange", 1).await;
    let claimed = claim(store, 2).await.remove(0);
    assert!(!claimed.cancel);
    let cancelled = store
        .cancel_action(&project(), begun.action, "bob".into(), at(3))
        .await;
    assert_eq!(cancelled.unwrap(), Cancelled::Asked);
    let own = [(claimed.action, claimed.fence())].into();
    let beat = store
        .beat_actions("w", own, crate::habitat::LEASE, at(4))
        .await
        .unwrap();
    assert_eq!((beat.held.len(), beat.cancelled.len()), (1, 1));
    // Also by whoever takes it up after somebody who fell silent.
    assert_eq!(store.expire_actions(at(100)).await.unwrap(), 1);
    let again = store
        .cancel_action(&project(), begun.action, "bob".into(), at(101))
        .await;
    assert_eq!(again.unwrap(), Cancelled::Asked, "it may run on somewhere");
    let claimed = claim(store, 102).await.remove(0);
    assert!(claimed.cancel);
    let ended = finish(store, &claimed, ActionEnded::Cancelled, 103).await;
    assert_eq!(ended, Recorded::Yes);
    let row = show(store, "orange").await;
    assert_eq!(
        (row.status, row.failed, row.busy),
        (Status::CreatePending, true, None)
    );
    let action = store
        .action(&project(), begun.action)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((action.state, action.cancel), (State::Cancelled, true));
}

pub(crate) async fn what_is_called_off_before_its_script_starts_leaves_things_as_they_were(
    store: &Store,
) {
    settle_in(store, settings()).await;
    let orange = running(store, "orange", 1).await;
    let own = project();
    // Whoever is at it has said where it is begun, and has not come further.
    let called_off = async |action, seconds| {
        let claimed = claim(store, seconds).await.remove(0);
        let off = store.cancel_action(&own, action, "bob".into(), at(seconds + 1));
        assert_eq!(off.await.unwrap(), Cancelled::Asked);
        finish(store, &claimed, ActionEnded::Withdrawn, seconds + 2).await
    };
    let update = ActionDraft {
        edits: Some(edits(&["image.tag=v2"])),
        ..action("orange", Deed::Update)
    };
    let update = store.begin_action(update, at(10)).await.unwrap();
    assert_eq!(called_off(update.action, 11).await, Recorded::Yes);
    let row = show(store, "orange").await;
    assert_eq!((row.status, row.failed), (Status::Running, false));
    assert_eq!((row.edits, row.since), (orange.edits, orange.since));
    begin(store, "orange", Deed::Archive, 20).await.unwrap();
    work(store, 20).await;
    look_at_all(store, 0, 20).await;
    let restore = begin(store, "orange", Deed::Restore, 30).await.unwrap();
    assert_eq!(called_off(restore.action, 31).await, Recorded::Yes);
    let row = show(store, "orange").await;
    assert_eq!((row.status, row.failed), (Status::Archived, false));
    // What nobody could begin has failed, and touched nothing.
    begin(store, "orange", Deed::Restore, 40).await.unwrap();
    let claimed = claim(store, 41).await.remove(0);
    let ended = finish(store, &claimed, ActionEnded::Unbegun, 42).await;
    assert_eq!(ended, Recorded::Yes);
    let row = show(store, "orange").await;
    assert_eq!((row.status, row.failed), (Status::Archived, true));
    assert_eq!(row.archived_at, Some(at(20)));
    // One that was to come never was.
    let created = create(store, "lemon", 50).await;
    assert_eq!(called_off(created.action, 51).await, Recorded::Yes);
    let lemon = store.environment(&own, &called("lemon")).await;
    assert_eq!(lemon.unwrap(), None);
}

pub(crate) async fn what_somebody_called_off_has_not_failed_however_it_ended(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    let mut told = String::new();
    for (seconds, ended) in [
        (20, ActionEnded::Cancelled),
        (30, ActionEnded::Failed),
        (40, ActionEnded::Lost(plan::environment::Ended::Failed)),
        (50, ActionEnded::Done),
    ] {
        let begun = begin(store, "orange", Deed::Update, seconds).await.unwrap();
        let claimed = claim(store, seconds + 1).await.remove(0);
        for (who, later) in [("bob", 2), ("eve", 3)] {
            let cancelled = store
                .cancel_action(&project(), begun.action, who.into(), at(seconds + later))
                .await;
            assert_eq!(cancelled.unwrap(), Cancelled::Asked);
        }
        assert_eq!(
            finish(store, &claimed, ended, seconds + 4).await,
            Recorded::Yes
        );
        let action = store.action(&project(), begun.action).await;
        let action = action.unwrap().unwrap();
        let (by, when) = (action.cancelled_by.unwrap(), action.cancelled_at.unwrap());
        assert_eq!((by.as_str(), when), ("bob", at(seconds + 2)));
        let row = show(store, "orange").await;
        let off = row.called_off.map_or("nobody".to_owned(), |off| {
            assert_eq!((off.action, off.at), (begun.action, at(seconds + 2)));
            format!("{} by {}", off.deed, off.by)
        });
        let error = action
            .error
            .map_or(String::new(), |error| format!(": {error}"));
        told += &format!("{}, {off}{error}\n", action.state);
    }
    expect![[r"
        cancelled, update by bob: bob called it off
        cancelled, update by bob: bob called it off; it broke
        cancelled, update by bob: bob called it off; it broke
        done, nobody
    "]]
    .assert_eq(&told);
    // What fails is told; what was called off is not, and is not said to have failed.
    let events = crate::fixture::events(store).await;
    assert!(!events.contains("action.failed"), "{events}");
    // What was called off before it began leaves the mark of what came before.
    begin(store, "orange", Deed::Update, 60).await.unwrap();
    let failing = claim(store, 61).await.remove(0);
    assert_eq!(
        finish(store, &failing, ActionEnded::Failed, 62).await,
        Recorded::Yes
    );
    let begun = begin(store, "orange", Deed::Update, 63).await.unwrap();
    let cancelled = store
        .cancel_action(&project(), begun.action, "bob".into(), at(64))
        .await;
    assert_eq!(cancelled.unwrap(), Cancelled::AtOnce);
    let row = show(store, "orange").await;
    assert_eq!((row.failed, row.called_off), (true, None));
    let action = store.action(&project(), begun.action).await;
    let action = action.unwrap().unwrap();
    assert_eq!(
        action.error.as_deref(),
        Some("bob called it off before it began")
    );
}

pub(crate) async fn what_people_say_of_an_environment_is_changed_whole(store: &Store) {
    settle_in(store, settings()).await;
    create(store, "orange", 1).await;
    let of = (&project(), &called("orange"));
    let about = About {
        owner: "bob".to_owned(),
        labels: BTreeMap::from([("team".to_owned(), "web".to_owned())]),
        notes: "mind the step".to_owned(),
        protected: true,
        expires_at: Some(at(3600)),
    };
    let amend =
        |about: &About, seen| store.amend_environment(of, seen, about.clone(), "bob".into(), at(2));
    assert_eq!(
        refused(amend(&about, Some(9)).await),
        "it has generation 1, and not 9"
    );
    assert_eq!(amend(&about, Some(1)).await.unwrap(), 2);
    assert_eq!(amend(&about, None).await.unwrap(), 2, "it is so already");
    assert_eq!(show(store, "orange").await.about, about);
    assert_eq!(amend(&About::default(), None).await.unwrap(), 3);
    assert_eq!(show(store, "orange").await.about, About::default());
    expect![[r"
        root environment.settings project/default -→1 scripts in /scripts
        ana environment.create environment/orange -→1 set application image.tag
        bob environment.amend environment/orange 1→2 owner bob, labels team=web, notes, protected, expires 2001-09-09T02:46:40Z
        bob environment.amend environment/orange 2→3 owner , labels, notes, not protected, expires never
    "]]
    .assert_eq(&audited(store).await);
}

pub(crate) async fn a_project_with_environments_stays(store: &Store) {
    let shop = name("shop");
    store
        .put_project(&shop, Quota::default(), "root".into(), at(0))
        .await
        .unwrap();
    let put = store.put_environment_settings(&shop, settings(), "root".into(), at(0));
    put.await.unwrap();
    let coming = draft(store, &shop, "orange", &[]).await;
    let begun = store.create_environment(coming, at(1)).await.unwrap();
    let kept = store
        .delete_project(&shop, "root".into(), at(2))
        .await
        .unwrap_err();
    assert_eq!(kept.to_string(), "project shop still has 1 environment");
    let cancelled = store
        .cancel_action(&shop, begun.action, "root".into(), at(3))
        .await;
    assert_eq!(cancelled.unwrap(), Cancelled::AtOnce);
    store
        .delete_project(&shop, "root".into(), at(4))
        .await
        .unwrap();
    assert_eq!(store.environment_settings(&shop).await.unwrap(), None);
}

/// Many ask for the same at once: one of them gets it.
pub(crate) async fn one_of_many_begins(store: &Store) {
    settle_in(store, settings()).await;
    let mut asking = tokio::task::JoinSet::new();
    let coming = draft(store, &project(), "orange", &[]).await;
    for _ in 0..8 {
        let (store, coming) = (store.clone(), coming.clone());
        asking.spawn(async move { store.create_environment(coming, at(1)).await.is_ok() });
    }
    assert_eq!(
        asking
            .join_all()
            .await
            .into_iter()
            .filter(|created| *created)
            .count(),
        1
    );
    work(store, 2).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        asking.spawn(async move {
            begin(&store, "orange", Deed::Archive, 3)
                .await
                .map_err(|error| error.to_string())
        });
    }
    let answers = asking.join_all().await;
    let (begun, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(begun.len(), 1);
    let busy = Err("it is busy: archive is under way".to_owned());
    assert!(refused.iter().all(|answer| *answer == busy), "{refused:?}");
}
