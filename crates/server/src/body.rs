//! The shape of JSON bodies, checked in the words of the contract: every fault, with its place.
//!
//! Libraries that read JSON stop at the first mistake and speak of the types of this program.

mod environment;
mod twice;

pub(crate) use twice::twice;

use api::{GuestRequest, IntentRequest, ProjectRequest, TokenRequest};
use model::fault::{Code, Fault, Faults};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// How much of an unknown field's name is repeated to whoever sent it.
const SHOWN_LEN_MAX: usize = 40;

/// A body that is read as JSON.
pub(crate) trait Body: DeserializeOwned {
    /// Everything wrong with the shape of it.
    fn faults(tree: &Value) -> Vec<Fault>;
}

impl Body for IntentRequest {
    fn faults(tree: &Value) -> Vec<Fault> {
        let mut faults = Faults::default();
        check("", tree, Want::Fields(&INTENT), &mut faults);
        faults.into_vec()
    }
}

impl Body for GuestRequest {
    fn faults(tree: &Value) -> Vec<Fault> {
        let mut faults = Faults::default();
        check("", tree, Want::Fields(&GUEST), &mut faults);
        faults.into_vec()
    }
}

impl Body for TokenRequest {
    fn faults(tree: &Value) -> Vec<Fault> {
        let mut faults = Faults::default();
        check("", tree, Want::Fields(&TOKEN), &mut faults);
        faults.into_vec()
    }
}

impl Body for ProjectRequest {
    fn faults(tree: &Value) -> Vec<Fault> {
        let mut faults = Faults::default();
        check("", tree, Want::Fields(&PROJECT), &mut faults);
        faults.into_vec()
    }
}

/// What belongs in one place.
#[derive(Clone, Copy)]
enum Want {
    Text,
    /// One of these texts.
    Word(&'static [&'static str]),
    Number,
    /// A number of something, however many.
    Count,
    /// How a program ended.
    Exit,
    /// A point in time.
    Time,
    /// Yes or no.
    Truth,
    /// A text that is not repeated, or anything else that may be one by mistake.
    Hidden,
    /// A text, or null.
    Perhaps,
    /// An object with any fields, each with this in it.
    Map(&'static Self),
    /// A list of these.
    List(&'static Self),
    /// An object with these fields.
    Fields(&'static [Field]),
    /// An object with one of these fields.
    OneOf(&'static [Field]),
}

/// One field of an object.
struct Field {
    name: &'static str,
    want: Want,
    required: bool,
    /// Whether it may be null instead of being left out.
    nullable: bool,
}

const fn field(name: &'static str, want: Want) -> Field {
    Field {
        name,
        want,
        required: true,
        nullable: false,
    }
}

/// One that may be left out.
const fn optional(name: &'static str, want: Want) -> Field {
    Field {
        name,
        want,
        required: false,
        nullable: true,
    }
}

static INTENT: [Field; 4] = [
    field("cluster", Want::Text),
    field("wish", Want::OneOf(&WISHES)),
    field("reason", Want::Text),
    optional("expiresInSeconds", Want::Number),
];

static WISHES: [Field; 9] = [
    field("scale", Want::Fields(&SCALE)),
    field("replace", Want::Fields(&REPLACE)),
    field("retire", Want::Fields(&REPLACE)),
    field("retry", Want::Fields(&TASK)),
    field("cancel", Want::Fields(&TASK)),
    field("pause", Want::Fields(&[])),
    field("snapshot", Want::Fields(&[])),
    field("restore", Want::Fields(&RESTORE)),
    field("update", Want::Fields(&UPDATE)),
];

static RESTORE: [Field; 1] = [field("snapshot", Want::Text)];

static UPDATE: [Field; 1] = [field("pool", Want::Text)];

static SCALE: [Field; 2] = [field("pool", Want::Text), field("count", Want::Number)];

static REPLACE: [Field; 1] = [field("machine", Want::Text)];

static TASK: [Field; 1] = [field("task", Want::Text)];

static GUEST: [Field; 1] = [field("publicKey", Want::Text)];

static TOKEN: [Field; 4] = [
    field("name", Want::Text),
    field("role", Want::Word(&["viewer", "user", "operator", "admin"])),
    optional("project", Want::Text),
    optional("expiresInSeconds", Want::Number),
];

static PROJECT: [Field; 1] = [field("quota", Want::Fields(&QUOTA))];

static QUOTA: [Field; 3] = [
    optional("clusters", Want::Number),
    optional("machines", Want::Number),
    optional("environments", Want::Number),
];

/// Compares what is in one place with what belongs there.
fn check(path: &str, found: &Value, want: Want, faults: &mut Faults) {
    let wanted = match (want, found) {
        (Want::Text | Want::Hidden | Want::Perhaps, Value::String(_))
        | (Want::Perhaps, Value::Null)
        | (Want::Truth, Value::Bool(_)) => return,
        (Want::Number, found) if found.as_u64().is_some_and(|n| u32::try_from(n).is_ok()) => return,
        (Want::Count, found) if found.as_u64().is_some_and(|n| i64::try_from(n).is_ok()) => return,
        (Want::Exit, found) if found.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => return,
        (Want::Time, Value::String(text)) if text.parse::<api::Time>().is_ok() => return,
        (Want::Word(words), found) => return word(path, found, words, faults),
        (Want::Fields(fields), Value::Object(object)) => {
            return all_fields(path, object, fields, faults);
        }
        (Want::OneOf(fields), Value::Object(object)) if object.len() == 1 => {
            return one_field(path, object, fields, faults);
        }
        (Want::Map(of), Value::Object(object)) => {
            for (name, value) in object {
                check(&below(path, &cut(name)), value, *of, faults);
            }
            return;
        }
        (Want::List(of), Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                check(&format!("{path}[{at}]"), item, *of, faults);
            }
            return;
        }
        (Want::Hidden, _) => {
            let message = "found something else, allowed: a text";
            return faults.note(path, Code::Type, message);
        }
        (Want::Text, _) => "a text".to_owned(),
        (Want::Perhaps, _) => "a text or null".to_owned(),
        (Want::Truth, _) => "true or false".to_owned(),
        (Want::Number, _) => format!("a whole number from 0 to {}", u32::MAX),
        (Want::Count, _) => format!("a whole number from 0 to {}", i64::MAX),
        (Want::Exit, _) => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        (Want::Time, _) => "a point in time like 2026-03-07T02:00:00Z".to_owned(),
        (Want::Map(_), _) => "an object".to_owned(),
        (Want::List(_), _) => "a list".to_owned(),
        (Want::Fields([]), _) => "an empty object".to_owned(),
        (Want::Fields(fields), _) => format!("an object with {}", names(fields)),
        (Want::OneOf(fields), _) => format!("an object with one of {}", names(fields)),
    };
    let message = format!("found {}, allowed: {wanted}", kind(found));
    faults.note(path, Code::Type, message);
}

/// Compares a text with the words that belong there.
fn word(path: &str, found: &Value, words: &[&str], faults: &mut Faults) {
    if found.as_str().is_some_and(|text| words.contains(&text)) {
        return;
    }
    let shown = found.as_str().map_or_else(|| kind(found), quoted);
    let message = format!("found {shown}, allowed: {}", words.join(", "));
    faults.note(path, Code::Format, message);
}

/// Compares every field of an object with what belongs in it.
fn all_fields(path: &str, object: &Map<String, Value>, fields: &[Field], faults: &mut Faults) {
    for field in fields {
        match object.get(field.name) {
            None if !field.required => {}
            Some(Value::Null) if field.nullable => {}
            None => faults.note(
                below(path, field.name),
                Code::Required,
                "found nothing; this field is required",
            ),
            Some(value) => check(&below(path, field.name), value, field.want, faults),
        }
    }
    unknown(path, object.keys(), fields, faults);
}

/// Compares the only field of an object with what belongs in it.
fn one_field(path: &str, object: &Map<String, Value>, fields: &[Field], faults: &mut Faults) {
    for (name, value) in object {
        match fields.iter().find(|field| field.name == name) {
            Some(field) => check(&below(path, name), value, field.want, faults),
            None => unknown(path, [name], fields, faults),
        }
    }
}

/// Notes every field that nothing reads.
fn unknown<'a>(
    path: &str,
    found: impl IntoIterator<Item = &'a String>,
    fields: &[Field],
    faults: &mut Faults,
) {
    for name in found {
        if fields.iter().any(|field| field.name == name) {
            continue;
        }
        let shown = cut(name);
        let allowed = if fields.is_empty() {
            "none".to_owned()
        } else {
            names(fields)
        };
        let message = format!("unknown field; allowed: {allowed}");
        faults.note(below(path, &shown), Code::UnknownField, message);
    }
}

/// A text that somebody sent, as far as it is repeated to them.
fn quoted(text: &str) -> String {
    format!("`{}`", cut(text))
}

fn cut(text: &str) -> String {
    text.escape_debug().take(SHOWN_LEN_MAX).collect()
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn names(fields: &[Field]) -> String {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    names.join(", ")
}

fn kind(found: &Value) -> String {
    match found {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(fields) if fields.is_empty() => "an empty object".to_owned(),
        Value::Object(fields) => format!("an object with {} fields", fields.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn every_fault_is_told_with_its_place_and_what_is_allowed() {
        let told: String = [
            "[]",
            "{}",
            r#"{"cluster": 1, "wish": {}, "reason": null, "expiresInSeconds": -1, "author": "me"}"#,
            r#"{"cluster": "a", "wish": {"scale": {"pool": "p", "count": "5", "was": 3}}, "reason": "r"}"#,
            r#"{"cluster": "a", "wish": {"dance": {}}, "reason": "r"}"#,
            r#"{"cluster": "a", "wish": {"pause": {}, "retry": {"task": "t"}}, "reason": "r"}"#,
            r#"{"cluster": "a", "wish": {"retry": ["t"]}, "reason": "r"}"#,
            r#"{"cluster": "a", "wish": {"pause": {"for": 1}}, "reason": "r"}"#,
            r#"{"cluster": "a", "wish": {"pause": null}, "reason": "r", "expiresInSeconds": null}"#,
            r#"{"cluster": "a", "wish": {"pause": {}}, "reason": "r", "expiresInSeconds": 9}"#,
        ]
        .into_iter()
        .map(|text| {
            let faults = IntentRequest::faults(&serde_json::from_str(text).unwrap());
            let faults: String = faults.iter().map(|fault| format!("  {fault}\n")).collect();
            format!("{text}\n{faults}")
        })
        .collect();
        expect![[r#"
            []
              the document: found a list, allowed: an object with cluster, wish, reason, expiresInSeconds
            {}
              cluster: found nothing; this field is required
              wish: found nothing; this field is required
              reason: found nothing; this field is required
            {"cluster": 1, "wish": {}, "reason": null, "expiresInSeconds": -1, "author": "me"}
              cluster: found 1, allowed: a text
              wish: found an empty object, allowed: an object with one of scale, replace, retire, retry, cancel, pause, snapshot, restore, update
              reason: found null, allowed: a text
              expiresInSeconds: found -1, allowed: a whole number from 0 to 4294967295
              author: unknown field; allowed: cluster, wish, reason, expiresInSeconds
            {"cluster": "a", "wish": {"scale": {"pool": "p", "count": "5", "was": 3}}, "reason": "r"}
              wish.scale.count: found a text, allowed: a whole number from 0 to 4294967295
              wish.scale.was: unknown field; allowed: pool, count
            {"cluster": "a", "wish": {"dance": {}}, "reason": "r"}
              wish.dance: unknown field; allowed: scale, replace, retire, retry, cancel, pause, snapshot, restore, update
            {"cluster": "a", "wish": {"pause": {}, "retry": {"task": "t"}}, "reason": "r"}
              wish: found an object with 2 fields, allowed: an object with one of scale, replace, retire, retry, cancel, pause, snapshot, restore, update
            {"cluster": "a", "wish": {"retry": ["t"]}, "reason": "r"}
              wish.retry: found a list, allowed: an object with task
            {"cluster": "a", "wish": {"pause": {"for": 1}}, "reason": "r"}
              wish.pause.for: unknown field; allowed: none
            {"cluster": "a", "wish": {"pause": null}, "reason": "r", "expiresInSeconds": null}
              wish.pause: found null, allowed: an empty object
            {"cluster": "a", "wish": {"pause": {}}, "reason": "r", "expiresInSeconds": 9}
        "#]].assert_eq(&told);
    }

    #[test]
    fn tokens_and_projects_are_read_as_strictly() {
        let token = |text: &str| TokenRequest::faults(&serde_json::from_str(text).unwrap());
        let project = |text: &str| ProjectRequest::faults(&serde_json::from_str(text).unwrap());
        let told: String = [
            token(r#"{"name": "ci", "role": "boss", "project": 7, "expires": 1}"#),
            token(r#"{"name": "ci", "role": 1, "project": null}"#),
            project(r#"{"quota": {"clusters": -1, "machines": null, "nodes": 3}}"#),
            project("{}"),
        ]
        .iter()
        .flatten()
        .map(|fault| format!("{fault}\n"))
        .collect();
        expect![[r#"
            role: found `boss`, allowed: viewer, user, operator, admin
            project: found 7, allowed: a text
            expires: unknown field; allowed: name, role, project, expiresInSeconds
            role: found 1, allowed: viewer, user, operator, admin
            quota.clusters: found -1, allowed: a whole number from 0 to 4294967295
            quota.nodes: unknown field; allowed: clusters, machines, environments
            quota: found nothing; this field is required
        "#]]
        .assert_eq(&told);
        for role in model::access::Role::ALL {
            let text = format!(r#"{{"name": "ci", "role": "{role}"}}"#);
            assert_eq!(token(&text), []);
            assert!(serde_json::from_str::<TokenRequest>(&text).is_ok());
        }
        assert_eq!(project(r#"{"quota": {}}"#), []);
    }

    #[test]
    fn what_has_no_fault_can_be_read() {
        for wish in [
            r#"{"scale":{"pool":"p","count":4294967295}}"#,
            r#"{"replace":{"machine":"m"}}"#,
            r#"{"retire":{"machine":"m"}}"#,
            r#"{"retry":{"task":"t"}}"#,
            r#"{"cancel":{"task":"t"}}"#,
            r#"{"pause":{}}"#,
            r#"{"snapshot":{}}"#,
            r#"{"restore":{"snapshot":"s"}}"#,
            r#"{"update":{"pool":"p"}}"#,
        ] {
            let text =
                format!(r#"{{"cluster":"a","wish":{wish},"reason":"r","expiresInSeconds":null}}"#);
            assert_eq!(
                IntentRequest::faults(&serde_json::from_str(&text).unwrap()),
                []
            );
            assert!(
                serde_json::from_str::<IntentRequest>(&text).is_ok(),
                "{text}"
            );
        }
    }
}
