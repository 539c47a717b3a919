//! Keys, values, edits, and what comes of them.

use super::*;
use expect_test::{Expect, expect};

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn defaults(told: &[(&str, &str)]) -> Defaults {
    Defaults::new(
        told.iter()
            .map(|(k, v)| (Key::lenient(k).unwrap(), v.parse().unwrap())),
    )
}

#[track_caller]
fn check(told: &[(&str, &str)], edits: &[(&str, Edit)], expected: &Expect) {
    let edits = edits
        .iter()
        .map(|(k, edit)| (key(k), edit.clone()))
        .collect();
    let settings = effective(&defaults(told), &edits);
    let line = |setting: &Setting| {
        let value = match &setting.value {
            Given::Plain(value) => value.as_str(),
            Given::Secret => "(secret)",
        };
        format!("{}={value} {:?}\n", setting.key, setting.source)
    };
    expected.assert_eq(&settings.iter().map(line).collect::<String>());
}

#[test]
fn edits_replace_remove_and_add() {
    check(
        &[
            ("ingress.enabled", "true"),
            ("image.tag", ""),
            ("motd", "hello, \"world\""),
        ],
        &[
            ("image.tag", Edit::Set("v7".parse().unwrap())),
            ("ingress.enabled", Edit::Removed),
            ("own", Edit::Set("a=b\n'c'".parse().unwrap())),
            ("password", Edit::Secret),
            ("never.there", Edit::Removed),
        ],
        &expect![[r#"
            image.tag=v7 Edited
            motd=hello, "world" Default
            own=a=b
            'c' Added
            password=(secret) Added
        "#]],
    );
}

#[test]
fn the_first_of_two_defaults_counts_however_it_is_written() {
    check(
        &[("a.b", "1"), ("a..b", "2"), (" a . b ", "3")],
        &[],
        &expect![[r"
            a.b=1 Default
        "]],
    );
}

#[test]
fn keys_of_people_are_written_as_they_are_meant() {
    let why = |text: &str| text.parse::<Key>().unwrap_err().to_string();
    assert_eq!(
        why("a..b"),
        "key `a..b` has a dot or a blank too many; `a.b` would do"
    );
    assert_eq!(
        why(" a.b."),
        "key ` a.b.` has a dot or a blank too many; `a.b` would do"
    );
    assert_eq!(why("..."), "key is empty");
    assert_eq!(why("a=b"), "key `ab` has '=', which keys cannot have");
    assert_eq!(why("a\nb"), "key `ab` has '\\n', which keys cannot have");
    assert_eq!(
        why(&"x".repeat(513)),
        "key has 513 bytes, at most 512 are allowed"
    );
}

#[test]
fn values_are_anything_that_an_argument_can_be() {
    let whole = "a=b \"c\" 'd'\n\te ü".to_owned();
    assert_eq!(Value::try_from(whole.clone()).unwrap().as_str(), whole);
    assert_eq!(
        Value::try_from("a\0b".to_owned()).unwrap_err(),
        ValueError::Nul { at: 1 }
    );
    let long = Value::try_from("x".repeat(Value::LEN_MAX + 1));
    assert!(matches!(long, Err(ValueError::TooLong { .. })));
}

#[test]
fn a_change_sets_and_forgets_at_once() {
    let mut edits = Edits::default();
    edits.application.insert(key("a"), Edit::Secret);
    edits.deployment.insert(key("b"), Edit::Removed);
    let change = Change {
        set: vec![(
            Level::Application,
            key("c"),
            Edit::Set("1".parse().unwrap()),
        )],
        unset: vec![
            (Level::Application, key("a")),
            (Level::Deployment, key("x")),
        ],
    };
    let changed = edits.changed(&change);
    let keys: Vec<_> = changed.application.keys().map(Key::as_str).collect();
    assert_eq!(keys, ["c"]);
    assert_eq!(changed.deployment, edits.deployment);
    let mut faults = Faults::default();
    change.check(&mut faults);
    assert!(faults.is_empty());
    let twice = Change {
        unset: vec![(Level::Application, key("c"))],
        ..change
    };
    twice.check(&mut faults);
    assert_eq!(
        faults.into_vec()[0].to_string(),
        "application.c: is named twice in one change"
    );
}
