//! What becomes of every kind of row, and what is left behind.

use super::*;
use expect_test::expect;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

const NOW: i64 = 1_700_000_000;

fn row(name: &str, status: &str) -> Deployment {
    Deployment {
        id: 7,
        name: name.to_owned(),
        status: status.to_owned(),
        since: Some(at(NOW - 50)),
        created_at: Some(at(NOW - 500)),
        updated_at: Some(at(NOW - 40)),
        archived_at: None,
        overrides: Overrides {
            application: Some("[]".to_owned()),
            deployment: Some("[]".to_owned()),
        },
        links: Some("[]".to_owned()),
    }
}

fn taken(row: &Deployment) -> Taken {
    let (taken, left) = environment(row, at(NOW));
    assert_eq!(left, []);
    taken.unwrap()
}

/// Why a row, or something of it, is left behind.
fn left(row: &Deployment) -> String {
    let (_, left) = environment(row, at(NOW));
    let lines = left
        .iter()
        .map(|left| format!("{}: {}\n", left.what, left.why));
    lines.collect()
}

#[test]
fn every_status_has_its_own_here() {
    let words = [
        "CreatePending",
        "UpdatePending",
        "ArchivePending",
        "Running",
        "GenericFailure",
        "PartialAvailability",
        "TagMismatch",
        "Archived",
        "CleanupFailed",
    ];
    let read: Vec<_> = words.map(|word| taken(&row("orange", word)).status).into();
    expect![[r"
        create-pending
        update-pending
        archive-pending
        running
        failure
        partial-failure
        tag-mismatch
        archived
        cleanup-failed
    "]]
    .assert_eq(&read.iter().map(|s| format!("{s}\n")).collect::<String>());
}

#[test]
fn dates_are_kept_and_those_that_cannot_be_are_replaced() {
    let mut old = row("orange", "Archived");
    old.archived_at = Some(at(NOW - 45));
    let kept = taken(&old);
    assert_eq!(kept.archived_at, Some(at(NOW - 45)));
    assert_eq!((kept.created_at, kept.since), (at(NOW - 500), at(NOW - 50)));
    assert_eq!(kept.origin, "octopod/7/1699999500000");
    // Without a date one that rests does so since it is archived.
    old.archived_at = None;
    assert_eq!(taken(&old).archived_at, Some(at(NOW - 50)));
    assert_eq!(taken(&row("orange", "Running")).archived_at, None);
    // The future would keep whoever counts from it, and nobody was there in the year 200000.
    old.since = Some(at(NOW + 9_999));
    old.updated_at = Some(at(6_000_000_000_000));
    old.created_at = None;
    let kept = taken(&old);
    assert_eq!((kept.since, kept.created_at), (at(NOW), at(NOW)));
    assert_eq!(kept.updated_at, at(NOW));
}

#[test]
fn overrides_of_both_levels_and_tombstones_are_kept() {
    let mut old = row("orange", "Running");
    let added =
        |key: &str, value: &str| serde_json::json!([key, {"tag": "ValueAdded", "contents": value}]);
    let application = serde_json::json!([
        added("image.tag", "v7"),
        added(" a .. b ", "normal"),
        added("a.b", "second"),
        ["ingress.enabled", {"tag": "ValueDeleted"}],
    ]);
    old.overrides.application = Some(application.to_string());
    old.overrides.deployment = Some(serde_json::json!([added("chart", "x=\"y\"\n")]).to_string());
    let edits = taken(&old).edits;
    let set = |text: &str| Edit::Set(text.parse().unwrap());
    let key = |text: &str| text.parse::<Key>().unwrap();
    let expected = [
        (key("a.b"), set("normal")),
        (key("image.tag"), set("v7")),
        (key("ingress.enabled"), Edit::Removed),
    ];
    assert_eq!(edits.application, expected.into());
    assert_eq!(edits.deployment, [(key("chart"), set("x=\"y\"\n"))].into());
}

#[test]
fn what_cannot_be_taken_is_told_and_keeps_nothing_else() {
    let mut odd = row("orange", "Running");
    odd.overrides.application = Some(
        r#"[["", {"tag": "ValueAdded", "contents": "x"}], ["a", {"tag": "Odd"}], ["b"], 7,
            ["a=b", {"tag": "ValueDeleted"}], ["good", {"tag": "ValueAdded", "contents": "1"}]]"#
            .to_owned(),
    );
    odd.overrides.deployment = Some("{}".to_owned());
    odd.links = Some(r#"[{"name": "app", "link": "https://x"}, {"name": "none"}, 3]"#.to_owned());
    let mut nothing = row("lemon", "Running");
    nothing.overrides = Overrides::default();
    nothing.links = None;
    let told: String = [
        row("a", "Running"),
        row("a-name-that-is-too-long", "Running"),
        row("lemon-", "Running"),
        row("Lemon", "Running"),
        row("\u{1b}[2Jx", "Running"),
        row("lemon", "DeletePending"),
        row("lemon", ""),
        nothing,
        odd.clone(),
    ]
    .iter()
    .map(left)
    .collect();
    expect![[r"
        environment `a`: name has 1 characters, at least 2 are needed
        environment `a-name-that-is-too-long`: name has 23 characters, at most 16 are allowed
        environment `lemon-`: a name neither begins nor ends with a hyphen; allowed are a-z, 0-9 and, inside, hyphens
        environment `Lemon`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `lemon`
        environment `�[2Jx`: name has `\u{1b}`; allowed are a-z, 0-9 and, inside, hyphens
        environment `lemon`: its status `DeletePending` is none that is known
        environment `lemon`: its status `` is none that is known
        environment `orange`: one of its application overrides is left out: key is empty
        environment `orange`: one of its application overrides is left out: `a` is neither added nor deleted
        environment `orange`: one of its application overrides is left out: it is no pair of a key and a value
        environment `orange`: one of its application overrides is left out: it is no pair of a key and a value
        environment `orange`: one of its application overrides is left out: key `ab` has '=', which keys cannot have
        environment `orange`: its deployment overrides are no list, and are left out
        environment `orange`: one of its links is left out
        environment `orange`: one of its links is left out
    "]]
    .assert_eq(&told);
    let (kept, _) = environment(&odd, at(NOW));
    let kept = kept.unwrap();
    assert_eq!(kept.edits.application.len(), 1);
    assert_eq!(kept.links.len(), 1);
}

#[test]
fn entries_of_the_log_become_actions() {
    let entry = Entry {
        id: 13,
        deployment: 7,
        action: Some("update".to_owned()),
        exit: 2,
        at: Some(at(NOW - 30)),
        took: Duration::from_millis(5_210),
        overrides: Overrides::default(),
        stdout: "x".repeat(1_000_000),
        stderr: "bad".to_owned(),
    };
    let (action, left) = super::action("orange", entry.clone(), at(NOW));
    let action = action.unwrap();
    assert_eq!(left, []);
    assert_eq!((action.number, action.deed), (13, Deed::Update));
    assert_eq!((action.exit, action.author.as_str()), (2, "octopod"));
    assert_eq!(action.ended_at, at(NOW - 30));
    assert!(action.stdout.len() <= TakenAction::OUTPUT_BYTES_MAX);
    let mut told = String::new();
    for (what, at) in [
        (None, entry.at),
        (Some("delete".to_owned()), entry.at),
        (Some("create".to_owned()), None),
    ] {
        let odd = Entry {
            action: what,
            at,
            ..entry.clone()
        };
        let (action, left) = super::action("orange", odd, super::tests::at(NOW));
        assert_eq!(action, None);
        told.extend(
            left.iter()
                .map(|left| format!("{}: {}\n", left.what, left.why)),
        );
    }
    expect![[r"
        entry 13 in the log of `orange`: it does not say what was done
        entry 13 in the log of `orange`: its action `delete` is none that is known
        entry 13 in the log of `orange`: nobody knows when it was
    "]]
    .assert_eq(&told);
}
