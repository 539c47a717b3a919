//! What is wrong with values, by what a schema says.
//!
//! Of rules that say the same only the first is told of a value. What has several ways to be right
//! is wrong when all of them say so; which of several was meant is nothing that is judged here.

use super::shape::{named, types};
use super::{Looks, Schema, Shape, Step, WAYS_MAX, item, listed, written};
use crate::admit::fields::alike;
use crate::fault::Code;
use serde_json::{Map, Number, Value};

/// How much of a text is told.
const FOUND_LEN_MAX: usize = 60;

/// How many names are told of those that are known.
const NAMES_TOLD: usize = 12;

/// Something wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Where it is, or would be.
    pub place: Vec<Step>,
    /// Which rule it breaks.
    pub code: Code,
    /// What was found; nothing of what is inside of a list or a mapping.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
}

impl Schema {
    /// What is wrong with values. They may be `whole`; else more may come that nobody knows here,
    /// and nothing is missing. What is `null` is left to Helm, which may take it out.
    pub fn judge(&self, values: &Value, whole: bool) -> Vec<Misfit> {
        let mut judge = Judge {
            of: self,
            whole,
            looks: Looks::new(),
            place: Vec::new(),
        };
        judge.misfits(&self.0, values, WAYS_MAX)
    }

    /// Whether what stands beside a reference counts: in the older drafts it does not.
    fn counts_beside(&self) -> bool {
        let draft = self.0["$schema"].as_str().unwrap_or_default();
        draft.contains("2019-09") || draft.contains("2020-12")
    }
}

struct Judge<'a> {
    of: &'a Schema,
    whole: bool,
    looks: Looks,
    place: Vec<Step>,
}

impl<'a> Judge<'a> {
    fn misfits(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Vec<Misfit> {
        if depth == 0 || value.is_null() || !self.looks.spend(1) {
            return Vec::new();
        }
        if *schema == Value::Bool(false) {
            // What there may not be at all is told by its name, whatever it is.
            let name = written(
                self.place
                    .last()
                    .map(std::slice::from_ref)
                    .unwrap_or_default(),
            );
            let nothing = self.wrong(Code::UnknownField, name, "allowed: nothing".to_owned());
            return vec![nothing];
        }
        // What refers to something from within another document means that one.
        let elsewhere = ["$id", "id"].map(|word| schema[word].is_string());
        if elsewhere.contains(&true) && !std::ptr::eq(schema, &raw const self.of.0) {
            return Vec::new();
        }
        let mut found = Vec::new();
        if schema.get("$ref").is_some() {
            if let Some(other) = self.of.referred(schema) {
                found = self.misfits(other, value, depth - 1);
            }
            if !self.of.counts_beside() {
                return found;
            }
        }
        for other in listed(schema, "allOf") {
            found.extend(self.misfits(other, value, depth - 1));
        }
        match self.rule(schema, value) {
            Some(broken) => found.push(broken),
            None => found.extend(self.inside(schema, value, depth)),
        }
        for word in ["anyOf", "oneOf"] {
            found.extend(self.ways(schema, word, value, depth));
        }
        once(found)
    }

    /// The first rule of a schema that a value breaks by itself.
    fn rule(&mut self, schema: &'a Value, value: &Value) -> Option<Misfit> {
        let kinds = named(schema);
        let code = if !kinds.is_empty() && !kinds.iter().any(|kind| kind.has(value)) {
            Code::Type
        } else if !is_listed(schema, value) {
            let of_kind = types(schema).iter().any(|kind| kind.has(value));
            if of_kind { Code::Format } else { Code::Type }
        } else {
            match value {
                Value::Number(number) => beyond(schema, number).then_some(Code::Range)?,
                Value::String(text) => self.unlike(schema, text)?,
                Value::Array(items) => {
                    outside(schema, ["minItems", "maxItems"], items.len()).then_some(Code::Range)?
                }
                Value::Null | Value::Bool(_) | Value::Object(_) => return None,
            }
        };
        let allowed = Shape::own(schema).words();
        Some(self.wrong(code, shown(value), allowed))
    }

    /// What is wrong with a text as such.
    fn unlike(&mut self, schema: &'a Value, text: &str) -> Option<Code> {
        if outside(schema, ["minLength", "maxLength"], text.chars().count()) {
            return Some(Code::Range);
        }
        let pattern = schema["pattern"].as_str()?;
        // What is a letter or a digit elsewhere is none for Helm.
        if pattern.contains('\\') && !text.is_ascii() {
            return None;
        }
        let pattern = self.looks.pattern(pattern)?;
        (!pattern.is_match(text)).then_some(Code::Format)
    }

    /// What is wrong inside of lists and mappings.
    fn inside(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Vec<Misfit> {
        let mut found = Vec::new();
        match value {
            Value::Array(items) => {
                for (index, one) in items.iter().enumerate() {
                    if let Some(below) = item(schema, index) {
                        found.extend(self.below(Step::Index(index), below, one, depth));
                    }
                }
            }
            Value::Object(entries) => {
                for (name, one) in entries {
                    found.extend(self.entry(schema, name, one, depth));
                }
                if self.whole {
                    found.extend(self.missing(schema, entries));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        found
    }

    fn below(&mut self, step: Step, schema: &'a Value, value: &Value, depth: usize) -> Vec<Misfit> {
        self.place.push(step);
        let found = self.misfits(schema, value, depth - 1);
        self.place.pop();
        found
    }

    /// What is wrong with one entry of a mapping.
    fn entry(&mut self, schema: &'a Value, name: &str, value: &Value, depth: usize) -> Vec<Misfit> {
        let step = Step::Name(name.to_owned());
        let mut schemas: Vec<&Value> = schema["properties"].get(name).into_iter().collect();
        for (pattern, below) in schema["patternProperties"]
            .as_object()
            .into_iter()
            .flatten()
        {
            // One that is not understood may be meant for it.
            let Some(pattern) = self.looks.pattern(pattern) else {
                return Vec::new();
            };
            schemas.extend(pattern.is_match(name).then_some(below));
        }
        if !schemas.is_empty() {
            let each = schemas.into_iter();
            return each
                .flat_map(|below| self.below(step.clone(), below, value, depth))
                .collect();
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) if !value.is_null() => {
                self.place.push(step);
                let unknown = self.wrong(Code::UnknownField, name.to_owned(), names(schema, name));
                self.place.pop();
                vec![unknown]
            }
            Some(below) => self.below(step, below, value, depth),
            None => Vec::new(),
        }
    }

    /// What must be there and is not.
    fn missing(&mut self, schema: &'a Value, entries: &Map<String, Value>) -> Vec<Misfit> {
        let mut found = Vec::new();
        for name in listed(schema, "required").filter_map(Value::as_str) {
            if entries.contains_key(name) {
                continue;
            }
            let below = schema["properties"].get(name);
            let allowed = below.map(|below| self.of.said(below, WAYS_MAX, &mut self.looks));
            let allowed = allowed.unwrap_or_default().words();
            self.place.push(Step::Name(name.to_owned()));
            found.push(self.wrong(Code::Required, "nothing".to_owned(), allowed));
            self.place.pop();
        }
        found
    }

    /// What is wrong with a value that may be right in several ways, and is in none.
    fn ways(&mut self, schema: &'a Value, word: &str, value: &Value, depth: usize) -> Vec<Misfit> {
        let mut near = Vec::new();
        let mut ways = Vec::new();
        for way in listed(schema, word) {
            let wrong = self.misfits(way, value, depth - 1);
            if wrong.is_empty() {
                return Vec::new();
            }
            let other_kind = |one: &Misfit| one.code == Code::Type && one.place == self.place;
            if !wrong.iter().any(other_kind) {
                near.push(wrong);
            }
            ways.push(self.of.said(way, WAYS_MAX, &mut self.looks));
        }
        match (near.pop(), near.is_empty()) {
            // Of that type there is one way only: that one was meant.
            (Some(wrong), true) => wrong,
            (None, _) if ways.is_empty() => Vec::new(),
            (several, _) => {
                let code = several.map_or(Code::Type, |_| Code::Format);
                let allowed: Vec<_> = ways.iter().map(Shape::words).collect();
                vec![self.wrong(code, shown(value), allowed.join(", or "))]
            }
        }
    }

    fn wrong(&self, code: Code, found: String, allowed: String) -> Misfit {
        Misfit {
            place: self.place.clone(),
            code,
            found,
            allowed,
        }
    }
}

/// Of one place one thing is told.
fn once(mut found: Vec<Misfit>) -> Vec<Misfit> {
    let mut told = std::collections::BTreeSet::new();
    found.retain(|one| told.insert(one.place.clone()));
    found
}

/// A value for people, without what is inside of it.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "a mapping".to_owned(),
        Value::String(text) if text.chars().count() > FOUND_LEN_MAX => {
            let head: String = text.chars().take(FOUND_LEN_MAX).collect();
            format!("{head:?}…")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The names that a mapping may have, the one that was meant before all others.
fn names(schema: &Value, found: &str) -> String {
    let known = schema["properties"].as_object();
    let known: Vec<_> = known.into_iter().flatten().map(|(name, _)| name).collect();
    if let Some(meant) = known.iter().find(|known| alike(known, found)) {
        return format!("did you mean `{meant}`?");
    }
    let more = known.len().saturating_sub(NAMES_TOLD);
    let mut told: Vec<_> = known.into_iter().take(NAMES_TOLD).cloned().collect();
    told.extend((more > 0).then(|| format!("{more} more")));
    if told.is_empty() {
        return "allowed: nothing".to_owned();
    }
    format!("allowed: {}", told.join(", "))
}

/// Whether a value is one of those that a schema lists, if it lists any.
fn is_listed(schema: &Value, value: &Value) -> bool {
    let same = |one: &Value| match (one, value) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (one, other) => one == other,
    };
    let listed = schema["enum"].as_array();
    listed.is_none_or(|values| values.iter().any(same)) && schema.get("const").is_none_or(same)
}

/// Whether a number is beyond the limits of a schema.
fn beyond(schema: &Value, number: &Number) -> bool {
    let Some(number) = number.as_f64() else {
        return false;
    };
    let limit = |word: &str| schema[word].as_f64();
    limit("minimum").is_some_and(|least| number < least)
        || limit("maximum").is_some_and(|most| number > most)
        || limit("exclusiveMinimum").is_some_and(|least| number <= least)
        || limit("exclusiveMaximum").is_some_and(|most| number >= most)
        || indivisible(schema, number)
}

/// Whether a whole number is not a multiple; of others rounding alone knows.
fn indivisible(schema: &Value, number: f64) -> bool {
    let step = schema["multipleOf"].as_f64();
    let whole = |step: &f64| *step >= 1.0 && step.fract() == 0.0;
    step.filter(whole).is_some_and(|step| number % step != 0.0)
}

/// Whether there are fewer or more than a schema allows.
fn outside(schema: &Value, [least, most]: [&str; 2], count: usize) -> bool {
    let limit = |word: &str| {
        let limit = schema[word].as_u64();
        limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
    };
    limit(least).is_some_and(|least| count < least) || limit(most).is_some_and(|most| count > most)
}
