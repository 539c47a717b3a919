//! What a chart says its values may be: `values.schema.json`.
//!
//! Helm judges by it; here it only tells which type a text is meant to have, and which settings
//! there are that have no default.

use serde_json::Value;
use std::collections::BTreeSet;

use super::values::Step;

/// How deep values are followed.
const DEPTH_MAX: usize = 16;

/// How many schemas are looked at for one question: they may lead in circles.
const LOOKS_MAX: usize = 10_000;

/// The schema of a chart; it may say nothing.
#[derive(Debug, Default)]
pub(super) struct Schema(pub(super) Value);

/// A type that values can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    Array,
    Object,
    Text,
}

impl Type {
    fn of_word(word: &str) -> Option<Self> {
        match word {
            "null" => Some(Self::Null),
            "boolean" => Some(Self::Boolean),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            "array" => Some(Self::Array),
            "object" => Some(Self::Object),
            "string" => Some(Self::Text),
            _ => None,
        }
    }

    /// The type of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

impl Schema {
    /// The types that a value may have; none where nothing is said.
    pub(super) fn types(&self, path: &[Step]) -> BTreeSet<Type> {
        let mut looks = LOOKS_MAX;
        let mut found = vec![&self.0];
        for step in path {
            let mut next = Vec::new();
            for schema in self.alternatives(&found, &mut looks) {
                next.extend(stepped(schema, step));
            }
            found = next;
        }
        let mut types = BTreeSet::new();
        for schema in self.alternatives(&found, &mut looks) {
            match &schema["type"] {
                Value::String(word) => types.extend(Type::of_word(word)),
                Value::Array(words) => {
                    let words = words.iter().filter_map(Value::as_str);
                    types.extend(words.filter_map(Type::of_word));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
            }
            types.extend(
                schema["enum"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(Type::of),
            );
            types.extend(schema.get("const").map(Type::of));
        }
        types
    }

    /// The paths of all values that it names, each once.
    pub(super) fn keys(&self, most: usize) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        let mut looks = LOOKS_MAX;
        self.descend(&self.0, "", DEPTH_MAX, &mut looks, &mut |key| {
            if keys.len() < most {
                keys.insert(key);
            }
        });
        keys
    }

    fn descend(
        &self,
        schema: &Value,
        prefix: &str,
        depth: usize,
        looks: &mut usize,
        tell: &mut dyn FnMut(String),
    ) {
        let mut leaf = true;
        for schema in self.alternatives(&[schema], looks) {
            for (name, below) in schema["properties"].as_object().into_iter().flatten() {
                // Such a name is no part of a key.
                if depth == 0 || name.is_empty() || name.contains(['.', '=', '[']) {
                    continue;
                }
                leaf = false;
                let dot = if prefix.is_empty() { "" } else { "." };
                self.descend(
                    below,
                    &format!("{prefix}{dot}{name}"),
                    depth - 1,
                    looks,
                    tell,
                );
            }
        }
        if leaf && !prefix.is_empty() {
            tell(prefix.to_owned());
        }
    }

    /// Schemas with all that they are combined of, and what they refer to within the same document.
    fn alternatives<'a>(&'a self, schemas: &[&'a Value], looks: &mut usize) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let mut open = schemas.to_vec();
        while let Some(schema) = open.pop() {
            if *looks == 0 {
                break;
            }
            *looks -= 1;
            if let Some(place) = schema["$ref"].as_str().and_then(|at| at.strip_prefix('#')) {
                open.extend(self.0.pointer(place));
            }
            for word in ["allOf", "anyOf", "oneOf"] {
                open.extend(schema[word].as_array().into_iter().flatten());
            }
            found.push(schema);
        }
        found
    }
}

/// What a schema says of something inside.
fn stepped<'a>(schema: &'a Value, step: &Step) -> Option<&'a Value> {
    match step {
        Step::Name(name) => {
            let named = schema["properties"].get(name);
            named.or_else(|| schema.get("additionalProperties"))
        }
        Step::Index(_) => schema.get("items"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::path;
    use super::*;
    use serde_json::json;

    fn types(schema: &Schema, key: &str) -> Vec<Type> {
        schema.types(&path(key)).into_iter().collect()
    }

    #[test]
    fn types_are_found_wherever_they_are_said() {
        let schema = Schema(json!({
            "properties": {
                "count": {"type": "integer"},
                "either": {"type": ["string", "null"]},
                "mode": {"enum": ["fast", 1]},
                "image": {"$ref": "#/definitions/image"},
                "labels": {"additionalProperties": {"type": "string"}},
                "hosts": {"type": "array", "items": {"properties": {"port": {"type": "integer"}}}},
                "any": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
                "circle": {"$ref": "#/properties/circle"},
            },
            "definitions": {"image": {"properties": {"tag": {"type": "string"}}}},
        }));
        assert_eq!(types(&schema, "count"), [Type::Integer]);
        assert_eq!(types(&schema, "either"), [Type::Null, Type::Text]);
        assert_eq!(types(&schema, "mode"), [Type::Integer, Type::Text]);
        assert_eq!(types(&schema, "image.tag"), [Type::Text]);
        assert_eq!(types(&schema, "labels.app"), [Type::Text]);
        assert_eq!(types(&schema, "hosts[0].port"), [Type::Integer]);
        assert_eq!(types(&schema, "any"), [Type::Boolean, Type::Text]);
        assert_eq!(types(&schema, "circle"), []);
        assert_eq!(types(&schema, "nobody.knows"), []);
        assert_eq!(types(&Schema::default(), "count"), []);
    }

    #[test]
    fn keys_are_the_ends_of_all_paths() {
        let schema = Schema(json!({
            "properties": {
                "image": {"$ref": "#/definitions/image"},
                "env": {"type": "object"},
                "kubernetes.io/odd": {"type": "string"},
            },
            "definitions": {"image": {"properties": {"tag": {}, "name": {"type": "string"}}}},
        }));
        let all: Vec<_> = schema.keys(10).into_iter().collect();
        assert_eq!(all, ["env", "image.name", "image.tag"]);
        assert_eq!(schema.keys(1).len(), 1);
        // One that leads to itself ends, too.
        let deep = Schema(json!({"properties": {"a": {"$ref": "#"}}}));
        let all: Vec<_> = deep.keys(10).into_iter().collect();
        assert_eq!(all, ["a.".repeat(DEPTH_MAX).trim_end_matches('.')]);
    }
}
