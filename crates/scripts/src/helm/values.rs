//! Values of a chart as settings, and settings as values.
//!
//! A setting is a path of names with dots between them and a text. Values are a tree of types. What
//! cannot be a path, because a name has a dot itself, stays together: the mapping that has such a
//! name is one setting, as are lists, both written as JSON. A single item of a list is named as Helm
//! does it: `hosts[0].name`.

use std::collections::BTreeMap;

use model::environment::config::{Key, Value as Text};
use model::environment::schema::{Misfit, Schema, Step, Type, is_below, path, text_of, written};
use serde_json::{Map, Number, Value};

/// What a chart says of its values.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// What they are if nobody sets anything.
    pub(super) defaults: Value,
    /// What they may be.
    pub(super) schema: Schema,
    /// Whether it is made of other charts, too, which may have defaults of their own.
    pub(super) composed: bool,
}

/// What comes of settings.
#[derive(Debug)]
pub(super) struct Made {
    /// What Helm is to be told.
    pub(super) values: Value,
    /// Settings that are not part of it, because they cannot be.
    pub(super) contradictions: Vec<Contradiction>,
}

/// Why a setting is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Contradiction {
    /// Something that is no mapping is to have parts.
    #[error("setting {key} is part of {above}, which is something else than a mapping")]
    Inside {
        /// The setting.
        key: String,
        /// What it would be a part of.
        above: String,
    },
    /// An item that is too far behind the end of its list.
    #[error("setting {key} is item {index} of a list that has {len}")]
    Beyond {
        /// The setting.
        key: String,
        /// Which item, counted from zero.
        index: usize,
        /// How many there are.
        len: usize,
    },
}

/// Values as settings, in the order of their names.
pub(super) fn flatten(values: &Value) -> Vec<(Key, Text)> {
    let mut found = Vec::new();
    if let Value::Object(values) = values {
        for (name, value) in values.iter().filter(|(name, _)| is_part(name)) {
            descend(name, value, &mut found);
        }
    }
    found
}

fn descend(key: &str, value: &Value, found: &mut Vec<(Key, Text)>) {
    if let Value::Object(values) = value
        && !values.is_empty()
        && values.keys().all(|name| is_part(name))
    {
        for (name, value) in values {
            descend(&format!("{key}.{name}"), value, found);
        }
        return;
    }
    // What is too long for a setting cannot be edited, and stays as the chart has it.
    let pair = key.parse().ok().zip(text_of(value).try_into().ok());
    found.extend(pair);
}

/// Whether a name can be a part of a key.
fn is_part(name: &str) -> bool {
    !name.contains(['.', '[']) && name.parse::<Key>().is_ok()
}

impl Contradiction {
    /// The setting that cannot be.
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Inside { key, .. } | Self::Beyond { key, .. } => key,
        }
    }
}

impl Facts {
    /// What Helm is to be told, if all settings can be.
    pub(super) fn values(&self, given: &BTreeMap<String, String>) -> Result<Value, Contradiction> {
        let made = self.made(given);
        match made.contradictions.into_iter().next() {
            Some(why) => Err(why),
            None => Ok(made.values),
        }
    }

    /// What Helm is to be told, so that the chart has these settings and no others: what differs
    /// from its defaults, and nothing in place of those that were left out.
    pub(super) fn made(&self, given: &BTreeMap<String, String>) -> Made {
        let defaults = self.texts();
        let mut contradictions = Vec::new();
        let mut values = Value::Object(Map::new());
        // What is above comes before what is below, in this order.
        for (key, text) in given
            .iter()
            .filter(|(key, text)| defaults.get(*key) != Some(text))
        {
            let steps = path(key);
            let put = self.check_above(given, key).and_then(|()| {
                let value = self.typed(&steps, text);
                self.put(&mut values, key, &steps, value)
            });
            contradictions.extend(put.err());
        }
        let related = |key: &str| {
            let mut given = given.keys();
            given.any(|other| is_below(key, other) || is_below(other, key))
        };
        for key in defaults.keys() {
            if !given.contains_key(key) && !related(key) {
                let put = self.put(&mut values, key, &path(key), Value::Null);
                contradictions.extend(put.err());
            }
        }
        Made {
            values,
            contradictions,
        }
    }

    /// The defaults as settings.
    pub(super) fn texts(&self) -> BTreeMap<String, String> {
        let all = flatten(&self.defaults).into_iter();
        all.map(|(key, text)| (key.into(), text.into())).collect()
    }

    /// What is wrong with what Helm would be told, as far as the schema says so.
    pub(super) fn misfits(&self, values: &Value) -> Vec<Misfit> {
        let all = merged(&self.defaults, values);
        self.schema.judge(&all, !self.composed)
    }

    /// Refuses a setting that is part of another one which can have no parts.
    fn check_above(
        &self,
        given: &BTreeMap<String, String>,
        key: &str,
    ) -> Result<(), Contradiction> {
        for (end, _) in key.match_indices(['.', '[']) {
            let above = &key[..end];
            let Some(text) = given.get(above).filter(|text| !text.is_empty()) else {
                continue;
            };
            let value = self.typed(&path(above), text);
            if !matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
                return Err(Contradiction::Inside {
                    key: key.to_owned(),
                    above: above.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// A text as the type that the schema wants, else that of the default, else as it looks.
    pub(super) fn typed(&self, steps: &[Step], text: &str) -> Value {
        let types = self.schema.types(steps);
        if !types.is_empty() {
            let text_will_do = types.contains(&Type::Text);
            let mut fitting = types.iter().filter_map(|kind| as_type(text, *kind));
            let found = fitting.find(|value| !text_will_do || is_written(value, text));
            return found.unwrap_or_else(|| Value::String(text.to_owned()));
        }
        let kind = at(&self.defaults, steps).map_or(Type::Null, Type::of);
        match kind {
            Type::Text => Value::String(text.to_owned()),
            Type::Null if text.is_empty() => Value::Null,
            Type::Integer | Type::Number => as_type(text, Type::Number)
                .filter(|value| is_written(value, text))
                .unwrap_or_else(|| guessed(text)),
            Type::Null | Type::Boolean | Type::Array | Type::Object => {
                as_type(text, kind).unwrap_or_else(|| guessed(text))
            }
        }
    }

    /// A text that the schema lets pass, if only its type counts.
    pub(super) fn made_up(&self, steps: &[Step]) -> String {
        let shape = self.schema.shape(steps);
        if let Some(allowed) = shape.allowed.first() {
            return text_of(allowed);
        }
        let text = match self.schema.types(steps).first() {
            Some(Type::Boolean) => "true",
            Some(Type::Integer | Type::Number) => "1",
            Some(Type::Array) => "[]",
            Some(Type::Object) => "{}",
            Some(Type::Null | Type::Text) | None => "made-up-value",
        };
        text.to_owned()
    }

    /// Puts a value where its key says.
    fn put(
        &self,
        root: &mut Value,
        key: &str,
        steps: &[Step],
        value: Value,
    ) -> Result<(), Contradiction> {
        let mut place = root;
        for (depth, step) in steps.iter().enumerate() {
            let above = steps.get(..depth).unwrap_or_default();
            let inside = || Contradiction::Inside {
                key: key.to_owned(),
                above: written(above),
            };
            place = match step {
                Step::Name(name) => {
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    let place = place.as_object_mut().ok_or_else(inside)?;
                    place.entry(name.clone()).or_insert(Value::Null)
                }
                Step::Index(index) => {
                    if place.is_null() {
                        let default = at(&self.defaults, above).filter(|value| value.is_array());
                        *place = default.cloned().unwrap_or_else(|| Value::Array(Vec::new()));
                    }
                    let list = place.as_array_mut().ok_or_else(inside)?;
                    let len = list.len();
                    if *index == len {
                        list.push(Value::Null);
                    }
                    list.get_mut(*index).ok_or_else(|| Contradiction::Beyond {
                        key: key.to_owned(),
                        index: *index,
                        len,
                    })?
                }
            };
        }
        *place = value;
        Ok(())
    }
}

/// Defaults and what counts before them, put together as Helm does it: `null` takes a default out.
fn merged(defaults: &Value, values: &Value) -> Value {
    let (Value::Object(defaults), Value::Object(values)) = (defaults, values) else {
        return values.clone();
    };
    let mut all = defaults.clone();
    for (name, value) in values {
        let merged = match defaults.get(name) {
            Some(_) if value.is_null() => {
                all.remove(name);
                continue;
            }
            Some(default) => merged(default, value),
            None => value.clone(),
        };
        all.insert(name.clone(), merged);
    }
    Value::Object(all)
}

/// What is at a path.
fn at<'a>(values: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    let mut steps = steps.iter();
    steps.try_fold(values, |value, step| match step {
        Step::Name(name) => value.get(name),
        Step::Index(index) => value.get(index),
    })
}

/// A text as a value of a type, if it is one.
fn as_type(text: &str, kind: Type) -> Option<Value> {
    let read = || serde_json::from_str::<Value>(text).ok();
    match kind {
        Type::Null => matches!(text, "" | "null").then_some(Value::Null),
        Type::Boolean => text.parse().ok().map(Value::Bool),
        Type::Integer => integer(text),
        Type::Number => integer(text).or_else(|| read().filter(Value::is_number)),
        Type::Array => read().filter(Value::is_array),
        Type::Object => read().filter(Value::is_object),
        Type::Text => Some(Value::String(text.to_owned())),
    }
}

/// Whether a value is written just so: what is called 1.20 is no number, for that would be 1.2.
fn is_written(value: &Value, text: &str) -> bool {
    match value {
        Value::Number(number) => number.to_string() == text,
        Value::Null => !text.is_empty(),
        Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => true,
    }
}

/// A whole number, written as numbers are: what has a zero in front is the name of something.
fn integer(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let odd = digits.starts_with('+') || (digits.starts_with('0') && digits != "0");
    let number = text.parse::<i64>().map(Number::from);
    let number = number.or_else(|_| text.parse::<u64>().map(Number::from));
    number.ok().filter(|_| !odd).map(Value::Number)
}

/// What a text looks like to Helm where nobody says what it is.
fn guessed(text: &str) -> Value {
    match text {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => integer(text).unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests;
