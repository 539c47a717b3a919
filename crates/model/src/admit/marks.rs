//! What the nodes of a pool carry: `labels`, `annotations` and `taints`, as Kubernetes takes them.

use super::fields::{Fields, wrong};
use super::manifest::listed;
use crate::care::{INSTANCE, Marks, PROVIDER, Taint, TaintEffect};
use crate::fault::{Code, Faults};
use crate::source::Value;
use std::collections::BTreeMap;

/// The most labels, annotations or taints of one pool: each is sent with every node.
const ENTRIES_MAX: usize = 100;

/// The longest name, and the longest value of a label or a taint.
const NAME_MAX: usize = 63;

/// The longest prefix of a name.
const PREFIX_MAX: usize = 253;

/// All keys and values of annotations together, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// What is ours to say of a node.
const OURS: &str = "slipway.dev/";

/// What people may say with our prefix: that nodes of a pool are not to be taken out of service.
const LOCK: &str = "slipway.dev/upgrade-lock";

/// What kubelets say of themselves, again and again.
const KUBELETS: [&str; 5] = [
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// What says that a node has a control plane; kubeadm says it of those that have one, and others believe it.
const CONTROL_PLANE: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// What the control plane taints nodes with by their state.
const STATES: &str = "node.kubernetes.io/";

/// Where the machines of a pool come from: who was given a machine knows better where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Made,
    Given,
}

/// What a pool says that its nodes carry.
pub(super) fn of_pool(fields: &mut Fields<'_>, source: Source, faults: &mut Faults) -> Marks {
    let labels = texts(fields, "labels", faults);
    let annotations = texts(fields, "annotations", faults);
    let marks = Marks {
        labels: labels_of(labels, source, faults),
        annotations: annotations_of(annotations, faults),
        taints: taints_of(fields, faults),
    };
    let written = marks.annotations.iter();
    let bytes: usize = written.map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ANNOTATIONS_MAX {
        let message = format!("found {bytes} bytes, allowed: at most {ANNOTATIONS_MAX} in all");
        faults.note(fields.path("annotations"), Code::Range, message);
    }
    marks
}

/// What a document says of itself to other tools; nothing of it is kept.
pub(super) fn of_document(fields: &mut Fields<'_>, faults: &mut Faults) {
    drop(texts(fields, "labels", faults));
    drop(texts(fields, "annotations", faults));
}

/// The labels by which machines are chosen, with the values that they must have.
pub(super) fn selector_of(
    fields: &mut Fields<'_>,
    faults: &mut Faults,
) -> BTreeMap<String, String> {
    let texts = texts(fields, "selector", faults);
    for (key, value) in &texts.entries {
        if let Err(why) = qualified(key) {
            note(texts.at(key), key, why, faults);
        }
        if let Err(why) = value_of_label(value) {
            note(texts.at(key), value, why, faults);
        }
    }
    owned(texts.entries)
}

/// A mapping from texts to texts, with the path of each entry.
struct Texts<'v> {
    path: String,
    entries: Vec<(&'v str, &'v str)>,
}

impl Texts<'_> {
    fn at(&self, key: &str) -> String {
        let shown: String = key.chars().take(PREFIX_MAX + 1 + NAME_MAX).collect();
        format!("{}[{}]", self.path, shown.escape_debug())
    }
}

fn texts<'v>(fields: &mut Fields<'v>, field: &'static str, faults: &mut Faults) -> Texts<'v> {
    let mut texts = Texts {
        path: fields.path(field),
        entries: Vec::new(),
    };
    match fields.optional(field) {
        None => {}
        Some(Value::Map(entries)) if entries.len() > ENTRIES_MAX => {
            let found = entries.len();
            let message = format!("found {found} entries, allowed: at most {ENTRIES_MAX}");
            faults.note(texts.path.clone(), Code::Range, message);
        }
        Some(Value::Map(entries)) => {
            for (key, value) in entries {
                match value {
                    Value::Text(text) => texts.entries.push((key, text)),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Int(_)
                    | Value::Float(_)
                    | Value::List(_)
                    | Value::Map(_) => wrong(faults, texts.at(key), value, "a text"),
                }
            }
        }
        Some(
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)),
        ) => wrong(faults, texts.path.clone(), other, "a mapping"),
    }
    texts
}

fn labels_of(texts: Texts<'_>, source: Source, faults: &mut Faults) -> BTreeMap<String, String> {
    for (key, value) in &texts.entries {
        let told = [PROVIDER, INSTANCE].contains(key) && source == Source::Given;
        let ours = key.starts_with(OURS) && *key != LOCK && !told;
        if ours || KUBELETS.contains(key) || CONTROL_PLANE.contains(key) {
            reserved(texts.at(key), key, faults);
        } else if let Err(why) = qualified(key) {
            note(texts.at(key), key, why, faults);
        }
        if let Err(why) = value_of_label(value) {
            note(texts.at(key), value, why, faults);
        }
    }
    owned(texts.entries)
}

fn annotations_of(texts: Texts<'_>, faults: &mut Faults) -> BTreeMap<String, String> {
    for (key, _) in &texts.entries {
        if key.starts_with(OURS) {
            reserved(texts.at(key), key, faults);
        } else if let Err(why) = qualified(&key.to_lowercase()) {
            note(texts.at(key), key, why, faults);
        }
    }
    owned(texts.entries)
}

fn owned(entries: Vec<(&str, &str)>) -> BTreeMap<String, String> {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn taints_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Vec<Taint> {
    let mut taints: Vec<Taint> = Vec::new();
    for (path, value) in fields.items("taints", ENTRIES_MAX, faults) {
        let Some(mut fields) = Fields::open(value, path.as_str(), faults) else {
            continue;
        };
        let taint = taint_of(&mut fields, faults);
        fields.finish(faults);
        let Some(taint) = taint else { continue };
        let same = |other: &&Taint| (&other.key, other.effect) == (&taint.key, taint.effect);
        if taints.iter().any(|other| same(&other)) {
            let (key, effect) = (&taint.key, taint.effect.as_str());
            let message = format!("found {key} with {effect} a second time");
            faults.note(path, Code::Duplicate, message);
        }
        taints.push(taint);
    }
    taints.sort();
    taints
}

fn taint_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<Taint> {
    let key = fields.text("key", faults);
    // Without a value is the same as with an empty one.
    let value = match fields.optional("value") {
        Some(Value::Text(text)) if text.is_empty() => Some(""),
        Some(_) => fields.optional_text("value", faults),
        None => Some(""),
    };
    let effect = fields.text("effect", faults);
    if let Some(key) = key {
        if key.starts_with(OURS) || key.starts_with(STATES) {
            reserved(fields.path("key"), key, faults);
        } else if let Err(why) = qualified(key) {
            note(fields.path("key"), key, why, faults);
        }
    }
    if let Some(value) = value
        && let Err(why) = value_of_label(value)
    {
        note(fields.path("value"), value, why, faults);
    }
    let named = effect.and_then(|text| {
        let mut all = TaintEffect::ALL.into_iter();
        all.find(|effect| effect.as_str() == text)
    });
    if let (Some(text), None) = (effect, named) {
        let words = TaintEffect::ALL.map(TaintEffect::as_str);
        let why = format!("allowed: {}", listed(&words));
        note(fields.path("effect"), text, why, faults);
    }
    Some(Taint {
        key: key?.to_owned(),
        effect: named?,
        value: value?.to_owned(),
    })
}

fn reserved(path: String, key: &str, faults: &mut Faults) {
    let why = "allowed: a name that neither Slipway nor Kubernetes keeps to itself";
    note(path, key, why, faults);
}

fn note(path: String, found: &str, why: impl std::fmt::Display, faults: &mut Faults) {
    let found = Value::Text(found.to_owned());
    faults.note(path, Code::Format, format!("found {found}, {why}"));
}

/// Whether Kubernetes takes a text as the name of something: a name, perhaps behind a prefix.
fn qualified(text: &str) -> Result<(), String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let part = |part: &str| {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let inner = |byte: u8| letter(byte) || byte == b'-';
        framed(part, letter, inner)
    };
    let domain = |prefix: &str| prefix.len() <= PREFIX_MAX && prefix.split('.').all(&part);
    if prefix.is_some_and(|prefix| !domain(prefix)) {
        return Err(format!(
            "allowed before the slash: a domain of at most {PREFIX_MAX} small letters, digits, `-` and `.`"
        ));
    }
    if name.len() > NAME_MAX || !word(name) {
        return Err(format!(
            "allowed: at most {NAME_MAX} letters, digits and, inside, `-`, `_` and `.`, behind a domain and a slash if wished"
        ));
    }
    Ok(())
}

/// Whether Kubernetes takes a text as the value of a label or a taint.
fn value_of_label(text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() <= NAME_MAX && word(text) {
        return Ok(());
    }
    Err(format!(
        "allowed: at most {NAME_MAX} letters, digits and, inside, `-`, `_` and `.`"
    ))
}

fn word(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric();
    framed(text, letter, |byte| letter(byte) || b"-_.".contains(&byte))
}

/// Whether a text begins and ends with such letters, and has such between them.
fn framed(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let (first, last) = (text.bytes().next(), text.bytes().next_back());
    first.is_some_and(&outer) && last.is_some_and(&outer) && text.bytes().all(inner)
}
