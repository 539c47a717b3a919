//! Who is told of which change, and how often.

use super::*;
use expect_test::expect;
use model::environment::notify::{Target, Way, Webhook};
use model::environment::settings::{Chart, Place};
use model::environment::status::Failure;
use model::secret::SecretRef;

fn target(name: &str, events: &[Occasion], labels: &[(&str, Option<&str>)]) -> Target {
    let secret = SecretRef {
        name: "hooks".parse().unwrap(),
        key: Some("key".parse().unwrap()),
    };
    let label =
        |(label, value): &(&str, Option<&str>)| (label.to_string(), value.map(str::to_owned));
    Target {
        name: name.parse().unwrap(),
        way: if name == "chat" {
            Way::Slack(secret)
        } else {
            Way::Webhook(Webhook {
                url: "https://a.example.org".parse().unwrap(),
                secret,
            })
        },
        events: events.iter().copied().collect(),
        labels: labels.iter().map(label).collect(),
    }
}

fn settings(notify: Vec<Target>) -> Settings {
    let place = Place {
        project_name: "Shop".to_owned(),
        base_domain: "shop.example.org".to_owned(),
        namespace: "shop".parse().unwrap(),
        cluster: None,
    };
    Settings {
        notify,
        ..Settings::usual(place, "/scripts")
    }
}

fn names(settings: &Settings, labels: &[(&str, &str)], happening: Happening) -> String {
    let label = |(label, value): &(&str, &str)| (label.to_string(), value.to_string());
    let labels = labels.iter().map(label).collect();
    let told = told(settings, &labels, happening);
    let names: Vec<_> = told.iter().map(|told| told.target).collect();
    names.join(" ")
}

/// Every pair of statuses, with none at either side, and all else that happens.
fn table(settings: &Settings) -> String {
    let all: Vec<Option<Status>> = std::iter::once(None)
        .chain(Status::ALL.into_iter().map(Some))
        .collect();
    let word = |status: Option<Status>| status.map_or("-", Status::as_str);
    let mut table = String::new();
    for was in &all {
        let told = |became: &Option<Status>| {
            let happening = Happening::Became {
                was: *was,
                became: *became,
            };
            let count = names(settings, &[], happening).split_whitespace().count();
            count.to_string()
        };
        let row: Vec<_> = all.iter().map(told).collect();
        table.push_str(&format!("{:<16}{}\n", word(*was), row.join(" ")));
    }
    table
}

#[test]
fn every_change_is_told_to_those_who_want_it_and_to_the_script() {
    // The script, one who wants what is usual, and one who wants all there is.
    let notify = vec![target("ops", &[], &[]), target("all", &Occasion::ALL, &[])];
    // Columns: gone, the three that are pending, running, three failures, archived, cleanup-failed.
    expect![[r"
        -               0 1 1 1 2 2 2 2 2 2
        create-pending  2 0 2 2 3 3 3 3 3 3
        update-pending  2 2 0 2 3 3 3 3 3 3
        archive-pending 2 2 2 0 3 3 3 3 3 3
        running         2 2 2 2 0 3 3 3 3 3
        failure         2 2 2 2 3 0 3 3 3 3
        partial-failure 2 2 2 2 3 3 0 3 3 3
        tag-mismatch    2 2 2 2 3 3 3 0 3 3
        archived        2 2 2 2 3 3 3 3 0 3
        cleanup-failed  2 2 2 2 3 3 3 3 3 0
    "]]
    .assert_eq(&table(&settings(notify)));
}

#[test]
fn a_target_is_told_what_it_wants_and_nothing_else() {
    let notify = vec![
        target("fails", &[Occasion::Failing, Occasion::ActionFailed], &[]),
        target("chat", &[Occasion::ExpiresSoon], &[("team", Some("web"))]),
        target("any", &[], &[("team", None)]),
    ];
    let settings = settings(notify);
    let failed = Happening::Became {
        was: Some(Status::Running),
        became: Some(Status::Failure(Failure::Partial)),
    };
    assert_eq!(names(&settings, &[], failed), "notifications fails");
    let web = [("team", "web")];
    assert_eq!(names(&settings, &web, failed), "notifications fails any");
    let soon = Happening::ExpiresSoon;
    assert_eq!(names(&settings, &web, soon), "chat any");
    assert_eq!(names(&settings, &[("team", "ops")], soon), "any");
    assert_eq!(names(&settings, &[], Happening::ActionFailed), "fails");
    assert_eq!(told(&settings, &BTreeMap::new(), failed)[1].kind, "webhook");
}

#[test]
fn helm_has_no_script_to_tell() {
    let mut settings = settings(vec![target("ops", &[], &[])]);
    settings.deploy = Deploy::Helm(Chart {
        chart: "/chart".to_owned(),
        kubeconfig: None,
        host: None,
    });
    let ran = Happening::Became {
        was: Some(Status::CreatePending),
        became: Some(Status::Running),
    };
    assert_eq!(names(&settings, &[], ran), "ops");
}

#[test]
fn pauses_grow_and_end() {
    let day = Duration::from_hours(24);
    let later = |tries, age, chance| next(Answer::Later(None), tries, age, chance);
    let again = |seconds: u64| Next::Again(Duration::from_secs(seconds));
    assert_eq!(later(1, Duration::ZERO, 0.0), again(5));
    assert_eq!(later(2, Duration::ZERO, 0.0), again(10));
    assert_eq!(later(4, Duration::ZERO, 1.0), again(30));
    assert_eq!(later(40, Duration::ZERO, 0.0), again(3_600));
    assert_eq!(later(60, Duration::ZERO, 0.0), Next::GiveUp);
    assert_eq!(later(1, day, 0.0), Next::GiveUp);
    let asked = |seconds| {
        next(
            Answer::Later(Some(Duration::from_secs(seconds))),
            1,
            Duration::ZERO,
            0.0,
        )
    };
    assert_eq!(asked(30), again(30));
    assert_eq!(asked(1), again(5), "never sooner than we would");
    assert_eq!(asked(1_000_000), again(3_600), "nor later than we bear");
    assert_eq!(next(Answer::Refused, 2, Duration::ZERO, 0.0), again(10));
    assert_eq!(next(Answer::Refused, 3, Duration::ZERO, 0.0), Next::GiveUp);
    assert_eq!(next(Answer::Never, 1, Duration::ZERO, 0.0), Next::GiveUp);
    assert_eq!(next(Answer::Taken, 99, day, 0.0), Next::Delivered);
    assert_eq!(next(Answer::Nobody, 1, Duration::ZERO, 0.0), Next::Forget);
    // However it goes, it ends within the day.
    let (mut age, mut tries) = (Duration::ZERO, 1);
    while let Next::Again(pause) = later(tries, age, 0.5) {
        age += pause;
        tries += 1;
    }
    assert!(age <= day && tries > 30, "{tries} tries in {age:?}");
}

#[test]
fn an_end_is_soon_when_most_of_the_time_is_over() {
    let hour = |hour: i64| Timestamp::from_millis(hour * 3_600_000);
    let soon = |end, used, now| expires_soon(hour(end), hour(used), hour(now));
    assert!(!soon(168, 0, 143), "a day before the end of a week");
    assert!(soon(168, 0, 144));
    assert!(!soon(8, 0, 5) && soon(8, 0, 6), "two hours of eight");
    assert!(!soon(8, 0, 8), "it has ended");
}
