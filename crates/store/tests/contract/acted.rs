//! Who does what to environments, and how that ends.

use crate::fixture::{at, events, name, project};
use crate::habitat::{
    HERE, LEASE, action, begin, called, changes, claim, create, draft, due, edits, end, finish,
    look_at_all, running, set_out, settings, settle_in, show, status, work,
};
use expect_test::expect;
use model::environment::action::State;
use model::environment::link::Link;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Sleep, Status};
use plan::environment::Ended;
use store::{ActionDraft, ActionEnd, ActionEnded, OutputStream, Printed, Quota, Recorded, Store};

const DAY: i64 = 24 * 60 * 60;

pub(crate) async fn an_action_is_claimed_with_all_there_is_to_know(store: &Store) {
    settle_in(store, settings()).await;
    let begun = create(store, "orange", 1).await;
    let claimed = store.claim_actions(("w", HERE), 9, LEASE, at(5));
    let claimed = claimed.await.unwrap().remove(0);
    assert_eq!(
        (claimed.action, claimed.environment),
        (begun.action, begun.environment)
    );
    assert_eq!(
        (claimed.deed, claimed.name.as_str()),
        (Deed::Create, "orange")
    );
    // Its time counts from when it is begun, whatever was waited for before.
    let deadline = set_out(store, &claimed, 9).await;
    assert_eq!(deadline, at(9).plus(settings().patience.action));
    assert_eq!((&claimed.begun_at, claimed.fence()), (&None, 1));
    assert_eq!(
        (&claimed.settings, claimed.author.as_str()),
        (&settings(), "ana")
    );
    assert_eq!(claimed.application.len(), 1);
    assert_eq!(claim(store, 6).await.len(), 0, "it is not claimed twice");
    let busy = show(store, "orange").await.busy.unwrap();
    assert_eq!(busy.state, State::Running);
    let row = store
        .action(&project(), begun.action)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((row.state, row.started_at), (State::Running, Some(at(5))));

    // Whoever takes it up again knows where it may run, and has no more time for it.
    assert_eq!(store.expire_actions(at(34)).await.unwrap(), 0);
    assert_eq!(store.next_action().await.unwrap(), Some(at(35)));
    assert_eq!(store.expire_actions(at(35)).await.unwrap(), 1);
    let again = claim(store, 40).await.remove(0);
    assert_eq!((again.begun_at.as_deref(), again.fence()), (Some(HERE), 2));
    assert_eq!(set_out(store, &again, 40).await, deadline);
    let lost = store.set_out_action(&claimed, HERE, at(40)).await;
    assert_eq!(lost.unwrap(), None);
    assert_eq!(
        finish(store, &claimed, ActionEnded::Done, 41).await,
        Recorded::LeaseLost
    );
    let late = vec![line(OutputStream::Out, 1, 41, "late")];
    assert_eq!(
        store.append_output(&claimed, late).await.unwrap(),
        Recorded::LeaseLost
    );
    assert_eq!(
        finish(store, &again, ActionEnded::Done, 42).await,
        Recorded::Yes
    );
    assert_eq!(
        finish(store, &again, ActionEnded::Done, 43).await,
        Recorded::LeaseLost
    );
}

pub(crate) async fn what_was_begun_elsewhere_is_left_until_it_must_have_ended(store: &Store) {
    settle_in(store, settings()).await;
    create(store, "orange", 1).await;
    let claimed = claim(store, 2).await.remove(0);
    let minutes = i64::try_from(settings().patience.action.as_secs()).unwrap() / 60;
    store.release_action(&claimed, at(10), at(3)).await.unwrap();
    let there = |seconds| store.claim_actions(("v", "there"), 9, LEASE, at(seconds));
    assert_eq!(there(20).await.unwrap().len(), 0);
    assert_eq!(claim(store, 9).await.len(), 0, "it is not due yet");
    // At its deadline somebody there may still be busy killing it.
    let over = 2 + minutes * 60;
    assert_eq!(there(over + 59).await.unwrap().len(), 0);
    let taken = there(over + 60).await.unwrap().remove(0);
    assert_eq!(taken.begun_at.as_deref(), Some(HERE));
    assert_eq!(claim(store, over + 61).await.len(), 0);
    // It is not begun there by being looked after there.
    let own = ("v", taken.fence() + 1);
    store
        .release_action(&taken, at(0), at(over + 62))
        .await
        .unwrap();
    let home = claim(store, over + 63).await.remove(0);
    assert_eq!(
        (home.begun_at.as_deref(), home.fence()),
        (Some(HERE), own.1)
    );
}

pub(crate) async fn nobody_waits_for_a_project_with_much_to_do(store: &Store) {
    settle_in(store, settings()).await;
    let shop = name("shop");
    store
        .put_project(&shop, Quota::default(), "root".into(), at(0))
        .await
        .unwrap();
    let put = store.put_environment_settings(&shop, settings(), "root".into(), at(0));
    put.await.unwrap();
    for number in 0..6 {
        create(store, &format!("many{number}"), 1).await;
    }
    for number in 0..2 {
        let few = draft(store, &shop, &format!("few{number}"), &[]).await;
        store.create_environment(few, at(2)).await.unwrap();
    }
    let mut order = Vec::new();
    for room in [6, 12] {
        let claimed = store
            .claim_actions(("w", HERE), room, LEASE, at(3))
            .await
            .unwrap();
        order.push(
            claimed
                .iter()
                .map(|claim| claim.name.to_string())
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    assert_eq!(order, ["many0 few0 many1 few1", "many2 many3 many4 many5"]);
    assert_eq!(store.void_actions(at(4)).await.unwrap(), 8);
    assert_eq!(store.next_action().await.unwrap(), Some(at(4)));
}

pub(crate) async fn a_project_with_much_to_do_leaves_places_for_others(store: &Store) {
    settle_in(store, settings()).await;
    let claimed = async |room| {
        let claimed = store.claim_actions(("w", HERE), room, LEASE, at(3)).await;
        let claimed = claimed.unwrap();
        let names = claimed.iter().map(|claim| claim.name.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    for number in 0..9 {
        create(store, &format!("many{number}"), 1).await;
    }
    // Where there is nobody else, it has all.
    assert_eq!(claimed(3).await, "many0 many1 many2");
    let shop = name("shop");
    let put = store.put_project(&shop, Quota::default(), "root".into(), at(0));
    put.await.unwrap();
    let put = store.put_environment_settings(&shop, settings(), "root".into(), at(0));
    put.await.unwrap();
    assert_eq!(claimed(5).await, "many3");
    for number in 0..3 {
        let few = draft(store, &shop, &format!("few{number}"), &[]).await;
        store.create_environment(few, at(2)).await.unwrap();
    }
    assert_eq!(claimed(4).await, "few0 few1");
    // Another worker has places of its own.
    let other = store.claim_actions(("v", HERE), 2, LEASE, at(3)).await;
    assert_eq!(other.unwrap().len(), 1);
}

pub(crate) async fn a_heartbeat_keeps_an_action(store: &Store) {
    settle_in(store, settings()).await;
    create(store, "orange", 1).await;
    let claimed = claim(store, 2).await.remove(0);
    let own = || [(claimed.action, claimed.fence())].into();
    let beat = store.beat_actions("w", own(), LEASE, at(20)).await.unwrap();
    assert_eq!((beat.held, beat.cancelled.len()), (own(), 0));
    assert_eq!(store.expire_actions(at(49)).await.unwrap(), 0);
    let strange = [(claimed.action, claimed.fence() + 1)].into();
    let lost = store
        .beat_actions("w", strange, LEASE, at(21))
        .await
        .unwrap();
    assert_eq!(lost.held.len(), 0);
    let lost = store.beat_actions("v", own(), LEASE, at(21)).await.unwrap();
    assert_eq!(lost.held.len(), 0);
    assert_eq!(store.expire_actions(at(50)).await.unwrap(), 1);
    let lost = store.beat_actions("w", own(), LEASE, at(51)).await.unwrap();
    assert_eq!(lost.held.len(), 0);
}

/// A line of a stream that nothing is said of but what it says.
fn line(stream: OutputStream, number: u64, seconds: i64, text: &str) -> Printed {
    Printed {
        place: number,
        stream,
        number,
        at: at(seconds),
        text: text.to_owned(),
    }
}

/// Lines of one stream, from this number on.
fn printed(stream: OutputStream, numbers: std::ops::Range<u64>) -> Vec<Printed> {
    let text = |number| format!("{} {number}", stream.as_str());
    let line = |number| line(stream, number, 3, &text(number));
    numbers.map(line).collect()
}

pub(crate) async fn what_is_printed_is_stored_once_and_in_order(store: &Store) {
    settle_in(store, settings()).await;
    let begun = create(store, "orange", 1).await;
    let claimed = claim(store, 2).await.remove(0);
    assert_eq!(claimed.lines, (0, 0));
    let append = |lines| store.append_output(&claimed, lines);
    assert_eq!(
        append(printed(OutputStream::Out, 1..3)).await.unwrap(),
        Recorded::Yes
    );
    assert_eq!(
        append(printed(OutputStream::Err, 1..2)).await.unwrap(),
        Recorded::Yes
    );
    // Who is not sure whether it was stored stores it again.
    assert_eq!(
        append(printed(OutputStream::Out, 2..4)).await.unwrap(),
        Recorded::Yes
    );
    assert_eq!(append(vec![]).await.unwrap(), Recorded::Yes);
    store.expire_actions(at(100)).await.unwrap();
    let claimed = claim(store, 101).await.remove(0);
    assert_eq!(claimed.lines, (3, 1));
    let odd = vec![line(OutputStream::Err, 2, 101, "a\0b")];
    let recorded = store.end_action(&claimed, end(ActionEnded::Done, at(102)), odd, at(102));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    let own = project();
    let read = |after, limit| store.action_output(&own, begun.action, after, limit);
    let all = read(0, 100).await.unwrap().unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|line| format!("{} {}", line.seq, line.text))
        .collect();
    assert_eq!(
        told,
        [
            "1 stdout 1",
            "2 stdout 2",
            "3 stderr 1",
            "4 stdout 3",
            "5 a\u{fffd}b"
        ]
    );
    assert_eq!(
        (all[2].stream, all[2].line, all[2].at),
        (OutputStream::Err, 1, at(3))
    );
    assert_eq!(read(2, 2).await.unwrap().unwrap(), all[2..4]);
    assert_eq!(read(5, 2).await.unwrap().unwrap(), []);
    let elsewhere = store.action_output(&name("shop"), begun.action, 0, 9).await;
    assert_eq!(elsewhere.unwrap(), None);
}

pub(crate) async fn much_that_is_printed_keeps_its_head_and_its_tail(store: &Store) {
    settle_in(store, settings()).await;
    let begun = create(store, "orange", 1).await;
    let claimed = claim(store, 2).await.remove(0);
    for part in 0..6 {
        let lines = printed(OutputStream::Out, part * 2_000 + 1..(part + 1) * 2_000 + 1);
        assert_eq!(
            store.append_output(&claimed, lines).await.unwrap(),
            Recorded::Yes
        );
    }
    let own = project();
    let read = |after, limit| store.action_output(&own, begun.action, after, limit);
    let middle = read(1_999, 3).await.unwrap().unwrap();
    let told: Vec<_> = middle
        .iter()
        .map(|line| (line.seq, line.text.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (2_000, "stdout 2000"),
            (4_000, "… 2000 lines were dropped here …"),
            (4_001, "stdout 4001")
        ]
    );
    assert_eq!(
        read(11_999, 9).await.unwrap().unwrap()[0].text,
        "stdout 12000"
    );
    // Whoever prints too much at once passes over what would not be kept.
    let later = store.append_output(&claimed, printed(OutputStream::Out, 20_001..20_003));
    assert_eq!(later.await.unwrap(), Recorded::Yes);
    let end = read(1_999, 9).await.unwrap().unwrap();
    let told: Vec<_> = end.iter().map(|line| (line.seq, line.line)).collect();
    assert_eq!(
        told,
        [
            (2_000, 2_000),
            (20_000, 20_001),
            (20_001, 20_001),
            (20_002, 20_002)
        ]
    );
    let next = claim(store, 100).await;
    assert_eq!(next.len(), 0);
    store.void_actions(at(100)).await.unwrap();
    assert_eq!(claim(store, 101).await[0].lines, (20_002, 0));
}

pub(crate) async fn what_one_stream_lost_costs_the_other_nothing(store: &Store) {
    settle_in(store, settings()).await;
    let begun = create(store, "orange", 1).await;
    let claimed = claim(store, 2).await.remove(0);
    // 2,000 lines of the one, 12,000 of the other that nobody will keep, 7,999 of the one, and one.
    let mut lines = printed(OutputStream::Out, 1..10_000);
    for (place, line) in (14_001..).zip(&mut lines[2_000..]) {
        line.place = place;
    }
    lines.push(Printed {
        place: 22_000,
        ..line(OutputStream::Err, 12_001, 3, "stderr 12001")
    });
    for some in lines.chunks(2_000) {
        let appended = store.append_output(&claimed, some.to_vec()).await;
        assert_eq!(appended.unwrap(), Recorded::Yes);
    }
    let own = project();
    let read = |after, limit| store.action_output(&own, begun.action, after, limit);
    let pictures = async |after| {
        let lines = read(after, 3).await.unwrap().unwrap();
        let told = lines
            .iter()
            .map(|line| format!("{} {}", line.seq, line.text));
        told.collect::<Vec<_>>()
    };
    assert_eq!(
        pictures(1_999).await,
        [
            "2000 stdout 2000",
            "14000 … 12000 lines were dropped here …",
            "14001 stdout 2001"
        ]
    );
    assert_eq!(
        pictures(21_998).await,
        ["21999 stdout 9999", "22000 stderr 12001"]
    );
}

pub(crate) async fn a_script_that_failed_leaves_a_mark(store: &Store) {
    settle_in(store, settings()).await;
    let row = running(store, "orange", 1).await;
    begin(store, "orange", Deed::Update, 20).await.unwrap();
    let claimed = claim(store, 21).await.remove(0);
    let links = vec![Link {
        name: "app".to_owned(),
        url: "https://orange.shop.example.org".to_owned(),
    }];
    let end = ActionEnd {
        links: Some(links.clone()),
        ..end(ActionEnded::Failed, at(31))
    };
    let recorded = store.end_action(&claimed, end, vec![], at(30));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    let after = show(store, "orange").await;
    assert_eq!((after.status, after.since), (Status::UpdatePending, at(30)));
    assert_eq!((after.failed, after.links), (true, links));
    let action = store
        .action(&project(), claimed.action)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((action.state, action.exit), (State::Failed, Some(1)));
    assert_eq!(
        (action.error.as_deref(), action.ended_at),
        (Some("it broke"), Some(at(30)))
    );
    // It is looked at when it was to be, and is given no more time.
    assert_eq!(store.next_check().await.unwrap(), Some(at(31)));
    look_at_all(store, 3, 31).await;
    assert_eq!(status(store, "orange").await, "tag-mismatch");
    expect![[r"
        update-pending → tag-mismatch: a look found it otherwise: exit Some(3)
        running → update-pending: ana asked for update
        create-pending → running: a look found it as it should be: exit Some(0)
        - → create-pending: ana asked for it
    "]]
    .assert_eq(&changes(store, row.id).await);
    let told = events(store).await;
    let told: Vec<_> = told
        .lines()
        .filter(|line| line.starts_with("action."))
        .collect();
    let kinds: Vec<_> = told
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        kinds.join(" "),
        "action.waiting action.running action.done action.waiting action.running action.failed"
    );
    assert!(told[5].ends_with("update orange: it broke"), "{}", told[5]);
}

pub(crate) async fn an_environment_goes_its_whole_way(store: &Store) {
    settle_in(store, settings()).await;
    let row = running(store, "orange", 1).await;
    begin(store, "orange", Deed::Archive, 20).await.unwrap();
    work(store, 21).await;
    look_at_all(store, 0, 22).await;
    let archived = show(store, "orange").await;
    assert_eq!(
        (archived.status, archived.archived_at),
        (Status::Archived, Some(at(22)))
    );
    begin(store, "orange", Deed::Restore, 30).await.unwrap();
    work(store, 31).await;
    look_at_all(store, 0, 40).await;
    begin(store, "orange", Deed::Archive, 50).await.unwrap();
    work(store, 51).await;
    look_at_all(store, 0, 60).await;
    begin(store, "orange", Deed::Cleanup, 70).await.unwrap();
    let failed = claim(store, 71).await.remove(0);
    let first = vec![line(OutputStream::Out, 1, 72, "no")];
    let recorded = store.end_action(&failed, end(ActionEnded::Failed, at(72)), first, at(72));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    assert_eq!(status(store, "orange").await, "cleanup-failed");
    assert_eq!(
        store.next_check().await.unwrap(),
        None,
        "nothing is to be seen there"
    );
    begin(store, "orange", Deed::Cleanup, 80).await.unwrap();
    let claimed = claim(store, 81).await.remove(0);
    let last = vec![line(OutputStream::Out, 1, 82, "bye")];
    let recorded = store.end_action(&claimed, end(ActionEnded::Done, at(82)), last, at(82));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    assert_eq!(
        store
            .environment(&project(), &called("orange"))
            .await
            .unwrap(),
        None
    );
    for (action, kept) in [(failed.action, 0), (claimed.action, 1)] {
        let output = store.action_output(&project(), action, 0, 9).await;
        let lines = output.unwrap().unwrap().len();
        assert_eq!(lines, kept, "what the last script printed is kept");
    }
    expect![[r"
        cleanup-failed → -: cleanup is done
        archived → cleanup-failed: cleanup has ended: it broke
        archive-pending → archived: a look found it as it should be: exit Some(0)
        running → archive-pending: ana asked for archive
        create-pending → running: a look found it as it should be: exit Some(0)
        archived → create-pending: ana asked for restore
        archive-pending → archived: a look found it as it should be: exit Some(0)
        running → archive-pending: ana asked for archive
        create-pending → running: a look found it as it should be: exit Some(0)
        - → create-pending: ana asked for it
    "]]
    .assert_eq(&changes(store, row.id).await);
    create(store, "orange", 90).await;
}

pub(crate) async fn what_was_not_begun_to_be_removed_rests_on(store: &Store) {
    let idle = Some(std::time::Duration::from_secs(100));
    settle_in(store, Settings { idle, ..settings() }).await;
    let own = project();
    let retention = i64::try_from(settings().retention.as_secs()).unwrap();
    let outlived = |seconds| async move {
        let all = store.outlived_environments(10, at(seconds)).await.unwrap();
        let words: Vec<_> = all
            .iter()
            .map(|one| format!("{} {}", one.deed, one.name))
            .collect();
        words.join(", ")
    };
    running(store, "orange", 1).await;
    let sleep = ActionDraft {
        cause: Some(plan::environment::Cause::Idle),
        ..action("orange", Deed::Archive)
    };
    store.begin_action(sleep, at(200)).await.unwrap();
    work(store, 201).await;
    look_at_all(store, 0, 202).await;
    let rested = 202 + retention;
    assert_eq!(outlived(rested).await, "cleanup orange");
    let begun = begin(store, "orange", Deed::Cleanup, rested).await.unwrap();
    let claimed = claim(store, rested + 1).await.remove(0);
    let ended = finish(store, &claimed, ActionEnded::Unbegun, rested + 2).await;
    assert_eq!(ended, Recorded::Yes);
    let row = show(store, "orange").await;
    assert_eq!((row.status, row.failed), (Status::Archived, true));
    assert_eq!(
        (row.archived_at, row.asleep),
        (Some(at(202)), Some(Sleep::Idle))
    );
    let of = store.action(&own, begun.action).await.unwrap().unwrap();
    assert_eq!(of.state, State::Failed);
    let next = store.next_check().await.unwrap();
    assert_eq!(next, Some(at(rested + 2)), "it is looked at");
    // It is tried again, and not at once.
    let again = rested + 2 + 60 * 60;
    assert_eq!(outlived(again - 1).await, "");
    assert_eq!(outlived(again).await, "cleanup orange");
    // Nor is it lost because somebody called that off before it began.
    let begun = begin(store, "orange", Deed::Cleanup, again).await.unwrap();
    let claimed = claim(store, again).await.remove(0);
    let off = store.cancel_action(&own, begun.action, "bob".into(), at(again));
    off.await.unwrap();
    let ended = finish(store, &claimed, ActionEnded::Unbegun, again).await;
    assert_eq!(ended, Recorded::Yes);
    assert_eq!(status(store, "orange").await, "archived");
    let of = store.action(&own, begun.action).await.unwrap().unwrap();
    let error = of.error.as_deref();
    assert_eq!(
        (of.state, error),
        (State::Cancelled, Some("bob called it off; it broke"))
    );
    begin(store, "orange", Deed::Restore, again + 1)
        .await
        .unwrap();
    assert!(!show(store, "orange").await.failed);
}

pub(crate) async fn what_runs_and_could_not_be_removed_counts_and_is_looked_at(store: &Store) {
    let up_max = Some(1);
    settle_in(
        store,
        Settings {
            up_max,
            ..settings()
        },
    )
    .await;
    running(store, "orange", 1).await;
    let removed = ActionDraft {
        force: true,
        ..action("orange", Deed::Cleanup)
    };
    store.begin_action(removed, at(10)).await.unwrap();
    let claimed = claim(store, 11).await.remove(0);
    let ended = finish(store, &claimed, ActionEnded::Failed, 12).await;
    assert_eq!(ended, Recorded::Yes);
    let row = show(store, "orange").await;
    assert_eq!((row.status, row.failed), (Status::Running, true));
    let more = draft(store, &project(), "lemon", &[]).await;
    let more = store.create_environment(more, at(13)).await;
    assert!(more.is_err(), "it counts");
    look_at_all(store, 1, 14).await;
    assert_eq!(status(store, "orange").await, "failure");
}

pub(crate) async fn what_nobody_knows_of_is_judged_by_a_look(store: &Store) {
    settle_in(store, settings()).await;
    for (called, verdict) in [("good", Ended::Done), ("bad", Ended::Failed)] {
        create(store, called, 1).await;
        let claimed = claim(store, 2).await.remove(0);
        let lost = ActionEnded::Lost(verdict);
        assert_eq!(finish(store, &claimed, lost, 3).await, Recorded::Yes);
        let action = store
            .action(&project(), claimed.action)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(action.state, State::Lost);
        assert_eq!(show(store, called).await.failed, verdict == Ended::Failed);
    }
}

pub(crate) async fn what_is_past_its_time_ends_by_itself(store: &Store) {
    settle_in(store, settings()).await;
    let retention = i64::try_from(settings().retention.as_secs()).unwrap();
    for called_so in ["kept", "rests", "spent", "young"] {
        running(store, called_so, 1).await;
    }
    let about = |protected, expires: Option<i64>| store::About {
        protected,
        expires_at: expires.map(at),
        ..store::About::default()
    };
    for (called_so, about) in [
        ("kept", about(true, Some(100))),
        ("spent", about(false, Some(100))),
        ("young", about(false, Some(1000))),
    ] {
        let of = (&project(), &called(called_so));
        store
            .amend_environment(of, None, about, "ana".into(), at(2))
            .await
            .unwrap();
    }
    begin(store, "rests", Deed::Archive, 3).await.unwrap();
    work(store, 4).await;
    look_at_all(store, 0, 500).await;
    let outlived = |seconds| async move {
        let all = store.outlived_environments(10, at(seconds)).await.unwrap();
        let words: Vec<_> = all
            .iter()
            .map(|one| format!("{} {}", one.deed, one.name))
            .collect();
        words.join(", ")
    };
    assert_eq!(outlived(99).await, "");
    assert_eq!(outlived(100).await, "archive spent");
    assert_eq!(
        outlived(499 + retention).await,
        "archive spent, archive young"
    );
    assert_eq!(
        outlived(500 + retention).await,
        "cleanup rests, archive spent, archive young"
    );
    // What is being done to one is enough.
    begin(store, "spent", Deed::Archive, 600).await.unwrap();
    assert_eq!(outlived(601).await, "");
    work(store, 602).await;
    look_at_all(store, 0, 603).await;
    // Whoever is brought back stays for as long as it was given, although its time was over.
    begin(store, "spent", Deed::Restore, 700).await.unwrap();
    work(store, 701).await;
    assert_eq!(outlived(702).await, "");
    assert_eq!(show(store, "spent").await.about.expires_at, Some(at(798)));
}

pub(crate) async fn what_was_done_is_swept_but_the_last_of_it(store: &Store) {
    settle_in(store, settings()).await;
    create(store, "orange", 1).await;
    let first = claim(store, 2).await.remove(0);
    let lines = printed(OutputStream::Out, 1..3);
    let done = store.end_action(&first, end(ActionEnded::Done, at(3)), lines, at(3));
    assert_eq!(done.await.unwrap(), Recorded::Yes);
    let update = ActionDraft {
        edits: Some(edits(&["image.tag=v2"])),
        ..action("orange", Deed::Update)
    };
    store.begin_action(update, at(4)).await.unwrap();
    let second = claim(store, 5).await.remove(0);
    let lines = printed(OutputStream::Out, 1..3);
    assert_eq!(
        store.append_output(&second, lines).await.unwrap(),
        Recorded::Yes
    );
    let swept = store.sweep(at(15 * DAY)).await.unwrap();
    assert_eq!(
        (swept.outputs, swept.actions),
        (1, 0),
        "what is under way keeps its output"
    );
    assert_eq!(
        finish(store, &second, ActionEnded::Done, 15 * DAY).await,
        Recorded::Yes
    );
    let swept = store.sweep(at(32 * DAY)).await.unwrap();
    assert_eq!((swept.outputs, swept.actions), (1, 1));
    assert_eq!(store.action(&project(), first.action).await.unwrap(), None);
    let swept = store.sweep(at(99 * DAY)).await.unwrap();
    assert_eq!(
        (swept.outputs, swept.actions),
        (0, 0),
        "it says with what it was made"
    );
    assert!(
        store
            .action(&project(), second.action)
            .await
            .unwrap()
            .is_some()
    );
    let forced = ActionDraft {
        force: true,
        ..action("orange", Deed::Delete)
    };
    store.begin_action(forced, at(100 * DAY)).await.unwrap();
    let swept = store.sweep(at(131 * DAY)).await.unwrap();
    assert_eq!(swept.actions, 2, "of one that is gone nothing stays");
    assert_eq!(due(store, 131 * DAY).await.len(), 0);
}

pub(crate) async fn nothing_is_begun_again_that_was_restored(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "calm", 1).await;
    create(store, "begun", 2).await;
    assert_eq!(claim(store, 3).await.len(), 1);
    create(store, "asked", 4).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    store.dump(file.path(), at(5)).await.unwrap();
    let other = Store::in_memory().unwrap();
    other.restore(file.path(), at(DAY)).await.unwrap();
    let claimed = claim(&other, DAY).await;
    assert_eq!(claimed.len(), 2);
    for claim in claimed {
        // Whoever takes it up did not begin it, and whoever did must have ended by now.
        assert!(set_out(&other, &claim, DAY).await < at(DAY));
        assert!(claim.begun_at.is_some_and(|place| place != HERE));
    }
    assert_eq!(
        due(&other, DAY).await.len(),
        1,
        "the one at rest is looked at"
    );
}
