//! The table as a JSON Schema, for editors.

use super::{Field, Is, table};
use crate::admit::templates::KIND;
use crate::name::Name;
use serde_json::{Map, Value, json};

/// The JSON Schema of manifests. What it lets pass may still have faults that only admission sees.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A manifest of Slipway",
        "type": "object",
        // What a file has beside the manifest says so by its kind; all else is taken for a manifest.
        "if": {"properties": {"kind": {"const": KIND}}, "required": ["kind"]},
        "then": mapping(table::TEMPLATES),
        "else": mapping(table::TOP),
    })
}

fn mapping(fields: &[Field]) -> Value {
    let described = |field: &Field| {
        let mut described = of(&field.is);
        if !field.needed {
            or_nothing(&mut described);
        }
        if let Value::Object(entries) = &mut described {
            entries.insert("description".to_owned(), field.about.into());
        }
        (field.name.to_owned(), described)
    };
    let properties: Map<String, Value> = fields.iter().map(described).collect();
    let needed = fields.iter().filter(|field| field.needed);
    let needed: Vec<_> = needed.map(|field| field.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": false,
    })
}

/// What may be left out may also be empty.
fn or_nothing(described: &mut Value) {
    if let Some(word) = described.get("type").cloned() {
        described["type"] = json!([word, "null"]);
    }
    if let Some(Value::Array(words)) = described.get_mut("enum") {
        words.push(Value::Null);
    }
}

fn of(is: &Is) -> Value {
    match is {
        Is::Text => json!({"type": "string"}),
        Is::Name(most) => json!({"type": "string", "pattern": Name::PATTERN, "maxLength": most}),
        Is::Form(_, example) => json!({"type": "string", "examples": [example.trim_matches('"')]}),
        Is::One(words) => json!({"enum": words()}),
        Is::Number(from, to) => json!({"type": "integer", "minimum": from, "maximum": to}),
        Is::Flag => json!({"type": "boolean"}),
        Is::Texts => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Is::Foreign(_) => json!({"type": "object"}),
        Is::Mapping(fields) => mapping(fields),
        Is::Several(inner) => json!({"type": "array", "items": of(inner)}),
    }
}
