//! What the value of one setting may be, in words and for programs.

use serde_json::{Number, Value};
use std::collections::BTreeSet;

/// The longest text that is taken from a schema: people read it in a table.
const TEXT_LEN_MAX: usize = 1_000;

/// The most values that are listed one by one, and how long they may be together.
const ALLOWED_MAX: usize = 200;
const ALLOWED_LEN_MAX: usize = 8 * 1024;

/// How many of them are told in one sentence.
const ALLOWED_TOLD: usize = 12;

/// A type that values can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// Nothing.
    Null,
    /// True or false.
    Boolean,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A list.
    Array,
    /// A mapping.
    Object,
    /// A text.
    Text,
}

impl Type {
    pub(super) fn of_word(word: &str) -> Option<Self> {
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
    pub fn of(value: &Value) -> Self {
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

    /// Whether a value is of this type; what has nothing behind its point is a whole number, too.
    pub(super) fn has(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Number, Value::Number(_)) => true,
            (Self::Integer, Value::Number(number)) => {
                number.as_f64().is_none_or(|number| number.fract() == 0.0)
            }
            _ => self == Self::of(value),
        }
    }
}

/// What the value of one setting may be, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// One of these types; any where there are none.
    pub types: BTreeSet<Type>,
    /// One of these values; any where there are none.
    pub allowed: Vec<Value>,
    /// No number below this.
    pub minimum: Option<Number>,
    /// No number above this.
    pub maximum: Option<Number>,
    /// Only numbers above this.
    pub exclusive_minimum: Option<Number>,
    /// Only numbers below this.
    pub exclusive_maximum: Option<Number>,
    /// Only numbers that are so many times something whole.
    pub multiple_of: Option<Number>,
    /// The fewest characters, or items.
    pub min_length: Option<u64>,
    /// The most characters, or items.
    pub max_length: Option<u64>,
    /// A regular expression that a text matches somewhere.
    pub pattern: Option<String>,
    /// What a text is, such as `email`.
    pub format: Option<String>,
    /// What is said to count where nobody sets it.
    pub default: Option<Value>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether there must be one.
    pub required: bool,
}

/// A setting that may be edited, and what is known of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownKey {
    /// Its name.
    pub key: String,
    /// What counts if nobody sets it, as text, where that is told with it.
    pub default: Option<String>,
    /// What its value may be.
    pub shape: Shape,
}

impl KnownKey {
    /// One of which only the name is known.
    pub fn named(key: String) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }
}

/// A value as the text of a setting.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

impl Shape {
    /// What one schema says by itself, without what it refers to.
    pub(super) fn own(schema: &Value) -> Self {
        let number = |word: &str| schema[word].as_number().cloned();
        let text = |word: &str| short(schema[word].as_str()?);
        let count = |text: &str, list: &str| {
            let found = schema[text].as_u64();
            found.or_else(|| schema[list].as_u64())
        };
        let mut shape = Self {
            types: types(schema),
            allowed: allowed(schema),
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: number("exclusiveMinimum"),
            exclusive_maximum: number("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength", "minItems"),
            max_length: count("maxLength", "maxItems"),
            pattern: text("pattern"),
            format: text("format"),
            default: schema.get("default").cloned(),
            description: text("description").or_else(|| text("title")),
            required: false,
        };
        let long = |value: &Value| value.to_string().len() > TEXT_LEN_MAX;
        shape.default = shape.default.filter(|value| !long(value));
        shape
    }

    /// What is said here and there holds together; where both say the same thing, here counts.
    pub(super) fn and(self, other: Self) -> Self {
        let types = match (self.types.is_empty(), other.types.is_empty()) {
            (true, _) => other.types,
            (_, true) => self.types,
            (false, false) => narrowed(&self.types, &other.types),
        };
        Self {
            types,
            allowed: if self.allowed.is_empty() {
                other.allowed
            } else {
                self.allowed
            },
            minimum: self.minimum.or(other.minimum),
            maximum: self.maximum.or(other.maximum),
            exclusive_minimum: self.exclusive_minimum.or(other.exclusive_minimum),
            exclusive_maximum: self.exclusive_maximum.or(other.exclusive_maximum),
            multiple_of: self.multiple_of.or(other.multiple_of),
            min_length: self.min_length.or(other.min_length),
            max_length: self.max_length.or(other.max_length),
            pattern: self.pattern.or(other.pattern),
            format: self.format.or(other.format),
            default: self.default.or(other.default),
            description: self.description.or(other.description),
            required: self.required || other.required,
        }
    }

    /// Any of these will do: only what all of them say is said. That it may also be nothing says
    /// nothing of what else it may be.
    pub(super) fn either(ways: Vec<Self>) -> Self {
        let null = BTreeSet::from([Type::Null]);
        let (nothing, mut ways): (Vec<_>, Vec<_>) =
            ways.into_iter().partition(|way| way.types == null);
        let Some(first) = ways.pop() else {
            return nothing.into_iter().next().unwrap_or_default();
        };
        let mut all = ways.into_iter().rev().fold(first, Self::or);
        if !nothing.is_empty() && !all.types.is_empty() {
            all.types.extend(null);
        }
        all
    }

    fn or(self, other: Self) -> Self {
        fn same<T: PartialEq>(one: Option<T>, other: Option<&T>) -> Option<T> {
            if one.as_ref() == other { one } else { None }
        }
        let any = self.types.is_empty() || other.types.is_empty();
        let mut types = self.types;
        types.extend(other.types);
        if any {
            types.clear();
        }
        let listed = !self.allowed.is_empty() && !other.allowed.is_empty();
        let mut allowed = self.allowed;
        for value in other.allowed {
            if !allowed.contains(&value) {
                allowed.push(value);
            }
        }
        if !listed || too_many(&allowed) {
            allowed.clear();
        }
        Self {
            types,
            allowed,
            minimum: same(self.minimum, other.minimum.as_ref()),
            maximum: same(self.maximum, other.maximum.as_ref()),
            exclusive_minimum: same(self.exclusive_minimum, other.exclusive_minimum.as_ref()),
            exclusive_maximum: same(self.exclusive_maximum, other.exclusive_maximum.as_ref()),
            multiple_of: same(self.multiple_of, other.multiple_of.as_ref()),
            min_length: same(self.min_length, other.min_length.as_ref()),
            max_length: same(self.max_length, other.max_length.as_ref()),
            pattern: same(self.pattern, other.pattern.as_ref()),
            format: same(self.format, other.format.as_ref()),
            default: self.default.or(other.default),
            description: self.description.or(other.description),
            required: self.required || other.required,
        }
    }

    /// What is allowed, for people.
    pub fn words(&self) -> String {
        if !self.allowed.is_empty() {
            let told = self.allowed.iter().take(ALLOWED_TOLD);
            let mut told: Vec<_> = told.map(Value::to_string).collect();
            let more = self.allowed.len().saturating_sub(ALLOWED_TOLD);
            told.extend((more > 0).then(|| format!("{more} more")));
            return enumerated(told);
        }
        let mut types = self.types.clone();
        if types.contains(&Type::Number) {
            types.remove(&Type::Integer);
        }
        if types.is_empty() {
            // What is said of a text or of a number says that it is one.
            let text = self.pattern.is_some() || self.min_length.is_some();
            types.extend((text || self.max_length.is_some()).then_some(Type::Text));
            types.extend((!self.range().is_empty()).then_some(Type::Number));
        }
        let words: Vec<_> = types.iter().map(|kind| self.word(*kind)).collect();
        if words.is_empty() {
            return "something else".to_owned();
        }
        enumerated(words)
    }

    fn word(&self, kind: Type) -> String {
        match kind {
            Type::Null => "null".to_owned(),
            Type::Boolean => "true or false".to_owned(),
            Type::Integer => format!("a whole number{}", self.range()),
            Type::Number => format!("a number{}", self.range()),
            Type::Array => format!("a list{}, as JSON", self.length("item")),
            Type::Object => "a mapping, as JSON".to_owned(),
            Type::Text => {
                let pattern = self.pattern.as_ref();
                let pattern = pattern.map(|pattern| format!(" that matches {pattern}"));
                let pattern = pattern.unwrap_or_default();
                format!("a text{}{pattern}", self.length("character"))
            }
        }
    }

    fn range(&self) -> String {
        let mut words = match (&self.minimum, &self.maximum) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" of at least {least}"),
            (None, Some(most)) => format!(" of at most {most}"),
            (None, None) => String::new(),
        };
        let more = [
            ("more than", &self.exclusive_minimum),
            ("less than", &self.exclusive_maximum),
            ("a multiple of", &self.multiple_of),
        ];
        for (word, number) in more {
            if let Some(number) = number {
                words.push_str(&format!(", {word} {number}"));
            }
        }
        words
    }

    fn length(&self, noun: &str) -> String {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        match (self.min_length, self.max_length) {
            (Some(least), Some(most)) if least == most => {
                format!(" of {least} {noun}{}", plural(least))
            }
            (Some(least), Some(most)) => format!(" of {least} to {most} {noun}{}", plural(most)),
            (Some(least), None) => format!(" of at least {least} {noun}{}", plural(least)),
            (None, Some(most)) => format!(" of at most {most} {noun}{}", plural(most)),
            (None, None) => String::new(),
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
fn enumerated(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() {
        return last;
    }
    format!("{} or {last}", words.join(", "))
}

/// A text that is not too long: one that is cut would say something else.
fn short(text: &str) -> Option<String> {
    (text.len() <= TEXT_LEN_MAX).then(|| text.to_owned())
}

/// The types that a schema names, also by the values that it lists.
pub(super) fn types(schema: &Value) -> BTreeSet<Type> {
    let mut types = named(schema);
    if types.is_empty() {
        let listed = schema["enum"].as_array().into_iter().flatten();
        types.extend(listed.chain(schema.get("const")).map(Type::of));
    }
    types
}

/// The types that a schema names by their words; none where it names one that nobody knows.
pub(super) fn named(schema: &Value) -> BTreeSet<Type> {
    let words: Vec<_> = match &schema["type"] {
        Value::String(word) => vec![Type::of_word(word)],
        Value::Array(words) => {
            let word = |word: &Value| word.as_str().and_then(Type::of_word);
            words.iter().map(word).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let words: Option<BTreeSet<_>> = words.into_iter().collect();
    words.unwrap_or_default()
}

/// The values that a schema lists, unless there are more than anybody reads.
fn allowed(schema: &Value) -> Vec<Value> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    let listed: Vec<_> = listed.chain(schema.get("const")).cloned().collect();
    if too_many(&listed) {
        return Vec::new();
    }
    listed
}

fn too_many(values: &[Value]) -> bool {
    let len: usize = values.iter().map(|value| value.to_string().len()).sum();
    values.len() > ALLOWED_MAX || len > ALLOWED_LEN_MAX
}

/// The types that are in both; a whole number is a number.
fn narrowed(one: &BTreeSet<Type>, other: &BTreeSet<Type>) -> BTreeSet<Type> {
    let within = |types: &BTreeSet<Type>, kind: Type| {
        types.contains(&kind) || kind == Type::Integer && types.contains(&Type::Number)
    };
    let all = one.union(other).copied();
    let both: BTreeSet<_> = all
        .filter(|kind| within(one, *kind) && within(other, *kind))
        .collect();
    if both.is_empty() { one.clone() } else { both }
}
