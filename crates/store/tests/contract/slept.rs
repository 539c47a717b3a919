//! Environments that are put to sleep, and woken, though nobody asks.

use crate::fixture::{at, project};
use crate::habitat::{
    action, begin, called, claim, finish, look_at_all, refused, running, settings, settle_in, show,
    status, work,
};
use model::disruption::{Day, Window, Windows};
use model::environment::action::State;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Sleep};
use plan::environment::Cause;
use std::time::Duration;
use store::{ActionDraft, ActionEnded, Outlived, Recorded, Store};

const HOUR: i64 = 3600;

const DAY: Duration = Duration::from_hours(24);

/// Up for an hour of each day, from when the world began.
fn an_hour_a_day() -> Windows {
    let minutes = at(0).as_millis() / 60_000 % (24 * 60);
    Windows(vec![Window {
        days: Day::ALL.into(),
        start: u16::try_from(minutes).unwrap(),
        minutes: 60,
        offset: 0,
    }])
}

async fn outlived(store: &Store, seconds: i64) -> Vec<Outlived> {
    store.outlived_environments(10, at(seconds)).await.unwrap()
}

/// Who outlived what, in words.
async fn told(store: &Store, seconds: i64) -> String {
    let words = outlived(store, seconds).await;
    let words = words
        .iter()
        .map(|one| format!("{} {} because {}", one.deed, one.name, one.cause.as_str()));
    words.collect::<Vec<_>>().join(", ")
}

/// Does what time asks for, to the end.
async fn obey(store: &Store, seconds: i64) {
    for one in outlived(store, seconds).await {
        let draft = ActionDraft {
            cause: Some(one.cause),
            ..action(one.name.as_str(), one.deed)
        };
        store.begin_action(draft, at(seconds)).await.unwrap();
    }
    work(store, seconds).await;
    look_at_all(store, 0, seconds).await;
}

pub(crate) async fn what_nobody_uses_is_put_to_sleep(store: &Store) {
    let idle = Some(Duration::from_secs(100));
    settle_in(store, Settings { idle, ..settings() }).await;
    for called in ["orange", "lemon"] {
        running(store, called, 1).await;
    }
    begin(store, "lemon", Deed::Update, 50).await.unwrap();
    work(store, 50).await;
    assert_eq!(told(store, 100).await, "");
    assert_eq!(
        told(store, 101).await,
        "archive orange because nobody used it"
    );
    obey(store, 101).await;
    let orange = show(store, "orange").await;
    assert_eq!((orange.used_at, orange.asleep), (at(1), Some(Sleep::Idle)));
    assert_eq!(orange.status.to_string(), "archived");
    // Whoever wakes it uses it, and so does whoever says something of it.
    begin(store, "orange", Deed::Restore, 120).await.unwrap();
    work(store, 120).await;
    let orange = show(store, "orange").await;
    assert_eq!((orange.used_at, orange.asleep), (at(120), None));
    let about = store::About {
        owner: "ana".to_owned(),
        ..store::About::default()
    };
    let of = (&project(), &called("lemon"));
    let said = store.amend_environment(of, None, about, "ana".into(), at(140));
    said.await.unwrap();
    assert_eq!(told(store, 219).await, "");
    assert_eq!(
        told(store, 220).await,
        "archive orange because nobody used it"
    );
}

pub(crate) async fn who_is_left_out_keeps_nobody_behind_from_sleeping(store: &Store) {
    let idle = Some(Duration::from_secs(100));
    settle_in(store, Settings { idle, ..settings() }).await;
    let mut ids = Vec::new();
    for (seconds, called) in [(1, "orange"), (2, "lemon"), (3, "lime")] {
        ids.push(running(store, called, seconds).await.id);
    }
    let but = async |ids: &[model::id::EnvironmentId]| {
        let but = ids.iter().copied().collect();
        let all = store
            .outlived_environments_but(2, but, at(200))
            .await
            .unwrap();
        let names = all.iter().map(|one| one.name.to_string());
        names.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(but(&[]).await, "orange, lemon");
    assert_eq!(but(&ids[..1]).await, "lemon, lime");
    assert_eq!(but(&ids[..2]).await, "lime");
}

pub(crate) async fn what_the_hours_wake_has_all_of_its_idle_time_again(store: &Store) {
    let said = Settings {
        hours: an_hour_a_day(),
        idle: Some(Duration::from_hours(2)),
        ..settings()
    };
    settle_in(store, said).await;
    running(store, "orange", 1).await;
    obey(store, HOUR).await;
    assert_eq!(show(store, "orange").await.asleep, Some(Sleep::Hours));
    obey(store, 24 * HOUR).await;
    let orange = show(store, "orange").await;
    assert_eq!(
        orange.used_at,
        at(24 * HOUR),
        "it is there for whoever comes"
    );
    assert_eq!(told(store, 25 * HOUR - 60).await, "");
    // So it sleeps because of the hours again, and is woken when they begin.
    obey(store, 25 * HOUR).await;
    assert_eq!(show(store, "orange").await.asleep, Some(Sleep::Hours));
    let woken = "restore orange because of the hour";
    assert_eq!(told(store, 48 * HOUR).await, woken);
}

pub(crate) async fn who_calls_waking_off_has_it_rest(store: &Store) {
    let said = Settings {
        hours: an_hour_a_day(),
        // It has slept for longer than others are kept.
        retention: Duration::from_hours(2),
        ..settings()
    };
    settle_in(store, said).await;
    running(store, "orange", 1).await;
    obey(store, HOUR).await;
    let woken = ActionDraft {
        cause: Some(Cause::Hours),
        ..action("orange", Deed::Restore)
    };
    let begun = store.begin_action(woken, at(24 * HOUR)).await.unwrap();
    let own = project();
    let off = store.cancel_action(&own, begun.action, "ana".into(), at(24 * HOUR + 1));
    off.await.unwrap();
    let orange = show(store, "orange").await;
    assert_eq!(
        (orange.status.to_string(), orange.asleep),
        ("archived".to_owned(), None)
    );
    assert_eq!(
        told(store, 24 * HOUR + 2).await,
        "",
        "it is neither woken again nor removed at once"
    );
    assert_eq!(told(store, 26 * HOUR).await, "");
    let rested = "cleanup orange because it has rested for long enough";
    assert_eq!(told(store, 26 * HOUR + 1).await, rested);
}

pub(crate) async fn who_archives_what_sleeps_has_it_stay_where_it_is(store: &Store) {
    let said = Settings {
        hours: an_hour_a_day(),
        retention: Duration::from_hours(48),
        ..settings()
    };
    settle_in(store, said).await;
    running(store, "orange", 1).await;
    obey(store, HOUR).await;
    assert_eq!(show(store, "orange").await.asleep, Some(Sleep::Hours));
    let begun = begin(store, "orange", Deed::Archive, 3 * HOUR).await;
    assert_eq!(begun.unwrap().state, State::Done, "it needs no script");
    let orange = show(store, "orange").await;
    assert_eq!((orange.asleep, orange.busy), (None, None));
    assert_eq!(orange.status.to_string(), "archived");
    assert_eq!(told(store, 24 * HOUR).await, "", "nobody wakes it");
    let rested = "cleanup orange because it has rested for long enough";
    assert_eq!(told(store, 51 * HOUR - 1).await, "");
    assert_eq!(told(store, 51 * HOUR).await, rested);
    // What rests because somebody wanted it so does that already.
    let twice = begin(store, "orange", Deed::Archive, 4 * HOUR).await;
    assert_eq!(
        refused(twice),
        "archive is not possible while it is archived"
    );
}

pub(crate) async fn what_is_brought_back_after_its_end_has_one_again(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    let until = |seconds| store::About {
        expires_at: Some(at(seconds)),
        ..store::About::default()
    };
    let own = project();
    let orange = called("orange");
    let say = |about, seconds| {
        store.amend_environment((&own, &orange), None, about, "ana".into(), at(seconds))
    };
    say(until(100), 40).await.unwrap();
    assert_eq!(
        store.next_outlived(DAY, at(50)).await.unwrap(),
        Some(at(100))
    );
    obey(store, 100).await;
    assert_eq!(status(store, "orange").await, "archived");
    // Whoever calls it off has it as it was.
    let restore = begin(store, "orange", Deed::Restore, 200).await.unwrap();
    assert_eq!(show(store, "orange").await.about.expires_at, Some(at(260)));
    let off = store.cancel_action(&own, restore.action, "ana".into(), at(210));
    off.await.unwrap();
    assert_eq!(show(store, "orange").await.about.expires_at, Some(at(100)));
    // Unless somebody has said something else meanwhile.
    let restore = begin(store, "orange", Deed::Restore, 220).await.unwrap();
    say(until(900), 230).await.unwrap();
    let off = store.cancel_action(&own, restore.action, "bob".into(), at(240));
    off.await.unwrap();
    assert_eq!(show(store, "orange").await.about.expires_at, Some(at(900)));
    say(until(100), 40).await.unwrap();
    begin(store, "orange", Deed::Restore, 300).await.unwrap();
    work(store, 300).await;
    look_at_all(store, 0, 300).await;
    assert_eq!(show(store, "orange").await.about.expires_at, Some(at(360)));
    assert_eq!(
        told(store, 360).await,
        "archive orange because its time is over"
    );
    // One that has time left keeps it.
    begin(store, "orange", Deed::Archive, 310).await.unwrap();
    work(store, 310).await;
    look_at_all(store, 0, 310).await;
    begin(store, "orange", Deed::Restore, 320).await.unwrap();
    assert_eq!(show(store, "orange").await.about.expires_at, Some(at(360)));
}

pub(crate) async fn what_age_asks_for_and_fails_is_not_begun_all_the_time(store: &Store) {
    settle_in(store, settings()).await;
    running(store, "orange", 1).await;
    let about = store::About {
        expires_at: Some(at(100)),
        ..store::About::default()
    };
    let (own, orange) = (project(), called("orange"));
    let said = store.amend_environment((&own, &orange), None, about, "ana".into(), at(2));
    said.await.unwrap();
    let over = "archive orange because its time is over";
    assert_eq!(told(store, 100).await, over);
    begin(store, "orange", Deed::Archive, 100).await.unwrap();
    let claimed = claim(store, 101).await.remove(0);
    let ended = finish(store, &claimed, ActionEnded::Failed, 102).await;
    assert_eq!(ended, Recorded::Yes);
    look_at_all(store, 1, 103).await;
    look_at_all(store, 0, 120).await;
    assert_eq!(status(store, "orange").await, "running");
    let next = store.next_outlived(DAY, at(121)).await.unwrap();
    assert_eq!(next, Some(at(102 + HOUR)), "that is when it may go again");
    assert_eq!(told(store, 101 + HOUR).await, "");
    assert_eq!(told(store, 102 + HOUR).await, over);
    // Whatever is done to it meanwhile may have mended that.
    begin(store, "orange", Deed::Update, 200).await.unwrap();
    work(store, 200).await;
    assert_eq!(told(store, 201).await, over);
}

pub(crate) async fn what_could_not_be_woken_is_not_begun_all_the_time(store: &Store) {
    let said = Settings {
        hours: an_hour_a_day(),
        ..settings()
    };
    settle_in(store, said).await;
    running(store, "orange", 1).await;
    obey(store, HOUR).await;
    let one = outlived(store, 24 * HOUR - 40).await.remove(0);
    let woken = ActionDraft {
        cause: Some(one.cause),
        ..action("orange", one.deed)
    };
    store.begin_action(woken, at(24 * HOUR - 40)).await.unwrap();
    let claimed = claim(store, 24 * HOUR).await.remove(0);
    let ended = finish(store, &claimed, ActionEnded::Unbegun, 24 * HOUR).await;
    assert_eq!(ended, Recorded::Yes);
    let row = show(store, "orange").await;
    assert_eq!(
        (row.status.to_string(), row.asleep),
        ("archived".to_owned(), Some(Sleep::Hours)),
        "it is still to be woken"
    );
    assert_eq!(told(store, 24 * HOUR + 1).await, "");
    assert_eq!(
        told(store, 48 * HOUR).await,
        "restore orange because of the hour"
    );
}

pub(crate) async fn the_next_end_is_known_before_it_comes(store: &Store) {
    let idle = Some(Duration::from_secs(100));
    let said = Settings {
        idle,
        hours: an_hour_a_day(),
        ..settings()
    };
    settle_in(store, said).await;
    let next = async |seconds| store.next_outlived(DAY, at(seconds)).await.unwrap();
    // Hours are of whole minutes, and the first moment is 40 s into one.
    assert_eq!(next(1).await, Some(at(HOUR - 40)), "the hours end");
    running(store, "orange", 1).await;
    assert_eq!(next(1).await, Some(at(101)), "nobody uses it");
    obey(store, 101).await;
    let soon = Duration::from_mins(5);
    assert_eq!(
        store.next_outlived(soon, at(102)).await.unwrap(),
        Some(at(101).plus(settings().retention))
    );
}

pub(crate) async fn what_sleeps_because_of_the_hour_is_woken_and_kept(store: &Store) {
    let (hours, retention) = (an_hour_a_day(), Duration::from_mins(1));
    let said = Settings {
        hours,
        retention,
        ..settings()
    };
    settle_in(store, said).await;
    running(store, "orange", 1).await;
    running(store, "lemon", 2).await;
    assert_eq!(told(store, HOUR - 60).await, "");
    let both = "archive orange because of the hour, archive lemon because of the hour";
    assert_eq!(told(store, HOUR).await, both);
    obey(store, HOUR).await;
    assert_eq!(show(store, "orange").await.asleep, Some(Sleep::Hours));
    assert_eq!(told(store, 2 * HOUR).await, "", "it is not removed for it");
    // Somebody works late, until the hours end again.
    begin(store, "lemon", Deed::Restore, 3 * HOUR)
        .await
        .unwrap();
    work(store, 3 * HOUR).await;
    look_at_all(store, 0, 3 * HOUR).await;
    assert_eq!(told(store, 4 * HOUR).await, "");
    let woken = "restore orange because of the hour";
    assert_eq!(told(store, 24 * HOUR).await, woken);
    assert_eq!(outlived(store, 24 * HOUR).await[0].cause, Cause::Hours);
    obey(store, 24 * HOUR).await;
    assert_eq!(status(store, "orange").await, "running");
    assert_eq!(show(store, "orange").await.asleep, None);
    // Who woke first has been there for longer.
    let both = "archive lemon because of the hour, archive orange because of the hour";
    assert_eq!(told(store, 25 * HOUR).await, both);
}
