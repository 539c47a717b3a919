//! What is known of a setting before anybody sets it.

use model::environment::schema::{KnownKey, Shape, Type, text_of};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

/// A type that the value of a setting can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingType {
    /// Any text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list, written as JSON.
    Array,
    /// A mapping, written as JSON.
    Object,
    /// `null`.
    Null,
}

impl SettingType {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Null => "null",
        }
    }
}

impl From<Type> for SettingType {
    fn from(kind: Type) -> Self {
        match kind {
            Type::Text => Self::String,
            Type::Integer => Self::Integer,
            Type::Number => Self::Number,
            Type::Boolean => Self::Boolean,
            Type::Array => Self::Array,
            Type::Object => Self::Object,
            Type::Null => Self::Null,
        }
    }
}

/// A setting that may be edited, with what is known of it. Whatever is not there is not known:
/// of settings that scripts tell, that is all but their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnownSettingView {
    /// Its name.
    pub key: String,
    /// The types that its value may have: one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<SettingType>,
    /// The values that it may have, as they are written in a request: one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// What counts if nobody sets it, as it is written in a request: what the chart has, else what
    /// its schema says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether it cannot be left out.
    #[serde(default)]
    pub required: bool,
    /// The least number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub minimum: Option<Number>,
    /// The greatest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub maximum: Option<Number>,
    /// Only greater numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub exclusive_minimum: Option<Number>,
    /// Only lesser numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub exclusive_maximum: Option<Number>,
    /// Only multiples of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub multiple_of: Option<Number>,
    /// The fewest characters of a text, or items of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// The most characters of a text, or items of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// A regular expression that a text matches somewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What a text is, such as `email`; whoever deploys it may judge that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl From<KnownKey> for KnownSettingView {
    fn from(known: KnownKey) -> Self {
        let KnownKey {
            key,
            default,
            shape,
        } = known;
        // That of the schema counts where the chart has none, and is in `default` then.
        let Shape {
            types,
            allowed,
            minimum,
            maximum,
            exclusive_minimum,
            exclusive_maximum,
            multiple_of,
            min_length,
            max_length,
            pattern,
            format,
            default: _,
            description,
            required,
        } = shape;
        let mut types: Vec<SettingType> = types.into_iter().map(Into::into).collect();
        types.sort_unstable();
        Self {
            key,
            types,
            allowed: allowed.iter().map(text_of).collect(),
            default,
            required,
            minimum,
            maximum,
            exclusive_minimum,
            exclusive_maximum,
            multiple_of,
            min_length,
            max_length,
            pattern,
            format,
            description,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use model::environment::schema::Schema;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn only_what_is_known_is_on_the_wire() {
        let schema = Schema::from(json!({
            "required": ["replicas"],
            "properties": {
                "replicas": {"type": "integer", "minimum": 0, "maximum": 20, "description": "How many"},
                "mode": {"enum": ["fast", 2, true]},
                "ratio": {"type": ["number", "null"], "exclusiveMaximum": 1.5},
            },
        }));
        let mut known = schema.known(&BTreeMap::new(), 10);
        known.push(KnownKey::named("scripted".to_owned()));
        let told = known.into_iter().map(|known| {
            let view = KnownSettingView::from(known);
            let text = serde_json::to_string(&view).unwrap();
            let again: KnownSettingView = serde_json::from_str(&text).unwrap();
            assert_eq!(again, view);
            text + "\n"
        });
        expect![[r#"
            {"key":"mode","types":["string","integer","boolean"],"allowed":["fast","2","true"],"required":false}
            {"key":"ratio","types":["number","null"],"required":false,"exclusiveMaximum":1.5}
            {"key":"replicas","types":["integer"],"required":true,"minimum":0,"maximum":20,"description":"How many"}
            {"key":"scripted","required":false}
        "#]].assert_eq(&told.collect::<String>());
    }
}
