//! Reads the text of a document into a tree, within bounds.
//!
//! YAML, of which JSON is a part. The tree keeps what the text says and judges nothing:
//! which fields exist and what they may hold is for [`crate::admit`]. Whatever the text,
//! reading it takes bounded time and memory: size, depth, nodes and the expansion of
//! aliases have limits.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::DuplicateKeyPolicy;

/// The longest text that is read. The largest honest manifest, a hundred clusters with
/// pools of their own, is a tenth of it.
pub const BYTES_MAX: usize = 1 << 20;

/// The deepest nesting that is followed; the language itself needs seven levels.
const DEPTH_MAX: usize = 32;

/// The most values a document may hold, those that aliases repeat included.
const NODES_MAX: usize = 250_000;

/// One value of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing was written.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list, in its order.
    List(Vec<Self>),
    /// Named values, in the order in which they were written.
    Map(Vec<(String, Self)>),
}

/// Why a text could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Longer than [`BYTES_MAX`].
    #[error("document has {len} bytes, at most {BYTES_MAX} are read")]
    TooLong {
        /// How long it is.
        len: usize,
    },
    /// Not YAML, or beyond a limit.
    #[error("document cannot be read as YAML: {reason}")]
    Syntax {
        /// What the reader tripped over, with line and column.
        reason: String,
    },
}

/// The most documents that a text may hold.
const DOCUMENTS_MAX: usize = 100;

/// Reads one document.
pub fn parse(text: &str) -> Result<Value, Error> {
    short(text)?;
    serde_saphyr::from_str_with_options(text, bounds(1)).map_err(|error| syntax(&error))
}

/// Reads all documents of a text, which `---` keeps apart; those in which nothing stands are left out.
pub fn parse_all(text: &str) -> Result<Vec<Value>, Error> {
    short(text)?;
    let documents = serde_saphyr::from_multiple_with_options(text, bounds(DOCUMENTS_MAX));
    documents.map_err(|error| syntax(&error))
}

fn short(text: &str) -> Result<(), Error> {
    if text.len() > BYTES_MAX {
        return Err(Error::TooLong { len: text.len() });
    }
    Ok(())
}

fn syntax(error: &serde_saphyr::Error) -> Error {
    Error::Syntax {
        reason: reason(error),
    }
}

/// How much is read of so many documents together.
fn bounds(documents: usize) -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: NODES_MAX * 2,
            max_documents: documents,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_total_scalar_bytes: BYTES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_replay_stack_depth: DEPTH_MAX,
        },
    }
}

/// What the reader tripped over, in words that are not the library's.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library tells dozens of faults apart; these are the ones that people meet"
)]
fn reason(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error as Yaml;
    let what = match error {
        Yaml::DuplicateMappingKey { key, .. } => match key {
            Some(key) => format!("the key `{}` stands there twice", key.escape_debug()),
            None => "a key stands there twice".to_owned(),
        },
        Yaml::MultipleDocuments { .. } => "it holds more than one document".to_owned(),
        Yaml::NullIntoString { .. } => "a key is empty".to_owned(),
        Yaml::AliasError { error, .. } => return reason(error),
        Yaml::AliasReplayLimitExceeded { .. }
        | Yaml::AliasExpansionLimitExceeded { .. }
        | Yaml::AliasReplayStackDepthExceeded { .. } => "its aliases repeat too much".to_owned(),
        Yaml::NonFiniteFloat { .. } => "a number is not finite".to_owned(),
        Yaml::Budget { breach, .. } => match breach {
            BudgetBreach::Documents { documents: 2 } => {
                "it holds more than one document".to_owned()
            }
            BudgetBreach::Documents { .. } => {
                format!("it holds more than {DOCUMENTS_MAX} documents")
            }
            BudgetBreach::Depth { .. } => format!("it is nested deeper than {DEPTH_MAX} levels"),
            _ => format!("it holds or repeats more than {NODES_MAX} values"),
        },
        _ => {
            let told = error.to_string();
            return told.lines().next().unwrap_or_default().to_owned();
        }
    };
    match error.location() {
        Some(place) => format!(
            "{what}, at line {}, column {}",
            place.line(),
            place.column()
        ),
        None => what,
    }
}

impl Value {
    /// The same as others know it. A number that JSON cannot hold is nothing.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Null => Json::Null,
            Self::Bool(flag) => Json::Bool(*flag),
            Self::Int(number) => Json::from(*number),
            Self::Float(number) => Json::from(*number),
            Self::Text(text) => Json::String(text.clone()),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => {
                let entries = entries.iter();
                let entries = entries.map(|(key, value)| (key.clone(), value.to_json()));
                Json::Object(entries.collect())
            }
        }
    }

    /// What kind of value this is, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) => "a number",
            Self::Float(_) => "a number with a fraction",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl std::fmt::Display for Value {
    /// Prints scalars as written and the rest by their kind: enough to recognise a mistake.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// More than this of a wrong text helps nobody.
        const SHOWN_MAX: usize = 60;
        match self {
            Self::Bool(value) => write!(f, "`{value}`"),
            Self::Int(value) => write!(f, "`{value}`"),
            // As it is written: `3.0` is not `3`.
            Self::Float(value) => write!(f, "`{value:?}`"),
            Self::Text(text) if text.chars().count() > SHOWN_MAX => {
                let shown: String = text.chars().take(SHOWN_MAX).collect();
                write!(f, "`{}…`", shown.escape_debug())
            }
            Self::Text(text) => write!(f, "`{}`", text.escape_debug()),
            Self::Null | Self::List(_) | Self::Map(_) => f.write_str(self.kind()),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tree)
    }
}

struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value)
            .map(Value::Int)
            .map_err(|_| E::custom("number is too large"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            map.push((key, entries.next_value()?));
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_read_alike() {
        let yaml = parse("a: 1\nb: [x, true, 2.5, null]\n").unwrap();
        let json = parse(r#"{"a": 1, "b": ["x", true, 2.5, null]}"#).unwrap();
        assert_eq!(yaml, json);
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let last = level - 1;
            let many = vec![format!("*a{last}"); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{many}]\n"));
        }
        let refused = parse(&text).expect_err("must be refused").to_string();
        assert!(refused.contains("its aliases repeat too much"), "{refused}");
    }

    #[test]
    fn deep_nesting_is_refused() {
        let text = "[".repeat(100_000);
        assert!(matches!(parse(&text), Err(Error::Syntax { .. })));
    }

    #[test]
    fn ten_megabytes_are_refused_unread() {
        assert!(matches!(
            parse(&" ".repeat(10 << 20)),
            Err(Error::TooLong { .. })
        ));
    }

    #[test]
    fn what_is_not_yaml_is_refused_with_its_place() {
        let texts = [
            "a: [1, 2",
            "a: b: c",
            "a: 1\na: 2",
            "--- 1\n--- 2\n",
            "? \n: 1",
            "\u{0}",
            "a: *nobody",
            "a: .inf",
        ];
        let told: String = texts
            .iter()
            .map(|text| format!("{}\n", parse(text).expect_err(text)))
            .collect();
        expect_test::expect![[r#"
            document cannot be read as YAML: unclosed bracket '[' at line 1, column 4
            document cannot be read as YAML: mapping values are not allowed in this context at line 1, column 5
            document cannot be read as YAML: the key `a` stands there twice, at line 2, column 1
            document cannot be read as YAML: it holds more than one document, at line 2, column 1
            document cannot be read as YAML: a key is empty, at line 2, column 1
            document cannot be read as YAML: unexpected character: `\u{0}' at line 1, column 1
            document cannot be read as YAML: alias references unknown anchor at line 1, column 4
            document cannot be read as YAML: a number is not finite, at line 1, column 4
        "#]].assert_eq(&told);
    }
}
