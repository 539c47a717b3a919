//! From values to settings and back.

use super::*;
use serde_json::json;

fn chart() -> Facts {
    Facts {
        defaults: json!({
            "replicas": 2,
            "image": {"repository": "shop", "tag": "1"},
            "ingress": {"enabled": true, "hosts": [{"host": "a", "paths": ["/"]}]},
            "annotations": {"prometheus.io/scrape": "true"},
            "resources": {},
            "nothing": null,
        }),
        schema: Schema::from(json!({
            "properties": {
                "debug": {"type": "boolean"},
                "port": {"type": ["integer", "string"]},
                "zip": {"type": "string"},
                "either": {"type": ["string", "null"]},
            },
        })),
        composed: false,
    }
}

fn told(facts: &Facts) -> BTreeMap<String, String> {
    facts.texts()
}

/// The values when these settings differ from the defaults.
fn with(edits: &[(&str, &str)]) -> Result<Value, Contradiction> {
    let facts = chart();
    let mut given = told(&facts);
    for (key, text) in edits {
        given.insert((*key).to_owned(), (*text).to_owned());
    }
    facts.values(&given)
}

#[test]
fn defaults_are_settings_with_dots() {
    let all = told(&chart());
    let all: Vec<_> = all
        .iter()
        .map(|(key, text)| format!("{key}={text}"))
        .collect();
    assert_eq!(
        all,
        [
            r#"annotations={"prometheus.io/scrape":"true"}"#,
            "image.repository=shop",
            "image.tag=1",
            "ingress.enabled=true",
            r#"ingress.hosts=[{"host":"a","paths":["/"]}]"#,
            "nothing=",
            "replicas=2",
            "resources={}",
        ]
    );
    assert_eq!(flatten(&Value::Null), []);
}

#[test]
fn what_nobody_edited_is_left_to_the_chart() {
    assert_eq!(with(&[]).unwrap(), json!({}));
}

#[test]
fn types_are_those_of_the_schema_then_of_the_default_then_as_it_looks() {
    let edits = [
        ("replicas", "3"),
        ("image.tag", "7"),
        ("debug", "true"),
        ("port", "80"),
        ("zip", "01234"),
        ("either", ""),
        ("resources.limits.cpu", "2"),
        ("free.yes", "true"),
        ("free.zero", "007"),
        ("free.text", "1.5"),
        ("free.minus", "-4"),
        ("annotations", r#"{"a/b":"c"}"#),
    ];
    assert_eq!(
        with(&edits).unwrap(),
        json!({
            "replicas": 3,
            "image": {"tag": "7"},
            "debug": true,
            "port": 80,
            "zip": "01234",
            "either": "",
            "resources": {"limits": {"cpu": 2}},
            "free": {"yes": true, "zero": "007", "text": "1.5", "minus": -4},
            "annotations": {"a/b": "c"},
        })
    );
    // What does not fit is passed on, so that Helm says what is wrong with it.
    let wrong = with(&[("debug", "perhaps"), ("replicas", "many")]).unwrap();
    assert_eq!(wrong, json!({"debug": "perhaps", "replicas": "many"}));
}

#[test]
fn what_is_called_like_a_number_keeps_its_name() {
    let facts = Facts {
        defaults: json!({"tag": 1.1, "count": 1}),
        schema: Schema::from(json!({
            "properties": {
                "weight": {"type": "number"},
                "version": {"type": ["number", "string"]},
            },
        })),
        composed: false,
    };
    let typed = |key: &str, text: &str| facts.typed(&path(key), text);
    assert_eq!(typed("tag", "1.20"), json!("1.20"));
    assert_eq!(typed("tag", "1.5"), json!(1.5));
    assert_eq!(typed("tag", "1e3"), json!("1e3"));
    assert_eq!(typed("count", "2.50"), json!("2.50"));
    assert_eq!(typed("version", "1.20"), json!("1.20"));
    assert_eq!(typed("version", "1.5"), json!(1.5));
    // Unless nothing but a number will do.
    assert_eq!(typed("weight", "1.20"), json!(1.2));
}

#[test]
fn one_item_of_a_list_is_changed_and_the_others_stay() {
    let one = with(&[("ingress.hosts[0].host", "b")]).unwrap();
    let hosts = json!([{"host": "b", "paths": ["/"]}]);
    assert_eq!(one, json!({"ingress": {"hosts": hosts}}));
    let more = with(&[("ingress.hosts[0].paths[1]", "/api")]).unwrap();
    let hosts = json!([{"host": "a", "paths": ["/", "/api"]}]);
    assert_eq!(more, json!({"ingress": {"hosts": hosts}}));
    let why = with(&[("ingress.hosts[2].host", "b")]).unwrap_err();
    assert_eq!(
        why.to_string(),
        "setting ingress.hosts[2].host is item 2 of a list that has 1"
    );
}

#[test]
fn what_was_left_out_is_taken_from_the_chart() {
    let facts = chart();
    let mut given = told(&facts);
    given.remove("image.tag");
    given.remove("ingress.hosts");
    given.remove("resources");
    given.insert("resources.limits".to_owned(), "{}".to_owned());
    assert_eq!(
        facts.values(&given).unwrap(),
        json!({
            "image": {"tag": null},
            "ingress": {"hosts": null},
            "resources": {"limits": "{}"},
        })
    );
}

#[test]
fn settings_that_cannot_be_together_are_refused() {
    let why = with(&[("image.tag", "v7"), ("image.tag.suffix", "x")]).unwrap_err();
    assert_eq!(
        why.to_string(),
        "setting image.tag.suffix is part of image.tag, which is something else than a mapping"
    );
    // Whether or not it was edited.
    with(&[("image.tag.suffix", "x")]).unwrap_err();
    with(&[("replicas[0]", "x")]).unwrap_err();
    let why = with(&[("image", "x"), ("image.tag", "v7")]).unwrap_err();
    assert!(matches!(why, Contradiction::Inside { .. }), "{why}");
    let why = with(&[("ingress.hosts.first", "x"), ("ingress.hosts", "[]")]).unwrap_err();
    assert!(matches!(why, Contradiction::Inside { .. }), "{why}");
    // What is not set has room for parts.
    let inside = with(&[("nothing.more", "x")]).unwrap();
    assert_eq!(inside, json!({"nothing": {"more": "x"}}));
}

#[test]
fn what_is_wrong_is_found_in_what_the_chart_would_have() {
    let facts = Facts {
        defaults: json!({"image": {"name": "shop", "tag": "1"}, "size": "1Gi", "none": null}),
        schema: Schema::from(json!({
            "required": ["none"],
            "properties": {
                "image": {"required": ["name", "tag"], "properties": {"tag": {"type": "string"}}},
                "size": {"pattern": "^[0-9]+[MG]i$"},
                "debug": {"type": "boolean"},
                "none": {"type": "string"},
            },
        })),
        composed: false,
    };
    let wrong = |facts: &Facts, edits: &[(&str, Option<&str>)]| {
        let mut given = facts.texts();
        for (key, text) in edits {
            match text {
                Some(text) => drop(given.insert((*key).to_owned(), (*text).to_owned())),
                None => drop(given.remove(*key)),
            }
        }
        let misfits = facts.misfits(&facts.made(&given).values);
        let line = |one: &Misfit| format!("{} {}", written(&one.place), one.found);
        misfits.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(wrong(&facts, &[]), [""; 0]);
    let good = [("image.tag", Some("7")), ("debug", Some("true"))];
    assert_eq!(wrong(&facts, &good), [""; 0]);
    let bad = [
        ("image.tag", None),
        ("debug", Some("perhaps")),
        ("size", Some("huge")),
    ];
    let all = ["debug \"perhaps\"", "image.tag nothing", "size \"huge\""];
    assert_eq!(wrong(&facts, &bad), all);
    // Other charts may have what is not there.
    let composed = Facts {
        composed: true,
        ..facts
    };
    assert_eq!(wrong(&composed, &[("image.tag", None)]), [""; 0]);
}

#[test]
fn what_cannot_be_does_not_hide_what_is_wrong() {
    let facts = chart();
    let mut given = facts.texts();
    for (key, text) in [
        ("image.tag.suffix", "x"),
        ("replicas[0]", "x"),
        ("debug", "y"),
    ] {
        given.insert(key.to_owned(), text.to_owned());
    }
    let made = facts.made(&given);
    let keys: Vec<_> = made.contradictions.iter().map(Contradiction::key).collect();
    assert_eq!(keys, ["image.tag.suffix", "replicas[0]"]);
    assert_eq!(facts.misfits(&made.values).len(), 1);
}

proptest::proptest! {
    /// Whatever a chart's defaults are: settings that are those defaults change nothing, and
    /// settings that are given are what the chart gets.
    #[test]
    fn settings_are_what_the_chart_gets(
        names in proptest::collection::vec("[a-c](\\.[a-c]){0,2}", 1..6),
        texts in proptest::collection::vec("[a-z0-9]{1,3}", 6),
    ) {
        let mut facts = Facts { defaults: json!({}), ..Facts::default() };
        let given: BTreeMap<_, _> = names.into_iter().zip(texts).collect();
        let Ok(values) = facts.values(&given) else {
            // One of them is a part of another.
            return Ok(());
        };
        for (key, text) in &given {
            let value = at(&values, &path(key)).unwrap();
            proptest::prop_assert_eq!(value, &facts.typed(&path(key), text));
        }
        facts.defaults = values;
        let same = told(&facts);
        proptest::prop_assert_eq!(facts.values(&same).unwrap(), json!({}));
    }
}
