//! Every standing of an environment: what may be done to it, what follows, and its exits.

use super::*;
use expect_test::{Expect, expect};
use model::disruption::{Day, Window};
use std::time::Duration;

const SINCE: Timestamp = Timestamp::from_millis(0);

fn standing(status: Status) -> Standing {
    Standing {
        status,
        since: SINCE,
        busy: None,
        failed: false,
        protected: false,
        asleep: None,
    }
}

fn exits(standing: &Standing) -> String {
    let word = |exit: &Exit| match exit {
        Exit::Cancel => "cancel".to_owned(),
        Exit::Do(deed) => deed.to_string(),
        Exit::Force(deed) => format!("{deed}!"),
    };
    let words: Vec<_> = standing.exits().iter().map(word).collect();
    words.join(" ")
}

#[test]
fn every_standing_has_an_exit() {
    let lines: String = Status::ALL
        .into_iter()
        .map(|status| format!("{status:16} {}\n", exits(&standing(status))))
        .collect();
    expect![[r"
        create-pending   update archive cleanup! delete!
        update-pending   update archive cleanup! delete!
        archive-pending  archive restore cleanup! delete!
        running          update archive cleanup! delete!
        failure          update archive cleanup! delete!
        partial-failure  update archive cleanup! delete!
        tag-mismatch     update archive cleanup! delete!
        archived         restore cleanup delete!
        cleanup-failed   cleanup delete
    "]]
    .assert_eq(&lines);
    for status in Status::ALL {
        for busy in Deed::ALL {
            for protected in [false, true] {
                let it = Standing {
                    busy: Some(busy),
                    protected,
                    ..standing(status)
                };
                assert_eq!(exits(&it), "cancel");
            }
        }
        let it = Standing {
            protected: true,
            ..standing(status)
        };
        assert!(!it.exits().is_empty(), "{status}");
    }
}

#[test]
fn who_sleeps_may_be_archived_for_good() {
    for sleep in Sleep::ALL {
        let it = Standing {
            asleep: Some(sleep),
            ..standing(Status::Archived)
        };
        assert_eq!(exits(&it), "archive restore cleanup delete!");
    }
}

#[test]
fn what_is_brought_back_after_its_end_has_as_much_time_again() {
    let at = |seconds| SINCE.plus(Duration::from_secs(seconds));
    let given = Duration::from_mins(1);
    let anew = |deed, end, now| lasts(deed, end, given, at(now));
    assert_eq!(anew(Deed::Restore, Some(at(60)), 60), Some(at(120)));
    // What has time left, keeps it: the hours that wake it every day do not prolong it.
    assert_eq!(anew(Deed::Restore, Some(at(60)), 59), Some(at(60)));
    assert_eq!(anew(Deed::Update, Some(at(60)), 99), Some(at(60)));
    assert_eq!(anew(Deed::Restore, None, 99), None);
}

#[test]
fn who_is_protected_ends_by_force_alone() {
    let it = Standing {
        protected: true,
        ..standing(Status::Running)
    };
    assert_eq!(exits(&it), "update archive! cleanup! delete!");
    let why = it.permit(Deed::Archive, false).unwrap_err();
    assert_eq!(why.to_string(), "it is protected, and archive would end it");
}

#[test]
fn nothing_is_done_to_who_is_busy() {
    let it = Standing {
        busy: Some(Deed::Update),
        ..standing(Status::Running)
    };
    for deed in Deed::ALL {
        let why = it.permit(deed, true).unwrap_err();
        assert_eq!(why.to_string(), "it is busy: update is under way");
    }
    assert_eq!(it.look(), None);
}

/// What each look leads to: at once, when it is late, and when a script has failed.
#[track_caller]
fn check(status: Status, expected: &Expect) {
    let patience = Patience::default();
    let soon = SINCE.plus(Duration::from_secs(1));
    let late = SINCE.plus(patience.pending + Duration::from_secs(1));
    let looks = [0, 1, 2, 3].map(|exit| Seen::from_exit(Some(exit)));
    let row = |(word, failed, now): (&str, bool, Timestamp)| {
        let it = Standing {
            failed,
            ..standing(status)
        };
        let after = looks.map(|seen| it.after(seen, &patience, now).to_string());
        format!("{word:7} {}\n", after.join(" "))
    };
    let rows = [
        ("soon", false, soon),
        ("late", false, late),
        ("failed", true, soon),
    ];
    expected.assert_eq(&rows.map(row).concat());
}

#[test]
fn pending_ones_are_given_time_unless_their_script_failed() {
    check(
        Status::UpdatePending,
        &expect![[r"
            soon    running update-pending update-pending update-pending
            late    running failure partial-failure tag-mismatch
            failed  running failure partial-failure tag-mismatch
        "]],
    );
    check(
        Status::ArchivePending,
        &expect![[r"
            soon    archived archive-pending archive-pending archive-pending
            late    archived failure failure failure
            failed  archived failure failure failure
        "]],
    );
}

#[test]
fn the_kind_of_a_failure_follows_what_is_seen() {
    check(
        Status::Failure(Failure::Generic),
        &expect![[r"
            soon    running failure partial-failure tag-mismatch
            late    running failure partial-failure tag-mismatch
            failed  running failure partial-failure tag-mismatch
        "]],
    );
    check(
        Status::Running,
        &expect![[r"
            soon    running failure partial-failure tag-mismatch
            late    running failure partial-failure tag-mismatch
            failed  running failure partial-failure tag-mismatch
        "]],
    );
}

#[test]
fn who_rests_stays_at_rest_whatever_is_seen() {
    for status in [Status::Archived, Status::CleanupFailed] {
        for exit in [Some(0), Some(1), Some(2), None] {
            let seen = Seen::from_exit(exit);
            let it = standing(status);
            assert_eq!(it.after(seen, &Patience::default(), SINCE), status);
        }
    }
}

#[test]
fn only_removal_ends_an_environment() {
    for deed in Deed::ALL {
        let status = entered(deed).unwrap_or(Status::Archived);
        let gone = matches!(deed, Deed::Cleanup | Deed::Delete);
        let done = ended(status, deed, Ended::Done);
        assert_eq!(done == Became::Gone, gone, "{deed}");
        let kept = if gone { Status::CleanupFailed } else { status };
        assert_eq!(ended(status, deed, Ended::Failed), Became::Is(kept));
        // Nobody has touched it.
        assert_eq!(ended(status, deed, Ended::Unbegun), Became::Is(status));
    }
}

#[test]
fn what_runs_and_could_not_be_removed_is_looked_at() {
    for status in Status::ALL {
        let kept = if status.is_up() {
            status
        } else {
            Status::CleanupFailed
        };
        let failed = ended(status, Deed::Cleanup, Ended::Failed);
        assert_eq!(failed, Became::Is(kept), "{status}");
    }
}

#[test]
fn who_cannot_be_looked_at_is_given_up_only_while_it_should_become_another() {
    let patience = Patience::default();
    let late = SINCE.plus(patience.pending + Duration::from_secs(1));
    for status in Status::ALL {
        let it = standing(status);
        assert_eq!(it.unseen(&patience, SINCE), status, "{status}");
        let after = if status.is_pending() {
            Status::Failure(Failure::Generic)
        } else {
            status
        };
        assert_eq!(it.unseen(&patience, late), after, "{status}");
    }
}

#[test]
fn age_ends_what_nobody_protects() {
    let span = Span {
        archived_at: Some(SINCE),
        retention: Duration::from_mins(1),
        expires_at: Some(SINCE.plus(Duration::from_secs(30))),
        asleep: None,
        used_at: SINCE,
        idle: None,
        hours: &Windows::default(),
    };
    let at = |seconds| SINCE.plus(Duration::from_secs(seconds));
    let line = |status: Status| {
        let it = standing(status);
        let word = |now| {
            it.outlived(&span, now)
                .map_or("-", |(deed, _)| deed.as_str())
        };
        let protected = Standing {
            protected: true,
            ..it
        };
        assert_eq!(protected.outlived(&span, at(99)), None);
        let busy = Standing {
            busy: Some(Deed::Update),
            ..it
        };
        assert_eq!(busy.outlived(&span, at(99)), None);
        let endless = Span {
            archived_at: None,
            expires_at: None,
            ..span
        };
        assert_eq!(it.outlived(&endless, at(99)), None);
        format!(
            "{status:16} {} {} {}\n",
            word(at(29)),
            word(at(30)),
            word(at(60))
        )
    };
    expect![[r"
        create-pending   - archive archive
        update-pending   - archive archive
        archive-pending  - - -
        running          - archive archive
        failure          - archive archive
        partial-failure  - archive archive
        tag-mismatch     - archive archive
        archived         - - cleanup
        cleanup-failed   - - -
    "]]
    .assert_eq(&Status::ALL.map(line).concat());
}

#[test]
fn what_was_never_begun_leaves_things_as_they_were() {
    assert_eq!(withdrawn(None), Became::Gone);
    assert!(Deed::ALL.into_iter().all(|deed| falls_back(deed, true)));
    let back = Deed::ALL
        .into_iter()
        .filter(|deed| falls_back(*deed, false));
    assert_eq!(back.collect::<Vec<_>>(), [Deed::Archive, Deed::Restore]);
    for status in Status::ALL {
        assert_eq!(withdrawn(Some(status)), Became::Is(status));
    }
}

#[test]
fn nobody_takes_the_last_place_from_others() {
    let mut taken = [0_u32; 4];
    for _ in 0..1000 {
        for own in 0..taken.len() {
            let others = taken.iter().sum::<u32>() - taken[own];
            if taken[own] < share(96, others) {
                taken[own] += 1;
            }
        }
    }
    assert_eq!(taken, [19, 19, 19, 19], "and who comes next has as many");
    assert_eq!(share(96, 0), 48);
    assert_eq!(share(1, 0), 1, "a single one is for whoever comes first");
    assert_eq!(share(4, 3), 0);
}

#[test]
fn what_nobody_knows_of_is_done_only_where_it_is_seen() {
    let look = |deed| match proof(deed) {
        Some(Look::Up) => "up",
        Some(Look::Down) => "down",
        None => "-",
    };
    let looks = Deed::ALL.map(|deed| format!("{deed} {}", look(deed)));
    assert_eq!(
        looks.join(", "),
        "create up, update up, archive down, restore up, cleanup -, delete -"
    );
    assert_eq!(verified(Some(Seen::Good)), Ended::Done);
    for exit in [Some(1), Some(2), Some(3), None] {
        assert_eq!(verified(Some(Seen::from_exit(exit))), Ended::Failed);
    }
    assert_eq!(verified(None), Ended::Failed);
}

/// Environments are up from eight to seven on the first day that there was, a Thursday.
fn working_hours() -> Windows {
    Windows(vec![Window {
        days: Day::ALL.into(),
        start: 8 * 60,
        minutes: 11 * 60,
        offset: 0,
    }])
}

#[test]
fn hours_turn_when_they_begin_and_end() {
    let minute = |minute: u64| Timestamp::from_millis(0).plus(Duration::from_mins(minute));
    let soon = |at: u64| turns(&working_hours(), minute(at), Duration::from_mins(5));
    assert_eq!(soon(8 * 60 - 6), None);
    assert_eq!(soon(8 * 60 - 5), Some(minute(8 * 60)));
    assert_eq!(soon(8 * 60), None, "they have begun");
    assert_eq!(soon(19 * 60 - 1), Some(minute(19 * 60)));
    let always = Windows::default();
    assert_eq!(turns(&always, minute(0), Duration::from_hours(48)), None);
}

#[test]
fn what_nobody_uses_sleeps_and_hours_wake_what_they_put_to_sleep() {
    let hour = |hour: u64| Timestamp::from_millis(0).plus(Duration::from_hours(hour));
    let hours = working_hours();
    let span = Span {
        archived_at: None,
        retention: Duration::from_hours(1),
        expires_at: None,
        asleep: None,
        used_at: hour(9),
        idle: None,
        hours: &hours,
    };
    let it = standing(Status::Running);
    assert_eq!(it.outlived(&span, hour(18)), None);
    let late = Some((Deed::Archive, Cause::Hours));
    assert_eq!(it.outlived(&span, hour(19)), late);
    let called = Span {
        used_at: hour(20),
        ..span
    };
    assert_eq!(it.outlived(&called, hour(21)), None, "somebody works late");
    assert_eq!(
        it.outlived(&called, hour(24 + 19)),
        late,
        "and not tomorrow"
    );
    let idle = Span {
        idle: Some(Duration::from_hours(3)),
        ..span
    };
    assert_eq!(it.outlived(&idle, hour(11)), None);
    let unused = Some((Deed::Archive, Cause::Idle));
    assert_eq!(it.outlived(&idle, hour(12)), unused);

    let rests = standing(Status::Archived);
    let asleep = Span {
        asleep: Some(Sleep::Hours),
        archived_at: Some(hour(19)),
        ..span
    };
    assert_eq!(
        rests.outlived(&asleep, hour(31)),
        None,
        "it is not removed for it"
    );
    let woken = Some((Deed::Restore, Cause::Hours));
    assert_eq!(rests.outlived(&asleep, hour(32)), woken);
    let ended = Span {
        expires_at: Some(hour(20)),
        ..asleep
    };
    let removed = Some((Deed::Cleanup, Cause::Rested));
    assert_eq!(rests.outlived(&ended, hour(32)), removed);
    let archived = Span {
        asleep: Some(Sleep::Idle),
        ..asleep
    };
    assert_eq!(rests.outlived(&archived, hour(32)), removed);
}
