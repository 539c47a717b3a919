//! What a chart says its values may be (`values.schema.json`), and what that means for settings.
//!
//! It tells which type a text is meant to have, which settings there are and what is known of them,
//! and what is wrong with values before anybody is asked to deploy them. Helm judges after us, and
//! by all of it: whatever is not understood here lets everything pass.
//!
//! A schema is somebody else's, may be large and may lead in circles: every question has a number
//! of looks, and who runs out of them has nothing more to say.

mod faults;
mod judge;
mod shape;
mod step;

pub use faults::{Owner, Sight, faults};
pub use judge::Misfit;
pub use shape::{KnownKey, Shape, Type, text_of};
pub use step::{Step, is_below, path, written};

use regex::{Regex, RegexBuilder};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How deep values are followed.
const DEPTH_MAX: usize = 16;

/// How deep schemas are followed that refer to one another.
const WAYS_MAX: usize = 64;

/// How many schemas are looked at for one question: they may lead in circles.
const LOOKS_MAX: usize = 10_000;

/// How many looks a regular expression costs, and how large it may become.
const PATTERN_LOOKS: usize = 50;
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// The schema of a chart; it may say nothing.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Schema(Value);

impl From<Value> for Schema {
    fn from(document: Value) -> Self {
        Self(document)
    }
}

/// How much is still looked at.
#[derive(Debug)]
struct Looks(usize);

impl Looks {
    const fn new() -> Self {
        Self(LOOKS_MAX)
    }

    /// Whether there are so many left, which are taken.
    fn spend(&mut self, number: usize) -> bool {
        let enough = self.0 >= number;
        self.0 = self.0.saturating_sub(number);
        enough
    }

    /// A regular expression as Helm has it, unless it is none here or too much of one.
    fn pattern(&mut self, text: &str) -> Option<Regex> {
        if !self.spend(PATTERN_LOOKS) {
            return None;
        }
        let built = RegexBuilder::new(text)
            .size_limit(PATTERN_BYTES_MAX)
            .build();
        built.ok()
    }
}

impl Schema {
    /// Reads a schema. One that is JSON and nested too deeply for us says nothing.
    pub fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        match serde_json::from_slice(bytes) {
            Ok(document) => Ok(Self(document)),
            Err(_) => serde_json::from_slice::<IgnoredAny>(bytes).map(|_| Self::default()),
        }
    }

    /// The types that a value may have; none where nothing is said.
    pub fn types(&self, path: &[Step]) -> BTreeSet<Type> {
        let mut looks = Looks::new();
        let found = self.found(path, &mut looks);
        let found = self.alternatives(&found, &mut looks);
        found.into_iter().flat_map(shape::types).collect()
    }

    /// What a value may be, as far as that is said.
    pub fn shape(&self, path: &[Step]) -> Shape {
        self.shape_within(path, &mut Looks::new())
    }

    fn shape_within(&self, path: &[Step], looks: &mut Looks) -> Shape {
        let found = self.found(path, looks);
        let shapes = found.into_iter();
        let shapes = shapes.map(|schema| self.said(schema, WAYS_MAX, looks));
        Shape::either(shapes.collect())
    }

    /// What is known of settings: all that the schema names, and those that the chart has defaults
    /// for. In the order of their names, at most so many.
    pub fn known(&self, defaults: &BTreeMap<String, String>, most: usize) -> Vec<KnownKey> {
        let mut looks = Looks::new();
        let mut known = BTreeMap::new();
        let root = Placed {
            schema: &self.0,
            key: String::new(),
            required: false,
        };
        self.descend(&root, DEPTH_MAX, &mut looks, &mut |key, shape: Shape| {
            let room = known.len() < most;
            let ways = match known.remove(&key) {
                Some(before) => vec![before, shape],
                None if room => vec![shape],
                None => return,
            };
            known.insert(key, Shape::either(ways));
        });
        for key in defaults.keys() {
            if known.len() < most && !known.contains_key(key) {
                let shape = self.shape_within(&path(key), &mut looks);
                known.insert(key.clone(), shape);
            }
        }
        let told = known.into_iter().map(|(key, shape)| {
            let default = defaults.get(&key).cloned();
            let default = default.or_else(|| shape.default.as_ref().map(text_of));
            KnownKey {
                key,
                default,
                shape,
            }
        });
        told.collect()
    }

    fn descend(
        &self,
        at: &Placed<'_>,
        depth: usize,
        looks: &mut Looks,
        tell: &mut dyn FnMut(String, Shape),
    ) {
        let mut leaf = true;
        for schema in self.alternatives(&[at.schema], looks) {
            let required = schema["required"].as_array();
            for (name, below) in schema["properties"].as_object().into_iter().flatten() {
                // Such a name is no part of a key.
                if depth == 0 || name.is_empty() || name.contains(['.', '=', '[']) {
                    continue;
                }
                leaf = false;
                let dot = if at.key.is_empty() { "" } else { "." };
                let below = Placed {
                    schema: below,
                    key: format!("{}{dot}{name}", at.key),
                    required: required.is_some_and(|names| names.iter().any(|one| one == name)),
                };
                self.descend(&below, depth - 1, looks, tell);
            }
        }
        if leaf && !at.key.is_empty() {
            let mut shape = self.said(at.schema, WAYS_MAX, looks);
            shape.required = at.required;
            tell(at.key.clone(), shape);
        }
    }

    /// All that a schema says, with what it refers to and is combined of.
    fn said(&self, schema: &Value, depth: usize, looks: &mut Looks) -> Shape {
        if depth == 0 || !looks.spend(1) {
            return Shape::default();
        }
        let mut shape = Shape::own(schema);
        let both = self
            .referred(schema)
            .into_iter()
            .chain(listed(schema, "allOf"));
        for other in both {
            shape = shape.and(self.said(other, depth - 1, looks));
        }
        for word in ["anyOf", "oneOf"] {
            let ways = listed(schema, word);
            let ways: Vec<_> = ways.map(|way| self.said(way, depth - 1, looks)).collect();
            if !ways.is_empty() {
                shape = shape.and(Shape::either(ways));
            }
        }
        shape
    }

    /// The schemas of what is at a path.
    fn found(&self, path: &[Step], looks: &mut Looks) -> Vec<&Value> {
        let mut found = vec![&self.0];
        for step in path {
            let mut next = Vec::new();
            for schema in self.alternatives(&found, looks) {
                next.extend(stepped(schema, step, looks));
            }
            found = next;
        }
        found
    }

    /// Schemas with all that they are combined of, and what they refer to within the same document.
    fn alternatives<'a>(&'a self, schemas: &[&'a Value], looks: &mut Looks) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let mut open = schemas.to_vec();
        while let Some(schema) = open.pop() {
            if !looks.spend(1) {
                break;
            }
            open.extend(self.referred(schema));
            for word in ["allOf", "anyOf", "oneOf"] {
                open.extend(listed(schema, word));
            }
            found.push(schema);
        }
        found
    }

    /// What a schema refers to, where that is in the same document.
    fn referred<'a>(&'a self, schema: &Value) -> Option<&'a Value> {
        let place = schema["$ref"].as_str()?.strip_prefix('#')?;
        self.0.pointer(place)
    }
}

/// A schema, and what it is the schema of.
struct Placed<'a> {
    schema: &'a Value,
    key: String,
    required: bool,
}

/// The schemas in a list of a schema.
fn listed<'a>(schema: &'a Value, word: &str) -> impl Iterator<Item = &'a Value> {
    schema[word].as_array().into_iter().flatten()
}

/// What a schema says of something inside.
fn stepped<'a>(schema: &'a Value, step: &Step, looks: &mut Looks) -> Option<&'a Value> {
    match step {
        Step::Name(name) => {
            if let Some(named) = schema["properties"].get(name) {
                return Some(named);
            }
            let patterns = schema["patternProperties"].as_object();
            let fitting = patterns.into_iter().flatten().find(|(text, _)| {
                let pattern = looks.pattern(text);
                pattern.is_some_and(|pattern| pattern.is_match(name))
            });
            let fitting = fitting.map(|(_, below)| below);
            fitting.or_else(|| schema.get("additionalProperties"))
        }
        Step::Index(index) => item(schema, *index),
    }
}

/// What a schema says of an item of a list: the first ones may each have their own.
fn item(schema: &Value, index: usize) -> Option<&Value> {
    let first = schema.get("prefixItems").or_else(|| schema.get("items"));
    match first.and_then(Value::as_array) {
        Some(first) => {
            let rest = if schema.get("prefixItems").is_some() {
                "items"
            } else {
                "additionalItems"
            };
            first.get(index).or_else(|| schema.get(rest))
        }
        None => schema.get("items"),
    }
}

#[cfg(test)]
mod tests;
