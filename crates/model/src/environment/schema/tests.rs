//! What schemas say, and what is wrong by them.

use super::*;
use crate::environment::config::Level::{self, Application, Deployment};
use expect_test::{Expect, expect};
use serde_json::json;

fn types(schema: &Schema, key: &str) -> Vec<Type> {
    schema.types(&path(key)).into_iter().collect()
}

#[test]
fn types_are_found_wherever_they_are_said() {
    let schema = Schema::from(json!({
        "properties": {
            "count": {"type": "integer"},
            "either": {"type": ["string", "null"]},
            "mode": {"enum": ["fast", 1]},
            "image": {"$ref": "#/definitions/image"},
            "labels": {"additionalProperties": {"type": "string"}},
            "hosts": {"type": "array", "items": {"properties": {"port": {"type": "integer"}}}},
            "pair": {"prefixItems": [{"type": "string"}], "items": {"type": "boolean"}},
            "any": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
            "odd": {"type": "decimal"},
            "circle": {"$ref": "#/properties/circle"},
        },
        "patternProperties": {"Port$": {"type": "integer"}, "(": {"type": "string"}},
        "definitions": {"image": {"properties": {"tag": {"type": "string"}}}},
    }));
    assert_eq!(types(&schema, "count"), [Type::Integer]);
    assert_eq!(types(&schema, "either"), [Type::Null, Type::Text]);
    assert_eq!(types(&schema, "mode"), [Type::Integer, Type::Text]);
    assert_eq!(types(&schema, "image.tag"), [Type::Text]);
    assert_eq!(types(&schema, "labels.app"), [Type::Text]);
    assert_eq!(types(&schema, "hosts[0].port"), [Type::Integer]);
    assert_eq!(types(&schema, "pair[0]"), [Type::Text]);
    assert_eq!(types(&schema, "pair[1]"), [Type::Boolean]);
    assert_eq!(types(&schema, "any"), [Type::Boolean, Type::Text]);
    assert_eq!(types(&schema, "webPort"), [Type::Integer]);
    assert_eq!(types(&schema, "odd"), []);
    assert_eq!(types(&schema, "circle"), []);
    assert_eq!(types(&schema, "nobody.knows"), []);
    assert_eq!(types(&Schema::default(), "count"), []);
}

fn keys(schema: &Schema, most: usize) -> Vec<String> {
    let known = schema.known(&BTreeMap::new(), most);
    known.into_iter().map(|known| known.key).collect()
}

#[test]
fn keys_are_the_ends_of_all_paths() {
    let schema = Schema::from(json!({
        "properties": {
            "image": {"$ref": "#/definitions/image"},
            "env": {"type": "object"},
            "kubernetes.io/odd": {"type": "string"},
        },
        "definitions": {"image": {"properties": {"tag": {}, "name": {"type": "string"}}}},
    }));
    assert_eq!(keys(&schema, 10), ["env", "image.name", "image.tag"]);
    assert_eq!(keys(&schema, 1).len(), 1);
    // One that leads to itself ends, too.
    let deep = Schema::from(json!({"properties": {"a": {"$ref": "#"}}}));
    let end = "a.".repeat(DEPTH_MAX);
    assert_eq!(keys(&deep, 10), [end.trim_end_matches('.')]);
}

/// Settings in lines: the name, what is allowed, the default, what it is for.
fn known(schema: Value, defaults: &[(&str, &str)], expected: &Expect) {
    let defaults = defaults.iter();
    let defaults = defaults.map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
    let known = Schema::from(schema).known(&defaults.collect(), 100);
    let line = |known: &KnownKey| {
        let shape = &known.shape;
        let required = if shape.required { " (required)" } else { "" };
        let default = known.default.as_deref();
        let default = default.map(|text| format!(" [{text}]")).unwrap_or_default();
        let description = shape.description.as_deref();
        let description = description.map(|text| format!(" # {text}"));
        let description = description.unwrap_or_default();
        let words = shape.words();
        format!("{}: {words}{default}{required}{description}\n", known.key)
    };
    expected.assert_eq(&known.iter().map(line).collect::<String>());
}

#[test]
fn what_is_known_of_settings_comes_from_schema_and_defaults() {
    known(
        json!({
            "required": ["replicas"],
            "properties": {
                "replicas": {"type": "integer", "minimum": 0, "maximum": 20, "description": "How many pods"},
                "pull": {"enum": ["Always", "Never"], "title": "When to fetch"},
                "path": {"type": "string", "pattern": "^/", "maxLength": 1, "default": "/"},
                "debug": {"type": "boolean", "default": false},
                "weight": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
                "hosts": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                "extra": {"type": "object"},
                "port": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/port"}], "description": "Of the web"},
                "mixed": {"anyOf": [{"type": "boolean"}, {"enum": ["auto"]}]},
                "wide": {"allOf": [{"type": "number"}, {"type": "integer", "minimum": 5}]},
                "any": {},
                "labels": {"additionalProperties": {"type": "string"}},
            },
            "$defs": {"port": {"type": "integer", "minimum": 1, "maximum": 65535}},
        }),
        &[("replicas", "2"), ("free", "x"), ("labels.team", "web")],
        &expect![[r#"
            any: something else
            debug: true or false [false]
            extra: a mapping, as JSON
            free: something else [x]
            hosts: a list of at least 1 item, as JSON
            labels: something else
            labels.team: a text [web]
            mixed: true or false or a text
            path: a text of at most 1 character that matches ^/ [/]
            port: null or a whole number from 1 to 65535 # Of the web
            pull: "Always" or "Never" # When to fetch
            replicas: a whole number from 0 to 20 [2] (required) # How many pods
            weight: a number, more than 0, a multiple of 0.5
            wide: a whole number of at least 5
        "#]],
    );
}

#[test]
fn what_is_too_much_for_people_is_left_out() {
    let many: Vec<_> = (0..1_000).map(|number| json!(number)).collect();
    let long = "x".repeat(2_000);
    let said = json!({"properties": {"a": {
        "type": "integer", "enum": many, "description": long, "pattern": long, "default": long,
    }}});
    known(
        said,
        &[],
        &expect![[r#"
        a: a whole number
    "#]],
    );
}

/// What is wrong with values, in lines.
fn wrong(schema: &Value, values: &Value) -> String {
    let misfits = Schema::from(schema.clone()).judge(values, true);
    let line = |misfit: &Misfit| {
        let Misfit {
            place,
            code,
            found,
            allowed,
        } = misfit;
        let (place, code) = (written(place), code.as_str());
        format!("{place} ({code}): {found} <> {allowed}\n")
    };
    misfits.iter().map(line).collect()
}

/// A schema, a value that fits, one that does not, and which rule that breaks.
const RULES: &str = r#"
    {"type": "integer"} | 2 | "2" | type
    {"type": "integer"} | 2.0 | 2.5 | type
    {"type": "number"} | 2 | true | type
    {"type": "string"} | "1" | 1 | type
    {"type": "boolean"} | false | "no" | type
    {"type": "array"} | [] | {} | type
    {"type": "object"} | {} | "{}" | type
    {"type": ["string", "integer"]} | 1 | 1.5 | type
    {"enum": ["a", 1]} | 1.0 | "b" | format
    {"const": "a"} | "a" | "b" | format
    {"minimum": 1} | 1 | 0 | range
    {"maximum": 1.5} | 1.5 | 2 | range
    {"exclusiveMinimum": 1} | 1.1 | 1 | range
    {"exclusiveMaximum": 1} | 0.9 | 1 | range
    {"multipleOf": 5} | 10 | 11 | range
    {"minLength": 2} | "äö" | "ä" | range
    {"maxLength": 2} | "äö" | "abc" | range
    {"pattern": "^v[0-9]+$"} | "v1" | "1" | format
    {"minItems": 1} | [1] | [] | range
    {"maxItems": 1} | [1] | [1, 2] | range
    {"items": {"type": "string"}} | ["a"] | [1] | type
    {"items": [{"type": "string"}]} | ["a", 1] | [1] | type
    {"required": ["a"]} | {"a": 1} | {} | required
    {"additionalProperties": false, "properties": {"a": true}} | {"a": 1} | {"b": 1} | unknown-field
    {"additionalProperties": {"type": "string"}} | {"a": "b"} | {"a": 1} | type
    {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false} | {"x-a": "b"} | {"x-a": 1} | type
    {"properties": {"a": false}} | {} | {"a": 1} | unknown-field
    {"allOf": [{"type": "integer"}, {"minimum": 2}]} | 2 | 1 | range
    {"anyOf": [{"type": "integer"}, {"type": "boolean"}]} | true | "x" | type
    {"oneOf": [{"type": "integer", "minimum": 2}, {"type": "null"}]} | 2 | 1 | range
    {"anyOf": [{"const": "a"}, {"const": "b"}]} | "b" | "c" | format
"#;

#[test]
fn every_rule_that_is_understood_refuses_and_lets_pass() {
    for line in RULES.trim().lines() {
        let parts: Vec<_> = line.split(" | ").map(str::trim).collect();
        let [schema, good, bad, code] = parts[..] else {
            panic!("{line}");
        };
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let schema = json!({"properties": {"it": read(schema)}});
        let passed = wrong(&schema, &json!({"it": read(good)}));
        assert_eq!(passed, "", "{line}");
        let refused = wrong(&schema, &json!({"it": read(bad)}));
        assert!(refused.contains(&format!("({code})")), "{line}: {refused}");
        assert_eq!(refused.lines().count(), 1, "{refused}");
    }
}

#[test]
fn what_is_not_understood_lets_everything_pass() {
    for said in [
        json!(true),
        json!({}),
        json!(null),
        json!("a text"),
        json!(["a list"]),
        json!({"type": "decimal"}),
        json!({"type": ["string", 5]}),
        json!({"type": 5}),
        json!({"format": "email"}),
        json!({"pattern": "(?=look)"}),
        json!({"pattern": "("}),
        json!({"minimum": "5"}),
        json!({"exclusiveMinimum": true, "minimum": 0}),
        json!({"not": {}}),
        json!({"if": {}, "then": {"type": "integer"}}),
        json!({"$ref": "https://example.org/schema.json"}),
        json!({"$ref": "other.json#/a"}),
        json!({"$ref": "#/nowhere"}),
        json!({"$ref": "#anchor"}),
        json!({"$ref": 5}),
        json!({"$ref": "#/properties/it"}),
        json!({"$ref": "#", "type": "integer"}),
        json!({"$id": "https://example.org/other", "type": "integer"}),
        json!({"anyOf": []}),
        json!({"anyOf": [{"type": "integer"}, {"novel": true}]}),
        json!({"allOf": "no list"}),
        json!({"newKeyword": {"type": "integer"}}),
    ] {
        let schema = json!({"properties": {"it": said}});
        let found = wrong(&schema, &json!({"it": "some text"}));
        assert_eq!(found, "", "{schema}");
    }
    for said in [
        json!({"patternProperties": {"(?=look)": {}}, "additionalProperties": false}),
        json!({"properties": [], "required": "a", "items": 5}),
        json!({"dependentRequired": {"a": ["b"]}}),
    ] {
        assert_eq!(wrong(&said, &json!({"a": 1})), "", "{said}");
    }
    // What is left out for Helm to take away is no value.
    let nothing = json!({"properties": {"it": {"type": "string"}}, "additionalProperties": false});
    assert_eq!(wrong(&nothing, &json!({"it": null, "other": null})), "");
    // Letters and digits of other alphabets are Helm's to judge.
    let digits = json!({"properties": {"it": {"pattern": "^\\D+$"}}});
    assert_eq!(wrong(&digits, &json!({"it": "٣"})), "");
    assert_ne!(wrong(&digits, &json!({"it": "3"})), "");
}

#[test]
fn beside_a_reference_only_newer_drafts_say_something() {
    let said = |draft: &str| {
        json!({
            "$schema": draft,
            "properties": {"it": {"$ref": "#/definitions/text", "maxLength": 1}},
            "definitions": {"text": {"type": "string"}},
        })
    };
    let (old, new) = (
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    );
    let value = json!({"it": "long"});
    assert_eq!(wrong(&said(old), &value), "");
    expect![[r#"
        it (range): "long" <> a text of at most 1 character
    "#]]
    .assert_eq(&wrong(&said(new), &value));
    assert!(wrong(&said(old), &json!({"it": 1})).contains("(type)"));
}

#[test]
fn all_that_is_wrong_is_told_at_once_with_what_was_meant() {
    let schema = json!({
        "additionalProperties": false,
        "properties": {
            "replicas": {"type": "integer", "maximum": 20},
            "image": {
                "additionalProperties": false, "required": ["tag"],
                "properties": {"tag": {"type": "string", "minLength": 1}, "pullPolicy": {"enum": ["Always", "Never"]}},
            },
            "ports": {"items": {"properties": {"number": {"type": "integer"}}}},
            "either": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]},
        },
    });
    let values = json!({
        "replicas": 50, "imagine": 1, "replica": 2,
        "image": {"pullPolicy": "Sometimes"},
        "ports": [{"number": 1}, {"number": "two"}],
        "either": true,
    });
    expect![[r#"
        either (type): true <> a whole number of at least 1, or "auto"
        image.pullPolicy (format): "Sometimes" <> "Always" or "Never"
        image.tag (required): nothing <> a text of at least 1 character
        imagine (unknown-field): imagine <> allowed: either, image, ports, replicas
        ports[1].number (type): "two" <> a whole number
        replica (unknown-field): replica <> did you mean `replicas`?
        replicas (range): 50 <> a whole number of at most 20
    "#]]
    .assert_eq(&wrong(&schema, &values));
    // Where others may add something, nothing is missing.
    let partly = Schema::from(schema).judge(&json!({"image": {}}), false);
    assert_eq!(partly, []);
}

fn owners(all: &[(&str, Level, Sight)]) -> BTreeMap<String, Owner> {
    let owner = |(key, level, sight): &(&str, Level, Sight)| {
        let (level, sight) = (*level, *sight);
        ((*key).to_owned(), Owner { level, sight })
    };
    all.iter().map(owner).collect()
}

#[test]
fn faults_are_told_of_settings_and_nothing_of_what_is_secret() {
    let schema = Schema::from(json!({
        "additionalProperties": false,
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "replicas": {"type": "integer", "maximum": 20},
            "tag": {"minLength": 1},
            "hosts": {"items": {"type": "string"}},
            "password": {"minLength": 12},
            "pin": {"type": "integer"},
            "never": false,
            "users": {"additionalProperties": {"additionalProperties": false, "properties": {"admin": {}}}},
        },
    }));
    let values = json!({
        "replicas": "many",
        "tag": "",
        "hosts": ["a", 2],
        "password": "hunter2",
        "pin": "made-up-value",
        "users": {"ana": {"hunter2": true}},
        "strange": {"a": "hunter2", "b": 2},
        "imagine": 1,
        "never": "hunter2",
    });
    let owners = owners(&[
        ("replicas", Deployment, Sight::Open),
        ("tag", Application, Sight::Default),
        ("hosts", Application, Sight::Open),
        ("password", Application, Sight::Secret),
        ("pin", Application, Sight::MadeUp),
        ("users", Application, Sight::Secret),
        ("strange.a", Application, Sight::Secret),
        ("strange.b", Deployment, Sight::Open),
        ("imagine", Application, Sight::MadeUp),
        ("never", Application, Sight::Secret),
    ]);
    let told = faults(&schema.judge(&values, true), &owners);
    let told: String = told.iter().map(|fault| format!("{fault}\n")).collect();
    assert!(!told.contains("hunter2"), "{told}");
    expect![[r#"
        application.hosts[1]: found 2, allowed: a text
        application.imagine: `imagine` is not known to the chart; allowed: hosts, name, never, password, pin, replicas, tag, users
        application.never: `never` is not known to the chart; allowed: nothing
        application.password: found a secret value, allowed: a text of at least 12 characters
        deployment.replicas: found "many", allowed: a whole number of at most 20
        application.strange.a: `strange` is not known to the chart; allowed: hosts, name, never, password, pin, replicas, tag, users
        deployment.strange.b: `strange` is not known to the chart; allowed: hosts, name, never, password, pin, replicas, tag, users
        application.tag: found "", the default; allowed: a text of at least 1 character
        application.users: found a secret value, and something inside of it is not what the chart takes
        application.name: found nothing, allowed: a text
    "#]].assert_eq(&told);
}

#[test]
fn what_is_large_deep_or_leads_in_circles_ends() {
    let deep = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    assert_eq!(Schema::read(deep.as_bytes()).unwrap(), Schema::default());
    Schema::read(b"{").unwrap_err();
    Schema::read(b"").unwrap_err();
    // Each leads to all others, in every way there is.
    let circles: Vec<_> = (0..20)
        .map(|at| json!({"$ref": format!("#/$defs/s{at}")}))
        .collect();
    let one = json!({"anyOf": circles, "allOf": circles, "properties": {"a": {"$ref": "#"}}});
    let defs: serde_json::Map<_, _> = (0..20).map(|at| (format!("s{at}"), one.clone())).collect();
    let mut schema = one;
    schema["$defs"] = Value::Object(defs);
    let schema = Schema::from(schema);
    let nested = (0..100).fold(json!(1), |below, _| json!({"a": below}));
    schema.judge(&nested, true);
    schema.known(&BTreeMap::from([("a.b".to_owned(), String::new())]), 100);
    assert_eq!(types(&schema, "a.a.a"), []);
    // Patterns that would take for ever take nothing.
    let greedy: serde_json::Map<_, _> = (0..500)
        .map(|at| (format!("(a{{1,{}}}){{1,900}}", at + 100), json!({})))
        .collect();
    let greedy = Schema::from(json!({"patternProperties": greedy, "additionalProperties": false}));
    assert_eq!(greedy.judge(&json!({"b": 1}), true), []);
}

proptest::proptest! {
    /// Whatever schemas and values are: nothing breaks, and what is told is not of what fits.
    #[test]
    fn no_schema_breaks_anything(words in proptest::collection::vec((0usize..12, 0usize..6), 0..12), text in ".{0,6}") {
        let keywords = ["type", "enum", "const", "items", "properties", "additionalProperties", "required", "anyOf", "allOf", "$ref", "pattern", "minimum"];
        let values = [json!("integer"), json!(["a", {"type": "string"}]), json!({"a": {"type": "integer"}}), json!(false), json!("#"), json!(3)];
        let said: serde_json::Map<_, _> = words
            .into_iter()
            .filter_map(|(word, value)| Some(((*keywords.get(word)?).to_owned(), values.get(value)?.clone())))
            .collect();
        let schema = Schema::from(json!({"properties": {"it": said}}));
        let found = schema.judge(&json!({"it": {"a": [text]}}), true);
        for misfit in &found {
            proptest::prop_assert_eq!(misfit.place.first(), Some(&Step::Name("it".to_owned())));
        }
        schema.known(&BTreeMap::from([("it.a".to_owned(), String::new())]), 10);
    }
}
