//! What is decided about a request, over a table of how things may stand.

use super::*;
use model::environment::git::{Forks, Rules};
use model::environment::status::Failure;
use model::time::Timestamp;

const OLD: &str = "6dcb09b5b57875f334f61aebed695e2e4193db5e";
const NEW: &str = "c4295bd74fb0f4fda03689c3df3f2803b658fd85";

fn source() -> Source {
    let text = r#"{"name":"shop","service":"github","repository":"acme/shop",
        "secret":{"name":"git","key":"hook"},"rules":{"labels":["preview"]}}"#;
    serde_json::from_str(text).unwrap()
}

fn event(sha: &str, open: bool) -> Event {
    Event {
        repository: "acme/shop".parse().unwrap(),
        request: 12,
        action: "synchronize".to_owned(),
        open,
        branch: "basket".to_owned(),
        sha: sha.to_owned(),
        before: None,
        author: Some("ana".to_owned()),
        labels: vec!["preview".to_owned()],
        fork: false,
        url: "https://git.example.org/12".to_owned(),
        at: Timestamp::from_millis(1_000),
    }
}

fn settled(up: bool) -> Settled {
    let sha = OLD.to_owned();
    Settled {
        up,
        sha,
        owed: false,
    }
}

fn standing(status: Status) -> Standing {
    Standing {
        status,
        since: Timestamp::from_millis(0),
        busy: None,
        failed: false,
        protected: false,
        asleep: None,
    }
}

/// What is decided about the request, of which `OLD` is there.
fn decided(
    event: &Event,
    settled: Option<&Settled>,
    there: Option<(Standing, Option<Sleep>)>,
) -> Decision {
    let there = there.map(|(standing, asleep)| There {
        standing: Standing { asleep, ..standing },
        sha: OLD,
    });
    decide(Some(&source()), event, settled, there)
}

const fn unfit(unfit: Unfit) -> Decision {
    Decision::Nothing(Idle::Unfit(unfit))
}

#[test]
fn an_open_request_has_an_environment_at_its_commit() {
    use Decision::{Do, Held, Nothing};
    let (old, new) = (&event(OLD, true), &event(NEW, true));
    let (up, down) = (Some(settled(true)), Some(settled(false)));
    let at_new = Some(Settled {
        up: true,
        sha: NEW.to_owned(),
        owed: false,
    });
    let at = |status| Some((standing(status), None));
    let asleep = |sleep| Some((standing(Status::Archived), Some(sleep)));
    let table = [
        // Nothing is there yet, or not any more.
        (new, None, None, Do(Deed::Create)),
        (new, up.as_ref(), None, Do(Deed::Create)),
        (old, up.as_ref(), None, Nothing(Idle::Removed)),
        (old, down.as_ref(), None, Do(Deed::Create)),
        // It is up.
        (new, up.as_ref(), at(Status::Running), Do(Deed::Update)),
        (old, up.as_ref(), at(Status::Running), Nothing(Idle::Same)),
        // Somebody called off the update that a push brought, or the waking.
        (
            new,
            at_new.as_ref(),
            at(Status::Running),
            Nothing(Idle::CalledOff),
        ),
        (
            new,
            at_new.as_ref(),
            asleep(Sleep::Idle),
            Nothing(Idle::CalledOff),
        ),
        (
            new,
            up.as_ref(),
            at(Status::Failure(Failure::Generic)),
            Do(Deed::Update),
        ),
        (new, None, at(Status::CreatePending), Do(Deed::Update)),
        // It was archived because the request was closed, and is open again.
        (old, down.as_ref(), at(Status::Archived), Do(Deed::Restore)),
        (
            new,
            down.as_ref(),
            at(Status::ArchivePending),
            Do(Deed::Restore),
        ),
        // It rests for another reason.
        (new, up.as_ref(), at(Status::Archived), Held(Rest::Archived)),
        (old, up.as_ref(), at(Status::Archived), Nothing(Idle::Same)),
        (new, up.as_ref(), asleep(Sleep::Idle), Do(Deed::Restore)),
        (new, up.as_ref(), asleep(Sleep::Hours), Held(Rest::Hours)),
        (
            new,
            up.as_ref(),
            at(Status::CleanupFailed),
            Nothing(Idle::CleanupFailed),
        ),
    ];
    for (event, settled, there, expected) in table {
        let found = decided(event, settled, there);
        assert_eq!(found, expected, "{settled:?} {there:?}");
    }
}

#[test]
fn whoever_was_brought_back_for_a_commit_is_given_it() {
    use Decision::{Do, Held, Nothing};
    let owed = Settled {
        up: true,
        sha: NEW.to_owned(),
        owed: true,
    };
    let found = |sha, status, sleep| {
        let there = Some((standing(status), sleep));
        decided(&event(sha, true), Some(&owed), there)
    };
    assert_eq!(found(NEW, Status::CreatePending, None), Do(Deed::Update));
    assert_eq!(found(OLD, Status::Running, None), Nothing(Idle::Same));
    // Somebody called off that it is brought back.
    let called_off = found(NEW, Status::Archived, Some(Sleep::Idle));
    assert_eq!(called_off, Nothing(Idle::CalledOff));
    let rests = found(NEW, Status::Archived, None);
    assert_eq!(rests, Held(Rest::Archived));
}

#[test]
fn what_is_brought_back_as_it_was_is_owed_a_commit_that_it_has_not() {
    let helm = Deploy::Helm(model::environment::settings::Chart {
        chart: "/chart".to_owned(),
        kubeconfig: None,
        host: None,
    });
    let back = Decision::Do(Deed::Restore);
    let owes = |decision: Decision, by| decision.owes(&event(NEW, true), by, OLD).is_some();
    assert!(owes(back, &helm));
    assert!(!owes(back, &Deploy::Scripts));
    assert!(!owes(Decision::Do(Deed::Update), &helm));
    assert_eq!(back.owes(&event(OLD, true), &helm, OLD), None);
}

#[test]
fn a_request_that_is_closed_or_unfit_has_its_environment_archived() {
    use Decision::{Do, Nothing};
    let closed = &event(NEW, false);
    let unlabelled = &Event {
        labels: Vec::new(),
        ..event(NEW, true)
    };
    let (up, down) = (Some(settled(true)), Some(settled(false)));
    let at = |status| Some((standing(status), None));
    let asleep = |status, sleep| Some((standing(status), Some(sleep)));
    let protected = Some((
        Standing {
            protected: true,
            ..standing(Status::Running)
        },
        None,
    ));
    let table = [
        (closed, None, None, Nothing(Idle::Closed)),
        (unlabelled, None, None, unfit(Unfit::Label)),
        (closed, up.as_ref(), at(Status::Running), Do(Deed::Archive)),
        (
            unlabelled,
            up.as_ref(),
            at(Status::Running),
            Do(Deed::Archive),
        ),
        (closed, None, at(Status::CreatePending), Do(Deed::Archive)),
        (
            closed,
            up.as_ref(),
            at(Status::Archived),
            Nothing(Idle::Rests),
        ),
        (
            closed,
            up.as_ref(),
            at(Status::ArchivePending),
            Nothing(Idle::Rests),
        ),
        // One that only sleeps would be woken when the hours begin.
        (
            closed,
            up.as_ref(),
            asleep(Status::Archived, Sleep::Hours),
            Do(Deed::Archive),
        ),
        (
            closed,
            up.as_ref(),
            asleep(Status::ArchivePending, Sleep::Hours),
            Do(Deed::Archive),
        ),
        (closed, up.as_ref(), protected, Nothing(Idle::Protected)),
        // Somebody restored it after it was archived for this.
        (
            closed,
            down.as_ref(),
            at(Status::Running),
            Nothing(Idle::Kept),
        ),
    ];
    for (event, settled, there, expected) in table {
        let found = decided(event, settled, there);
        assert_eq!(found, expected, "{settled:?} {there:?}");
    }
}

#[test]
fn what_is_busy_is_decided_about_later() {
    for status in Status::ALL {
        let busy = Standing {
            busy: Some(Deed::Update),
            ..standing(status)
        };
        for open in [true, false] {
            let found = decided(&event(NEW, open), Some(&settled(true)), Some((busy, None)));
            assert_eq!(found, Decision::Later(Deed::Update), "{status} {open}");
        }
    }
}

/// Whatever was done to an environment by hand, what is done next is possible.
#[test]
fn what_is_decided_is_permitted() {
    let states = [None, Some(settled(true)), Some(settled(false))];
    for status in Status::ALL {
        for protected in [false, true] {
            for asleep in [None, Some(Sleep::Idle), Some(Sleep::Hours)] {
                for (settled, sha, open) in states.iter().flat_map(|settled| {
                    [
                        (settled, OLD, true),
                        (settled, NEW, true),
                        (settled, NEW, false),
                    ]
                }) {
                    let standing = Standing {
                        protected,
                        asleep,
                        ..standing(status)
                    };
                    let there = Some((standing, asleep));
                    if let Decision::Do(deed) = decided(&event(sha, open), settled.as_ref(), there)
                    {
                        assert_eq!(standing.permit(deed, false), Ok(()), "{status} {deed}");
                    }
                }
            }
        }
    }
}

#[test]
fn other_repositories_and_sources_are_left_alone() {
    let other = Event {
        repository: "acme/other".parse().unwrap(),
        ..event(NEW, true)
    };
    assert_eq!(
        decided(&other, None, None),
        Decision::Nothing(Idle::Elsewhere)
    );
    let none = decide(None, &event(NEW, true), None, None);
    assert_eq!(none, Decision::Nothing(Idle::NoSource));
}

#[test]
fn forks_have_environments_only_where_the_source_says_so() {
    let fork = Event {
        fork: true,
        ..event(NEW, true)
    };
    assert_eq!(decided(&fork, None, None), unfit(Unfit::Fork));
    let taking = Source {
        rules: Rules {
            forks: Forks::WithoutSecrets,
            ..Rules::default()
        },
        ..source()
    };
    let found = decide(Some(&taking), &fork, None, None);
    assert_eq!(found, Decision::Do(Deed::Create));
}

#[test]
fn older_is_what_was_earlier_or_pushed_before() {
    let known = Event {
        before: Some(OLD.to_owned()),
        ..event(NEW, true)
    };
    let at = |millis, sha| Event {
        at: Timestamp::from_millis(millis),
        ..event(sha, true)
    };
    let table = [
        (at(999, NEW), true),
        (at(1_000, OLD), true),
        (at(1_000, NEW), false),
        (at(1_001, OLD), false),
    ];
    for (event, expected) in table {
        assert_eq!(is_older(&event, &known), expected, "{event:?}");
    }
}

#[test]
fn who_opened_a_request_is_remembered() {
    let unnamed = Event {
        author: None,
        ..event(NEW, true)
    };
    let known = event(OLD, true);
    assert_eq!(after(unnamed.clone(), Some(&known)).author, known.author);
    assert_eq!(after(unnamed, None).author, None);
}

#[test]
fn of_a_commit_that_was_called_off_no_service_waits_for_more() {
    let (created, updated) = (Status::CreatePending, Status::UpdatePending);
    let table = [
        (created, None, true),
        (updated, Some((Status::Running, OLD)), true),
        (updated, Some((Status::Running, NEW)), false),
        // One that rests tells nothing.
        (created, Some((Status::Archived, NEW)), true),
        (Status::ArchivePending, Some((Status::Running, NEW)), false),
        (Status::Archived, Some((Status::Archived, NEW)), false),
    ];
    for (status, before, expected) in table {
        assert_eq!(is_forsaken(status, NEW, before), expected, "{status}");
    }
    let origin = source().origin(&event(NEW, true));
    let reported = called_off(&origin, &"basket".parse().unwrap());
    assert_eq!(
        (reported.verdict, reported.sha.as_str()),
        (Verdict::Failure, NEW)
    );
}

#[test]
fn pauses_grow_and_end() {
    let pauses: Vec<_> = (0..40).map_while(pause).collect();
    assert_eq!(pauses[0], Duration::from_secs(5));
    assert!(pauses.is_sorted());
    let all: Duration = pauses.iter().sum();
    assert!(
        all > Duration::from_hours(2) && all < Duration::from_hours(6),
        "{all:?}"
    );
}

#[test]
fn a_service_is_told_of_what_says_something_of_the_commit() {
    let origin = source().origin(&event(NEW, true));
    let name: EnvironmentName = "basket".parse().unwrap();
    let links = [Link {
        name: "app".to_owned(),
        url: "https://basket.example.org".to_owned(),
    }];
    let became = |status| Happening::Became {
        was: None,
        became: status,
    };
    let table = [
        (
            became(Some(Status::CreatePending)),
            Last::Done,
            Some((Verdict::Pending, "basket is create-pending")),
        ),
        (
            became(Some(Status::Running)),
            Last::Done,
            Some((Verdict::Success, "basket is running")),
        ),
        (
            became(Some(Status::Running)),
            Last::Failed,
            Some((
                Verdict::Failure,
                "basket is running, but what was done to it failed",
            )),
        ),
        (
            became(Some(Status::Running)),
            Last::CalledOff,
            Some((
                Verdict::Failure,
                "basket is running, but what was done to it was cancelled",
            )),
        ),
        (
            became(Some(Status::Failure(Failure::TagMismatch))),
            Last::Done,
            Some((Verdict::Failure, "basket is in tag-mismatch")),
        ),
        (became(Some(Status::Archived)), Last::Done, None),
        (became(None), Last::Done, None),
        (
            Happening::ActionFailed,
            Last::Done,
            Some((Verdict::Failure, "what was done to basket failed")),
        ),
        (Happening::ExpiresSoon, Last::Done, None),
    ];
    for (what, last, expected) in table {
        let reported = report(&origin, &name, &links, what, last);
        if let Some(reported) = &reported {
            assert_eq!(reported.sha, NEW);
            assert_eq!(reported.url.as_deref(), Some("https://basket.example.org"));
        }
        let found = reported.map(|reported| (reported.verdict, reported.description));
        let expected = expected.map(|(verdict, text)| (verdict, text.to_owned()));
        assert_eq!(found, expected, "{what:?}");
    }
}
